"""The smallest eigenvectors of M + diag(a), for one M and many diagonals a > 0.

M = X'LX is positive semi-definite and comes in one of two storages: `DenseForm`, the matrix itself
(d <= n), and `LowRankForm`, M = Q diag(s) Q' with an orthonormal Q of at most n columns (d > n).

Reweighting spreads a over ten orders of magnitude and more. A dense eigensolver then costs O(d^3)
and commits an error of eps * max(a), large beside the eigenvalues wanted. The inverse has neither
defect: its largest eigenvalues are the wanted ones, and the heavy entries of a hardly appear in
it. So `smallest_eigenvectors` runs a block Krylov iteration on

    C = (M + diag(a) - sigma)^-1,      sigma just below min(a),

warm-started from the last solution. M is positive semi-definite, so M + diag(a) - sigma is
positive definite. C is applied through a Cholesky factor of the d x d matrix, or by Woodbury's
formula with n x n work only; with b = a - sigma,

    C = diag(1/b) - Z Z',      Z = diag(1/b) Q K^(-1/2),      K = diag(1/s) + Q' diag(1/b) Q.

The shift matters where M has a null space and a is nearly constant: the eigenvalues wanted then
differ in the seventh digit, and only the distance to sigma tells them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from keepers._protocols import FloatArray

__all__ = [
    "DenseForm",
    "EigenBlock",
    "LowRankForm",
    "QuadraticForm",
    "low_rank_form",
    "smallest_eigenvectors",
]

Apply = Callable[[FloatArray], FloatArray]

# Up to this size, and where so many vectors are wanted that the blocks would fill the space, C is
# formed and decomposed.
DENSE_SIZE = 150
FEWEST_BLOCKS = 3
MOST_BLOCKS = 12
# Vectors carried beside the wanted ones: they hold the next eigenvalues off and show the gap.
GUARDS = 4
# Error of the subspace: residual over gap. No residual falls below a few roundings.
SUBSPACE_TOL = 1e-11
ROUNDING = 1e-14
# A new block with less than this of its length outside of the basis may not be orthogonal to it.
DEPENDENT = 1e-8
# sigma stays this far below min(a), in units of (last eigenvalue of the block - min(a)); at least
# this share of min(a), where a - sigma would have lost its digits; and never below zero.
SHIFT_DISTANCE = 0.1
SMALLEST_DISTANCE = 1e-11
MOST_SHIFTS = 12


class QuadraticForm(Protocol):
    """A positive semi-definite d x d matrix M to which diagonals are added."""

    @property
    def size(self) -> int:
        """Number of rows, d."""

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""

    def inverse(self, diagonal: FloatArray) -> Apply:
        """The map V -> (M + diag(diagonal))^-1 V, for a positive diagonal."""

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """An upper bound on the ``count``-th smallest eigenvalue of M + diag(diagonal)."""

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """How far sigma has to stay below min(diagonal) for C to have digits."""


@dataclass(frozen=True)
class DenseForm:
    """M in memory."""

    matrix: FloatArray

    @property
    def size(self) -> int:
        """Number of rows, d."""
        return int(self.matrix.shape[0])

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""
        return np.asarray(self.matrix.diagonal())

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""
        return np.asarray(self.matrix @ W)

    def inverse(self, diagonal: FloatArray) -> Apply:
        """Solve with a Cholesky factor."""
        shifted = self.matrix.copy(order="F")
        shifted[np.diag_indices(self.size)] += diagonal
        factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)

        def solve(V: FloatArray) -> FloatArray:
            return np.asarray(cho_solve(factor, V, check_finite=False))

        return solve

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """The eigenvalues of a principal submatrix lie above those of the whole."""
        light = np.argsort(self.diagonal() + diagonal)[:count]
        part = self.matrix[np.ix_(light, light)] + np.diag(diagonal[light])
        return float(np.linalg.eigvalsh(part)[-1])

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Below this, a Cholesky factor of the d x d matrix need not exist."""
        return float(self.size * np.finfo(float).eps * self.diagonal().max())


@dataclass(frozen=True)
class LowRankForm:
    """M = Q diag(s) Q' with orthonormal columns of Q and s > 0."""

    Q: FloatArray
    s: FloatArray

    @property
    def size(self) -> int:
        """Number of rows, d."""
        return int(self.Q.shape[0])

    def diagonal(self) -> FloatArray:
        """The entries M_jj."""
        return np.asarray(np.einsum("ij,ij,j->i", self.Q, self.Q, self.s))

    def images(self, W: FloatArray) -> FloatArray:
        """The product MW."""
        return np.asarray(self.Q @ (self.s[:, np.newaxis] * (self.Q.T @ W)))

    def inverse(self, diagonal: FloatArray) -> Apply:
        """Woodbury's formula, with the middle factor split between its two sides."""
        light = 1.0 / diagonal[:, np.newaxis]
        half = self.Q * np.sqrt(light)
        K = half.T @ half
        K[np.diag_indices(len(K))] += 1.0 / self.s
        Z = light * (self.Q @ np.linalg.inv(np.linalg.cholesky(K)).T)

        def multiply(V: FloatArray) -> FloatArray:
            return np.asarray(light * V - Z @ (Z.T @ V))

        return multiply

    def bound(self, diagonal: FloatArray, count: int) -> float:
        """A change of rank r moves eigenvalues up by at most r places."""
        place = count + len(self.s) - 1
        if place < self.size:
            return float(np.partition(diagonal, place)[place])
        return float(diagonal.max() + self.s.max())

    def smallest_distance(self, diagonal: FloatArray) -> float:
        """Below this, a Cholesky factor of K need not exist."""
        smallest_of_K = 1.0 / diagonal.max() + 1.0 / self.s.max()
        return float(self.size * np.finfo(float).eps / smallest_of_K)


def low_rank_form(basis: FloatArray, middle: FloatArray) -> LowRankForm:
    """V G V' for an orthonormal basis V and a positive semi-definite G, null directions left out.

    With X = RV' (n <= d) and a Laplacian L, X'LX = V (R'LR) V'.
    """
    spectrum, rotation = np.linalg.eigh((middle + middle.T) / 2)
    kept = spectrum > len(spectrum) * np.finfo(float).eps * max(spectrum[-1], 0.0)
    return LowRankForm(basis @ rotation[:, kept], spectrum[kept])


@dataclass(frozen=True)
class EigenBlock:
    """Orthonormal vectors: the wanted ones first, then the guards that a next call starts from."""

    block: FloatArray
    width: int
    values: FloatArray
    """The smallest eigenvalues, ascending."""
    n_solves: int
    converged: bool

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
) -> EigenBlock:
    """The ``width`` smallest eigenvectors of M + diag(diagonal), the diagonal being positive.

    ``start`` is the solution for another diagonal. ``rng`` fills the starting block where there is
    none; it does not influence the result beyond rounding.
    """
    n_columns = min(width + GUARDS, form.size)
    dense = form.size <= max(DENSE_SIZE, FEWEST_BLOCKS * n_columns)
    lightest = float(diagonal.min())
    nearest = max(SMALLEST_DISTANCE * lightest, form.smallest_distance(diagonal))
    reach = form.bound(diagonal, n_columns) - lightest
    if start is not None:
        reach = min(reach, _largest_ritz_value(form, diagonal, start.block) - lightest)
    block = rng.standard_normal((form.size, n_columns))
    if start is not None:
        # The last column stays random: an old solution can be invariant without being smallest.
        block[:, :-1] = start.block[:, : n_columns - 1]
    n_solves = 0
    for _ in range(MOST_SHIFTS):
        distance = min(max(SHIFT_DISTANCE * reach, nearest), max(lightest, nearest))
        apply = form.inverse((diagonal - lightest) + distance)
        if dense:
            leading = _decomposed(apply(np.eye(form.size)), n_columns)
        else:
            leading = _leading_subspace(apply, block, width)
        block, n_solves = leading.vectors, n_solves + leading.n_products
        values = (1.0 / leading.values - distance) + lightest
        nearer = max(float(values[-1]) - lightest, 0.0)
        if leading.converged and (not dense or distance <= max(nearer, nearest)):
            return EigenBlock(block, width, values[:width], n_solves, True)
        reach = min(reach, nearer)
    return EigenBlock(block, width, values[:width], n_solves, False)


def _largest_ritz_value(form: QuadraticForm, diagonal: FloatArray, W: FloatArray) -> float:
    projected = W.T @ (form.images(W) + diagonal[:, np.newaxis] * W)
    return float(np.linalg.eigvalsh(_symmetric(projected))[-1])


@dataclass(frozen=True)
class _Leading:
    """Leading eigenvectors of C."""

    vectors: FloatArray
    values: FloatArray
    n_products: int
    converged: bool


def _decomposed(C: FloatArray, n_columns: int) -> _Leading:
    values, vectors = np.linalg.eigh(_symmetric(C))
    return _Leading(vectors[:, ::-1][:, :n_columns], values[::-1][:n_columns], 1, True)


def _leading_subspace(apply: Apply, block: FloatArray, width: int) -> _Leading:
    """Leading eigenvectors of C in the block Krylov space of ``block`` (block Lanczos).

    C V = V T + next * coupling, so the residual of V y is the coupling times the last part of y.
    """
    size, n_columns = block.shape
    most_blocks = min(MOST_BLOCKS, size // n_columns)
    basis = np.empty((size, most_blocks * n_columns))
    projected = np.zeros((most_blocks * n_columns, most_blocks * n_columns))
    following = np.linalg.qr(block)[0]
    for n_blocks in range(1, most_blocks + 1):
        filled = n_blocks * n_columns
        V = basis[:, :filled]
        V[:, -n_columns:] = following
        image = apply(following)
        along = V.T @ image
        projected[:filled, filled - n_columns : filled] = along
        following, coupling = _orthonormal_rest(V, image, along)
        values, rotation = np.linalg.eigh(projected[:filled, :filled], UPLO="U")
        values, leading = values[::-1][:n_columns], rotation[:, ::-1][:, :n_columns]
        residual = coupling @ leading[-n_columns:]
        converged = n_blocks > 1 and _has_converged(residual, values, width)
        if converged:
            break
    return _Leading(V @ leading, values, n_blocks, converged)


def _has_converged(residual: FloatArray, values: FloatArray, width: int) -> bool:
    error = float(np.sqrt(np.einsum("ij,ij->j", residual, residual)[:width].max()))
    gap = float(values[width - 1] - values[width])
    return error <= max(SUBSPACE_TOL * gap, ROUNDING * float(values[0]))


def _orthonormal_rest(
    V: FloatArray, image: FloatArray, along: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Orthonormal columns that span ``image`` outside of V, and the triangle that gives it back."""
    rest = image - V @ along
    rest -= V @ (V.T @ rest)  # once is not enough when almost nothing is left
    following, coupling = np.linalg.qr(rest)
    if np.abs(coupling.diagonal()).min() <= DEPENDENT * np.abs(along).max():
        following = np.linalg.qr(following - V @ (V.T @ following))[0]
    return following, coupling


def _symmetric(matrix: FloatArray) -> FloatArray:
    return np.asarray((matrix + matrix.T) / 2)
