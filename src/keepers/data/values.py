"""From arrays of any kind to the kinds a table holds: float values, names, labels."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.limits import refuse_columns, refuse_hollow
from keepers.exceptions import DataError, shortened

__all__ = ["as_labels", "as_names", "as_values"]

LARGEST_EXACT_INTEGER = 2**53


def as_values(X: Any, what: str) -> Any:
    """float32 stays, every other real kind becomes float64; sparse becomes checked CSR."""
    kind = X.dtype.kind
    if kind == "c":
        raise DataError(
            f"Values must be real; {shortened(what)} holds complex numbers. Store X.real."
        )
    if kind not in "biuf":
        raise DataError(
            f"Values must be numbers; {shortened(what)} holds {X.dtype}. Store a plain numeric "
            "array."
        )
    if X.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); {shortened(what)} has {X.ndim}. "
            "Reshape it."
        )
    refuse_columns(X.shape[1], shortened(what))
    _refuse_inexact_integers(X, what)
    target = np.dtype(np.float32) if X.dtype.itemsize <= 4 and kind == "f" else np.dtype(np.float64)
    if sp.issparse(X):
        refuse_hollow(X.shape[0], X.nnz, shortened(what))
        return _checked_csr(X, target)
    X = np.asarray(X, dtype=target)
    contiguous = X.flags.c_contiguous or X.flags.f_contiguous
    return X if contiguous and X.flags.writeable else X.copy(order="A")


def _checked_csr(X: Any, target: np.dtype[Any]) -> Any:
    """CSR with its indices proven to lie inside: scipy trusts them, and a damaged file may lie."""
    if X.format in ("csr", "csc"):
        X.check_format(full_check=True)
    csr = sp.csr_matrix(X, dtype=target)
    csr.sum_duplicates()
    return csr


def _refuse_inexact_integers(X: Any, what: str) -> None:
    if X.dtype.kind not in "iu" or X.dtype.itemsize < 8:
        return
    data = X.data if sp.issparse(X) else X
    if data.size and max(int(data.max()), -int(data.min())) > LARGEST_EXACT_INTEGER:
        raise DataError(
            "Whole numbers must be at most 2**53 in size to be exact in float64; "
            f"{shortened(what)} holds larger ones. If it is an identifier, name it so "
            "(identifier=, --id) or drop it."
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
            f"Every sample needs a label; {count} of {shortened(what)} are missing. Fill them in, "
            "leave those samples out, or leave the column out (drop=, --drop)."
        )


def _flattened(values: NDArray[Any], what: str) -> NDArray[Any]:
    """A single row or column as a vector."""
    if values.ndim != 2 or 1 not in values.shape:
        raise DataError(
            f"{shortened(what)} must be one entry per sample; it has shape {values.shape}. Name "
            "another array, or store classes as one column of numbers."
        )
    return values.ravel()


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)
