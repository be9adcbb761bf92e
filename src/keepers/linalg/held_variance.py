"""How much variance a set of features can hold in a number of components."""

import numpy as np
from scipy.linalg import eigvalsh

from keepers._protocols import IndexArray, SymmetricOperator
from keepers.linalg.spectrum import principal_subspace

# Up to this size all eigenvalues take less time than a Krylov space.
_SMALL = 800


def variance_held(operator: SymmetricOperator, features: IndexArray, n_components: int) -> float:
    """F(I): the sum of the ``n_components`` largest eigenvalues of S on the features I.

    It is the largest Tr(W' S W) over orthonormal W whose non-zero rows are in I, in the units of S;
    of fewer features than components, the sum of their variances. Exact where one side of the
    features' columns is at most 3000. Beyond that it is what orthonormal vectors found by
    iteration hold: never more than F(I) but for rounding.

    Examples
    --------
    >>> from keepers.linalg.scatter import DenseScatter
    >>> S = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    >>> round(variance_held(DenseScatter(S), np.array([0, 1]), 1), 6)
    3.0
    """
    if len(features) <= n_components:
        return float(operator.diagonal()[features].sum())
    part = operator.restrict(features)
    side = part.small_side()
    if side is None or len(side.matrix) > _SMALL:
        found = principal_subspace(part, n_components, np.random.default_rng(0), tol=1e-6)
        return float(np.maximum(found.values, 0.0).sum())
    size = len(side.matrix)
    lowest = max(size - n_components, 0)
    values = eigvalsh(side.matrix, subset_by_index=[lowest, size - 1])
    return float(np.maximum(values, 0.0).sum())
