"""From arrays of any kind to the kinds a table holds: float values, names, labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.in_memory import canonical_sparse
from keepers.data.limits import (
    LARGEST_EXACT_INTEGER,
    largest_inexact,
    refuse_columns,
    refuse_hollow,
)
from keepers.data.wording import some_of
from keepers.exceptions import DataError, shorten

Names = Sequence[str] | NDArray[np.object_]


def as_values(X: Any, what: str, names: Names | None = None) -> Any:
    """float32 stays, every other real kind becomes float64; sparse becomes checked CSR.

    ``names`` of the columns are for messages.
    """
    return as_floats(as_matrix(X, what), what, names)


def as_matrix(X: Any, what: str) -> Any:
    """Refuse what is no table of numbers; sparse becomes checked CSR, 64-bit integers stay."""
    kind = X.dtype.kind
    if kind == "c":
        raise DataError(
            f"Values must be real; {shorten(what)} holds complex numbers. Store X.real."
        )
    if kind not in "biuf":
        raise DataError(
            f"Values must be numbers; {shorten(what)} holds {X.dtype}. Store a plain numeric array."
        )
    if X.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); {shorten(what)} has {X.ndim}. "
            "Reshape it."
        )
    refuse_columns(X.shape[1], shorten(what))
    if sp.issparse(X):
        refuse_hollow(X.shape[0], X.nnz, shorten(what))
        target = X.dtype if _may_be_inexact(X.dtype) else _float_kind(X.dtype)
        return sp.csr_matrix(canonical_sparse(X), dtype=target)
    return X


def as_floats(X: Any, what: str, names: Names | None = None) -> Any:
    """A checked matrix as float32 or float64; ``names`` of its columns are for messages."""
    _refuse_inexact_integers(X, what, names)
    if sp.issparse(X):
        return X.astype(_float_kind(X.dtype), copy=False)
    X = np.asarray(X, dtype=_float_kind(X.dtype))
    contiguous = X.flags.c_contiguous or X.flags.f_contiguous
    return X if contiguous and X.flags.writeable else X.copy(order="A")


def _float_kind(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype.itemsize <= 4 and dtype.kind == "f" else np.float64)


def _may_be_inexact(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" and dtype.itemsize == 8


def _refuse_inexact_integers(X: Any, what: str, names: Names | None) -> None:
    data = X.data if sp.issparse(X) else X
    if largest_inexact(data) is not None:
        large = (data > LARGEST_EXACT_INTEGER) | (data < -LARGEST_EXACT_INTEGER)
        columns = np.unique(X.indices[large] if sp.issparse(X) else np.nonzero(large)[1])
        called = [f"column {at + 1}" if names is None else shorten(names[at]) for at in columns]
        refuse_rounded_integers(called, shorten(what))


def refuse_rounded_integers(columns: Sequence[str], where: str = "the file") -> None:
    """Raise for columns with integers that float64 does not hold exactly."""
    if columns:
        raise DataError(
            f"Integers must be at most 2**53 = {LARGEST_EXACT_INTEGER} in size to be exact in "
            f"float64; {where} holds larger ones in {some_of(columns)}. If they are identifiers, "
            "name the column so (identifier=, --id) or leave it out (drop=, --drop); if rounding "
            "does no harm, write them as floating-point numbers."
        )


def as_names(values: Any, what: str) -> NDArray[np.object_]:
    """One str per entry."""
    values = np.asarray(values)
    if values.ndim != 1:
        values = _flatten(values, what)
    return np.array([_text(value) for value in values.tolist()] or [], dtype=object)


def as_labels(values: Any, what: str) -> NDArray[Any]:
    """Classes: integers as int64, text as object array of str; a missing one is refused."""
    values = np.asarray(values)
    if values.ndim != 1:
        values = _flatten(values, what)
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
            f"Every sample needs a label; {count} of {shorten(what)} are missing. Fill them in, "
            "leave those samples out, or leave the column out (drop=, --drop)."
        )


def _flatten(values: NDArray[Any], what: str) -> NDArray[Any]:
    """A single row or column as a vector."""
    if values.ndim != 2 or 1 not in values.shape:
        raise DataError(
            f"{shorten(what)} must be one entry per sample; it has shape {values.shape}. Name "
            "another array, or store classes as one column of numbers."
        )
    return values.ravel()


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return "" if value is None else str(value)
