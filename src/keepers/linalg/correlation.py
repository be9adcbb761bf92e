"""Correlations between columns, and which features of a ranking repeat a better one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.moments import ColumnMoments

# Candidates that are compared with all the kept ones in a single product.
_AT_ONCE = 256
# Copies of a feature correlate at 1 but for this; a limit of 1 lets them pass.
ROUNDING = 1e-9
# Columns that are copied for a single product.
_PARTNERS = 2048
# A sum of squares that centring lowers to less than this share of it is of equal values.
_CANCELLED = 1e-12


class Correlations(Protocol):
    """Correlations of the columns of a table, wherever it lies."""

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        """Correlation of each of ``mine`` (rows) with each of ``theirs`` (columns)."""


@dataclass(frozen=True)
class RankingWalk:
    """Which places of a ranking are kept, and what is kept instead of the others."""

    keeps: BoolArray
    """By place."""
    instead: IndexArray
    """By place, the kept column that a skipped one is most like; -1 for those kept, or not reached.
    """
    r: FloatArray
    """By place, the correlation with that column; NaN where there is none."""


def unlike_the_better(
    correlations: Correlations,
    order: IndexArray,
    max_correlation: float,
    *,
    most: int,
    always: BoolArray | None = None,
) -> BoolArray:
    """Which places of ``order`` hold a feature unlike all the better ones that are kept.

    As in `walk_ranking`.
    """
    return walk_ranking(correlations, order, max_correlation, most=most, always=always).keeps


def walk_ranking(
    correlations: Correlations,
    order: IndexArray,
    max_correlation: float,
    *,
    most: int,
    always: BoolArray | None = None,
) -> RankingWalk:
    """Go down ``order`` and skip every feature that is too much like one already kept.

    A feature is skipped if its correlation with a kept one exceeds ``max_correlation`` in size,
    whichever its sign. The search ends with ``most`` kept features; those behind count as skipped.
    Features marked in ``always`` (by column) are never skipped.
    """
    keeps = np.zeros(len(order), dtype=bool)
    instead = np.full(len(order), -1, dtype=np.intp)
    r = np.full(len(order), np.nan)
    kept: list[int] = []
    for start in range(0, len(order), _AT_ONCE):
        places = np.arange(start, min(start + _AT_ONCE, len(order)))
        block = order[places]
        # One row a candidate, one column a feature kept before the block or, behind, in the block.
        with_kept: FloatArray = np.empty((len(block), 0))
        if kept:
            with_kept = correlations.between(block, np.array(kept))
        strongest = np.abs(with_kept).max(axis=1, initial=0.0)
        among = correlations.between(block, block)
        forced = np.zeros(len(block), dtype=bool) if always is None else always[block]
        chosen: list[int] = []
        for i in range(len(block)):
            if len(kept) == most:
                return RankingWalk(keeps, instead, r)
            like = max(strongest[i], np.abs(among[i, chosen]).max(initial=0.0))
            if like <= max_correlation + ROUNDING or forced[i]:
                keeps[places[i]] = True
                kept.append(int(block[i]))
                chosen.append(i)
            else:
                theirs = np.concatenate([with_kept[i], among[i, chosen]])
                # Of those that agree to rounding the best, on every machine.
                nearest = int(np.argmax(np.abs(theirs) >= like - ROUNDING))
                instead[places[i]], r[places[i]] = kept[nearest], theirs[nearest]
    return RankingWalk(keeps, instead, r)


@dataclass(frozen=True)
class ColumnCorrelations(Correlations):
    """From the columns of an array or a CSR/CSC matrix."""

    X: Any
    moments: ColumnMoments

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        if sp.issparse(self.X):
            return self._between_sparse(mine, theirs)
        return np.asarray(self._unit_columns(mine).T @ self._unit_columns(theirs))

    def _unit_columns(self, columns: IndexArray) -> FloatArray:
        part = self.X[:, columns] - self.moments.mean[columns]
        part /= np.sqrt(self.moments.sum_of_squares[columns])
        return np.asarray(part)

    def _between_sparse(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        products = (self.X[:, mine].T @ self.X[:, theirs]).toarray()
        mean, lengths = self.moments.mean, np.sqrt(self.moments.sum_of_squares)
        products -= self.moments.n_samples * np.outer(mean[mine], mean[theirs])
        return np.asarray(products / lengths[mine, np.newaxis] / lengths[theirs])


@dataclass(frozen=True)
class UnitColumnCorrelations(Correlations):
    """From columns that were centred and scaled to length 1 once, for a walk over many of them.

    It takes one more copy of the table; `ColumnCorrelations` takes none and scales them each time.
    """

    units: FloatArray
    """One row a column of the table, so that picking columns copies whole rows."""

    @classmethod
    def of(cls, X: FloatArray, moments: ColumnMoments) -> "UnitColumnCorrelations":
        """Of an array whose columns all vary."""
        units = np.array(X.T, dtype=np.float64, order="C")
        units -= moments.mean[:, np.newaxis]
        units /= np.sqrt(moments.sum_of_squares)[:, np.newaxis]
        return cls(units)

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        my_units = self.units[mine]
        found = np.empty((len(mine), len(theirs)))
        for part in _parts(len(theirs)):
            np.matmul(my_units, self.units[theirs[part]].T, out=found[:, part])
        return found


@dataclass(frozen=True)
class PairwiseCorrelations(Correlations):
    """From the rows in which both columns have a value; 0 where those rows do not tell.

    That is where a pair has fewer than ``fewest`` of them, or one of the two does not vary in them.
    """

    values: FloatArray
    """One row a column of the table: less its median, with 0 in the gaps."""
    squares: FloatArray
    present: FloatArray
    """1 where there is a value, else 0."""
    fewest: int

    @classmethod
    def of(cls, X: FloatArray, fewest: int) -> "PairwiseCorrelations":
        """Of an array with NaN in the gaps and a value in every column.

        Sums over the common rows are centred after they were added up. The median, which outliers
        do not move, stays close to the mean of whichever rows a pair has in common, so that this
        costs few digits. Division by the largest value keeps squares within range.
        """
        values = np.array(X.T, dtype=np.float64, order="C")
        gaps = np.isnan(values)
        values -= np.nanmedian(values, axis=1, keepdims=True)
        values[gaps] = 0.0
        largest = np.abs(values).max(axis=1, keepdims=True)
        values /= np.where(largest > 0.0, largest, 1.0)
        return cls(values, values * values, (~gaps).astype(np.float64), fewest)

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        found = np.empty((len(mine), len(theirs)))
        for part in _parts(len(theirs)):
            found[:, part] = self._between(mine, theirs[part])
        return found

    def _between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        x, xx, has_x = self.values[mine], self.squares[mine], self.present[mine]
        y, yy, has_y = self.values[theirs].T, self.squares[theirs].T, self.present[theirs].T
        n = has_x @ has_y
        rows = np.maximum(n, 1.0)
        sum_x, sum_y, square_x, square_y = x @ has_y, has_x @ y, xx @ has_y, has_x @ yy
        scatter_x = square_x - sum_x * sum_x / rows
        scatter_y = square_y - sum_y * sum_y / rows
        tells = (n >= self.fewest) & (scatter_x > _CANCELLED * square_x)
        tells &= scatter_y > _CANCELLED * square_y
        lengths = np.sqrt(np.where(tells, scatter_x, 1.0)) * np.sqrt(
            np.where(tells, scatter_y, 1.0)
        )
        return np.where(tells, (x @ y - sum_x * sum_y / rows) / lengths, 0.0)


def _parts(length: int) -> list[slice]:
    return [slice(start, start + _PARTNERS) for start in range(0, length, _PARTNERS)]


@dataclass(frozen=True)
class ScatterCorrelations(Correlations):
    """From the scatter, where it was formed."""

    scatter: FloatArray

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        lengths = np.sqrt(self.scatter.diagonal())
        products = self.scatter[np.ix_(mine, theirs)]
        return np.asarray(products / lengths[mine, np.newaxis] / lengths[theirs])


class FetchedCorrelations(Correlations):
    """From the scatter of some columns at a time, fetched in a pass over the table.

    What stands next in ``order`` is fetched along with what is asked for, so that the walk needs
    few passes.
    """

    def __init__(
        self, scatter_of: Callable[[IndexArray], FloatArray], order: IndexArray, ahead: int
    ) -> None:
        self._scatter_of = scatter_of
        self._order = order
        self._ahead = ahead
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
