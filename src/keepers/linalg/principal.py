"""Leading eigenpairs and eigenvalues of the scatter itself: where SPCAFS starts."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray, SymmetricOperator
from keepers.linalg.subspace import Subspace, leading_subspace, orthonormal_subspace

__all__ = ["count_leading", "principal_subspace"]

_KRYLOV_BLOCKS = 4
_OVERSAMPLING = 8


def principal_subspace(
    operator: SymmetricOperator, width: int, rng: np.random.Generator, *, tol: float = 1e-3
) -> Subspace:
    """The ``width`` leading eigenvectors of S.

    Exact where one side of the data is small enough for a full decomposition; a randomised block
    Krylov space, then the block iteration to ``tol``, elsewhere.
    """
    side = operator.small_side()
    if side is None:
        return _krylov_subspace(operator, width, rng, tol)
    size = side.matrix.shape[0]
    if width < size // 4:
        values, vectors = eigh(side.matrix, subset_by_index=[size - width, size - 1])
    else:
        values, vectors = np.linalg.eigh(side.matrix)
    values, vectors = values[-width:], vectors[:, -width:]
    floor = np.finfo(float).eps * values[-1]
    return orthonormal_subspace(operator, side.lift(vectors, np.maximum(values, floor)))


def _krylov_subspace(
    operator: SymmetricOperator, width: int, rng: np.random.Generator, tol: float
) -> Subspace:
    """Rayleigh-Ritz on [V, SV, S^2 V, ...] from a random block, then the block iteration."""
    block = rng.standard_normal((operator.size, min(width + _OVERSAMPLING, operator.size)))
    krylov = [np.linalg.qr(block)[0]]
    images = []
    while True:
        images.append(operator.matmat(krylov[-1]))
        room = operator.size - sum(part.shape[1] for part in krylov)
        if len(krylov) == _KRYLOV_BLOCKS or room < krylov[0].shape[1]:
            break
        following = images[-1].copy()
        for _ in range(2):  # once is not enough when the block is almost invariant
            for part in krylov:
                following -= part @ (part.T @ following)
        krylov.append(np.linalg.qr(following)[0])
    basis, image = np.hstack(krylov), np.hstack(images)
    values, rotation = np.linalg.eigh(basis.T @ image)
    leading = rotation[:, ::-1][:, :width]
    start = Subspace(basis @ leading, image @ leading, values[::-1][:width])
    return leading_subspace(operator, np.zeros(operator.size), start, tol=tol)


def count_leading(
    operator: SymmetricOperator,
    enough: Callable[[FloatArray], int | None],
    limit: int,
    rng: np.random.Generator,
) -> int:
    """The number of leading eigenvalues that ``enough`` asks for, at most ``limit``.

    ``enough`` gets the eigenvalues known so far, largest first, and returns how many of them to
    take, or None if it has to see more.
    """
    side = operator.small_side()
    if side is not None:
        spectrum = np.linalg.eigvalsh(side.matrix)[::-1]
        return min(enough(np.append(spectrum, 0.0)) or limit, limit)
    width = min(16, limit)
    while True:
        values = principal_subspace(operator, width, rng, tol=1e-2).values
        answer = enough(values)
        if answer is not None or width == limit:
            return min(answer or limit, limit)
        width = min(2 * width, limit)
