"""Sums over the blocks of a table, and the scatter of a table that is too large to be held.

A sum takes in blocks (`add`) and other sums (`merge`), in any grouping. Two sums about different
means are added by the rule of Chan, Golub and LeVeque: with d the difference of means,

    S = S_a + S_b + (n_a n_b / n) d d',

which needs no mean beforehand and, unlike E[xx'] - E[x]E[x]', squares no offset. Each block is
taken about a point near its own mean, and what the columns then still sum to is kept.

A `StreamedScatter` reads the table once for every product. Once most rows of W are inactive, the
rest of the iteration needs few columns, and their scatter is summed in a single pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from keepers._protocols import (
    BlockSum,
    BlockTable,
    FloatArray,
    IndexArray,
    RowBlock,
    SmallSide,
    Sum,
    SymmetricOperator,
)
from keepers._wording import some_of
from keepers.exceptions import DataError, shorten
from keepers.linalg.ordering import row_keys, smallest_keys
from keepers.linalg.scatter import (
    ColumnMoments,
    DenseScatter,
    centre_full_columns,
    gram,
    stack_rows,
    sum_entries,
)

# Bytes of a block as stored, as read, less the mean, and of what readers hold ahead.
_BLOCKS = 12 * 8 * 2**20
# d x d arrays at the worst moment: S, the product of a block, a copy for the decomposition.
_SQUARES = 3
# d x m arrays: the block and its search direction, their images, and what is made of them; and the
# Krylov space of the start with its images, which is wider by the last number.
_ITERATION, _KRYLOV, _OVERSAMPLING = 14, 10, 8
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


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
        return (
            f"Values must be finite numbers; {self.origin} holds NaN or infinity in these columns "
            f"(how many): {some_of(labels)}. Leave out the columns or the rows, or fill the gaps "
            "first."
        )


def refuse_not_finite(block: RowBlock, *, allow_nan: bool = False) -> None:
    """Raise `NotFiniteError` if a value of the block is infinite or, unless allowed, NaN."""
    values = block.values
    stored = values.data if sp.issparse(values) else values
    bad = np.isinf(stored) if allow_nan else ~np.isfinite(stored)
    if bad.any():
        columns = values.indices[bad] if sp.issparse(values) else np.nonzero(bad)[1]
        found, counts = np.unique(columns, return_counts=True)
        raise NotFiniteError(block.origin, dict(zip(found.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True)
class ShiftedRows:
    """Rows less ``shift``, which is 0 in columns of a CSR matrix that have implicit zeros."""

    values: Any
    """Array or CSR matrix, in the precision of the data."""
    shift: FloatArray
    """float64; the same for all rows."""

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    def column_sums(self) -> FloatArray:
        """Column sums of ``values`` in float64: small for dense rows."""
        return _column_sums(self.values).astype(np.float64, copy=False)

    def squares(self) -> FloatArray:
        """Sums of squares of ``values``, in float64."""
        if sp.issparse(self.values):
            return sum_entries(self.values, self.values.data.astype(np.float64) ** 2)
        return np.asarray(np.einsum("ij,ij->j", self.values, self.values, dtype=np.float64))

    def gram(self) -> FloatArray:
        """Z'Z in the precision of Z, or in float64 where its squares overflow or vanish in it."""
        Z = self.values
        if sp.issparse(Z):
            return gram(Z)
        if Z.dtype != np.float64:
            moments = ColumnMoments(self.n_rows, self.shift, self.squares())
            Z = Z.astype(moments.precision_for(Z.dtype), copy=False)
        return np.asarray(Z.T @ Z)


def shift_to_mean(block: RowBlock) -> ShiftedRows:
    """The rows of a block less (roughly) their mean; of a CSR block, only columns without zeros.

    Leaving the other means in costs few digits (`keepers.linalg.scatter.as_factored`).
    """
    X = block.values
    with np.errstate(all="ignore"):
        sums = _column_sums(X)
        if not np.isfinite(sums).all():
            refuse_not_finite(block)  # otherwise the sums have left the range of X
            sums = np.ravel(X.sum(axis=0, dtype=np.float64))
        return _shift(X, sums / X.shape[0])


def _shift(X: Any, mean: FloatArray) -> ShiftedRows:
    """The rows less ``mean`` as X can hold it; of a CSR matrix, only columns without zeros."""
    if sp.issparse(X):
        return ShiftedRows(*centre_full_columns(X, mean))
    point = mean.astype(X.dtype)
    return ShiftedRows(X - point, point.astype(np.float64))


def _column_sums(X: Any) -> FloatArray:
    """Column sums, those of an array in its precision: a product is the fastest sum."""
    return sum_entries(X, X.data) if sp.issparse(X) else np.ones(len(X), dtype=X.dtype) @ X


class RunningMean:
    """Rows counted, and their mean as a fixed point plus a small rest.

    As one number, a mean of 1e8 would be rounded at 1e-8, and differences between means with it.
    """

    def __init__(self, n_features: int) -> None:
        self.n_samples = 0
        self._point: FloatArray = np.zeros(n_features)
        self._rest: FloatArray = np.zeros(n_features)

    def _take(self, n_rows: int, point: FloatArray, rest: FloatArray) -> FloatArray:
        """Take in rows with mean point + rest; returns sqrt(n_a n_b / n) times the difference."""
        if self.n_samples == 0:
            self.n_samples, self._point, self._rest = n_rows, point, rest
            return np.zeros_like(rest)
        total = self.n_samples + n_rows
        between = (point - self._point) + (rest - self._rest)
        scaled = np.sqrt(self.n_samples * (n_rows / total)) * between
        self._rest = self._rest + n_rows / total * between
        self.n_samples = total
        return scaled

    def _take_from(self, other: "RunningMean") -> FloatArray:
        """The same for the rows of another sum."""
        if not other.n_samples:
            return np.zeros_like(self._rest)
        return self._take(other.n_samples, other._point, other._rest)

    @property
    def mean(self) -> FloatArray:
        return self._point + self._rest


class MomentSum(RunningMean, BlockSum):
    """Number of rows, means and centred sums of squares, in float64 also for float32 rows."""

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.sum_of_squares: FloatArray = np.zeros(n_features)

    def add(self, block: RowBlock) -> None:
        rows = shift_to_mean(RowBlock(block.values.astype(np.float64, copy=False), block.origin))
        sums = rows.column_sums()
        between = self._take(rows.n_rows, rows.shift, sums / rows.n_rows)
        within = np.maximum(rows.squares() - sums**2 / rows.n_rows, 0.0)
        self.sum_of_squares += within + between**2

    def merge(self, other: Self) -> None:
        self.sum_of_squares += other.sum_of_squares + self._take_from(other) ** 2

    @property
    def moments(self) -> ColumnMoments:
        return ColumnMoments(self.n_samples, self.mean, self.sum_of_squares)


class ScatterSum(RunningMean, BlockSum):
    """Number of rows, mean and scatter, all in float64; products in the precision of the data."""

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.scatter: FloatArray = np.zeros((n_features, n_features))

    def add(self, block: RowBlock) -> None:
        rows = shift_to_mean(block)
        sums = rows.column_sums()
        between = self._take(rows.n_rows, rows.shift, sums / rows.n_rows)
        self.scatter += rows.gram()
        self.scatter += np.outer(between, between)
        self.scatter -= np.outer(sums, sums / rows.n_rows)

    def merge(self, other: Self) -> None:
        between = self._take_from(other)
        self.scatter += other.scatter + np.outer(between, between)

    @property
    def moments(self) -> ColumnMoments:
        squares = np.maximum(self.scatter.diagonal(), 0.0)
        return ColumnMoments(self.n_samples, self.mean, squares)


class ProductSum(BlockSum):
    """Xc'(Xc V) in the precision ``dtype``, where the mean of the table is known."""

    def __init__(self, mean: FloatArray, V: FloatArray, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.mean = mean
        self.V = V
        self.product: FloatArray = np.zeros(V.shape)
        self.n_samples = 0
        self.sums: FloatArray = np.zeros(len(mean))
        """Column sums of the rows less the mean: zero up to rounding if the rows did not change."""

    def add(self, block: RowBlock) -> None:
        rows = _shift(block.values.astype(self.dtype, copy=False), self.mean)
        X, left = rows.values, self.mean - rows.shift  # of the mean, what is left in the rows
        projected = (X @ self.V.astype(X.dtype, copy=False)).astype(np.float64, copy=False)
        projected -= left @ self.V
        with_sums = np.column_stack([projected, np.ones(rows.n_rows)])
        found = X.T @ with_sums.astype(X.dtype, copy=False)
        self.product += found[:, :-1]
        self.product -= np.outer(left, projected.sum(axis=0))
        self.sums += found[:, -1] - rows.n_rows * left
        self.n_samples += rows.n_rows

    def merge(self, other: Self) -> None:
        self.product += other.product
        self.n_samples += other.n_samples
        self.sums += other.sums


class RowCollection(BlockSum):
    """The rows themselves, without gaps, to be held in memory."""

    def __init__(self) -> None:
        self.pieces: list[Any] = []

    def add(self, block: RowBlock) -> None:
        refuse_not_finite(block)
        self.pieces.append(block.values)

    def merge(self, other: Self) -> None:
        self.pieces += other.pieces

    @property
    def n_samples(self) -> int:
        return sum(piece.shape[0] for piece in self.pieces)

    def stack(self) -> Any:
        """One matrix of all rows, which are given up here."""
        return stack_rows(self.pieces)


class RowReservoir(BlockSum):
    """The ``n_rows`` rows with the smallest keys; rows that are not drawn must be finite too.

    Up to twice that many rows are held. ``largest_key`` is `largest_drawn_key`, if the number of
    rows is known: no other row is copied. ``allow_nan``: rows may have gaps.
    """

    def __init__(
        self, n_rows: int, seed: int, largest_key: int | None = None, *, allow_nan: bool = False
    ) -> None:
        self.n_rows = n_rows
        self.seed = seed
        self.allow_nan = allow_nan
        self.n_samples = 0
        self._largest_key = int(np.iinfo(np.uint64).max) if largest_key is None else largest_key
        self._next = 0
        self._pieces: list[Any] = []
        self._numbers: IndexArray = np.empty(0, dtype=np.intp)

    def add(self, block: RowBlock) -> None:
        """Take in the rows of a block that may be among those drawn."""
        refuse_not_finite(block, allow_nan=self.allow_nan)
        n_rows = block.values.shape[0]
        start = self._next if block.start is None else block.start
        self._next = start + n_rows
        self.n_samples += n_rows
        numbers = np.arange(start, self._next, dtype=np.intp)
        keys = row_keys(numbers, self.seed)
        near = np.flatnonzero(keys <= self._largest_key)
        near = near[smallest_keys(keys[near], self.n_rows)]
        if len(near):
            self._hold([block.values[near]], numbers[near])

    def merge(self, other: Self) -> None:
        """Take in the rows of other blocks."""
        self.n_samples += other.n_samples
        self._next = other._next
        self._largest_key = min(self._largest_key, other._largest_key)
        self._hold(other._pieces, other._numbers)

    def _hold(self, pieces: list[Any], numbers: IndexArray) -> None:
        self._pieces += pieces
        self._numbers = np.concatenate([self._numbers, numbers])
        if len(self._numbers) > 2 * self.n_rows:
            self._sort_out()

    def _sort_out(self) -> None:
        """Keep the rows with the smallest keys, in ascending order of their numbers."""
        if self._pieces:
            keys = row_keys(self._numbers, self.seed)
            kept = smallest_keys(keys, self.n_rows)
            if len(kept) == self.n_rows:
                self._largest_key = min(self._largest_key, int(keys[kept].max()))
            kept = kept[np.argsort(self._numbers[kept])]
            self._pieces = [stack_rows(self._pieces)[kept]]
            self._numbers = self._numbers[kept]

    def rows(self) -> Any:
        """The rows drawn so far, in their order in the table: array or CSR matrix."""
        self._sort_out()
        return self._pieces[0]


@dataclass(frozen=True)
class Budget:
    """A number of bytes, and the bytes that each way to a fit needs."""

    n_bytes: float

    def holds(self, n_bytes: float) -> bool:
        return n_bytes <= self.n_bytes

    def of_scatter(self, n_columns: int) -> float:
        """S summed in one pass, and a fit from it."""
        return _BLOCKS + 8.0 * _SQUARES * n_columns**2

    def of_products(self, n_columns: int, width: int) -> float:
        """Products read from the table, pass after pass."""
        thin = _ITERATION * width + _KRYLOV * (width + _OVERSAMPLING)
        return _BLOCKS + 8.0 * n_columns * thin

    def of_rows(self, table: BlockTable, n_samples: int | None, n_columns: int) -> float:
        """The rows held in memory, and a fit on them; infinite where they cannot be."""
        if n_samples is None or not table.is_local:
            return float("inf")
        held = float(n_samples) * n_columns * table.dtype.itemsize
        if table.is_sparse:
            share = n_columns / max(table.n_features, 1)
            n_stored = float("inf") if table.n_stored is None else table.n_stored
            held = n_stored * share * (table.dtype.itemsize + 4.0)
        return _BLOCKS + 2.0 * held  # a fit in memory needs up to as much again


class CountedPasses:
    """A table that has to give the same rows at every pass, and the number of passes so far."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        self.n_passes = 0

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        self.n_passes += 1
        return self.table.total(begin, columns)

    def refuse_other_rows(
        self, n_samples: int, mean_change: FloatArray, moments: ColumnMoments
    ) -> None:
        """Raise if the last pass gave another number of rows or other means than the first."""
        before = moments.n_samples
        found = f"pass 1 gave {before} rows and pass {self.n_passes} gave {n_samples}"
        if n_samples == before:
            # Far above what rounding does, far below what another row does in all but huge tables.
            tolerance = 1e-6 if self.table.dtype == np.float64 else 1e-3
            allowed = tolerance * np.sqrt(moments.variance) + _ROUNDING * np.abs(moments.mean)
            if np.all(np.abs(mean_change) <= allowed):
                return
            found = f"passes 1 and {self.n_passes} gave {before} rows each, but with other values"
        raise DataError(
            f"{self.table.name} must give the same rows every time it is read; {found}. Fit again, "
            "on a copy that nobody changes meanwhile."
        )


@dataclass(frozen=True)
class StreamedScatter:
    """F S F on some columns of the table, F being a diagonal of factors."""

    passes: CountedPasses
    moments: ColumnMoments
    """Moments of these columns, before the factors."""
    columns: IndexArray
    """Places of the columns in the table."""
    factors: FloatArray
    budget: Budget

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def _columns_to_read(self) -> IndexArray | None:
        everything = self.size == self.passes.table.n_features
        return None if everything else self.columns

    def matmat(self, V: FloatArray) -> FloatArray:
        """F Xc'(Xc (F V)): one pass."""
        scaled, moments = self.factors[:, np.newaxis] * V, self.moments
        precision = moments.precision_for(self.passes.table.dtype)
        begin = partial(ProductSum, moments.mean, scaled, precision)
        summed = self.passes.total(begin, self._columns_to_read)
        self.passes.refuse_other_rows(summed.n_samples, summed.sums / moments.n_samples, moments)
        return summed.product * self.factors[:, np.newaxis]

    def diagonal(self) -> FloatArray:
        return self.moments.sum_of_squares * self.factors**2

    def restrict(self, rows: IndexArray) -> SymmetricOperator:
        """S on some of the columns: as a matrix, from one pass, where that fits."""
        columns, factors = self.columns[rows], self.factors[rows]
        part = replace(self, moments=self.moments.subset(rows), columns=columns, factors=factors)
        fits = self.budget.holds(self.budget.of_scatter(len(rows)))
        return DenseScatter(part.dense()) if fits else part

    def dense(self) -> FloatArray:
        """S itself: one pass."""
        found = self.passes.total(partial(ScatterSum, self.size), self._columns_to_read)
        change = found.mean - self.moments.mean
        self.passes.refuse_other_rows(found.n_samples, change, self.moments)
        return found.scatter * np.outer(self.factors, self.factors)

    def small_side(self) -> SmallSide | None:
        """None: neither side is known to be small."""
        return None
