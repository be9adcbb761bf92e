"""The leading spectrum of the scatter S: the number of components, and the start of SPCAFS.

Where one side of the data is small, its Gram matrix is formed and its leading eigenpairs are exact:
by LAPACK's `eigh`, or from a block Krylov space of a large matrix of which few pairs are wanted.
Where neither side is small, they come from a block Krylov space of S.

Where only the diagonal of S changes, `leading_subspace` starts from the last solution and its image
(so a new diagonal costs no product), improves the block along its preconditioned residual, and
takes the best m vectors of the 2m-dimensional space (Rayleigh-Ritz): the trace never falls. The
preconditioner divides the residual of row i and vector j by shift_i + theta_j, which keeps it short
when the weights differ by orders of magnitude (docs/decisions/0002-eigensolver.md). Blocks are kept
in Fortran order, so sweeps over d run through memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BlockProducts, FloatArray, SmallSide, SymmetricOperator

# Below this, a direction of the 2m-dimensional space is rounding noise (relative, squared norm).
_DEPENDENT = 1e-8
# theta_j + shift_i may cross zero in rows with little shift; such quotients are capped.
_SMALLEST_QUOTIENT = 1e-3
# Images smaller than this share of the largest do not set the accuracy.
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Subspace:
    """An orthonormal block, its image under S, and its Ritz values."""

    vectors: FloatArray
    images: FloatArray
    values: FloatArray
    n_products: int = 0

    def first(self, width: int) -> "Subspace":
        """The leading ``width`` of these vectors."""
        vectors, images = self.vectors[:, :width], self.images[:, :width]
        return replace(self, vectors=vectors, images=images, values=self.values[:width])

    @property
    def squared_row_norms(self) -> FloatArray:
        return squared_row_norms(self.vectors)

    @property
    def trace(self) -> float:
        return float(np.vdot(self.vectors.T, self.images.T))


def orthonormal_subspace(operator: BlockProducts, block: FloatArray) -> Subspace:
    """The span of a block, rotated to the Ritz vectors of the operator."""
    basis, _ = np.linalg.qr(block)
    images = operator.matmat(basis)
    values, rotation = _descending(basis.T @ images)
    return Subspace(basis @ rotation, images @ rotation, values, n_products=1)


def leading_subspace(
    operator: BlockProducts,
    shift: FloatArray,
    start: Subspace,
    *,
    tol: float = 1e-2,
    max_iter: int = 50,
) -> Subspace:
    """The m leading eigenvectors of S - diag(shift), m being the width of ``start``.

    At least one product is made, even if ``start`` already meets ``tol``: an outer iteration that
    stops on a step in which nothing moved would have converged by neglect.
    """
    width = start.vectors.shape[1]
    basis, images = start.vectors.T, start.images.T  # vectors are rows here
    projected: FloatArray = basis @ (images - shift * basis).T
    values, mixing = _ritz_vectors(basis @ basis.T, projected, width)
    basis, images = mixing.T @ basis, mixing.T @ images
    for n_products in range(max_iter + 1):
        W, SW, theta = basis[:width], images[:width], values[:width, np.newaxis]
        direction = SW - (shift + theta) * W
        error = float(np.max(_relative(row_norms(direction), row_norms(SW))))
        if n_products == max_iter or (n_products > 0 and error <= tol):
            break
        smallest = _SMALLEST_QUOTIENT * max(float(np.abs(theta).max()), np.finfo(float).tiny)
        direction /= np.maximum(np.abs(shift + theta), smallest)
        direction -= (direction @ basis.T) @ basis
        image = operator.matmat(direction.T).T
        kept = len(basis)
        basis, images = np.vstack([basis, direction]), np.vstack([images, image])
        gram = _bordered(np.ones(kept), basis @ direction.T)
        projected = _bordered(values, basis @ (image - shift * direction).T)
        # Ten times the tolerance away more than two products are to be expected. There, as many
        # Ritz vectors as are wanted, kept beside them, save a third of the products.
        wanted = min(2 * width, len(basis)) if error > 10.0 * tol else width
        values, mixing = _ritz_vectors(gram, projected, wanted)
        basis, images = mixing.T @ basis, mixing.T @ images
    return Subspace(W.T.copy("F"), SW.T.copy("F"), values[:width], n_products)


def _bordered(diagonal: FloatArray, columns: FloatArray) -> FloatArray:
    """The symmetric matrix with a diagonal first block and these last columns."""
    size = len(diagonal)
    return np.block([[np.diag(diagonal), columns[:size]], [columns[:size].T, columns[size:]]])


def relative_residuals(block: Subspace) -> FloatArray:
    """How well a block solves the eigenproblem of S: the residual of each vector over its image."""
    residuals = block.images - block.vectors * block.values
    return _relative(np.linalg.norm(residuals, axis=0), np.linalg.norm(block.images, axis=0))


def _relative(residuals: FloatArray, images: FloatArray) -> FloatArray:
    """Residual norms relative to those of the images; tiny images do not set the accuracy."""
    least = max(_NEGLIGIBLE * float(images.max()), np.finfo(float).tiny)
    return np.asarray(residuals / np.maximum(images, least))


def _ritz_vectors(
    gram: FloatArray, projected: FloatArray, width: int
) -> tuple[FloatArray, FloatArray]:
    """Values and coefficients of the ``width`` leading Ritz vectors of a basis with this Gram."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    scaled = gram * scale * scale[:, np.newaxis]
    try:
        factor = np.linalg.cholesky(scaled)
        dependent = bool(factor.diagonal().min() ** 2 <= _DEPENDENT)
    except np.linalg.LinAlgError:
        dependent = True
    if dependent:  # directions that are rounding noise are left out
        spectrum, vectors = np.linalg.eigh(scaled)
        kept = spectrum > _DEPENDENT * spectrum.max(initial=0.0)
        C = scale[:, np.newaxis] * (vectors[:, kept] / np.sqrt(spectrum[kept]))
    else:
        C = (np.linalg.inv(factor) * scale).T
    values, vectors = _descending(C.T @ projected @ C)
    return values[:width], C @ vectors[:, :width]


def _descending(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (largest first) and eigenvectors of a small symmetric matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors[:, ::-1]


def squared_row_norms(Q: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", Q, Q))


def row_norms(Q: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(squared_row_norms(Q)))


def fix_signs(W: FloatArray) -> FloatArray:
    """Each column with its largest entry positive: eigenvectors have no sign of their own."""
    largest = W[np.argmax(np.abs(W), axis=0), np.arange(W.shape[1])]
    return W * np.where(largest < 0, -1.0, 1.0)


MOST_AUTO_COMPONENTS = 100
# Blocks that are multiplied as they come; blocks that are held, in at most so many entries. On CSR
# 200,000 x 20,000, m = 20, 20 products reach 3e-3; with a space of 5 blocks 38 of them.
_KRYLOV_BLOCKS, _KRYLOV_ROOM, _KRYLOV_ENTRIES, _MOST_PRODUCTS = 4, 12, 1 << 26, 60
_OVERSAMPLING = 8
_FIRST_WIDTH = 16
# Residual at which a count of eigenvalues is believed, and products made for it at most.
_CHECKED = 1e-2
_CHECKING_PRODUCTS = 2
# An eigenvalue of a Gram matrix below this share of the largest is rounding.
_ROUNDING_SHARE = 1e-11
# Eigenvectors of S and their images follow from those of a Gram matrix without a product where the
# eigenvalues are at least this share of the largest; their errors are rounding over this share.
_WELL_ABOVE_ROUNDING = 1e-6
# From this size on a Krylov space of at most a quarter of it is tried instead of a full reduction.
_WORTH_KRYLOV, _ROOM, _NARROWEST_BLOCK = 800, 4, 8
# Residual of an eigenpair as a share of the largest eigenvalue.
_KRYLOV_TOL = 1e-7
_LANCZOS_ROOM, _MOST_RESTARTS = 40, 80
# Pairs that are found next if more are wanted than at least: for 1,000 samples in 10 to 25 ms, and
# 10 to 20 of them are above the edge in most tables. All of them take LAPACK 50 ms.
_MORE_LANCZOS = 24
# A matrix of a rank below its size over this is first restricted to its range.
_LOW_RANK = 3


def leading_spectrum(
    scatter: SymmetricOperator,
    n_components: int | float | str,
    *,
    n_samples: int,
    sum_of_squares: FloatArray,
    rng: np.random.Generator,
    tol: float = 3e-3,
) -> Subspace:
    """The leading eigenpairs of S: a number of them, a share of the variance, or "auto".

    "auto" takes the eigenvalues above `null_edge`, at least 1 and at most 100. ``sum_of_squares``
    is that of every column about its mean. Where neither side of the data is small, eigenvectors
    are found to the relative residual ``tol``, from a random start. Of a given number of vectors,
    ten times that is enough for those that unrelated columns would have too.
    """
    side = scatter.small_side()
    if n_components != "auto" and float(n_components) >= 1.0:
        if side is not None:
            return principal_subspace(scatter, int(n_components), rng)
        edge = edge_of_scatter(sum_of_squares, n_samples)
        return _krylov_subspace(scatter, int(n_components), rng, tol, edge=edge)
    limit = min(n_samples - 1, scatter.size)
    if n_components == "auto":
        limit = min(limit, MOST_AUTO_COMPONENTS)
        count = partial(_count_above, edge_of_scatter(sum_of_squares, n_samples))
    else:
        count = partial(_count_up_to, float(n_components) * float(sum_of_squares.sum()))
    if side is not None:
        return _lift(scatter, side, *_counted_pairs(side, count, limit))
    width = min(_FIRST_WIDTH, limit)
    while True:
        found = _krylov_subspace(scatter, width, rng, tol, count)
        n_counted = count(found.values)
        if n_counted is not None or width == limit:
            return found.first(min(n_counted or limit, limit))
        width = min(2 * width, limit)


def principal_subspace(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator, *, tol: float = 3e-3
) -> Subspace:
    """The ``width`` leading eigenvectors of S."""
    side = scatter.small_side()
    if side is not None:
        return _lift(scatter, side, *leading_pairs(side.matrix, width))
    return _krylov_subspace(scatter, width, rng, tol)


def pairs_above(
    matrix: FloatArray, edge: float, *, rank: int, at_least: int, at_most: int
) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of a positive semi-definite matrix with values above ``edge``, largest first.

    ``at_least`` and ``at_most`` bound their number, but values that are rounding are left out.
    ``rank`` is that of the matrix, or more: if it is small, the matrix is restricted to its range.
    """
    basis = None
    if (rank + _OVERSAMPLING) * _LOW_RANK < len(matrix):
        # Any start spans the range; always the same one gives the same digits.
        start = np.random.default_rng(0).standard_normal((len(matrix), rank + _OVERSAMPLING))
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix @ start)[0])[0]
        matrix = basis.T @ matrix @ basis
    at_least = min(at_least, len(matrix))
    found = _lanczos_pairs(matrix, at_least)
    if found is not None and found[0][-1] > edge:
        found = _lanczos_pairs(matrix, _MORE_LANCZOS)
    if found is None and is_bounded(matrix, edge):
        found = _eigenpairs(matrix, at_least)
    if found is not None and found[0][-1] <= edge:  # and so are all others
        n_above = min(max(at_least, int(np.sum(found[0] > edge))), at_most)
        values, vectors = found[0][:n_above], found[1][:, :n_above]
    else:
        with one_blas_thread_if_small(len(matrix)):
            values, vectors = eigh(matrix, subset_by_value=(edge, np.inf))
        values, vectors = values[::-1][:at_most], vectors[:, ::-1][:, :at_most]
        if len(values) < at_least:
            values, vectors = _eigenpairs(matrix, at_least)
    n_real = max(1, int(np.sum(values > _ROUNDING_SHARE * values[0])))
    values, vectors = values[:n_real], vectors[:, :n_real]
    return values, vectors if basis is None else basis @ vectors


def _lanczos_pairs(matrix: FloatArray, width: int) -> tuple[FloatArray, FloatArray] | None:
    """The few leading eigenpairs of a large matrix to rounding, in a third of the time of `eigh`.

    None if it is not large, or they converge too slowly.
    """
    if len(matrix) < _WORTH_KRYLOV:
        return None
    start = np.random.default_rng(0).standard_normal(len(matrix))  # always the same digits
    try:
        with one_blas_thread_if_small(len(matrix)):
            ncv = max(_LANCZOS_ROOM, 5 * width // 2)
            values, vectors = eigsh(matrix, width, v0=start, ncv=ncv, maxiter=_MOST_RESTARTS)
    except ArpackNoConvergence:
        return None
    return values[::-1], vectors[:, ::-1]


def null_edge(variances: FloatArray, n_samples: int) -> float:
    """The largest eigenvalue of the sample covariance of columns without common structure.

    Horn's parallel analysis shuffles every column and looks at the spectrum that is left. Its limit
    is known: for n samples of independent columns with variances t_1..t_d, the spectrum fills the
    Marchenko-Pastur law with population spectrum {t_j}, and its upper edge solves one scalar
    equation (Silverstein and Choi 1995; used for choosing components by Dobriban and Owen, JRSS B
    2019). It needs the column variances only. With all variances t it is t (1 + sqrt(d/n))^2.
    """
    largest = float(variances.max())
    t = variances / largest

    def excess(x: float) -> float:
        ratio = t * x / (1.0 - t * x)
        return float(ratio @ ratio) / n_samples - 1.0

    x = brentq(excess, 0.0, 1.0 - 1e-12) if excess(1.0 - 1e-12) > 0 else 1.0 - 1e-12
    return largest * (1.0 / x + float(np.sum(t / (1.0 - t * x))) / n_samples)


def edge_of_scatter(sum_of_squares: FloatArray, n_samples: int) -> float:
    """The edge of the scatter, from the sum of squares of every column about its mean."""
    freedom = n_samples - 1
    return freedom * null_edge(sum_of_squares / freedom, freedom)


def is_flat(values: FloatArray, sum_of_squares: FloatArray, n_samples: int) -> bool:
    """True if any components would do as well: nearly equal, the last no larger than noise has."""
    return nearly_equal(values) and values[-1] <= edge_of_scatter(sum_of_squares, n_samples)


def nearly_equal(values: FloatArray) -> bool:
    """True if eigenvalues differ by a tenth at most, so vectors can be turned into others."""
    return len(values) > 1 and bool(values[-1] >= 0.9 * values[0] > 0.0)


_Count = Callable[[FloatArray], int | None]
"""The number of leading eigenvalues that are components; None if all are and there may be more."""


def _count_above(edge: float, values: FloatArray) -> int | None:
    """Count the eigenvalues above an edge, at least 1."""
    above = int(np.sum(values > edge))
    return max(above, 1) if above < len(values) else None


def _count_up_to(wanted: float, values: FloatArray) -> int | None:
    """Count the leading eigenvalues that sum to ``wanted``."""
    reached = np.flatnonzero(np.cumsum(values) >= wanted * (1 - 1e-12))
    return int(reached[0]) + 1 if len(reached) else None


def _eigenpairs(matrix: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """The ``width`` leading eigenpairs of a symmetric matrix by LAPACK, largest first."""
    size = len(matrix)
    with one_blas_thread_if_small(size):  # many small steps: threads would wait
        values, vectors = eigh(matrix, subset_by_index=(size - width, size - 1))
    return values[::-1], vectors[:, ::-1]


def is_bounded(matrix: FloatArray, bound: float) -> bool:
    """True if no eigenvalue reaches a bound: a Cholesky factor of the difference exists."""
    difference = -matrix
    difference.flat[:: len(matrix) + 1] += bound
    try:
        np.linalg.cholesky(difference)
    except np.linalg.LinAlgError:
        return False
    return True


def _counted_pairs(side: SmallSide, count: _Count, limit: int) -> tuple[FloatArray, FloatArray]:
    """The leading eigenpairs that ``count`` counts."""
    matrix, width = side.matrix, min(_FIRST_WIDTH, limit)
    while (pairs := _krylov_pairs(matrix, width)) is not None:
        n_found = count(pairs[0])
        if n_found is not None or width == limit:
            width = min(n_found or limit, limit)
            return pairs[0][:width], pairs[1][:, :width]
        width = min(2 * width, limit)
    return _eigenpairs(matrix, min(count(np.linalg.eigvalsh(matrix)[::-1]) or limit, limit))


def leading_pairs(matrix: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    """The ``width`` leading eigenpairs of a symmetric matrix, largest first."""
    return _krylov_pairs(matrix, width) or _eigenpairs(matrix, width)


def _krylov_pairs(matrix: FloatArray, width: int) -> tuple[FloatArray, FloatArray] | None:
    """The same from a block Krylov space; None where a full reduction is as cheap.

    Blocks are narrower than the number of pairs wanted: a space of a given size then has higher
    powers of the matrix. It could miss copies of a multiple eigenvalue. Therefore a fresh block is
    added at the end, in which they would show as vectors that do not solve the eigenproblem.
    """
    size = len(matrix)
    step = max(_NARROWEST_BLOCK, width // 4)
    room = size // _ROOM
    next_look = max(3 * width, 6 * step)
    if size < _WORTH_KRYLOV or next_look + 2 * step > room:
        return None
    rng = np.random.default_rng(0)  # always the same start gives the same digits
    space = KrylovSpace(lambda V: (V.T @ matrix).T, size, room)
    block: FloatArray = rng.standard_normal((step, size)) @ matrix
    while space.used + 2 * step <= room:
        block = space.add(block)
        if space.used < next_look:
            continue
        next_look = int(1.5 * space.used)
        if _solves(space.leading(width)):
            space.add(rng.standard_normal((step, size)) @ matrix)
            found = space.leading(width)
            if _solves(found):
                return found.values, found.vectors
    return None


def _solves(found: Subspace) -> bool:
    """True if residuals are small shares of the largest eigenvalue."""
    residuals = found.images - found.vectors * found.values
    return bool(np.linalg.norm(residuals, axis=0).max() <= _KRYLOV_TOL * found.values[0])


class KrylovSpace:
    """An orthonormal basis (in rows) of at most ``room`` vectors, and its image under S."""

    def __init__(self, product: Callable[[FloatArray], FloatArray], size: int, room: int) -> None:
        self._product = product
        self._basis, self._images = np.empty((2, room, size))
        self._projected = np.empty((room, room))
        self.room, self.used = room, 0

    @property
    def basis(self) -> FloatArray:
        return self._basis[: self.used]

    @property
    def images(self) -> FloatArray:
        return self._images[: self.used]

    def add(self, block: FloatArray) -> FloatArray:
        """Add the span of a block, as far as there is room; returns its image."""
        block = block[: self.room - self.used]
        for _ in range(2):  # what is left of an almost invariant block is rounding
            block = np.linalg.qr((block - (block @ self.basis.T) @ self.basis).T)[0].T
        added = slice(self.used, self.used + len(block))
        self._basis[added] = block
        self._images[added] = self._product(self._basis[added].T).T
        self.used += len(block)
        self._projected[added, : self.used] = self._images[added] @ self.basis.T
        return np.asarray(self._images[added])

    def restart(self, width: int) -> None:
        """Keep the leading Ritz vectors only."""
        kept = self.leading(width)
        self._basis[:width], self._images[:width] = kept.vectors.T, kept.images.T
        self._projected[:width, :width] = np.diag(kept.values)
        self.used = width

    def leading(self, width: int) -> Subspace:
        """The leading Ritz vectors."""
        values, mixing = np.linalg.eigh(self._projected[: self.used, : self.used])
        mixing = mixing[:, ::-1][:, :width].T
        return Subspace((mixing @ self.basis).T, (mixing @ self.images).T, values[::-1][:width])


def _lift(
    scatter: SymmetricOperator, side: SmallSide, values: FloatArray, vectors: FloatArray
) -> Subspace:
    """Leading eigenvectors of S, and their images, from those of its small side."""
    if values[-1] < _WELL_ABOVE_ROUNDING * values[0]:
        smallest = np.finfo(float).eps * values[0]
        lifted = side.lift(np.ascontiguousarray(vectors), np.maximum(values, smallest))
        return orthonormal_subspace(scatter, lifted)
    W = side.lift(np.ascontiguousarray(vectors), values)
    # Orthonormal but for the precision of X: a triangular factor next to I makes it so.
    C = np.linalg.inv(np.linalg.cholesky(W.T @ W)).T
    return Subspace(W @ C, (W * values) @ C, values)


def _krylov_subspace(
    scatter: SymmetricOperator,
    width: int,
    rng: np.random.Generator,
    tol: float,
    count: _Count = len,
    edge: float = -np.inf,
) -> Subspace:
    """Rayleigh-Ritz on [V, SV, S^2 V, ...] from a random block, to a relative residual ``tol``.

    After the first blocks only the residuals of vectors that are not good enough are multiplied:
    the space grows in the same directions. Where it is full it begins again with its best vectors.
    Of vectors that ``count`` does not count only the first is looked at, and that not for long.
    Vectors with values up to ``edge`` need a tenth of the accuracy: unrelated columns have such
    vectors, and others are as good.
    """
    size = scatter.size
    step = min(width + _OVERSAMPLING, size)
    # Where a few blocks fill all of the space, the last one is narrower and the pairs are exact.
    n_blocks = int(np.clip(_KRYLOV_ENTRIES // (size * step), _KRYLOV_BLOCKS + 1, _KRYLOV_ROOM))
    space = KrylovSpace(scatter.matmat, size, min(n_blocks * step, size))
    block: FloatArray = rng.standard_normal((size, step)).T
    for n_products in range(1, _MOST_PRODUCTS + 1):
        block = space.add(block)
        if n_products < _KRYLOV_BLOCKS and space.used < size:
            continue
        found = space.leading(width)
        n_counted = count(found.values)
        if n_counted is None or space.used == size:
            break
        errors = relative_residuals(found)[: n_counted + 1]
        if n_products >= _KRYLOV_BLOCKS + _CHECKING_PRODUCTS or errors[-1] <= _CHECKED:
            errors = errors[:n_counted]
        wanted = np.where(found.values[: len(errors)] > edge, tol, 10.0 * tol)
        rough = np.flatnonzero(errors > wanted)
        if not len(rough):
            break
        block = (found.images - found.vectors * found.values)[:, rough].T
        if space.used + len(block) > space.room:
            space.restart(2 * step)
    return replace(found, n_products=n_products)
