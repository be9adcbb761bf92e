"""Orders that rounding does not decide.

The same table gives scores that differ in their last digits with the layout of the array, the
number of threads and the CPU's BLAS kernels. Values that agree up to that count as equal here.
"""

import numpy as np

from keepers._protocols import FloatArray, IndexArray

# Scores are ties if they differ by less than this share of the larger one. Measured: layouts,
# kernels and threads move them by up to 1e-9, blocks of rows by 3e-8.
TIE_TOLERANCE = 1e-7
TIE_TOLERANCE_SINGLE = 2e-6
# Single steps of a computation carry less rounding than its result.
_STEP_TOLERANCE = 1e-10
_TILT = 1e-9


def levels(values: FloatArray) -> IndexArray:
    """0 for the lowest value, and one more wherever the next one is larger by more than a tie."""
    order = np.argsort(values, kind="stable")
    ascending = values[order].astype(np.float64)
    size = np.abs(ascending)
    tol = TIE_TOLERANCE_SINGLE if values.dtype == np.float32 else TIE_TOLERANCE
    reach = tol * np.maximum(size[1:], size[:-1])
    found = np.zeros(len(values), dtype=np.intp)
    found[order[1:]] = np.cumsum(np.diff(ascending) > reach)
    return found


def best_first(scores: FloatArray, variances: FloatArray) -> IndexArray:
    """Columns by score, highest first; ties by variance, highest first; then by index."""
    order = np.lexsort((np.arange(len(scores)), -levels(variances), -levels(scores)))
    return np.asarray(order, dtype=np.intp)


def first_smallest(values: FloatArray, scale: float = 0.0) -> int:
    """The lowest index whose value is the smallest, or larger by rounding only.

    ``scale`` is the size of the terms that the values were computed from, where that is larger.
    """
    least = float(np.min(values))
    return int(np.argmax(values <= least + _STEP_TOLERANCE * max(abs(least), scale)))


def first_largest(values: FloatArray) -> int:
    """The lowest index whose value is the largest, or smaller by rounding only."""
    return first_smallest(-values)


def nearest_first(distances: FloatArray, count: int) -> IndexArray:
    """For every row the ``count`` smallest entries, in no order; ties go to the lowest index."""
    edge = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
    reach = _STEP_TOLERANCE * np.abs(edge)
    within = distances <= edge + reach
    if np.count_nonzero(within) == count * len(distances):  # no ties at the edge
        return np.nonzero(within)[1].reshape(-1, count)
    # Surely within the edge, at it, beyond it; a stable sort leaves each in the order of indices.
    zone = (distances >= edge - reach).astype(np.int8) + (distances > edge + reach)
    return np.asarray(np.argsort(zone, axis=1, kind="stable")[:, :count])


def share_of_nearest(distances: FloatArray, count: int) -> FloatArray:
    """For every row, 1 for its ``count`` smallest entries; those that tie at the edge share."""
    edge = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
    reach = _STEP_TOLERANCE * np.abs(edge)
    within = distances < edge - reach
    at_edge = ~within & (distances <= edge + reach)
    left = count - within.sum(axis=1, keepdims=True)
    return np.asarray(within + at_edge * (left / at_edge.sum(axis=1, keepdims=True)))


def tilt_ties(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Penalty weights, raised by up to a billionth by index among rows of equal ``values``.

    Rows of identical columns are the same in every step of a method but for rounding, and where one
    of them has to vanish, rounding would choose. Begun like this, the last one does on every
    machine; weights of later steps are not tilted, so the solution stays the same.
    """
    level = levels(values)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], level[order])
    place = np.empty(len(values))
    place[order] = np.arange(len(values)) - starts
    return np.asarray(weights * (1.0 + _TILT * place / (1.0 + place.max(initial=0.0))))


def mean_ranks(rows: FloatArray, *, by_size: bool = False) -> FloatArray:
    """Ranks within every row, from 0; equal values share the mean of their places.

    Values that differ by a billionth of the range of the row are equal; with ``by_size`` those that
    differ by 1e-14 of their own size: a far outlier does not change the order of the others.
    Otherwise what `scipy.stats.rankdata` gives, less 1, in a fraction of the time.
    """
    n_rows, size = rows.shape
    places = np.argsort(rows, axis=1)
    places += size * np.arange(n_rows)[:, np.newaxis]
    ascending = rows.ravel()[places]
    reach = 1e-9 * (ascending[:, -1:] - ascending[:, :1])
    if by_size:
        reach = 1e-14 * np.maximum(np.abs(ascending[:, 1:]), np.abs(ascending[:, :-1]))
    starts = np.ones(rows.shape, dtype=bool)
    np.greater(ascending[:, 1:] - ascending[:, :-1], reach, out=starts[:, 1:])
    ranks = np.empty(rows.shape)
    flat = ranks.reshape(-1)
    flat[places] = np.arange(float(size))
    tied = np.flatnonzero(~starts.all(axis=1))
    first = np.flatnonzero(starts[tied])
    counts = np.diff(first, append=len(tied) * size)
    flat[places[tied]] = np.repeat(first % size + (counts - 1) / 2.0, counts).reshape(-1, size)
    return ranks
