"""From whatever holds a table to blocks of its rows: input types are dispatched in one place."""

import os
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockTable, IndexArray, RowBlock
from keepers.blocks.dask import DaskBlocks
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.tables.objects import (
    as_frame,
    frame_columns,
    is_anndata,
    is_dask,
    is_frame,
    numeric_input,
    read_column,
    refuse_beside,
    values_of,
)
from keepers.tables.opening import scan_table
from keepers.tables.scans import LocalBlocks, copy_rows, refuse_misshapen, rows_at_once
from keepers.tables.table import as_floats, canonical_sparse, checked_matrix, refuse_repeated


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
    if isinstance(source, Iterator):
        return GivenBlocks(lambda: source, "the iterator", rereadable=False)
    source = as_frame(source)
    if is_frame(source):
        return GivenBlocks(lambda: [source], "the data frame")
    if sp.issparse(source) or (hasattr(source, "shape") and hasattr(source, "__getitem__")):
        return ArrayBlocks(source, "X")
    if callable(source):
        return GivenBlocks(source, "the function")
    if hasattr(source, "__iter__"):
        return GivenBlocks(lambda: source, f"the {type(source).__name__}")
    raise ParameterError(
        "Blocks come from a file, a folder, an array, a list of blocks, a function that returns "
        f"an iterator, an iterator or a Dask collection; got a {type(source).__name__}."
    )


def number_rows(source: BlockTable) -> BlockTable:
    """The same table, whose sums can number the rows; a Dask collection may count them first."""
    return source.count_rows() if isinstance(source, DaskBlocks) else source


class ArrayBlocks(LocalBlocks):
    """Rows of something with a shape, a dtype and slices, which may lie on a disk."""

    def __init__(self, X: Any, name: str, feature_names: Any = None) -> None:
        if len(X.shape) != 2 or 0 in X.shape:
            raise DataError(
                "A table has two dimensions, at least one row and one column; "
                f"{name} is {' x '.join(map(str, X.shape))}. Reshape it."
            )
        self._X = canonical_sparse(X).tocsr() if sp.issparse(X) else X
        self.name, self.feature_names = name, feature_names
        self.n_samples, self.n_features = n_rows, width = tuple(map(int, X.shape))
        first = self._rows(0, 1)
        self.is_sparse, self.dtype = bool(sp.issparse(first)), first.dtype
        self.n_stored = getattr(X, "nnz", None) if self.is_sparse else n_rows * width
        per_row = width if self.n_stored is None else self.n_stored // n_rows
        self._step = rows_at_once(per_row, self.dtype.itemsize)

    def _rows(self, start: int, stop: int) -> Any:
        origin = f"{self.name}, rows {start + 1} to {stop}"
        if isinstance(self._X, np.memmap):
            rows = copy_rows(self._X, start, stop)
        else:
            rows = numeric_input(self._X[start:stop])
        rows = rows if sp.issparse(rows) else np.asarray(rows)
        return as_floats(checked_matrix(rows, origin), origin)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        n_rows = self._X.shape[0]
        for start in range(0, n_rows, self._step):
            stop = min(start + self._step, n_rows)
            rows = self._rows(start, stop)
            origin = f"{self.name}, rows {start + 1} to {stop}"
            yield RowBlock(rows if columns is None else rows[:, columns], origin)


class GivenBlocks(LocalBlocks):
    """Blocks that ``ask()`` gives, again for every pass unless they can be read only once.

    The first block is read when the table is made, and kept for the first pass: a function may
    return the same iterator every time.
    """

    def __init__(
        self, ask: Callable[[], Iterable[Any]], name: str, *, rereadable: bool = True
    ) -> None:
        self._ask, self.name, self.rereadable = ask, name, rereadable
        blocks = self._begin()
        first = next(blocks, None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self._begun: Iterator[Any] | None = chain([first], blocks)
        self._labels = column_labels(first)
        if self._labels is not None and all(isinstance(label, str) for label in self._labels):
            self.feature_names = np.array(self._labels, dtype=object)
        values = _values(first, "block 1")
        self.n_features, self.dtype = int(values.shape[1]), values.dtype
        self.is_sparse = bool(sp.issparse(values))

    def _begin(self) -> Iterator[Any]:
        asked = self._ask()
        return _from_the_first(asked, self.name) if isinstance(asked, Iterator) else iter(asked)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        begun, self._begun = self._begun, None
        for number, given in enumerate(self._begin() if begun is None else begun, 1):
            origin = f"block {number}"
            values = _values(in_order(given, self._labels, origin), origin)
            refuse_misshapen(RowBlock(values, origin), self.n_features)
            n_stored = values.nnz if sp.issparse(values) else values.size
            step = rows_at_once(n_stored // values.shape[0], values.dtype.itemsize)
            for start in range(0, values.shape[0], step):
                rows = values[start : start + step]
                yield RowBlock(rows if columns is None else rows[:, columns], origin)


# Iterators from which blocks were taken, up to their last one: those of fits that failed. Blocks
# cannot be put back, and a second fit would read the other rows only.
_STARTED: deque[Any] = deque(maxlen=8)


def _from_the_first(iterator: Iterator[Any], name: str) -> Iterator[Any]:
    """All blocks of an iterator; raise if some were taken before."""
    if any(started is iterator for started in _STARTED):
        raise DataError(
            f"Blocks are read from the first on; {name} was already consumed, at least in part, by "
            "a fit before this one. Make a new iterator, or give a list of blocks or a function "
            "that returns a new iterator."
        )
    _STARTED.append(iterator)
    yield from iterator
    with suppress(ValueError):  # others took its place meanwhile
        _STARTED.remove(iterator)


def _values(block: Any, origin: str) -> Any:
    """A block as an array or a CSR matrix of floats."""
    block = numeric_input(values_of(block).values if is_anndata(block) else block)
    if is_frame(block):
        return np.column_stack([read_column(column) for _, column in frame_columns(block)])
    if not sp.issparse(block):
        try:
            block = np.asarray(block)
            block = block.astype(np.float64) if block.dtype.kind == "O" else block
        except (TypeError, ValueError) as error:
            raise DataError(
                f"A block is a numeric array, sparse matrix or data frame; {origin} is a "
                f"{type(block).__name__} that holds something else. Drop or encode it."
            ) from error
    return as_floats(checked_matrix(block, origin), origin)


Labels = list[Hashable] | None


def column_labels(block: Any) -> Labels:
    """The labels of the columns of a frame or an Arrow or AnnData table; None for an array."""
    for attribute in ("column_names", "var_names", "columns"):  # an Arrow table's columns are data
        labels = getattr(block, attribute, None)
        if labels is not None and not callable(labels):
            return list(labels)
    return None


def in_order(block: Any, expected: Labels, origin: str, first: str = "the first block") -> Any:
    """The block with its columns in the expected order; raise if they are not the same."""
    found = column_labels(block)
    by_place = [None, list(range(len(found or expected or [])))]
    if found in by_place and expected in by_place:
        return block
    if found is None or expected is None:
        with_labels, without = (first, origin) if found is None else (origin, first)
        raise DataError(
            f"Columns are matched by name, in all blocks or in none; {with_labels} names them and "
            f"{without} does not. Give data frames throughout, or arrays throughout."
        )
    refuse_repeated(found)
    if found == expected or len(found) != len(expected):  # later refused for its number of columns
        return block
    known = set(expected)
    strange = [label for label in found if label not in known]
    if strange:
        raise DataError(
            f"All blocks must have the same columns; {origin} has {shorten(strange[0])}, which "
            f"{first} has not. Leave it out, or name its columns like the others'."
        )
    if hasattr(block, "column_names"):
        return block.select(expected)
    return block[:, expected] if hasattr(block, "var_names") else block[expected]
