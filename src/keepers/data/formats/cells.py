"""Cells of text tables: lines to cells, cells to numbers.

A wide table has thousands of columns and few rows, and a reader that builds one array per column
and block spends its time on starting arrays. Here every cell of a block becomes a line of its
own, so that pyarrow parses one long column; the block is then folded back into rows.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.data.columns import ColumnPlan, refuse_text
from keepers.exceptions import DataError, MissingDependencyError

__all__ = ["CellBlock", "CellReader", "parsed_cells", "plain_block", "quoted_blocks"]

_NEWLINE, _ZERO = ord("\n"), ord("0")
_CELLS_PER_BLOCK = 500_000
_MISSING = {b"", b"NA", b"N/A", b"n/a", b"#N/A", b"#NA", b"NULL", b"null", b"None"}
_TRUTH = {b"true": 1.0, b"false": 0.0}


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
    n_lines = block.count(b"\n")
    if block.startswith((b"\n", b"\r\n")) or b"\n\n" in block or b"\n\r\n" in block:
        rows = (row for row in block.split(b"\n") if row.strip(b"\r"))
        block = b"".join(row + b"\n" for row in rows)
    n_columns = len(names)
    cells = block.replace(delimiter.encode(), b"\n")
    breaks = np.flatnonzero(np.frombuffer(cells, dtype=np.uint8) == _NEWLINE)
    row_ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8)[breaks] == _NEWLINE)
    lengths = np.diff(row_ends, prepend=-1)
    if np.any(lengths != n_columns):
        at = int(np.argmax(lengths != n_columns))
        _refuse_ragged(line + at, int(lengths[at]), n_columns)
    texts: dict[int | None, list[str]] = {}
    if len(plan.features) < n_columns:
        cells = _without_texts(block, cells, breaks.reshape(-1, n_columns), plan, texts)
    return CellBlock(cells, len(row_ends), texts), n_lines


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
    try:
        return [block[start:stop].decode("utf-8").strip() for start, stop in pairs]
    except UnicodeDecodeError as error:
        raise DataError(f"Text must be UTF-8; {error.reason}. Save it as UTF-8.") from error


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
    features = set(plan.features)
    blanked = [at for at in range(n_columns) if at not in features]
    rows = csv.reader(_text_lines(blocks), delimiter=delimiter)
    rows_per_block = max(1, _CELLS_PER_BLOCK // n_columns)
    while block := list(islice(rows, rows_per_block)):
        cells: list[str] = []
        texts: dict[int | None, list[str]] = {at: [] for at in texts_at}
        n_rows = 0
        for row in block:
            if not row:
                continue
            if len(row) != n_columns:
                _refuse_ragged(line + rows.line_num - 1, len(row), n_columns)
            for at in texts_at:
                texts[at].append(row[at].strip())
            for at in blanked:
                row[at] = "0"
            cells += row
            n_rows += 1
        flat = "\n".join(cells)
        if flat.count("\n") >= len(cells):  # a line break inside a cell
            flat = "\n".join(cell.replace("\n", " ") for cell in cells)
        yield CellBlock(flat.encode() + b"\n", n_rows, texts)


def _text_lines(blocks: Iterable[bytes]) -> Iterator[str]:
    for block in blocks:
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"Text must be UTF-8; {error.reason}. Save it as UTF-8.") from error
        yield from (row + "\n" for row in text.split("\n")[:-1])


def _refuse_ragged(line: int, n_cells: int, n_columns: int) -> None:
    raise DataError(
        f"Every line must have as many cells as there are columns ({n_columns}); about line {line} "
        f"there are {n_cells}. Mend the line, or check the delimiter."
    )


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
        # Where semicolons separate cells, a comma inside one can only be a decimal comma.
        self._decimal = "," if delimiter == ";" else "."

    def numbers(self, block: CellBlock) -> FloatArray:
        """Rows x columns; missing cells are NaN, true and false are 1 and 0."""
        n_columns = len(self._names)
        try:
            values = parsed_cells(block.cells, decimal=self._decimal)
        except ValueError:  # pyarrow.ArrowInvalid: some cell is not quite a number
            values = self._patiently(block.cells)
        return values.reshape(block.n_rows, n_columns)

    def _patiently(self, cells: bytes) -> FloatArray:
        """Cell by cell: spaces, truth values; names the columns that hold something else."""
        values = []
        bad: dict[str, None] = {}
        decimal = self._decimal.encode()
        for position, cell in enumerate(cells.split(b"\n")[:-1]):
            word = cell.strip()
            if word in _MISSING:
                values.append(np.nan)
                continue
            try:
                if b"_" in word:  # Python reads 1_000 as a number; nobody else does
                    raise ValueError
                values.append(float(word.replace(decimal, b".")))
            except ValueError:
                values.append(_TRUTH.get(word.lower(), np.nan))
                if word.lower() not in _TRUTH:
                    bad[self._names[position % len(self._names)]] = None
        refuse_text(list(bad))
        return np.array(values)
