"""Evidence for a set of features, from X alone.

Two things that clustering, and every other method that looks at neighbours, needs:

* Fidelity. The share of a sample's nearest neighbours in the whole table (every feature brought to
  the same variance) that are among its nearest neighbours in the kept columns. Features that see
  something else than the rest of the table have little of it.
* Clumpiness. How much nearer the nearest neighbours are, in the kept columns, than they would be
  without clusters: than in Gaussian data with the same covariance. It is the ratio of the two mean
  distances, each relative to the mean distance of all pairs, minus 1. The covariance is the same,
  so neither a few long directions nor many short ones count as clusters.

Columns that take a few values only (counts, levels, yes and no) make samples coincide, which is no
sign of clusters. For fidelity, samples at the same distance share a place among the nearest. For
clumpiness, values that coincide are spread over the part of a Gaussian that falls on them, as in
randomised quantile residuals (Dunn and Smyth 1996): Gaussian data that were rounded, or cut into
yes and no, are not clumpy. Values that occur once stay as they are.

The evidence for a set is fidelity times the square root of clumpiness. Any large random set of
features is faithful, and any few bimodal ones are clumpy; features worth keeping are both.
docs/without-labels.md shows how well this tracks clustering accuracy, and what else was tried.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import COINCIDENT, squared_distances
from keepers.linalg.ordering import share_of_nearest
from keepers.linalg.storage import as_array, by_columns

N_NEIGHBORS = 5
MOST_SAMPLES = 1000
N_DRAWS = 3
_COLUMNS_AT_ONCE = 1024


@dataclass(frozen=True)
class NeighbourEvidence:
    """The evidence for a set of features."""

    fidelity: float
    """Share of nearest neighbours in the whole table that stay so in the kept columns."""
    clumpiness: float
    """How much nearer neighbours are than in Gaussian data of the same covariance; 0: as near,
    2: three times as near, or nearer."""

    @property
    def score(self) -> float:
        """Fidelity times the square root of clumpiness; higher is better."""
        # Clumpiness below 0.01 is noise, and may be negative.
        return float(self.fidelity * np.sqrt(max(self.clumpiness, 0.01)))


class Judge:
    """Weighs sets of columns of one table, always on the same samples and draws."""

    def __init__(self, X: Any, rng: np.random.Generator) -> None:
        n_samples = X.shape[0]
        if n_samples > MOST_SAMPLES:
            X = X[np.sort(rng.choice(n_samples, MOST_SAMPLES, replace=False))]
        self._X = by_columns(X)
        self._whole = _standardised_distances(self._X)
        self._near = _nearest(self._whole)
        self._seed = int(rng.integers(2**31 - 1))
        self._known: dict[bytes, NeighbourEvidence] = {}

    def weigh(self, columns: IndexArray) -> NeighbourEvidence:
        """The evidence for these columns; the same set is weighed once."""
        columns = np.sort(columns)
        key = columns.tobytes()
        if key not in self._known:
            rng = np.random.default_rng(self._seed)
            self._known[key] = _weigh(self._kept(columns), self._near, rng)
        return self._known[key]

    def _kept(self, columns: IndexArray) -> FloatArray:
        return np.array(as_array(self._X[:, columns]), dtype=np.float64)


def _weigh(kept: FloatArray, near: FloatArray, rng: np.random.Generator) -> NeighbourEvidence:
    """The evidence for kept columns, given who is near in the whole table."""
    kept = kept - kept.mean(axis=0)
    shared = _nearest(squared_distances(kept)) * near
    return NeighbourEvidence(float(shared.sum() / near.sum()), _clumpiness(kept, rng))


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


def _clumpiness(kept: FloatArray, rng: np.random.Generator) -> float:
    kept = spread_ties(kept, rng)
    lengths = np.linalg.svd(kept, compute_uv=False)
    if not lengths[0] > 0.0:
        return 0.0
    draws = [
        _nearness(squared_distances(rng.standard_normal((len(kept), len(lengths))) * lengths))
        for _ in range(N_DRAWS)
    ]
    found = _nearness(squared_distances(kept))
    ratio = float(np.mean(draws)) / max(found, np.finfo(float).tiny)
    # Identical samples have neighbours at distance 0: three times as near is enough.
    return min(ratio - 1.0, 2.0)


def _nearness(distances: FloatArray) -> float:
    """Mean distance to the nearest neighbours over the mean distance of all pairs."""
    lengths = np.sqrt(distances)
    n_samples = len(lengths)
    n_neighbors = min(N_NEIGHBORS, n_samples - 1)
    typical = float(lengths.sum()) / (n_samples * (n_samples - 1))
    np.fill_diagonal(lengths, np.inf)
    nearest = np.partition(lengths, n_neighbors - 1, axis=1)[:, :n_neighbors]
    return float(nearest.mean()) / typical if typical > 0.0 else 0.0


def _nearest(distances: FloatArray) -> FloatArray:
    """Sample i, sample j: whether j is among the nearest of i; a share where others tie with it."""
    others = np.where(distances <= COINCIDENT * distances.max(), 0.0, distances)
    np.fill_diagonal(others, np.inf)
    return share_of_nearest(others, min(N_NEIGHBORS, len(others) - 1))


def spread_ties(columns: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Values that coincide, moved apart as a Gaussian of the column's deviation would lie there."""
    n_samples = len(columns)
    # Values that differ by rounding coincide.
    largest = np.abs(columns).max(axis=0)
    rounded = np.round(columns / np.where(largest > 0.0, largest, 1.0), 9)
    below = (rankdata(rounded, method="min", axis=0) - 1.0) / n_samples
    above = rankdata(rounded, method="max", axis=0) / n_samples
    tied = above - below > 1.5 / n_samples
    if not tied.any():
        return columns
    at = ndtri(below + (above - below) * rng.uniform(size=columns.shape))
    low, high = (np.exp(-0.5 * ndtri(edge) ** 2) for edge in (below, above))
    centre = (low - high) / (np.sqrt(2.0 * np.pi) * (above - below))
    moved = np.where(tied, columns + columns.std(axis=0) * (at - centre), columns)
    return np.asarray(moved - moved.mean(axis=0))
