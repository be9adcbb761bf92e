"""Tables that are read in blocks of rows: from files, or held in memory."""

import copy
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock, Sum
from keepers._wording import some_of
from keepers.exceptions import DataError, shorten
from keepers.tables.atomic import reading
from keepers.tables.table import (
    ReadRequest,
    Table,
    checked_matrix,
    refuse_absent,
    refuse_shape,
    table_of_matrix,
)

BLOCK_BYTES = 8 * 2**20
"""Large enough for one product per block to be efficient, small enough for a cache to help."""


def rows_at_once(n_columns: int, itemsize: int = 8) -> int:
    """Number of rows of ``n_columns`` columns that make a block."""
    return max(1, BLOCK_BYTES // (max(n_columns, 1) * itemsize))


class LocalBlocks(ABC):
    """A `BlockTable` that this process reads; a kind of storage implements ``blocks``."""

    name: str
    n_features: int
    dtype: np.dtype[Any]
    n_samples: int | None = None
    n_stored: int | None = None
    is_sparse: bool = False
    is_local: bool = True
    feature_names: NDArray[np.object_] | None = None

    @abstractmethod
    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of them, in that order, if given."""

    def parts(self, n_parts: int) -> Sequence["LocalBlocks"]:
        """The same rows as about ``n_parts`` tables, for workers to share."""
        return [self]

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        result = begin()
        width = self.n_features if columns is None else len(columns)
        for block in self.blocks(columns):
            refuse_misshapen(block, width)
            result.add(block)
        return result


def refuse_misshapen(block: RowBlock, width: int) -> None:
    """Raise for a block without rows, or with another number of columns."""
    n_rows, n_columns = block.values.shape
    if n_columns != width:
        raise DataError(
            f"Every block must have the same {width} columns; {block.origin} has {n_columns}."
        )
    if n_rows == 0:
        raise DataError(f"Every block must hold rows; {block.origin} holds none. Leave it out.")


class Source(NamedTuple):
    """Rows of one file, or of a table in memory."""

    label: str
    stored: Any
    """A lazy frame of polars, an `ArrayFile`, or a `Table`."""
    rows: range
    per_row: float
    """Stored values of a row."""

    @property
    def n_stored(self) -> int:
        """Number of stored values; exact for all rows, and parts add up to it."""
        return round(self.per_row * self.rows.stop) - round(self.per_row * self.rows.start)


class FileScan(LocalBlocks):
    """A table in one file or in several, read in blocks of rows.

    No file stays open between calls, so a scan can be sent to another process.

    Attributes
    ----------
    features : list of str
        All features in the order of the source.
    feature_names : object array of str
        The features that are numbers.
    others : list of str
        The features that hold text or dates.
    identifier, labels : str or None
        Columns with sample names and classes.
    types : mapping of str to polars type
        As in `Table`.
    """

    features: list[str]
    feature_names: NDArray[np.object_]
    others: Sequence[str] = ()
    identifier: str | None = None
    labels: str | None = None
    types: Mapping[str, Any] = MappingProxyType({})
    _sources: list[Source]

    @property
    def columns(self) -> list[str]:
        """As in `Table`."""
        return self.features

    @abstractmethod
    def _read(self, names: list[str], *, roles: bool) -> Iterator[tuple[int, Table]]:
        """The columns ``names`` block by block, and the number of the first row in its file.

        ``roles``: with sample names and classes.
        """

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of the features, in order, if given."""
        chosen = self.feature_names if columns is None else self.feature_names[columns]
        step = rows_at_once(len(chosen), self.dtype.itemsize)
        for row, table in self._read([str(name) for name in chosen], roles=False):
            values = self._arrange(table, list(chosen)).values
            step = values.shape[0] if self.is_sparse else step
            for start in range(0, values.shape[0], step):
                rows = values[start : start + step]
                first, last = row + start + 1, row + start + rows.shape[0]
                yield RowBlock(rows, f"{table.name}, rows {first} to {last}")

    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """The rows, block after block, with sample names, classes, text and dates.

        ``names``: only these features, in the order of the source.
        """
        refuse_absent(names or (), self.features)
        chosen = set(self.features if names is None else names)
        wanted = [name for name in self.features if name in chosen]
        numbers = [name for name in self.feature_names if name in chosen]
        for _, table in self._read(wanted, roles=True):
            yield replace(self._arrange(table, numbers), features=wanted)

    def _arrange(self, table: Table, names: Sequence[str]) -> Table:
        """The numbers in the order of ``names``, in the precision of the whole table."""
        values, wanted = table.values, np.array(names, dtype=object)
        if not np.array_equal(wanted, table.names):
            place = {name: at for at, name in enumerate(table.names)}
            values = values[:, [place[name] for name in names]]
        return replace(table, values=values.astype(self.dtype, copy=False), names=wanted)

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as about ``n_parts`` scans: ranges of rows of each file."""
        share = max(1, (self.n_samples or 1) // n_parts)
        found = []
        for source in self._sources:
            n_pieces = max(1, round(len(source.rows) / share))
            cuts = np.linspace(source.rows.start, source.rows.stop, n_pieces + 1).astype(int)
            for start, stop in pairwise(cuts.tolist()):
                found.append(copy.copy(self))
                found[-1]._set_sources([source._replace(rows=range(start, stop))])
        return found

    def _set_sources(self, sources: list[Source]) -> None:
        self._sources = sources
        self.n_samples = sum(len(source.rows) for source in sources)
        self.n_stored = sum(source.n_stored for source in sources)


class MemoryScan(FileScan):
    """A table in memory, in blocks of rows: for code that reads blocks."""

    def __init__(self, table: Table) -> None:
        self.name, self.types, self.is_sparse = table.name, table.types, table.is_sparse
        self.features, self.others = table.columns, table.others
        self.feature_names, self.n_features = table.names, table.n_features
        self.dtype, rows = table.values.dtype, range(table.n_samples)
        self.identifier = None if table.ids is None else "sample"
        self.labels = None if table.labels is None else "label"
        per_row = table.values.nnz / len(rows) if table.is_sparse else table.n_features
        self._set_sources([Source(table.name, table, rows, per_row)])

    def _read(self, names: list[str], *, roles: bool) -> Iterator[tuple[int, Table]]:
        for _, table, rows, _ in self._sources:
            part = table if len(rows) == table.n_samples else table.take(np.array(rows))
            yield rows.start, part if names == part.columns else part.select(names)


def copy_rows(array: Any, start: int, stop: int) -> Any:
    """Some rows of an array in memory; those of a memory map are copied.

    Its pages that were read count as memory of the process until they are given back. The changes
    to a copy-on-write map are lost with its pages, which stay.
    """
    rows = np.asarray(array[start:stop])
    mapped = getattr(array, "_mmap", None)
    if mapped is None or array.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return rows
    rows = rows.copy(order="K")
    mapped.madvise(mmap.MADV_DONTNEED)
    return rows


@dataclass(frozen=True)
class StoredRows:
    """Rows of a matrix in an open file: ``read(start, stop)`` gives some, ``step`` make a block."""

    shape: tuple[int, int]
    read: Callable[[int, int], Any]
    step: int
    n_stored: int
    is_sparse: bool = False


def dense_rows(array: Any) -> StoredRows:
    """Rows of a memory map, or of an array of HDF5."""
    checked_matrix(array, "the array")
    n_rows, width = map(int, array.shape)
    step = rows_at_once(width, array.dtype.itemsize)
    tall = int((getattr(array, "chunks", None) or (1,))[0])
    if tall <= 8 * step:  # blocks end where chunks end, to expand each chunk once
        step = max(1, step // tall) * tall
    return StoredRows((n_rows, width), partial(copy_rows, array), step, n_rows * width)


def sparse_rows(group: Any, shape: tuple[int, int]) -> StoredRows:
    """Rows of a CSR matrix whose parts are arrays of a group of HDF5."""
    data, indices, indptr = group["data"], group["indices"], group["indptr"]

    def read(start: int, stop: int) -> Any:
        """SciPy raises for parts that do not fit together."""
        pointers = indptr[start : stop + 1].astype(np.int64)
        entries = slice(int(pointers[0]), int(pointers[-1]))
        parts = (data[entries], indices[entries], pointers - pointers[0])
        return sp.csr_matrix(parts, shape=(stop - start, shape[1]))

    step = max(1, shape[0] * BLOCK_BYTES // max(data.nbytes + indices.nbytes, 1))
    return StoredRows(shape, read, step, int(data.shape[0]), is_sparse=True)


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """A matrix in a file, with what names its columns and its rows.

    ``open_rows()`` opens the file and gives its `StoredRows`; it can be pickled.
    ``names`` are those of all columns, None numbers them. ``ids`` and ``labels`` have an entry for
    each row; None: there are none, or they are columns of the matrix.
    """

    path: Path
    open_rows: Callable[[], AbstractContextManager[StoredRows]]
    request: ReadRequest
    names: Any = None
    ids: Any = None
    labels: Any = None

    @contextmanager
    def open(self) -> Iterator[StoredRows]:
        """Open the file; raise if what names its rows has another length."""
        with reading(self.path, "array"), self.open_rows() as stored:
            for what, vector in (("labels", self.labels), ("sample names", self.ids)):
                if vector is not None and len(vector) != stored.shape[0]:
                    raise DataError(
                        f"{what} must have {stored.shape[0]} entries; there are {len(vector)}."
                    )
            yield stored

    def table(self, X: Any, start: int = 0) -> Table:
        """The rows X of the file from ``start`` on, with their names and classes."""
        part = slice(start, start + X.shape[0])
        ids, labels = (None if each is None else each[part] for each in (self.ids, self.labels))
        return table_of_matrix(X, self.request, self.path.name, self.names, ids, labels)

    def whole(self) -> Table:
        """The table in memory; raise if it is larger than the request allows."""
        with self.open() as stored:
            shape = (stored.shape[0] + 2 * stored.n_stored,) if stored.is_sparse else stored.shape
            what = f"The matrix in {shorten(self.path.name)}"
            refuse_shape(shape, what, self.request.max_bytes)
            return self.table(stored.read(0, stored.shape[0]))


class ArrayScan(FileScan):
    """Matrices in files, one below the other, each opened anew for every pass."""

    def __init__(self, name: str, files: Sequence[ArrayFile]) -> None:
        sources, tables = [], []
        for file in files:
            with file.open() as stored:
                tables.append(file.table(stored.read(0, 1)))  # shows the columns and their kind
                n_rows = int(stored.shape[0])
                per_row = stored.n_stored / max(n_rows, 1)
                sources.append(Source(file.path.name, file, range(n_rows), per_row))
        first, request = tables[0], files[0].request
        for table in tables[1:]:
            refuse_other_columns(first.name, first.columns, table.name, table.columns)
            if table.is_sparse != first.is_sparse:
                raise DataError(f"{table.name} and {first.name} must both be sparse, or neither.")
        self.name, self.is_sparse, self.features = name, first.is_sparse, first.columns
        self.feature_names, self.n_features = first.names, first.n_features
        self.dtype = np.result_type(*(table.values.dtype for table in tables))
        self.labels = request.labels or (None if first.labels is None else "label")
        self.identifier = request.identifier or (None if first.ids is None else "sample")
        self._set_sources(sources)

    def _read(self, names: list[str], *, roles: bool) -> Iterator[tuple[int, Table]]:
        for _, file, rows, _ in self._sources:
            with reading(file.path, "array"), file.open_rows() as stored:
                if stored.shape[0] < rows.stop:
                    raise DataError("It was changed since it was opened. Open it again.")
                step = stored.step
                inner = range(rows.start // step * step + step, rows.stop, step)
                for start, stop in pairwise([rows.start, *inner, rows.stop]):
                    yield start, file.table(stored.read(start, stop), start)


def refuse_other_columns(
    first: str, expected: Sequence[str], other: str, found: Sequence[str]
) -> None:
    """Raise unless two files have the same columns, in any order."""
    lacking = [repr(name) for name in expected if name not in set(found)]
    added = [repr(name) for name in found if name not in set(expected)]
    told = [f"lacks {some_of(lacking)}"] * bool(lacking) + [f"adds {some_of(added)}"] * bool(added)
    if told:
        raise DataError(
            f"All files of a table must have the same columns; {first} has {len(expected)}, and "
            f"{other} {' and '.join(told)}. Leave it out."
        )


def known_sum(numbers: Iterable[float | None]) -> int | None:
    """The sum, or None if one of the numbers is not known (None, or nan in Dask)."""
    total = sum(np.nan if number is None else number for number in numbers)
    return None if np.isnan(total) else int(total)
