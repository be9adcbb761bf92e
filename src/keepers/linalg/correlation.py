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


class Correlations(Protocol):
    """Correlations of the columns of a table, wherever it lies."""

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        """Correlation of each of ``mine`` (rows) with each of ``theirs`` (columns)."""


def unlike_the_better(
    correlations: Correlations,
    order: IndexArray,
    max_correlation: float,
    *,
    most: int,
    always: BoolArray | None = None,
) -> BoolArray:
    """Which places of ``order`` hold a feature unlike all the better ones that are kept.

    A feature is skipped if its correlation with a kept one exceeds ``max_correlation`` in size,
    whichever its sign. The search ends with ``most`` kept features; those behind count as skipped.
    Features marked in ``always`` (by column) are never skipped.
    """
    keeps = np.zeros(len(order), dtype=bool)
    kept: list[int] = []
    for start in range(0, len(order), _AT_ONCE):
        places = np.arange(start, min(start + _AT_ONCE, len(order)))
        block = order[places]
        strongest = np.zeros(len(block))
        if kept:
            strongest = np.abs(correlations.between(block, np.array(kept))).max(axis=1)
        among = np.abs(correlations.between(block, block))
        forced = np.zeros(len(block), dtype=bool) if always is None else always[block]
        chosen: list[int] = []
        for i in range(len(block)):
            if len(kept) == most:
                return keeps
            like = max(strongest[i], among[i, chosen].max(initial=0.0))
            if like <= max_correlation + ROUNDING or forced[i]:
                keeps[places[i]] = True
                kept.append(int(block[i]))
                chosen.append(i)
    return keeps


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
