"""What speaks for a set of features, read from X alone.

Two things that clustering, and every other method that looks at neighbours, needs:

* Fidelity. The share of a sample's nearest neighbours in the whole table (every feature brought to
  the same variance) that are among its nearest neighbours in the kept columns. Features that see
  something else than the rest of the table have little of it.
* Clumpiness. How much nearer the nearest neighbours are, in the kept columns, than they would be
  without clusters: than in Gaussian data with the same covariance. It is the ratio of the two mean
  distances, each relative to the mean distance of all pairs, minus 1. The covariance is the same,
  so neither a few long directions nor many short ones count as clusters.

The evidence for a set is fidelity times the square root of clumpiness. Any large random set of
features is faithful, and any few bimodal ones are clumpy; features worth keeping are both.
docs/without-labels.md shows how well this tracks clustering accuracy, and what else was tried.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.graph import squared_distances
from keepers.linalg.ordering import nearest_first
from keepers.linalg.storage import as_array, by_columns

N_NEIGHBORS = 5
MOST_SAMPLES = 1000
N_DRAWS = 3
# Clumpiness below this is noise, and may be negative; its logarithm must not decide.
LEAST_CLUMPINESS = 0.01
# Kept columns that take a few values only make samples coincide, which is no sign of clusters.
MOST_CLUMPINESS = 2.0
_COLUMNS_AT_ONCE = 1024


@dataclass(frozen=True)
class NeighbourEvidence:
    """What speaks for a set of features."""

    fidelity: float
    """Share of nearest neighbours in the whole table that are so in the kept columns too."""
    clumpiness: float
    """How much nearer neighbours are than in Gaussian data of the same covariance; 0: as near,
    2: three times as near, or nearer."""

    @property
    def score(self) -> float:
        """Fidelity times the square root of clumpiness; higher is better."""
        return float(self.fidelity * np.sqrt(max(self.clumpiness, LEAST_CLUMPINESS)))


class Judge:
    """Weighs sets of columns of one table, always on the same samples and draws."""

    def __init__(self, X: Any, rng: np.random.Generator) -> None:
        n_samples = X.shape[0]
        if n_samples > MOST_SAMPLES:
            X = X[np.sort(rng.choice(n_samples, MOST_SAMPLES, replace=False))]
        self._X = by_columns(X)
        self._n_neighbors = min(N_NEIGHBORS, X.shape[0] - 1)
        self._near = _nearest(_standardised_distances(self._X), self._n_neighbors)
        self._seed = int(rng.integers(2**31 - 1))
        self._known: dict[bytes, NeighbourEvidence] = {}

    def weigh(self, columns: IndexArray) -> NeighbourEvidence:
        """The evidence for these columns; the same set is weighed once."""
        columns = np.sort(columns)
        key = columns.tobytes()
        if key not in self._known:
            kept = np.array(as_array(self._X[:, columns]), dtype=np.float64)
            kept -= kept.mean(axis=0)
            distances = squared_distances(kept)
            shared = _nearest(distances, self._n_neighbors) & self._near
            fidelity = float(shared.sum() / (len(kept) * self._n_neighbors))
            rng = np.random.default_rng(self._seed)
            self._known[key] = NeighbourEvidence(fidelity, _clumpiness(kept, distances, rng))
        return self._known[key]


def _standardised_distances(X: Any) -> FloatArray:
    """Squared distances with every feature brought to the same variance."""
    total = np.zeros((X.shape[0], X.shape[0]))
    for start in range(0, X.shape[1], _COLUMNS_AT_ONCE):
        block = np.array(as_array(X[:, start : start + _COLUMNS_AT_ONCE]), dtype=np.float64)
        block -= block.mean(axis=0)
        deviations = block.std(axis=0)
        block /= np.where(deviations > 0.0, deviations, 1.0)
        total += squared_distances(block)
    return total


def _clumpiness(kept: FloatArray, distances: FloatArray, rng: np.random.Generator) -> float:
    lengths = np.linalg.svd(kept, compute_uv=False)
    if not lengths[0] > 0.0:
        return 0.0
    draws = [
        _nearness(squared_distances(rng.standard_normal((len(kept), len(lengths))) * lengths))
        for _ in range(N_DRAWS)
    ]
    found = _nearness(distances)
    ratio = float(np.mean(draws)) / max(found, np.finfo(float).tiny)
    return min(ratio - 1.0, MOST_CLUMPINESS)


def _nearness(distances: FloatArray) -> float:
    """Mean distance to the nearest neighbours over the mean distance of all pairs."""
    lengths = np.sqrt(distances)
    n_samples = len(lengths)
    n_neighbors = min(N_NEIGHBORS, n_samples - 1)
    typical = float(lengths.sum()) / (n_samples * (n_samples - 1))
    np.fill_diagonal(lengths, np.inf)
    nearest = np.partition(lengths, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return float(nearest.mean()) / typical if typical > 0.0 else 0.0


def _nearest(distances: FloatArray, n_neighbors: int) -> BoolArray:
    """Sample i, sample j: whether j is among the nearest of i."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    nearest = nearest_first(others, n_neighbors)
    near = np.zeros(others.shape, dtype=bool)
    np.put_along_axis(near, nearest, True, axis=1)
    return near
