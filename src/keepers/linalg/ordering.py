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
# A falling curve that is nowhere below its chord by more than this has no knee.
_SHALLOWEST_KNEE = 0.05


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
    machine; weights of later steps are not tilted, so that the solution is what it was.
    """
    level = levels(values)
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], level[order])
    place = np.empty(len(values))
    place[order] = np.arange(len(values)) - starts
    return np.asarray(weights * (1.0 + _TILT * place / (1.0 + place.max(initial=0.0))))


def knee_of(scores: FloatArray) -> int | None:
    """How many features stand up to the knee of the score curve; None if it has none.

    Ranks and scores are both scaled to run from 0 to 1. The knee is the point of the falling curve
    that lies furthest below the straight line from its first to its last point. A curve that lies
    nowhere below it by more than a twentieth has no knee.

    Examples
    --------
    >>> knee_of(np.array([10.0, 9.0, 8.0, 0.2, 0.1, 0.0]))
    4
    >>> knee_of(np.array([3.0, 2.0, 1.0, 0.0])) is None
    True
    """
    if len(scores) < 3 or not scores[0] > scores[-1]:
        return None
    rank = np.linspace(0.0, 1.0, len(scores))
    height = (scores - scores[-1]) / (scores[0] - scores[-1])
    below = 1.0 - rank - height
    furthest = int(np.argmax(below))
    return furthest + 1 if below[furthest] > _SHALLOWEST_KNEE else None
