"""AnnData files (.h5ad), read with h5py: the layout is HDF5 with a few conventions."""

from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.columns import Matrix, to_table
from keepers.data.formats.hdf5 import hard_linked, open_hdf5, read_dataset, read_field
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.data.wording import closest, listed
from keepers.exceptions import DataError, shortened

__all__ = [
    "column_of",
    "index_name",
    "is_stored_sparse",
    "read_h5ad",
    "refuse_parts_absent",
    "sparse_layout",
]

_USUAL_INDEX = "_index"
_OLD_CATEGORIES = "__categories"


def read_h5ad(path: Path, request: ReadRequest) -> LabelledTable:
    """Read X with var_names as features and obs_names as samples; labels are a column of obs."""
    with open_hdf5(path) as file:
        refuse_parts_absent(file)
        obs, var = hard_linked(file, "obs"), hard_linked(file, "var")
        labels = request.labels
        identifier = request.identifier or index_name(obs)
        matrix = Matrix(
            _values(hard_linked(file, "X"), request),
            feature_names=column_of(var, index_name(var), request),
            sample_names=as_names(column_of(obs, identifier, request), identifier),
            labels=None if labels is None else as_labels(column_of(obs, labels, request), labels),
        )
    return to_table(matrix, request, path.stem)


def refuse_parts_absent(file: Any) -> None:
    """Raise unless the file holds the values and both frames."""
    absent = [part for part in ("X", "obs", "var") if part not in file]
    if absent:
        raise DataError(
            f"An AnnData file holds X, obs and var; this one has no {shortened(absent[0])}."
        )


def _values(node: Any, request: ReadRequest) -> Any:
    if not is_stored_sparse(node):
        return read_dataset(node, request)
    shape, by_rows = sparse_layout(node)
    data, indices, starts = (
        read_dataset(hard_linked(node, part), request) for part in ("data", "indices", "indptr")
    )
    return build_compressed(data, indices, starts, shape, by_rows=by_rows, what="X")


def is_stored_sparse(node: Any) -> bool:
    """Whether a matrix is stored as the parts of a sparse one."""
    return _is_group(node) and "indptr" in node


def sparse_layout(node: Any) -> tuple[tuple[int, int], bool]:
    """The shape of a stored sparse matrix, and whether it is stored row by row."""
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    n_rows, n_columns = (int(length) for length in np.asarray(shape).ravel())
    by_rows = hard_linked(node, "indptr").shape == (n_rows + 1,)
    if n_rows == n_columns:
        kind = _text(node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", "")))
        if not kind.startswith(("csr", "csc")):
            raise DataError(
                "A square sparse X must say whether it is stored by rows (csr_matrix) or columns "
                f"(csc_matrix) in its attribute 'encoding-type'; here that is {shortened(kind)}. "
                "Write the "
                "file again with anndata."
            )
        by_rows = kind.startswith("csr")
    return (n_rows, n_columns), by_rows


def _is_group(node: Any) -> bool:
    return hasattr(node, "keys")


def index_name(frame: Any) -> str:
    """The column that holds the row names of obs or var."""
    fields = _fields(frame)
    if fields is not None:  # anndata before 0.7: a table of records, row names first
        return fields[0]
    if _is_group(frame) and _USUAL_INDEX in frame:
        return _USUAL_INDEX
    # Asked last: the HDF5 library believes any length that a damaged text attribute claims.
    if not _is_group(frame) or "_index" not in frame.attrs:
        raise DataError(
            f"{shortened(frame.name)} must be a data frame as anndata stores it; it names no "
            "column as its "
            "index. Read the file with anndata and write it again."
        )
    return _text(frame.attrs["_index"])


def column_of(frame: Any, name: str, request: ReadRequest) -> Any:
    """A column of obs or var: plain, categorical, or nullable, in the layouts of all versions.

    A missing entry is None.
    """
    fields = _fields(frame)
    if fields is None and not _is_group(frame):
        raise DataError(f"{shortened(frame.name)} must be a data frame; it is a plain array.")
    known = fields or [key for key in frame if key != _OLD_CATEGORIES]
    if name not in known:
        raise DataError(
            f"There is no column {shortened(name)} in "
            f"{shortened(frame.name)}.{closest(name, known)} It holds "
            f"{listed([repr(key) for key in known])}."
        )
    if fields is not None:
        return _with_categories_of_uns(frame, name, read_field(frame, name, request), request)
    node = hard_linked(frame, name)
    if not _is_group(node):
        values = read_dataset(node, request)
        if values.dtype.names is not None:
            raise DataError(
                f"Column {shortened(name)} of {shortened(frame.name)} is not a plain column."
            )
        if _OLD_CATEGORIES in frame and name in frame[_OLD_CATEGORIES]:  # anndata 0.7
            return _categorical(values, frame[_OLD_CATEGORIES], name, name, request)
        return _with_categories_of_uns(frame, name, values, request)
    if "codes" in node:
        codes = read_dataset(hard_linked(node, "codes"), request)
        return _categorical(codes, node, "categories", name, request)
    values = read_dataset(hard_linked(node, "values"), request)
    mask = read_dataset(hard_linked(node, "mask"), request).astype(bool)
    if mask.shape != values.shape:
        raise DataError(
            f"Column {shortened(name)} of {shortened(frame.name)} is damaged: its mask does not "
            "fit."
        )
    return _missing_where(mask, values)


def _fields(frame: Any) -> list[str] | None:
    """Names of the columns if a frame is stored as one array of records."""
    names = getattr(getattr(frame, "dtype", None), "names", None)
    return None if names is None else list(names)


def _categorical(codes: Any, holder: Any, part: str, name: str, request: ReadRequest) -> Any:
    categories = read_dataset(hard_linked(holder, part), request)
    return _categories_by_code(codes, as_names(np.atleast_1d(categories), name), name)


def _categories_by_code(codes: Any, categories: Any, name: str) -> Any:
    fits = codes.dtype.kind in "biu" and codes.ndim == 1
    if not fits or (codes.size and int(codes.max()) >= len(categories)):
        raise DataError(
            f"The codes of column {shortened(name)} must be integers below its {len(categories)} "
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
    if values.dtype.kind not in "iu" or not _is_group(uns) or key not in uns:
        return values
    node = hard_linked(uns, key)
    if _is_group(node):
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
