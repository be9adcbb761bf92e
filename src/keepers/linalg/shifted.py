"""A block of rows less a point near its mean, so that squares and products lose no digits.

Sums over blocks have to be made before the mean of the table is known. Every block is therefore
taken about a point of its own that is near its own mean, and what the columns then still sum to is
kept: from both, sums about any other point follow exactly (`keepers.linalg.sums`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, RowBlock
from keepers.exceptions import DataError, shortened

__all__ = ["NotFiniteError", "ShiftedRows", "less_full_columns", "near_own_mean"]

_NAMED = 5


class NotFiniteError(DataError):
    """A block holds NaN or infinity."""

    def __init__(self, origin: str, counts: dict[int, int]) -> None:
        super().__init__(origin, counts)
        self.origin = origin
        self.counts = counts

    def __str__(self) -> str:
        return self.with_names(None)

    def with_names(self, names: Any) -> str:
        """The message, with names of columns instead of their numbers if there are names."""
        labels = [
            f"{shortened(column if names is None else str(names[column]))} ({count})"
            for column, count in self.counts.items()
        ]
        shown = ", ".join(labels[:_NAMED])
        if len(labels) > _NAMED:
            shown += f" and {len(labels) - _NAMED} more"
        return (
            f"Values must be finite numbers; {self.origin} holds NaN or infinity in these columns "
            f"(how many): {shown}. Leave out the columns or the rows, or fill the gaps first."
        )


@dataclass(frozen=True)
class ShiftedRows:
    """Rows less ``shift``."""

    values: Any
    """Array or CSR matrix, in the precision of the data."""
    shift: FloatArray
    """float64; the same for all rows."""
    sums: FloatArray
    """What the columns of ``values`` sum to, float64."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def mean_left(self) -> FloatArray:
        """The mean of ``values``: small for dense rows."""
        return self.sums / self.n_rows


def near_own_mean(block: RowBlock) -> ShiftedRows:
    """The rows of a block less (roughly) their mean; of a CSR block, only columns without zeros.

    In a column that has implicit zeros the squared mean is at most f / (1 - f) times the variance,
    f being the share of stored entries, so leaving its mean in costs few digits.
    """
    if sp.issparse(block.values):
        return _sparse_near_mean(block)
    values = block.values
    ones = np.ones(len(values), dtype=values.dtype)
    with np.errstate(all="ignore"):
        point = (ones @ values) / values.dtype.type(len(values))
        if not np.isfinite(point).all():
            point = _careful_mean(block)
    shifted = values - point
    sums = (ones @ shifted).astype(np.float64, copy=False)
    return ShiftedRows(shifted, point.astype(np.float64, copy=False), sums)


def _careful_mean(block: RowBlock) -> FloatArray:
    """The mean where summing in the precision of the data gave no number."""
    finite = np.isfinite(block.values)
    if not finite.all():
        raise NotFiniteError(block.origin, _counts((~finite).sum(axis=0)))
    return np.asarray((block.values / len(block.values)).sum(axis=0))


def _sparse_near_mean(block: RowBlock) -> ShiftedRows:
    X = block.values
    n_rows, n_columns = X.shape
    data = X.data.astype(np.float64, copy=False)
    sums = np.bincount(X.indices, weights=data, minlength=n_columns)
    if not np.isfinite(sums).all():
        bad = ~np.isfinite(data)
        if bad.any():
            counts = np.bincount(X.indices[bad], minlength=n_columns)
            raise NotFiniteError(block.origin, _counts(counts))
    return less_full_columns(X, sums / n_rows)


def less_full_columns(X: Any, mean: FloatArray) -> ShiftedRows:
    """A CSR matrix with ``mean`` taken off the stored values of the columns that have no zero."""
    n_rows, n_columns = X.shape
    full = np.bincount(X.indices, minlength=n_columns) == n_rows
    shift = np.where(full, mean, 0.0)
    if full.any():
        data = (X.data - shift[X.indices]).astype(X.dtype, copy=False)
        X = type(X)((data, X.indices, X.indptr), shape=X.shape)
    sums = np.bincount(X.indices, weights=X.data, minlength=n_columns).astype(np.float64)
    return ShiftedRows(X, shift, sums)


def _counts(by_column: Any) -> dict[int, int]:
    return {int(column): int(by_column[column]) for column in np.flatnonzero(by_column)}
