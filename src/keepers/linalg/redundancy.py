"""Walking down a ranking, past features that repeat a better one."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.moments import ColumnMoments

__all__ = ["unlike_the_better"]

# Candidates that are compared with all the kept ones in a single product.
_AT_ONCE = 256


def unlike_the_better(
    X: Any,
    moments: ColumnMoments,
    order: IndexArray,
    max_correlation: float,
    *,
    most: int,
    always: BoolArray | None = None,
) -> BoolArray:
    """Which places of ``order`` hold a feature unlike all the better ones that are kept.

    A feature is passed over if its correlation with a kept one exceeds ``max_correlation`` in
    size, whichever its sign. The walk ends with ``most`` kept features; those behind count as
    passed over. Features marked in ``always`` (by column) are never passed over.
    """
    keeps = np.zeros(len(order), dtype=bool)
    n_kept = 0
    kept = _Columns(X, moments)
    for start in range(0, len(order), _AT_ONCE):
        places = np.arange(start, min(start + _AT_ONCE, len(order)))
        block = order[places]
        candidates = kept.others(block)
        strongest = candidates.strongest(kept)
        among = candidates.correlations(candidates)
        forced = np.zeros(len(block), dtype=bool) if always is None else always[block]
        chosen: list[int] = []
        for i in range(len(block)):
            if n_kept == most:
                return keeps
            like = max(strongest[i], np.abs(among[i, chosen]).max(initial=0.0))
            if like <= max_correlation or forced[i]:
                keeps[places[i]] = True
                n_kept += 1
                chosen.append(i)
        kept.append(block[chosen])
    return keeps


class _Columns:
    """Some columns of X, centred and scaled to unit length by what is known of their moments."""

    def __init__(self, X: Any, moments: ColumnMoments) -> None:
        self._X = X
        self._moments = moments
        self._columns = np.empty(0, dtype=np.intp)
        self._parts: list[Any] = []

    def others(self, columns: IndexArray) -> "_Columns":
        """Other columns of the same table."""
        found = _Columns(self._X, self._moments)
        found.append(columns)
        return found

    def append(self, columns: IndexArray) -> None:
        """Take further columns in."""
        if not len(columns):
            return
        part = self._X[:, columns]
        if not sp.issparse(part):
            part = part - self._moments.mean[columns]
            part /= np.sqrt(self._moments.sum_of_squares[columns])
        self._columns = np.concatenate([self._columns, columns])
        self._parts.append(part)

    def correlations(self, other: "_Columns") -> FloatArray:
        """Correlation of each of these (rows) with each of the others (columns)."""
        rows = [
            np.hstack([_product(mine, theirs) for theirs in other._parts]) for mine in self._parts
        ]
        products = np.vstack(rows)
        if not sp.issparse(self._X):
            return products
        moments = self._moments
        products -= moments.n_samples * np.outer(
            moments.mean[self._columns], moments.mean[other._columns]
        )
        lengths = np.sqrt(moments.sum_of_squares)
        return np.asarray(products / lengths[self._columns, None] / lengths[other._columns])

    def strongest(self, other: "_Columns") -> FloatArray:
        """The largest correlation, in size, of each of these with any of the others."""
        if not len(other._columns):
            return np.zeros(len(self._columns))
        return np.asarray(np.abs(self.correlations(other)).max(axis=1))


def _product(mine: Any, theirs: Any) -> FloatArray:
    product = mine.T @ theirs
    return np.asarray(product.toarray() if sp.issparse(product) else product)
