"""Tables handed over as objects: their kind, what counts as numbers, what is missing or damaged.

NumPy turns dates, text that spells numbers and masked entries into numbers without a word. Here
they are refused, column by column, before anything is converted.
"""

import datetime
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.foreign_frames import as_frame
from keepers.data.limits import LARGEST_EXACT_INTEGER, largest_inexact
from keepers.data.wording import some_of
from keepers.exceptions import DataError

# Starts of the names that pandas, polars and pyarrow give to the types of numeric columns.
_NUMERIC_NAMES = ("int", "uint", "float", "double", "halffloat", "bool", "decimal", "null")
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_ABSENT = ("NoneType", "NAType")
LARGE_MAP = 256 * 2**20


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask is not imported to tell."""
    # Objects of xarray have the method too, and may hold a plain array.
    from_dask = any(kind.__module__.startswith("dask") for kind in type(X).__mro__)
    return from_dask and hasattr(type(X), "__dask_graph__")


def is_large_map(X: Any) -> bool:
    """Whether X is a memory map too large to be taken into memory without need."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes >= LARGE_MAP


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData object; anndata is not imported to tell."""
    # Of the type: a data frame has its columns as attributes, whatever they are called.
    return all(hasattr(type(X), name) for name in ("X", "obs_names", "var_names"))


def is_stored(X: Any) -> bool:
    """Whether X lies in an HDF5 file: the values of an AnnData object in backed mode."""
    if is_anndata(X):
        return False
    from_h5py = any(kind.__module__.startswith("h5py") for kind in type(X).__mro__)
    return (from_h5py and hasattr(X, "chunks")) or hasattr(type(X), "to_memory")


def from_store(X: Any) -> Any:
    """All values of something that `is_stored`; anything else as it is."""
    if not is_stored(X):
        return X
    return X.to_memory() if hasattr(X, "to_memory") else X[()]


def comes_in_blocks(X: Any) -> bool:
    """Whether X should be read in blocks by methods that can: it is not in memory, or need not."""
    return is_dask(X) or is_large_map(X) or is_stored(X)


def numeric_input(X: Any) -> Any:
    """X, refused if some of it is no real number; sparse as CSR or CSC without duplicates.

    Lazy and foreign tables become frames with values (`as_frame`). Missing values in an array or a
    data frame are left for whoever reads it; masked ones are not,
    because a conversion would forget the mask. The user's object is never changed.
    """
    X = as_frame(from_store(X))
    if sp.issparse(X):
        refuse_complex(X.dtype)
        X = canonical_sparse(X)
        _refuse_inexact_integers([_Column("", X.dtype, lambda: X.data)])
        return X
    X = array_or_frame(X)
    columns = frame_columns(X)
    if columns is None:
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            return X
        columns = _array_columns(X)
    else:
        refuse_duplicate_names(columns)
    _refuse_other_than_numbers(columns, is_frame=not isinstance(X, np.ndarray))
    _refuse_inexact_integers(columns)
    return X


def named_once(X: Any) -> Any:
    """X `as_frame`, refused if two of its columns have the same name."""
    X = as_frame(X)
    columns = None if sp.issparse(X) else frame_columns(X)
    if columns is not None:
        refuse_duplicate_names(columns)
    return X


def array_or_frame(X: Any) -> Any:
    """X with rows in a list as an array; masked entries and what holds no table are refused."""
    X = as_frame(X)
    if isinstance(X, (list, tuple)):
        X = _array_of_rows(X)
    if isinstance(X, np.ma.MaskedArray):
        X = _refuse_masked(X)
    _refuse_unread(X)
    return X


def flat_name(name: Any) -> str:
    """The name of a column as text; the levels of a MultiIndex are joined by a slash."""
    return "/".join(str(level) for level in name) if isinstance(name, tuple) else str(name)


def canonical_sparse(X: Any) -> Any:
    """CSR or CSC with sorted indices that lie inside and occur once; the arrays of X are shared.

    SciPy trusts indices, and reads outside of its arrays if they are wrong.
    """
    if X.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); this sparse array has {X.ndim}. "
            "Reshape it."
        )
    try:
        checked = check_indices(X)
    except (ValueError, IndexError, OverflowError) as error:
        raise DataError(
            "The row and column indices of a sparse matrix must lie inside its shape, "
            f"{X.shape[0]} x {X.shape[1]} here; these do not ({error}). Build it again from values "
            "with their rows and columns: scipy.sparse.coo_array((values, (rows, columns)))."
        ) from error
    if not checked.has_canonical_format:
        checked = checked.copy()  # the arrays are the user's
        checked.sum_duplicates()
    return checked


def check_indices(X: Any) -> Any:
    """A sparse matrix as CSR or CSC, after all its indices were seen to lie inside; else an error.

    The error is one of SciPy's.
    """
    if X.format == "coo":
        X = type(X)((X.data, (X.row, X.col)), shape=X.shape)  # looks at every index
    elif X.format in ("csr", "csc", "bsr"):
        # Made anew: checks may trim the arrays, and remembered flags may be out of date.
        X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        X.check_format(full_check=True)
        if np.any(np.diff(X.indptr) < 0):  # not looked at where nothing is stored
            raise ValueError("indptr decreases")
    if X.format not in ("csr", "csc"):
        return check_indices(X.tocsr())
    return X


def describe_missing(
    X: Any, names: Any = None, *, allow_nan: bool = False, among: NDArray[Any] | None = None
) -> str | None:
    """A sentence about where NaN, infinity or nothing stands in X; None if it cannot be told.

    ``names`` of the columns, where X does not carry them. ``allow_nan``: about infinity alone.
    ``among``: a mask of the columns that count.
    """
    try:
        counts = _missing_counts(X, np.isinf if allow_nan else lambda values: ~np.isfinite(values))
    except (TypeError, ValueError):
        return None
    if among is not None and counts.ndim == 1:
        counts = np.where(among, counts, 0)
    told = counts.ndim == 1 and counts.any()
    what = "infinity" if allow_nan else "NaN or infinity"
    return _missing_sentence(X, counts, what, names) if told else None


@dataclass(frozen=True)
class _Column:
    label: str
    dtype: Any
    values: Callable[[], Any]


def _array_of_rows(X: Any) -> Any:
    """A list of rows as an array, with masks kept, and text beside numbers kept apart."""
    if any(isinstance(row, np.ma.MaskedArray) for row in X):
        return np.ma.array(X)
    try:
        values = np.asarray(X)
        return np.asarray(X, dtype=object) if values.dtype.kind in "SU" else values
    except ValueError:  # ragged: scikit-learn says so
        return X


def _refuse_masked(X: Any) -> NDArray[Any]:
    masked = np.ma.getmaskarray(X)
    if masked.any():
        counts = masked.sum(axis=0) if X.ndim == 2 else np.array([masked.sum()])
        raise DataError(_missing_sentence(X, counts, "masked entries"))
    return np.asarray(X)


def _refuse_unread(X: Any) -> None:
    """Raise for objects that NumPy would not take for a table, or take for one number."""
    if isinstance(X, np.ndarray) and X.dtype.names:
        raise DataError(
            "A table is an array of two dimensions; this is a structured array with the fields "
            f"{some_of([repr(name) for name in X.dtype.names])}. Pass "
            "numpy.lib.recfunctions.structured_to_unstructured(X)."
        )
    if is_anndata(X):
        raise DataError(
            "A table is an array, a data frame or a sparse matrix here; got an AnnData object. "
            "Pass adata.X, or use keepers.anndata.select."
        )


def refuse_duplicate_names(columns: list[_Column]) -> None:
    """Raise if two columns have the same name."""
    twice = [label for label, count in Counter(c.label for c in columns).items() if count > 1]
    if twice:
        raise DataError(
            f"Column names must be unique; these are not: {some_of(twice)}. Rename them, or pass "
            "X.to_numpy()."
        )


def _array_columns(X: NDArray[Any]) -> list[_Column]:
    """One column stands for all of an array whose type tells enough."""
    if X.dtype.kind != "O":
        label = "all of them" if X.dtype.kind not in "biufc" else ""
        return [_Column(label, X.dtype, lambda: X)]
    return [
        _Column(str(at), X.dtype, lambda at=at: X[:, at])  # type: ignore[misc]
        for at in range(X.shape[1])
    ]


def frame_columns(X: Any) -> list[_Column] | None:
    """The columns of a data frame (pandas, polars, or one like them) or an Arrow table."""
    if hasattr(X, "schema") and hasattr(X, "column_names"):
        names, dtypes, take = X.column_names, X.schema.types, X.column
    elif hasattr(X, "columns") and hasattr(X, "dtypes"):
        names, dtypes = list(X.columns), list(X.dtypes)
        take = X.to_series if hasattr(X, "to_series") else lambda at: X.iloc[:, at]
    else:
        return None
    return [
        _Column(_quote(name), dtype, lambda at=at: take(at))  # type: ignore[misc]
        for at, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    ]


def _quote(name: Any) -> str:
    return repr(flat_name(name)) if isinstance(name, (str, tuple)) else str(name)


def _refuse_other_than_numbers(columns: list[_Column], *, is_frame: bool) -> None:
    others = []
    for column in columns:
        found = other_than_numbers(column, is_frame)
        if found is not None:
            others.append(f"{column.label} ({found})")
    if others:
        raise DataError(
            f"Every column must be numeric; these are not: {some_of(others)}. Drop them, or turn "
            "them into numbers: text with sklearn.preprocessing.OneHotEncoder, or astype(float) "
            "where it spells numbers; dates as the time since one of them, in a unit you choose."
        )


def other_than_numbers(column: _Column, is_frame: bool) -> str | None:
    """What a column holds if it holds no real numbers."""
    kind, name = getattr(column.dtype, "kind", None), str(column.dtype)
    if kind == "c":
        refuse_complex(column.dtype)
    if kind in ("b", "i", "u", "f"):
        return None
    if name.lower() == "object":
        return next(_strange_types(column.values(), is_frame), None)
    lowered = name.lower()
    if kind in (None, "O") and lowered.startswith(_NUMERIC_NAMES) and "interval" not in lowered:
        return None
    return name


def _strange_types(values: Any, is_frame: bool) -> Iterator[str]:
    """Names of the types among Python objects that are no real numbers.

    In a plain array only of those that NumPy would turn into numbers: it refuses the others.
    """
    for kind in sorted(set(map(type, values)), key=lambda kind: kind.__name__):
        name = kind.__name__
        if issubclass(kind, (str, bytes, *_TIMES)) or name in ("Period", "NaTType"):
            yield name
        elif issubclass(kind, (Real, Decimal, np.bool_)) or name in _ABSENT:
            continue
        elif issubclass(kind, Complex):
            refuse_complex(name)
        elif is_frame:
            yield name


def refuse_complex(dtype: Any) -> None:
    """Raise if values of this kind are no real numbers."""
    if str(dtype).startswith("complex"):
        raise DataError(
            f"Complex data not supported: values must be real, and these are {dtype}. Pass X.real, "
            "or real and imaginary parts as columns of their own."
        )


def _refuse_inexact_integers(columns: list[_Column]) -> None:
    for column in columns:
        name = str(column.dtype).lower()
        if not name.startswith(("int64", "uint64", ">i8", ">u8")):
            continue
        largest = largest_inexact(np.asarray(column.values()))
        if largest is not None:
            where = f" (column {column.label})" if column.label else ""
            raise DataError(
                f"Integers must be at most 2**53 = {LARGEST_EXACT_INTEGER} in size to be "
                f"exact in float64; the largest here is {largest}{where}. Subtract an offset from "
                "the column, or divide by its unit, before fitting."
            )


def _missing_counts(X: Any, is_bad: Callable[[Any], Any]) -> NDArray[np.intp]:
    """How many values of each column are bad."""
    if sp.issparse(X):
        bad = sp.csc_array(X)
        return np.asarray(
            sp.csc_array((is_bad(bad.data), bad.indices, bad.indptr), bad.shape).sum(axis=0)
        ).ravel()
    columns = frame_columns(X)
    if columns is None:
        return np.asarray(is_bad(np.asarray(X, dtype=np.float64)).sum(axis=0))
    return np.array([int(is_bad(column_as_floats(c.values())).sum()) for c in columns])


def column_as_floats(column: Any) -> NDArray[np.float64]:
    """A column of a data frame, or a frame of pandas; what is missing as NaN."""
    if hasattr(column, "isna"):  # pandas, whose NA is no float
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(np.asarray(column), dtype=np.float64)


def _missing_sentence(
    X: Any, counts: NDArray[Any], what: str = "NaN or infinity", names: Any = None
) -> str:
    columns = frame_columns(X)
    if names is not None:
        labels = [_quote(name) for name in names]
    else:
        labels = [c.label for c in columns] if columns else [str(at) for at in range(len(counts))]
    at_fault = [f"{labels[at]} ({counts[at]})" for at in np.flatnonzero(counts)]
    return (
        f"Values must be finite numbers; {what} found in these columns (how many): "
        f"{some_of(at_fault)}. Drop the columns or the rows, or fill the gaps (for example with "
        "sklearn.impute.SimpleImputer)."
    )
