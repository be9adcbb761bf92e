"""Categories as numbers: every value of a category gets the number that follows the table best.

A category with L values spans L - 1 directions. The one that is taken has the largest variance
between the values of the category, in the leading components of all other columns (between-class
analysis; optimal scaling in the sense of Gifi). So a category is one column with one score, kept or
dropped as a whole, and has as much say in a distance as any other column.

Fitted and applied to the same rows, the numbers would follow noise as well. They are therefore
found on one half of the rows and applied to the other, as scikit-learn's TargetEncoder does with
labels: the numbers of a category that has nothing to do with the other columns are then independent
of them. docs/decisions/0017-categories.md has the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, IndexArray

MOST_COMPONENTS = 5
MOST_COLUMNS = 2000
"""Columns whose components are sought; of more, so many at even distances."""


@dataclass(frozen=True)
class LevelNumbers:
    """The numbers of the values of one category, by value in order of the codes."""

    even: FloatArray
    """For even rows, found on odd ones."""
    odd: FloatArray
    both: FloatArray
    """For rows that had no part in finding them."""

    def of_rows(self, rows: IndexArray, codes: IndexArray) -> FloatArray:
        """Numbers of rows of the fit, given by their numbers; NaN where the code is -1, a gap."""
        is_even = rows % 2 == 0
        numbers = np.where(is_even, self.even[codes], self.odd[codes])
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
    varies = deviations > 1e-12 * np.abs(X[~missing]).max(initial=0.0)
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
    counts = np.bincount(codes[codes >= 0], minlength=n_levels).astype(np.float64)
    by_half = []
    for half in (0, 1):
        there = np.flatnonzero(rows % 2 == half)
        by_half.append(_best_direction(others[there], codes[there], n_levels))
    even_rows, odd_rows = (_normalise(scores, counts) for scores in by_half)
    if np.sum(counts * even_rows * odd_rows) < 0:
        odd_rows = -odd_rows
    both = _normalise(even_rows + odd_rows, counts)
    return LevelNumbers(even=odd_rows, odd=even_rows, both=both)


def _best_direction(others: FloatArray, codes: IndexArray, n_levels: int) -> FloatArray:
    """A number for every value: the direction in which values of the category differ most."""
    present = codes >= 0
    counts = np.bincount(codes[present], minlength=n_levels).astype(np.float64)
    by_frequency = -np.argsort(np.argsort(-counts, kind="stable"), kind="stable").astype(float)
    if others.shape[1] == 0 or present.sum() < 2:
        return by_frequency
    centred = others - others.mean(axis=0)
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    values, vectors = np.linalg.eigh(gram)
    rank = min(MOST_COMPONENTS, len(values))
    leading = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0))
    if n > d:
        leading = centred @ vectors[:, -rank:]
    sums = np.zeros((n_levels, rank))
    np.add.at(sums, codes[present], leading[present])
    # Rows weighted by the root of their counts: values that occur once weigh little.
    U, S, _ = np.linalg.svd(sums / np.sqrt(np.maximum(counts, 1.0))[:, None], full_matrices=False)
    if not S[0] > 0.0:
        return by_frequency
    scores = U[:, 0] / np.sqrt(np.maximum(counts, 1.0))
    at = int(np.argmax(counts))
    return scores if scores[at] >= 0 else -scores


def _normalise(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Mean 0 and variance 1 over the rows; zeros if all are equal."""
    total = counts.sum()
    centred = scores - np.sum(counts * scores) / total
    deviation = np.sqrt(np.sum(counts * centred**2) / total)
    return centred / deviation if deviation > 1e-12 else np.zeros_like(scores)
