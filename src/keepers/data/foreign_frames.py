"""Tables of other libraries as frames with values: lazy ones collected, others through Arrow.

None of the libraries is imported to tell what an object is. Types are asked, not objects: a
relation of DuckDB takes every name that it does not know for one of its columns.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from keepers._packages import optional
from keepers.data.wording import first_line
from keepers.exceptions import DataError, KeepersError

_PURPOSE = "Tables of other libraries"
_READ_AS_THEY_ARE = ("iloc", "to_series", "to_frame", "combine_chunks", "__array_interface__")
"""Frames of pandas and polars, their columns, tables of Arrow, arrays: what types of them have."""


def as_frame(X: Any) -> Any:
    """Lazy and foreign tables as a frame with values; anything else as it is.

    A lazy frame is collected. A relation of DuckDB, a reader, dataset or batch of pyarrow, and
    whatever follows one of the protocols ``__arrow_c_stream__`` and ``__dataframe__`` becomes an
    Arrow table.
    """
    kind = type(X)
    exchanged = hasattr(kind, "__dataframe__") and not hasattr(kind, "__array__")
    if not (_is_lazy(X) or _is_dataset(X) or _gives_arrow(X) or exchanged):
        return X
    with _reading(X):
        if _is_lazy(X):
            return as_frame(X.collect())
        if _is_dataset(X):
            return X.to_table()
        if hasattr(kind, "__arrow_c_stream__"):
            return _arrow_stream(X).read_all()
        if hasattr(kind, "fetch_arrow_table"):
            return X.fetch_arrow_table()
        return optional("pyarrow.interchange", _PURPOSE).from_dataframe(X)


def frame_batches(X: Any) -> Callable[[], Iterable[Any]] | None:
    """What gives the rows of a frame, some at a time where the library can; None if it is none.

    A lazy frame, a dataset or a relation is run anew for every pass, so that it need not fit in
    memory. What passes by once, such as a reader of Arrow batches, is none of these.
    """
    kind = type(X)
    if isinstance(X, Iterator):
        return None
    if hasattr(kind, "columns") and hasattr(kind, "to_numpy") and not _gives_arrow(X):
        return lambda: [X]
    if hasattr(kind, "combine_chunks") and hasattr(kind, "column_names"):  # an Arrow table
        return lambda: X.to_batches()
    if _is_lazy(X) or _is_dataset(X) or _gives_arrow(X):
        return lambda: _batches(X)
    frame = as_frame(X)
    return None if frame is X else lambda: [frame]


def _batches(X: Any) -> Iterator[Any]:
    with _reading(X):
        if _is_dataset(X):
            yield from X.to_batches()
        elif _is_lazy(X) and hasattr(X, "collect_batches"):
            yield from X.collect_batches(maintain_order=True)
        elif hasattr(type(X), "__arrow_c_stream__"):
            yield from _arrow_stream(X)
        else:
            yield as_frame(X)


def _arrow_stream(X: Any) -> Any:
    return optional("pyarrow", _PURPOSE).RecordBatchReader.from_stream(X)


def _is_lazy(X: Any) -> bool:
    """Whether X is a plan of polars or narwhals, which gives a frame when it is collected."""
    return type(X).__name__ == "LazyFrame" and callable(getattr(X, "collect", None))


def _is_dataset(X: Any) -> bool:
    """Whether X is a dataset of pyarrow: files that are read when asked for."""
    return all(hasattr(type(X), name) for name in ("to_table", "to_batches", "scanner"))


def _gives_arrow(X: Any) -> bool:
    """Whether X hands itself over as Arrow data, and is not read as it is."""
    kind = type(X)
    if any(hasattr(kind, name) for name in _READ_AS_THEY_ARE):
        return False
    # The second is what DuckDB had before it had the protocol.
    return hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "fetch_arrow_table")


@contextmanager
def _reading(X: Any) -> Iterator[None]:
    """Make a `DataError` of whatever goes wrong in a query, or in the files that it reads."""
    try:
        yield
    except (KeepersError, MemoryError):
        raise
    except Exception as error:
        raise DataError(
            f"A table must hold values that can be read; this {type(X).__name__} gives none: "
            f"{first_line(error)}. Check the query, or the files that it reads."
        ) from error
