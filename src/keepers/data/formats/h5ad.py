"""AnnData files (.h5ad), read with h5py: the layout is HDF5 with a few conventions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from keepers._packages import optional
from keepers._protocols import IndexArray
from keepers.data.blocks.files import MatrixBlocks, reading
from keepers.data.blocks.local import BLOCK_BYTES, even_ranges
from keepers.data.formats.anndata_frame import (
    SPARSE_PARTS,
    StoredFrame,
    is_stored_sparse,
    refuse_absent_parts,
    refuse_other_count,
    sparse_layout,
)
from keepers.data.formats.hdf5 import (
    DatasetBlocks,
    open_hdf5,
    open_hdf5_numbers,
    own_member,
    read_dataset,
    refuse_short_chunks,
    refuse_unsound,
)
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.table import ReadRequest, WrittenTable, unique_names
from keepers.data.values import as_names
from keepers.exceptions import DataError, ParameterError, shorten

_TITLE = "AnnData"
STARTS_AT_ONCE = 2**18
_CHANGED = "It was changed since it was opened. Open it again."
_UNSOUND = (
    "The row pointers of X ('indptr') must rise from 0 to the number of its entries; here they do "
    "not: the file is damaged. Obtain or write it again."
)


def open_h5ad(path: Path, request: ReadRequest) -> "DatasetBlocks | SparseCellBlocks":
    """Find names, shape and kind of numbers; labels and sample names are columns of obs."""
    with reading(path, _TITLE), open_hdf5(path) as file:
        refuse_absent_parts(file)
        obs, node = own_member(file, "obs"), own_member(file, "X")
        for name in (request.labels, request.identifier):
            if name is not None:
                _frame(obs, request).refuse_absent(name)
        names = variable_names(file, request)
        columns = replace(request, labels=None, identifier=None)
        table: DatasetBlocks | SparseCellBlocks
        if is_stored_sparse(node):
            refuse_other_count(names, anndata_layout(node).shape[1])
            table = SparseCellBlocks(path, "X", node, names, columns, anndata_layout)
        else:
            refuse_unsound(node, request.limit)
            if node.ndim != 2:
                raise DataError(
                    f"X has two dimensions (samples, features); here it has {node.ndim}."
                )
            refuse_other_count(names, node.shape[1])
            table = DatasetBlocks(path, node, names, columns, _TITLE)
        table.annotate(partial(_read_obs, path, request), request.labels)
        return table


def variable_names(file: Any, request: ReadRequest) -> list[str]:
    """The names of the columns of X."""
    var = _frame(own_member(file, "var"), request)
    names = as_names(var.column(var.index_name), "var")
    return unique_names(list(names), make_unique=request.make_unique)


def _read_obs(path: Path, request: ReadRequest) -> tuple[Any, Any]:
    """Labels and sample names of a file whose text was proven when it was opened."""
    with open_hdf5_numbers(path) as file:
        obs = _frame(own_member(file, "obs"), request)
        names = obs.column(request.identifier or obs.index_name)
        labels = None if request.labels is None else obs.column(request.labels)
    return labels, names


def _frame(node: Any, request: ReadRequest) -> StoredFrame:
    def read(dataset: Any, field: str | None = None) -> Any:
        return read_dataset(dataset, request, field)

    return StoredFrame(node, own_member, read)


@dataclass(frozen=True)
class SparseLayout:
    """How a sparse matrix lies in a group."""

    shape: tuple[int, int]
    """Samples x features."""
    by_rows: bool
    """Whether the values of a sample lie together."""


def anndata_layout(node: Any) -> SparseLayout:
    """The layout that the attributes of a group tell."""
    if not is_stored_sparse(node):
        raise DataError(_CHANGED)
    return SparseLayout(*sparse_layout(node, own_member(node, "indptr")))


class SparseCellBlocks(MatrixBlocks):
    """Rows of a sparse X, cut out of its stored parts; one block if all rows are wanted."""

    title = _TITLE
    is_sparse = True
    _proven = False
    """Whether the chunks were seen to be whole, which costs as much as reading them."""

    def __init__(
        self,
        path: Path,
        group: str,
        node: Any,
        names: list[str],
        request: ReadRequest,
        layout_of: Callable[[Any], SparseLayout],
    ) -> None:
        layout = layout_of(node)
        if not layout.by_rows and not request.whole:
            raise DataError(
                "X must be stored by rows to be read in blocks of rows; here it is stored by "
                "columns (CSC). Convert it once where it fits in memory: adata.X = "
                "adata.X.tocsr(), then adata.write_h5ad(...)."
            )
        parts = checked_parts(node, request, layout)
        n_entries = int(parts["data"].shape[0])
        super().__init__(path, names, request, layout.shape[0], parts["data"].dtype, n_entries)
        self._request = request
        self._sparse, self._group, self._layout_of = layout, group, layout_of

    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        with open_hdf5_numbers(self.path) as file:
            for rows in self._blocks_of(self._parts_of(file)):
                yield rows if chosen is None else rows[:, chosen]

    def _parts_of(self, file: Any) -> dict[str, Any]:
        node = own_member(file, self._group)
        if self._layout_of(node) != self._sparse:
            raise DataError(_CHANGED)
        return checked_parts(node, self._request, self._sparse)

    def _blocks_of(self, parts: dict[str, Any]) -> Iterator[Any]:
        if self._request.whole:
            data, indices, starts = (
                read_dataset(parts[name], self._request) for name in SPARSE_PARTS
            )
            shape = (len(self._here), self._width)
            yield build_compressed(
                data, indices, starts, shape, by_rows=self._sparse.by_rows, what="X"
            )
            return
        self._prove(parts)
        entry_bytes = parts["data"].dtype.itemsize + parts["indices"].dtype.itemsize
        most = max(1, BLOCK_BYTES // entry_bytes)
        for first in range(self._here.start, self._here.stop, STARTS_AT_ONCE):
            last = min(first + STARTS_AT_ONCE, self._here.stop)
            starts = sound_starts(parts, first, last)
            for top, bottom in row_cuts(starts, most):
                yield self._rows(parts, starts[top : bottom + 1])

    def _prove(self, parts: dict[str, Any]) -> None:
        if self._proven:
            return
        starts = parts["indptr"]
        refuse_short_chunks(starts)
        first, stop = (int(starts[at]) for at in (self._here.start, self._here.stop))
        for name in ("data", "indices"):
            refuse_short_chunks(parts[name], first, stop)
        self._proven = True

    def _rows(self, parts: dict[str, Any], starts: Any) -> Any:
        entries = slice(int(starts[0]), int(starts[-1]))
        data, indices = parts["data"][entries], parts["indices"][entries]
        shape = (len(starts) - 1, self._width)
        return build_compressed(data, indices, starts - starts[0], shape, by_rows=True, what="X")

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as ``n_parts`` ranges of them."""
        ranges = even_ranges(self._here, n_parts)
        with reading(self.path, self.title), open_hdf5_numbers(self.path) as file:
            starts = self._parts_of(file)["indptr"]
            refuse_short_chunks(starts)
            bounds = [int(starts[at]) for at in (*(rows.start for rows in ranges), self._here.stop)]
        if bounds[0] < 0 or bounds != sorted(bounds):
            raise DataError(f"{self.path}: {_UNSOUND}")
        tables = [self.of_rows(rows) for rows in ranges]
        for table, n_entries in zip(tables, np.diff(bounds).tolist(), strict=True):
            table.n_stored = n_entries
        return tables


def checked_parts(node: Any, request: ReadRequest, layout: SparseLayout) -> dict[str, Any]:
    """The stored parts of a sparse matrix, proven to fit together in number."""
    n_major = layout.shape[0 if layout.by_rows else 1]
    parts = {name: own_member(node, name) for name in SPARSE_PARTS}
    for part in parts.values():
        refuse_unsound(part, request.limit)
    shapes = {name: part.shape for name, part in parts.items()}
    if shapes["data"] != shapes["indices"] or shapes["indptr"] != (n_major + 1,):
        raise DataError(
            f"The parts of X must fit together; here they have shapes {shapes} for {n_major} "
            f"{'rows' if layout.by_rows else 'columns'}: the file is damaged. Obtain or write it "
            "again."
        )
    for name in ("indices", "indptr"):
        if parts[name].dtype.kind not in "iu":
            raise DataError(
                f"The {name} of X must be integers; they are {parts[name].dtype}: the file is "
                "damaged. Obtain or write it again."
            )
    return parts


def sound_starts(parts: dict[str, Any], first: int, last: int) -> Any:
    """Where the rows from ``first`` to ``last`` begin and the last one ends, proven to rise."""
    n_rows, n_entries = parts["indptr"].shape[0] - 1, parts["data"].shape[0]
    starts = parts["indptr"][first : last + 1]
    sound = (
        int(starts[0]) >= 0
        and int(starts[-1]) <= n_entries
        and (first > 0 or int(starts[0]) == 0)
        and (last < n_rows or int(starts[-1]) == n_entries)
        and not np.any(starts[1:] < starts[:-1])
    )
    if not sound:
        raise DataError(_UNSOUND)
    return starts.astype(np.int64)


def row_cuts(starts: Any, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold at most so many entries, or one row."""
    top, n_rows = 0, len(starts) - 1
    while top < n_rows:
        reached = int(np.searchsorted(starts, starts[top] + most, side="right")) - 1
        bottom = max(top + 1, min(reached, n_rows))
        yield top, bottom
        top = bottom


def write_h5ad(path: Path, table: WrittenTable, name: str) -> None:
    """Write the layout of anndata: X, obs with names and labels, var with names."""
    h5py = optional("h5py", ".h5ad files")
    if table.labels is not None and ("/" in table.label_name or table.label_name == "_index"):
        raise ParameterError(
            f"An .h5ad file has no column named {shorten(table.label_name)}. Rename it."
        )
    samples = table.sample_names
    if samples is None:
        samples = [str(at) for at in range(table.X.shape[0])]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        _write_values(file, table)
        columns: dict[str, Any] = {}
        if table.labels is not None:
            numeric = table.has_numeric_labels
            columns[table.label_name] = table.labels if numeric else table.text_labels()
        _write_frame(file, "obs", samples, columns)
        _write_frame(file, "var", table.feature_names, {})


def _write_values(file: Any, table: WrittenTable) -> None:
    if not table.is_sparse:
        file["X"] = table.X
        file["X"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        return
    group = file.create_group("X")
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    group.attrs["shape"] = np.array(table.X.shape, dtype=np.int64)
    for part in SPARSE_PARTS:
        group[part] = getattr(table.X, part)


def _write_frame(file: Any, name: str, index: list[str], columns: dict[str, Any]) -> None:
    text = optional("h5py", ".h5ad files").string_dtype()
    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    group.attrs["_index"] = "_index"
    order = np.array(list(columns), dtype=text)
    group.attrs.create("column-order", order, shape=(len(columns),), dtype=text)
    for key, values in {"_index": index, **columns}.items():
        if isinstance(values, list):
            group.create_dataset(key, data=values, dtype=text)
            kind = "string-array"
        else:
            group[key] = values
            kind = "array"
        group[key].attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})
