"""AnnData files (.h5ad), read with h5py: the layout is HDF5 with a few conventions."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from keepers._packages import optional
from keepers._protocols import IndexArray
from keepers.data.blocks.files import MatrixBlocks, reading
from keepers.data.blocks.local import BLOCK_BYTES, even_ranges
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
from keepers.data.limits import refuse_columns
from keepers.data.table import ReadRequest, WrittenTable, unique_names
from keepers.data.values import as_names
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, ParameterError, shorten

_TITLE = "AnnData"
_USUAL_INDEX = "_index"
OLD_CATEGORIES = "__categories"
STARTS_AT_ONCE = 2**18
_PARTS = ("data", "indices", "indptr")
_UNSOUND = (
    "The row pointers of X ('indptr') must rise from 0 to the number of its entries; here they do "
    "not: the file is damaged. Obtain or write it again."
)


def open_h5ad(path: Path, request: ReadRequest) -> "DatasetBlocks | SparseCellBlocks":
    """Find names, shape and kind of numbers; labels and sample names are columns of obs."""
    with reading(path, _TITLE), open_hdf5(path) as file:
        absent = [part for part in ("X", "obs", "var") if part not in file]
        if absent:
            raise DataError(
                f"An AnnData file holds X, obs and var; this one has no {shorten(absent[0])}."
            )
        obs, node = own_member(file, "obs"), own_member(file, "X")
        for name in (request.labels, request.identifier):
            if name is not None:
                _refuse_absent(obs, name)
        names = variable_names(file, request)
        columns = replace(request, labels=None, identifier=None)
        table: DatasetBlocks | SparseCellBlocks
        if is_stored_sparse(node):
            shape, by_rows = sparse_layout(node)
            _refuse_other_count(names, shape[1])
            table = SparseCellBlocks(path, node, names, columns, by_rows)
        else:
            refuse_unsound(node, request.limit)
            if node.ndim != 2:
                raise DataError(
                    f"X has two dimensions (samples, features); here it has {node.ndim}."
                )
            _refuse_other_count(names, node.shape[1])
            table = DatasetBlocks(path, node, names, columns, _TITLE)
        table.annotate(partial(_read_obs, path, request), request.labels)
        return table


def variable_names(file: Any, request: ReadRequest) -> list[str]:
    """The names of the columns of X."""
    var = own_member(file, "var")
    names = as_names(_column_of(var, _index_name(var), request), "var")
    return unique_names(list(names), make_unique=request.make_unique)


def _refuse_other_count(names: list[str], n_columns: int) -> None:
    refuse_columns(n_columns, "X")
    if len(names) != n_columns:
        raise DataError(
            f"var must name every column of X; it has {len(names)} names and X has {n_columns} "
            "columns: the file is damaged. Obtain or write it again."
        )


def _read_obs(path: Path, request: ReadRequest) -> tuple[Any, Any]:
    """Labels and sample names of a file whose text was proven when it was opened."""
    with open_hdf5_numbers(path) as file:
        obs = own_member(file, "obs")
        names = _column_of(obs, request.identifier or _index_name(obs), request)
        labels = None if request.labels is None else _column_of(obs, request.labels, request)
    return labels, names


class SparseCellBlocks(MatrixBlocks):
    """Rows of a sparse X, cut out of its stored parts; one block if all rows are wanted."""

    title = _TITLE
    is_sparse = True
    _proven = False
    """Whether the chunks were seen to be whole, which costs as much as reading them."""

    def __init__(
        self, path: Path, node: Any, names: list[str], request: ReadRequest, by_rows: bool
    ) -> None:
        if not by_rows and not request.whole:
            raise DataError(
                "X must be stored by rows to be read in blocks of rows; here it is stored by "
                "columns (CSC). Convert it once where it fits in memory: adata.X = "
                "adata.X.tocsr(), then adata.write_h5ad(...)."
            )
        parts = checked_parts(node, request, by_rows)
        n_rows = sparse_layout(node)[0][0]
        n_entries = int(parts["data"].shape[0])
        super().__init__(path, names, request, n_rows, parts["data"].dtype, n_entries)
        self._request = request
        self._by_rows = by_rows

    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        with open_hdf5_numbers(self.path) as file:
            parts = checked_parts(own_member(file, "X"), self._request, self._by_rows)
            for rows in self._blocks_of(parts):
                yield rows if chosen is None else rows[:, chosen]

    def _blocks_of(self, parts: dict[str, Any]) -> Iterator[Any]:
        if self._request.whole:
            data, indices, starts = (read_dataset(parts[name], self._request) for name in _PARTS)
            shape = (len(self._here), self._width)
            yield build_compressed(data, indices, starts, shape, by_rows=self._by_rows, what="X")
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
            starts = checked_parts(own_member(file, "X"), self._request, True)["indptr"]
            refuse_short_chunks(starts)
            bounds = [int(starts[at]) for at in (*(rows.start for rows in ranges), self._here.stop)]
        if bounds[0] < 0 or bounds != sorted(bounds):
            raise DataError(f"{self.path}: {_UNSOUND}")
        tables = [self.of_rows(rows) for rows in ranges]
        for table, n_entries in zip(tables, np.diff(bounds).tolist(), strict=True):
            table.n_stored = n_entries
        return tables


def checked_parts(node: Any, request: ReadRequest, by_rows: bool) -> dict[str, Any]:
    """The stored parts of a sparse matrix, proven to fit together in number."""
    if not is_stored_sparse(node) or sparse_layout(node)[1] != by_rows:
        raise DataError("It was changed since it was opened. Open it again.")
    n_major = sparse_layout(node)[0][0 if by_rows else 1]
    parts = {name: own_member(node, name) for name in _PARTS}
    for part in parts.values():
        refuse_unsound(part, request.limit)
    shapes = {name: part.shape for name, part in parts.items()}
    if shapes["data"] != shapes["indices"] or shapes["indptr"] != (n_major + 1,):
        raise DataError(
            f"The parts of X must fit together; here they have shapes {shapes} for {n_major} "
            f"{'rows' if by_rows else 'columns'}: the file is damaged. Obtain or write it again."
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


def is_stored_sparse(node: Any) -> bool:
    """Whether a matrix is stored as the parts of a sparse one."""
    return is_group(node) and "indptr" in node


def sparse_layout(node: Any) -> tuple[tuple[int, int], bool]:
    """The shape of a stored sparse matrix, and whether it is stored row by row."""
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    n_rows, n_columns = (int(length) for length in np.asarray(shape).ravel())
    by_rows = own_member(node, "indptr").shape == (n_rows + 1,)
    if n_rows == n_columns:
        kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
        if not kind.startswith(("csr", "csc")):
            raise DataError(
                "A square sparse X must say whether it is stored by rows (csr_matrix) or columns "
                f"(csc_matrix) in its attribute 'encoding-type'; here that is {shorten(kind)}. "
                "Write the file again with anndata."
            )
        by_rows = kind.startswith("csr")
    return (n_rows, n_columns), by_rows


def is_group(node: Any) -> bool:
    return hasattr(node, "keys")


def is_frame(node: Any) -> bool:
    """Whether a group holds the columns of a data frame."""
    return is_group(node) and (_USUAL_INDEX in node or _USUAL_INDEX in node.attrs)


def _index_name(frame: Any) -> str:
    """The column that holds the row names of obs or var."""
    fields = _fields(frame)
    if fields is not None:  # anndata before 0.7: a table of records, row names first
        return fields[0]
    if is_group(frame) and _USUAL_INDEX in frame:
        return _USUAL_INDEX
    # Asked last: the HDF5 library believes any length that a damaged text attribute claims.
    if not is_group(frame) or "_index" not in frame.attrs:
        raise DataError(
            f"{shorten(frame.name)} must be a data frame as anndata stores it; it names no "
            "column as its index. Read the file with anndata and write it again."
        )
    return _text(frame.attrs["_index"])


def _refuse_absent(frame: Any, name: str) -> None:
    """Raise unless obs or var has a column of this name."""
    fields = _fields(frame)
    if fields is None and not is_group(frame):
        raise DataError(f"{shorten(frame.name)} must be a data frame; it is a plain array.")
    known = fields or [key for key in frame if key != OLD_CATEGORIES]
    if name not in known:
        raise DataError(
            f"There is no column {shorten(name)} in {shorten(frame.name)}."
            f"{closest(name, known)} It holds {some_of([repr(key) for key in known])}."
        )


def _column_of(frame: Any, name: str, request: ReadRequest) -> Any:
    """A column of obs or var: plain, categorical, or nullable, in the layouts of all versions.

    A missing entry is None.
    """
    _refuse_absent(frame, name)
    fields = _fields(frame)
    if fields is not None:
        return _with_categories_of_uns(frame, name, read_dataset(frame, request, name), request)
    node = own_member(frame, name)
    if not is_group(node):
        values = read_dataset(node, request)
        if values.dtype.names is not None:
            raise DataError(
                f"Column {shorten(name)} of {shorten(frame.name)} is not a plain column."
            )
        if OLD_CATEGORIES in frame and name in frame[OLD_CATEGORIES]:  # anndata 0.7
            return _categorical(values, frame[OLD_CATEGORIES], name, name, request)
        return _with_categories_of_uns(frame, name, values, request)
    if "codes" in node:
        codes = read_dataset(own_member(node, "codes"), request)
        return _categorical(codes, node, "categories", name, request)
    values = read_dataset(own_member(node, "values"), request)
    mask = read_dataset(own_member(node, "mask"), request).astype(bool)
    if mask.shape != values.shape:
        raise DataError(
            f"Column {shorten(name)} of {shorten(frame.name)} is damaged: its mask does not fit."
        )
    return _missing_where(mask, values)


def _fields(frame: Any) -> list[str] | None:
    """Names of the columns if a frame is stored as one array of records."""
    names = getattr(getattr(frame, "dtype", None), "names", None)
    return None if names is None else list(names)


def _categorical(codes: Any, holder: Any, part: str, name: str, request: ReadRequest) -> Any:
    categories = read_dataset(own_member(holder, part), request)
    return _categories_by_code(codes, as_names(np.atleast_1d(categories), name), name)


def _categories_by_code(codes: Any, categories: Any, name: str) -> Any:
    fits = codes.dtype.kind in "biu" and codes.ndim == 1
    if not fits or (codes.size and int(codes.max()) >= len(categories)):
        raise DataError(
            f"The codes of column {shorten(name)} must be integers below its {len(categories)} "
            "categories; they are not: the file is damaged. Obtain or write it again."
        )
    missing = codes < 0
    if missing.all():
        return np.full(len(codes), None, dtype=object)
    return _missing_where(missing, categories[np.where(missing, 0, codes).astype(np.intp)])


def _with_categories_of_uns(frame: Any, name: str, values: Any, request: ReadRequest) -> Any:
    """Codes as the categories that anndata before 0.7 kept in uns, if it did; else as they are."""
    key = f"{name}_categories"
    uns = frame.parent.get("uns")
    if values.dtype.kind not in "iu" or not is_group(uns) or key not in uns:
        return values
    node = own_member(uns, key)
    if is_group(node):
        return values
    categories = as_names(np.atleast_1d(read_dataset(node, request)), key)
    # obs and var shared the name of the list: it may be the other's.
    if values.size and int(values.max()) >= len(categories):
        return values
    return _categories_by_code(values, categories, name)


def _missing_where(mask: Any, values: Any) -> Any:
    if not mask.any():
        return values
    holed = values.astype(object)
    holed[mask] = None
    return holed


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


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
    for part in _PARTS:
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
