"""The layout of a delimited text file, found from its first lines; no reading engine is needed."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, dropwhile, pairwise, takewhile
from pathlib import Path

from keepers.exceptions import DataError, ParameterError, shorten
from keepers.tables.atomic import open_plain
from keepers.tables.table import (
    GAP_WORDS,
    LARGEST_EXACT_INTEGER,
    ReadRequest,
    numbered_names,
    refuse_size,
)

csv.field_size_limit(1 << 27)  # texts and geometries may be longer than Python's 128 kB

LOOKED_AT = 1 << 20
"""Bytes that are looked at; of a wide table at least three whole lines."""
BLANKS = "whitespace"
"""The separator that stands for runs of blanks."""
_SEPARATORS = {"csv": ",;\t|", "tsv": "\t;|,", "txt": [*"\t;|,", BLANKS]}
"""Marks that may separate cells, by the format; the first are preferred."""
_SEP_WORDS = {"tab": "\t", "\\t": "\t", "space": " "}
_DECLARED_SEP = re.compile(r'"?sep=([,;\t|])"?\s*')
"""The first line that Excel writes and reads to name the separator."""
_NUMBER = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE
)
_PLAIN_NUMBER = re.compile(r"-?(?:[1-9]\d{0,14}|0)(?:\.\d+)?")
_CODE = re.compile(r"0\d+")
"""Digits with zeros in front name something: a town, an article."""
_LONG_INTEGER = re.compile(r"[+-]?\d{16,}")
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+")
_BLANK_BEFORE_QUOTE = re.compile(r'[,;\t|] +"')
_UNKNOWN = ("missing", "unknown", "n.a.", "n.d.")
_LETTER = re.compile(r"[^\W\d_]")
_CELL = re.compile(r'"[^"]*"|\S+')
# Between letters: in Mac-Roman accented letters and an apostrophe, in Windows-1252 signs that
# do not stand there; the reverse. Bytes of Windows's own quotation marks and dashes do not count.
_MAC_LETTER = re.compile(rb"(?<=[A-Za-z])[\x80-\x84\x86-\x90\x98-\x9f\xd5](?=[a-z])")
_WINDOWS_LETTER = re.compile(rb"(?<=[A-Za-z])[\xdf-\xff](?=[a-z])")
_MOST_TITLE_ROWS = 20
_TITLE_CELLS = 2
"""Most cells of a line above the header: a title, or "Last updated" and a day."""
_FEWEST_NUMBERS = 3
"""Columns of numbers that show that the line below the header is none of the samples."""
_EVEN_ENOUGH, _LONG_ENOUGH = 5, 8
"""From this count on, numbers in even steps, or in order, are column names (wavelengths, times):
eight values of a sample are in order by chance in 1 of 20,000 files."""


@dataclass
class Dialect:
    """The settings of a reading engine."""

    names: list[str]
    kinds: list[str]
    """Types of the columns by the first rows: "number", "comma" (a decimal comma in a file
    that has points or separates cells by commas), "truth", "text" or "nothing" (left out)."""
    sep: str
    decimal: str
    skip_lines: int
    """Lines before the first row, the header included."""
    index: bool
    """True if the first column holds row names and has no name itself."""
    encoding: str
    may_be_short: bool
    """True if lines may lack their last cells: some have all of them, and blanks do not separate
    cells, where any cell might be lacking."""
    rewrite: bool
    """True if the text must be rewritten for an engine: encoding, line ends, runs of blanks."""
    gaps: set[str]
    """Words for missing values among the first rows."""
    notes: list[str] = field(default_factory=list)


def is_gap(cell: str) -> bool:
    """True if a cell holds nothing."""
    return cell.strip() in GAP_WORDS


def is_number(cell: str) -> bool:
    """True if a cell spells a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(cell.strip().replace(",", ".", 1)) is not None


def padded(row: list[str], width: int) -> list[str]:
    """A row whose last cells are missing, with empty ones; a row needs more than half of them."""
    return row + [""] * (width - len(row)) if lacks_last(len(row), width) else row


def lacks_last(n_cells: int, width: int) -> bool:
    """True if a line is a row without its last cells: not a footnote of one or two."""
    return width / 2 < n_cells < width


def refuse_ragged(line: int, n_cells: int, n_columns: int) -> None:
    """Raise for a line that has too few or too many cells."""
    raise DataError(
        f"Every line must have {n_columns} cells, one a column; line {line} has {n_cells}. Correct "
        "it, or name the separator (sep=, --sep) or lines above the names (--skip-rows)."
    )


def is_value(cell: str) -> bool:
    """True if a cell is a number or a gap."""
    return is_gap(cell) or is_number(cell)


def sniff(path: Path, request: ReadRequest) -> Dialect:
    """Look at the first lines; what the request gives is not guessed."""
    _check_options(request)
    with open_plain(path, request.max_bytes) as stream:
        start = stream.read(LOOKED_AT)
        comment = (request.comment or "\n").encode()
        while sum(not line.startswith(comment) for line in start.split(b"\n")) <= 3 and (
            more := stream.read(4 * LOOKED_AT)
        ):
            start += more
            refuse_size(len(start), "Its first lines", request.max_bytes)
        ended = not stream.read(1)
    notes: list[str] = []
    encoding = request.encoding or _encoding(start, ended, notes)
    lines, bare_returns = _lines(start, encoding, ended)
    sep = _SEP_WORDS.get((request.sep or "").casefold(), request.sep)
    top, mark = lines[request.skip_rows or 0 :], request.comment or "#"
    if top and (declared := _DECLARED_SEP.fullmatch(top[0])):
        sep, top = declared[1], top[1:]
    top = list(dropwhile(lambda line: not line.strip(), top))
    if not top:
        raise DataError("It holds no line with column names. Check skip_rows= (--skip-rows).")
    blank = [""] * (request.comment is not None)
    skipped = takewhile(lambda line: line.startswith(mark) or line in blank, top[:-1])
    n_comments = sum(1 for _ in skipped)
    known = _SEPARATORS.get(request.format or "csv", _SEPARATORS["csv"])
    separators = [mark for mark in known if mark != request.decimal]
    sep = sep or _separator(top[n_comments:], separators)
    names, n_used, rows = _header(top, n_comments, sep, request, notes)
    if request.comment:
        rows = [row for row in rows if not row[0].startswith(request.comment)]
    lengths = Counter(map(len, rows)) or Counter([len(names or ())])
    width = lengths.most_common(1)[0][0]
    if names is not None and max(lengths) == len(names):
        width = max(lengths)
    if names is None:
        names, index = numbered_names(width), False
    else:
        names, index = _match_names(names, rows, width)
    rows = [row if len(row) == width else padded(row, width) for row in rows]
    kinds = _kinds(names, rows, width, index, decimal := request.decimal or _decimal(rows, sep))
    if "nothing" in kinds:
        notes.append("Lines end in a separator; the empty column after it is left out.")
    return Dialect(
        names=names,
        kinds=kinds,
        sep=sep,
        decimal=decimal,
        skip_lines=len(lines) - len(top) + n_used,
        index=index,
        encoding=encoding,
        may_be_short=lengths[len(names)] > 0 and sep not in (BLANKS, " "),
        rewrite=bare_returns
        or sep == BLANKS
        or encoding not in ("utf-8", "utf-8-sig")
        or any(map(_BLANK_BEFORE_QUOTE.search, lines[:100])),
        gaps=set(GAP_WORDS[1:]).intersection(chain.from_iterable(rows)),
        notes=notes,
    )


def _check_options(request: ReadRequest) -> None:
    """Raise for options that no text table can have."""
    mark = _SEP_WORDS.get((request.sep or "").casefold(), request.sep or ",")
    is_mark = len(mark) == 1 and mark.isascii() and not mark.isalnum() and mark not in '"\r\n'
    comment = "#" if request.comment is None else request.comment
    encoding = request.encoding or "utf-8"
    try:
        is_encoding = isinstance(codecs.decode(b"", encoding), str) and encoding.isascii()
    except (LookupError, ValueError):  # a name with a zero byte is a ValueError
        is_encoding = False
    rules = {
        "decimal": (request.decimal in (None, ".", ","), "'.' or ','"),
        "comment": (
            comment.strip() and not set(comment).intersection('\n"'),
            "how lines begin that are left out, such as '#', without line breaks or quotes",
        ),
        "skip_rows": (_is_count(request.skip_rows, 0), "an integer >= 0"),
        "header_rows": (_is_count(request.header_rows, 1), "an integer >= 1"),
        "sep": (
            request.sep != "" and (is_mark or mark.casefold() == BLANKS),
            "one ASCII character that is not a letter, digit, quotation mark or line end, or "
            f"'tab', 'space' or '{BLANKS}' (runs of blanks)",
        ),
        "encoding": (is_encoding, "an encoding of Python, such as 'utf-8', 'latin-1' or 'cp1250'"),
    }
    for name, (holds, rule) in rules.items():
        if not holds:
            raise ParameterError(f"{name}= must be {rule}; got {shorten(getattr(request, name))}.")
    if request.header is False and request.header_rows is not None:
        raise ParameterError("header=False and header_rows= exclude each other. Leave one out.")
    if request.sep is not None and mark == request.decimal:
        raise ParameterError(f"sep= and decimal= must differ; both are {shorten(mark)}.")


def _is_count(given: int | None, least: int) -> bool:
    return given is None or (not isinstance(given, bool) and given >= least)


def _encoding(start: bytes, ended: bool, notes: list[str]) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, ended)
    except UnicodeDecodeError:
        encoding, note = not_utf_8(start)
        notes.append(note)
        return encoding
    return "utf-8-sig" if start.startswith(codecs.BOM_UTF8) else "utf-8"


def not_utf_8(text: bytes) -> tuple[str, str]:
    """The likely encoding of a text that is not UTF-8, and a note about it."""
    is_mac = len(_MAC_LETTER.findall(text)) > len(_WINDOWS_LETTER.findall(text))
    encoding, called = ("mac_roman", "Mac-Roman") if is_mac else ("cp1252", "Windows-1252")
    return encoding, (
        f"The text is not UTF-8 and is read as {called}. If letters look wrong, name the encoding "
        "(encoding=, --encoding)."
    )


def _lines(start: bytes, encoding: str, ended: bool) -> tuple[list[str], bool]:
    """The first whole lines, and whether some end in a carriage return alone."""
    text = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    if "\0" in text:
        raise DataError("It holds bytes that are not text.")
    text = text if ended else text.removesuffix("\r")  # its line feed may come next
    text = text.replace("\r\n", "\n")
    bare_returns = "\r" in text and "\r" in re.sub(r'"[^"]*"', "", text)
    text = text.replace("\r", "\n")
    if not ended and "\n" in text:
        text = text[: text.rindex("\n") + 1]
    if not text.strip():
        raise DataError("It is empty. A table needs a line of column names, and rows.")
    return text.split("\n"), bare_returns


def numbered_rows(
    lines: Iterable[str], sep: str, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Number of the last line, and cells, of every row but blank ones.

    Quoted cells may hold line breaks; ``strict`` quotation marks must be closed.
    """
    if sep == BLANKS:
        found = ([cell.strip('"') for cell in _CELL.findall(line)] for line in lines)
        yield from ((number, cells) for number, cells in enumerate(found, 1) if cells)
        return
    spaced = sep != " "  # a space may stand before a quoted cell
    reader = csv.reader(lines, delimiter=sep, skipinitialspace=spaced, strict=strict)
    for row in reader:
        if row:
            yield reader.line_num, row


def split_rows(lines: Sequence[str], sep: str) -> list[list[str]]:
    """The cells of some lines, without blank lines."""
    return [row for _, row in numbered_rows((f"{line}\n" for line in lines), sep)]


def _separator(lines: Sequence[str], candidates: Sequence[str]) -> str:
    """The mark that gives most lines the same number of cells, then the one that gives most cells.

    The first line may have one cell less: row names often have no name. Blanks come last, since
    names may hold them.
    """
    sample = [line for line in lines[:100] if line.strip()]
    best, found = (0.0, False, False, 0), ""
    for mark in candidates:
        if mark != BLANKS and not any(mark in line for line in sample[: _MOST_TITLE_ROWS + 2]):
            continue
        rows = split_rows(sample, mark)
        rows = rows[_n_title_rows(rows, mark) :]
        below = rows[1:] or rows
        width = Counter(map(len, below)).most_common(1)[0][0] if below else 0
        fits = [len(row) == width for row in below]
        fits += [len(rows[0]) in (width, width - 1)] if rows else []
        share = sum(fits) / max(len(fits), 1)
        if mark == "," and any(_has_decimal_commas(sample, m) for m in candidates if m != ","):
            continue
        if BLANKS in candidates and not any(is_number(cell) for row in below for cell in row):
            continue  # prose, not a table
        if candidates[0] == "\t" and BLANKS not in candidates and len(rows[0]) < width:
            continue  # .tsv: commas in a column of text
        order = (round(share, 1), mark != BLANKS, len(rows[0]) == width, width)
        if width > 1 and order > best:
            best, found = order, mark
    if found:
        return found
    if BLANKS in candidates and not all(is_value(line) for line in sample[1:]):
        raise DataError(
            "It holds no table: no separator gives its first lines the same number of cells. Name "
            "the separator (sep=, --sep) or the format (format=, --format)."
        )
    return candidates[0]  # a single column


def _n_title_rows(rows: Sequence[Sequence[str]], sep: str) -> int:
    """Count the rows above the header: a cell or two, in a table that has many more."""
    width = Counter(map(len, rows[:100])).most_common(1)[0][0] if rows else 0
    if sep == BLANKS or width < 3:
        return 0
    for at, row in enumerate(rows[: _MOST_TITLE_ROWS + 1]):
        filled = [cell for cell in row if cell.strip()]
        if 2 * len(filled) >= width:
            names = len(row) >= width - 1 and not all(map(is_value, row))
            return at if names and at + 1 < len(rows) else 0
        if len(filled) > _TITLE_CELLS or any(map(is_number, filled[:1])):
            return 0
    return 0


def _n_header_rows(rows: Sequence[Sequence[str]], notes: list[str]) -> int:
    """Count the rows of names: several in exports of surveys, two where units stand below them."""
    for at, row in enumerate(rows[:3]):  # Qualtrics: names, questions, identifiers
        if all('"ImportId"' in cell for cell in row):
            return at + 1
    if len(rows) < 4:
        return 1
    first, second = rows[0], rows[1]
    below = [row for row in rows[2:100] if len(row) == len(second)]
    blank = [at for at, cell in enumerate(first[: len(second)]) if at and not cell.strip()]
    if len(first) != len(second) or not below:
        return 1
    merged = len(blank) > 1 and all(not is_value(second[at]) for at in blank)
    columns = [[cell for cell in column if not is_gap(cell)] for column in zip(*below, strict=True)]
    numeric = [at for at, cells in enumerate(columns) if cells and all(map(is_number, cells))]
    words = [second[at].strip() for at in numeric if not is_gap(second[at])]
    units = 2 * len(words) >= len(numeric) >= _FEWEST_NUMBERS and not any(map(is_number, words))
    units = units and not any(is_number(first[at]) for at in numeric)
    units = units and any(_LETTER.search(word) and word.lower() not in _UNKNOWN for word in words)
    if not (merged or units):
        return 1
    shown = ", ".join(cell.strip() for cell in second[:3])
    notes.append(
        f"The first two lines are read as column names. If the second ({shown}, ...) is a sample, "
        "pass header_rows=1 (--header-rows 1)."
    )
    return 2


def _joined_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Names out of several rows: the first if it names every column, else a name and what is below.

    A blank cell belongs to the name before it, as in merged cells.
    """
    first = [cell.strip() for cell in rows[0]]
    if len(rows) == 1 or (all(first) and len(set(first)) == len(first)):
        return list(rows[0])
    names, before = [], ""
    for at in range(max(map(len, rows))):
        cells = [row[at].strip() if at < len(row) else "" for row in rows]
        before = cells[0] or before
        names.append(": ".join(cell for cell in (before, *cells[1:]) if cell))
    return names


def _has_decimal_commas(sample: Sequence[str], mark: str) -> bool:
    """True if a mark separates the line below the header into numbers, some with a comma."""
    rows = split_rows(sample, mark)
    cells = next(iter(rows[_n_title_rows(rows, mark) + 1 :]), [])
    with_comma = [cell for cell in cells if "," in cell]
    return len(cells) > 1 and bool(with_comma) and all(map(is_number, with_comma))


def _header(
    top: list[str], n_comments: int, sep: str, request: ReadRequest, notes: list[str]
) -> tuple[list[str] | None, int, list[list[str]]]:
    """The column names or None, how many of the lines are used up, and the rows below."""
    numbered = list(numbered_rows((f"{line}\n" for line in top[n_comments:]), sep))
    rows = [row for _, row in numbered]
    if n_comments and request.comment is None:
        last = top[n_comments - 1]
        is_spaced = last.startswith("# ")
        cells = (split_rows([last.lstrip("#").lstrip() if is_spaced else last], sep) or [[]])[0]
        fits = rows and len(cells) in (len(rows[0]), len(rows[0]) - 1) and len(cells) > 1
        if fits and any(map(is_value, rows[0])) and request.header is None:
            if is_spaced:
                notes.append("Column names are read from the last line that begins with '#'.")
            return cells, n_comments, rows
        notes.append(
            f"Lines at the top that begin with '#' ({n_comments}) are skipped as comments; "
            "comment='#' (--comment '#') reads the file without this note."
        )
    has_names = request.header is not False
    if n_title := _n_title_rows(rows, sep) if has_names and request.skip_rows is None else 0:
        words = shorten(" ".join(cell for cell in rows[0] if cell.strip()))
        notes.append(
            f"{words}, above the column names, is read as a title. If it belongs to the table, "
            "pass skip_rows=0 (--skip-rows 0)."
        )
        rows = rows[n_title:]
    if not rows:
        raise DataError("It holds no rows. A table needs column names and at least one row.")
    n_header = request.header_rows or (_n_header_rows(rows, notes) if has_names else 1)
    first, below = _joined_names(rows[:n_header]), rows[n_header:]
    second = below[0] if below else []
    if request.header is None and request.header_rows is None and n_header == 1:
        has_names = _is_header(first, second, notes)
    if not has_names:
        return None, n_comments, rows
    if sep == "," and len(first) == 1 and len(second) == 2 and all(map(is_number, second)):
        raise DataError(
            f"The first line names one column; the next reads {shorten(','.join(second))}. Pass "
            "sep=';' (--sep ';') if that is a decimal comma, or name both columns."
        )
    if not below:
        raise DataError("It holds column names and no rows. Add rows, or check the file.")
    return first, n_comments + numbered[n_title + n_header - 1][0], below


def _is_header(first: Sequence[str], second: Sequence[str], notes: list[str]) -> bool:
    """True if the first row holds names; ``notes`` get a sentence where that is doubtful."""
    words = [cell.strip() for cell in first]
    shown = ", ".join(words[:3]) + (", ..." if len(words) > 3 else "")
    as_names = (
        f"The first line ({shown}) is read as column names. If it is a sample, pass header=False "
        "(--no-header)."
    )
    numbers = _numbers(words)
    if not all(map(is_value, words)) or not numbers:
        alike = [is_number(word) for word in words] == [is_number(cell) for cell in second]
        if alike and numbers and numbers != sorted(numbers):
            notes.append(as_names)  # such as the first flower of iris: 5.1, 3.5, 1.4, 0.2, setosa
        return True
    if not second:
        return False
    named = words if words[0] else words[1:]
    if len(second) == len(words) + 1 and second[-1].strip():
        return True
    if named == [str(at) for at in range(len(named))]:  # as pandas numbers columns
        if named is words and all(cell.strip().isdigit() for cell in second):
            notes.append(as_names)
        return True
    if not all(map(is_value, second)) or (named is not words and second[0].strip()):
        notes.append(as_names)
        return True
    even = len(named) >= _EVEN_ENOUGH and _in_even_steps(named) and not _in_even_steps(second)
    ordered = len(named) >= _LONG_ENOUGH and _in_order(named)
    if even or ordered:
        notes.append(as_names)
    return even or ordered


def _steps(words: Sequence[str]) -> list[float]:
    numbers = _numbers(words)
    return [b - a for a, b in pairwise(numbers)] if len(numbers) == len(words) else [0.0]


def _in_order(words: Sequence[str]) -> bool:
    steps = _steps(words)
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)


def _numbers(words: Sequence[str]) -> list[float]:
    return [float(word.replace(",", ".", 1)) for word in words if is_number(word)]


def _in_even_steps(words: Sequence[str]) -> bool:
    steps = _steps(words)
    return steps[0] != 0 and max(steps) - min(steps) <= 0.01 * abs(steps[0])


def _match_names(names: list[str], rows: list[list[str]], width: int) -> tuple[list[str], bool]:
    """The names fitted to the width of the rows, and whether the first column names the rows."""
    last_is_empty = all(not row[-1].strip() for row in rows if len(row) == width)
    if len(names) == width - 1:
        if last_is_empty and len(rows[0]) > 1:  # rows end in a separator, the header does not
            return [*names, ""], not names[0].strip()
        return ["", *names], True  # as R's write.table leaves out the name of the row names
    if len(names) == width + 1 and not names[-1].strip():
        names = names[:-1]  # the header alone ends in a separator
    return names, not names[0].strip()


def _kinds(
    names: list[str], rows: list[list[str]], width: int, index: bool, decimal: str
) -> list[str]:
    fitting = [row for row in rows if len(row) == width == len(names)]
    kinds = [_kind(column, decimal) for column in zip(*fitting, strict=True)] if fitting else []
    kinds += ["number"] * (len(names) - len(kinds))
    if len(kinds) > 1 and not names[-1].strip() and all(not row[-1].strip() for row in fitting):
        kinds[-1] = "nothing"
    if index:
        kinds[0] = "text"
    return kinds


def _kind(cells: Sequence[str], decimal: str) -> str:
    words = set(map(str.strip, cells)).difference(GAP_WORDS)
    if all(map(_PLAIN_NUMBER.fullmatch, words)):  # most columns, at once
        return "number"
    if {word.lower() for word in words} <= {"true", "false"}:
        return "truth"
    long_ones = [word for word in words if _LONG_INTEGER.fullmatch(word)]
    if any(map(_CODE.fullmatch, words)) or any(
        abs(int(word)) > LARGEST_EXACT_INTEGER for word in long_ones
    ):
        return "text"
    if decimal == ",":
        words = {word.replace(",", ".", 1) for word in words}
    rest = [word for word in words if not _NUMBER.fullmatch(word)]
    if rest and all(map(_COMMA_NUMBER.fullmatch, rest)) and not all(map(_GROUPED.fullmatch, rest)):
        return "comma"
    return "text" if rest else "number"


def _decimal(rows: list[list[str]], sep: str) -> str:
    """The decimal mark that most numbers have; a comma only where it does not separate cells."""
    if sep == ",":
        return "."
    cells = [cell.strip() for row in rows[:1000] for cell in row[:1000]]
    marked = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    # Semicolons are written where the comma is decimal; elsewhere 1,234 may be a thousand.
    commas = sum(sep == ";" or not _GROUPED.fullmatch(cell) for cell in marked)
    points = sum(bool(re.fullmatch(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", cell)) for cell in cells)
    return "," if commas > points else "."
