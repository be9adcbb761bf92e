"""MATLAB files: versions 5 to 7, and 7.3, which is HDF5."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.columns import Matrix, ReadRequest, to_table
from keepers.data.formats.hdf5 import HDF5_MAGIC, hard_linked, open_hdf5, read_dataset
from keepers.data.formats.matlab5 import cell_text, read_variable, used_entries, variables_of
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.table import LabelledTable
from keepers.data.wording import listed
from keepers.exceptions import DataError, shortened

__all__ = ["read_mat"]

VALUE_VARIABLES = ("X", "fea", "data")
LABEL_VARIABLES = ("y", "Y", "gnd", "label", "labels")
_HEADER_OF_73 = 512
_NO_NUMBERS = (b"char", b"cell", b"struct", b"string", b"function_handle")


def read_mat(path: Path, request: ReadRequest) -> LabelledTable:
    """Read X (or fea, data, or the only matrix) and y (or Y, gnd, label, labels)."""
    with path.open("rb") as stream:
        head = stream.read(_HEADER_OF_73 + len(HDF5_MAGIC))
    if HDF5_MAGIC in (head[:8], head[_HEADER_OF_73:]):
        return _read_73(path, request)
    return _read_5(path, request)


def _read_5(path: Path, request: ReadRequest) -> LabelledTable:
    variables = {variable.name: variable for variable in variables_of(path)}
    shapes = {
        name: variable.shape
        for name, variable in variables.items()
        if variable.kind in ("numeric", "sparse")
    }
    labels = _labels_variable(request.labels, variables)
    values = _values_variable(shapes, variables, labels)
    X = read_variable(path, variables[values], request.limit)
    y = None
    if labels is not None:
        y = _as_dense(read_variable(path, variables[labels], request.limit), labels, request)
    return to_table(Matrix(X, labels=y), request, path.stem)


def _read_73(path: Path, request: ReadRequest) -> LabelledTable:
    with open_hdf5(path) as file:
        shapes: dict[str, tuple[int, ...]] = {}
        # MATLAB keeps what cells refer to under names that begin with #.
        known = [name for name in file if not name.startswith("#")]
        for name in known:
            node = hard_linked(file, name)
            if _is_sparse(node):
                shapes[name] = _sparse_shape(node)
            elif getattr(node, "ndim", 0) == 2 and _class_of(node) not in _NO_NUMBERS:
                shapes[name] = node.shape
        labels = _labels_variable(request.labels, known)
        values = _values_variable(shapes, known, labels)
        X = _node_values(hard_linked(file, values), request)
        y = None if labels is None else _node_labels(file, hard_linked(file, labels), request)
        return to_table(Matrix(X, labels=y), request, path.stem)


def _labels_variable(asked: str | None, known: Iterable[str]) -> str | None:
    names = set(known)
    if asked is not None:
        return asked if asked in names else None
    return next((name for name in LABEL_VARIABLES if name in names), None)


def _values_variable(
    shapes: dict[str, tuple[int, ...]], known: Iterable[str], labels: str | None
) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) == 2 and name != labels]
    for usual in VALUE_VARIABLES:
        if usual in matrices:
            return usual
    wide = [name for name in matrices if 1 not in shapes[name]] or matrices
    if len(wide) == 1:
        return wide[0]
    raise DataError(
        f"The values must be a matrix named {', '.join(VALUE_VARIABLES)}, or the only matrix of "
        f"the file; this one holds {listed([repr(name) for name in known], shown=12) or 'none'}. "
        "Save the values as X and the classes as y."
    )


def _is_sparse(node: Any) -> bool:
    return "MATLAB_sparse" in node.attrs


def _node_values(node: Any, request: ReadRequest) -> Any:
    """A matrix as MATLAB shows it: HDF5 holds its columns as rows."""
    if not _is_sparse(node):
        return read_dataset(node, request).T
    shape = _sparse_shape(node)
    starts = read_dataset(hard_linked(node, "jc"), request)
    if "data" in node:
        data, rows = (read_dataset(hard_linked(node, part), request) for part in ("data", "ir"))
    else:  # MATLAB stores no values where all are zero
        data, rows = np.empty(0), np.empty(0, dtype=np.int64)
    used = used_entries(starts)
    what = f"the sparse matrix {shortened(node.name)}"
    return build_compressed(data[:used], rows[:used], starts, shape, by_rows=False, what=what)


def _sparse_shape(node: Any) -> tuple[int, int]:
    columns = hard_linked(node, "jc")
    if getattr(columns, "ndim", 0) != 1:
        raise DataError(
            f"The sparse matrix {shortened(node.name)} is damaged. Save the file again."
        )
    return int(node.attrs["MATLAB_sparse"]), max(0, int(columns.shape[0]) - 1)


def _class_of(node: Any) -> bytes:
    """What MATLAB says a variable is; nothing if another program wrote it."""
    kind = node.attrs.get("MATLAB_class", b"")
    return kind if isinstance(kind, bytes) else str(kind).encode()


def _as_dense(labels: Any, name: str, request: ReadRequest) -> Any:
    """Labels, which MATLAB may store sparse."""
    if not sp.issparse(labels):
        return labels
    request.limit.refuse_shape(labels.shape, 8, f"variable {shortened(name)}")
    return labels.toarray()


def _node_labels(file: Any, node: Any, request: ReadRequest) -> Any:
    if _is_sparse(node):
        return _as_dense(_node_values(node, request), node.name, request)
    if "MATLAB_empty" in node.attrs:  # what is stored then are the lengths
        raise DataError(
            f"The labels {shortened(node.name)} are empty. Save one label for every sample."
        )
    kind = _class_of(node)
    values = read_dataset(node, request)
    if kind == b"char":
        return np.array(["".join(map(chr, row)).rstrip() for row in values.T], dtype=object)
    if kind != b"cell":
        return values.T
    cells = [_cell_label(file[reference], request) for reference in values.ravel()]
    return np.array(cells, dtype=object)


def _cell_label(node: Any, request: ReadRequest) -> str | None:
    """The text or number in a cell; None if it is empty."""
    if "MATLAB_empty" in node.attrs:
        return None
    values = read_dataset(node, request).ravel()
    if _class_of(node) == b"char" or values.dtype == np.uint16:
        return "".join(map(chr, values))
    return cell_text(values)
