"""The smallest eigenvectors of M + diag(a), for one M and many diagonals a > 0.

Reweighting spreads a over ten orders of magnitude and more. A dense eigensolver then costs O(d^3)
and commits an error of eps * max(a), large beside the eigenvalues wanted. The inverse has neither
defect: its largest eigenvalues are the wanted ones, and the heavy entries of a hardly appear in
it. So `smallest_eigenvectors` runs a block Lanczos iteration on

    C = (M + diag(a) - sigma)^-1,      sigma just below min(a).

M is positive semi-definite, so M + diag(a) - sigma is positive definite. The blocks are narrower
than the number of vectors wanted: a space of a given size then holds a polynomial of higher degree
in C, and two to three times the wanted vectors are enough for all their digits. A block of b
columns finds b copies of a multiple eigenvalue, so b is raised where that many are found.

Rows with an entry of a that dwarfs M are left out and computed from the others
(`QuadraticForm.light_part`): as reweighting goes on, the problem shrinks to the rows that count.

The shift matters where M has a null space and a is nearly constant: the eigenvalues wanted then
differ in the seventh digit, and only the distance to sigma tells them apart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.quadratic_form import DenseForm, Inverse, QuadraticForm, symmetric_part

# Up to this size, and where so many vectors are wanted that the blocks would fill the space, C is
# formed and decomposed.
DENSE_SIZE = 100
DENSE_PER_COLUMN = 3
# Columns of a block; the size of the space at the first test, and at most, per vector wanted.
BLOCK = 8
FIRST_TEST, MOST_PER_COLUMN = 1.8, 8
FEWEST_BLOCKS, MOST_BLOCKS = 2, 24
# Eigenvalues are crowded if half of the diagonal lies within this many times the reach of them; up
# to this size of matrix LAPACK is then faster.
CROWDED = 4.0
MOST_DECOMPOSED = 1500
# By how much a block is expected to lower the error, where it is not known yet.
EXPECTED_RATE = 10.0
# Eigenvalues of C this close to each other, relatively, count as one.
EQUAL = 1e-6
# Vectors carried beside the wanted ones: they hold the next eigenvalues off and show the gap.
GUARDS = 4
# No residual falls below a few roundings.
ROUNDING = 1e-14
# A new block with less than this of its length outside of the basis may not be orthogonal to it.
DEPENDENT = 1e-8
# sigma stays this far below min(a), in units of (last eigenvalue of the block - min(a)); at least
# this share of min(a), where a - sigma would have lost its digits; and never below zero.
SHIFT_DISTANCE = 0.03
SMALLEST_DISTANCE = 1e-11
MOST_SHIFTS = 12
# A row is heavy from this many times the norm of M, and the eigenvalues wanted, on.
HEAVY = 300.0
MOST_CORRECTIONS = 3


@dataclass(frozen=True)
class EigenBlock:
    """Orthonormal vectors: the wanted ones first, then the guards that a next call starts from."""

    block: FloatArray
    width: int
    values: FloatArray
    """The smallest eigenvalues, ascending."""
    n_solves: int
    converged: bool
    projected: FloatArray | None = None
    """block' M block; to be removed before the block is the start for another M."""

    @property
    def vectors(self) -> FloatArray:
        """The wanted eigenvectors."""
        return self.block[:, : self.width]


def smallest_eigenvectors(
    form: QuadraticForm,
    diagonal: FloatArray,
    width: int,
    rng: np.random.Generator,
    start: EigenBlock | None = None,
    *,
    tol: float = 1e-10,
) -> EigenBlock:
    """The ``width`` smallest eigenvectors of M + diag(diagonal), the diagonal being positive.

    ``start`` is the solution for another diagonal. ``rng`` fills the starting block where there is
    none; it does not influence the result beyond ``tol``, which bounds the error of the subspace
    (residual over gap).
    """
    problem = _Problem(form, diagonal, width, tol)
    guess = None if start is None else start.block
    reach = problem.reach(start)
    light = problem.light_rows()
    if light is not None:
        found = _solve_light(problem, light, guess, reach, rng)
        if found is not None:
            return found
    solution = _solve(problem, guess, reach, rng)
    return EigenBlock(
        solution.vectors,
        width,
        solution.values[:width],
        solution.n_solves,
        solution.converged,
        solution.vectors.T @ form.images(solution.vectors),
    )


@dataclass(frozen=True)
class _Problem:
    """Find the ``width`` smallest eigenvectors of M + diag(diagonal), and the guards."""

    form: QuadraticForm
    diagonal: FloatArray
    width: int
    tol: float

    @property
    def n_columns(self) -> int:
        return min(self.width + GUARDS, self.form.size)

    @property
    def lightest(self) -> float:
        return float(self.diagonal.min())

    def reach(self, start: EigenBlock | None) -> float:
        """How far above min(diagonal) the eigenvalues are at most, guards included."""
        if start is None:
            return self.form.bound(self.diagonal, self.n_columns) - self.lightest
        block, projected = start.block, start.projected
        if projected is None:
            projected = block.T @ self.form.images(block)
        projected = projected + block.T @ (self.diagonal[:, np.newaxis] * block)
        return float(np.linalg.eigvalsh(symmetric_part(projected))[-1]) - self.lightest

    def light_rows(self) -> IndexArray | None:
        """Rows that have to stay; None if too few can be left out to be worth it."""
        most = self.form.most_light
        if self.n_columns > most:
            return None
        # The eigenvalues wanted are at most the norm of M above the diagonal entries of their rank.
        scale = self.form.norm + float(np.partition(self.diagonal, self.width - 1)[self.width - 1])
        count = max(int(np.count_nonzero(self.diagonal < HEAVY * scale)), self.n_columns)
        if count > most:
            return None
        return np.sort(np.argpartition(self.diagonal, count - 1)[:count])


@dataclass(frozen=True)
class _Solution:
    """Smallest eigenvectors and eigenvalues, wanted and guards."""

    vectors: FloatArray
    values: FloatArray
    n_solves: int
    converged: bool
    C: Inverse | None = None
    sigma: float = 0.0

    def turn(self, residual: FloatArray, width: int) -> float:
        """How far a residual turns the vectors wanted towards others, but for second order.

        It turns the vector to the value v by residual / (u - v) along one to the value u. Of
        that, C knows residual / (u - sigma).
        """
        outside: FloatArray = residual - self.vectors @ (self.vectors.T @ residual)
        gaps = self.values[width] - self.values[:width]
        if self.C is not None:
            outside = self.C(outside)
            gaps = gaps / (float(self.values[width]) - self.sigma)
        sizes = np.sqrt(np.einsum("ij,ij->j", outside, outside))[:width]
        return float((sizes / np.maximum(gaps, np.finfo(float).tiny)).max())


def _solve_light(
    problem: _Problem,
    light: IndexArray,
    guess: FloatArray | None,
    reach: float,
    rng: np.random.Generator,
) -> EigenBlock | None:
    """Solve for the light rows, with the response of the others; None if that misses ``tol``.

    The equation of the light rows lacks the second term of the series. It is computed for the W
    found and, if it turns W by more than ``tol``, added as a matrix that has this effect on W.
    """
    is_heavy = np.ones(problem.form.size, dtype=bool)
    is_heavy[light] = False
    heavy = np.flatnonzero(is_heavy)
    form = problem.form.light_part(light, heavy, problem.diagonal[heavy] - problem.lightest)
    guess = None if guess is None else guess[light]
    correction: FloatArray | None = None
    corrected: QuadraticForm = form
    for _ in range(MOST_CORRECTIONS):
        reduced = _Problem(corrected, problem.diagonal[light], problem.width, problem.tol)
        found = _solve(reduced, guess, reach, rng)
        W = guess = found.vectors
        block, projected, second_term = _respond(problem, light, heavy, found)
        if not found.converged:
            return None
        lacking = second_term if correction is None else second_term - correction @ W
        if found.turn(lacking, problem.width) <= problem.tol:
            return _orthonormal_block(problem, block, projected, found.n_solves)
        if not isinstance(form, DenseForm):
            return None
        across = second_term @ W.T
        correction = across + across.T - W @ (W.T @ across)
        corrected = DenseForm(form.matrix + correction)
    return None


def _respond(
    problem: _Problem, light: IndexArray, heavy: IndexArray, found: _Solution
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """All rows, from the light ones; the form on them; and the second term for the light ones.

    The form lacks what is quadratic in the second term of the heavy rows: rounding.
    """
    b = (problem.diagonal[heavy] - problem.lightest)[:, np.newaxis]
    images = problem.form.images(found.vectors, given=light)
    first = images[heavy] / b
    block = np.zeros_like(images)
    block[heavy] = first
    of_first = problem.form.images(block)[heavy]
    second = (of_first - first * (found.values - problem.lightest)) / b
    block[heavy] = second
    second_term = problem.form.images(block, wanted=light)
    across = found.vectors.T @ second_term - images[heavy].T @ first
    among = (first - second).T @ of_first - of_first.T @ second
    projected = found.vectors.T @ images[light] + across + across.T + among
    block[heavy] -= first
    block[light] = found.vectors
    return block, projected, second_term


def _orthonormal_block(
    problem: _Problem, block: FloatArray, projected: FloatArray, n_solves: int
) -> EigenBlock:
    """Rayleigh-Ritz in the span of the block."""
    total = projected + block.T @ (problem.diagonal[:, np.newaxis] * block)
    values, rotation = eigh(
        symmetric_part(total), symmetric_part(block.T @ block), check_finite=False
    )
    width, projected = problem.width, rotation.T @ projected @ rotation
    return EigenBlock(block @ rotation, width, values[:width], n_solves, True, projected)


def _solve(
    problem: _Problem, guess: FloatArray | None, reach: float, rng: np.random.Generator
) -> _Solution:
    form, diagonal, n_columns = problem.form, problem.diagonal, problem.n_columns
    lightest = problem.lightest
    if form.size <= max(DENSE_SIZE, DENSE_PER_COLUMN * n_columns):
        return _decompose_inverse(problem, reach)
    if isinstance(form, DenseForm) and float(np.ptp(diagonal)) <= form.norm:
        is_crowded = float(np.median(diagonal)) - lightest <= CROWDED * reach
        if guess is None or (is_crowded and form.size <= MOST_DECOMPOSED):
            return _decompose(problem, form.matrix)
    nearest = _nearest(problem)
    n_block = min(BLOCK, n_columns)
    n_solves = 0
    for _ in range(MOST_SHIFTS):
        distance = min(max(SHIFT_DISTANCE * reach, nearest), max(lightest, nearest))
        C = form.inverse((diagonal - lightest) + distance)
        first = _first_block(guess, form.size, n_block, rng)
        leading = _leading_subspace(C, first, problem)
        n_solves += leading.n_products
        values = (1.0 / leading.values - distance) + lightest
        if leading.converged and leading.is_complete:
            return _Solution(leading.vectors, values, n_solves, True, C, lightest - distance)
        guess, n_block = leading.vectors, min(2 * n_block, n_columns)
        reach = min(reach, max(float(values[-1]) - lightest, 0.0))
    return _Solution(leading.vectors, values, n_solves, False)


def _nearest(problem: _Problem) -> float:
    """How near to min(diagonal) sigma may be."""
    return max(
        SMALLEST_DISTANCE * problem.lightest, problem.form.smallest_distance(problem.diagonal)
    )


def _decompose(problem: _Problem, matrix: FloatArray) -> _Solution:
    """LAPACK's smallest eigenvectors of the sum.

    Where the diagonal is no heavier than M the error is that of the inverse. It is faster without a
    guess at the eigenvalues, and so at sigma, and where many others are near the wanted ones.
    """
    total = matrix.T.copy(order="F")
    total[np.diag_indices(len(total))] += problem.diagonal - problem.lightest
    values, vectors = eigh(
        total, subset_by_index=[0, problem.n_columns - 1], overwrite_a=True, check_finite=False
    )
    return _Solution(vectors, values + problem.lightest, 1, True)


def _decompose_inverse(problem: _Problem, reach: float) -> _Solution:
    """LAPACK's leading eigenvectors of C, for a sigma that is near enough."""
    lightest, nearest = problem.lightest, _nearest(problem)
    for n_solves in range(1, MOST_SHIFTS + 1):
        distance = min(max(SHIFT_DISTANCE * reach, nearest), max(lightest, nearest))
        C = problem.form.inverse((problem.diagonal - lightest) + distance)
        leading, vectors = np.linalg.eigh(C.matrix())
        wanted = slice(None, -problem.n_columns - 1, -1)
        values = 1.0 / leading[wanted] - distance
        reach = max(float(values[-1]), 0.0)
        is_near = distance <= max(reach, nearest)
        if is_near or n_solves == MOST_SHIFTS:
            break
    return _Solution(
        vectors[:, wanted], values + lightest, n_solves, is_near, C, lightest - distance
    )


def _first_block(
    guess: FloatArray | None, size: int, n_columns: int, rng: np.random.Generator
) -> FloatArray:
    """Combinations of the guess; the last column stays random.

    An old solution can be invariant without being smallest.
    """
    block: FloatArray = rng.standard_normal((size, n_columns))
    if guess is not None:
        block[:, :-1] = guess @ rng.standard_normal((guess.shape[1], n_columns - 1))
    return block


@dataclass(frozen=True)
class _Leading:
    """Leading eigenvectors of C."""

    vectors: FloatArray
    values: FloatArray
    n_products: int
    converged: bool
    is_complete: bool
    """Whether no eigenvalue has as many copies as a block has columns: there may be more."""


def _leading_subspace(C: Inverse, first: FloatArray, problem: _Problem) -> _Leading:
    """Leading eigenvectors of C in a block Krylov space (block Lanczos).

    C V = V T + rest * (last block of the identity), so the residual of a Ritz vector V y is the
    rest times the last part of y.
    """
    n_wanted, (size, n_columns) = problem.n_columns, first.shape
    most_blocks = min(max(MOST_BLOCKS, MOST_PER_COLUMN * n_wanted // n_columns), size // n_columns)
    next_test = max(FEWEST_BLOCKS, int(np.ceil(FIRST_TEST * n_wanted / n_columns)))
    basis = np.empty((size, most_blocks * n_columns), order="F")
    projected = np.zeros((most_blocks * n_columns, most_blocks * n_columns))
    following = np.linalg.qr(first)[0]
    before = None
    for n_blocks in range(1, most_blocks + 1):
        filled = n_blocks * n_columns
        V = basis[:, :filled]
        V[:, -n_columns:] = following
        rest = C(following)
        # But for rounding, V'CV is zero above.
        recent = slice(max(filled - 2 * n_columns, 0), filled)
        along = V[:, recent].T @ rest
        rest -= V[:, recent] @ along
        projected[recent, filled - n_columns : filled] = along
        if n_blocks in (next_test, most_blocks):
            values, rotation = np.linalg.eigh(projected[:filled, :filled], UPLO="U")
            values, leading = values[::-1], rotation[:, ::-1][:, :n_wanted]
            excess = _excess(rest, values, leading[-n_columns:], problem)
            if excess <= 1.0 or n_blocks == most_blocks:
                break
            next_test = min(n_blocks + _blocks_to_go(before, (n_blocks, excess)), most_blocks)
            before = (n_blocks, excess)
        following = _orthonormal_to(V, rest)
    is_complete = n_columns >= n_wanted or not _has_equal(values, n_columns, problem.width)
    return _Leading(V @ leading, values[:n_wanted], n_blocks, excess <= 1.0, is_complete)


def _excess(rest: FloatArray, values: FloatArray, last: FloatArray, problem: _Problem) -> float:
    """The largest residual of the Ritz vectors wanted, in units of what is allowed.

    A vector with the eigenvalue v and the residual r has parts of at most |r| / (v - u) along
    eigenvectors that are not wanted, u being the largest eigenvalue of those.
    """
    width = problem.width
    last = last[:, :width]
    residuals = np.linalg.norm(rest @ last, axis=0)
    allowed = np.maximum(problem.tol * (values[:width] - values[width]), ROUNDING * values[0])
    return float((residuals / allowed).max())


def _blocks_to_go(before: tuple[int, float] | None, now: tuple[int, float]) -> int:
    """How many blocks more, at the rate of the last ones, bring the excess down to one."""
    rate = EXPECTED_RATE
    if before is not None:
        rate = max((before[1] / now[1]) ** (1.0 / (now[0] - before[0])), 1.5)
    blocks = int(np.log(now[1]) / np.log(rate))
    return min(max(blocks, 1), now[0] // 3 + 2)


def _has_equal(values: FloatArray, count: int, width: int) -> bool:
    """Whether ``count`` eigenvalues are equal, a wanted one among them."""
    last = values[count - 1 :][:width]
    return bool(np.any(values[: len(last)] - last <= EQUAL * values[: len(last)]))


def _orthonormal_to(V: FloatArray, block: FloatArray) -> FloatArray:
    """Orthonormal columns that span ``block``, which is almost orthogonal to V, outside of V."""
    block = block - V @ (V.T @ block)
    following, triangle = np.linalg.qr(block)
    lengths = np.abs(triangle.diagonal())
    if lengths.min() <= DEPENDENT * lengths.max():
        following = np.linalg.qr(following - V @ (V.T @ following))[0]
    return following
