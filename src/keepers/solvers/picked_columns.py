"""Columns that are picked one after another to explain the others, and how much of them they do."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.scatter import SMALL_SIDE, FactoredScatter
from keepers.linalg.spectrum import principal_subspace

# Lanczos steps take fewer products than blocks up to this share of the shorter side.
_FEW = 0.125
# Residual of a vector beside its eigenvalue; the eigenvalue is wrong by its square.
_LANCZOS_TOL = 1e-3


@dataclass(frozen=True)
class PickedColumns:
    """The columns picked, in order, and what is left of the table after each of them."""

    order: IndexArray
    left: FloatArray
    """Share of the sum of squares that is not explained: before the first pick, after each."""
    values: FloatArray
    """What decides, for every column: when it was picked, or at the end if it was not."""
    scores: FloatArray
    """Higher is better: falls along the order, and the columns that were not picked follow."""
    converged: bool = True
    """Whether every eigenvector was found."""

    @property
    def explained(self) -> FloatArray:
        """Share of the sum of squares that the first 1, 2, ... picks explain."""
        return 1.0 - self.left[1:]


def scores_of_picks(order: list[int], left: list[float], others: FloatArray) -> FloatArray:
    """What was left to explain when a column was picked; what ``others`` says, if it was not.

    What is left never grows, and ``others`` must be at most what is left at the end.
    """
    scores = others.copy()
    scores[order] = left[: len(order)]
    return scores


def best_shares(X: FactoredScatter, count: int) -> FloatArray:
    """Share of the sum of squares that 1, 2, ..., ``count`` directions explain at most: PCA.

    Exact if one side of X has at most 3000; beyond, singular values by iteration, which are right
    to about a thousandth, or what orthonormal vectors explain, which is a little less.
    """
    total = float(np.sum(X.moments.sum_of_squares))
    size = min(X.n_rows, X.size)
    if count == 0:
        return np.empty(0)
    if size <= SMALL_SIDE:
        matrix = X.sample_gram() if X.n_rows <= X.size else X.dense()
        values = eigvalsh(matrix / total)[::-1][:count]
    elif count <= _FEW * size:
        values = _leading_values(X, size, count) / total
    else:
        rng = np.random.default_rng(0)  # always the same start gives the same digits
        values = principal_subspace(X, count, rng).values / total
    return np.minimum(np.cumsum(np.maximum(values, 0.0)), 1.0)


def _leading_values(X: FactoredScatter, size: int, count: int) -> FloatArray:
    """The largest eigenvalues of Xc'Xc by Lanczos steps with vectors of the shorter side."""

    def product(vector: FloatArray) -> FloatArray:
        block = vector.reshape(-1, 1)
        return X.matmat(block) if X.size == size else X.times(X.back(block))

    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    # Always the same start gives the same digits. X.back wants vectors that sum to zero.
    start = np.random.default_rng(0).standard_normal(size)
    start -= start.mean()
    values = eigsh(operator, count, v0=start, tol=_LANCZOS_TOL, return_eigenvectors=False)
    return np.sort(values)[::-1]
