"""Categories as numbers: each value gets the number that follows the other columns best.

We take the direction in which the values of a category differ most, within the leading components
of all other columns (between-class analysis, or optimal scaling in the sense of Gifi). A category
is a table of 1 and 0 with a column for each value; a row that lists several values has several 1s.

Found and used on the same rows, such numbers would follow noise too. The direction comes from all
rows, but the number of a value in one half of the rows comes from the other half, as in
scikit-learn's TargetEncoder, which uses labels. See docs/decisions/0017-categories.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.ordering import row_keys
from keepers.prepare.check import leading_components, standardise

MOST_COMPONENTS = 5
MOST_DIRECTIONS = 100
"""Components that replace the columns of a wider table, before other categories are added."""
_SEED = 1


def in_first_half(rows: IndexArray) -> BoolArray:
    """Mask of the rows, given by their numbers, that a hash puts into the first half."""
    # Alternating rows would not do: paired samples alternate.
    return np.asarray(row_keys(rows, _SEED) % np.uint64(2) == 0)


@dataclass(frozen=True)
class LevelNumbers:
    """A number for each value of a category, and last a constant; a row gets their sum."""

    first: FloatArray
    """For the first half of the rows, found on the second."""
    second: FloatArray
    both: FloatArray
    """For new rows."""

    def of(
        self, chosen: FloatArray, places: IndexArray, rows: IndexArray | None = None
    ) -> FloatArray:
        """Numbers for cells: rows of ``chosen`` at ``places``; NaN for gaps.

        ``rows``: their numbers, for rows of the fit.
        """
        first, second, both = (
            (chosen @ each[:-1] + each[-1])[places] for each in (self.first, self.second, self.both)
        )
        return both if rows is None else np.where(in_first_half(rows), first, second)


def quantify(
    numbers: FloatArray, categories: Sequence[FloatArray], rows: IndexArray
) -> list[LevelNumbers]:
    """Find numbers for the values of categories, each a table of 1 and 0, NaN in rows with a gap.

    ``numbers`` are the other columns, ``rows`` the numbers of these rows in the whole table.
    """
    standard = standardise(numbers)
    if standard.shape[1] > MOST_DIRECTIONS:
        standard = leading_components(standard, MOST_DIRECTIONS)
    columns = [_scaled(each) for each in categories]
    found = []
    for at, each in enumerate(categories):
        others = np.hstack([standard, *columns[:at], *columns[at + 1 :]])
        found.append(_quantify_one(others, each, rows))
    return found


def _scaled(chosen: FloatArray) -> FloatArray:
    """Centred columns, rare values weighing more, whose variances add up to one at most."""
    hot = np.nan_to_num(chosen)
    share = np.maximum(hot.mean(axis=0), 1e-12)
    is_one_of_them = hot.sum(axis=1).max(initial=0.0) <= 1.0  # the last column follows from others
    n_free = max(hot.shape[1] - is_one_of_them, 1)
    return (hot - share) / np.sqrt(share * n_free)


def _quantify_one(others: FloatArray, chosen: FloatArray, rows: IndexArray) -> LevelNumbers:
    present = ~np.isnan(chosen).any(axis=1)
    chosen, first = chosen[present], in_first_half(rows[present])
    counts = chosen.sum(axis=0)
    if others.shape[1] and len(chosen) > 1:
        components = leading_components(others, MOST_COMPONENTS)[present]
        components = components - components.mean(axis=0)
        fitted = chosen @ _weights(chosen, components)
        axes = np.linalg.svd(fitted - fitted.mean(axis=0), full_matrices=False)[2]
        along = components @ axes[0]
        along = along if along @ chosen[:, np.argmax(counts)] >= 0 else -along
        of_first, of_second, both = (
            _normalise(_weights(chosen[there], along[there]), chosen)
            for there in (first, ~first, np.ones_like(first))
        )
        if both.any():
            return LevelNumbers(first=of_second, second=of_first, both=both)
    # Nothing to follow: more frequent values get higher numbers.
    places = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    numbers = _normalise(-places.astype(np.float64), chosen)
    return LevelNumbers(numbers, numbers, numbers)


def _weights(chosen: FloatArray, along: FloatArray) -> FloatArray:
    """A number for each value: their sums in the rows follow ``along`` by least squares.

    With one value a row, differences of numbers are differences of means.
    """
    A = chosen - chosen.mean(axis=0) if len(chosen) else chosen
    return np.asarray(np.linalg.lstsq(A.T @ A, A.T @ along, rcond=1e-10)[0])


def _normalise(weights: FloatArray, chosen: FloatArray) -> FloatArray:
    """Weights and a constant that give the rows mean 0 and variance 1; zeros if all are equal."""
    sums = chosen @ weights
    deviation = sums.std() if len(sums) else 0.0
    if deviation <= 1e-12:
        return np.zeros(len(weights) + 1)
    return np.append(weights, -sums.mean()) / deviation
