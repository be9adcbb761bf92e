"""What speaks for a set of features, read from X alone.

Two things that k-means and every other neighbourhood method need, both measured on the kept columns
as they are:

* Reliability. The kept features are split at random into two halves. If they see the same
  structure, a sample has the same nearest neighbours in both. Reliability is the share of the
  nearest neighbours in one half that are nearest neighbours in the other, averaged over splits.
* Clumpiness. How much nearer the nearest neighbours are than they would be without clusters: than
  in Gaussian data with the same covariance. It is the ratio of the two mean distances, each
  relative to the mean distance of all pairs, minus 1. The covariance is the same, so neither a few
  long directions nor many short ones count as clusters.

The evidence for a set is the geometric mean of the two. Noise has low reliability, copies of one
feature have low clumpiness. docs/without-labels.md shows how well this tracks clustering accuracy,
and what else was tried.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray

__all__ = ["Evidence", "Judge"]

N_NEIGHBORS = 5
MOST_SAMPLES = 1000
# A split or a draw costs n^2 k; many are taken where n is small and a single one says little.
MOST_SPLITS, FEWEST_SPLITS = 16, 3
N_DRAWS = 3
PAIRS_FOR_SPLITS = 16 * 300**2
# Clumpiness below this is noise, and may be negative; its logarithm must not decide.
LEAST_CLUMPINESS = 0.01


@dataclass(frozen=True)
class Evidence:
    """What speaks for a set of features."""

    reliability: float
    """Share of nearest neighbours that two halves of the features agree on."""
    clumpiness: float
    """How much nearer neighbours are than in Gaussian data of the same covariance; 0: as near."""

    @property
    def score(self) -> float:
        """Geometric mean of the two; higher is better."""
        return float(np.sqrt(self.reliability * max(self.clumpiness, LEAST_CLUMPINESS)))


class Judge:
    """Weighs sets of columns of one table, always on the same samples, splits and draws."""

    def __init__(self, X: Any, rng: np.random.Generator) -> None:
        n_samples = X.shape[0]
        if n_samples > MOST_SAMPLES:
            X = X[np.sort(rng.choice(n_samples, MOST_SAMPLES, replace=False))]
        self._X = X.tocsc() if sp.issparse(X) else X
        self._seed = int(rng.integers(2**31 - 1))
        self._known: dict[bytes, Evidence] = {}

    def weigh(self, columns: IndexArray) -> Evidence:
        """The evidence for these columns; the same set is weighed once."""
        columns = np.sort(columns)
        key = columns.tobytes()
        if key not in self._known:
            kept = self._X[:, columns]
            kept = kept.toarray() if sp.issparse(kept) else kept
            kept = np.asarray(kept - kept.mean(axis=0), dtype=np.float64)
            rng = np.random.default_rng(self._seed)
            self._known[key] = Evidence(_reliability(kept, rng), _clumpiness(kept, rng))
        return self._known[key]


def _reliability(kept: FloatArray, rng: np.random.Generator) -> float:
    n_samples, n_features = kept.shape
    n_neighbors = min(N_NEIGHBORS, n_samples - 1)
    if n_features < 2:
        return 0.0
    splits = int(np.clip(PAIRS_FOR_SPLITS / n_samples**2, FEWEST_SPLITS, MOST_SPLITS))
    shares = []
    for _ in range(splits):
        order = rng.permutation(n_features)
        near = [
            _neighbours(kept[:, part], n_neighbors)
            for part in (order[: n_features // 2], order[n_features // 2 :])
        ]
        shares.append((near[0] & near[1]).sum() / (n_samples * n_neighbors))
    return float(np.mean(shares))


def _clumpiness(kept: FloatArray, rng: np.random.Generator) -> float:
    spread = np.linalg.svd(kept, compute_uv=False)
    if not spread[0] > 0.0:
        return 0.0
    draws = [
        _nearness(rng.standard_normal((kept.shape[0], len(spread))) * spread)
        for _ in range(N_DRAWS)
    ]
    found = _nearness(kept)
    return float(np.mean(draws) / found - 1.0) if found > 0.0 else np.inf


def _nearness(points: FloatArray) -> float:
    """Mean distance to the nearest neighbours over the mean distance of all pairs."""
    n_samples = len(points)
    n_neighbors = min(N_NEIGHBORS, n_samples - 1)
    distances = np.sqrt(_squared_distances(points))
    typical = float(distances.sum()) / (n_samples * (n_samples - 1))
    np.fill_diagonal(distances, np.inf)
    nearest = np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return float(nearest.mean()) / typical if typical > 0.0 else 0.0


def _neighbours(points: FloatArray, n_neighbors: int) -> BoolArray:
    """Sample i, sample j: whether j is among the nearest of i."""
    distances = _squared_distances(points)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    near = np.zeros(distances.shape, dtype=bool)
    np.put_along_axis(near, nearest, True, axis=1)
    return near


def _squared_distances(points: FloatArray) -> FloatArray:
    lengths = np.einsum("ij,ij->i", points, points)
    squared = points @ points.T
    squared *= -2.0
    squared += lengths[:, np.newaxis]
    squared += lengths
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.asarray(squared)
