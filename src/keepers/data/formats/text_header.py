"""What the first lines of a text table tell: delimiter, names, row names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import IO

from keepers.data.columns import numbered_names, unique_names
from keepers.data.formats.text_cells import decode, is_number, is_value, read_line, read_records
from keepers.exceptions import DataError, shortened

CSV_DELIMITERS = (",", ";", "\t")
"""The first of these that the first line holds separates cells."""
TSV_DELIMITERS = ("\t",)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DECLARED_DELIMITER = re.compile(rb'"?sep=([,;\t|])"?\s*')
"""The first line that Excel writes and reads to say what separates cells."""
_COMMENT = b"# "
"""What `numpy.savetxt` puts before every line of a header."""
_LOOKED_AHEAD = 2**18
"""Bytes of a record with line breaks in its cells, while the delimiter is sought."""
_LONG_ENOUGH = 5
"""So many values of a sample are rarely in order; names that are numbers always are."""


@dataclass(frozen=True)
class TextStart:
    """What the first two records tell."""

    names: list[str]
    delimiter: str
    index: int | None
    """Position of a column of row names that has no name itself."""
    pending: bytes
    """Lines already read that hold data."""
    first_data_line: int
    doubt: str | None
    """What to warn of: the first line may be meant otherwise."""

    @classmethod
    def of(
        cls, stream: IO[bytes], delimiters: tuple[str, ...], header: bool | None = None
    ) -> "TextStart":
        """Read names and delimiter; ``header`` says whether the first line holds names."""
        return _read_start(stream, delimiters, header)


def _read_start(stream: IO[bytes], delimiters: tuple[str, ...], header: bool | None) -> TextStart:
    opening = _read_opening(stream, delimiters)
    delimiter, n_above, waiting = opening.delimiter, opening.n_above, opening.lines[1:]
    header = header if header is not None else opening.header
    lines = opening.lines[:1]
    head = decode(lines[0])

    def further_lines() -> Iterator[str]:
        while more := waiting.pop(0) if waiting else read_line(stream, (delimiter,)):
            lines.append(more)
            yield decode(more)

    records = read_records(chain([head], further_lines()), delimiter, n_above + 1)
    first = next(records, (1, []))[1]
    n_lines = len(lines)
    if not any(cell.strip() for cell in first):
        raise DataError(
            "A text table starts with its column names; the first line is empty. Remove what "
            "stands above the names."
        )
    below = read_records(further_lines(), delimiter, n_above + n_lines + 1, len(first) + 1)
    second = next((row for _, row in below if row), [])
    has_names, doubt = (header, None) if header is not None else _has_names(first, second)
    doubt = opening.doubt or doubt
    if not has_names:
        names = numbered_names(len(first))
        return TextStart(names, delimiter, None, b"".join(lines + waiting), n_above + 1, doubt)
    if '"' not in head and len(first) == 1 and _is_decimal_comma(second, delimiter):
        raise DataError(
            "The first line names one column and the next line reads "
            f"{shortened(','.join(second))}: a "
            "decimal comma, or a row name and a value. Write decimal points, or name both columns."
        )
    pending = b"".join(lines[n_lines:] + waiting)
    # R's write.table leaves the row names without a column name; pandas and write.csv write "".
    unnamed = _has_one_more(second, first)
    index = 0 if unnamed or not first[0].strip() else None
    names = unique_names(["", *first] if unnamed else first)
    return TextStart(names, delimiter, index, pending, n_above + n_lines + 1, doubt)


@dataclass(frozen=True)
class _Opening:
    """The first line of a table, and perhaps the one below it, without what stands above."""

    lines: list[bytes]
    delimiter: str
    n_above: int
    """Lines above, which are no part of the table."""
    header: bool | None = None
    doubt: str | None = None


def _read_opening(stream: IO[bytes], delimiters: tuple[str, ...]) -> _Opening:
    line = read_line(stream, delimiters).removeprefix(_BYTE_ORDER_MARK)
    if declared := _DECLARED_DELIMITER.fullmatch(line):
        delimiter = declared[1].decode()
        return _Opening([read_line(stream, (delimiter,))], delimiter, 1)
    lines = [line]
    while lines[-1].startswith(_COMMENT):
        lines.append(read_line(stream, delimiters))
    below = decode(lines[-1])
    delimiter = _delimiter_of(below, below, delimiters)
    cells = [cell.strip().replace(",", ".", 1) for cell in below.split(delimiter)]
    if len(lines) == 1 or not (all(map(is_value, cells)) and any(map(is_number, cells))):
        return _read_head(stream, lines, delimiters)
    names = lines[-2].removeprefix(_COMMENT)
    if decode(names).count(delimiter) != len(cells) - 1:
        doubt = "Lines that begin with '# ' are skipped as comments; there are no column names."
        return _Opening(lines[-1:], delimiter, len(lines) - 1, False, doubt)
    doubt = (
        "Lines that begin with '# ' are read as comments, as numpy.savetxt writes them, the last "
        "of which holds the column names. If '#' belongs to the first name, quote that name."
    )
    return _Opening([names, lines[-1]], delimiter, len(lines) - 2, True, doubt)


def _read_head(stream: IO[bytes], lines: list[bytes], delimiters: tuple[str, ...]) -> _Opening:
    """The first two records, and what separates their cells."""

    def record(begun: int) -> int:
        """Where a record ends that begins with a line; one without end is taken for that line."""
        end = begun
        n_marks = n_bytes = 0
        while n_bytes < _LOOKED_AHEAD:
            if len(lines) == end:
                lines.append(read_line(stream, delimiters))
            if not lines[end]:
                break
            n_marks += lines[end].count(b'"')
            n_bytes += len(lines[end])
            end += 1
            if n_marks % 2 == 0:
                return end
        return begun + 1

    middle = record(0)
    end = record(middle)
    head, below = (decode(b"".join(part)) for part in (lines[:middle], lines[middle:end]))
    return _Opening(lines, _delimiter_of(head, below, delimiters), 0)


def _delimiter_of(head: str, below: str, delimiters: tuple[str, ...]) -> str:
    """The first delimiter in the first record; of several, one that the line below has as often."""
    head, below = (re.sub(r'"[^"]*"?', "", text) for text in (head, below))
    between = [cell.strip().replace(",", ".", 1) for cell in head.split(";")]
    if ";" in delimiters and len(between) > 1 and all(map(is_number, between)):
        return ";"  # decimal commas are no delimiters
    found = [mark for mark in delimiters if mark in head]
    for one_more in (0, 1):  # the name of a row
        fitting = [mark for mark in found if below.count(mark) == head.count(mark) + one_more]
        if fitting:
            return max(fitting, key=head.count)
    return (*found, delimiters[0])[0]


def _has_one_more(second: Sequence[str], first: Sequence[str]) -> bool:
    """Whether a row name stands before the values; not if the last cell is empty instead."""
    return len(second) == len(first) + 1 and second[-1].strip() != ""


def _is_decimal_comma(second: Sequence[str], delimiter: str) -> bool:
    return delimiter == "," and len(second) == 2 and all(is_number(c.strip()) for c in second)


def _has_names(first: Sequence[str], second: Sequence[str]) -> tuple[bool, str | None]:
    """Whether the first line holds names, and what to say where it may be meant otherwise."""
    words = [cell.strip().replace(",", ".", 1) for cell in first]
    below = [cell.strip().replace(",", ".", 1) for cell in second]
    shown = ", ".join(words[:3]) + (", ..." if len(words) > 3 else "")
    doubtful_names = (
        f"The first line ({shown}) is read as column names. If it is a sample, say so: "
        "header=False (--no-header)."
    )
    if not all(map(is_value, words)) or not any(map(is_number, words)):
        return True, doubtful_names if _are_alike(words, below) else None
    if not below:
        return False, None
    if _has_one_more(below, words):
        return True, None
    named = words[1:] if not words[0] else words  # row names may have no name
    if named == [str(position) for position in range(len(named))]:  # as pandas numbers columns
        is_clear = named is not words or (len(words) > 2 and not all(map(_is_integer, below)))
        return True, None if is_clear else doubtful_names
    if named is not words and below[0]:
        return True, doubtful_names if is_value(below[0]) else None
    if not all(map(is_value, below)):
        return True, doubtful_names
    if len(words) >= _LONG_ENOUGH and _are_ordered(words) and not _are_ordered(below):
        return False, (
            f"The first line ({shown}) is read as a sample. If its numbers, which are in order, "
            "are column names, say so: header=True (--header)."
        )
    return False, None


def _are_alike(words: Sequence[str], below: Sequence[str]) -> bool:
    """Whether the same cells are numbers in both lines, and not such as number the columns."""
    numbers = [word for word in words if is_number(word)]
    if not numbers or (all(map(_is_integer, numbers)) and _are_ordered(numbers)):
        return False
    return list(map(is_number, words)) == list(map(is_number, below))


def _is_integer(word: str) -> bool:
    return word.lstrip("+-").isdigit()


def _are_ordered(words: Sequence[str]) -> bool:
    if not all(map(is_number, words)):
        return False
    numbers = [float(word) for word in words]
    steps = [b - a for a, b in pairwise(numbers)]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)
