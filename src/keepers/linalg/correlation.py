"""Correlations between columns, and the columns that repeat another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.scatter import ColumnMoments

# Candidates that are compared with all kept features in a single product.
_AT_ONCE = 256
# Copies of a feature correlate at 1 but for this; a limit of 1 lets them pass.
ROUNDING = 1e-9
# If centring lowers a sum of squares to less than this share, the values are equal.
_CANCELLED = 1e-12


class Correlations(Protocol):
    """Correlations of the columns of a table, however it is stored."""

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        """Correlation of each of ``mine`` (rows) with each of ``theirs`` (columns)."""


@dataclass(frozen=True)
class RankingWalk:
    """By place in a ranking: whether it is kept, else what is kept instead."""

    keeps: BoolArray
    instead: IndexArray
    """The kept column that a skipped one is most like; -1 if kept, or not reached."""
    r: FloatArray
    """The correlation with that column; NaN where there is none."""


def walk_ranking(
    correlations: Correlations,
    order: IndexArray,
    max_correlation: float,
    *,
    most: int,
    always: BoolArray | None = None,
) -> RankingWalk:
    """Go down ``order`` and skip features with |r| above ``max_correlation`` to one already kept.

    The walk ends with ``most`` kept features; those behind count as skipped. Features marked in
    ``always`` (by column) are never skipped.
    """
    keeps = np.zeros(len(order), dtype=bool)
    instead = np.full(len(order), -1, dtype=np.intp)
    r = np.full(len(order), np.nan)
    kept: list[int] = []
    for start in range(0, len(order), _AT_ONCE):
        block = order[start : start + _AT_ONCE]
        with_kept = correlations.between(block, np.array(kept, dtype=np.intp))
        strongest = np.abs(with_kept).max(axis=1, initial=0.0)
        among = correlations.between(block, block)
        chosen: list[int] = []
        for i, feature in enumerate(block):
            if len(kept) == most:
                return RankingWalk(keeps, instead, r)
            like = max(strongest[i], np.abs(among[i, chosen]).max(initial=0.0))
            if like <= max_correlation + ROUNDING or (always is not None and always[feature]):
                keeps[start + i] = True
                kept.append(int(feature))
                chosen.append(i)
            else:
                theirs = np.concatenate([with_kept[i], among[i, chosen]])
                # The best of those that agree to rounding, on every machine.
                nearest = int(np.argmax(np.abs(theirs) >= like - ROUNDING))
                instead[start + i], r[start + i] = kept[nearest], theirs[nearest]
    return RankingWalk(keeps, instead, r)


class ColumnCorrelations(Correlations):
    """Correlations of the columns of an array or a CSR/CSC matrix; all columns vary."""

    def __init__(self, X: Any, moments: ColumnMoments) -> None:
        self.X, self.moments = X, moments
        if not sp.issparse(X):
            # Centred columns of length 1, one a row, computed at their first use: rows that are
            # never written take no memory.
            self._units = np.empty(X.shape[::-1])
            self._is_made = np.zeros(X.shape[1], dtype=bool)

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        if sp.issparse(self.X):
            return self._between_sparse(mine, theirs)
        return np.asarray(self._unit_rows(mine) @ self._unit_rows(theirs).T)

    def _unit_rows(self, columns: IndexArray) -> FloatArray:
        new = columns[~self._is_made[columns]]
        if len(new):
            units = self.X[:, new] - self.moments.mean[new]
            self._units[new] = (units / np.sqrt(self.moments.sum_of_squares[new])).T
            self._is_made[new] = True
        return self._units[columns]

    def _between_sparse(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        products = (self.X[:, mine].T @ self.X[:, theirs]).toarray()
        mean, lengths = self.moments.mean, np.sqrt(self.moments.sum_of_squares)
        products -= self.moments.n_samples * np.outer(mean[mine], mean[theirs])
        return np.asarray(products / lengths[mine, np.newaxis] / lengths[theirs])


@dataclass(frozen=True)
class PairwiseCorrelations(Correlations):
    """From the rows in which both columns have a value.

    0 for pairs with fewer than ``fewest`` such rows, or if a column does not vary in them.
    """

    values: FloatArray
    """The columns about their medians, one a row, with 0 in the gaps."""
    present: FloatArray
    """1 where there is a value, else 0."""
    fewest: int

    @classmethod
    def of(cls, X: FloatArray, fewest: int) -> "PairwiseCorrelations":
        """From an array with NaN in the gaps and a value in every column.

        Sums over the common rows are centred at the end. This costs few digits because values are
        taken about the median, which outliers do not move. Squares of values divided by the
        largest stay within range.
        """
        values = np.array(X.T, dtype=np.float64, order="C")
        gaps = np.isnan(values)
        values -= np.nanmedian(values, axis=1, keepdims=True)
        values[gaps] = 0.0
        largest = np.abs(values).max(axis=1, keepdims=True)
        values /= np.where(largest > 0.0, largest, 1.0)
        return cls(values, (~gaps).astype(np.float64), fewest)

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        x, has_x = self.values[mine], self.present[mine]
        y, has_y = self.values[theirs].T, self.present[theirs].T
        n = has_x @ has_y
        rows = np.maximum(n, 1.0)
        sum_x, sum_y = x @ has_y, has_x @ y
        square_x, square_y = (x * x) @ has_y, has_x @ (y * y)
        scatter_x = square_x - sum_x * sum_x / rows
        scatter_y = square_y - sum_y * sum_y / rows
        known = (n >= self.fewest) & (scatter_x > _CANCELLED * square_x)
        known &= scatter_y > _CANCELLED * square_y
        scatter_x[~known] = scatter_y[~known] = 1.0
        products = x @ y - sum_x * sum_y / rows
        return np.where(known, products / np.sqrt(scatter_x) / np.sqrt(scatter_y), 0.0)


@dataclass(frozen=True)
class ScatterCorrelations(Correlations):
    """From the scatter matrix."""

    scatter: FloatArray

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        lengths = np.sqrt(self.scatter.diagonal())
        products = self.scatter[np.ix_(mine, theirs)]
        return np.asarray(products / lengths[mine, np.newaxis] / lengths[theirs])


class FetchedCorrelations(Correlations):
    """From the scatter of some columns at a time, each fetched in a pass over the table.

    The ``ahead`` columns that are next in ``order`` come with it, so a walk needs few passes.
    """

    def __init__(
        self, scatter_of: Callable[[IndexArray], FloatArray], order: IndexArray, ahead: int
    ) -> None:
        self._scatter_of, self._order, self._ahead = scatter_of, order, ahead
        self._held = np.empty(0, dtype=np.intp)
        self._known = ScatterCorrelations(np.empty((0, 0)))

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        wanted = np.union1d(mine, theirs)
        if not np.isin(wanted, self._held).all():
            last = int(np.flatnonzero(np.isin(self._order, wanted)).max())
            following = self._order[last + 1 : last + 1 + self._ahead]
            self._held = np.union1d(wanted, following)
            self._known = ScatterCorrelations(self._scatter_of(self._held))
        return self._known.between(
            np.searchsorted(self._held, mine), np.searchsorted(self._held, theirs)
        )


# Up to this many columns, all pairs are compared; of more, only copies are found.
COMPARED_ALL = 2000


def similar_columns(X: FloatArray, least: float) -> dict[int, tuple[int, float]]:
    """Columns with |r| >= ``least`` to an earlier one: column -> (that one, r).

    The earlier one itself resembles none before it. X is finite; constant columns resemble none.
    Among more than `COMPARED_ALL` columns, only those with |r| = 1 are found.
    """
    Z, varies = _standardise(X)
    if Z.shape[1] <= COMPARED_ALL:
        products = np.triu(Z.T @ Z, 1)
        pairs = np.argwhere(np.abs(products) >= least)
        r = products[tuple(pairs.T)]
    else:
        pairs = _copies(Z)
        r = np.einsum("ij,ij->j", Z[:, pairs[:, 0]], Z[:, pairs[:, 1]])
    found: dict[int, tuple[int, float]] = {}
    for at in np.flatnonzero(np.abs(r) >= least):
        first, second = map(int, varies[pairs[at]])
        if first not in found and second not in found:
            found[second] = (first, float(r[at]))
    return found


def _copies(Z: FloatArray) -> IndexArray:
    """Pairs of columns that are equal up to the sign: the first of each group, and another."""
    along = np.abs(np.random.default_rng(0).standard_normal(len(Z)) @ Z)
    _, first, group = np.unique(np.round(along, 9), return_index=True, return_inverse=True)
    others = np.flatnonzero(first[group] < np.arange(len(group)))
    return np.column_stack([first[group][others], others])


def _standardise(X: FloatArray) -> tuple[FloatArray, IndexArray]:
    """The columns that vary, centred and of length 1, and their places in X."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = X / np.where(largest > 0.0, largest, 1.0)  # squares may leave the range otherwise
    scaled -= scaled.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
    varies = np.flatnonzero(norms > 1e-10)
    return scaled[:, varies] / norms[varies], varies
