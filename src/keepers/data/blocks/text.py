"""Text tables (.csv, .tsv, compressed or not), parsed some lines at a time."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.local import rows_at_once
from keepers.data.columns import ColumnPlan, plan_columns
from keepers.data.formats.cells import parsed_cells
from keepers.data.formats.delimited import number_blocks, warn_of_doubt
from keepers.data.formats.header import CSV_DELIMITERS, TSV_DELIMITERS, TextStart
from keepers.data.formats.text_streams import open_text
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError

__all__ = ["TextBlocks", "open_csv", "open_tsv"]


class TextBlocks(FileBlocks):
    """Lines of a text table; how many there are is known only after the last."""

    title = "text"

    def __init__(
        self,
        path: Path,
        start: TextStart,
        plan: ColumnPlan,
        delimiters: tuple[str, ...],
        request: ReadRequest,
    ) -> None:
        super().__init__(path, [start.names[at] for at in plan.features], np.float64, None)
        self._layout = (start.names, plan.features)
        self._delimiters = delimiters
        self._request = request

    def _values(self, columns: IndexArray | None) -> Iterator[Any]:
        names, features = self._layout
        n_columns = self.n_features if columns is None else len(columns)
        with open_text(self.path, self._request.limit) as stream:
            start = TextStart.of(stream, self._delimiters, self._request.header)
            if start.names != names:
                raise DataError("It was changed since it was opened. Open it again.")
            pieces = number_blocks(stream, start, ColumnPlan(features, None, None))
            chosen = (values if columns is None else values[:, columns] for values, _ in pieces)
            yield from _gathered(chosen, rows_at_once(n_columns))


def open_csv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; commas, or else semicolons or tabs, separate cells."""
    return _open_text(path, request, CSV_DELIMITERS)


def open_tsv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; tabs separate cells."""
    return _open_text(path, request, TSV_DELIMITERS)


def _open_text(path: Path, request: ReadRequest, delimiters: tuple[str, ...]) -> TextBlocks:
    with reading(path, TextBlocks.title):
        parsed_cells(b"")  # raises at once if pyarrow is absent
        with open_text(path, request.limit) as stream:
            start = TextStart.of(stream, delimiters, request.header)
        plan = plan_columns(start.names, request, index=start.index)
        warn_of_doubt(path, start)
        return TextBlocks(path, start, plan, delimiters, request)


def _gathered(pieces: Iterable[NDArray[Any]], n_rows: int) -> Iterator[NDArray[Any]]:
    """Small pieces put together to blocks of at least so many rows."""
    pending: list[NDArray[Any]] = []
    count = 0
    for piece in pieces:
        if len(piece):
            pending.append(piece)
            count += len(piece)
        if count >= n_rows:
            yield np.concatenate(pending)
            pending, count = [], 0
    if pending:
        yield np.concatenate(pending)
