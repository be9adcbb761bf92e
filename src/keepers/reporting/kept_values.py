"""The values of the kept features, small enough to show: a histogram of each, and a heat map."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray

N_BARS = 12
MOST_ROWS = 5000
"""Samples that histograms are made of."""
MOST_SAMPLES, MOST_FEATURES = 400, 60
"""Columns and rows of the heat map."""
FARTHEST = 2.5
"""Standard deviations from the mean at which the colours of the heat map are full."""
_AT_ONCE = 64


@dataclass(frozen=True)
class Histogram:
    """The values of one feature."""

    heights: str
    """A digit a bar, from 0 (no value) to 9 (the tallest bar)."""
    low: float
    high: float


@dataclass(frozen=True)
class HeatMap:
    """Kept features over samples."""

    z: FloatArray
    """A row for each feature, best first: standard deviations from its mean."""
    samples: IndexArray
    """The samples of its columns, those of a class side by side."""
    classes: tuple[tuple[int, int], ...]
    """Place in the legend and number of columns of each class, from the left; empty without."""
    n_samples: int


def histograms(X: Any, columns: IndexArray) -> tuple[Histogram, ...]:
    """The histograms of some columns; none if the table is not there."""
    if X is None:
        return ()
    rows = _evenly(X.shape[0], MOST_ROWS)
    found = []
    for start in range(0, len(columns), _AT_ONCE):
        block = _dense(X, rows, columns[start : start + _AT_ONCE])
        found += [_histogram(values) for values in block.T]
    return tuple(found)


def _histogram(values: FloatArray) -> Histogram:
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Histogram("9", low, high)
    # Measured in the range of the values, so that no range is too small or too large.
    place = ((values / 2 - low / 2) / (high / 2 - low / 2) * N_BARS).astype(np.intp)
    counts = np.bincount(np.clip(place, 0, N_BARS - 1), minlength=N_BARS)
    heights = np.ceil(9 * counts / counts.max()).astype(int)
    return Histogram("".join(map(str, heights)), low, high)


def heat_map(
    X: Any, kept: IndexArray, colour_of: IndexArray | None, along: FloatArray | None
) -> HeatMap | None:
    """Kept features over samples, grouped by class, else in the order of ``along``."""
    if X is None or X.shape[0] < 2:
        return None
    n_samples = X.shape[0]
    key = along if colour_of is None else colour_of
    order = np.arange(n_samples) if key is None else np.argsort(key, kind="stable")
    samples = order[_evenly(n_samples, MOST_SAMPLES)]
    values = _dense(X, np.sort(samples), kept[:MOST_FEATURES])[np.argsort(np.argsort(samples))]
    centred = values - values.mean(axis=0)
    spread = values.std(axis=0)
    z = np.clip(centred / np.where(spread > 0, spread, 1.0), -FARTHEST, FARTHEST)
    classes: tuple[tuple[int, int], ...] = ()
    if colour_of is not None:
        shown = colour_of[samples]
        classes = tuple((int(at), int((shown == at).sum())) for at in np.unique(shown))
    return HeatMap(np.ascontiguousarray(z.T), samples, classes, n_samples)


def _evenly(n: int, most: int) -> IndexArray:
    """At most so many of the first n integers, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def _dense(X: Any, rows: IndexArray, columns: IndexArray) -> FloatArray:
    if sp.issparse(X):
        return np.asarray(X[rows][:, columns].toarray(), dtype=np.float64)
    return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)
