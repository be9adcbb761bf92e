"""Text whose name does not tell what separates its cells (.txt, .dat, .data): found by looking."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from keepers.data.formats.text import DECLARED_DELIMITER, WHITESPACE, TextBlocks, open_text
from keepers.data.formats.text_cells import decode, is_number, is_value, read_line
from keepers.data.table import ReadRequest
from keepers.exceptions import DataError

PLAIN_TEXT_SUFFIXES = (".txt", ".dat", ".data")
_MARKS = ("\t", ";", "|", ",")
_MOST_LINES, _FEWEST_LINES, _ENOUGH_BYTES = 100, 3, 2**18
_MOST_WRONG = 0.2
"""Share of lines with another number of cells: the reader will name the first of them."""


def open_plain_text(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; cells are separated as the first lines suggest."""
    return TextBlocks(
        path, "text", ("\t",), replace(request, delimiter=delimiter_of(path, request))
    )


def delimiter_of(path: Path, request: ReadRequest) -> str:
    """What separates cells, as the request or the first lines say; an error if it is no table."""
    if request.delimiter is not None:
        return request.delimiter
    lines: list[bytes] = []
    n_bytes = 0
    with open_text(path, request) as stream:
        while len(lines) < _FEWEST_LINES or n_bytes < _ENOUGH_BYTES:
            line = read_line(stream, (*_MARKS, " "))
            if not line or len(lines) == _MOST_LINES:
                break
            lines.append(line)
            n_bytes += len(line)
    declared = DECLARED_DELIMITER.fullmatch(lines[0]) if lines else None
    return declared[1].decode() if declared else find_delimiter(decode(b"".join(lines)))


def find_delimiter(text: str) -> str:
    r"""What separates the cells of the lines: tab, semicolon, "|", comma, or runs of blanks.

    It is the one that gives every line the same number of cells, of several the one that gives
    most; the first line may have one cell less, since row names often have no name. Blanks come
    last, as names may hold them. Lines at the top that begin with "#" do not count.

    Examples
    --------
    >>> find_delimiter("a b|c\nx y|1.5\nz|2")
    '|'
    >>> find_delimiter("  1.5   2\n 10     3\n")
    'whitespace'
    """
    lines = [line for line in _without_quoted(text).splitlines() if line.strip()]
    while lines and lines[0].startswith("#"):
        del lines[0]
    decimal_commas = [mark for mark in (*_MARKS, WHITESPACE) if _are_decimal_commas(lines, mark)]
    best: tuple[float, bool, int] | None = None
    delimiter = ""
    for mark in (*_MARKS, WHITESPACE):
        if mark == "," and decimal_commas:
            continue
        share, n_cells = _agreement(lines, mark)
        order = (share, mark != WHITESPACE, n_cells)
        has_values = any(_is_value(cell) for line in lines[1:] for cell in _cells(line, mark))
        if n_cells > 1 and share >= 1 - _MOST_WRONG and has_values and (not best or order > best):
            best, delimiter = order, mark
    if delimiter:
        return delimiter
    if len(lines) > 1 and all(map(_is_value, lines[1:])):
        return "\t"  # a single column
    raise DataError(
        "It holds no table: neither tabs, semicolons, '|', commas nor blanks give its first "
        f"{len(lines)} lines the same number of cells, some of them numbers. Name what separates "
        "cells (sep=, --sep), or the format (format=, --format), if it is a table."
    )


def _without_quoted(text: str) -> str:
    """The text with a letter for what is quoted, which may hold delimiters and line breaks.

    Numbers may be quoted as well.
    """
    return re.sub(r'"([^"]*)"', lambda cell: cell[1] if _is_value(cell[1]) else "x", text)


def _cells(line: str, mark: str) -> list[str]:
    return line.split() if mark == WHITESPACE else line.split(mark)


def _agreement(lines: list[str], mark: str) -> tuple[float, int]:
    """Share of lines that have the usual number of cells, and that number."""
    counts = [len(_cells(line, mark)) for line in lines]
    usual = max(Counter(counts[1:]).items(), key=lambda pair: pair[1], default=(0, 0))[0]
    fitting = [count == usual for count in counts[1:]]
    fitting += [counts[0] in (usual, usual - 1)] if counts else []
    return (sum(fitting) / len(fitting) if fitting else 0.0), usual


def _are_decimal_commas(lines: list[str], mark: str) -> bool:
    """Whether commas between cells separated by the mark, below the first line, are decimal."""
    if mark == ",":
        return False
    cells = [_cells(line, mark) for line in lines[1:2]]
    words = [cell.strip() for row in cells for cell in row]
    commas = [word for word in words if "," in word]
    return (
        len(words) > 1
        and bool(commas)
        and all(map(_is_value, words))
        and not any(word.endswith(",") for word in commas)
    )


def _is_value(word: str) -> bool:
    word = word.strip().replace(",", ".", 1)
    return is_number(word) or (bool(word) and is_value(word))
