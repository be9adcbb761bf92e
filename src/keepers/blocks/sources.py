"""From whatever holds a table to blocks of its rows: input types are dispatched in one place."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockTable, IndexArray, RowBlock
from keepers.blocks.dask import DaskBlocks
from keepers.exceptions import DataError, ParameterError
from keepers.tables.objects import (
    as_frame,
    block_values,
    column_labels,
    in_order,
    is_anndata,
    is_dask,
    is_frame,
    values_of,
)
from keepers.tables.opening import scan_table
from keepers.tables.scans import LocalBlocks, copy_rows, refuse_misshapen, rows_at_once
from keepers.tables.table import canonical_sparse, refuse_beside


def as_blocks(source: Any) -> BlockTable:
    """The rows of ``source`` in blocks."""
    paths = source if isinstance(source, (list, tuple)) else [source]
    if paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
        source = scan_table(source)
    if isinstance(source, (LocalBlocks, DaskBlocks)):
        refuse_beside(source)
        return source
    if is_dask(source):
        return DaskBlocks.of(source)
    if is_anndata(source):
        table = values_of(source)
        if is_dask(table.values):
            return replace(DaskBlocks.of(table.values), feature_names=table.names)
        return ArrayBlocks(table.values, "X", table.names)
    source = as_frame(source)
    if is_frame(source):
        return GivenBlocks(lambda: [source], "the data frame")
    if sp.issparse(source) or (hasattr(source, "shape") and hasattr(source, "__getitem__")):
        return ArrayBlocks(source, "X")
    if callable(source):
        return GivenBlocks(source, "the function")
    if isinstance(source, Iterable) and not isinstance(source, Iterator):
        return GivenBlocks(lambda: source, f"the {type(source).__name__}")
    raise ParameterError(
        "Blocks come from files, an array, a list of blocks, a Dask collection, or a function that "
        f"returns a new iterator for every pass; got a {type(source).__name__}."
    )


def number_rows(source: BlockTable) -> BlockTable:
    """The same table, whose sums can number the rows; a Dask collection may count them first."""
    return source.count_rows() if isinstance(source, DaskBlocks) else source


class ArrayBlocks(LocalBlocks):
    """Rows of something with a shape, a dtype and slices, which may lie on a disk."""

    def __init__(self, X: Any, name: str, feature_names: Any = None) -> None:
        if len(X.shape) != 2 or 0 in X.shape:
            raise DataError(f"A table has two dimensions; {name} is {X.shape}. Reshape it.")
        self._X = canonical_sparse(X).tocsr() if sp.issparse(X) else X
        self.name, self.feature_names = name, feature_names
        self.n_samples, self.n_features = n_rows, width = tuple(map(int, X.shape))
        first = self._rows(0, 1).values
        self.is_sparse, self.dtype = bool(sp.issparse(first)), first.dtype
        self.n_stored = getattr(X, "nnz", None) if self.is_sparse else n_rows * width
        per_row = width if self.n_stored is None else self.n_stored // n_rows
        self._step = rows_at_once(per_row, self.dtype.itemsize)

    def _rows(self, start: int, stop: int) -> RowBlock:
        origin = f"{self.name}, rows {start + 1} to {stop}"
        is_map = isinstance(self._X, np.memmap)
        rows = copy_rows(self._X, start, stop) if is_map else self._X[start:stop]
        return RowBlock(block_values(rows, origin), origin)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        n_rows = self._X.shape[0]
        for start in range(0, n_rows, self._step):
            block = self._rows(start, min(start + self._step, n_rows))
            yield block if columns is None else replace(block, values=block.values[:, columns])


class GivenBlocks(LocalBlocks):
    """Blocks that ``ask()`` gives, again for every pass; the first shows the columns."""

    def __init__(self, ask: Callable[[], Iterable[Any]], name: str) -> None:
        self._ask, self.name = ask, name
        self._asked = ask()
        first = next(iter(self._asked), None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self._labels = column_labels(first)
        if self._labels is not None and all(isinstance(label, str) for label in self._labels):
            self.feature_names = np.array(self._labels, dtype=object)
        values = block_values(first, "block 1")
        self.n_features, self.dtype = int(values.shape[1]), values.dtype
        self.is_sparse = bool(sp.issparse(values))

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        asked, before = self._ask(), self._asked
        if asked is before and isinstance(asked, Iterator):
            raise DataError(
                f"Rows are read several times; {self.name} returned the same iterator twice. "
                "Return a new one for every pass."
            )
        self._asked = asked
        for number, given in enumerate(asked, 1):
            origin = f"block {number}"
            values = block_values(in_order(given, self._labels, origin), origin)
            refuse_misshapen(RowBlock(values, origin), self.n_features)
            n_stored = values.nnz if sp.issparse(values) else values.size
            step = rows_at_once(n_stored // values.shape[0], values.dtype.itemsize)
            for start in range(0, values.shape[0], step):
                rows = values[start : start + step]
                yield RowBlock(rows if columns is None else rows[:, columns], origin)
