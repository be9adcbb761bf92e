"""The leading spectrum of the scatter S: how many components there are, and where SPCAFS starts.

Where one side of the data is small, its Gram matrix is formed and reduced to tridiagonal form once.
Its eigenvalues follow at next to no cost and decide how many components are wanted; eigenvectors
are computed for those only. Elsewhere both come from products with S: a randomised block Krylov
space, then the block iteration of `keepers.linalg.subspace`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal, lapack
from scipy.optimize import brentq

from keepers._protocols import FloatArray, SmallSide, SymmetricOperator
from keepers.linalg.subspace import Subspace, leading_subspace, orthonormal_subspace

MOST_AUTO_COMPONENTS = 100
_KRYLOV_BLOCKS = 4
_OVERSAMPLING = 8
_FIRST_WIDTH = 16
_CHECKING_PRODUCTS = 2
# An eigenvalue of a Gram matrix below this share of the largest is rounding.
_ROUNDING_SHARE = 1e-11
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
    tol: float = 1e-3,
) -> Spectrum:
    """The leading eigenpairs of S: a number of them, a share of the variance, or "auto".

    "auto" takes the eigenvalues above `null_edge`, at least 1 and at most 100. ``sum_of_squares``
    is that of every column about its mean. Where neither side of the data is small, eigenvectors
    are found to the relative residual ``tol``, from a random start.
    """
    if n_components != "auto" and float(n_components) >= 1.0:
        return Spectrum(principal_subspace(scatter, int(n_components), rng, tol=tol))
    limit = min(n_samples - 1, scatter.size)
    count: _AboveEdge | _UpToShare
    if n_components == "auto":
        limit = min(limit, MOST_AUTO_COMPONENTS)
        count = _AboveEdge(edge_of_scatter(sum_of_squares, n_samples))
    else:
        count = _UpToShare(float(n_components) * float(sum_of_squares.sum()))
    side = scatter.small_side()
    if side is None:
        width, found = _count_by_products(scatter, count, limit, rng)
        return Spectrum(_refine(scatter, found, width, tol))
    reduced = _TridiagonalForm(side.matrix)
    width = min(count.in_all(reduced) or limit, limit)
    return Spectrum(_lift(scatter, side, reduced, width))


def principal_subspace(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator, *, tol: float = 1e-3
) -> Subspace:
    """The ``width`` leading eigenvectors of S."""
    side = scatter.small_side()
    if side is not None:
        return _lift(scatter, side, _TridiagonalForm(side.matrix), width)
    return _refine(scatter, _krylov_subspace(scatter, width, rng), width, tol)


def pairs_above(
    matrix: FloatArray, edge: float, *, rank: int, at_least: int, at_most: int
) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of a positive semi-definite matrix whose values exceed ``edge``, largest first.

    At least and at most so many, but none whose value is rounding beside the largest. ``rank`` is
    that of the matrix, or more: if it is small, the matrix is looked at within its range only.
    """
    basis = None
    if (rank + _OVERSAMPLING) * _LOW_RANK < len(matrix):
        # Any start will do, the range being met exactly; always the same one gives the same digits.
        start = np.random.default_rng(0).standard_normal((len(matrix), rank + _OVERSAMPLING))
        basis = np.linalg.qr(matrix @ np.linalg.qr(matrix @ start)[0])[0]
        matrix = basis.T @ matrix @ basis
    reduced = _TridiagonalForm(matrix)
    width = int(np.clip(reduced.count_above(edge), at_least, at_most))
    values, vectors = reduced.leading_pairs(min(width, len(matrix)))
    values, vectors = values[::-1], vectors[:, ::-1]
    n_real = max(1, int(np.sum(values > _ROUNDING_SHARE * values[0])))
    values, vectors = values[:n_real], vectors[:, :n_real]
    return values, vectors if basis is None else basis @ vectors


def null_edge(variances: FloatArray, n_samples: int) -> float:
    """The largest eigenvalue of the sample covariance that columns without common structure have.

    Horn's parallel analysis shuffles every column and looks at the spectrum that is left. Its limit
    is known: for n samples of independent columns with variances t_1..t_d, the spectrum fills the
    Marchenko-Pastur law with population spectrum {t_j}, and its upper edge solves one scalar
    equation (Silverstein and Choi 1995; used for choosing components by Dobriban and Owen, JRSS B
    2019). So the answer needs the column variances only, and no random numbers. With all variances
    equal to t it is t (1 + sqrt(d/n))^2.
    """
    largest = float(variances.max())
    t = variances / largest

    def excess(x: float) -> float:
        ratio = t * x / (1.0 - t * x)
        return float(ratio @ ratio) / n_samples - 1.0

    x = brentq(excess, 0.0, 1.0 - 1e-12) if excess(1.0 - 1e-12) > 0 else 1.0 - 1e-12
    return largest * (1.0 / x + float(np.sum(t / (1.0 - t * x))) / n_samples)


def edge_of_scatter(sum_of_squares: FloatArray, n_samples: int) -> float:
    """The same for the scatter, from the sum of squares of every column about its mean."""
    freedom = n_samples - 1
    return freedom * null_edge(sum_of_squares / freedom, freedom)


@dataclass(frozen=True)
class _AboveEdge:
    """Counts the eigenvalues above an edge, at least 1."""

    edge: float

    def __call__(self, values: FloatArray) -> int | None:
        """How many of the leading values; None if all of them, so that there may be more."""
        above = int(np.sum(values > self.edge))
        return max(above, 1) if above < len(values) else None

    def in_all(self, reduced: "_TridiagonalForm") -> int:
        """How many of all."""
        return max(reduced.count_above(self.edge), 1)


@dataclass(frozen=True)
class _UpToShare:
    """Counts the leading eigenvalues that sum to what is wanted."""

    wanted: float

    def __call__(self, values: FloatArray) -> int | None:
        """How many of the leading values; None if all of them are not enough."""
        reached = np.flatnonzero(np.cumsum(values) >= self.wanted * (1 - 1e-12))
        return int(reached[0]) + 1 if len(reached) else None

    def in_all(self, reduced: "_TridiagonalForm") -> int | None:
        """How many of all."""
        return self(reduced.values())


class _TridiagonalForm:
    """A symmetric matrix Q T Q', for as many of its eigenvalues and eigenvectors as are wanted.

    LAPACK's drivers have to be told the number of eigenvectors beforehand, so its steps are called
    one by one.
    """

    def __init__(self, matrix: FloatArray) -> None:
        self._size = len(matrix)
        self._scale = float(matrix.diagonal().max()) or 1.0
        n_work = int(lapack.dsytrd_lwork(self._size, lower=1)[0])
        self._reflectors, self._diagonal, self._beside, self._factors, _ = lapack.dsytrd(
            (np.asarray_chkfinite(matrix) / self._scale).T, lower=1, lwork=n_work, overwrite_a=1
        )

    def count_above(self, edge: float) -> int:
        """How many eigenvalues exceed ``edge``: a Sturm sequence, no value is computed."""
        beyond = (edge / self._scale, np.inf)
        if self._size == 1:  # SciPy 1.12 fails on a single number
            return int(self._diagonal[0] > beyond[0])
        crude = eigvalsh_tridiagonal(
            self._diagonal, self._beside, select="v", select_range=beyond, tol=np.inf
        )
        return len(crude)

    def values(self) -> FloatArray:
        """All eigenvalues, largest first."""
        return np.asarray(self._scale * eigvalsh_tridiagonal(self._diagonal, self._beside)[::-1])

    def leading_pairs(self, width: int) -> tuple[FloatArray, FloatArray]:
        """The ``width`` largest eigenvalues, ascending, and their eigenvectors."""
        values, vectors = eigh_tridiagonal(
            self._diagonal,
            self._beside,
            select="i",
            select_range=(self._size - width, self._size - 1),
            lapack_driver="stemr",
        )
        if self._size > 1:
            # The reflectors stand below the diagonal and leave the first row alone.
            below = np.asfortranarray(self._reflectors[1:, :-1])
            moved = np.asfortranarray(vectors[1:])
            n_work = int(lapack.dormqr("L", "N", below, self._factors, moved, -1)[1][0])
            vectors[1:] = lapack.dormqr("L", "N", below, self._factors, moved, n_work)[0]
        return self._scale * values, vectors


def _lift(
    scatter: SymmetricOperator, side: SmallSide, reduced: _TridiagonalForm, width: int
) -> Subspace:
    """Leading eigenvectors of S from those of its small side."""
    values, vectors = reduced.leading_pairs(width)
    smallest = np.finfo(float).eps * values[-1]
    return orthonormal_subspace(scatter, side.lift(vectors, np.maximum(values, smallest)))


def _refine(
    scatter: SymmetricOperator, known: Subspace, width: int, tol: float, max_iter: int = 50
) -> Subspace:
    """The leading ``width`` vectors of a block, iterated to ``tol``."""
    start = Subspace(known.vectors[:, :width], known.images[:, :width], known.values[:width])
    no_shift = np.zeros(scatter.size)
    found = leading_subspace(scatter, no_shift, start, tol=tol, max_iter=max_iter)
    return replace(found, n_products=found.n_products + known.n_products)


def _krylov_subspace(scatter: SymmetricOperator, width: int, rng: np.random.Generator) -> Subspace:
    """Rayleigh-Ritz on [V, SV, S^2 V, ...] from a random block."""
    size = scatter.size
    step = min(width + _OVERSAMPLING, size)
    n_blocks = max(1, min(_KRYLOV_BLOCKS, size // step))
    basis = np.empty((size, step * n_blocks))
    images = np.empty_like(basis)
    block = rng.standard_normal((size, step))
    for start in range(0, step * n_blocks, step):
        known = basis[:, :start]
        for _ in range(2):  # once is not enough when the block is almost invariant
            block -= known @ (known.T @ block)
        basis[:, start : start + step] = np.linalg.qr(block)[0]
        images[:, start : start + step] = scatter.matmat(
            np.ascontiguousarray(basis[:, start : start + step])
        )
        block = images[:, start : start + step].copy()
    values, rotation = np.linalg.eigh(basis.T @ images)
    leading = rotation[:, ::-1][:, :width]
    return Subspace(basis @ leading, images @ leading, values[::-1][:width], n_products=n_blocks)


def _count_by_products(
    scatter: SymmetricOperator, count: _AboveEdge | _UpToShare, limit: int, rng: np.random.Generator
) -> tuple[int, Subspace]:
    """The number of components, at most ``limit``, and approximations to their eigenvectors."""
    width = min(_FIRST_WIDTH, limit)
    while True:
        found = _krylov_subspace(scatter, width, rng)
        n_found = count(found.values)
        while n_found is not None and n_found < width:
            # Values rise to the eigenvalues with every product: is it still so many?
            found = _refine(scatter, found, n_found + 1, tol=1e-2, max_iter=_CHECKING_PRODUCTS)
            again = count(found.values)
            if again == n_found:
                return min(n_found, limit), found
            n_found = again
            width = len(found.values)
        if width == limit or (n_found is not None and n_found >= limit):
            return min(n_found or limit, limit), found
        width = min(2 * max(width, _FIRST_WIDTH), limit)
