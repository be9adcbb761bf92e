"""Tables that are read in blocks of rows, and those of them that lie in files."""

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock, Sum
from keepers._wording import first_line
from keepers.exceptions import DataError, KeepersError
from keepers.tables.table import Table

BLOCK_BYTES = 8 * 2**20
"""Large enough for one product per block to be efficient, small enough for a cache to help."""


def rows_at_once(n_columns: int, itemsize: int = 8, n_bytes: int = BLOCK_BYTES) -> int:
    """Number of rows of ``n_columns`` columns that make a block."""
    return max(1, n_bytes // (max(n_columns, 1) * itemsize))


class LocalBlocks(ABC):
    """A `BlockTable` that this process reads; a kind of storage implements ``blocks``."""

    name: str
    n_features: int
    dtype: np.dtype[Any]
    n_samples: int | None = None
    n_stored: int | None = None
    is_sparse: bool = False
    rereadable: bool = True
    is_local: bool = True
    feature_names: NDArray[np.object_] | None = None

    @abstractmethod
    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of them, in that order, if given."""

    def parts(self, n_parts: int) -> Sequence["LocalBlocks"]:
        """The same rows as about ``n_parts`` tables, for workers to share."""
        return [self]

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        result = begin()
        width = self.n_features if columns is None else len(columns)
        for block in self.blocks(columns):
            refuse_misshapen(block, width)
            result.add(block)
        return result


def refuse_misshapen(block: RowBlock, width: int) -> None:
    """Raise for a block without rows, or with another number of columns."""
    n_rows, n_columns = block.values.shape
    if n_columns != width:
        raise DataError(
            f"Every block must have the same {width} columns; {block.origin} has {n_columns}. "
            "Leave it out, or write it again with the columns of the others."
        )
    if n_rows == 0:
        raise DataError(
            f"Every block must hold at least one row; {block.origin} holds none. Leave it out."
        )


class FileScan(LocalBlocks):
    """A table in one file or in several, read in blocks of rows.

    No file stays open between calls, so a scan can be sent to another process.

    Attributes
    ----------
    features : list of str
        All features in the order of the source.
    feature_names : object array of str
        The features that are numbers.
    others : list of str
        The features that hold text or dates.
    identifier, labels : str or None
        Columns with sample names and classes.
    types : mapping of str to polars type
        As in `Table`.
    """

    features: list[str]
    feature_names: NDArray[np.object_]
    others: Sequence[str] = ()
    identifier: str | None = None
    labels: str | None = None
    types: Mapping[str, Any] = MappingProxyType({})

    @property
    def columns(self) -> list[str]:
        """As in `Table`."""
        return self.features

    @abstractmethod
    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        """The rows, block after block, with sample names, classes, text and dates.

        ``names``: only these features, in the order of the source.
        """


class MemoryScan(FileScan):
    """A table in memory, in blocks of rows: for code that reads blocks."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.name, self.types, self.is_sparse = table.name, table.types, table.is_sparse
        self.features, self.others = table.columns, table.others
        self.feature_names, self.n_features = table.names, table.n_features
        self.dtype, self.n_samples = table.values.dtype, table.n_samples
        self.n_stored = int(table.values.nnz if table.is_sparse else table.values.size)
        self.identifier = None if table.ids is None else "sample"
        self.labels = None if table.labels is None else "label"

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        values = self._table.values
        step = rows_at_once(self.n_features, self.dtype.itemsize)
        for start in range(0, self._table.n_samples, step):
            rows = values[start : start + step]
            origin = f"{self.name}, rows {start + 1} to {start + rows.shape[0]}"
            yield RowBlock(rows if columns is None else rows[:, columns], origin)

    def tables(self, names: Sequence[str] | None = None) -> Iterator[Table]:
        yield self._table if names is None else self._table.select(names)


def even_ranges(rows: range, n_parts: int) -> list[range]:
    """Cut consecutive rows into at most ``n_parts`` ranges, none of them empty."""
    n_parts = max(1, min(n_parts, len(rows)))
    cuts = [rows.start + len(rows) * part // n_parts for part in range(n_parts + 1)]
    return [range(start, stop) for start, stop in pairwise(cuts)]


def known_sum(numbers: Iterable[float | None]) -> int | None:
    """The sum, or None if one of the numbers is not known (None, or nan in Dask)."""
    total = sum(np.nan if number is None else number for number in numbers)
    return None if np.isnan(total) else int(total)


@contextmanager
def reading(path: Path, title: str) -> Iterator[None]:
    """Put the path in front of errors of ours; make a `DataError` of those of libraries.

    An exception that was raised in the code of keepers itself, and is not one of ours, is a bug
    and passes as it is.
    """
    try:
        yield
    except KeepersError as error:
        if str(error).startswith(str(path)) or isinstance(error, ImportError):
            raise
        raise type(error)(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} does not fit in memory. Read a part of the table, or use a larger machine."
        ) from error
    except BaseException as error:
        if not raised_outside(error):
            raise
        raise DataError(
            f"{path} is not a readable {title} file: {first_line(error)}. Check that it is "
            "complete and that its suffix tells its format, or write it again."
        ) from error


def raised_outside(error: BaseException) -> bool:
    """Whether a library or the system raised it; not the code of keepers, nor an interruption."""
    if not isinstance(error, Exception):
        return type(error).__name__ == "PanicException"  # of polars
    if isinstance(error, (OSError, UnicodeError, EOFError)):
        return True
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] != "keepers"
