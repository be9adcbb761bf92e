"""From arrays of any kind to the kinds a table holds: float values, names, labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.in_memory import canonical_sparse
from keepers.data.limits import refuse_columns, refuse_hollow
from keepers.data.wording import listed
from keepers.exceptions import DataError

__all__ = ["as_labels", "as_names", "as_values"]

LARGEST_EXACT_INTEGER = 2**53
Names = Sequence[str] | NDArray[np.object_]


def as_values(X: Any, what: str, names: Names | None = None) -> Any:
    """float32 stays, every other real kind becomes float64; sparse becomes checked CSR.

    ``names`` of the columns are for messages.
    """
    kind = X.dtype.kind
    if kind == "c":
        raise DataError(f"Values must be real; {what!r} holds complex numbers. Store X.real.")
    if kind not in "biuf":
        raise DataError(
            f"Values must be numbers; {what!r} holds {X.dtype}. Store a plain numeric array."
        )
    if X.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); {what!r} has {X.ndim}. Reshape it."
        )
    refuse_columns(X.shape[1], repr(what))
    _refuse_inexact_integers(X, what, names)
    target = np.dtype(np.float32) if X.dtype.itemsize <= 4 and kind == "f" else np.dtype(np.float64)
    if sp.issparse(X):
        refuse_hollow(X.shape[0], X.nnz, repr(what))
        return sp.csr_matrix(canonical_sparse(X), dtype=target)
    X = np.asarray(X, dtype=target)
    contiguous = X.flags.c_contiguous or X.flags.f_contiguous
    return X if contiguous and X.flags.writeable else X.copy(order="A")


def _refuse_inexact_integers(X: Any, what: str, names: Names | None) -> None:
    if X.dtype.kind not in "iu" or X.dtype.itemsize < 8:
        return
    data = X.data if sp.issparse(X) else X
    if data.size and max(int(data.max()), -int(data.min())) > LARGEST_EXACT_INTEGER:
        where = ""
        if names is not None and not sp.issparse(X):
            largest = np.maximum(X.max(axis=0).astype(object), -X.min(axis=0).astype(object))
            at = np.flatnonzero(largest > LARGEST_EXACT_INTEGER)
            where = f" (in {listed([repr(str(names[column])) for column in at.tolist()])})"
        raise DataError(
            f"Whole numbers must be at most 2**53 in size to be exact in float64; {what!r} holds "
            f"larger ones{where}. If it is an identifier, name it so (identifier=, --id) or drop "
            "it (drop=, --drop)."
        )


def as_names(values: Any, what: str) -> NDArray[np.object_]:
    """One str per entry."""
    values = np.asarray(values)
    if values.ndim != 1:
        values = _flattened(values, what)
    return np.array([_text(value) for value in values.tolist()] or [], dtype=object)


def as_labels(values: Any, what: str) -> NDArray[Any]:
    """Classes: whole numbers as int64, text as object array of str; a missing one is refused."""
    values = np.asarray(values)
    if values.ndim != 1:
        values = _flattened(values, what)
    if values.dtype.kind in "biu":
        fits = values.dtype != np.uint64 or not values.size or values.max() < 2**63
        return values.astype(np.int64 if fits else np.uint64)
    if values.dtype.kind == "f":
        _refuse_missing(int(np.isnan(values).sum()), what)
        whole = values.astype(np.int64) if np.all(np.abs(values) < LARGEST_EXACT_INTEGER) else None
        return whole if whole is not None and np.array_equal(whole, values) else values
    _refuse_missing(sum(value is None for value in values.tolist()), what)
    return as_names(values, what)


def _refuse_missing(count: int, what: str) -> None:
    if count:
        raise DataError(
            f"Every sample needs a label; {count} of {what!r} are missing. Fill them in, leave "
            "those samples out, or leave the column out (drop=, --drop)."
        )


def _flattened(values: NDArray[Any], what: str) -> NDArray[Any]:
    """A single row or column as a vector."""
    if values.ndim != 2 or 1 not in values.shape:
        raise DataError(
            f"{what!r} must be one entry per sample; it has shape {values.shape}. Name another "
            "array, or store classes as one column of numbers."
        )
    return values.ravel()


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)
