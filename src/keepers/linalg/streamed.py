"""The scatter of a table that is read in blocks, and is too large to be held.

Every product reads the table once. Once most rows of W are inactive, the rest of the iteration
needs few columns: their scatter is summed, or they are taken into memory, in a single pass, and no
further pass is needed until the rows set aside are looked at again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from keepers._protocols import (
    BlockTable,
    FloatArray,
    IndexArray,
    SmallSide,
    Sum,
    SymmetricOperator,
)
from keepers.exceptions import DataError
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.scatter import DenseScatter, as_scatter, forming_pays, has_offset
from keepers.linalg.storage import scale_columns
from keepers.linalg.sums import ProductSum, RowCollection, ScatterSum

# Blocks in hand: as stored, as read, less the mean, and what readers hold ahead.
_BLOCKS = 12 * 8 * 2**20
# d x d arrays at the worst moment: S, the product of a block, a copy for the decomposition.
_SQUARES = 3
# d x m arrays: the block and its search direction, their images, and what is made of them; and the
# Krylov space of the start with its images.
_ITERATION, _KRYLOV = 14, 10
_OVERSAMPLING = 8
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Budget:
    """A number of bytes, and what things take."""

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
        share = n_columns / max(table.n_features, 1)
        if table.is_sparse:
            if table.n_stored is None:
                return float("inf")
            held = table.n_stored * share * (table.dtype.itemsize + 4.0)
        else:
            held = float(n_samples) * n_columns * table.dtype.itemsize
        # A fit in memory needs up to as much again.
        return _BLOCKS + 2.0 * held


class CountedPasses:
    """A table that has to give the same rows every time it is read, and how many times it was."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        self.n_passes = 0

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        self.n_passes += 1
        return self.table.total(begin, columns)

    def refuse_other_rows(
        self, n_samples: int, mean_change: FloatArray | None, moments: ColumnMoments
    ) -> None:
        """Raise if the last pass gave another number of rows or other means than the first."""
        before = moments.n_samples
        if n_samples == before and mean_change is not None:
            # Far above what rounding does, far below what another row does in all but huge tables.
            tolerance = 1e-6 if self.table.dtype == np.float64 else 1e-3
            allowed = tolerance * np.sqrt(moments.variance) + _ROUNDING * np.abs(moments.mean)
            if np.all(np.abs(mean_change) <= allowed):
                return
        rule = f"{self.table.name} must give the same rows every time it is read"
        way_out = "Fit again, on a copy that nobody changes meanwhile."
        if n_samples != before:
            raise DataError(
                f"{rule}; pass 1 gave {before} rows and pass {self.n_passes} gave {n_samples}. "
                f"{way_out}"
            )
        raise DataError(
            f"{rule}; passes 1 and {self.n_passes} gave {before} rows each, but with other "
            f"values. {way_out}"
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
        scaled = self.factors[:, np.newaxis] * V
        moments = self.moments
        offset = bool(np.any(has_offset(moments)))
        precision = moments.precision_for(self.passes.table.dtype)
        begin = partial(ProductSum, moments.mean, scaled, offset, precision)
        summed = self.passes.total(begin, self._columns_to_read)
        self.passes.refuse_other_rows(summed.n_samples, summed.sums / moments.n_samples, moments)
        return summed.product * self.factors[:, np.newaxis]

    def diagonal(self) -> FloatArray:
        """Centred sum of squares of every column."""
        return self.moments.sum_of_squares * self.factors**2

    def restrict(self, rows: IndexArray) -> SymmetricOperator:
        """S on some of the columns: held in memory, one way or another, where that fits."""
        part = replace(
            self,
            moments=self.moments.subset(rows),
            columns=self.columns[rows],
            factors=self.factors[rows],
        )
        n_samples, n_columns = self.moments.n_samples, len(rows)
        scatter_fits = self.budget.holds(self.budget.of_scatter(n_columns))
        if scatter_fits and forming_pays(n_samples, n_columns):
            return DenseScatter(part.dense())
        if self.budget.holds(self.budget.of_rows(self.passes.table, n_samples, n_columns)):
            return part.in_memory()
        return DenseScatter(part.dense()) if scatter_fits else part

    def in_memory(self) -> SymmetricOperator:
        """The same from rows held in memory: one pass."""
        collected = self.passes.total(RowCollection, self._columns_to_read)
        n_samples, moments = collected.n_samples, self.moments
        if n_samples != moments.n_samples:
            self.passes.refuse_other_rows(n_samples, None, moments)
        X = collected.stack()
        self.passes.refuse_other_rows(n_samples, column_moments(X).mean - moments.mean, moments)
        if np.any(self.factors != 1.0):
            X = scale_columns(X, self.factors)
        X = X.astype(self.moments.precision_for(X.dtype), copy=False)
        return as_scatter(X, self.moments.scaled(self.factors))

    def dense(self) -> FloatArray:
        """S itself: one pass."""
        found = self.passes.total(partial(ScatterSum, self.size), self._columns_to_read)
        change = found.moments.mean - self.moments.mean
        self.passes.refuse_other_rows(found.n_samples, change, self.moments)
        return found.scatter * np.outer(self.factors, self.factors)

    def small_side(self) -> SmallSide | None:
        """None: neither side is known to be small."""
        return None
