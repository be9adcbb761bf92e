"""Text tables (.csv, .tsv, compressed or not): parsed some lines at a time, and written.

Numbers are written exactly, and no text so that a spreadsheet takes it for a formula.
"""

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.blocks.local import rows_at_once
from keepers.data.columns import ColumnPlan, ReadRequest, plan_columns
from keepers.data.formats.compression import open_compressing, open_expanded
from keepers.data.formats.text_cells import (
    LONGEST_CELL,
    CellBlock,
    CellReader,
    as_classes,
    longest_line,
    plain_block,
    quoted_blocks,
    refuse_long_line,
    refuse_ragged,
)
from keepers.data.formats.text_header import (
    CSV_DELIMITERS,
    TSV_DELIMITERS,
    TextStart,
)
from keepers.data.limits import SizeLimit
from keepers.data.table import WrittenTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError, DataWarning, warn_caller


class TextBlocks(FileBlocks):
    """Lines of a text table; how many there are is known only after the last."""

    def __init__(
        self, path: Path, title: str, delimiters: tuple[str, ...], request: ReadRequest
    ) -> None:
        optional("pyarrow", "Text tables")  # said at once, not when blocks are read
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
                    yield _join(pieces, roles)
                    pieces, count = [], 0
            if pieces:
                yield _join(pieces, roles)

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
    return TextBlocks(path, "CSV", CSV_DELIMITERS, request)


def open_tsv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; tabs separate cells."""
    return TextBlocks(path, "TSV", TSV_DELIMITERS, request)


def _join(pieces: list[tuple[NDArray[Any], CellBlock]], plan: ColumnPlan) -> Rows:
    """Small pieces put together to one block."""
    values = [values for values, _ in pieces]
    labels, sample_names = (
        None if at is None else list(chain.from_iterable(cells.texts[at] for _, cells in pieces))
        for at in (plan.labels, plan.identifier)
    )
    return Rows(values[0] if len(values) == 1 else np.concatenate(values), labels, sample_names)


BLOCK_BYTES = 4 * 2**20


def _whole_lines(stream: IO[bytes], start: TextStart) -> Iterator[bytes]:
    """Blocks of the file that end where a line ends; a line that is too long is not awaited."""
    n_columns, mark = len(start.names), start.delimiter.encode()
    line = start.first_data_line + start.pending.count(b"\n")
    held = [start.pending]
    length = n_marks = 0
    while more := stream.read(BLOCK_BYTES):
        cut = more.rfind(b"\n") + 1
        if cut:
            yield b"".join([*held, more[:cut]])
            line += more.count(b"\n")
            held, length, n_marks = [], 0, 0
        held.append(more[cut:])
        length += len(held[-1])
        n_marks += held[-1].count(mark)
        refuse_long_line(length, longest_line(n_columns))
        if n_marks > n_columns + LONGEST_CELL:  # a quoted cell may hold delimiters
            refuse_ragged(line, n_marks + 1, n_columns)
    rest = b"".join(held)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def _split(blocks: Iterable[bytes], start: TextStart, plan: ColumnPlan) -> Iterator[CellBlock]:
    """Cells of each block; from the first quotation mark on, by the rules of quoting."""
    line = start.first_data_line
    stream = iter(blocks)
    for block in stream:
        if b'"' in block:
            rest = chain([block], stream)
            yield from quoted_blocks(rest, start.names, start.delimiter, plan, line)
            return
        cells, n_lines = plain_block(block, start.names, start.delimiter, plan, line)
        line += n_lines
        yield cells


def number_blocks(
    stream: IO[bytes], start: TextStart, plan: ColumnPlan
) -> Iterator[tuple[FloatArray, CellBlock]]:
    """Rows x features of each block of lines, and the cells that they were."""
    reader = CellReader(start.names, start.delimiter)
    everything = len(plan.features) == len(start.names)
    for block in _split(_whole_lines(stream, start), start, plan):
        values = reader.numbers(block)
        yield values if everything else values[:, plan.features], block


_BUFFER = 2**20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_text(path: Path, limit: SizeLimit) -> IO[bytes]:
    """The file, expanded; UTF-16 with a byte order mark as UTF-8, CR-only line ends as newlines."""
    stream = open_expanded(path, limit)
    try:
        if stream.peek().startswith(_UTF_16):
            decoder = codecs.getincrementaldecoder("utf-16")()
            stream = _filter(stream, lambda block: decoder.decode(block, not block).encode())
        if _has_bare_returns(stream.peek()):
            stream = _filter(stream, lambda block: block.replace(b"\r", b"\n"))
    except BaseException:
        stream.close()
        raise
    return stream


def _has_bare_returns(start: bytes) -> bool:
    """Whether lines end in CR alone, as spreadsheets on old Macs save them."""
    return b"\r" in start and b"\n" not in re.sub(rb'"[^"]*"', b"", start)


def _filter(stream: IO[bytes], change: Callable[[bytes], bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Filter(stream, change), _BUFFER)


class _Filter(io.RawIOBase):
    """A stream each of whose blocks is changed; the last, empty one is handed over as well."""

    def __init__(self, inner: IO[bytes], change: Callable[[bytes], bytes]) -> None:
        self._inner, self._change = inner, change
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        more = b"more"
        while not self._ready and more:
            more = self._inner.read(_BUFFER)
            self._ready = memoryview(self._change(more))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._inner.close()
        super().close()


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_CELLS_PER_BLOCK = 500_000


def write_csv(path: Path, table: WrittenTable, name: str) -> None:
    """Write comma-separated text, compressed if ``name`` says so."""
    _write(path, table, name, ",")


def write_tsv(path: Path, table: WrittenTable, name: str) -> None:
    """Write tab-separated text, compressed if ``name`` says so."""
    _write(path, table, name, "\t")


def harmless(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would evaluate.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-1.5"), harmless("gene")
    ("'=1+1", '-1.5', 'gene')
    """
    if not text.startswith(_FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text if text[0] in "+-" else "'" + text


def _write(path: Path, table: WrittenTable, name: str, delimiter: str) -> None:
    n_samples, n_features = table.X.shape
    leading = _leading_cells(table, delimiter)
    titles = [table.identifier_name] * (table.sample_names is not None)
    titles += [table.label_name] * (table.labels is not None)
    with open_compressing(path, name) as stream:
        stream.write(text_line([*titles, *table.feature_names], delimiter).encode() + b"\n")
        step = max(1, _CELLS_PER_BLOCK // max(1, n_features))
        for start in range(0, n_samples, step):
            rows = table.X[start : start + step]
            rows = rows.toarray() if table.is_sparse else np.ascontiguousarray(rows)
            lines = _number_lines(rows, delimiter)
            if leading:
                before = leading[start : start + step]
                lines = [f"{a}{delimiter}{b}" for a, b in zip(before, lines, strict=True)]
            stream.write("\n".join(lines).encode() + b"\n")


def _leading_cells(table: WrittenTable, delimiter: str) -> list[str]:
    """Sample names and labels of each row, as they will stand in the file."""
    columns: list[Sequence[str]] = []
    if table.sample_names is not None:
        columns.append(table.sample_names)
    if table.labels is not None:
        columns.append(table.text_labels())
    return [text_line(cells, delimiter) for cells in zip(*columns, strict=True)]


def text_line(cells: Iterable[Any], delimiter: str) -> str:
    """Cells of one row as they stand in a file, without the line end; None is an empty cell."""
    text = io.StringIO()
    # The line end is also what tells the writer which characters to quote.
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue().removesuffix("\r\n")


def _number_lines(rows: Any, delimiter: str) -> list[str]:
    """Every row joined by the delimiter, in the shortest digits that read back the same."""
    pa = optional("pyarrow", "Text tables")
    pc = optional("pyarrow.compute", "Text tables")
    if rows.dtype.kind == "b":
        rows = rows.astype(np.int8)
    elif rows.dtype == np.float16 or rows.dtype.itemsize > 8:
        rows = rows.astype(np.float64)
    n_rows, n_columns = rows.shape
    cells = pa.array(rows.ravel()).cast(pa.string())
    offsets = pa.array(np.arange(0, (n_rows + 1) * n_columns, n_columns, dtype=np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, cells), delimiter)
    return list(joined.to_pylist())
