"""Lines and records of text, none of them larger than a table can need.

A small compressed file may expand to a line of gigabytes, so every line is measured while it is
read, before it is taken apart.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from typing import IO

from keepers.data.limits import MOST_COLUMNS, refuse_columns
from keepers.data.wording import readable_size
from keepers.exceptions import DataError

__all__ = [
    "LONGEST_CELL",
    "LONGEST_LINE",
    "decoded",
    "longest_line",
    "read_line",
    "read_records",
    "refuse_long_line",
    "refuse_ragged",
]

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


def decoded(text: bytes) -> str:
    """The text, which must be UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        found = error.object[error.start]
        raise DataError(
            f"Text must be UTF-8, or UTF-16 with a byte order mark; the byte 0x{found:02x} is not "
            "UTF-8: the file may be in Latin-1 or Windows-1252. Save it as UTF-8."
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
    reader = csv.reader(watched(), delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        begun = first_line + reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(_told(str(error), "".join(held), delimiter, begun)) from error
        held.clear()
        yield begun, row


def _told(error: str, record: str, delimiter: str, begun: int) -> str:
    """What csv found wrong with a record, in words that help."""
    if "new-line" in error:
        return (
            f"Lines must end in \\n or \\r\\n; in line {begun} a carriage return (\\r) stands "
            "alone. Save the file with one of these line ends."
        )
    # A quotation mark opens a cell only where the cell begins.
    openings = list(re.finditer(rf'(?:\A|{delimiter}) *"[^"]*(?:""[^"]*)*"?', record))
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
