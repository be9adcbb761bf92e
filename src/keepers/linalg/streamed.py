"""The scatter of a table that is read in blocks, and is too large to be held.

Every product reads the table once. Once most rows of W have died, the rest of the iteration needs
few columns: their scatter is summed, or they are taken into memory, in a single pass, and no
further pass is needed until the rows set aside are looked at again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from keepers._protocols import BlockTable, FloatArray, IndexArray, SmallSide, Sum, SymmetricOperator
from keepers.linalg.budget import Budget
from keepers.linalg.moments import ColumnMoments, scaled_columns
from keepers.linalg.scatter import HARMLESS_MEAN, DenseScatter, as_scatter, forming_pays
from keepers.linalg.sums import ProductSum, RowCollection, ScatterSum

__all__ = ["CountedPasses", "StreamedScatter"]

# The number of components is not known here; it shifts the balance only a little.
_TYPICAL_WIDTH = 10


class CountedPasses:
    """A table, and how many times it was read."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        self.n_passes = 0

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks."""
        self.n_passes += 1
        return self.table.total(begin, columns)


@dataclass(frozen=True)
class StreamedScatter:
    """F S F on some columns of the table, F being a diagonal of factors."""

    passes: CountedPasses
    moments: ColumnMoments
    """Of these columns, before the factors."""
    columns: IndexArray
    """Where they stand in the table."""
    factors: FloatArray
    budget: Budget

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def _columns_to_read(self) -> IndexArray | None:
        everything = self.size == self.passes.table.n_features
        return None if everything else self.columns

    def matmat(self, V: FloatArray) -> FloatArray:
        """F Xc'(Xc (F V)): one pass."""
        scaled = self.factors[:, np.newaxis] * V
        moments = self.moments
        offset = np.any(np.abs(moments.mean) > HARMLESS_MEAN * np.sqrt(moments.variance))
        begin = partial(
            ProductSum,
            moments.mean,
            scaled,
            bool(offset),
            moments.precision_for(self.passes.table.dtype),
        )
        product = self.passes.total(begin, self._columns_to_read).product
        product *= self.factors[:, np.newaxis]
        return product

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
        if scatter_fits and forming_pays(n_samples, n_columns, _TYPICAL_WIDTH):
            return DenseScatter(part.dense())
        if self.budget.holds(self.budget.of_rows(self.passes.table, n_samples, n_columns)):
            return part.in_memory()
        return DenseScatter(part.dense()) if scatter_fits else part

    def in_memory(self) -> SymmetricOperator:
        """The same from rows held in memory: one pass."""
        X = self.passes.total(RowCollection, self._columns_to_read).stacked()
        if np.any(self.factors != 1.0):
            X = scaled_columns(X, self.factors)
        X = X.astype(self.moments.precision_for(X.dtype), copy=False)
        return as_scatter(X, self.moments.scaled(self.factors), _TYPICAL_WIDTH)

    def dense(self) -> FloatArray:
        """S itself: one pass."""
        found = self.passes.total(partial(ScatterSum, self.size), self._columns_to_read)
        return found.scatter * np.outer(self.factors, self.factors)

    def small_side(self) -> SmallSide | None:
        """None: neither side is known to be small."""
        return None
