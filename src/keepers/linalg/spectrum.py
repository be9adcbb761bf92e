"""The leading spectrum of the scatter S: how many components there are, and where SPCAFS starts.

Where one side of the data is small, its Gram matrix is formed and reduced to tridiagonal form once.
All eigenvalues follow at next to no cost and decide how many components are wanted; eigenvectors
are computed for those only. Elsewhere both come from products with S: a randomised block Krylov
space, then the block iteration of `keepers.linalg.subspace`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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
# Up to this size all eigenvectors cost no more than a few.
_TINY = 32

Count = Callable[[FloatArray], int | None]
"""Eigenvalues known so far, largest first -> how many to take; None: more must be known."""


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
    limit = min(n_samples - 1, scatter.size)
    if n_components == "auto":
        freedom = n_samples - 1
        edge = freedom * null_edge(sum_of_squares / freedom, freedom)
        count = partial(_count_above, edge=edge)
        limit = min(limit, MOST_AUTO_COMPONENTS)
    elif float(n_components) < 1.0:
        count = partial(_count_to_reach, wanted=float(n_components) * float(sum_of_squares.sum()))
    else:
        return Spectrum(principal_subspace(scatter, int(n_components), rng, tol=tol))
    side = scatter.small_side()
    if side is not None:
        return Spectrum(
            _decompose(scatter, side, lambda values: min(count(values) or limit, limit))
        )
    width, found = _count_by_products(scatter, count, limit, rng)
    return Spectrum(_refine(scatter, found, width, tol))


def principal_subspace(
    scatter: SymmetricOperator, width: int, rng: np.random.Generator, *, tol: float = 1e-3
) -> Subspace:
    """The ``width`` leading eigenvectors of S."""
    side = scatter.small_side()
    if side is not None:
        return _decompose(scatter, side, width)
    return _refine(scatter, _krylov_subspace(scatter, width, rng), width, tol)


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


def _count_above(values: FloatArray, edge: float) -> int | None:
    """How many leading values exceed ``edge``, at least 1; None if all of these do."""
    above = int(np.sum(values > edge))
    return max(above, 1) if above < len(values) else None


def _count_to_reach(values: FloatArray, wanted: float) -> int | None:
    """How many leading values sum to ``wanted``; None if not all of these do."""
    reached = np.flatnonzero(np.cumsum(values) >= wanted * (1 - 1e-12))
    return int(reached[0]) + 1 if len(reached) else None


def _decompose(
    scatter: SymmetricOperator, side: SmallSide, width: int | Callable[[FloatArray], int]
) -> Subspace:
    """Leading eigenvectors of S from those of its small side."""
    values, vectors = _leading_pairs(side.matrix, width)
    smallest = np.finfo(float).eps * values[-1]
    return orthonormal_subspace(scatter, side.lift(vectors, np.maximum(values, smallest)))


def _leading_pairs(
    matrix: FloatArray, width: int | Callable[[FloatArray], int]
) -> tuple[FloatArray, FloatArray]:
    """The leading eigenvalues, ascending, and eigenvectors; ``width`` may depend on all values.

    LAPACK's own drivers take the number of vectors beforehand, or else compute them all; so its
    steps are called one by one: reduction to tridiagonal form, values, vectors, back.
    """
    size = len(matrix)
    if size <= _TINY:
        values, vectors = np.linalg.eigh(matrix)
        width = width(values[::-1]) if callable(width) else width
        return values[-width:], vectors[:, -width:]
    scale = float(matrix.diagonal().max()) or 1.0
    n_work = int(lapack.dsytrd_lwork(size, lower=1)[0])
    reflectors, diagonal, beside, factors, _ = lapack.dsytrd(
        (np.asarray_chkfinite(matrix) / scale).T, lower=1, lwork=n_work, overwrite_a=1
    )
    if callable(width):
        width = width(scale * eigvalsh_tridiagonal(diagonal, beside)[::-1])
    values, vectors = eigh_tridiagonal(
        diagonal,
        beside,
        select="i",
        select_range=(size - width, size - 1),
        lapack_driver="stemr",
    )
    # The reflectors of the reduction leave the first row alone and are stored below the diagonal.
    below, moved = np.asfortranarray(reflectors[1:, :-1]), np.asfortranarray(vectors[1:])
    n_work = int(lapack.dormqr("L", "N", below, factors, moved, -1)[1][0])
    vectors[1:] = lapack.dormqr("L", "N", below, factors, moved, n_work, overwrite_c=1)[0]
    return scale * values, vectors


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
    scatter: SymmetricOperator, count: Count, limit: int, rng: np.random.Generator
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
