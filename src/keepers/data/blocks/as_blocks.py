"""From whatever holds a table to blocks of its rows: input types are dispatched in one place."""

import mmap
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import BlockTable, IndexArray, RowBlock, Sum
from keepers.data.annotated import values_of
from keepers.data.blocks.local import LocalBlocks, refuse_misshapen, rows_at_once
from keepers.data.dask_blocks import DaskBlocks
from keepers.data.foreign_frames import frame_batches
from keepers.data.in_memory import (
    canonical_sparse,
    column_as_floats,
    is_anndata,
    is_dask,
    numeric_input,
)
from keepers.data.table_files import open_blocks
from keepers.data.values import as_values
from keepers.data.wording import duplicates, some_of
from keepers.exceptions import DataError, ParameterError, shorten

# Of the protocol, `BlockTable`.
_MEMBERS = (
    "name",
    "n_features",
    "n_samples",
    "n_stored",
    "dtype",
    "is_sparse",
    "rereadable",
    "is_local",
    "feature_names",
    "total",
)


def as_blocks(source: Any) -> BlockTable:
    """The rows of ``source`` in blocks."""
    if isinstance(source, (LocalBlocks, DaskBlocks)):
        return source
    if is_dask(source):
        return DaskBlocks.of(source)
    if callable(getattr(source, "total", None)) and hasattr(source, "n_features"):
        return _check_protocol(source)
    if isinstance(source, (str, Path)):
        return open_blocks(source)
    if isinstance(source, np.memmap):
        return MappedBlocks(source, "X" if source.filename is None else Path(source.filename).name)
    if is_anndata(source):
        table = values_of(source)
        if is_dask(table.X):
            return replace(DaskBlocks.of(table.X), feature_names=table.feature_names)
        return ArrayBlocks(table.X, "X", table.feature_names)
    batches = frame_batches(source)
    if batches is not None:
        return GivenBlocks(batches, "the data frame")
    if sp.issparse(source) or (hasattr(source, "shape") and hasattr(source, "__getitem__")):
        return ArrayBlocks(source, "X")
    if callable(source):
        return GivenBlocks(source, "the function")
    if isinstance(source, Sequence):
        return _sequence(source)
    if isinstance(source, Iterator):
        return PassingBlocks(source, "the iterator")
    if hasattr(source, "__iter__"):
        return GivenBlocks(lambda: source, f"the {type(source).__name__}")
    raise ParameterError(
        "Blocks come from a file, a folder, an array, a list of blocks, a function that returns "
        "an iterator, an iterator, a Dask collection or a block table of your own; got a "
        f"{type(source).__name__}."
    )


def number_rows(source: BlockTable) -> BlockTable:
    """The same table, whose sums learn where in the table their rows stand.

    Sums of a table that is read here do anyway: blocks come in order, into one sum. A Dask
    collection may have to count the rows of its partitions first.
    """
    return source.count_rows() if isinstance(source, DaskBlocks) else source


def _check_protocol(source: Any) -> BlockTable:
    """An object of the user's that follows the protocol."""
    lacking = [member for member in _MEMBERS if not hasattr(source, member)]
    if lacking:
        raise ParameterError(
            f"A block table must have {', '.join(_MEMBERS)}; the {type(source).__name__} given "
            f'lacks {", ".join(lacking)}. The page "How it scales" shows a class that has all.'
        )
    return ForeignBlocks(source)


def _sequence(source: Sequence[Any]) -> BlockTable:
    if source and all(isinstance(part, (str, Path)) for part in source):
        return open_blocks(list(source))
    return GivenBlocks(lambda: source, "the list")


class ArrayBlocks(LocalBlocks):
    """Rows of something with a shape, a dtype and slices, which may lie on a disk."""

    def __init__(self, X: Any, name: str, feature_names: Any = None) -> None:
        if len(X.shape) != 2:
            raise DataError(
                f"A table has two dimensions (samples, features); {name} has {len(X.shape)}. "
                "Reshape it."
            )
        self._X = canonical_sparse(X).tocsr() if sp.issparse(X) else X
        self.name = name
        self.n_samples, self.n_features = (int(length) for length in X.shape)
        if self.n_samples == 0 or self.n_features == 0:
            raise DataError(
                f"A table needs at least one row and one column; {name} is {self.n_samples} x "
                f"{self.n_features}."
            )
        first = as_values(self._rows(0, 1), name)
        self.is_sparse = bool(sp.issparse(first))
        self.dtype = first.dtype
        self.n_stored = self.n_samples * self.n_features
        if self.is_sparse:
            nnz = getattr(X, "nnz", None)
            self.n_stored = None if nnz is None else int(nnz)
        self.feature_names = feature_names
        self._step = rows_at_once(self.n_features, self.dtype.itemsize)
        if self.is_sparse and self.n_stored:
            per_row = max(1, self.n_stored // self.n_samples)
            self._step = rows_at_once(per_row, self.dtype.itemsize + 4)

    def _rows(self, start: int, stop: int) -> Any:
        rows = numeric_input(self._X[start:stop])
        return rows if sp.issparse(rows) else np.asarray(rows)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """Row slices."""
        return self.blocks_after(0, columns)

    def blocks_after(self, n_rows: int, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """Row slices after the first ``n_rows`` rows."""
        assert self.n_samples is not None
        for start in range(n_rows, self.n_samples, self._step):
            stop = min(start + self._step, self.n_samples)
            origin = f"{self.name}, rows {start + 1} to {stop}"
            values = as_values(self._rows(start, stop), origin)
            yield RowBlock(values if columns is None else values[:, columns], origin)


class MappedBlocks(ArrayBlocks):
    """Rows of a memory map, copied out block by block.

    Pages that were looked at count as memory of the process until the system takes them back, which
    would make a budget hard to keep; so they are given back after every block. The map itself is
    read, never its file: the file may have been replaced or deleted, the array may be a part of it
    in any order, and changes to a copy-on-write map are in no file.
    """

    def __init__(self, X: Any, name: str) -> None:
        # The changes to a copy-on-write map are lost with its pages.
        self._map = None if X.mode == "c" else X._mmap
        super().__init__(X, name)

    def _rows(self, start: int, stop: int) -> Any:
        rows = np.array(self._X[start:stop], subok=False)
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        return rows


class GivenBlocks(LocalBlocks):
    """Blocks that can be asked for again and again.

    The first block is looked at when the table is made, and kept for the first pass: a function
    may return the same iterator every time.
    """

    def __init__(self, ask: Callable[[], Iterable[Any]], name: str) -> None:
        self._ask = ask
        self.name = name
        blocks = self._begin()
        first = next(blocks, None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self._describe(first)
        self._begun: Iterator[Any] | None = chain([first], blocks)

    def _describe(self, first: Any) -> None:
        """What the first block tells of all."""
        self._labels = column_labels(first)
        self.feature_names = string_names(self._labels)
        values = _values(first, "block 1")
        self.n_features = int(values.shape[1])
        self.dtype = values.dtype
        self.is_sparse = bool(sp.issparse(values))

    def _begin(self) -> Iterator[Any]:
        """The blocks from the first; an error if an iterator was begun before."""
        asked = self._ask()
        if not isinstance(asked, Iterator):
            return iter(asked)
        if _started.holds(asked):
            raise DataError(
                f"Blocks are read from the first on; {self.name} was already consumed, at least in "
                "part, by a fit before this one. Make a new iterator, or give a list of blocks or "
                "a function that returns a new iterator."
            )
        return _started.blocks_of(asked)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The blocks, long ones cut."""
        begun, self._begun = self._begun, None
        for number, given in enumerate(self._begin() if begun is None else begun, 1):
            origin = f"block {number}"
            if number > 1 or begun is None:
                given = in_order(given, self._labels, origin)
            yield from _cut(_values(given, origin), origin, self.n_features, columns)


class PassingBlocks(GivenBlocks):
    """Blocks that pass by once."""

    rereadable = False

    def __init__(self, blocks: Iterator[Any], name: str) -> None:
        super().__init__(lambda: blocks, name)


class _StartedIterators:
    """Iterators from which blocks were taken, up to their last one.

    What was taken cannot be put back: a second fit would see the rest of the rows only.
    """

    def __init__(self) -> None:
        self._weak: WeakValueDictionary[int, Any] = WeakValueDictionary()
        # Those of built-in types have no weak references. They are few: fits that failed.
        self._others: deque[Any] = deque(maxlen=64)

    def holds(self, iterator: Iterator[Any]) -> bool:
        """Whether blocks were taken from it."""
        known = self._weak.get(id(iterator))
        return known is iterator or any(other is iterator for other in self._others)

    def blocks_of(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """The blocks; the iterator is remembered from the first one on, until it has no more."""
        try:
            self._weak[id(iterator)] = iterator
        except TypeError:
            self._others.append(iterator)
        yield from iterator
        self._weak.pop(id(iterator), None)
        for at, other in enumerate(self._others):
            if other is iterator:
                del self._others[at]
                break


_started = _StartedIterators()


class ForeignBlocks:
    """An object of the user's that follows `BlockTable`; what it hands over is checked."""

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self.name = str(table.name)
        self.n_features = int(table.n_features)
        self.n_samples, self.n_stored = table.n_samples, table.n_stored
        self.dtype = np.dtype(table.dtype)
        self.is_sparse, self.rereadable = bool(table.is_sparse), bool(table.rereadable)
        self.is_local = bool(table.is_local)
        names = table.feature_names
        self.feature_names = None if names is None else np.asarray(names, dtype=object)
        if self.dtype not in (np.float32, np.float64):
            raise ParameterError(
                f"dtype of a block table must be float64 or float32; {self.name} has {self.dtype}."
            )
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ParameterError(
                f"A block table must have a name for each of its {self.n_features} columns, or "
                f"feature_names None; {self.name} has {len(self.feature_names)}."
            )

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks, each of which is checked."""
        width = self.n_features if columns is None else len(columns)
        found = self._table.total(lambda: _CheckedSum(begin(), width, self), columns)
        if not isinstance(found, _CheckedSum):
            raise ParameterError(
                f"total(begin, columns) must return a sum made by begin(); that of {self.name} "
                f"returned a {type(found).__name__}."
            )
        result: Sum = found.inner
        return result


class _CheckedSum:
    """A sum that looks at every block before it is added."""

    def __init__(self, inner: Any, width: int, kind: ForeignBlocks) -> None:
        self.inner = inner
        self._width = width
        self._dtype, self._is_sparse = kind.dtype, kind.is_sparse

    @property
    def n_bytes(self) -> float:
        """Memory it takes."""
        return float(self.inner.n_bytes)

    def add(self, block: RowBlock) -> None:
        """Take a block in, as the kind of matrix that the table declares."""
        values = _values(block.values, block.origin)
        refuse_misshapen(RowBlock(values, block.origin), self._width)
        if self._is_sparse:
            values = sp.csr_matrix(values)
        elif sp.issparse(values):
            values = values.toarray()
        values = values.astype(self._dtype, copy=False)
        self.inner.add(RowBlock(values, block.origin, start=block.start))

    def merge(self, other: "_CheckedSum") -> None:
        """Take in what was summed over other blocks."""
        self.inner.merge(other.inner)


def _cut(
    values: Any, origin: str, n_features: int, columns: IndexArray | None
) -> Iterator[RowBlock]:
    """Blocks of a size that is good to work with; a misshapen one as it is, to be refused."""
    if values.shape[1] != n_features or values.shape[0] == 0:
        yield RowBlock(values, origin)
        return
    per_row = n_features
    if sp.issparse(values):
        per_row = max(1, values.nnz // values.shape[0])
    step = rows_at_once(per_row, values.dtype.itemsize)
    for start in range(0, values.shape[0], step):
        rows = values[start : start + step]
        yield RowBlock(rows if columns is None else rows[:, columns], origin)


def _values(block: Any, origin: str) -> Any:
    if is_anndata(block):
        block = values_of(block).X
    block = numeric_input(block)
    if sp.issparse(block):
        return as_values(block, origin)
    if isinstance(block, (str, bytes, dict)):
        raise ParameterError(
            f"A block is an array, a sparse matrix or a data frame; {origin} is a "
            f"{type(block).__name__}."
        )
    frame = block
    if hasattr(block, "column_names"):  # Arrow: column by column, whatever its version can do
        block = np.column_stack([np.asarray(column) for column in block.columns])
    elif hasattr(block, "to_numpy") and hasattr(block, "columns"):
        block = block.to_numpy()
    values = np.asarray(block)
    if values.dtype.kind == "O":
        try:
            values = column_as_floats(frame if hasattr(frame, "isna") else values)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Every column must be numeric; {origin} holds something else. Drop or encode it."
            ) from error
    return as_values(values, origin)


Labels = list[Hashable] | None


def column_labels(block: Any) -> Labels:
    """The labels of the columns of a frame or an Arrow or AnnData table; None for an array."""
    for attribute in ("column_names", "var_names", "columns"):  # an Arrow table's columns are data
        labels = getattr(block, attribute, None)
        if labels is not None and not callable(labels):
            return list(labels)
    return None


def string_names(labels: Labels) -> NDArray[np.object_] | None:
    """The labels as names of features, if all of them are strings."""
    if labels is None or not all(isinstance(label, str) for label in labels):
        return None
    return np.array(labels, dtype=object)


def in_order(block: Any, expected: Labels, origin: str, first: str = "the first block") -> Any:
    """The block with its columns in the expected order; an error if they are not the same."""
    found = column_labels(block)
    if _by_place(found, expected):
        return block
    if found is None or expected is None:
        with_labels, without = (first, origin) if found is None else (origin, first)
        raise DataError(
            f"Columns are matched by name, in all blocks or in none; {with_labels} names them and "
            f"{without} does not. Give data frames throughout, or arrays throughout."
        )
    refuse_repeated(found, origin)
    refuse_repeated(expected, first)
    if found == expected:
        return block
    if set(found) == set(expected):
        return _select_columns(block, expected)
    if len(found) != len(expected):
        return block  # refused for its number of columns
    known = set(expected)
    strange = next(label for label in found if label not in known)
    raise DataError(
        f"All blocks must have the same columns; {origin} has {shorten(strange)}, which {first} "
        "has not. "
        "Leave it out, or name its columns like the others'."
    )


def _by_place(found: Labels, expected: Labels) -> bool:
    """Whether neither has labels but those that count the columns."""
    counted = [None, list(range(len(found or expected or [])))]
    return found in counted and expected in counted


def refuse_repeated(labels: Sequence[Hashable], origin: str) -> None:
    """Raise for labels by which columns cannot be told apart."""
    if len(set(labels)) < len(labels):
        raise DataError(
            f"Column names must differ to be matched between blocks; {origin} has duplicate "
            f"names: {some_of(duplicates(labels))}. Rename all but one of each."
        )


def _select_columns(block: Any, labels: Sequence[Hashable]) -> Any:
    if hasattr(block, "column_names"):
        return block.select(labels)
    if hasattr(block, "var_names"):
        return block[:, labels]
    return block[list(labels)]
