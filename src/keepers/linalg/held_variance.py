"""The variance that m components can hold if they are made of some of the features only."""

import numpy as np

from keepers._protocols import IndexArray, SymmetricOperator
from keepers.linalg.scatter import SMALL_SIDE
from keepers.linalg.spectrum import leading_pairs, principal_subspace

# Of the eigenvectors, relative, where the part is too large to be decomposed; the error of their
# eigenvalues is its square.
_TOL = 1e-7


def variance_held(operator: SymmetricOperator, features: IndexArray, n_components: int) -> float:
    """F(I), the sum of the ``n_components`` largest eigenvalues of S on the rows I = ``features``.

    With fewer features than components it is the trace of that part of S.
    """
    if len(features) == 0:
        return 0.0
    part = operator.restrict(np.asarray(features, dtype=np.intp))
    if n_components >= part.size:
        return float(np.sum(part.diagonal()))
    if part.size <= SMALL_SIDE:
        return float(np.sum(leading_pairs(part.dense(), n_components)[0]))
    # Any start will do; always the same one gives the same digits.
    rng = np.random.default_rng(0)
    return float(np.sum(principal_subspace(part, n_components, rng, tol=_TOL).values))
