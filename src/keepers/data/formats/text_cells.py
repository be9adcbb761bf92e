"""Text tables from lines to cells, and from cells to numbers.

A small compressed file may expand to a line of gigabytes, so every line is measured while it is
read, before it is taken apart.

A wide table has thousands of columns and few rows, and a reader that builds one array per column
and block spends its time on starting arrays. Here every cell of a block becomes a line of its
own, so that pyarrow parses one long column; the block is then folded back into rows
(docs/decisions/0009-text-cells.md).
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import IO, Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray
from keepers.data.columns import GAP_WORDS
from keepers.data.limits import LARGEST_EXACT_INTEGER, MOST_COLUMNS, refuse_columns
from keepers.data.table import ColumnPlan, refuse_text
from keepers.data.values import refuse_rounded_integers
from keepers.data.wording import readable_size
from keepers.exceptions import DataError, shorten

LONGEST_LINE = 256 * 2**20
LONGEST_CELL = 2**17
"""What Python's csv module allows by default; no number needs more than some hundred bytes."""
_SHORTEST_LIMIT = 4 * 2**20
_PIECE = 2**20


def longest_line(n_columns: int) -> int:
    """Bytes that a line of so many cells may have."""
    return min(LONGEST_LINE, max(_SHORTEST_LIMIT, n_columns * LONGEST_CELL))


def refuse_long_line(length: int, longest: int) -> None:
    """Raise for a line that no table of its number of columns has."""
    if length > longest:
        raise DataError(
            f"A line of a text table must be shorter than {readable_size(longest)}; this file has "
            "a longer one. Check that it is a table, and its delimiter and line ends; if it is, "
            "transpose it or store it in another format (.npy, .parquet)."
        )


def refuse_ragged(line: int, n_cells: int, n_columns: int) -> None:
    """Raise for a line that has too few or too many cells."""
    raise DataError(
        f"Every line must have as many cells as there are columns ({n_columns}); in line {line} "
        f"there are {n_cells}. Correct the line, or check the delimiter."
    )


def decode(text: bytes) -> str:
    """The text, which must be UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        found = error.object[error.start]
        raise DataError(
            f"Text must be UTF-8, or UTF-16 with a byte order mark; the byte 0x{found:02x} is not "
            "UTF-8: the file may be in Latin-1 or Windows-1252. Name the encoding, as in "
            'encoding="latin-1" (--encoding latin-1), or save it as UTF-8.'
        ) from error


def read_line(stream: IO[bytes], delimiters: tuple[str, ...]) -> bytes:
    """The next line; refused as soon as it is too long or has too many cells."""
    pieces: list[bytes] = []
    length = 0
    counts = [0] * len(delimiters)
    while piece := stream.readline(_PIECE):
        pieces.append(piece)
        length += len(piece)
        counts = [
            n + piece.count(mark.encode()) for n, mark in zip(counts, delimiters, strict=True)
        ]
        refuse_columns(max(counts) + 1, "a line")
        refuse_long_line(length, longest_line(max(counts) + 1))
        if piece.endswith(b"\n"):
            break
    return b"".join(pieces)


def read_records(
    lines: Iterable[str], delimiter: str, first_line: int, n_columns: int = MOST_COLUMNS
) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line where it begins; quotation marks may enclose line breaks."""
    held: list[str] = []

    def watched() -> Iterator[str]:
        """The lines, of which those of the record being read are kept for messages."""
        length = n_cells = 0
        for line in lines:
            length, n_cells = (length, n_cells) if held else (0, 1)
            length, n_cells = length + len(line), n_cells + line.count(delimiter)
            refuse_long_line(length, longest_line(n_columns))
            if n_cells > n_columns + LONGEST_CELL:  # a quoted cell may hold delimiters
                refuse_ragged(first_line + reader.line_num, n_cells, n_columns)
            held.append(line)
            yield line

    # A space may stand before a quoted cell; around others it does not count anyway.
    spaced = delimiter != " "
    reader = csv.reader(watched(), delimiter=delimiter, strict=True, skipinitialspace=spaced)
    while True:
        begun = first_line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(_explain(str(error), "".join(held), delimiter, begun)) from error
        held.clear()
        yield begun, row


def _explain(error: str, record: str, delimiter: str, begun: int) -> str:
    """What csv found wrong with a record, in words that help."""
    if "new-line" in error:
        return (
            f"Lines must end in \\n or \\r\\n; in line {begun} a carriage return (\\r) stands "
            "alone. Save the file with one of these line ends."
        )
    # A quotation mark opens a cell only where the cell begins.
    openings = list(re.finditer(rf'(?:\A|{re.escape(delimiter)}) *"[^"]*(?:""[^"]*)*"?', record))
    if not openings:
        return (
            f"A cell must be shorter than {csv.field_size_limit()} characters; in line {begun} "
            "there is a longer one. Check the delimiter."
        )
    line = begun + record.count("\n", 0, openings[-1].start())
    reason = f"text follows the mark that closes it, about line {begun + record.count(chr(10)) - 1}"
    if "unexpected end" in error:
        reason = "the file ends inside it"
    elif "larger" in error:
        reason = f"it is longer than {csv.field_size_limit()} characters"
    return (
        f"A quotation mark that opens a cell must be closed; one opened in line {line} is not: "
        f"{reason}. Close it, or double a quotation mark that belongs to the text."
    )


_NEWLINE, _ZERO = ord("\n"), ord("0")
_CHARACTERS_PER_BLOCK = 4 * 2**20


@dataclass(frozen=True)
class CellBlock:
    """Some rows of the table."""

    cells: bytes
    """One cell a line, row after row; columns that are no features hold zeros."""
    n_rows: int
    texts: dict[int | None, list[str]] = field(default_factory=dict)
    """Cells of the columns that are read as text, by column."""


def plain_block(
    block: bytes, names: list[str], delimiter: str, plan: ColumnPlan, line: int
) -> tuple[CellBlock, int]:
    """Cells of a block without quotation marks, and how many lines it has."""
    n_columns, n_lines = len(names), block.count(b"\n")
    mark = delimiter.encode()
    rows = _drop_blank_lines(block)
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
        cells = _blank_texts(rows, cells, breaks.reshape(-1, n_columns), plan, texts)
    return CellBlock(cells, len(row_ends), texts), n_lines


def _drop_blank_lines(block: bytes) -> bytes:
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


def _blank_texts(
    block: bytes, cells: bytes, breaks: Any, plan: ColumnPlan, texts: dict[int | None, list[str]]
) -> bytes:
    """Move label and identifier cells to ``texts``; put zeros where no feature stands."""
    codes = np.frombuffer(bytearray(cells), dtype=np.uint8)
    row_starts = np.concatenate([[-1], breaks[:-1, -1]])
    wanted = set(plan.texts)
    for at in sorted(set(range(breaks.shape[1])) - set(plan.features)):
        starts = (breaks[:, at - 1] if at else row_starts) + 1
        if at in wanted:
            texts[at] = _decode_cells(block, starts, breaks[:, at])
        _blank(codes, starts, breaks[:, at])
    return codes.tobytes()


def _decode_cells(block: bytes, starts: Any, stops: Any) -> list[str]:
    pairs = zip(starts.tolist(), stops.tolist(), strict=True)
    return [decode(block[start:stop]).strip() for start, stop in pairs]


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
    texts_at = plan.texts
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
        yield from (row + "\n" for row in decode(block).split("\n")[:-1])


WORTH_THREADS = 2**20


def parse_cells(cells: bytes, *, decimal: str = ".", skip_empty: bool = False) -> FloatArray:
    """Numbers that stand one a line; an empty line is NaN, or skipped."""
    pa = optional("pyarrow", "Text tables")
    pa_csv = optional("pyarrow.csv", "Text tables")
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

    def __init__(
        self,
        names: list[str],
        delimiter: str,
        decimal: str | None = None,
        *,
        mixed: bool = False,
    ) -> None:
        self._names = names
        self._mixed = mixed
        # Where no commas separate cells, a comma in a number may be a decimal comma; the first
        # number with a comma or a point tells which of the two the file has. Semicolons are
        # written where the comma is one; between tabs it may also separate thousands.
        self._may_be_comma = delimiter != ","
        self._may_be_thousands = delimiter != ";" and decimal is None
        self._decimal = decimal if self._may_be_comma else "."

    def numbers(self, block: CellBlock) -> FloatArray:
        """Rows x columns; missing cells are NaN, true and false are 1 and 0."""
        n_columns = len(self._names)
        self._find_decimal_mark(block.cells)
        decimal = self._decimal or "."
        try:
            values = parse_cells(block.cells, decimal=decimal)
        except ValueError:  # pyarrow.ArrowInvalid: some cell is not quite a number
            values = None
        if values is None or values.size != block.n_rows * n_columns:  # \r makes two of a cell
            values = self._parse_each(block.cells, decimal)
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
                    f"{shorten(column)} holds {shorten(word)}, and other numbers have "
                    f"{shorten(self._decimal)}. Write "
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
                f"A comma in a number must be a decimal comma; {shorten(doubtful)} may as well "
                "be "
                f"{doubtful.replace(',', '')}, and no other number tells. Write decimal points, "
                "and no thousands separators."
            )
        return "", ""

    def _parse_each(self, cells: bytes, decimal: str) -> FloatArray:
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
            if self._mixed:  # digits that are no number, but name something
                refuse_text(list(names))
            refuse_rounded_integers([repr(name) for name in names])


_TRUTH = {"true": 1.0, "false": 0.0}

# Python's own int and float also read 1_000 and the digits of every script.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_LONGEST_INTEGER = 19  # digits of the largest int64
_MISSING_CLASSES = ("", "NA", "NaN", "nan")


def is_number(word: str) -> bool:
    """Whether it is a plain decimal number.

    Examples
    --------
    >>> [is_number(word) for word in ("+1.5e3", ".5", "1_0", "0x10", "inf")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(word) is not None


def is_value(word: str) -> bool:
    """Whether a cell of a feature column may hold it."""
    return (
        is_number(word)
        or word in GAP_WORDS
        or word.lower() in _TRUTH
        or _INFINITE.fullmatch(word) is not None
    )


def as_float(word: str) -> float:
    """The value that a word is, NaN if it stands for a missing one."""
    if word in GAP_WORDS:
        return float("nan")
    truth = _TRUTH.get(word.lower())
    return float(word) if truth is None else truth


def is_grouped(word: str) -> bool:
    """Whether a comma in it may separate thousands.

    Examples
    --------
    >>> [is_grouped(word) for word in ("1,234", "-12,345", "0,123", "1,23")]
    [True, True, False, False]
    """
    return _GROUPED.fullmatch(word) is not None


def is_rounded_integer(word: str) -> bool:
    """Whether it is an integer beyond those that float64 holds exactly."""
    digits = word.strip().lstrip("+-0")
    if not digits.isdigit() or _INTEGER.fullmatch(word.strip()) is None:
        return False
    return len(digits) > _LONGEST_INTEGER or int(digits) > LARGEST_EXACT_INTEGER


def as_classes(words: Sequence[str], *, may_have_commas: bool = False) -> Any:
    """Classes written as numbers become numbers if no two become one; some words are missing.

    ``may_have_commas``: decimal commas, which no thousands separator can be taken for.
    """
    if may_have_commas and not any(map(is_grouped, words)):
        pointed = [word.replace(",", ".") for word in words]
        words = pointed if all(map(is_number, pointed)) else words
    cells = [None if word in _MISSING_CLASSES else word for word in words]
    array = np.array(cells, dtype=object)
    if not all(cell is not None and is_number(cell) for cell in cells):
        return array
    if all(_INTEGER.fullmatch(word) for word in words):
        longest = max(map(len, words), default=0)
        integers = [int(word) for word in words] if longest <= _LONGEST_INTEGER + 1 else [2**63]
        return np.array(integers) if max(map(abs, integers)) < 2**63 else array
    numbers = [float(word) for word in words]
    distinct = len({Decimal(word) for word in words})
    exact = np.isfinite(numbers).all() and len(set(numbers)) == distinct
    return np.array(numbers) if exact else array
