"""MATLAB files: versions 5 to 7, and 7.3, which is HDF5."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.columns import Matrix, to_table
from keepers.data.formats.hdf5 import HDF5_MAGIC, hard_linked, open_hdf5, read_dataset
from keepers.data.formats.matlab5 import read_variable, variables_of
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.wording import listed
from keepers.exceptions import DataError, shortened

__all__ = ["read_mat"]

VALUE_VARIABLES = ("X", "fea", "data")
LABEL_VARIABLES = ("y", "Y", "gnd", "label", "labels")
_HEADER_OF_73 = 512


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
        y = read_variable(path, variables[labels], request.limit)
        y = y.toarray() if sp.issparse(y) else y
    return to_table(Matrix(X, labels=y), request, path.stem)


def _read_73(path: Path, request: ReadRequest) -> LabelledTable:
    with open_hdf5(path) as file:
        shapes: dict[str, tuple[int, ...]] = {}
        # MATLAB keeps what cells refer to under names that begin with #.
        known = [name for name in file if not name.startswith("#")]
        for name in known:
            node = hard_linked(file, name)
            if _is_sparse(node) or getattr(node, "ndim", 0) == 2:
                shapes[name] = getattr(node, "shape", (2, 2))
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
    n_rows = int(node.attrs["MATLAB_sparse"])
    if "data" not in node:
        raise DataError(f"The sparse matrix {shortened(node.name)} is empty.")
    data, rows, starts = (
        read_dataset(hard_linked(node, part), request) for part in ("data", "ir", "jc")
    )
    shape = (n_rows, len(starts) - 1)
    return sp.csc_matrix((data, rows.astype(np.int64), starts.astype(np.int64)), shape=shape)


def _node_labels(file: Any, node: Any, request: ReadRequest) -> Any:
    if _is_sparse(node):
        return _node_values(node, request).toarray()
    kind = node.attrs.get("MATLAB_class", b"")
    values = read_dataset(node, request)
    if kind == b"char":
        return np.array(["".join(map(chr, row)).rstrip() for row in values.T], dtype=object)
    if kind != b"cell":
        return values.T
    cells = [read_dataset(file[reference], request).ravel() for reference in values.ravel()]
    return np.array(["".join(map(chr, cell)) for cell in cells], dtype=object)
