"""AnnData files (.h5ad), read with h5py: the layout is HDF5 with a few conventions."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.columns import Matrix, to_table
from keepers.data.formats.hdf5 import hard_linked, open_hdf5, read_dataset
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
    build = sp.csr_matrix if by_rows else sp.csc_matrix
    return build((data, indices, starts), shape=shape)


def is_stored_sparse(node: Any) -> bool:
    """Whether a matrix is stored as the parts of a sparse one."""
    return _is_group(node) and "indptr" in node


def sparse_layout(node: Any) -> tuple[tuple[int, int], bool]:
    """The shape of a stored sparse matrix, and whether it is stored row by row."""
    shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape"))
    n_rows, n_columns = (int(length) for length in np.asarray(shape).ravel())
    by_rows = hard_linked(node, "indptr").shape == (n_rows + 1,)
    if n_rows == n_columns:
        kind = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", ""))
        by_rows = _text(kind).startswith("csr")
    return (n_rows, n_columns), by_rows


def _is_group(node: Any) -> bool:
    return hasattr(node, "keys")


def index_name(frame: Any) -> str:
    """The column that holds the row names of obs or var."""
    if _is_group(frame) and _USUAL_INDEX in frame:
        return _USUAL_INDEX
    # Asked last: the HDF5 library believes any length that a damaged text attribute claims.
    if not _is_group(frame) or "_index" not in frame.attrs:
        raise DataError(
            f"{shortened(frame.name)} is laid out as anndata did before 0.7. Read the file with "
            "anndata and write it again."
        )
    return _text(frame.attrs["_index"])


def column_of(frame: Any, name: str, request: ReadRequest) -> Any:
    """A column of obs or var: plain, categorical, or nullable."""
    if name not in frame:
        known = [key for key in frame if key != "__categories"]
        raise DataError(
            f"There is no column {shortened(name)} in "
            f"{shortened(frame.name)}.{closest(name, known)} It holds "
            f"{listed([repr(key) for key in known])}."
        )
    node = hard_linked(frame, name)
    if not _is_group(node):
        values = read_dataset(node, request)
        if values.dtype.names is not None:
            raise DataError(
                f"Column {shortened(name)} of {shortened(frame.name)} is no plain column."
            )
        return values
    if "codes" in node:
        codes = read_dataset(hard_linked(node, "codes"), request)
        categories = as_names(read_dataset(hard_linked(node, "categories"), request), name)
        return _missing_where(codes < 0, categories[np.maximum(codes, 0)])
    values = read_dataset(hard_linked(node, "values"), request)
    mask = read_dataset(hard_linked(node, "mask"), request).astype(bool)
    return _missing_where(mask, values)


def _missing_where(mask: Any, values: Any) -> Any:
    if not mask.any():
        return values
    holed = values.astype(object)
    holed[mask] = None
    return holed


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
