"""What tables in files have in common: where their rows stand, and what is said of damage."""

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks
from keepers.data.read_errors import reading
from keepers.exceptions import DataError

__all__ = ["FileBlocks"]


class FileBlocks(LocalBlocks):
    """A table, or a range of its rows, in one file; a format implements ``_values``.

    No file stays open between calls, so that a table can be sent to another process.
    """

    title: ClassVar[str]
    _layout: Any = None
    """What the format knows of the columns; equal for files that are laid out alike."""

    def __init__(
        self,
        path: Path,
        feature_names: Sequence[str],
        dtype: Any,
        rows: range | None,
        n_stored: int | None = None,
    ) -> None:
        if rows is not None and not len(rows):
            raise DataError(_NO_ROWS)
        self.path = path
        self.name = path.name
        self.feature_names: NDArray[np.object_] = np.array(feature_names, dtype=object)
        self.n_features = len(feature_names)
        self.dtype = np.dtype(dtype)
        self.rows = rows
        self.n_samples = None if rows is None else len(rows)
        self.n_stored = n_stored
        if n_stored is None and rows is not None:
            self.n_stored = len(rows) * self.n_features

    @abstractmethod
    def _values(self, columns: IndexArray | None) -> Iterator[Any]:
        """The rows, block after block, as arrays of ``dtype``; any exception may pass."""

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block, each with the place where it stands in the file."""
        with reading(self.path, self.title) as progress:
            progress.rows = before = 0 if self.rows is None else self.rows.start
            for values in self._values(columns):
                first = progress.rows + 1
                progress.rows += values.shape[0]
                yield RowBlock(values, f"{self.name}, rows {first} to {progress.rows}")
            self._refuse_incomplete(progress.rows - before)

    def _refuse_incomplete(self, n_rows: int) -> None:
        if self.n_samples is not None and n_rows != self.n_samples:
            raise DataError(
                f"It declares {self.n_samples} rows and gave {n_rows}: it is damaged, or was "
                "changed while it was read. Obtain or write it again."
            )
        if n_rows == 0:
            raise DataError(_NO_ROWS)

    def called(self, name: str) -> Self:
        """The same table by another name in messages."""
        other = copy.copy(self)
        other.name = name
        return other

    def in_precision(self, dtype: np.dtype[Any]) -> Self:
        """The same table with values of another kind."""
        other = copy.copy(self)
        other.dtype = dtype
        return other

    def sharing_with(self, other: "FileBlocks") -> Self:
        """The same table; what equals the other's is the other's.

        Thousands of files are then sent to a worker with the names of their columns once.
        """
        twin = copy.copy(self)
        if np.array_equal(self.feature_names, other.feature_names):
            twin.feature_names = other.feature_names
        if self._layout == other._layout:
            twin._layout = other._layout
        return twin

    def of_rows(self, rows: range) -> Self:
        """Some consecutive rows of the same table, counted as in the file."""
        other = copy.copy(self)
        other.rows, other.n_samples = rows, len(rows)
        other.n_stored = len(rows) * self.n_features
        return other


_NO_ROWS = "It holds no rows. Leave it out, or write it again with rows."
