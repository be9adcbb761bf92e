"""Text tables (.csv, .tsv, compressed or not), parsed some lines at a time."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.blocks.local import rows_at_once
from keepers.data.columns import ColumnPlan, plan_columns
from keepers.data.formats.cells import CellBlock, parsed_cells
from keepers.data.formats.delimited import number_blocks
from keepers.data.formats.header import CSV_DELIMITERS, TSV_DELIMITERS, TextStart
from keepers.data.formats.text_streams import open_text
from keepers.data.formats.words import as_classes
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError, DataWarning, warn_caller

__all__ = ["TextBlocks", "open_csv", "open_tsv"]


class TextBlocks(FileBlocks):
    """Lines of a text table; how many there are is known only after the last."""

    def __init__(
        self, path: Path, title: str, delimiters: tuple[str, ...], request: ReadRequest
    ) -> None:
        with open_text(path, request.limit) as stream:
            start = TextStart.of(stream, delimiters, request.header)
        plan = plan_columns(start.names, request, index=start.index)
        if start.doubt is not None:
            warn_caller(f"{path.name}: {start.doubt}", DataWarning)
        super().__init__(path, [start.names[at] for at in plan.features], np.float64, None)
        self.title = title
        self._layout = (start.names, plan)
        self._delimiters = delimiters
        self._has_decimal_commas = start.delimiter != ","
        self._request = request

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        names, plan = self._layout
        n_columns = self.n_features if columns is None else len(columns)
        n_rows = 1 if self._request.whole else rows_at_once(n_columns)
        roles = plan if annotated else ColumnPlan(plan.features, None, None)
        with open_text(self.path, self._request.limit) as stream:
            start = TextStart.of(stream, self._delimiters, self._request.header)
            if start.names != names:
                raise DataError("It was changed since it was opened. Open it again.")
            pieces: list[tuple[NDArray[Any], CellBlock]] = []
            count = 0
            for values, cells in number_blocks(stream, start, roles):
                if len(values):
                    pieces.append((values if columns is None else values[:, columns], cells))
                    count += len(values)
                if count >= n_rows:
                    yield _joined(pieces, roles)
                    pieces, count = [], 0
            if pieces:
                yield _joined(pieces, roles)

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """Classes written as numbers become numbers, unless two of them become one."""
        words = list(chain.from_iterable(pieces))
        classes = as_classes(words, may_have_commas=self._has_decimal_commas)
        return as_labels(classes, str(self._request.labels))

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The cells of the identifier column."""
        return as_names(list(chain.from_iterable(pieces)), "identifier")


def open_csv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; commas, or else semicolons or tabs, separate cells."""
    return _open_text(path, request, "CSV", CSV_DELIMITERS)


def open_tsv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; tabs separate cells."""
    return _open_text(path, request, "TSV", TSV_DELIMITERS)


def _open_text(
    path: Path, request: ReadRequest, title: str, delimiters: tuple[str, ...]
) -> TextBlocks:
    with reading(path, title):
        parsed_cells(b"")  # raises at once if pyarrow is absent
        return TextBlocks(path, title, delimiters, request)


def _joined(pieces: list[tuple[NDArray[Any], CellBlock]], plan: ColumnPlan) -> Rows:
    """Small pieces put together to one block."""
    values = [values for values, _ in pieces]
    labels, sample_names = (
        None if at is None else list(chain.from_iterable(cells.texts[at] for _, cells in pieces))
        for at in (plan.labels, plan.identifier)
    )
    return Rows(values[0] if len(values) == 1 else np.concatenate(values), labels, sample_names)
