"""Categories as numbers: each value gets the number that follows the other columns best.

We take the direction in which the values of a category differ most, within the leading components
of all other columns (between-class analysis, or optimal scaling in the sense of Gifi).

Found and used on the same rows, such numbers would follow noise too. The direction comes from all
rows, but the number of a value in one half of the rows is its mean along that direction in the
other half, as scikit-learn's TargetEncoder does with labels. See docs/decisions/0017-categories.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.reservoir import row_keys

MOST_COMPONENTS = 5
MOST_COLUMNS = 2000
"""Columns that are used to find components."""
MOST_DIRECTIONS = 100
"""Components that replace the columns of a wider table, before other categories are added."""
_SEED = 1


def in_first_half(rows: IndexArray) -> BoolArray:
    """Mask of the rows, given by their numbers, that a hash puts into the first half."""
    # Alternating rows would not do: paired samples alternate.
    return np.asarray(row_keys(rows, _SEED) % np.uint64(2) == 0)


@dataclass(frozen=True)
class LevelNumbers:
    """Numbers for the values of one category, in the order of their codes."""

    first: FloatArray
    """For the first half of the rows, found on the second."""
    second: FloatArray
    both: FloatArray
    """For new rows."""

    def of(self, codes: IndexArray, rows: IndexArray | None = None) -> FloatArray:
        """Numbers for codes; NaN for -1, a gap. ``rows``: their numbers, for rows of the fit."""
        numbers = self.both[codes]
        if rows is not None:
            numbers = np.where(in_first_half(rows), self.first[codes], self.second[codes])
        return np.where(codes < 0, np.nan, numbers)

    def of_choices(self, chosen: FloatArray, rows: IndexArray | None = None) -> FloatArray:
        """The same for a table of answers, 1 or 0: the sum of those chosen, and a constant."""
        if rows is None:
            return np.asarray(chosen @ self.both[:-1] + self.both[-1])
        first, second = (chosen @ each[:-1] + each[-1] for each in (self.first, self.second))
        return np.where(in_first_half(rows), first, second)


def quantify(
    numbers: FloatArray,
    codes: Sequence[IndexArray | FloatArray],
    rows: IndexArray,
    n_levels: Sequence[int] | None = None,
) -> list[LevelNumbers]:
    """Find numbers for the values of every category, given as codes from 0; -1 is a gap.

    Several answers are given as a matrix instead, with a column of 1 and 0 for each answer.

    ``numbers`` are the other columns, NaN for gaps; ``rows`` the numbers of these rows in the whole
    table. ``n_levels``: numbers of values, if these rows may lack some of them.
    """
    n_levels = n_levels or [int(each.max(initial=-1)) + 1 for each in codes]
    standard = standardise(numbers)
    if standard.shape[1] > MOST_DIRECTIONS:
        standard = leading_components(standard, MOST_DIRECTIONS)
    indicators = [_indicators(each) for each in codes]
    found = []
    for at, each in enumerate(codes):
        others = np.hstack([standard, *indicators[:at], *indicators[at + 1 :]])
        if each.ndim == 2:
            found.append(_quantify_choices(others, each.astype(np.float64), rows))
        else:
            found.append(_quantify_one(others, each.astype(np.intp), rows, n_levels[at]))
    return found


def standardise(X: FloatArray, most: int = MOST_COLUMNS) -> FloatArray:
    """Columns with mean 0 and variance 1, gaps at the mean; without constant columns.

    Of more than ``most`` columns, evenly spaced ones.
    """
    if X.shape[1] > most:
        X = X[:, np.linspace(0, X.shape[1] - 1, most).astype(np.intp)]
    largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    X = X[:, largest > 0.0] / largest[largest > 0.0]  # squares of huge values would overflow
    deviations = np.nanstd(X, axis=0)
    X = X[:, deviations > 1e-12]
    return np.nan_to_num((X - np.nanmean(X, axis=0)) / deviations[deviations > 1e-12])


def _indicators(codes: IndexArray | FloatArray) -> FloatArray:
    """One centred column per value, scaled so that their variances add up to one."""
    if codes.ndim == 2:
        hot, n_levels = np.nan_to_num(codes), codes.shape[1] + 1
    else:
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
        components = leading_components(others, MOST_COMPONENTS)
        along = _best_direction(components[present], codes, counts)
        both, of_first, of_second = (
            _normalise(_level_means(along[there], codes[there], n_levels), counts)
            for there in (slice(None), first, ~first)
        )
        if both.any():
            return LevelNumbers(first=of_second, second=of_first, both=both)
    # Nothing to follow: more frequent values get higher numbers.
    places = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    numbers = _normalise(-places.astype(np.float64), counts)
    return LevelNumbers(numbers, numbers, numbers)


def _quantify_choices(others: FloatArray, chosen: FloatArray, rows: IndexArray) -> LevelNumbers:
    """Weights of answers, and last a constant: the sum of weights follows the other columns.

    With one answer a row these are the numbers of a category: means become least squares. A ridge
    of one row keeps rare answers, and those that always come together, in bounds.
    """
    present = np.flatnonzero(~np.isnan(chosen).any(axis=1))
    chosen, first = chosen[present], in_first_half(rows[present])

    def weights(there: Any, along: FloatArray) -> FloatArray:
        A = chosen[there] - chosen[there].mean(axis=0) if len(chosen[there]) else chosen[there]
        return np.asarray(np.linalg.solve(A.T @ A + np.eye(A.shape[1]), A.T @ along[there]))

    def normalise(found: FloatArray) -> FloatArray:
        sums = chosen @ found
        deviation = sums.std() if len(sums) else 0.0
        if deviation <= 1e-12:
            return np.zeros(len(found) + 1)
        return np.append(found, -sums.mean()) / deviation

    everywhere = slice(None)
    if others.shape[1] and len(present) > 1:
        components = leading_components(others, MOST_COMPONENTS)[present]
        components = components - components.mean(axis=0)
        fitted = chosen @ weights(everywhere, components)
        _, _, axes = np.linalg.svd(fitted - fitted.mean(axis=0), full_matrices=False)
        along = components @ axes[0]
        most_frequent = int(np.argmax(chosen.sum(axis=0)))
        along = along if weights(everywhere, along)[most_frequent] >= 0 else -along
        both, of_first, of_second = (
            normalise(weights(there, along)) for there in (everywhere, first, ~first)
        )
        if both.any():
            return LevelNumbers(first=of_second, second=of_first, both=both)
    numbers = normalise(np.ones(chosen.shape[1]))  # nothing to follow: how many were chosen
    return LevelNumbers(numbers, numbers, numbers)


def leading_components(centred: FloatArray, most: int) -> FloatArray:
    """Scores of the rows on the first principal components."""
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    values, vectors = eigh(gram, subset_by_index=[max(len(gram) - most, 0), len(gram) - 1])
    if n > d:
        return np.asarray(centred @ vectors)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _best_direction(components: FloatArray, codes: IndexArray, counts: FloatArray) -> FloatArray:
    """The rows along the direction in which the values of the category differ most."""
    centred = components - components.mean(axis=0)
    sums = np.zeros((len(counts), centred.shape[1]))
    np.add.at(sums, codes, centred)
    # Weighted by the root of the counts, so that values that occur once weigh little.
    weighted = sums / np.sqrt(np.maximum(counts, 1.0))[:, None]
    _, _, axes = np.linalg.svd(weighted, full_matrices=False)
    along = centred @ axes[0]
    of_most_frequent = sums[int(np.argmax(counts))] @ axes[0]
    return np.asarray(along if of_most_frequent >= 0 else -along)


def _level_means(along: FloatArray, codes: IndexArray, n_levels: int) -> FloatArray:
    """Mean of the rows with each value; the mean of all rows for values that no row has."""
    counts = np.bincount(codes, minlength=n_levels)
    centred = along - (along.mean() if len(along) else 0.0)
    return np.asarray(np.bincount(codes, centred, minlength=n_levels) / np.maximum(counts, 1))


def _normalise(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Scores with mean 0 and variance 1 over the rows; zeros if all are equal."""
    total = max(float(counts.sum()), 1.0)
    centred = scores - np.sum(counts * scores) / total
    deviation = np.sqrt(np.sum(counts * centred**2) / total)
    return centred / deviation if deviation > 1e-12 else np.zeros_like(scores)
