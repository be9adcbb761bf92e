"""The leading spectrum of the scatter S: the number of components, and the start of SPCAFS.

Where one side of the data is small, its Gram matrix is formed and its leading eigenpairs are exact:
up to a few hundred rows, or where many pairs are wanted, by LAPACK's `eigh` of the pairs above the
edge; else from a block Krylov space of that matrix. Where neither side is small, they come from
products with S: a randomised block Krylov space, then the iteration of `leading_subspace`.

Where only the diagonal of S changes, `leading_subspace` starts from the last solution and its image
(so a new diagonal costs no product), improves the block along its preconditioned residual, and
takes the best m vectors of the 2m-dimensional space (Rayleigh-Ritz): the trace never falls. The
preconditioner divides the residual of row i and vector j by shift_i + theta_j, which keeps it short
when the weights differ by orders of magnitude (docs/decisions/0002-eigensolver.md). Blocks are kept
in Fortran order, so that sweeps over d run through memory.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

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
    """An orthonormal block, its image under S, and how well it solves the eigenproblem."""

    vectors: FloatArray
    images: FloatArray
    values: FloatArray
    residual: float = np.inf
    """Largest residual norm of a vector, relative to the norm of its image."""
    n_products: int = 0

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
    work = _Iteration(start, shift)
    for n_products in range(max_iter + 1):
        direction, error = work.residual()
        if n_products == max_iter or (n_products > 0 and error <= tol):
            break
        # From ten times the tolerance away, more than two products are to be expected.
        work.improve(operator, direction, keep_more=error > 10.0 * tol)
    return Subspace(work.W.T.copy("F"), work.SW.T.copy("F"), work.values, error, n_products)


class _Iteration:
    """W, vectors kept beside it, a direction, and their images, all transposed.

    Kept are the Ritz vectors that follow those of W, as many again, where the way is long: they
    save a third of the products there, and cost more than they save where one or two are enough.
    """

    def __init__(self, start: Subspace, shift: FloatArray) -> None:
        self.shift = shift
        self._width = start.vectors.shape[1]
        W, SW = start.vectors.T, start.images.T
        projected = W @ (SW - shift * W).T
        self._ritz_values, mixing = _ritz_vectors(W @ W.T, projected, self._width)
        self._basis, self._images = mixing.T @ W, mixing.T @ SW

    @property
    def W(self) -> FloatArray:
        return self._basis[: self._width]

    @property
    def SW(self) -> FloatArray:
        return self._images[: self._width]

    @property
    def values(self) -> FloatArray:
        """The Ritz values of W, largest first."""
        return self._ritz_values[: self._width]

    def residual(self) -> tuple[FloatArray, float]:
        """The residuals of W, and the largest relative to its image."""
        residual = self.SW - (self.shift + self.values[:, np.newaxis]) * self.W
        squares = np.einsum("ij,ij->i", residual, residual)
        return residual, _relative_error(squares, np.einsum("ij,ij->i", self.SW, self.SW))

    def improve(self, operator: BlockProducts, direction: FloatArray, *, keep_more: bool) -> None:
        """Move to the leading Ritz vectors of the space of W and the preconditioned residual."""
        values = self.values[:, np.newaxis]
        smallest = _SMALLEST_QUOTIENT * max(float(np.abs(values).max()), np.finfo(float).tiny)
        direction /= np.maximum(np.abs(self.shift + values), smallest)
        direction -= (direction @ self._basis.T) @ self._basis
        image = operator.matmat(direction.T).T
        kept = len(self._basis)
        basis, images = np.vstack([self._basis, direction]), np.vstack([self._images, image])
        across = basis @ (image - self.shift * direction).T
        projected: FloatArray = np.zeros((len(basis), len(basis)))
        projected[:kept, :kept] = np.diag(self._ritz_values)
        projected[:, kept:] = across
        projected[kept:, :kept] = across[:kept].T
        wanted = min(2 * self._width, len(basis)) if keep_more else self._width
        self._ritz_values, mixing = _ritz_vectors(basis @ basis.T, projected, wanted)
        self._basis = np.asarray(mixing.T @ basis)
        self._images = np.asarray(mixing.T @ images)


def relative_residual(block: Subspace) -> float:
    """How well a block solves the eigenproblem of S: `Subspace.residual` where it is not known."""
    residuals = block.images - block.vectors * block.values
    return _relative_error(
        np.einsum("ij,ij->j", residuals, residuals),
        np.einsum("ij,ij->j", block.images, block.images),
    )


def _relative_error(residual_squares: FloatArray, image_squares: FloatArray) -> float:
    """The largest residual norm relative to that of the image of the same vector."""
    sizes = np.sqrt(image_squares)
    # Images far smaller than the largest do not set the accuracy.
    least = max(_NEGLIGIBLE * float(sizes.max()), np.finfo(float).tiny)
    return float(np.max(np.sqrt(residual_squares) / np.maximum(sizes, least)))


def _ritz_vectors(
    gram: FloatArray, projected: FloatArray, width: int
) -> tuple[FloatArray, FloatArray]:
    """Values and coefficients of the ``width`` leading Ritz vectors of a basis with this Gram."""
    inverse = _inverse_factor(gram)
    C = whitening(gram, _DEPENDENT) if inverse is None else inverse.T
    values, vectors = _descending(C.T @ projected @ C)
    return values[:width], C @ vectors[:, :width]


def _inverse_factor(gram: FloatArray) -> FloatArray | None:
    """C with C gram C' = I, by Cholesky; None where some directions are dependent to rounding."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    try:
        factor = np.linalg.cholesky(gram * scale * scale[:, np.newaxis])
    except np.linalg.LinAlgError:
        return None
    if factor.diagonal().min() ** 2 <= _DEPENDENT:
        return None
    return np.asarray(np.linalg.inv(factor) * scale)


def whitening(gram: FloatArray, dependent: float) -> FloatArray:
    """C with C' gram C = I; directions are left out that are below ``dependent`` of the largest."""
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    spectrum, vectors = np.linalg.eigh(gram * scale * scale[:, np.newaxis])
    kept = spectrum > dependent * spectrum.max(initial=0.0)
    return np.asarray(scale[:, np.newaxis] * (vectors[:, kept] / np.sqrt(spectrum[kept])))


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
_KRYLOV_BLOCKS = 4
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
# Residual of an eigenpair beside the largest eigenvalue.
_KRYLOV_TOL = 1e-7
# A matrix of a rank below its size over this is first restricted to its range.
_LOW_RANK = 3


@dataclass(frozen=True)
class Spectrum:
    """The leading eigenpairs of a scatter, as many as there are components."""

    subspace: Subspace

    @property
    def width(self) -> int:
        """The number of components."""
        return len(self.subspace.values)

    @property
    def values(self) -> FloatArray:
        """The eigenvalues, largest first."""
        return self.subspace.values


def leading_spectrum(
    scatter: SymmetricOperator,
    n_components: int | float | str,
    *,
    n_samples: int,
    sum_of_squares: FloatArray,
    rng: np.random.Generator,
    tol: float = 3e-3,
) -> Spectrum:
    """The leading eigenpairs of S: a number of them, a share of the variance, or "auto".

    "auto" takes the eigenvalues above `null_edge`, at least 1 and at most 100. ``sum_of_squares``
    is that of every column about its mean. Where neither side of the data is small, eigenvectors
    are found to the relative residual ``tol``, from a random start.
    """
    if n_components != "auto" and float(n_components) >= 1.0:
        return Spectrum(principal_subspace(scatter, int(n_components), rng, tol=tol))
    limit = min(n_samples - 1, scatter.size)
    if n_components == "auto":
        limit = min(limit, MOST_AUTO_COMPONENTS)
        count = partial(_count_above, edge_of_scatter(sum_of_squares, n_samples))
    else:
        count = partial(_count_up_to, float(n_components) * float(sum_of_squares.sum()))
    side = scatter.small_side()
    if side is None:
        width, found = _count_by_products(scatter, count, limit, rng)
        return Spectrum(_refine(scatter, found, width, tol))
    return Spectrum(_lift(scatter, side, *_counted_pairs(side, count, limit)))


def principal_subspace(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator, *, tol: float = 3e-3
) -> Subspace:
    """The ``width`` leading eigenvectors of S."""
    side = scatter.small_side()
    if side is not None:
        return _lift(scatter, side, *leading_pairs(side.matrix, width))
    return _refine(scatter, _krylov_subspace(scatter, width, rng, tol), width, tol)


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
    if is_bounded(matrix, edge):
        values, vectors = _eigenpairs(matrix, at_least)
    else:
        with one_blas_thread_if_small(len(matrix)):
            values, vectors = eigh(matrix, subset_by_value=(edge, np.inf))
        values, vectors = values[::-1][:at_most], vectors[:, ::-1][:, :at_most]
        if len(values) < at_least:
            values, vectors = _eigenpairs(matrix, at_least)
    n_real = max(1, int(np.sum(values > _ROUNDING_SHARE * values[0])))
    values, vectors = values[:n_real], vectors[:, :n_real]
    return values, vectors if basis is None else basis @ vectors


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
    """Whether no eigenvalue reaches a bound: a Cholesky factor of the difference exists."""
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
    step = max(_NARROWEST_BLOCK, width // 3)
    room = size // _ROOM
    next_look = max(4 * width, 6 * step)
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
    """Whether residuals are small beside the largest eigenvalue."""
    residuals = found.images - found.vectors * found.values
    return bool(np.linalg.norm(residuals, axis=0).max() <= _KRYLOV_TOL * found.values[0])


class KrylovSpace:
    """An orthonormal basis (in rows) of at most ``room`` vectors, and its image under S."""

    def __init__(self, product: Callable[[FloatArray], FloatArray], size: int, room: int) -> None:
        self._product = product
        self._basis, self._images = np.empty((2, room, size))
        self.used = 0

    @property
    def basis(self) -> FloatArray:
        return self._basis[: self.used]

    @property
    def images(self) -> FloatArray:
        return self._images[: self.used]

    def add(self, block: FloatArray) -> FloatArray:
        """Add the span of a block, as far as there is room; returns its image."""
        block = block[: len(self._basis) - self.used]
        for _ in range(2):  # what is left of an almost invariant block is rounding
            block = np.linalg.qr((block - (block @ self.basis.T) @ self.basis).T)[0].T
        added = slice(self.used, self.used + len(block))
        self._basis[added] = block
        self._images[added] = self._product(self._basis[added].T).T
        self.used += len(block)
        return np.asarray(self._images[added])

    def leading(self, width: int) -> Subspace:
        """The leading Ritz vectors."""
        values, mixing = np.linalg.eigh(self.basis @ self.images.T)
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


def _refine(
    scatter: SymmetricOperator, known: Subspace, width: int, tol: float, max_iter: int = 50
) -> Subspace:
    """The leading ``width`` vectors of a block, iterated to ``tol`` if they are not that good."""
    vectors, images = known.vectors[:, :width], known.images[:, :width]
    start = replace(known, vectors=vectors, images=images, values=known.values[:width])
    residual = relative_residual(start)
    if residual <= tol:
        return replace(start, residual=residual)
    no_shift = np.zeros(scatter.size)
    found = leading_subspace(scatter, no_shift, start, tol=tol, max_iter=max_iter)
    return replace(found, n_products=found.n_products + known.n_products)


def _krylov_subspace(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator, tol: float
) -> Subspace:
    """Rayleigh-Ritz on [V, SV, S^2 V, ...] from a random block; one block more if that helps."""
    size = scatter.size
    step = min(width + _OVERSAMPLING, size)
    most = min(_KRYLOV_BLOCKS + 1, -(-size // step))
    # Where a few blocks fill all of the space, the last one is narrower and the pairs are exact.
    space = KrylovSpace(scatter.matmat, size, min(step * most, size))
    block: FloatArray = rng.standard_normal((size, step)).T
    for n_blocks in range(1, most + 1):
        block = space.add(block)
        if n_blocks >= min(_KRYLOV_BLOCKS, most):
            found = replace(space.leading(width), n_products=n_blocks)
            if relative_residual(found) <= tol:
                break
    return found


def _count_by_products(
    scatter: SymmetricOperator,
    count: _Count,
    limit: int,
    rng: np.random.Generator,
) -> tuple[int, Subspace]:
    """The number of components, at most ``limit``, and approximations to their eigenvectors."""
    width = min(_FIRST_WIDTH, limit)
    while True:
        found = _krylov_subspace(scatter, width, rng, np.inf)
        n_found = count(found.values)
        while n_found is not None and n_found < width:
            # Values rise to the eigenvalues with every product; the count may have changed.
            found = _refine(scatter, found, n_found + 1, _CHECKED, max_iter=_CHECKING_PRODUCTS)
            again = count(found.values)
            if again == n_found:
                return min(n_found, limit), found
            n_found = again
            width = len(found.values)
        if width == limit or (n_found is not None and n_found >= limit):
            return min(n_found or limit, limit), found
        width = min(2 * max(width, _FIRST_WIDTH), limit)
