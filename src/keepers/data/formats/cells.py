"""Cells of text tables: lines to cells, cells to numbers.

A wide table has thousands of columns and few rows, and a reader that builds one array per column
and block spends its time on starting arrays. Here every cell of a block becomes a line of its
own, so that pyarrow parses one long column; the block is then folded back into rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.data.columns import ColumnPlan, refuse_text
from keepers.data.formats.records import decoded, read_records, refuse_ragged
from keepers.data.formats.words import as_float, is_grouped, is_number, is_rounded_integer, is_value
from keepers.data.limits import LARGEST_EXACT_INTEGER
from keepers.data.values import refuse_rounded_integers
from keepers.exceptions import DataError, MissingDependencyError, shortened

__all__ = ["CellBlock", "CellReader", "parsed_cells", "plain_block", "quoted_blocks"]

_NEWLINE, _ZERO = ord("\n"), ord("0")
_CHARACTERS_PER_BLOCK = 4 * 2**20


@dataclass(frozen=True)
class CellBlock:
    """Some rows of the table."""

    cells: bytes
    """One cell a line, row after row; columns that are no features hold zeros."""
    n_rows: int
    texts: dict[int | None, list[str]] = field(default_factory=dict)
    """Cells of the label and identifier columns, by column."""


def plain_block(
    block: bytes, names: list[str], delimiter: str, plan: ColumnPlan, line: int
) -> tuple[CellBlock, int]:
    """Cells of a block without quotation marks, and how many lines it has."""
    n_columns, n_lines = len(names), block.count(b"\n")
    mark = delimiter.encode()
    rows = _without_blank_lines(block)
    # Counted first: a damaged line may have more cells than there is memory to list them.
    if rows.count(mark) != rows.count(b"\n") * (n_columns - 1):
        _refuse_uneven(block, mark, n_columns, line)
    cells = rows.replace(mark, b"\n")
    breaks = np.flatnonzero(np.frombuffer(cells, dtype=np.uint8) == _NEWLINE)
    row_ends = np.flatnonzero(np.frombuffer(rows, dtype=np.uint8)[breaks] == _NEWLINE)
    if np.any(np.diff(row_ends, prepend=-1) != n_columns):
        _refuse_uneven(block, mark, n_columns, line)
    texts: dict[int | None, list[str]] = {}
    if len(plan.features) < n_columns:
        cells = _without_texts(rows, cells, breaks.reshape(-1, n_columns), plan, texts)
    return CellBlock(cells, len(row_ends), texts), n_lines


def _without_blank_lines(block: bytes) -> bytes:
    if block.startswith((b"\n", b"\r\n")) or b"\n\n" in block or b"\n\r\n" in block:
        rows = (row for row in block.split(b"\n") if row.strip(b"\r"))
        return b"".join(row + b"\n" for row in rows)
    return block


def _refuse_uneven(block: bytes, mark: bytes, n_columns: int, line: int) -> None:
    """Raise for the first line that has too few or too many cells."""
    for at, row in enumerate(block.split(b"\n")):
        n_cells = row.count(mark) + 1
        if row.strip(b"\r") and n_cells != n_columns:
            refuse_ragged(line + at, n_cells, n_columns)


def _without_texts(
    block: bytes, cells: bytes, breaks: Any, plan: ColumnPlan, texts: dict[int | None, list[str]]
) -> bytes:
    """Move label and identifier cells to ``texts``; put zeros where no feature stands."""
    codes = np.frombuffer(bytearray(cells), dtype=np.uint8)
    row_starts = np.concatenate([[-1], breaks[:-1, -1]])
    for at in sorted(set(range(breaks.shape[1])) - set(plan.features)):
        starts = (breaks[:, at - 1] if at else row_starts) + 1
        if at in (plan.labels, plan.identifier):
            texts[at] = _decoded_cells(block, starts, breaks[:, at])
        _blank(codes, starts, breaks[:, at])
    return codes.tobytes()


def _decoded_cells(block: bytes, starts: Any, stops: Any) -> list[str]:
    pairs = zip(starts.tolist(), stops.tolist(), strict=True)
    return [decoded(block[start:stop]).strip() for start, stop in pairs]


def _blank(codes: Any, starts: Any, stops: Any) -> None:
    """Overwrite cells by zeros, so that what is no number can pass as one."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    codes[np.repeat(starts - before, lengths) + np.arange(lengths.sum())] = _ZERO


def quoted_blocks(
    blocks: Iterable[bytes], names: list[str], delimiter: str, plan: ColumnPlan, line: int
) -> Iterator[CellBlock]:
    """Cells where quotation marks may enclose delimiters and line breaks."""
    n_columns = len(names)
    texts_at = [at for at in (plan.labels, plan.identifier) if at is not None]
    blanked = sorted(set(range(n_columns)) - set(plan.features))
    rows: list[str] = []
    texts: dict[int | None, list[str]] = {at: [] for at in texts_at}
    size = 0
    for begun, row in read_records(_text_lines(blocks), delimiter, line, n_columns):
        if not row:
            continue
        if len(row) != n_columns:
            refuse_ragged(begun, len(row), n_columns)
        for at in texts_at:
            texts[at].append(row[at].strip())
        for at in blanked:
            row[at] = "0"
        cells = "\n".join(row)
        if cells.count("\n") >= n_columns:  # a line break inside a cell
            cells = "\n".join(cell.replace("\n", " ") for cell in row)
        rows.append(cells)
        size += len(cells)
        if size >= _CHARACTERS_PER_BLOCK:
            yield CellBlock("\n".join([*rows, ""]).encode(), len(rows), texts)
            rows, texts, size = [], {at: [] for at in texts_at}, 0
    if rows:
        yield CellBlock("\n".join([*rows, ""]).encode(), len(rows), texts)


def _text_lines(blocks: Iterable[bytes]) -> Iterator[str]:
    for block in blocks:
        yield from (row + "\n" for row in decoded(block).split("\n")[:-1])


WORTH_THREADS = 2**20


def parsed_cells(cells: bytes, *, decimal: str = ".", skip_empty: bool = False) -> FloatArray:
    """Numbers that stand one a line; an empty line is NaN, or skipped."""
    try:
        import pyarrow as pa
        import pyarrow.csv as pa_csv
    except ImportError as error:
        raise MissingDependencyError(
            'Text tables need pyarrow: pip install "keepers[io]".'
        ) from error
    if not cells:
        return np.empty(0)
    table = pa_csv.read_csv(
        pa.py_buffer(cells),
        # For a small table threads gain nothing, and a process that ends while pyarrow's are still
        # being started can be aborted (seen once in a hundred runs with pyarrow 16).
        read_options=pa_csv.ReadOptions(
            column_names=["cell"], use_threads=len(cells) > WORTH_THREADS
        ),
        # No quoting and no delimiter is left to find; \x01 stands in for one.
        parse_options=pa_csv.ParseOptions(
            delimiter="\x01", quote_char=False, ignore_empty_lines=skip_empty
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types={"cell": pa.float64()}, decimal_point=decimal
        ),
    )
    return table.column(0).to_numpy()


class CellReader:
    """Turns blocks of cells into rows of numbers."""

    def __init__(self, names: list[str], delimiter: str) -> None:
        self._names = names
        # Where no commas separate cells, a comma in a number may be a decimal comma; the first
        # number with a comma or a point tells which of the two the file has. Semicolons are
        # written where the comma is one; between tabs it may also separate thousands.
        self._may_be_comma = delimiter != ","
        self._may_be_thousands = delimiter != ";"
        self._decimal: str | None = None if self._may_be_comma else "."

    def numbers(self, block: CellBlock) -> FloatArray:
        """Rows x columns; missing cells are NaN, true and false are 1 and 0."""
        n_columns = len(self._names)
        self._find_decimal_mark(block.cells)
        decimal = self._decimal or "."
        try:
            values = parsed_cells(block.cells, decimal=decimal)
        except ValueError:  # pyarrow.ArrowInvalid: some cell is not quite a number
            values = None
        if values is None or values.size != block.n_rows * n_columns:  # \r makes two of a cell
            values = self._patiently(block.cells, decimal)
        self._refuse_rounded(values, block.cells)
        return values.reshape(block.n_rows, n_columns)

    def _find_decimal_mark(self, cells: bytes) -> None:
        """Unless commas separate cells: take the first mark of a number, refuse any other."""
        for mark in (",", ".") if self._may_be_comma else ():
            if mark == self._decimal or mark.encode() not in cells:
                continue
            column, word = self._first_number_with(mark, cells)
            if word and self._decimal is not None:
                raise DataError(
                    "Numbers must have a decimal comma or a decimal point, not both; column "
                    f"{shortened(column)} holds {shortened(word)}, and other numbers have "
                    f"{shortened(self._decimal)}. Write "
                    "one of them, and no thousands separators."
                )
            self._decimal = mark if word else self._decimal

    def _first_number_with(self, mark: str, cells: bytes) -> tuple[str, str]:
        """Column and text of the first number that has this mark, thousands or not."""
        other = "." if mark == "," else ","
        doubtful = ""
        for position, cell in enumerate(cells.split(b"\n")):
            if mark.encode() in cell:
                word = cell.decode("utf-8", errors="replace").strip()
                if mark == "," and self._may_be_thousands and is_grouped(word):
                    doubtful = doubtful or word
                elif is_number(word.replace(other, "").replace(mark, ".")):
                    return self._names[position % len(self._names)], word
        if doubtful:
            raise DataError(
                f"A comma in a number must be a decimal comma; {shortened(doubtful)} may as well "
                "be "
                f"{doubtful.replace(',', '')}, and no other number tells. Write decimal points, "
                "and no thousands separators."
            )
        return "", ""

    def _patiently(self, cells: bytes, decimal: str) -> FloatArray:
        """Cell by cell: spaces, truth values; names the columns that hold something else."""
        values = []
        bad: dict[str, None] = {}
        for position, cell in enumerate(cells.split(b"\n")[:-1]):
            word = cell.decode("utf-8", errors="replace").strip().replace(decimal, ".")
            if is_value(word):
                values.append(as_float(word))
            else:
                values.append(np.nan)
                bad[self._names[position % len(self._names)]] = None
        refuse_text(list(bad))
        return np.array(values)

    def _refuse_rounded(self, values: FloatArray, cells: bytes) -> None:
        """Refuse integers that float64 does not hold exactly."""
        large = np.flatnonzero(np.abs(values) >= LARGEST_EXACT_INTEGER)
        if large.size:
            words = cells.split(b"\n")
            rounded = [at for at in large.tolist() if is_rounded_integer(words[at].decode())]
            names = dict.fromkeys(self._names[at % len(self._names)] for at in rounded)
            refuse_rounded_integers([repr(name) for name in names])
