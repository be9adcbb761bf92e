"""Leading eigenpairs and eigenvalues of the scatter itself: where SPCAFS starts."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray, SmallSide, SymmetricOperator
from keepers.linalg.subspace import Subspace, leading_subspace, orthonormal_subspace

__all__ = ["Leading", "count_leading", "principal_subspace"]

_KRYLOV_BLOCKS = 4
_OVERSAMPLING = 8
_CHECKING_PRODUCTS = 2


def principal_subspace(
    operator: SymmetricOperator,
    width: int,
    rng: np.random.Generator,
    *,
    tol: float = 1e-3,
    known: Subspace | None = None,
) -> Subspace:
    """The ``width`` leading eigenvectors of S.

    Exact where one side of the data is small enough for a full decomposition; elsewhere a
    randomised block Krylov space, or what is ``known`` already, then the block iteration to
    ``tol``.
    """
    side = operator.small_side() if known is None else None
    if side is not None:
        return _lifted(operator, side, *_leading_pairs(side.matrix, width))
    if known is None or known.vectors.shape[1] < width:
        known = _krylov_subspace(operator, width, rng)
    return _refined(operator, known, width, tol)


def _leading_pairs(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The leading eigenvalues, largest first, with their eigenvectors."""
    size = matrix.shape[0]
    if count < size // 4:
        values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1])
    else:
        values, vectors = np.linalg.eigh(matrix)
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def _lifted(
    operator: SymmetricOperator, side: SmallSide, values: FloatArray, vectors: FloatArray
) -> Subspace:
    """Eigenvectors of S from those of the small side."""
    floor = np.finfo(float).eps * values[0]
    ascending = side.lift(vectors[:, ::-1], np.maximum(values[::-1], floor))
    return orthonormal_subspace(operator, ascending)


def _refined(
    operator: SymmetricOperator, known: Subspace, width: int, tol: float, max_iter: int = 50
) -> Subspace:
    """The leading ``width`` vectors of a block, iterated to ``tol``."""
    start = Subspace(known.vectors[:, :width], known.images[:, :width], known.values[:width])
    no_shift = np.zeros(operator.size)
    found = leading_subspace(operator, no_shift, start, tol=tol, max_iter=max_iter)
    return replace(found, n_products=found.n_products + known.n_products)


def _krylov_subspace(operator: SymmetricOperator, width: int, rng: np.random.Generator) -> Subspace:
    """Rayleigh-Ritz on [V, SV, S^2 V, ...] from a random block."""
    size = operator.size
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
        images[:, start : start + step] = operator.matmat(
            np.ascontiguousarray(basis[:, start : start + step])
        )
        block = images[:, start : start + step].copy()
    values, rotation = np.linalg.eigh(basis.T @ images)
    leading = rotation[:, ::-1][:, :width]
    return Subspace(basis @ leading, images @ leading, values[::-1][:width], n_products=n_blocks)


@dataclass(frozen=True)
class Leading:
    """A number of leading eigenvalues, and the eigenvectors where they were found on the way."""

    count: int
    found: Subspace | None


def count_leading(
    operator: SymmetricOperator,
    enough: Callable[[FloatArray], int | None],
    limit: int,
    rng: np.random.Generator,
) -> Leading:
    """The number of leading eigenvalues that ``enough`` asks for, at most ``limit``.

    ``enough`` gets the eigenvalues known so far, largest first, and returns how many of them to
    take, or None if it has to see more.
    """
    side = operator.small_side()
    if side is not None:
        size = side.matrix.shape[0]
        values, vectors = _leading_pairs(side.matrix, min(limit + 1, size))
        seen = np.append(values, 0.0) if len(values) == size else values
        n_found = min(enough(seen) or limit, limit)
        found = _lifted(operator, side, values[:n_found], vectors[:, :n_found])
        return Leading(n_found, found)
    width = min(16, limit)
    while True:
        found = _krylov_subspace(operator, width, rng)
        count = enough(found.values)
        while count is not None and count < width:
            # Values rise to the eigenvalues with every product: is it still so many?
            found = _refined(operator, found, count + 1, tol=1e-2, max_iter=_CHECKING_PRODUCTS)
            again = enough(found.values)
            if again == count:
                return Leading(min(count, limit), found)
            count = again
            width = len(found.values)
        if width == limit or (count is not None and count >= limit):
            return Leading(min(count or limit, limit), found)
        width = min(2 * max(width, 16), limit)
