"""The kind of every column: number, category, date, identifier, free text.

These rules decide which columns are not used, unless the user overrides them. Each rule is
narrow: a measurement that is taken for an identifier is lost. Distinct whole numbers are not enough
(gene counts in few samples are distinct, and totals rise from day to day): they must number the
rows, or the name of the column must call them an id.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from keepers._protocols import FloatArray
from keepers.exceptions import ParameterError
from keepers.prepare.facts import TableFacts, TextFacts, as_words, have_gaps
from keepers.tables.table import refuse_absent

if TYPE_CHECKING:
    import polars as pl

Kind = str
KINDS = (
    *("number", "boolean", "tick", "category", "choices", "ordered"),
    *("date", "identifier", "text", "empty", "drop"),
)
NOT_USED = ("date", "identifier", "text", "empty", "drop")
Missing = Literal["error", "keep", "mean", "median", "model", "drop-rows"]
MISSING: tuple[Missing, ...] = get_args(Missing)
NUMBERS_AS_TEXT, DURATIONS = "numbers as text", "durations in seconds"

FEW_VALUES = 30
"""Most values of a category; a text column with more is free text."""
FEWEST_ROWS = 10
"""With fewer rows, values differ and rise by chance."""
_FEWEST_TICKS = 2
"""One answer of one person is not a tick box but, for example, another drink."""
_MANY_ROWS = 20
_MOSTLY = 0.95
# Whole seconds from 2000 to 2035; from 1980 to 2050 if the name of the column mentions time.
_SECONDS = (946_684_800, 2_051_222_400)
_NAMED_SECONDS = (315_532_800, 2_524_608_000)
_FIRST_DIGITS, _LAST_DIGITS = 19_000_101, 21_001_231
"""Dates as digits, YYYYMMDD."""
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# In customerId the I follows a small letter; in the gene BID it does not.
_ID_NAME = re.compile(
    r"(?:^|[\W_]|(?-i:(?<=[a-z])(?=I)))(?:id|ids|uuid|guid|key|barcode)$|"
    r"^(?:(?:user|customer|client|order|item|product|patient|subject|sample|person|record)id|rowid|"
    r"row[ _]?number|rownames?|unnamed: ?0|index|instant|nr)$",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"(?:^|_)(?:zip|postal|post)[ _]?(?:code)?s?$", re.IGNORECASE)
_TIME_NAME = re.compile(r"time|date|stamp|epoch|(?:^|_)(?:ts|at|on)$", re.IGNORECASE)
_TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "t", "1"), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "0"), 0.0),
}
_NOTHING = frozenset({"?", "-", "--", ".", "*", "missing", "unknown", "n.a.", "na", "none", "nil"})
_NUMBER_WORD = (
    r"^[$€£¥]?\s*[+-]?\s*[$€£¥]?\s*(?:"
    r"[1-9][0-9]{0,2}(?:[THOUSANDS'\s][0-9]{3})+(?:[DECIMAL][0-9]+)?"
    r"|(?:[0-9]+[DECIMAL]?[0-9]*|[DECIMAL][0-9]+)(?:[eE][+-]?[0-9]+)?)\s*%?\s*[€£¥$]?$"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE_WORD = (
    r"^(?i)(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ]{_MONTH}[-, ]{{1,2}}(?:\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:,?[T ]\d{1,2}:\d{2}.*)?$"
)
_YEAR_FIRST = re.compile(r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}")
_MARKS = (";", "|", ",")
"""Marks that separate answers in one cell."""
_NUMBERED_ANSWERS = re.compile(r"[0-9]{1,2}(?:,[0-9]{1,2})*")
_ONE_COMMA = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column, and the reason for it."""

    name: str
    kind: Kind
    why: str = ""
    """The reason, as a phrase: "text with 3 values"."""
    asked: bool = False
    """True if the user chose it."""
    words_as_gaps: tuple[str, ...] = ()
    """Words in a column of numbers or truth values that count as missing."""
    decimal: str = "."
    """Decimal mark of numbers that are stored as text."""
    doubtful: str = ""
    """A number whose comma is read as one of thousands and might be a decimal comma."""
    mark: str = ""
    """Mark between several answers in a cell."""

    @property
    def is_feature(self) -> bool:
        """True if the column can be selected."""
        return self.kind not in NOT_USED


def find_kinds(facts: TableFacts, asked: Mapping[str, Kind] | None = None) -> dict[str, ColumnKind]:
    """The kinds of all columns by name, in the order of the source; ``asked`` overrides them."""
    asked = asked or {}
    refuse_absent(asked, facts.columns)
    found = _number_kinds(facts)
    found |= {name: text_kind(name, text, facts.n_rows) for name, text in facts.texts.items()}
    found |= {name: _as_asked(name, kind, facts.texts.get(name)) for name, kind in asked.items()}
    return {name: found[name] for name in facts.columns}


def _as_asked(name: str, kind: Kind, text: TextFacts | None) -> ColumnKind:
    found = ColumnKind(name, kind, "as asked for", True)
    has_times = text is not None and text.dtype.is_temporal()
    if has_times and kind in ("boolean", "category", "choices", "ordered"):
        raise ParameterError(
            f"Dates and times are numbers of seconds, or not used; got {kind!r} for {name!r}. Name "
            "the kind 'number' or 'drop', or store the column as text."
        )
    if kind == "choices":
        if text is None:  # a number is one answer
            return replace(found, kind="category")
        mark = max(_MARKS, key=lambda mark: sum(mark in word for word in text.counts))
        return replace(found, mark=mark)
    if text is None or kind not in ("number", "boolean"):
        return found
    decimal = _decimal_mark(text.counts)
    unread = _unread(text.counts, lambda words: read_words(words, kind, decimal))
    return replace(found, words_as_gaps=tuple(unread), decimal=decimal)


def _number_kinds(facts: TableFacts) -> dict[str, ColumnKind]:
    kinds = {name: ColumnKind(name, "number") for name in facts.names}
    kinds |= {name: ColumnKind(name, "boolean", "true or false") for name in facts.truths}
    for at in np.flatnonzero(facts.n_missing == facts.n_rows).tolist():
        kinds[facts.names[at]] = ColumnKind(facts.names[at], "empty", "no values")
    sample = facts.sample
    n_present = facts.n_rows - facts.n_missing
    ticks = (facts.minimum == 1.0) & (facts.maximum == 1.0) & (facts.n_missing > 0)
    for at in np.flatnonzero(ticks & (n_present >= _FEWEST_TICKS)).tolist():
        kinds[facts.names[at]] = ColumnKind(facts.names[at], "tick", "1 or blank")
    if facts.n_rows < FEWEST_ROWS or sample.is_sparse:
        return kinds
    with np.errstate(invalid="ignore"):  # infinite values
        steps = np.sign(np.diff(sample.values, axis=0))
    in_order = np.all(steps == 1, axis=0) | np.all(steps == -1, axis=0)
    late = facts.minimum >= _NAMED_SECONDS[0]  # a Unix time may have fractions
    suspicious = (facts.maximum > facts.minimum) & (facts.whole | in_order | late)
    for at in np.flatnonzero(suspicious).tolist():
        name = facts.names[at]
        if name not in facts.truths:
            values = sample.values[:, at]
            kinds[name] = ColumnKind(name, *_kind_of_numbers(facts, at, values, in_order[at]))
    return kinds


def _kind_of_numbers(
    facts: TableFacts, at: int, values: FloatArray, in_order: bool
) -> tuple[Kind, str]:
    """The kind of a column of whole numbers, or in order, or large, with the reason for it."""
    name, n_rows = facts.names[at], facts.n_rows
    low, high = float(facts.minimum[at]), float(facts.maximum[at])
    whole = facts.whole[at]
    if low >= _FIRST_DIGITS and (whole or in_order or _TIME_NAME.search(name)):
        why = _time_unit(name, values, low, high)
        if why is not None:
            return "date", why
    if not whole:
        steps = np.diff(values)
        even = in_order and len(values) == n_rows and np.ptp(steps) <= 1e-6 * np.abs(steps).max()
        return ("identifier", "it counts the rows in even steps") if even else ("number", "")
    is_named, is_code = _ID_NAME.search(name) is not None, _CODE_NAME.search(name) is not None
    numbers_rows = n_rows - 1 <= high - low < 1.05 * n_rows and n_rows >= _MANY_ROWS
    if not (is_named or is_code or in_order or numbers_rows):
        return "number", ""
    present = values[np.isfinite(values)]
    n_distinct = len(np.unique(present))
    all_differ = n_distinct == len(values)
    dense = high - low < 2 * n_rows and n_rows >= _MANY_ROWS
    if all_differ and in_order and (is_named or dense or len(np.unique(np.diff(values))) == 1):
        return "identifier", f"distinct integers in order, {low:.0f} to {high:.0f}"
    # A few drawn rows of many differ by chance. The numbers 1 to n have a known variance.
    known = len(values) == n_rows or math.isclose(
        facts.variances[at], (n_rows**2 - 1) / 12, rel_tol=1e-9
    )
    if all_differ and numbers_rows and known:
        return "identifier", f"distinct integers, {low:.0f} to {high:.0f}, for {n_rows} rows"
    if is_named and n_distinct >= max(FEWEST_ROWS, 0.5 * len(present)):
        many = "distinct" if all_differ else f"{n_distinct} different"
        return "identifier", f"{many} integers, and an identifier by name"
    if is_code and n_distinct >= FEWEST_ROWS:
        return "identifier", "codes by name"
    return "number", ""


def _time_unit(name: str, values: FloatArray, low: float, high: float) -> str | None:
    """The reason to take numbers for dates: time since 1970 in some unit, or digits of dates."""
    first, last = _NAMED_SECONDS if _TIME_NAME.search(name) else _SECONDS
    for unit, factor in _UNITS.items():
        if first * factor <= low and high <= last * factor:
            days = (np.datetime64(int(edge / factor), "s").astype("M8[D]") for edge in (low, high))
            return f"Unix time in {unit}, {' to '.join(str(day) for day in days)}"
    if low >= _FIRST_DIGITS and high <= _LAST_DIGITS:
        present = values[np.isfinite(values)]
        digits = present.astype(np.int64)
        month, day = digits // 100 % 100, digits % 100
        if np.all((digits == present) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)):
            return "dates written as digits, YYYYMMDD"
    return None


def text_kind(name: str, text: TextFacts, n_rows: int) -> ColumnKind:
    """The kind of a column that holds text, dates or durations."""
    import polars as pl

    kind = partial(ColumnKind, name)
    n_present = n_rows - text.n_missing
    if n_present == 0:
        return kind("empty", "no values")
    if text.dtype == pl.Duration:
        return kind("number", DURATIONS)
    if text.dtype.is_temporal():
        return kind("date", "times of day" if text.dtype == pl.Time else "dates")
    if text.levels:
        return kind("ordered", f"{len(text.levels)} ordered values")
    shown, n_levels = sum(text.counts.values()), len(text.counts)
    folded = {word.strip().casefold() for word in text.counts}
    if folded <= _TRUTH.keys() and {_TRUTH[word] for word in folded} == {0.0, 1.0}:
        return kind("boolean", " or ".join(sorted(text.counts)))
    if (digits := _kind_of_digits(text)) is not None:
        return kind(*digits)
    mark, answers = _answers(text)
    numbered = all(map(_NUMBERED_ANSWERS.fullmatch, text.counts))
    if mark and numbered and any(word.count(",") > 1 for word in text.counts):
        return kind("choices", f"{len(answers)} answers", mark=mark)
    decimal = _decimal_mark(text.counts)
    unread = _unread(text.counts, lambda words: read_numbers(words, decimal))
    nothing = all(word.strip().casefold() in _NOTHING for word in unread)
    few = len(unread) <= 3 and sum(unread.values()) <= (1 - _MOSTLY) * shown
    if len(unread) < n_levels and (nothing or few):
        doubtful = _doubtful_comma(text.counts) if decimal == "." else ""
        return kind("number", NUMBERS_AS_TEXT, False, tuple(unread), decimal, doubtful)
    others = _unread(text.counts, lambda words: words.str.strip_chars().str.find(_DATE_WORD))
    if sum(others.values()) <= (1 - _MOSTLY) * shown:
        return kind("date", "dates as text")
    if n_levels == 1 and text.n_missing and n_present >= _FEWEST_TICKS:
        return kind("tick", f"{next(iter(text.counts))!r} or blank")
    if mark:
        return kind("choices", f"{len(answers)} answers", mark=mark)
    if not text.is_full and n_levels <= FEW_VALUES and n_levels <= max(2, n_present // 2):
        return kind("category", _values(n_levels, "text"))
    if n_present >= FEWEST_ROWS and n_levels >= _MOSTLY * shown:
        return kind("identifier", f"{'' if n_levels == shown else 'nearly '}distinct text")
    many = f"more than {n_levels - 1}" if text.is_full else str(n_levels)
    return kind("text", f"text with {many} different values")


def split_answers(cell: str, mark: str) -> list[str]:
    """The answers in a cell."""
    return [answer for part in cell.split(mark) if (answer := part.strip())]


def _answers(text: TextFacts) -> tuple[str, set[str]]:
    """The mark and the answers of cells that list some of a few answers; no mark for others.

    There are fewer answers than lists of them. In "Rome, Italy" and "Lima, Peru" there are more
    parts than cells.
    """
    for mark in _MARKS:
        cells = [split_answers(cell, mark) for cell in text.counts]
        answers = {answer for cell in cells for answer in cell}
        once = all(len(set(cell)) == len(cell) for cell in cells)
        if once and len(answers) < min(len(cells), FEW_VALUES + 1):
            return mark, answers
    return "", set()


def _values(count: int, what: str) -> str:
    return f"{what} with one value" if count == 1 else f"{what} with {count} values"


def _kind_of_digits(text: TextFacts) -> tuple[Kind, str] | None:
    """Digits that are not numbers: codes with leading zeros, or too long for float64."""
    words = [word.strip() for word in text.counts if word.strip().casefold() not in _NOTHING]
    if not words or not all(word.isdecimal() and word.isascii() for word in words):
        return None
    has_zeros = any(len(word) > 1 and word.startswith("0") for word in words)
    if not has_zeros and max(map(len, words)) <= 15:  # digits that float64 holds
        return None
    few = len(words) <= FEW_VALUES
    if few and (has_zeros or len(words) <= sum(text.counts.values()) // 2):
        return "category", _values(len(words), "codes")
    if has_zeros:
        return "identifier", "digits with leading zeros: codes"
    return "identifier", "integers beyond those that float64 holds exactly"


def _unread(counts: Mapping[str, int], read: Callable[["pl.Series"], Any]) -> dict[str, int]:
    """The words that are null as they are read, and how often each occurs."""
    import polars as pl

    nulls = read(pl.Series([*counts], dtype=pl.String)).is_null()
    return {word: counts[word] for word, is_null in zip(counts, nulls, strict=True) if is_null}


def _decimal_mark(counts: Mapping[str, int]) -> str:
    """A comma if more words are numbers with it ("12,5"); in "1,234" it separates thousands."""
    return min(".,", key=lambda mark: len(_unread(counts, lambda words: read_numbers(words, mark))))


def _doubtful_comma(counts: Mapping[str, int]) -> str:
    """A word such as "1,234", if nothing in the column shows that the comma is not decimal."""
    with_comma = [word for word in counts if "," in word]
    all_alike = all(_ONE_COMMA.fullmatch(word.strip()) for word in with_comma)
    has_points = any("." in word for word in counts)
    return with_comma[0] if with_comma and all_alike and not has_points else ""


def read_numbers(words: "pl.Series", decimal: str = ".") -> "pl.Series":
    """The numbers that words spell: "$1,234.50" and "12 %" are numbers, "about 3" is null."""
    import polars as pl

    pattern = _NUMBER_WORD.replace("DECIMAL", decimal)
    pattern = pattern.replace("THOUSANDS", "," if decimal == "." else ".")
    trimmed = words.str.strip_chars()
    bare = trimmed.str.replace_all(f"[^0-9eE{decimal}+-]", "").str.replace(",", ".", literal=True)
    numbers = bare.cast(pl.Float64, strict=False)
    is_number = trimmed.str.contains(pattern) & numbers.is_finite()
    return pl.select(pl.when(is_number).then(numbers)).to_series()


def read_words(words: "pl.Series", kind: Kind, decimal: str = ".") -> "pl.Series":
    """Yes and no as 1 and 0, or numbers, or dates as seconds since 1970; others are null."""
    import polars as pl

    if kind == "boolean":
        folded = words.str.strip_chars().str.to_lowercase()
        return folded.replace_strict(_TRUTH, default=None, return_dtype=pl.Float64)
    numbers = read_numbers(words, decimal)
    if numbers.null_count() == words.null_count():
        return numbers
    return numbers.fill_null(words.map_elements(as_seconds, return_dtype=pl.Float64))


def as_seconds(word: str) -> float | None:
    """The seconds since 1970 of a date that is written with the year first."""
    if not _YEAR_FIRST.match(word.strip()):
        return None
    try:
        moment = datetime.fromisoformat(word.strip().replace("/", "-"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def count_gaps(facts: TableFacts, kinds: Mapping[str, ColumnKind]) -> tuple[dict[str, int], str]:
    """Missing values of the features that have any, and in how many rows: "12 of 90 rows"."""
    missing = dict(zip(facts.names, facts.n_missing.tolist(), strict=True))
    missing |= {name: text.n_missing for name, text in facts.texts.items()}
    for name, kind in kinds.items():
        missing[name] += sum(facts.texts[name].counts[word] for word in kind.words_as_gaps)
    can_miss = [n for n, kind in kinds.items() if kind.is_feature and kind.kind != "tick"]
    by_column = {name: missing[name] for name in can_miss if missing[name]}
    sample = facts.sample
    rows = have_gaps(sample.values[:, [name in by_column for name in facts.names]])
    if sample.frame is not None:
        for column in as_words(sample.frame):
            if column.name in by_column:
                is_gap = column.is_in(kinds[column.name].words_as_gaps).fill_null(True)
                rows |= is_gap.to_numpy()
    if len(rows) < facts.n_rows:
        return by_column, f"about {rows.mean():.0%} of {facts.n_rows:,} rows"
    return by_column, f"{rows.sum():,} of {facts.n_rows:,} rows"
