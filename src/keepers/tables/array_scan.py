"""Matrices in files, read in blocks of rows: memory maps, arrays of HDF5 and Zarr, CSR parts."""

import copy
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from keepers._protocols import IndexArray, RowBlock
from keepers._wording import some_of
from keepers.exceptions import DataError, shorten
from keepers.tables.scans import (
    BLOCK_BYTES,
    FileScan,
    even_ranges,
    known_sum,
    reading,
    rows_at_once,
)
from keepers.tables.table import (
    ReadRequest,
    Table,
    as_floats,
    as_texts,
    checked_matrix,
    numbered_names,
    refuse_absent,
    refuse_shape,
    table_of_matrix,
    unique_names,
)


class DenseRows:
    """Rows of an array: a memory map, or an array of HDF5 or Zarr."""

    is_sparse = False

    def __init__(self, array: Any) -> None:
        self._array: Any = checked_matrix(array, "the array")
        self.shape = tuple(array.shape)

    def read(self, start: int, stop: int) -> Any:
        """Some rows in memory."""
        rows = np.asarray(self._array[start:stop])
        mapped = getattr(self._array, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            rows = rows.copy(order="K")
            # Pages that were read count as memory of the process until they are given back.
            mapped.madvise(mmap.MADV_DONTNEED)
        return rows

    @property
    def step(self) -> int:
        """Number of rows of a block; blocks end where chunks end, to expand each chunk once."""
        step = rows_at_once(self.shape[1], self._array.dtype.itemsize, BLOCK_BYTES)
        tall = int((getattr(self._array, "chunks", None) or (1,))[0])
        # Taller chunks are cut, and expanded again.
        return max(1, step // tall) * tall if tall <= 8 * step else step

    def n_stored(self, rows: range) -> int:
        """Number of values in some rows."""
        return len(rows) * int(self.shape[1])


class SparseRows:
    """Rows of a CSR matrix whose parts (data, indices, indptr) are arrays of HDF5 or Zarr."""

    is_sparse = True

    def __init__(self, parts: Sequence[Any], shape: tuple[int, int]) -> None:
        self._data, self._indices, self._indptr = parts
        self.shape = shape

    def read(self, start: int, stop: int) -> Any:
        """Some rows as a CSR matrix; SciPy raises for parts that do not fit together."""
        pointers = self._indptr[start : stop + 1].astype(np.int64)
        entries = slice(int(pointers[0]), int(pointers[-1]))
        parts = (self._data[entries], self._indices[entries], pointers - pointers[0])
        X = sp.csr_matrix(parts, shape=(stop - start, self.shape[1]))
        return checked_matrix(X, "X")

    @property
    def step(self) -> int:
        """Number of rows of a block, which holds about `BLOCK_BYTES` of entries."""
        n_bytes = self._data.nbytes + self._indices.nbytes
        return max(1, self.shape[0] * BLOCK_BYTES // max(n_bytes, 1))

    def n_stored(self, rows: range) -> int:
        """Number of stored values in some rows."""
        return int(self._indptr[rows.stop]) - int(self._indptr[rows.start])


class ArrayScan(FileScan):
    """A matrix in a file, opened anew for each pass; no file stays open between calls.

    ``open_rows()`` opens the file and gives its `DenseRows` or `SparseRows`; it is picklable.
    ``names`` are those of all columns, None numbers them. ``ids`` and ``labels`` have an entry for
    each row; None: there are none, or they are columns of the matrix.
    """

    def __init__(
        self,
        path: Path,
        open_rows: Callable[[], AbstractContextManager[DenseRows | SparseRows]],
        request: ReadRequest,
        names: Any = None,
        ids: Any = None,
        labels: Any = None,
    ) -> None:
        self.path, self.name, self._open_rows, self._request = path, path.name, open_rows, request
        self._ids, self._labels = ids, labels
        with open_rows() as stored:
            self._shape, self.is_sparse = stored.shape, stored.is_sparse
            self._rows = range(self._shape[0])
            self.n_stored: int = stored.n_stored(self._rows)
            first = stored.read(0, 1)
        texts = numbered_names(self._shape[1]) if names is None else as_texts(names, "names")
        self._names = unique_names(texts, make_unique=request.make_unique)
        for what, vector in (("labels", labels), ("sample names", ids)):
            if vector is not None and len(vector) != self._shape[0]:
                raise DataError(
                    f"{what} must have {self._shape[0]} entries, one for each row; "
                    f"{shorten(self.name)} has {len(vector)}. Check that samples are rows."
                )
        # The first row shows which columns are features, and the kind of their numbers.
        known = self._table(first, self._rows[:1])
        self.features, self.feature_names = known.columns, known.names
        self.dtype = known.values.dtype
        self.labels = request.labels or (None if labels is None else "label")
        self.identifier = request.identifier or (None if ids is None else "sample")
        self.n_features, self.n_samples = known.n_features, len(self._rows)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of the features, in order, if given."""
        names = list(self.feature_names if columns is None else self.feature_names[columns])
        place = {name: at for at, name in enumerate(self._names)}
        chosen = slice(None) if names == self._names else [place[name] for name in names]
        for rows, X in self._read():
            origin = f"{self.name}, rows {rows.start + 1} to {rows.stop}"
            values = as_floats(X[:, chosen], origin, names)
            yield RowBlock(values.astype(self.dtype, copy=False), origin)

    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """Blocks of rows as tables with labels and sample names; some features if ``names``."""
        refuse_absent(names or (), self.features)
        chosen = set(self.features if names is None else names)
        wanted = [name for name in self.features if name in chosen]
        for rows, X in self._read():
            table = self._table(X, rows)
            if wanted != table.columns:
                place = {name: at for at, name in enumerate(table.names)}
                values = table.values[:, [place[name] for name in wanted]]
                table = replace(table, values=values, names=np.array(wanted, dtype=object))
            yield replace(table, values=table.values.astype(self.dtype, copy=False))

    def whole(self) -> Table:
        """The table in memory; raise if it is larger than the request allows."""
        shape = (self._shape[0] + 2 * self.n_stored,) if self.is_sparse else self._shape
        refuse_shape(shape, 8, f"The matrix in {shorten(self.name)}", self._request.max_bytes)
        with self._open_rows() as stored:
            return self._table(stored.read(0, self._shape[0]), self._rows)

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as at most ``n_parts`` ranges of them."""
        twins = []
        with self._open_rows() as stored:
            for rows in even_ranges(self._rows, n_parts):
                twins.append(twin := copy.copy(self))
                twin._ids, twin._labels = self._beside(rows)
                twin._rows, twin.n_samples, twin.n_stored = rows, len(rows), stored.n_stored(rows)
        return twins

    def _read(self) -> Iterator[tuple[range, Any]]:
        with reading(self.path, "array"), self._open_rows() as stored:
            if stored.shape != self._shape:
                raise DataError("It was changed since it was opened. Open it again.")
            step = stored.step
            inner = range(self._rows.start // step * step + step, self._rows.stop, step)
            for start, stop in pairwise([self._rows.start, *inner, self._rows.stop]):
                yield range(start, stop), stored.read(start, stop)

    def _table(self, X: Any, rows: range) -> Table:
        return table_of_matrix(X, self._request, self.name, self._names, *self._beside(rows))

    def _beside(self, rows: range) -> list[Any]:
        """Sample names and labels of some rows."""
        part = slice(rows.start - self._rows.start, rows.stop - self._rows.start)
        return [None if vector is None else vector[part] for vector in (self._ids, self._labels)]


class ArraySequence(FileScan):
    """The rows of several files with the same columns, one file after the other."""

    def __init__(self, name: str, scans: Sequence[ArrayScan]) -> None:
        first = scans[0]
        self.name, self.is_sparse, self.features = name, first.is_sparse, first.features
        self.feature_names, self.n_features = first.feature_names, first.n_features
        self.identifier, self.labels, self._scans = first.identifier, first.labels, scans
        self.n_samples = known_sum(scan.n_samples for scan in scans)
        self.n_stored = known_sum(scan.n_stored for scan in scans)
        self.dtype = np.result_type(*(scan.dtype for scan in scans))
        for scan in scans:
            _refuse_different(first, scan)
            # Every file hands over its columns in the order and the kind of the first.
            scan.features, scan.feature_names = self.features, self.feature_names
            scan.dtype = self.dtype

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        for scan in self._scans:
            yield from scan.blocks(columns)

    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        for scan in self._scans:
            yield from scan.tables(names)

    def parts(self, n_parts: int) -> list[ArrayScan]:
        """The same rows as about ``n_parts`` scans: ranges of rows of each file."""
        share = max(1, n_parts // len(self._scans))
        return [part for scan in self._scans for part in scan.parts(share)]


def _refuse_different(first: ArrayScan, scan: ArrayScan) -> None:
    """Raise unless two files can be parts of one table."""
    apart = sorted(map(repr, set(first.features) ^ set(scan.features)))
    if apart or first.is_sparse != scan.is_sparse:
        raise DataError(
            f"All files of a table must have the same columns; {scan.path} differs from "
            f"{first.name} in {some_of(apart) or 'being sparse'}. Leave it out, or write it again "
            "with the columns of the others."
        )
