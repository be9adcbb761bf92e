"""Columns that say the same: pairs with a correlation near 1 or -1, without comparing all pairs.

Up to 2,000 columns are all compared. Of more, those are compared whose signs along 16 random
directions agree, in at least one of 12 draws of directions: two columns with |r| >= 0.99 are missed
once in a thousand times, and unrelated ones rarely meet. Where hundreds of columns share a code,
because all are much alike, some more pairs are missed: those far apart along a further direction.
"""

from collections.abc import Iterator

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray

COMPARED_ALL = 2000
_BITS, _BANDS = 16, 12
_MOST_DIFFERING = 24
"""Of all 192 signs; with |r| >= 0.99 more differ once in a million times."""
_SHORT_RUN = 32
_FEWEST_ROWS, _MOST_VALUES = 200, 2**22
_MARGIN = 0.01
"""Seven standard errors of a correlation of 0.99 in 200 rows."""
_AT_ONCE, _PAIRS_AT_ONCE = 512, 2**16
_LEAST_COSINE = 0.95
"""Along 64 random directions: the sine of the angle at |r| = 0.99 is 0.14, that here 0.31."""


def similar_columns(X: FloatArray, least: float) -> dict[int, tuple[int, float]]:
    """For columns that resemble an earlier one: that one, and their correlation.

    Parameters
    ----------
    X : array of shape (n_samples, n_columns)
        Finite values. Columns that do not vary resemble none.
    least : float
        The absolute correlation from which on columns resemble each other.

    Returns
    -------
    dict
        Column -> (the first column that it resembles and that itself resembles none, r).
    """
    if X.shape[1] <= COMPARED_ALL:
        Z, varies = _standardise(X)
        places = varies.tolist()
        pairs = [(places[i], places[j], r) for i, j, r in _all_pairs(Z, least)]
    else:
        pairs = list(_correlations(X, _likely_pairs(X, least), least))
    found: dict[int, tuple[int, float]] = {}
    for first, second, r in sorted(pairs):
        if first not in found and second not in found:
            found[second] = (first, r)
    return found


def _standardise(X: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Centred columns of length 1, and which columns of X they are: those that vary."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = X / np.where(largest > 0.0, largest, 1.0)  # squares may leave the range otherwise
    scaled -= scaled.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    varies = np.flatnonzero(norms > 1e-10)
    if len(varies) < X.shape[1]:
        scaled = scaled[:, varies]
    scaled /= norms[varies]
    return scaled, varies


def _correlations(
    X: FloatArray, pairs: IndexArray, least: float
) -> Iterator[tuple[int, int, float]]:
    """The pairs, one a row, that are correlated so much in all rows."""
    for start in range(0, len(pairs), _AT_ONCE):
        some = pairs[start : start + _AT_ONCE]
        columns, places = np.unique(some, return_inverse=True)
        Z, varies = _standardise(X[:, columns])
        full = np.zeros((X.shape[0], len(columns)))
        full[:, varies] = Z
        i, j = places.reshape(some.shape).T
        r = np.einsum("ij,ij->j", full[:, i], full[:, j])
        for at in np.flatnonzero(np.abs(r) >= least):
            yield int(some[at, 0]), int(some[at, 1]), float(r[at])


def _all_pairs(Z: FloatArray, least: float) -> Iterator[tuple[int, int, float]]:
    for start in range(0, Z.shape[1], _AT_ONCE):
        r = Z[:, start : start + _AT_ONCE].T @ Z
        for i, j in zip(*np.nonzero(np.abs(r) >= least), strict=True):
            if start + i < j:
                yield int(start + i), int(j), float(r[i, j])


def _likely_pairs(X: FloatArray, least: float) -> IndexArray:
    """Pairs, one a row, that may be correlated so much: told by some rows."""
    n, d = X.shape
    Z, varies = _standardise(X[:: max(1, min(n // _FEWEST_ROWS, n * d // _MOST_VALUES))])
    rng = np.random.default_rng(0)
    signs = np.ascontiguousarray((rng.standard_normal((_BITS * _BANDS, len(Z))) @ Z > 0).T)
    along = np.abs(rng.standard_normal(len(Z)) @ Z)
    bands = signs.reshape(-1, _BANDS, _BITS)
    # r and -r are alike: the first bit is always set.
    codes = np.packbits(bands ^ ~bands[:, :, :1], axis=2).view(np.uint16)[:, :, 0]
    found: list[IndexArray] = []
    for band in range(_BANDS):
        order = np.lexsort((along, codes[:, band]))
        sizes = _run_lengths(codes[order, band])
        found += _pairs_in_short_runs(order, sizes, signs)
        for stop, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
            if size > _SHORT_RUN:
                found += _pairs_in_run(order[stop - size : stop], Z, least - _MARGIN)
    pairs = np.concatenate([*(varies[each] for each in found), _equal_pairs(X)])
    numbers = np.unique(pairs[:, 0] * d + pairs[:, 1])  # far faster than unique rows
    return _alike_in_all_rows(X, np.column_stack([numbers // d, numbers % d]))


def _alike_in_all_rows(X: FloatArray, pairs: IndexArray) -> IndexArray:
    """The pairs that are alike along random directions too; columns of rare events are many."""
    directions = np.random.default_rng(2).standard_normal((_BITS * 4, len(X)))
    with np.errstate(all="ignore"):
        mean = X.mean(axis=0)
        along = directions @ X - directions.sum(axis=1)[:, None] * mean
        along /= np.sqrt(np.einsum("ij,ij->j", along, along))
    along = np.ascontiguousarray(along.T)
    kept = np.zeros(len(pairs), dtype=bool)
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        cosines = np.einsum("ij,ij->i", along[pairs[some, 0]], along[pairs[some, 1]])
        kept[some] = ~(np.abs(cosines) < _LEAST_COSINE)  # NaN tells nothing
    return pairs[kept]


def _equal_pairs(X: FloatArray) -> IndexArray:
    """Columns with equal sums under random weights, as equal ones have: each with the first."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.random.default_rng(1).standard_normal(X.shape[0]) @ X
        order = np.argsort(sums, kind="stable")
        apart = np.diff(sums[order]) > 1e-12 * np.abs(sums[order][1:])
    runs = np.concatenate([[0], np.cumsum(apart)])
    first = np.full(runs[-1] + 1, X.shape[1])
    np.minimum.at(first, runs, order)
    pairs = np.column_stack([first[runs], order])
    return pairs[(pairs[:, 0] < pairs[:, 1]) & (sums[order] != 0.0)]


def _pairs_in_short_runs(
    order: IndexArray, sizes: IndexArray, signs: BoolArray
) -> Iterator[IndexArray]:
    """Pairs of columns in runs of equal codes whose signs agree along most of all directions."""
    run = np.repeat(np.arange(len(sizes)), sizes)
    short = sizes[run] <= _SHORT_RUN
    for step in range(1, _SHORT_RUN):
        at = np.flatnonzero(short[step:] & (run[step:] == run[:-step]))
        i, j = order[at], order[at + step]
        differing = np.count_nonzero(signs[i] != signs[j], axis=1)
        near = np.minimum(differing, signs.shape[1] - differing) <= _MOST_DIFFERING
        yield np.sort(np.column_stack([i[near], j[near]]), axis=1)


def _pairs_in_run(members: IndexArray, Z: FloatArray, least: float) -> Iterator[IndexArray]:
    """Columns with one code that stand near each other along a further direction."""
    half = _AT_ONCE // 2
    for start in range(0, max(len(members) - half, 1), half):
        near = np.sort(members[start : start + _AT_ONCE])
        some = Z[:, near]
        i, j = np.nonzero(np.triu(np.abs(some.T @ some) >= least, k=1))
        yield np.column_stack([near[i], near[j]])


def _run_lengths(values: IndexArray) -> IndexArray:
    cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.diff(np.concatenate([[0], cuts, [len(values)]]))
