"""Categories as numbers: every value of a category gets the number that follows the table best.

A category with L values spans L - 1 directions. The one that is taken has the largest variance
between the values of the category, in the leading components of all other columns (between-class
analysis; optimal scaling in the sense of Gifi). So a category is one column with one score, kept or
dropped as a whole, and has as much say in a distance as any other column.

Fitted and applied to the same rows, the numbers would follow noise as well. The direction is found
on all rows, but the number of a value in one half of the rows is its mean along that direction in
the other half, as scikit-learn's TargetEncoder does with labels. A direction for every half would
not do: where several components are about equally strong, the halves take different ones, and the
column follows neither. docs/decisions/0017-categories.md has the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.reservoir import row_keys

MOST_COMPONENTS = 5
MOST_COLUMNS = 2000
"""Columns whose components are sought; of more, so many at even distances."""
MOST_DIRECTIONS = 100
"""Of more columns, so many components stand for all: they are joined by every category's others."""
_SEED = 1


def in_first_half(rows: IndexArray) -> BoolArray:
    """Which rows, given by their numbers in the table, are in the first half, drawn by a hash.

    Not every second row: those of paired samples alternate.
    """
    return np.asarray(row_keys(rows, _SEED) % np.uint64(2) == 0)


@dataclass(frozen=True)
class LevelNumbers:
    """The numbers of the values of one category, by value in order of the codes."""

    first: FloatArray
    """For the first half of the rows, found on the second."""
    second: FloatArray
    both: FloatArray
    """For rows that had no part in finding them."""

    def of_rows(self, rows: IndexArray, codes: IndexArray) -> FloatArray:
        """Numbers of rows of the fit, given by their numbers; NaN where the code is -1, a gap."""
        numbers = np.where(in_first_half(rows), self.first[codes], self.second[codes])
        return np.where(codes < 0, np.nan, numbers)

    def of_new(self, codes: IndexArray) -> FloatArray:
        """Numbers of other rows; NaN where the code is -1."""
        return np.where(codes < 0, np.nan, self.both[codes])


def quantify(
    numbers: FloatArray,
    codes: Sequence[IndexArray],
    rows: IndexArray,
    n_levels: Sequence[int] | None = None,
) -> list[LevelNumbers]:
    """Numbers for the values of every category.

    Parameters
    ----------
    numbers : array of shape (n_samples, n_columns)
        The other columns; NaN for gaps.
    codes : sequence of arrays of length n_samples
        The value of every row as a number from 0; -1 for a gap.
    rows : array of length n_samples
        The numbers of the rows in the whole table.
    n_levels : sequence of int or None
        How many values each category has, where these rows need not show all of them.
    """
    if n_levels is None:
        n_levels = [int(each.max(initial=-1)) + 1 for each in codes]
    standard = _standardise(numbers)
    if standard.shape[1] > MOST_DIRECTIONS:
        standard = _leading_components(standard, MOST_DIRECTIONS)
    indicators = [_indicators(each) for each in codes]
    found = []
    for at, each in enumerate(codes):
        beside = [other for place, other in enumerate(indicators) if place != at]
        found.append(_quantify_one(np.hstack([standard, *beside]), each, rows, n_levels[at]))
    return found


def _standardise(X: FloatArray) -> FloatArray:
    """Columns with mean 0 and variance 1, gaps at the mean; constant ones left out."""
    if X.shape[1] > MOST_COLUMNS:
        X = X[:, np.linspace(0, X.shape[1] - 1, MOST_COLUMNS).astype(np.intp)]
    missing = np.isnan(X)
    n = np.maximum((~missing).sum(axis=0), 1)
    centred = np.where(missing, 0.0, X - np.where(missing, 0.0, X).sum(axis=0) / n)
    deviations = np.sqrt((centred**2).sum(axis=0) / n)
    largest = np.where(missing, 0.0, np.abs(X)).max(axis=0, initial=0.0)
    varies = deviations > 1e-12 * largest
    return centred[:, varies] / deviations[varies]


def _indicators(codes: IndexArray) -> FloatArray:
    """One column a value, centred and in the metric in which they have one variance together."""
    n_levels = int(codes.max(initial=-1)) + 1
    hot = (codes[:, None] == np.arange(n_levels)).astype(np.float64)
    share = np.maximum(hot.mean(axis=0), 1e-12)
    return (hot - share) / np.sqrt(share * max(n_levels - 1, 1))


def _quantify_one(
    others: FloatArray, codes: IndexArray, rows: IndexArray, n_levels: int
) -> LevelNumbers:
    present = np.flatnonzero(codes >= 0)
    codes, first = codes[present], in_first_half(rows[present])
    counts = np.bincount(codes, minlength=n_levels).astype(np.float64)
    if others.shape[1] and len(present) > 1:
        components = _leading_components(others, MOST_COMPONENTS)
        along = _best_direction(components[present], codes, counts)
        both, of_first, of_second = (
            _normalise(_level_means(along[there], codes[there], n_levels), counts)
            for there in (slice(None), first, ~first)
        )
        if both.any():
            return LevelNumbers(first=of_second, second=of_first, both=both)
    # Nothing to follow: the more frequent, the higher.
    places = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    numbers = _normalise(-places.astype(np.float64), counts)
    return LevelNumbers(numbers, numbers, numbers)


def _leading_components(centred: FloatArray, most: int) -> FloatArray:
    """Scores of the rows on the first principal components."""
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[max(size - most, 0), size - 1])
    if n > d:
        return np.asarray(centred @ vectors)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _best_direction(components: FloatArray, codes: IndexArray, counts: FloatArray) -> FloatArray:
    """The rows along the direction in which the values of the category differ most."""
    centred = components - components.mean(axis=0)
    sums = np.zeros((len(counts), centred.shape[1]))
    np.add.at(sums, codes, centred)
    # Rows weighted by the root of their counts: values that occur once weigh little.
    _, _, axes = np.linalg.svd(
        sums / np.sqrt(np.maximum(counts, 1.0))[:, None], full_matrices=False
    )
    along = centred @ axes[0]
    of_most_frequent = sums[int(np.argmax(counts))] @ axes[0]
    return np.asarray(along if of_most_frequent >= 0 else -along)


def _level_means(along: FloatArray, codes: IndexArray, n_levels: int) -> FloatArray:
    """The mean of the rows with every value; that of all rows for values that none has."""
    counts = np.bincount(codes, minlength=n_levels)
    centred = along - (along.mean() if len(along) else 0.0)
    return np.asarray(np.bincount(codes, centred, minlength=n_levels) / np.maximum(counts, 1))


def _normalise(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Mean 0 and variance 1 over the rows; zeros if all are equal."""
    total = max(float(counts.sum()), 1.0)
    centred = scores - np.sum(counts * scores) / total
    deviation = np.sqrt(np.sum(counts * centred**2) / total)
    return centred / deviation if deviation > 1e-12 else np.zeros_like(scores)
