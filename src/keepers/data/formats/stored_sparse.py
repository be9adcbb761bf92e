"""Sparse matrices from the parts that files store.

SciPy's native code follows row pointers and indices wherever they lead, and its own check looks at
neither when the last pointer is 0: they are checked in full before anything is done with them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.in_memory import check_indices
from keepers.exceptions import DataError

STORED_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
"""The arrays of each format of `scipy.sparse.save_npz`, besides "format" and "shape"."""


def build_compressed(
    data: Any, indices: Any, pointers: Any, shape: tuple[int, ...], *, by_rows: bool, what: str
) -> Any:
    """A CSR matrix (``by_rows``) or a CSC matrix."""
    parts = {"data": data, "indices": indices, "indptr": pointers}
    return build_stored("csr" if by_rows else "csc", parts, shape, what)


def build_stored(kind: str, parts: Mapping[str, Any], shape: tuple[int, ...], what: str) -> Any:
    """The matrix that `scipy.sparse.save_npz` stored in a format of `STORED_PARTS`, checked."""
    if len(shape) != 2 or min(shape) < 0:
        raise DataError(
            f"{what} must have two dimensions (samples, features); it has shape {shape}. Reshape "
            "it, or write it again."
        )
    data, *places = (parts[name] for name in STORED_PARTS[kind])
    for name, place in zip(STORED_PARTS[kind][1:], places, strict=True):
        if place.dtype.kind not in "iu" or place.ndim != 1:
            raise DataError(
                f"The {name} of {what} must be a vector of integers; here it has shape "
                f"{place.shape} and holds {place.dtype}: it is damaged. Obtain or write it again."
            )
    places = [
        place if place.dtype in (np.int32, np.int64) else place.astype(np.int64) for place in places
    ]
    try:
        if kind == "coo":
            matrix = sp.coo_matrix((data, tuple(places)), shape=shape)
        elif kind == "dia":
            matrix = _build_diagonals(data, places[0], shape)
        else:
            _refuse_other_length(data, *places)
            if kind == "bsr" and any(
                n % step for n, step in zip(shape, data.shape[1:], strict=True)
            ):
                raise ValueError(f"blocks of {data.shape[1:]}")
            matrix = getattr(sp, f"{kind}_matrix")((data, *places), shape=shape)
        return check_indices(matrix)
    except (ValueError, IndexError, ArithmeticError, TypeError) as error:
        raise DataError(
            f"The parts of {what} must make a matrix of {shape[0]} x {shape[1]}; they do not "
            f"({error}): it is damaged. Obtain or write it again."
        ) from error


def _build_diagonals(data: Any, offsets: Any, shape: tuple[int, ...]) -> Any:
    """Without diagonals that lie outside: SciPy rounds their offsets to 32 bits."""
    if len(data) != len(offsets):
        raise ValueError(f"{len(data)} diagonals and {len(offsets)} offsets")
    inside = (offsets < shape[1]) & (offsets > -shape[0])
    return sp.dia_matrix((data[inside], offsets[inside]), shape=shape)


def _refuse_other_length(data: Any, indices: Any, pointers: Any) -> None:
    """Raise unless the last pointer tells how many entries there are: SciPy would cut the rest."""
    last = pointers[-1] if len(pointers) else None
    if not len(data) == len(indices) == last:
        raise ValueError(
            f"{len(data)} values, {len(indices)} indices, and pointers that end with {last}"
        )
