"""A table handed over as an object, of any kinds of columns: numbers apart from text and dates."""

from datetime import UTC
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.columns import OtherColumn, as_texts
from keepers.data.foreign_frames import as_frame
from keepers.data.in_memory import (
    array_or_frame,
    canonical_sparse,
    column_as_floats,
    flat_name,
    frame_columns,
    from_store,
    other_than_numbers,
    refuse_complex,
)
from keepers.data.limits import LARGEST_EXACT_INTEGER, largest_inexact
from keepers.data.table import LabelledTable, number_repeated, numbered_names, unique_names
from keepers.exceptions import DataError

_DATES = ("datetime", "date", "timestamp")


def as_mixed_table(X: Any, *, name: str = "table", make_unique: bool = False) -> LabelledTable:
    """X as numbers and other columns; nothing is refused but what has no rows and columns.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Arrow table or LabelledTable
        The table.
    name : str
        What it is called.
    make_unique : bool
        Number repeated column names; otherwise they are refused.
    """
    if isinstance(X, LabelledTable):
        return X
    X = as_frame(from_store(X))
    if sp.issparse(X):
        refuse_complex(X.dtype)
        values = canonical_sparse(X).tocsr()
        return LabelledTable(_as_floats(values), _numbered(values.shape[1]), name=name)
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    X = array_or_frame(X)
    columns = frame_columns(X)
    if columns is None:
        return _of_array(X, name)
    names = [flat_name(column) for column in _names_of(X)]
    names = number_repeated(names) if make_unique else unique_names(names)
    values, features, others = [], [], []
    for at, (column, title) in enumerate(zip(columns, names, strict=True)):
        if other_than_numbers(column, is_frame=True) is None and not _is_inexact(column):
            features.append(title)
            values.append(column_as_floats(column.values()))
        else:
            others.append(_other(title, column, at))
    n_rows = len(X) if hasattr(X, "__len__") else X.num_rows
    matrix = np.column_stack(values) if values else np.empty((n_rows, 0))
    titles = np.array(features, dtype=object)
    return LabelledTable(matrix, titles, _row_names(X), name=name, others=tuple(others))


def _is_inexact(column: Any) -> bool:
    """Whether integers would be rounded: they name something, and are taken as text."""
    if not str(column.dtype).lower().startswith(("int64", "uint64")):
        return False
    values = column.values()
    if not hasattr(values, "max"):  # of Arrow
        values = np.asarray(values.drop_null())
    extremes = (values.max(), values.min()) if len(values) else ()
    return any(map(_is_rounded, extremes))


def _is_rounded(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and abs(int(value)) > LARGEST_EXACT_INTEGER


def _row_names(X: Any) -> Any:
    """The index of a pandas frame, if it holds text."""
    index = getattr(X, "index", None)
    if index is None or getattr(index, "nlevels", 0) != 1:
        return None
    words = np.array(index, dtype=object)
    return words if len(words) and all(isinstance(word, str) for word in words) else None


def _names_of(X: Any) -> Any:
    return X.column_names if hasattr(X, "column_names") else X.columns


def _numbered(count: int) -> Any:
    return np.array(numbered_names(count), dtype=object)


def _as_floats(X: Any) -> Any:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _of_array(X: Any, name: str) -> LabelledTable:
    """An array: numbers, or objects of any kind, column by column."""
    values = np.asarray(X)
    refuse_complex(values.dtype)
    if values.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); this one has {values.ndim}. "
            "Reshape your data."
        )
    if not values.shape[1]:
        raise DataError(
            f"A table needs a column: 0 feature(s) (shape={values.shape}) while a minimum of 1 is "
            "required."
        )
    names = _numbered(values.shape[1])
    if values.dtype.kind in "biuf" and largest_inexact(values) is None:
        return LabelledTable(_as_floats(values), names, name=name)
    values = np.asarray(X, dtype=object)
    features, columns, others = [], [], []
    for at in range(values.shape[1]):
        column = values[:, at]
        try:
            numbers = None if any(map(_is_rounded, column)) else column_as_floats(column)
        except (TypeError, ValueError):
            numbers = None
        if numbers is not None:
            columns.append(numbers)
            features.append(names[at])
        else:
            others.append(OtherColumn(names[at], "text", as_texts(column.tolist()), at))
    matrix = np.column_stack(columns) if columns else np.empty((len(values), 0))
    return LabelledTable(matrix, np.array(features, dtype=object), name=name, others=tuple(others))


def _other(name: str, column: Any, position: int) -> OtherColumn:
    """A column of a frame that holds no numbers."""
    values, dtype = column.values(), column.dtype
    kind = str(dtype).lower()
    if kind.startswith(_DATES) and "period" not in kind:
        times = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
        if times.dtype.kind != "M":  # pandas with a time zone, polars dates
            times = np.array(
                [None if v is None or v != v else np.datetime64(_naive(v)) for v in times],
                dtype="datetime64[us]",
            )
        return OtherColumn(name, "date", times.astype("datetime64[us]"), position)
    if _holds_dates(values):
        times = np.array([_moment(v) for v in values], dtype="datetime64[us]")
        return OtherColumn(name, "date", times, position)
    levels: tuple[str, ...] = ()
    if getattr(dtype, "ordered", False) or (
        kind.startswith("enum") and hasattr(dtype, "categories")
    ):
        levels = tuple(str(level) for level in dtype.categories)
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return OtherColumn(name, "ordered" if levels else "text", as_texts(listed), position, levels)


def _holds_dates(values: Any) -> bool:
    """Whether a column of Python objects holds dates, and nothing else but gaps."""
    kinds = {type(value).__name__ for value in values}
    return bool(kinds & {"date", "datetime", "Timestamp"}) and kinds <= {
        *("date", "datetime", "Timestamp", "NaTType", "NoneType"),
        *("float", "NAType"),
    }


def _moment(value: Any) -> Any:
    missing = type(value).__name__ not in ("date", "datetime", "Timestamp")
    return np.datetime64("NaT", "us") if missing else np.datetime64(_naive(value), "us")


def _naive(value: Any) -> Any:
    """A moment without its time zone, in universal time."""
    if getattr(value, "tzinfo", None) is None:
        return value
    return value.astimezone(UTC).replace(tzinfo=None)
