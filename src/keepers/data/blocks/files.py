"""What tables in files have in common: where their rows stand, and what is said of damage."""
# What a format provides is told in keepers.data.formats.registry.

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks
from keepers.data.growing import GrowingMatrix, GrowingSparse
from keepers.data.limits import SizeLimit
from keepers.data.read_errors import reading
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError

__all__ = ["FileBlocks", "Rows", "collect"]


class Rows(NamedTuple):
    """Some consecutive rows as a format reads them."""

    values: Any
    """Array or CSR matrix of the table's ``dtype``."""
    labels: Any = None
    """One entry a row, as stored; None unless asked for and there. Names likewise."""
    sample_names: Any = None


class FileBlocks(LocalBlocks):
    """A table, or a range of its rows, in one file; a format implements ``_read``.

    No file stays open between calls, so that a table can be sent to another process.
    """

    title: str
    order: Literal["C", "F"] = "C"
    """How a matrix of all rows is best laid out."""
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
    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        """The rows, block after block; any exception may pass.

        Labels and sample names are read, and handed over, only if ``annotated``.
        """

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """The labels of all blocks as classes: integers, other numbers, or text."""
        return as_labels(np.concatenate(pieces), "labels")

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The sample names of all blocks as text."""
        return as_names(np.concatenate(pieces), "identifier")

    def blocks(
        self, columns: IndexArray | None = None, *, annotated: bool = False
    ) -> Iterator[RowBlock]:
        """The rows, block after block, each with the place where it stands in the file.

        With labels and sample names, where the table has them, if ``annotated``.
        """
        with reading(self.path, self.title) as progress:
            progress.rows = before = 0 if self.rows is None else self.rows.start
            for values, labels, sample_names in self._read(columns, annotated):
                first = progress.rows + 1
                progress.rows += values.shape[0]
                origin = f"{self.name}, rows {first} to {progress.rows}"
                yield RowBlock(values, origin, labels, sample_names)
            self._refuse_incomplete(progress.rows - before)

    def _refuse_incomplete(self, n_rows: int) -> None:
        if self.n_samples is not None and n_rows != self.n_samples:
            raise DataError(
                f"It declares {self.n_samples} rows and gave {n_rows}: it is damaged, or was "
                "changed while it was read. Obtain or write it again."
            )
        if n_rows == 0:
            raise DataError(_NO_ROWS)

    def parts(self, n_parts: int) -> Sequence["FileBlocks"]:
        """The same rows as tables of their own, about ``n_parts``, for workers to share."""
        return [self]

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


def collect(table: FileBlocks, limit: SizeLimit, name: str) -> LabelledTable:
    """All rows of a table, with labels and sample names where it has them.

    Raises `DataError` as soon as they are known to outgrow the limit.
    """
    growing = GrowingSparse if table.is_sparse else GrowingMatrix
    X = growing(table.n_features, limit, table.dtype, table.n_samples, table.order)
    labels: list[Any] = []
    sample_names: list[Any] = []
    for block in table.blocks(annotated=True):
        X.append(block.values)
        if block.labels is not None:
            labels.append(block.labels)
        if block.sample_names is not None:
            sample_names.append(block.sample_names)
    return LabelledTable(
        X.finish(),
        table.feature_names,
        table.row_names(sample_names) if sample_names else None,
        table.class_labels(labels) if labels else None,
        name,
    )


_NO_ROWS = "It holds no rows. Leave it out, or write it again with rows."
