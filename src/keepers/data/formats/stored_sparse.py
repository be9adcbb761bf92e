"""Sparse matrices from the parts that files store, checked before SciPy sees them.

SciPy's native code follows row pointers and indices wherever they lead, and its own check looks at
neither when the last pointer is 0: a damaged file could corrupt the memory of the process.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.exceptions import DataError

__all__ = ["STORED_PARTS", "as_pointers", "build_compressed", "build_stored", "refuse_outside"]

STORED_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
"""The arrays of each format of `scipy.sparse.save_npz`, besides "format" and "shape"."""


def build_stored(kind: str, parts: Mapping[str, Any], shape: tuple[int, ...], what: str) -> Any:
    """The matrix that `scipy.sparse.save_npz` stored in a format of `STORED_PARTS`."""
    _refuse_shape(shape, what)
    if kind == "coo":
        return _build_coordinates(parts["data"], parts["row"], parts["col"], shape, what)
    if kind == "dia":
        return _build_diagonals(parts["data"], parts["offsets"], shape, what)
    data, indices, pointers = (parts[name] for name in STORED_PARTS[kind])
    if kind == "bsr":
        return _build_blocks(data, indices, pointers, shape, what)
    return build_compressed(data, indices, pointers, shape, by_rows=kind == "csr", what=what)


def build_compressed(
    data: Any, indices: Any, pointers: Any, shape: tuple[int, ...], *, by_rows: bool, what: str
) -> Any:
    """A CSR matrix (``by_rows``) or a CSC matrix."""
    _refuse_shape(shape, what)
    n_major, n_minor = shape if by_rows else shape[::-1]
    _refuse_uneven(what, data=data, indices=indices)
    pointers = as_pointers(pointers, n_major, len(data), what)
    refuse_outside(indices, n_minor, what)
    build = sp.csr_matrix if by_rows else sp.csc_matrix
    return build((data, indices.astype(np.int64, copy=False), pointers), shape=shape)


def as_pointers(pointers: Any, n_major: int, n_entries: int, what: str) -> Any:
    """Row or column pointers as int64; raise unless they rise from 0 to the number of entries."""
    _refuse_no_integers(pointers, "pointers", what)
    sound = (
        pointers.shape == (n_major + 1,)
        and int(pointers[0]) == 0
        and int(pointers[-1]) == n_entries
        and not np.any(pointers[1:] < pointers[:-1])
    )
    if not sound:
        raise DataError(
            f"The pointers of {what} must be {n_major + 1} integers that rise from 0 to its "
            f"{n_entries} entries; they do not: it is damaged. Obtain or write it again."
        )
    return pointers.astype(np.int64, copy=False)


def refuse_outside(indices: Any, length: int, what: str) -> None:
    """Raise unless all indices are integers from 0 to ``length`` - 1."""
    _refuse_no_integers(indices, "indices", what)
    if indices.size and (int(indices.min()) < 0 or int(indices.max()) >= length):
        raise DataError(
            f"The indices of {what} must lie between 0 and {length - 1}; they go from "
            f"{indices.min()} to {indices.max()}: it is damaged. Obtain or write it again."
        )


def _build_coordinates(data: Any, rows: Any, columns: Any, shape: Any, what: str) -> Any:
    _refuse_uneven(what, data=data, rows=rows, columns=columns)
    refuse_outside(rows, shape[0], what)
    refuse_outside(columns, shape[1], what)
    places = (rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False))
    return sp.coo_matrix((data, places), shape=shape)


def _build_diagonals(data: Any, offsets: Any, shape: Any, what: str) -> Any:
    """Entry (k, j) of the data stands in column j, ``offsets[k]`` rows above the diagonal."""
    _refuse_no_integers(offsets, "offsets", what)
    if data.ndim != 2 or offsets.ndim != 1 or len(data) != len(offsets):
        raise DataError(
            f"{what} must have one row of data for every offset; it has data of shape "
            f"{data.shape} and offsets of shape {offsets.shape}: it is damaged."
        )
    if len(np.unique(offsets)) < len(offsets):
        raise DataError(f"The offsets of {what} must differ; one stands twice: it is damaged.")
    within = np.flatnonzero((offsets < shape[1]) & (offsets > -shape[0]))
    entries = data[within, : shape[1]]
    kept, columns = np.nonzero(entries)
    rows = columns - offsets.astype(np.int64)[within][kept]
    inside = (rows >= 0) & (rows < shape[0])
    values = entries[kept, columns][inside]
    return _build_coordinates(values, rows[inside], columns[inside], shape, what)


def _build_blocks(data: Any, indices: Any, pointers: Any, shape: Any, what: str) -> Any:
    if data.ndim != 3 or 0 in data.shape[1:] or any(np.mod(shape, data.shape[1:])):
        raise DataError(
            f"{what} must consist of blocks that fill its shape; it has blocks of shape "
            f"{data.shape[1:]} and shape {shape}: it is damaged."
        )
    n_rows, n_columns = (int(n // step) for n, step in zip(shape, data.shape[1:], strict=True))
    _refuse_uneven(what, data=data[:, 0, 0], indices=indices)
    pointers = as_pointers(pointers, n_rows, len(data), what)
    refuse_outside(indices, n_columns, what)
    return sp.bsr_matrix((data, indices.astype(np.int64, copy=False), pointers), shape=shape)


def _refuse_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or min(shape) < 0:
        raise DataError(
            f"{what} must have two dimensions (samples, features); it has shape {shape}. Reshape "
            "it, or write it again."
        )


def _refuse_uneven(what: str, **parts: Any) -> None:
    shapes = {name: part.shape for name, part in parts.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise DataError(
            f"The parts of {what} must be vectors of one length; they have shapes {told}: it is "
            "damaged. Obtain or write it again."
        )


def _refuse_no_integers(values: Any, part: str, what: str) -> None:
    if values.dtype.kind not in "iu":
        raise DataError(
            f"The {part} of {what} must be integers; they are {values.dtype}: it is damaged. "
            "Obtain or write it again."
        )
