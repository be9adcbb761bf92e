"""Text tables (.csv, .tsv), read in blocks of lines straight into the matrix."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.data.columns import ColumnPlan, numbered_names, plan_columns, settled_names
from keepers.data.formats.cells import CellBlock, CellReader, plain_block, quoted_blocks
from keepers.data.formats.expansion import open_expanded
from keepers.data.growing import GrowingMatrix
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError

__all__ = [
    "CSV_DELIMITERS",
    "TSV_DELIMITERS",
    "TextStart",
    "number_blocks",
    "read_csv",
    "read_tsv",
]

CSV_DELIMITERS = (",", ";", "\t")
"""The first of these that the first line holds separates cells."""
TSV_DELIMITERS = ("\t",)
LONGEST_LINE = 256 * 2**20
BLOCK_BYTES = 4 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_csv(path: Path, request: ReadRequest) -> LabelledTable:
    """Read comma-separated text; semicolons or tabs if the first line has those and no comma."""
    return _read_delimited(path, request, CSV_DELIMITERS)


def read_tsv(path: Path, request: ReadRequest) -> LabelledTable:
    """Read tab-separated text."""
    return _read_delimited(path, request, TSV_DELIMITERS)


@dataclass(frozen=True)
class TextStart:
    """What the first two lines tell."""

    names: list[str]
    delimiter: str
    index: int | None
    """Position of a column of row names that has no name itself."""
    pending: bytes
    """Lines already read that hold data."""
    first_data_line: int

    @classmethod
    def of(cls, stream: IO[bytes], delimiters: tuple[str, ...]) -> "TextStart":
        """Read names, delimiter and perhaps the first line of values."""
        return _read_start(stream, delimiters)


def _read_delimited(path: Path, request: ReadRequest, delimiters: tuple[str, ...]) -> LabelledTable:
    with open_expanded(path, request.limit) as stream:
        start = TextStart.of(stream, delimiters)
        plan = plan_columns(start.names, request, index=start.index)
        X, labels, samples = _collect(stream, start, plan, request)
    return LabelledTable(
        X,
        np.array([start.names[at] for at in plan.features], dtype=object),
        None if plan.identifier is None else as_names(samples, "identifier"),
        None if plan.labels is None else as_labels(_classes(labels), str(request.labels)),
        path.name.split(".")[0],
    )


def _read_start(stream: IO[bytes], delimiters: tuple[str, ...]) -> TextStart:
    first_lines = [_next_line(stream)]
    if first_lines[0].startswith(_UTF_16):
        raise DataError("Text must be UTF-8; this is UTF-16. Save it as UTF-8.")
    first_lines[0] = first_lines[0].removeprefix(_BYTE_ORDER_MARK)
    head = _decoded(first_lines[0])
    delimiter = next((mark for mark in delimiters if mark in head), delimiters[0])

    def further_lines() -> Iterator[str]:
        """A quoted name may run over several lines."""
        yield head
        while more := _next_line(stream):
            first_lines.append(more)
            yield _decoded(more)

    first = next(csv.reader(further_lines(), delimiter=delimiter), [])
    if not any(cell.strip() for cell in first):
        raise DataError(
            "A text table starts with its column names; the first line is empty. Remove what "
            "stands above the names."
        )
    if all(_is_number(cell, delimiter) for cell in first):
        names = numbered_names(len(first))
        return TextStart(names, delimiter, None, b"".join(first_lines), 1)
    second = _next_line(stream)
    n_cells = len(next(csv.reader([_decoded(second)], delimiter=delimiter), []))
    # R's write.table leaves the row names without a column name; pandas and write.csv write "".
    index = 0 if n_cells == len(first) + 1 or not first[0].strip() else None
    cells = ["", *first] if n_cells == len(first) + 1 else first
    return TextStart(settled_names(cells), delimiter, index, second, len(first_lines) + 1)


def _next_line(stream: IO[bytes]) -> bytes:
    line = stream.readline(LONGEST_LINE + 1)
    _refuse_long_line(len(line))
    return line


def _refuse_long_line(length: int) -> None:
    if length > LONGEST_LINE:
        raise DataError(
            f"A line must be shorter than {LONGEST_LINE // 2**20} MiB; this file has a longer "
            "one. If it is a table, transpose it or store it in another format."
        )


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"Text must be UTF-8; {error.reason}. Save it as UTF-8.") from error


def _is_number(cell: str, delimiter: str) -> bool:
    try:
        float(cell.replace(",", ".") if delimiter == ";" else cell)
    except ValueError:
        return False
    return True


def _whole_lines(stream: IO[bytes], pending: bytes) -> Iterator[bytes]:
    """Blocks of the file that end where a line ends."""
    rest = pending
    while more := stream.read(BLOCK_BYTES):
        rest += more
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        _refuse_long_line(len(rest))
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
    for block in _split(_whole_lines(stream, start.pending), start, plan):
        values = reader.numbers(block)
        yield values if everything else values[:, plan.features], block


def _collect(
    stream: IO[bytes], start: TextStart, plan: ColumnPlan, request: ReadRequest
) -> tuple[Any, list[str], list[str]]:
    X = GrowingMatrix(len(plan.features), request.limit)
    labels: list[str] = []
    samples: list[str] = []
    for values, block in number_blocks(stream, start, plan):
        X.append(values)
        labels.extend(block.texts.get(plan.labels, ()))
        samples.extend(block.texts.get(plan.identifier, ()))
    return X.finished(), labels, samples


def _classes(labels: list[str]) -> Any:
    """Classes written as numbers become numbers; empty cells and NA are missing."""
    cells: list[str | None] = [
        None if label in ("", "NA", "NaN", "nan") else label for label in labels
    ]
    array = np.array(cells, dtype=object)
    if None in cells:
        return array
    for kind in (np.int64, np.float64):
        try:
            return array.astype(kind)
        except (ValueError, OverflowError):
            continue
    return array
