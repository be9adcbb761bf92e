"""Sums over the blocks of a table: moments, the scatter, products with it, the rows.

A sum takes blocks in (`add`) and other sums in (`merge`), in any grouping. Two sums about different
means are brought together by the rule of Chan, Golub and LeVeque: with d the difference of means,

    S = S_a + S_b + (n_a n_b / n) d d',

which needs no mean beforehand and, other than E[xx'] - E[x]E[x]', squares no offset. Each block is
taken about a point near its own mean, and what the columns then still sum to is kept.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockSum, FloatArray, RowBlock
from keepers.exceptions import DataError, shorten
from keepers.linalg import storage
from keepers.linalg.moments import LARGEST_SINGLE, SMALLEST_SINGLE, ColumnMoments

# Columns that a message names.
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
            f"{shorten(column if names is None else str(names[column]))} ({count})"
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
    """Column sums of ``values``, float64."""

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    @property
    def mean_left(self) -> FloatArray:
        """The mean of ``values``: small for dense rows."""
        return self.sums / self.n_rows

    @property
    def squares(self) -> FloatArray:
        """Sums of squares of the columns about the mean of the rows."""
        return np.maximum(self._squares() - self.sums * self.mean_left, 0.0)

    def _squares(self) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->j", self.values, self.values, dtype=np.float64))

    def gram(self) -> FloatArray:
        """Z'Z in the precision of Z, or in float64 where its squares overflow or vanish in it."""
        Z = self.values
        with np.errstate(over="ignore", invalid="ignore"):
            product = Z.T @ Z
        if Z.dtype == np.float64:
            return product
        squares = product.diagonal()
        vanished = np.flatnonzero(squares < SMALLEST_SINGLE)
        if np.all(squares < LARGEST_SINGLE) and not Z[:, vanished].any():
            return product
        double = Z.astype(np.float64)
        return double.T @ double


class SparseShiftedRows(ShiftedRows):
    """Rows of a CSR matrix less ``shift``, which is 0 in columns with implicit zeros."""

    def _squares(self) -> FloatArray:
        data = self.values.data.astype(np.float64, copy=False)
        squares = np.bincount(self.values.indices, data * data, minlength=len(self.sums))
        return np.asarray(squares, dtype=np.float64)

    def gram(self) -> FloatArray:
        return storage.gram(self.values)


def shift_to_mean(block: RowBlock) -> ShiftedRows:
    """The rows of a block less (roughly) their mean; of a CSR block, only columns without zeros.

    In a column that has implicit zeros the squared mean is at most f / (1 - f) times the variance,
    f being the share of stored entries, so leaving its mean in costs few digits.
    """
    return _sparse_near_mean(block) if sp.issparse(block.values) else _dense_near_mean(block)


def _dense_near_mean(block: RowBlock) -> ShiftedRows:
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


def _sparse_near_mean(block: RowBlock) -> SparseShiftedRows:
    X = block.values
    n_rows, n_columns = X.shape
    data = X.data.astype(np.float64, copy=False)
    sums = np.bincount(X.indices, weights=data, minlength=n_columns)
    if not np.isfinite(sums).all():
        bad = ~np.isfinite(data)
        if bad.any():
            counts = np.bincount(X.indices[bad], minlength=n_columns)
            raise NotFiniteError(block.origin, _counts(counts))
    return centre_full_columns(X, sums / n_rows)


def centre_full_columns(X: Any, mean: FloatArray) -> SparseShiftedRows:
    """A CSR matrix with ``mean`` taken off the stored values of the columns that have no zero."""
    n_rows, n_columns = X.shape
    full = np.bincount(X.indices, minlength=n_columns) == n_rows
    shift = np.where(full, mean, 0.0)
    if full.any():
        data = (X.data - shift[X.indices]).astype(X.dtype, copy=False)
        X = type(X)((data, X.indices, X.indptr), shape=X.shape)
    sums = np.bincount(X.indices, weights=X.data, minlength=n_columns).astype(np.float64)
    return SparseShiftedRows(X, shift, sums)


def refuse_not_finite(block: RowBlock, *, allow_nan: bool = False) -> None:
    """Raise `NotFiniteError` if a value of the block is NaN (unless allowed) or infinite.

    Checks column sums first, which takes one product with a vector. Large finite values may
    overflow there; only then are the values checked one by one.
    """
    values = block.values
    if allow_nan:
        infinite = np.isinf(values.data if sp.issparse(values) else values)
        columns = values.indices[infinite] if sp.issparse(values) else np.nonzero(infinite)[1]
        if len(columns):
            raise NotFiniteError(block.origin, _counts(np.bincount(columns)))
        return
    with np.errstate(all="ignore"):
        if sp.issparse(values):
            sums = values.data.sum(dtype=np.float64)
        else:
            sums = np.ones(len(values), dtype=values.dtype) @ values
    if not np.isfinite(sums).all():
        shift_to_mean(block)


def _counts(by_column: Any) -> dict[int, int]:
    return {int(column): int(by_column[column]) for column in np.flatnonzero(by_column)}


class RunningMean:
    """Rows counted, and their mean as a fixed point plus a small rest.

    As one number, a mean of 1e8 would be rounded at 1e-8, and differences between means with it.
    """

    def __init__(self, n_features: int) -> None:
        self.n_samples = 0
        self.point: FloatArray = np.zeros(n_features)
        self.rest: FloatArray = np.zeros(n_features)

    def take(self, n_rows: int, point: FloatArray, rest: FloatArray) -> FloatArray:
        """Take in rows with mean point + rest; returns sqrt(n_a n_b / n) times the difference."""
        if self.n_samples == 0:
            self.n_samples, self.point, self.rest = n_rows, point, rest
            return np.zeros_like(rest)
        total = self.n_samples + n_rows
        between = (point - self.point) + (rest - self.rest)
        scaled = np.sqrt(self.n_samples * (n_rows / total)) * between
        self.rest = self.rest + n_rows / total * between
        self.n_samples = total
        return scaled

    @property
    def mean(self) -> FloatArray:
        return self.point + self.rest


class MomentSum(BlockSum):
    """Number of rows, means and centred sums of squares, in float64 also for float32 rows."""

    def __init__(self, n_features: int) -> None:
        self.centre = RunningMean(n_features)
        self.sum_of_squares: FloatArray = np.zeros(n_features)

    def add(self, block: RowBlock) -> None:
        rows = shift_to_mean(RowBlock(block.values.astype(np.float64, copy=False), block.origin))
        between = self.centre.take(rows.n_rows, rows.shift, rows.mean_left)
        self.sum_of_squares += rows.squares + between**2

    def merge(self, other: Self) -> None:
        centre = other.centre
        if centre.n_samples:
            between = self.centre.take(centre.n_samples, centre.point, centre.rest)
            self.sum_of_squares += other.sum_of_squares + between**2

    @property
    def moments(self) -> ColumnMoments:
        return ColumnMoments(self.centre.n_samples, self.centre.mean, self.sum_of_squares)


class ScatterSum(BlockSum):
    """Number of rows, mean and scatter, all in float64; products in the precision of the data."""

    def __init__(self, n_features: int) -> None:
        self.centre = RunningMean(n_features)
        self.scatter: FloatArray = np.zeros((n_features, n_features))

    @property
    def n_samples(self) -> int:
        return self.centre.n_samples

    def add(self, block: RowBlock) -> None:
        rows = shift_to_mean(block)
        between = self.centre.take(rows.n_rows, rows.shift, rows.mean_left)
        self.scatter += rows.gram()
        self.scatter += np.outer(between, between)
        self.scatter -= np.outer(rows.sums, rows.mean_left)

    def merge(self, other: Self) -> None:
        centre = other.centre
        if centre.n_samples:
            between = self.centre.take(centre.n_samples, centre.point, centre.rest)
            self.scatter += other.scatter + np.outer(between, between)

    @property
    def moments(self) -> ColumnMoments:
        squares = np.maximum(self.scatter.diagonal(), 0.0)
        return ColumnMoments(self.centre.n_samples, self.centre.mean, squares)


class ProductSum(BlockSum):
    """Xc'(Xc V), where the mean of the table is known."""

    def __init__(self, mean: FloatArray, V: FloatArray, offset: bool, dtype: Any) -> None:
        """``offset``: whether some mean is large beside the deviation of its column; ``dtype``:
        the precision of the products.
        """
        self.dtype = np.dtype(dtype)
        self.mean = mean
        self.V = V
        self.offset = offset
        self.product: FloatArray = np.zeros(V.shape)
        self.n_samples = 0
        self.sums: FloatArray = np.zeros(len(mean))
        """Column sums of the rows less the mean: zero up to rounding if the rows did not change."""

    def add(self, block: RowBlock) -> None:
        X, left = self._subtract_mean(block.values.astype(self.dtype, copy=False))
        projected = (X @ self.V.astype(X.dtype, copy=False)).astype(np.float64, copy=False)
        projected -= left @ self.V
        n_rows = len(projected)
        with_sums = np.column_stack([projected, np.ones(n_rows)])
        found = X.T @ with_sums.astype(X.dtype, copy=False)
        self.product += found[:, :-1]
        self.product -= np.outer(left, projected.sum(axis=0))
        self.sums += found[:, -1] - n_rows * left
        self.n_samples += n_rows

    def __getstate__(self) -> dict[str, Any]:
        """A worker sends back the sums alone: nothing else is merged."""
        return {name: getattr(self, name) for name in ("product", "n_samples", "sums")}

    def _subtract_mean(self, X: Any) -> tuple[Any, FloatArray]:
        """The rows less most of the mean, and what is left of the mean in them."""
        if not sp.issparse(X):
            point = self.mean.astype(X.dtype)
            return X - point, self.mean - point
        if not self.offset:
            return X, self.mean
        rows = centre_full_columns(X, self.mean)
        return rows.values, self.mean - rows.shift

    def merge(self, other: Self) -> None:
        self.product += other.product
        self.n_samples += other.n_samples
        self.sums += other.sums


class RowCollection(BlockSum):
    """The rows themselves, to be held in memory."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []

    def add(self, block: RowBlock) -> None:
        self.pieces.append(block.values)

    def merge(self, other: Self) -> None:
        self.pieces += other.pieces

    @property
    def n_samples(self) -> int:
        return sum(piece.shape[0] for piece in self.pieces)

    def stack(self) -> Any:
        """One matrix of all rows, which are given up here."""
        return storage.stack_rows(self.pieces)
