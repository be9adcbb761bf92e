"""Text tables in blocks of whole lines."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO

from keepers._protocols import FloatArray
from keepers.data.columns import ColumnPlan
from keepers.data.formats.cells import CellBlock, CellReader, plain_block, quoted_blocks
from keepers.data.formats.header import TextStart
from keepers.data.formats.records import LONGEST_CELL, longest_line, refuse_long_line, refuse_ragged

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
