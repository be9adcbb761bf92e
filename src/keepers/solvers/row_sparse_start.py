"""A good set of features to begin with: fixed points of a projection (FSPCA).

Tian, Nie, Wang and Li, "Learning feature sparse principal subspace", NeurIPS 2020. With (theta_i,
v_i) the m leading eigenpairs of S_II, feature j gets ``p_j = sum_i (S_jI v_i)^2 / theta_i``; the k
largest p_j are the next I. The variance that I holds never falls.
"""

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.spectrum import principal_subspace

# Eigenvalues of S_II below this share of the largest are rounding.
_ROUNDING_SHARE = 1e-12


def improve_by_projection(
    operator: SymmetricOperator,
    features: IndexArray,
    n_components: int,
    max_iter: int = 20,
    *,
    allowed: BoolArray | None = None,
    forced: BoolArray | None = None,
) -> IndexArray:
    """The set of as many features to which the steps lead, ascending."""
    features = np.sort(features)
    for _ in range(max_iter):
        following = _step(operator, features, n_components, allowed, forced)
        if np.array_equal(following, features):
            break
        features = following
    return features


def _step(
    operator: SymmetricOperator,
    features: IndexArray,
    n_components: int,
    allowed: BoolArray | None,
    forced: BoolArray | None,
) -> IndexArray:
    width = min(n_components, len(features))
    part = operator.restrict(features)
    side = part.small_side()
    if side is not None:
        width = min(width, len(side.matrix))
    found = principal_subspace(part, width, np.random.default_rng(0))
    kept = found.values > _ROUNDING_SHARE * max(float(found.values[0]), 0.0)
    if not kept.any():
        return features
    block = np.zeros((operator.size, int(kept.sum())), order="F")
    block[features] = found.vectors[:, kept]
    images = operator.matmat(block)
    return best_features(np.square(images) @ (1.0 / found.values[kept]), features, allowed, forced)


def best_features(
    scores: FloatArray,
    like: IndexArray,
    allowed: BoolArray | None = None,
    forced: BoolArray | None = None,
) -> IndexArray:
    """As many features as ``like`` has, with the largest scores, ascending; ties by index."""
    keys = scores.astype(np.float64, copy=True)
    if allowed is not None:
        keys[~allowed] = -np.inf
    if forced is not None:
        keys[forced] = np.inf
    return np.sort(np.argsort(-keys, kind="stable")[: len(like)])
