"""Text tables (.csv, .tsv), read in blocks of lines straight into the matrix."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.data.columns import ColumnPlan, plan_columns
from keepers.data.formats.cells import CellBlock, CellReader, plain_block, quoted_blocks
from keepers.data.formats.header import CSV_DELIMITERS, TSV_DELIMITERS, TextStart
from keepers.data.formats.records import LONGEST_CELL, longest_line, refuse_long_line, refuse_ragged
from keepers.data.formats.text_streams import open_text
from keepers.data.formats.words import as_classes
from keepers.data.growing import GrowingMatrix
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataWarning, warn_caller

__all__ = ["number_blocks", "read_csv", "read_tsv", "warn_of_doubt"]

BLOCK_BYTES = 4 * 2**20


def read_csv(path: Path, request: ReadRequest) -> LabelledTable:
    """Read comma-separated text; semicolons or tabs if the first line has those and no comma."""
    return _read_delimited(path, request, CSV_DELIMITERS)


def read_tsv(path: Path, request: ReadRequest) -> LabelledTable:
    """Read tab-separated text."""
    return _read_delimited(path, request, TSV_DELIMITERS)


def _read_delimited(path: Path, request: ReadRequest, delimiters: tuple[str, ...]) -> LabelledTable:
    with open_text(path, request.limit) as stream:
        start = TextStart.of(stream, delimiters, request.header)
        plan = plan_columns(start.names, request, index=start.index)
        warn_of_doubt(path, start)
        X, words, samples = _collect(stream, start, plan, request)
    labels = None
    if plan.labels is not None:
        classes = as_classes(words, may_have_commas=start.delimiter != ",")
        labels = as_labels(classes, str(request.labels))
    return LabelledTable(
        X,
        np.array([start.names[at] for at in plan.features], dtype=object),
        None if plan.identifier is None else as_names(samples, "identifier"),
        labels,
        path.name.split(".")[0],
    )


def warn_of_doubt(path: Path, start: TextStart) -> None:
    """Warn if the first line may be meant otherwise than it is read."""
    if start.doubt is not None:
        warn_caller(f"{path.name}: {start.doubt}", DataWarning)


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
