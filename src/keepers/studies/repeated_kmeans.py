"""k-means from many random starts at once: what a study spends most of its time on.

The algorithm is scikit-learn's: greedy k-means++ (the best of 2 + log c candidates for every next
centre), then Lloyd's iteration until no label changes or the centres hardly move. All starts share
their products with the table, and distances between samples are computed once, which is five to
ten times faster on tables of some hundred samples (docs/decisions/0021-comparison.md). From the
same centres, both give the same labels.
"""

from collections.abc import Sequence

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import row_blocks

MOST_STEPS = 300
SHIFT = 1e-4
"""As in scikit-learn: the squared shift of the centres that ends a run, over the mean variance."""
BLOCK_BYTES = 1 << 20
"""Distances to centres are compared while they are in a cache."""
MOST_DISTANCES = 4000
"""Up to so many samples all distances are kept: 128 MB."""


def repeated_kmeans(X: FloatArray, n_clusters: int, seeds: Sequence[int]) -> IndexArray:
    """Labels of one clustering for each seed (starts x samples).

    Each start depends on its own seed alone, not on the others.
    """
    points = _reduced(np.asarray(X, dtype=np.float64))
    n_clusters = min(n_clusters, len(points))
    return lloyd(points, _plus_plus(points, n_clusters, seeds))


def _reduced(X: FloatArray) -> FloatArray:
    """Centred samples, in no more coordinates than there are samples: distances are the same."""
    centred = X - X.mean(axis=0)
    if X.shape[1] <= X.shape[0]:
        return np.ascontiguousarray(centred)
    (triangle,) = sla.qr(centred.T, mode="r", check_finite=False)
    return np.ascontiguousarray(triangle[: len(X)].T)


def _plus_plus(points: FloatArray, n_clusters: int, seeds: Sequence[int]) -> FloatArray:
    """First centres (starts x clusters x coordinates)."""
    n_samples, n_starts = len(points), len(seeds)
    n_trials = 2 + int(np.log(n_clusters))
    draws = [np.random.default_rng(seed) for seed in seeds]
    chosen = np.empty((n_starts, n_clusters), dtype=np.intp)
    chosen[:, 0] = [rng.integers(n_samples) for rng in draws]
    uniform = np.array([rng.random((n_clusters, n_trials)) for rng in draws])
    distances = _Distances(points)
    nearest = distances.to(chosen[:, 0])
    every_start = np.arange(n_starts)
    for place in range(1, n_clusters):
        cumulative = np.cumsum(nearest, axis=1)
        wanted = uniform[:, place] * cumulative[:, -1:]
        rows = zip(cumulative, wanted, strict=True)
        trials = np.array([np.searchsorted(row, at, side="right") for row, at in rows])
        np.minimum(trials, n_samples - 1, out=trials)
        candidates = distances.to(trials.ravel()).reshape(n_starts, n_trials, n_samples)
        np.minimum(candidates, nearest[:, np.newaxis, :], out=candidates)
        best = candidates.sum(axis=2).argmin(axis=1)
        nearest = candidates[every_start, best]
        chosen[:, place] = trials[every_start, best]
    return points[chosen]


class _Distances:
    """Squared distances from some samples to all."""

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self._squares = np.einsum("ij,ij->i", points, points)
        few = len(points) <= MOST_DISTANCES
        self._all = self._from(np.arange(len(points))) if few else None

    def to(self, chosen: IndexArray) -> FloatArray:
        """A row for each of the chosen samples."""
        return self._from(chosen) if self._all is None else self._all[chosen]

    def _from(self, chosen: IndexArray) -> FloatArray:
        products = self._points[chosen] @ self._points.T
        products *= -2.0
        products += self._squares
        products += self._squares[chosen][:, np.newaxis]
        products[np.arange(len(chosen)), chosen] = 0.0
        return np.maximum(products, 0.0, out=products)


def lloyd(points: FloatArray, centres: FloatArray) -> IndexArray:
    """Lloyd's iteration of several starts (starts x clusters x coordinates) to their labels."""
    limit = SHIFT * float(np.mean(np.var(points, axis=0)))
    labels = np.full((len(centres), len(points)), -1, dtype=np.intp)
    running = np.arange(len(centres))
    centres = centres.copy()
    for _ in range(MOST_STEPS):
        found = _assign(points, centres)
        unchanged = (found == labels[running]).all(axis=1)
        labels[running] = found
        moved = _means(points, found, centres)
        small = ((moved - centres) ** 2).sum(axis=(1, 2)) <= limit
        # One that hardly moved takes the labels of where it moved to.
        last = small & ~unchanged
        if last.any():
            labels[running[last]] = _assign(points, moved[last])
        going = ~(unchanged | small)
        running, centres = running[going], moved[going]
        if not len(running):
            break
    return labels


def _assign(points: FloatArray, centres: FloatArray) -> IndexArray:
    """The nearest centre of every sample, in each start."""
    n_starts, n_clusters, n_coordinates = centres.shape
    flat = centres.reshape(-1, n_coordinates)
    directions, squares = -2.0 * flat.T, np.einsum("ij,ij->i", flat, flat)
    labels = np.empty((n_starts, len(points)), dtype=np.intp)
    for rows in row_blocks(len(points), len(flat), BLOCK_BYTES):
        scores = points[rows] @ directions
        scores += squares
        labels[:, rows] = scores.reshape(-1, n_starts, n_clusters).argmin(axis=2).T
    return labels


def _means(points: FloatArray, labels: IndexArray, centres: FloatArray) -> FloatArray:
    """Mean of every cluster; an empty one takes the sample farthest from its own centre."""
    n_starts, n_clusters = centres.shape[:2]
    n_samples = len(points)
    cells = (labels + n_clusters * np.arange(n_starts)[:, np.newaxis]).ravel()
    columns = np.tile(np.arange(n_samples), n_starts)
    ones = np.ones(len(cells))
    members = sp.csr_array((ones, (cells, columns)), shape=(n_starts * n_clusters, n_samples))
    counts = np.bincount(cells, minlength=n_starts * n_clusters).astype(np.float64)
    sums = np.asarray(members @ points).reshape(centres.shape)
    counts = counts.reshape(n_starts, n_clusters)
    for start in np.flatnonzero((counts == 0).any(axis=1)):
        _fill_empty(points, labels[start], centres[start], sums[start], counts[start])
    return np.asarray(sums / counts[:, :, np.newaxis])


def _fill_empty(
    points: FloatArray,
    labels: IndexArray,
    centres: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
) -> None:
    """Move the farthest samples, one for each empty cluster, out of theirs; sums and counts."""
    empty = np.flatnonzero(counts == 0)
    gaps = ((points - centres[labels]) ** 2).sum(axis=1)
    farthest = np.argsort(-gaps, kind="stable")[: len(empty)]
    for cluster, sample in zip(empty, farthest, strict=True):
        sums[labels[sample]] -= points[sample]
        counts[labels[sample]] -= 1
        sums[cluster] = points[sample]
        counts[cluster] = 1
