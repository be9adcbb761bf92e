"""Text tables (.csv, .tsv, compressed or not): parsed some lines at a time, and written.

Numbers are written exactly, and no text so that a spreadsheet takes it for a formula.
"""

import codecs
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.blocks.local import rows_at_once
from keepers.data.columns import OtherColumn, as_texts
from keepers.data.formats.compression import open_compressing, open_expanded
from keepers.data.formats.text_cells import (
    LONGEST_CELL,
    CellBlock,
    CellReader,
    as_classes,
    decode,
    is_number,
    is_value,
    longest_line,
    plain_block,
    quoted_blocks,
    read_line,
    read_records,
    refuse_long_line,
    refuse_ragged,
)
from keepers.data.formats.text_filters import (
    comments_blanked,
    decoded,
    runs_of_blanks_as_tabs,
    unified_line_ends,
)
from keepers.data.limits import LARGEST_EXACT_INTEGER
from keepers.data.table import (
    ColumnPlan,
    ReadRequest,
    TextColumnsError,
    WrittenTable,
    numbered_names,
    plan_columns,
    refuse_changed_types,
    unique_names,
)
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError, DataWarning, ParameterError, shorten, warn_caller

CSV_DELIMITERS = (",", ";", "\t")
"""The first of these that the first line holds separates cells."""
TSV_DELIMITERS = ("\t",)
WHITESPACE = "whitespace"
"""The delimiter that stands for runs of blanks."""
_DELIMITER_WORDS = {"tab": "\t", "\\t": "\t", "space": " ", WHITESPACE: "\t"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DECLARED_DELIMITER = re.compile(rb'"?sep=([,;\t|])"?\s*')
"""The first line that Excel writes and reads to say what separates cells."""
_HASH = b"#"
"""How a comment at the top begins, or the name of the first column."""
_COMMENT = b"# "
"""What `numpy.savetxt` puts before every line of a header."""
_LINES_COMPARED = 20
"""Lines that must end in a delimiter before the cell behind it counts as none."""
_LOOKED_AHEAD = 2**18
"""Bytes of a record with line breaks in its cells, while the delimiter is sought."""
_FIRST_BYTES = 2**20
"""How much is looked at to tell columns of text from numbers."""
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
    decimal: str | None = None
    """The decimal mark, if it was given."""
    left_out: tuple[int, ...] = ()
    """Position of a column that is there only because lines end in a delimiter."""

    @classmethod
    def of(
        cls, stream: IO[bytes], delimiters: tuple[str, ...], request: ReadRequest
    ) -> "TextStart":
        """Read names and delimiter, unless the request says whether the first line holds names."""
        return _read_start(stream, delimiters, request)


def _read_start(stream: IO[bytes], delimiters: tuple[str, ...], request: ReadRequest) -> TextStart:
    opening = _read_opening(stream, delimiters, blank_above=request.comment is not None)
    delimiter, n_above, waiting = opening.delimiter, opening.n_above, opening.lines[1:]
    header = request.header if request.header is not None else opening.header
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
    rows = (row for _, row in below if row)
    second = next(rows, [])
    has_names, doubt = (header, None) if header is not None else is_header(first, second)
    doubts = [opening.doubt or doubt]
    if '"' not in head and len(first) == 1 and has_names and _is_decimal_comma(second, delimiter):
        raise DataError(
            "The first line names one column and the next line reads "
            f"{shorten(','.join(second))}: a "
            "decimal comma, or a row name and a value. Write decimal points, or name both columns."
        )
    trailing = (has_names or len(second) == len(first)) and _end_in_delimiters(first, second, rows)
    if trailing:
        doubts.append("Lines end in a delimiter; the empty column behind it is left out.")
    if has_names and trailing:
        first = [*first[: len(second) - 1], ""]
    elif has_names and len(second) == len(first) - 1 and not first[-1].strip():
        first = first[:-1]  # the first line alone ends in a delimiter
    # R's write.table leaves the row names without a column name; pandas and write.csv write "".
    unnamed = has_names and _has_one_more(second, first)
    names = numbered_names(len(first))
    if has_names:
        names = unique_names(["", *first] if unnamed else first, make_unique=request.make_unique)
    return TextStart(
        names,
        delimiter,
        0 if has_names and (unnamed or not first[0].strip()) else None,
        pending=b"".join(lines[n_lines if has_names else 0 :] + waiting),
        first_data_line=n_above + 1 + (n_lines if has_names else 0),
        doubt=" ".join(filter(None, doubts)) or None,
        decimal=request.decimal,
        left_out=(len(names) - 1,) if trailing else (),
    )


def _end_in_delimiters(
    first: Sequence[str], second: Sequence[str], further: Iterable[Sequence[str]]
) -> bool:
    """Whether the lines below the first end in a delimiter, and it does as well or has no name."""
    n_more = len(second) - len(first)
    if len(second) < 2 or n_more not in (0, 1) or (n_more == 0 and first[-1].strip()):
        return False
    rows = chain([second], islice(further, _LINES_COMPARED))
    return all(len(row) == len(second) and not row[-1].strip() for row in rows)


@dataclass(frozen=True)
class _Opening:
    """The first line of a table, and perhaps the one below it, without what stands above."""

    lines: list[bytes]
    delimiter: str
    n_above: int
    """Lines above, which are no part of the table."""
    header: bool | None = None
    doubt: str | None = None


def _read_opening(stream: IO[bytes], delimiters: tuple[str, ...], *, blank_above: bool) -> _Opening:
    line = read_line(stream, delimiters)
    n_above = 0
    while blank_above and line and not line.strip():  # comments that were left out
        line = read_line(stream, delimiters)
        n_above += 1
    if declared := DECLARED_DELIMITER.fullmatch(line):
        delimiter = declared[1].decode()
        return _Opening([read_line(stream, (delimiter,))], delimiter, n_above + 1)
    if line.startswith(_HASH):
        return _read_commented(stream, [line], delimiters, n_above)
    return _read_head(stream, [line], delimiters, n_above)


def _read_commented(
    stream: IO[bytes], lines: list[bytes], delimiters: tuple[str, ...], n_above: int
) -> _Opening:
    """Tell comments at the top from a line of names that begins with "#"."""
    last = 0  # of the lines at the top that begin so
    while (line := read_line(stream, delimiters)) and (line.startswith(_HASH) or not line.strip()):
        last = len(lines) if line.startswith(_HASH) else last
        lines.append(line)
    n_skipped = len(lines)
    if not line:
        return _read_head(stream, lines, delimiters, n_above)
    lines.append(line)
    for at in (0, last) if last else (0,):
        names = _read_head(stream, lines[at:], delimiters, n_above + at, _skipped(at))
        try:
            rows = _first_rows(stream, names, 3)
        except DataError:  # a comment need not be sound
            rows = []
        lines[at:] = names.lines
        if not rows or not _is_header(rows, names.lines[1].startswith(_HASH)):
            continue
        if not (lines[at].startswith(_COMMENT) and _are_values(rows[1])):
            return names
        doubt = (
            "Lines that begin with '# ' are read as comments, as numpy.savetxt writes them, the "
            "last of which holds the column names. If '#' belongs to the first name, quote that "
            "name."
        )
        lines = [lines[at].removeprefix(_COMMENT), *lines[at + 1 :]]
        return _Opening(lines, names.delimiter, names.n_above, True, doubt)
    below = _read_head(
        stream, lines[n_skipped:], delimiters, n_above + n_skipped, _skipped(n_skipped)
    )
    if not _are_values(_first_rows(stream, below, 1)[0]):
        return below
    doubt = "Lines that begin with '#' are skipped as comments; there are no column names."
    return replace(below, header=False, doubt=doubt)


def _first_rows(stream: IO[bytes], opening: _Opening, count: int) -> list[list[str]]:
    """The first records, with decimal points; lines that are read for them are kept."""
    lines = opening.lines

    def all_lines() -> Iterator[str]:
        for at in itertools.count():
            if at == len(lines):
                lines.append(read_line(stream, (opening.delimiter,)))
            if not lines[at]:
                return
            yield decode(lines[at])

    records = read_records(all_lines(), opening.delimiter, opening.n_above + 1)
    rows = islice((row for _, row in records if row), count)
    return [[cell.strip().replace(",", ".", 1) for cell in row] for row in rows]


def _is_header(rows: list[list[str]], below_hash: bool) -> bool:
    """Whether the first row, which begins with "#", names columns.

    It does if the next has as many cells, or a row name more, and does not look more like the
    header itself: words above numbers. Rows that begin with "#" as well must be clearly data.
    """
    first, *below = rows
    if not below or (len(first) == 1 and not _are_values(below[0])):
        return False
    has_values = [any(cell and is_value(cell) for cell in row) for row in below]
    same_length = [len(row) == len(first) for row in below]
    if below_hash:
        return len(first) > 1 and len(below) > 1 and all(has_values) and all(same_length)
    if same_length[0]:
        return has_values[0] or not (
            len(below) > 1 and has_values[1] and len(below[1]) >= len(first)
        )
    return len(first) > 1 and _has_one_more(below[0], first) and _are_values(below[0][1:])


def _are_values(cells: Sequence[str]) -> bool:
    return all(map(is_value, cells)) and any(cells)


def _skipped(count: int) -> str | None:
    if not count:
        return None
    lines = "line, which begins" if count == 1 else f"{count} lines, which begin"
    return (
        f"The first {lines} with '#', {'is' if count == 1 else 'are'} skipped as comments. Say so "
        "to read the file without this note: comment='#' (--comment '#')."
    )


def _unquoted(text: str) -> str:
    """The text without what stands between quotation marks."""
    return re.sub(r'"[^"]*"?', "", text)


def _read_head(
    stream: IO[bytes],
    lines: list[bytes],
    delimiters: tuple[str, ...],
    n_above: int,
    doubt: str | None = None,
) -> _Opening:
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
    return _Opening(lines, _delimiter_of(head, below, delimiters), n_above, doubt=doubt)


def _delimiter_of(head: str, below: str, delimiters: tuple[str, ...]) -> str:
    """The first delimiter in the first record; of several, one that the line below has as often."""
    head, below = _unquoted(head), _unquoted(below)
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


def is_header(first: Sequence[str], second: Sequence[str]) -> tuple[bool, str | None]:
    """Whether the first line holds names, and what to say where it may be meant otherwise.

    ``second`` is the line below it.
    """
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


class TextBlocks(FileBlocks):
    """Lines of a text table; how many there are is known only after the last."""

    def __init__(
        self, path: Path, title: str, delimiters: tuple[str, ...], request: ReadRequest
    ) -> None:
        optional("pyarrow", "Text tables")  # said at once, not when blocks are read
        self._delimiters = _checked_delimiters(request, delimiters)
        self._request = request
        with open_text(path, request) as stream:
            start = self._read_start(stream)
            plan = plan_columns(start.names, request, index=start.index, levels=start.left_out)
            if request.mixed:
                plan = self._find_texts(stream, start, plan)
        if start.doubt is not None:
            warn_caller(f"{path.name}: {start.doubt}", DataWarning)
        super().__init__(path, [start.names[at] for at in plan.features], np.float64, None)
        self.title = title
        self._layout = (start.names, plan)
        self._has_decimal_commas = start.delimiter != "," and request.decimal != "."

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that are handed over as text."""
        names, plan = self._layout
        return tuple(names[at] for at in plan.others)

    def with_texts(self, names: Sequence[str]) -> "TextBlocks":
        """The same table, of which some columns proved to hold text further down."""
        titles, plan = self._layout
        known = plan.with_texts(titles, names) if self._request.mixed else plan
        return self._with(
            _layout=(titles, known),
            feature_names=np.array([titles[at] for at in known.features], dtype=object),
            n_features=len(known.features),
        )

    def _find_texts(self, stream: IO[bytes], start: TextStart, plan: ColumnPlan) -> ColumnPlan:
        """The roles of columns; those that hold text in the first lines are no numbers.

        Each try finds all such columns of one block, so there are few.
        """
        head = stream.read(_FIRST_BYTES)
        head = head[: head.rfind(b"\n") + 1] or head
        while True:
            roles = ColumnPlan(plan.features, None, None, plan.others)
            try:
                for _ in number_blocks(io.BytesIO(head), start, roles, mixed=True):
                    pass
                return plan
            except TextColumnsError as error:
                known = plan.with_texts(start.names, error.names)
                if known is plan:
                    raise
                plan = known

    def _read_start(self, stream: IO[bytes]) -> TextStart:
        return TextStart.of(stream, self._delimiters, self._request)

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        names, plan = self._layout
        n_columns = self.n_features if columns is None else len(columns)
        n_rows = 1 if self._request.whole else rows_at_once(n_columns)
        roles = plan if annotated else ColumnPlan(plan.features, None, None)
        mixed = self._request.mixed
        with open_text(self.path, self._request) as stream:
            start = self._read_start(stream)
            if start.names != names:
                raise DataError("It was changed since it was opened. Open it again.")
            pieces: list[tuple[NDArray[Any], CellBlock]] = []
            count = 0
            for values, cells in number_blocks(stream, start, roles, mixed=mixed):
                if len(values):
                    pieces.append((values if columns is None else values[:, columns], cells))
                    count += len(values)
                if count >= n_rows:
                    yield _join(pieces, roles, names)
                    pieces, count = [], 0
            if pieces:
                yield _join(pieces, roles, names)

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """Classes written as numbers become numbers, unless two of them become one."""
        words = list(chain.from_iterable(pieces))
        classes = as_classes(words, may_have_commas=self._has_decimal_commas)
        return as_labels(classes, str(self._request.labels))

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The cells of the identifier column."""
        return as_names(list(chain.from_iterable(pieces)), "identifier")


def _checked_delimiters(request: ReadRequest, usual: tuple[str, ...]) -> tuple[str, ...]:
    """What may separate cells; raise for options that no text table can have."""
    asked, decimal, comment = request.delimiter, request.decimal, request.comment
    if decimal not in (None, ".", ","):
        raise ParameterError(f"decimal= is '.' or ','; got {shorten(decimal)}.")
    if comment is not None and (not comment.strip() or "\n" in comment or '"' in comment):
        raise ParameterError(
            "comment= is what lines begin with that are left out, such as '#', without blanks "
            f"alone, line breaks or quotation marks; got {shorten(comment)}."
        )
    if asked is None:
        return tuple(mark for mark in usual if mark != decimal) or usual
    delimiter = _DELIMITER_WORDS.get(asked.casefold(), asked)
    if (
        len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter.isalnum()
        or delimiter in '"\r\n'
    ):
        raise ParameterError(
            "sep= is one ASCII character that is no letter, digit, quotation mark or line end, or "
            f"'tab', 'space' or '{WHITESPACE}' (runs of blanks); got {shorten(asked)}."
        )
    if delimiter == decimal:
        raise ParameterError(
            f"sep= and decimal= must differ; both are {shorten(decimal)}. Give another of them."
        )
    return (delimiter,)


def open_csv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; commas, or else semicolons or tabs, separate cells."""
    return TextBlocks(path, "CSV", CSV_DELIMITERS, request)


def open_tsv(path: Path, request: ReadRequest) -> TextBlocks:
    """Read the names of columns; tabs separate cells."""
    return TextBlocks(path, "TSV", TSV_DELIMITERS, request)


def _join(pieces: list[tuple[NDArray[Any], CellBlock]], plan: ColumnPlan, names: list[str]) -> Rows:
    """Small pieces put together to one block."""
    values = [values for values, _ in pieces]

    def words(at: int) -> list[str]:
        return list(chain.from_iterable(cells.texts[at] for _, cells in pieces))

    labels, sample_names = (
        None if at is None else words(at) for at in (plan.labels, plan.identifier)
    )
    others = tuple(
        OtherColumn(names[at], "text", as_texts(words(at)), place)
        for at, place in zip(plan.others, plan.other_places, strict=True)
    )
    together = values[0] if len(values) == 1 else np.concatenate(values)
    return Rows(together, labels, sample_names, others)


BLOCK_BYTES = 4 * 2**20
_BLANK_LINES = re.compile(rb"[\r\n]*")


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
    if rest and not rest.endswith(b"\n"):
        last = rest[rest.rfind(b"\n") + 1 :]
        if b'"' not in rest and last.count(mark) < n_columns - 1 and last.strip():
            raise DataError(
                f"Every line must have as many cells as there are columns ({n_columns}); the last "
                f"one, line {line}, has {last.count(mark) + 1} and no line end: the file seems to "
                "be cut off. Obtain or write it again."
            )
        rest += b"\n"
    if rest:
        yield rest


def _split(blocks: Iterable[bytes], start: TextStart, plan: ColumnPlan) -> Iterator[CellBlock]:
    """Cells of each block; from the first quotation mark on, by the rules of quoting."""
    line = start.first_data_line
    stream = iter(blocks)
    for block in stream:
        if _BLANK_LINES.fullmatch(block):
            line += block.count(b"\n")
            continue
        if b'"' in block:
            rest = chain([block], stream)
            yield from quoted_blocks(rest, start.names, start.delimiter, plan, line)
            return
        cells, n_lines = plain_block(block, start.names, start.delimiter, plan, line)
        line += n_lines
        yield cells


def number_blocks(
    stream: IO[bytes], start: TextStart, plan: ColumnPlan, *, mixed: bool = False
) -> Iterator[tuple[FloatArray, CellBlock]]:
    """Rows x features of each block of lines, and the cells that they were."""
    reader = CellReader(start.names, start.delimiter, start.decimal, mixed=mixed)
    everything = len(plan.features) == len(start.names)
    for block in _split(_whole_lines(stream, start), start, plan):
        values = reader.numbers(block)
        yield values if everything else values[:, plan.features], block


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_text(path: Path, request: ReadRequest) -> IO[bytes]:
    """The file, expanded, as the rest of the reader takes text.

    As UTF-8 without a byte order mark, with newlines where lines end in CR alone, with empty lines
    for comments, and with tabs for runs of blanks if these separate cells.
    """
    stream: IO[bytes] = open_expanded(path, request.limit)
    try:
        if request.encoding is not None:
            stream = decoded(stream, request.encoding)
        elif _peek(stream).startswith(_UTF_16):
            stream = decoded(stream, "utf-16")
        if _peek(stream).startswith(_BYTE_ORDER_MARK):
            stream.read(len(_BYTE_ORDER_MARK))
        if _has_bare_returns(_peek(stream)):
            stream = unified_line_ends(stream)
        if request.comment is not None:
            stream = comments_blanked(stream, request.comment)
        if request.delimiter is not None and request.delimiter.casefold() == WHITESPACE:
            stream = runs_of_blanks_as_tabs(stream)
    except BaseException:
        stream.close()
        raise
    return stream


def _peek(stream: Any) -> bytes:
    return bytes(stream.peek())


def _has_bare_returns(start: bytes) -> bool:
    """Whether lines end in CR alone, as spreadsheets on old Macs save them."""
    return b"\r" in start and b"\n" not in re.sub(rb'"[^"]*"', b"", start)


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_CELLS_PER_BLOCK = 500_000
_FIRST_EXPONENT = 1e10
"""From here on Arrow writes whole numbers with an exponent."""


def write_csv(path: Path, table: WrittenTable, name: str) -> None:
    """Write comma-separated text, compressed if ``name`` says so."""
    with append_csv(path, name) as append:
        append(table)


def write_tsv(path: Path, table: WrittenTable, name: str) -> None:
    """Write tab-separated text, compressed if ``name`` says so."""
    with append_tsv(path, name) as append:
        append(table)


def append_csv(path: Path, name: str) -> AbstractContextManager[Callable[[WrittenTable], None]]:
    """A function that appends rows as comma-separated text."""
    return _appending(path, name, ",")


def append_tsv(path: Path, name: str) -> AbstractContextManager[Callable[[WrittenTable], None]]:
    """A function that appends rows as tab-separated text."""
    return _appending(path, name, "\t")


@contextmanager
def _appending(path: Path, name: str, delimiter: str) -> Iterator[Callable[[WrittenTable], None]]:
    with open_compressing(path, name) as stream:
        yield _TextRows(stream, delimiter).append


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


class _TextRows:
    """Rows on their way to a text file; the first of them tell which columns hold true and false.

    Neighbouring columns of a kind are put into words together: in a wide table that is far faster
    than column by column.
    """

    def __init__(self, stream: Any, delimiter: str) -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._truths: set[str] | None = None

    def append(self, table: WrittenTable) -> None:
        """Write rows, after the names of columns if they are the first."""
        truths = table.truth_columns()
        if self._truths is None:
            self._truths = truths
            self._write([text_line(table.column_names, self._delimiter)])
        refuse_changed_types(sorted(self._truths - truths))
        columns = table.columns
        step = max(1, _CELLS_PER_BLOCK // max(1, len(columns)))
        for start in range(0, table.n_samples, step):
            self._write(self._lines(table, columns, slice(start, start + step)))

    def _write(self, lines: list[str]) -> None:
        # A line with nothing on it would count as no row.
        self._stream.write("\n".join([line or '""' for line in lines]).encode() + b"\n")

    def _lines(
        self, table: WrittenTable, columns: Sequence[int | OtherColumn], rows: slice
    ) -> list[str]:
        mark = self._delimiter
        pieces: list[list[str]] = []
        if table.leading_names:
            vectors = [table.sample_names, None if table.labels is None else table.text_labels()]
            pieces.append(text_lines([v[rows] for v in vectors if v is not None], mark))
        for kind, group in groupby(columns, lambda column: self._kind(table, column)):
            run = list(group)
            if kind == "other":
                others = [column for column in run if isinstance(column, OtherColumn)]
                pieces.append(text_lines([_cells(table, c, rows) for c in others], mark))
                continue
            places = [column for column in run if isinstance(column, int)]
            values = table.X[rows, places[0] : places[-1] + 1]
            values = values.toarray() if table.is_sparse else np.ascontiguousarray(values)
            if kind == "number":
                pieces.append(number_lines(values, mark))
            else:
                cells = np.where(np.isnan(values), "", np.where(values == 1, "true", "false"))
                pieces.append([mark.join(row) for row in cells.tolist()])
        return [mark.join(parts) for parts in zip(*pieces, strict=True)]

    def _kind(self, table: WrittenTable, column: int | OtherColumn) -> str:
        if isinstance(column, OtherColumn):
            return "other"
        return "truth" if table.feature_names[column] in (self._truths or ()) else "number"


def _cells(table: WrittenTable, column: OtherColumn, rows: slice) -> list[str | None]:
    """A column of text or dates as cells; dates as in ISO 8601, with Z where they have a zone."""
    values = column.values[rows]
    if column.kind != "date":
        return list(values.tolist())
    moments = values.astype("datetime64[D]") if table.holds_days(column) else values
    words = np.datetime_as_string(moments)
    zone = "Z" if getattr(table.types.get(column.name), "tz", None) else ""
    return [None if word == "NaT" else word + zone for word in words.tolist()]


def text_line(cells: Sequence[Any], delimiter: str) -> str:
    """Cells of one row as they stand in a file, without the line end; None is an empty cell."""
    words = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in cells]
    return text_lines([[word] for word in words], delimiter)[0]


def text_lines(columns: Sequence[Sequence[str | None]], delimiter: str) -> list[str]:
    """Every row of some columns as it stands in a file, without the line end."""
    # The line end is also what tells the writer which characters to quote.
    writer = csv.writer(_Echo(), delimiter=delimiter, lineterminator="\r\n")
    # With another cell behind, an empty one is written as it is, also if it stands alone.
    end = f"{delimiter}\r\n"
    return [
        str(writer.writerow([*(cell and harmless(cell) for cell in row), ""])).removesuffix(end)
        for row in zip(*columns, strict=True)
    ]


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        """The text."""
        return text


def number_lines(rows: Any, delimiter: str) -> list[str]:
    """Every row joined by the delimiter, in the shortest digits that read back the same.

    Gaps are empty; whole numbers are written without a decimal point, and without an exponent as
    far as floating-point numbers tell integers apart.
    """
    pa = optional("pyarrow", "Text tables")
    pc = optional("pyarrow.compute", "Text tables")
    if rows.dtype.kind == "b":
        rows = rows.astype(np.int8)
    elif rows.dtype == np.float16 or rows.dtype.itemsize > 8:
        rows = rows.astype(np.float64)
    n_rows, n_columns = rows.shape
    values = rows.ravel()
    cells = pa.array(values, from_pandas=True).cast(pa.string())
    if values.dtype.kind == "f":
        with_exponent = _are_large_and_whole(values)
        if with_exponent.any():
            digits = pa.array(values[with_exponent].astype(np.int64)).cast(pa.string())
            cells = pc.replace_with_mask(cells, pa.array(with_exponent), digits)
    if cells.null_count:
        cells = cells.fill_null("")
    offsets = pa.array(np.arange(0, (n_rows + 1) * n_columns, n_columns, dtype=np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, cells), delimiter)
    return list(joined.to_pylist())


def _are_large_and_whole(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whole numbers that Arrow would write with an exponent, though they are exact."""
    size = np.abs(values)
    large: NDArray[np.bool_] = (size >= _FIRST_EXPONENT) & (size <= LARGEST_EXACT_INTEGER)
    if large.any():
        large[large] = np.rint(values[large]) == values[large]
    return large
