"""Orders that rounding does not decide, and rows that are drawn alike from every form of a table.

The same table gives scores that differ in their last digits with the layout of the array, the
number of threads and the CPU's BLAS kernels. Values that agree up to that count as equal here.

Rows are drawn uniformly without replacement by keys: 64-bit numbers that follow from the seed and
the number of the row in the table. The rows with the smallest keys are drawn, from a table in
memory, from blocks of any size and from sums merged in any order. The keys of a seed all differ.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.scatter import ColumnMoments, as_array, by_columns, row_blocks

# Scores are ties if they differ by less than this share of the larger one. Measured: layouts,
# kernels and threads move them by up to 1e-9, blocks of rows by 3e-8.
TIE_TOLERANCE = 1e-7
TIE_TOLERANCE_SINGLE = 2e-6
# Single steps of a computation carry less rounding than its result.
_STEP_TOLERANCE = 1e-10
# Squared distances below this share of the largest are rounding.
COINCIDENT = 1e-13
_TILT = 1e-9
# Squared distances below this share of the largest are rounding.
COINCIDENT = 1e-13
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: its i-th number from the state s is ``mix(s + i * GOLDEN_RATIO)``."""
_KEYS_AT_ONCE = 1 << 18

Keys = NDArray[np.uint64]


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
        return np.flatnonzero(within).reshape(-1, count) % within.shape[1]
    # Surely within the edge, at it, beyond it; a stable sort leaves each in the order of indices.
    zone = (distances >= edge - reach).astype(np.int8) + (distances > edge + reach)
    return np.asarray(np.argsort(zone, axis=1, kind="stable")[:, :count])


def squared_distances(points: FloatArray) -> FloatArray:
    """Squared distances of all pairs of rows; centre rows first that lie far from the origin."""
    lengths = np.einsum("ij,ij->i", points, points)
    squared = points @ points.T
    squared *= -2.0
    squared += lengths[:, np.newaxis]
    squared += lengths
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.asarray(squared)


def nearest_by_distance(squared: FloatArray, n_neighbors: int) -> IndexArray:
    """The nearest others of every point, in no order, from squared distances, which are changed.

    Points that coincide up to rounding are at distance 0, and ties go to the lowest index.
    """
    squared[squared <= COINCIDENT * squared.max(initial=0.0)] = 0.0
    np.fill_diagonal(squared, np.inf)
    return nearest_first(squared, n_neighbors)


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


# Rows in an order that follows from their values. Random numbers that are dealt to rows in this
# order do not depend on the order of the rows in the table, nor on the signs, the units and the
# order of its columns.


def distinct_rows(X: Any, moments: ColumnMoments, observed: BoolArray | None = None) -> IndexArray:
    """The rows of an array or a CSR matrix in that order; of equal rows the first.

    Rows are ordered by their squared lengths in the standardised table; where these tie, by the sum
    of their products with all rows, each times its squared length. Equal rows all stay where the
    columns take so few values that rows are equal by chance. No column is constant. ``observed``
    marks the values that were not filled.
    """
    blocks = partial(_standardised_blocks, X, moments, observed)
    lengths = np.concatenate([np.einsum("ij,ij->i", Z, Z) for _, Z in blocks()])
    level = levels(lengths)
    tied = np.bincount(level)[level] > 1
    if not tied.any():
        return np.argsort(level)
    common = np.sum([lengths[rows] @ Z for rows, Z in blocks()], axis=0)
    products = np.concatenate([Z @ common for _, Z in blocks()])
    largest_possible = np.sqrt(lengths.max()) * (np.sqrt(lengths) @ lengths)
    order = np.lexsort((np.round(products / largest_possible, 9), level))
    first: dict[bytes, int] = {}
    for row in order[tied[order]]:
        first.setdefault(_content(X, observed, row), int(row))
    kept = order[~tied[order] | np.isin(order, list(first.values()))]
    return order if len(kept) == len(order) or meet_by_chance(X[kept]) else kept


def _standardised_blocks(
    X: Any, moments: ColumnMoments, observed: BoolArray | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Some rows at a time about the means, with columns of length 1; 0 where values were filled."""
    factors = 1.0 / np.sqrt(moments.sum_of_squares)
    for rows in row_blocks(*X.shape):
        block = (as_array(X[rows]) - moments.mean) * factors
        yield rows, block if observed is None else block * observed[rows]


def _content(X: Any, observed: BoolArray | None, row: int) -> bytes:
    """The values of a row as bytes, the same for 0 and -0."""
    values = as_array(X[[row]]) + 0.0
    if observed is None:
        return values.tobytes()
    return np.where(observed[row], values, np.nan).tobytes()


def meet_by_chance(X: Any) -> bool:
    """True if independent columns with these values would have a pair of equal rows too."""
    n_samples, n_features = X.shape
    n_pairs = n_samples * (n_samples - 1) / 2
    expected, X = n_pairs, by_columns(X)
    for column in range(n_features):  # mostly the first one decides
        counts = np.unique(as_array(X[:, [column]]), return_counts=True)[1]
        expected *= float((counts * (counts - 1) / 2).sum()) / n_pairs
        if expected < 1.0:
            return False
    return True


def mix(numbers: Keys) -> Keys:
    """The mixing function of SplitMix64 (Steele, Lea and Flood, 2014), a bijection of 64 bits."""
    mixed = numbers
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = mixed ^ (mixed >> np.uint64(shift))
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def row_keys(numbers: IndexArray, seed: int) -> Keys:
    """The keys of the rows with these numbers: entries of the stream of SplitMix64."""
    # The seed is mixed before it starts the stream: streams of near seeds are far apart.
    first = mix(np.array([seed % 2**64], dtype=np.uint64))
    states = numbers.astype(np.uint64)
    states += np.uint64(1)
    states *= GOLDEN_RATIO
    states += first
    return mix(states)


def drawn_rows(n_samples: int, n_rows: int, seed: int) -> IndexArray:
    """The rows that are drawn from a table with ``n_samples`` rows, in ascending order."""
    drawn: IndexArray = np.empty(0, dtype=np.intp)
    for start in range(0, n_samples, _KEYS_AT_ONCE):
        drawn = np.append(drawn, np.arange(start, min(start + _KEYS_AT_ONCE, n_samples)))
        drawn = drawn[smallest_keys(row_keys(drawn, seed), n_rows)]
    return drawn


def largest_drawn_key(n_samples: int, n_rows: int, seed: int) -> int:
    """The largest key among the rows that are drawn from a table with ``n_samples`` rows."""
    return int(row_keys(drawn_rows(n_samples, n_rows, seed), seed).max())


def smallest_keys(keys: Keys, count: int) -> IndexArray:
    """The places of the ``count`` smallest keys, in ascending order; of fewer, all places."""
    if len(keys) <= count:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, count - 1)[:count])
