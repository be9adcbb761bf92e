"""Tables handed over as objects: which kind they are, which columns are numbers, what is missing.

NumPy converts dates, text that spells numbers and masked entries to numbers silently. The functions
here raise for them, column by column, before anything is converted. Frames are read through
narwhals; objects of other libraries are recognised by their types and never by their attributes,
because a DuckDB relation has an attribute for each of its columns.
"""

import datetime
import sys
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from numbers import Complex, Integral, Real
from types import NoneType
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.dependencies import is_into_dataframe, is_into_series, is_pyarrow_table
from numpy.typing import NDArray

from keepers._packages import optional
from keepers._wording import closest, some_of
from keepers.exceptions import DataError, shorten
from keepers.tables.table import (
    GAP_WORDS,
    LARGEST_EXACT_INTEGER,
    NamedValues,
    Table,
    as_floats,
    canonical_sparse,
    checked_matrix,
    largest_inexact,
    numbered_names,
    refuse_complex,
    refuse_dimensions,
    refuse_repeated,
    unique_names,
)

LARGE_MAP = 256 * 2**20
_GAPS = frozenset((*GAP_WORDS, "NaT"))
_TIMES = (datetime.date, datetime.timedelta, datetime.time)
_TEXT_OR_TIME = (str, bytes, np.datetime64, np.timedelta64, *_TIMES)


def is_dask(X: Any) -> bool:
    """True if X is a Dask collection; Dask is not imported to find out."""
    # Objects of xarray have the method too, and may hold a plain array.
    from_dask = any(kind.__module__.startswith("dask") for kind in type(X).__mro__)
    return from_dask and hasattr(type(X), "__dask_graph__")


def is_anndata(X: Any) -> bool:
    """True if X is an AnnData object; anndata is not imported to find out."""
    return all(hasattr(type(X), name) for name in ("X", "obs_names", "var_names"))


def is_stored(X: Any) -> bool:
    """True if X lies in an HDF5 file: the values of an AnnData object in backed mode."""
    if is_anndata(X):
        return False
    return hasattr(type(X), "to_memory") or type(X).__module__.startswith("h5py")


def from_store(X: Any) -> Any:
    """All values of something that `is_stored`; anything else as it is."""
    if not is_stored(X):
        return X
    return X.to_memory() if hasattr(type(X), "to_memory") else X[()]


def comes_in_blocks(X: Any) -> bool:
    """True if methods that can should read X in blocks: it is not in memory, or need not be."""
    is_large_map = isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes >= LARGE_MAP
    return is_dask(X) or is_large_map or is_stored(X)


def is_frame(X: Any) -> bool:
    """True if X is a frame with values: of pandas, polars or the like, or an Arrow table."""
    return bool(is_into_dataframe(X))


def as_frame(X: Any) -> Any:
    """Lazy tables, and readers and batches of pyarrow, as a frame with values; else X as it is."""
    X = nw.to_native(X, pass_through=True)
    if is_frame(X) or is_dask(X) or isinstance(X, np.ndarray) or is_into_series(X):
        return X
    if type(X).__module__.startswith("pyarrow") and hasattr(type(X), "__arrow_c_stream__"):
        return sys.modules["pyarrow"].table(X)
    found = nw.from_native(X, pass_through=True)
    return found.collect("polars").to_native() if isinstance(found, nw.LazyFrame) else X


def numeric_input(X: Any) -> Any:
    """X, if all of it is real numbers, as array, frame, or CSR or CSC without duplicate entries.

    Missing values in an array or a frame stay; masked entries raise, because a conversion would
    drop the mask. The user's object is never changed.
    """
    X = array_or_frame(from_store(X))
    held: list[tuple[str, Any]] = []
    if sp.issparse(X):
        refuse_complex(X.dtype)
        X = canonical_sparse(X)
        held = [("all of them", _too_large(X.data))]
    elif is_frame(X):
        held = [(label, read_column(column)) for label, column in frame_columns(X)]
        if not held:  # scikit-learn fails on such a frame of pandas
            raise DataError("X has 0 feature(s) and must have at least one column.")
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        refuse_complex(X.dtype)
        if X.dtype.kind == "O":
            held = [(str(at), _strange(X[:, at])) for at in range(X.shape[1])]
        else:
            is_number = X.dtype.kind in "biuf"
            held = [("all of them", _too_large(X) if is_number else str(X.dtype))]
    others = [f"{label} ({found})" for label, found in held if isinstance(found, str)]
    if others:
        raise DataError(
            f"Every column must be numeric; these are not: {some_of(others)}. Drop them, or turn "
            "them into numbers with keepers.TablePreparer (AutoSelector does so itself)."
        )
    return X


def has_other_columns(X: Any) -> bool:
    """True if X is a `Table` or a frame with columns that are not numbers, such as text."""
    if isinstance(X, Table):
        return bool(X.others)
    names = column_labels(X) or []
    if not is_frame(X) or len(set(names)) < len(names):  # the latter raises later
        return False
    return any(isinstance(read_column(column), str) for _, column in frame_columns(X))


def read_column(column: nw.Series[Any]) -> NDArray[np.floating] | str:
    """A column as floats with NaN for gaps, or what it holds instead of real numbers.

    float32 stays float32. Of integers that float64 would round, the largest is named.
    """
    native, kind = column.to_native(), column.dtype
    stored: Any = native.type if hasattr(type(native), "type") else native.dtype
    if str(stored) == "object":  # narwhals takes a column of nothing but gaps for text
        if strange := _strange(native, is_frame=True):
            return strange
        large = _too_large(np.array([x for x in native if isinstance(x, Integral)], dtype=object))
    else:
        refuse_complex(stored)
        # Types that narwhals does not know: sparse columns, long doubles, swapped bytes.
        is_known = kind != nw.Unknown or getattr(stored, "kind", "O") not in "biuf"
        is_number = kind.is_numeric() or kind == nw.Boolean or str(stored).lower() == "null"
        if is_known and not is_number:
            return str(stored)
        is_long = kind in (nw.Int64, nw.UInt64, nw.Unknown)
        large = _too_large(np.asarray(column.drop_nulls().to_numpy())) if is_long else None
    if large is not None:
        return large
    target = np.dtype(np.float32 if kind == nw.Float32 else np.float64)
    if column.implementation.is_pandas_like():  # also objects, sparse columns, long doubles
        return np.asarray(native.to_numpy(dtype=target, na_value=np.nan))
    return np.asarray(column.cast(nw.Float32 if kind == nw.Float32 else nw.Float64).to_numpy())


def _too_large(values: Any) -> str | None:
    """A clause about integers that float64 would round; None if there are none."""
    largest = largest_inexact(values)
    if largest is None:
        return None
    return f"integers must be at most 2**53 to be exact in float64; the largest here is {largest}"


def _strange(values: Iterable[Any], *, is_frame: bool = False) -> str | None:
    """The name of the first type among Python objects that is not one of real numbers.

    In a plain array only of those that NumPy would convert: it raises for the others.
    """
    for kind in sorted(set(map(type, values)), key=lambda kind: kind.__name__):
        name = kind.__name__
        if issubclass(kind, _TEXT_OR_TIME) or name in ("Period", "NaTType"):
            return name
        if issubclass(kind, (Real, Decimal, np.bool_)) or name in ("NoneType", "NAType"):
            continue
        if issubclass(kind, Complex):
            refuse_complex(name)
        elif is_frame:
            return name
    return None


def array_or_frame(X: Any) -> Any:
    """X with rows in a list as an array; raise for masked entries and for what is not a table."""
    X = as_frame(X)
    if isinstance(X, (list, tuple)):
        X = _array_of_rows(X)
    if isinstance(X, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(X)
        if masked.any():
            counts = masked.sum(axis=0) if X.ndim == 2 else np.array([masked.sum()])
            raise DataError(_missing_sentence(X, counts, "masked entries"))
        X = np.asarray(X)
    if is_anndata(X):
        raise DataError("Got an AnnData object. Pass adata.X, or use keepers.anndata.select.")
    return X


def _array_of_rows(X: Any) -> Any:
    """A list of rows as an array; text does not turn numbers into text."""
    try:
        values = np.asarray(X)
        return np.asarray(X, dtype=object) if values.dtype.kind in "SU" else values
    except ValueError:  # rows of different lengths: scikit-learn raises
        return X


def flat_name(name: Any) -> str:
    """The name of a column as text; the levels of a MultiIndex are joined by a slash."""
    return "/".join(str(level) for level in name) if isinstance(name, tuple) else str(name)


def frame_columns(X: Any) -> list[tuple[str, nw.Series[Any]]]:
    """The columns of a frame with their labels for messages; raise for duplicate names."""
    names = column_labels(X) or []
    refuse_repeated(names, "Rename them, or pass X.to_numpy().")
    columns = nw.from_native(X, eager_only=True).iter_columns()
    return list(zip(map(_quote, names), columns, strict=True))


def _quote(name: Any) -> str:
    return repr(flat_name(name)) if isinstance(name, (str, tuple)) else str(name)


Labels = list[Hashable] | None


def column_labels(block: Any) -> Labels:
    """The labels of the columns of a frame or an Arrow or AnnData table; None for an array."""
    for attribute in ("column_names", "var_names", "columns"):  # an Arrow table's columns are data
        labels = getattr(block, attribute, None)
        if labels is not None and not callable(labels):
            return list(labels)
    return None


def in_order(block: Any, expected: Labels, origin: str, first: str = "the first block") -> Any:
    """The block with its columns in the expected order; raise if they are not the same."""
    found = column_labels(block)
    by_place = [None, list(range(len(found or expected or [])))]
    if found in by_place and expected in by_place:
        return block
    if found is None or expected is None:
        named = first if found is None else origin
        raise DataError(
            f"Columns are matched by name, in all blocks or in none; only {named} names them. Give "
            "data frames throughout, or arrays throughout."
        )
    refuse_repeated(found)
    if found == expected or len(found) != len(expected):  # later refused for its number of columns
        return block
    known = set(expected)
    strange = [label for label in found if label not in known]
    if strange:
        raise DataError(
            f"All blocks must have the same columns; {origin} has {shorten(strange[0])}, which "
            f"{first} has not. Rename it, or leave it out."
        )
    if hasattr(block, "column_names"):
        return block.select(expected)
    return block[:, expected] if hasattr(block, "var_names") else block[expected]


def block_values(block: Any, origin: str) -> Any:
    """A block of rows as an array or a CSR matrix of floats; ``origin`` is for messages."""
    block = numeric_input(values_of(block).values if is_anndata(block) else block)
    if is_frame(block):
        return np.column_stack([read_column(column) for _, column in frame_columns(block)])
    if not sp.issparse(block):
        try:
            block = np.asarray(block)
            block = block.astype(np.float64) if block.dtype.kind == "O" else block
        except (TypeError, ValueError) as error:
            raise DataError(
                f"A block is a numeric array, sparse matrix or data frame; {origin} is not: "
                f"{type(block).__name__}. Convert it."
            ) from error
    return as_floats(checked_matrix(block, origin), origin)


def describe_missing(X: Any, names: Any = None, *, allow_nan: bool = False) -> str | None:
    """A sentence about the columns of X with NaN, infinity or gaps; None if there are none.

    ``names`` of the columns, if X has none. ``allow_nan``: report infinity only.
    """

    def is_bad(values: Any) -> Any:
        return np.isinf(values) if allow_nan else ~np.isfinite(values)

    try:
        if sp.issparse(X):
            stored = sp.coo_array(X)
            counts = np.bincount(stored.col[is_bad(stored.data)], minlength=X.shape[1])
        elif is_frame(X):
            counts = np.array([is_bad(read_column(c)).sum() for _, c in frame_columns(X)])
        else:
            counts = np.asarray(is_bad(np.asarray(X, dtype=np.float64)).sum(axis=0))
    except (TypeError, ValueError):
        return None
    what = "infinity" if allow_nan else "NaN or infinity"
    return _missing_sentence(X, counts, what, names) if counts.ndim and counts.any() else None


def _missing_sentence(X: Any, counts: NDArray[Any], what: str, names: Any = None) -> str:
    if names is None:
        names = column_labels(X) or range(len(counts))
    at_fault = [f"{_quote(names[at])} ({counts[at]})" for at in np.flatnonzero(counts)]
    return (
        f"Values must be finite numbers; {what} found in these columns (how many): "
        f"{some_of(at_fault)}. Drop the columns or the rows, or fill the gaps (SimpleImputer)."
    )


def table_of_object(X: Any, *, name: str = "table") -> Table:
    """X as numbers, with text and dates in a frame of polars; raise only for what is not a table.

    ``name`` is for messages. ``make_unique`` numbers duplicate column names instead of raising.
    """
    if isinstance(X, Table):
        return X
    X = as_frame(from_store(X))
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biuf":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    X = array_or_frame(X)
    if is_frame(X):
        return _table_of_frame(X, name)
    X = canonical_sparse(X).tocsr() if sp.issparse(X) else np.asarray(X)
    refuse_complex(X.dtype)
    refuse_dimensions(X)
    if not X.shape[1]:
        raise DataError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    names = numbered_names(X.shape[1])
    if sp.issparse(X) or (X.dtype.kind in "biuf" and _too_large(X) is None):
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        return Table(X, np.array(names, dtype=object), name=name)
    columns = {title: _of_objects(title, X[:, at].tolist()) for at, title in enumerate(names)}
    return _assemble(columns, len(X), name)


def _table_of_frame(X: Any, name: str) -> Table:
    names = [flat_name(column) for column in column_labels(X) or []]
    unique = unique_names(names)
    if len(set(names)) < len(names):  # which narwhals does not take
        X = X.rename_columns(unique) if is_pyarrow_table(X) else X.set_axis(unique, axis=1)
    frame = nw.from_native(X, eager_only=True)
    columns, types = {}, {}
    for title, column in zip(unique, frame.iter_columns(), strict=True):
        found = read_column(column)
        is_text = isinstance(found, str)
        columns[title] = _beside(column.alias(title)) if is_text else found
        is_typed = column.dtype.is_integer() or column.dtype in (nw.Boolean, nw.Float32)
        if is_typed and not is_text and find_spec("polars"):
            types[title] = getattr(_polars(), type(column.dtype).__name__)
    index = nw.maybe_get_index(frame)
    ids = np.array([] if index is None else index, dtype=object)
    is_named = len(ids) > 0 and all(isinstance(each, str) for each in ids)
    table = _assemble(columns, len(frame), name)
    return replace(table, ids=ids if is_named else None, types=types)


def _assemble(columns: dict[str, Any], n_rows: int, name: str) -> Table:
    """A table of arrays of floats and columns of polars."""
    numbers = {title: each for title, each in columns.items() if isinstance(each, np.ndarray)}
    others = [each for title, each in columns.items() if title not in numbers]
    return Table(
        np.column_stack(list(numbers.values())) if numbers else np.empty((n_rows, 0)),
        np.array(list(numbers), dtype=object),
        name=name,
        frame=_polars().DataFrame(others) if others else None,
        features=list(columns),
    )


def _beside(column: nw.Series[Any]) -> Any:
    """A column of text, dates or times, or of integers that float64 would round, in polars."""
    pl, kind = _polars(), column.dtype
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if not column.implementation.is_pandas_like():
        found = pl.Series(column.name, column.to_native())
    elif kind.is_temporal() and (times := column.to_numpy()).dtype.kind in "mM":
        if np.datetime_data(times.dtype)[0] not in ("ms", "us", "ns"):
            times = times.astype(f"{times.dtype.kind}8[us]")
        found = pl.Series(column.name, times)
    else:
        found = _of_objects(column.name, column.to_list(), is_frame=True)
        if isinstance(kind, nw.Enum):
            return found.cast(pl.Enum([str(level) for level in kind.categories]))
    if found.dtype.is_integer():
        return found.cast(pl.String)
    if found.dtype in (pl.String, pl.Categorical):
        found = found.cast(pl.String)
        return found.set(found.str.strip_chars().is_in(GAP_WORDS), None)
    return found


def _of_objects(name: str, values: list[Any], *, is_frame: bool = False) -> Any:
    """Python objects as an array of floats if they spell numbers, else as a column of polars.

    In a frame text is text, even if it spells numbers.
    """
    rounded = any(isinstance(each, int) and abs(each) > LARGEST_EXACT_INTEGER for each in values)
    if not is_frame and not rounded:
        with suppress(TypeError, ValueError):
            return np.array(values, dtype=np.float64)
    known = [None if str(each).strip() in _GAPS else each for each in values]
    if any(all(isinstance(each, (kind, NoneType)) for each in known) for kind in _TIMES):
        return _polars().Series(name, known, strict=False)
    texts = [None if each is None else str(each) for each in known]
    return _polars().Series(name, texts, dtype=_polars().String)


def _polars() -> Any:
    return optional("polars", "Columns of text and dates")


def values_of(adata: Any, layer: str | None = None) -> NamedValues:
    """X, or a layer, of an AnnData object; values on a disk or of Dask are not read yet."""
    names = np.array([str(name) for name in adata.var_names], dtype=object)
    refuse_repeated(names, "Call adata.var_names_make_unique() first.")
    layers = [str(name) for name in getattr(adata, "layers", ())]  # adata.raw has none
    shown = some_of([repr(name) for name in layers]) or "none"
    if layer is not None and layer not in layers:
        near = closest(str(layer), layers)
        raise DataError(f"There is no layer {shorten(layer)}.{near} The layers are {shown}.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise DataError(f"adata must hold values in X, or name a layer (layer=); it has {shown}.")
    if is_stored(X) and getattr(X, "format", None) == "csc":
        X = X.to_memory()  # columns stored one after the other have no rows to seek
    # Without the classes by which anndata notices that a view is written to.
    if isinstance(X, np.ndarray) and not np.ma.isMA(X):
        X = np.asarray(X)
    elif sp.issparse(X) and X.format in ("csr", "csc"):
        kind = sp.csr_matrix if X.format == "csr" else sp.csc_matrix
        X = kind((X.data, X.indices, X.indptr), shape=X.shape)
    return NamedValues(X, names)
