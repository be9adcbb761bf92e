"""What the columns of a table are: measurements, categories, dates, identifiers, free text.

A rule here decides what is set aside unless the user says otherwise, so each is narrow: a column
of measurements that is taken for an identifier is lost. Whole numbers that all differ are therefore
not enough (counts of a gene do in few samples, and sums rise from day to day): they must count the
rows, or be called an id.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import numpy as np

from keepers._protocols import BoolArray, FloatArray
from keepers.data.table import in_source_order
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, shorten
from keepers.preparation.facts import TableFacts, TextFacts, have_gaps

Kind = Literal[
    "number", "boolean", "category", "ordered", "date", "identifier", "text", "empty", "drop"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
SET_ASIDE: tuple[Kind, ...] = ("date", "identifier", "text", "empty", "drop")
"""Kinds that are no features."""

FEW_VALUES = 30
"""A text column with more different values is no category."""
FEWEST_ROWS = 10
"""Below this, values differ and rise by chance."""
_MANY_ROWS = 20
_MOSTLY = 0.95
_FEW_WORDS = 3
# Whole seconds from 2000 to 2035; of columns whose name speaks of time from 1980 to 2050.
_SECONDS = (946_684_800, 2_051_222_400)
_NAMED_SECONDS = (315_532_800, 2_524_608_000)
_FIRST_DIGITS, _LAST_DIGITS = 19_000_101, 21_001_231
"""Dates as digits, YYYYMMDD."""
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# The I of customerId stands behind a small letter, that of the gene BID does not.
_ID_NAME = re.compile(
    r"(?:^|[\W_]|(?-i:(?<=[a-z])(?=I)))(?:id|ids|uuid|guid|key|barcode)$|"
    r"^(?:(?:user|customer|client|order|item|product|patient|subject|sample|person|record)id|rowid|"
    r"row[ _]?number|rownames?|unnamed: ?0|index|instant|nr)$",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"(?:^|_)(?:zip|postal|post)[ _]?(?:code)?s?$", re.IGNORECASE)
_TIME_NAME = re.compile(r"time|date|stamp|epoch|(?:^|_)(?:ts|at|on)$", re.IGNORECASE)
_TRUE = frozenset({"true", "yes", "y", "t", "1"})
_FALSE = frozenset({"false", "no", "n", "f", "0"})
_NOTHING = frozenset({"?", "-", "--", ".", "*", "missing", "unknown", "n.a.", "na", "none", "nil"})
_NUMBER_WORD = re.compile(
    r"[$€£¥]?\s*(?P<sign>[+-]?)\s*[$€£¥]?\s*"
    r"(?P<body>[0-9]{1,3}(?:[,'\s][0-9]{3})+(?:\.[0-9]+)?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?:[eE][+-]?[0-9]+)?)\s*(?P<percent>%?)\s*[€£¥$]?"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE_WORD = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ]{_MONTH}[-, ]{{1,2}}(?:\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}})"
    r"(?:,?[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:[ap]m)?\s*(?:Z|UTC|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}")
_EXACT_DIGITS = 15
_LONGEST_WORD = 60
"""Longer cells are neither numbers nor dates; the patterns would take long to tell."""


@dataclass(frozen=True)
class ColumnKind:
    """What a column is, and why it was taken for that."""

    name: str
    kind: Kind
    why: str = ""
    """What tells, as a clause: "whole numbers that count the rows"."""
    asked: bool = False
    """Whether the user said so."""
    words_as_gaps: tuple[str, ...] = ()
    """Words among the numbers of a text column that stand for nothing."""

    @property
    def is_feature(self) -> bool:
        """Whether it can be selected."""
        return self.kind not in SET_ASIDE


def find_kinds(facts: TableFacts, asked: Mapping[str, Kind] | None = None) -> list[ColumnKind]:
    """The kinds of all columns, those of numbers first, then the others; ``asked`` overrules."""
    asked = asked or {}
    _refuse_unknown(asked, [*facts.feature_names, *facts.texts])
    kinds = number_kinds(facts)
    for name, text in facts.texts.items():
        kinds.append(text_kind(name, text, facts.n_rows))
    return [
        _as_asked(kind, asked[kind.name], facts) if kind.name in asked else kind for kind in kinds
    ]


def _refuse_unknown(asked: Mapping[str, Kind], known: Sequence[str]) -> None:
    absent = [name for name in asked if name not in known]
    if absent:
        told = ", ".join(shorten(name) for name in absent[:5])
        raise DataError(
            f"There is no column {told}.{closest(str(absent[0]), known)} The columns are "
            f"{some_of([repr(name) for name in known])}."
        )


def kinds_in_order(
    facts: TableFacts, asked: Mapping[str, Kind] | None = None
) -> dict[str, ColumnKind]:
    """The kinds of all columns by name, in the order of the source; ``asked`` overrules."""
    found = find_kinds(facts, asked)
    numbers = [kind for kind in found if kind.name not in facts.texts]
    others = [(facts.texts[k.name].position, k) for k in found if k.name in facts.texts]
    return {kind.name: kind for kind in in_source_order(numbers, others)}


def _as_asked(found: ColumnKind, kind: Kind, facts: TableFacts) -> ColumnKind:
    words: tuple[str, ...] = ()
    counts = facts.texts[found.name].counts if found.name in facts.texts else {}
    if kind == "number":
        words = tuple(w for w in counts if as_number(w) is None and as_seconds(w) is None)
    elif kind == "boolean":
        words = tuple(w for w in counts if math.isnan(as_truth(w)))
    return ColumnKind(found.name, kind, "as asked for", asked=True, words_as_gaps=words)


def number_kinds(facts: TableFacts) -> list[ColumnKind]:
    """The kinds of the columns that hold numbers."""
    empty = facts.n_missing == facts.n_rows
    suspicious = _may_be_no_numbers(facts)
    kinds: list[ColumnKind] = []
    for at, name in enumerate(facts.feature_names):
        if empty[at]:
            kinds.append(ColumnKind(name, "empty", "no values"))
        elif suspicious[at]:
            kinds.append(_kind_of_whole(facts, at, facts.sample[:, at]))
        else:
            kinds.append(ColumnKind(name, "number"))
    return kinds


def _may_be_no_numbers(facts: TableFacts) -> BoolArray:
    """Which columns are worth a look: few, also of 20,000 counts."""
    n = facts.n_rows
    if n < FEWEST_ROWS or not isinstance(facts.sample, np.ndarray):
        return np.zeros(len(facts.feature_names), dtype=bool)
    varies = facts.maximum > facts.minimum
    in_order = facts.rising | facts.falling
    span = np.where(varies, facts.maximum - facts.minimum, 0.0)
    numbers_rows = (span >= n - 1) & (span < 1.05 * n)
    suspicious = varies & facts.whole & (numbers_rows | (facts.minimum >= _FIRST_DIGITS))
    for at in np.flatnonzero(varies & ~suspicious).tolist():
        name = facts.feature_names[at]
        if facts.whole[at]:
            suspicious[at] = bool(_ID_NAME.search(name) or _CODE_NAME.search(name))
        elif facts.minimum[at] >= _NAMED_SECONDS[0]:  # a moment may have fractions
            suspicious[at] = bool(_TIME_NAME.search(name))
    return np.asarray(suspicious | (in_order & varies))


def _kind_of_whole(facts: TableFacts, at: int, values: FloatArray) -> ColumnKind:
    """The kind of a column of whole numbers, or of any that rise or fall from row to row."""
    name, n_rows = facts.feature_names[at], facts.n_rows
    low, high = float(facts.minimum[at]), float(facts.maximum[at])
    in_order = bool(facts.rising[at] or facts.falling[at])
    why = _time_unit(name, values, low, high)
    if why is not None:
        return ColumnKind(name, "date", why)
    present = values[np.isfinite(values)]
    if bool(np.any(np.rint(present) != present)):  # in order, but not whole
        steps = np.diff(present)
        even = in_order and len(present) == n_rows and np.ptp(steps) <= 1e-6 * np.abs(steps).max()
        why = "it counts the rows in even steps"
        return ColumnKind(name, "identifier", why) if even else ColumnKind(name, "number")
    n_distinct = len(np.unique(present))
    all_differ = n_distinct == len(present) == len(values)
    is_named = _ID_NAME.search(name) is not None
    dense = high - low < 2 * n_rows and n_rows >= _MANY_ROWS
    if all_differ and in_order and (is_named or dense or _steps_evenly(values)):
        return ColumnKind(
            name, "identifier", f"distinct integers in order, {low:.0f} to {high:.0f}"
        )
    if all_differ and n_rows >= _MANY_ROWS and _numbers_rows(facts, at):
        why = f"distinct integers, {low:.0f} to {high:.0f}, for {n_rows} rows"
        return ColumnKind(name, "identifier", why)
    if is_named and n_distinct >= max(FEWEST_ROWS, 0.5 * len(present)):
        many = "distinct" if all_differ else f"{n_distinct} different"
        return ColumnKind(name, "identifier", f"{many} integers, and its name says so")
    if _CODE_NAME.search(name) and n_distinct >= FEWEST_ROWS:
        return ColumnKind(name, "identifier", "codes, as its name says")
    return ColumnKind(name, "number")


def _steps_evenly(values: FloatArray) -> bool:
    steps = np.diff(values)
    return bool(np.all(steps == steps[0]))


def _numbers_rows(facts: TableFacts, at: int) -> bool:
    """Whether a column whose drawn values differ numbers all rows, in any order."""
    low, high, n = float(facts.minimum[at]), float(facts.maximum[at]), facts.n_rows
    if len(facts.sample_rows) == n:
        return high - low < 1.05 * n
    # Of many rows few are drawn, and differ by chance: 1, 2, ..., n have one mean and variance.
    return (
        high - low == n - 1
        and math.isclose(facts.means[at], (low + high) / 2, rel_tol=1e-9)
        and math.isclose(facts.variances[at], (n**2 - 1) / 12, rel_tol=1e-9)
    )


def _time_unit(name: str, values: FloatArray, low: float, high: float) -> str | None:
    """Why numbers are moments: seconds since 1970 in some unit, or digits of dates."""
    first, last = _NAMED_SECONDS if _TIME_NAME.search(name) else _SECONDS
    for unit, factor in _UNITS.items():
        if first * factor <= low and high <= last * factor:
            days = (np.datetime64(int(edge / factor), "s").astype("M8[D]") for edge in (low, high))
            return f"Unix time in {unit}, {' to '.join(str(day) for day in days)}"
    if low >= _FIRST_DIGITS and high <= _LAST_DIGITS:
        present = values[np.isfinite(values)]
        digits = present.astype(np.int64)
        month, day = digits // 100 % 100, digits % 100
        if bool(
            np.all((digits == present) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))
        ):
            return "dates written as digits, YYYYMMDD"
    return None


def text_kind(name: str, text: TextFacts, n_rows: int) -> ColumnKind:
    """The kind of a column that holds text or dates."""
    n_present = n_rows - text.n_missing
    n_levels = len(text.counts)
    if n_present == 0:
        return ColumnKind(name, "empty", "no values")
    if text.kind == "date":
        return ColumnKind(name, "date", "dates")
    if text.kind == "ordered":
        return ColumnKind(name, "ordered", f"{len(text.levels)} ordered values")
    shown = sum(text.counts.values())
    folded = {word.strip().casefold() for word in text.counts}
    if folded <= _TRUE | _FALSE and folded & _TRUE and folded & _FALSE:
        return ColumnKind(name, "boolean", f"{' or '.join(sorted(text.counts))}")
    digits = _kind_of_digits(name, text)
    if digits is not None:
        return digits
    words = {word: count for word, count in text.counts.items() if as_number(word) is None}
    nothing = all(word.strip().casefold() in _NOTHING for word in words)
    few_words = len(words) <= _FEW_WORDS and sum(words.values()) <= (1 - _MOSTLY) * shown
    if len(words) < n_levels and (nothing or few_words):
        return ColumnKind(name, "number", "numbers as text", words_as_gaps=tuple(words))
    dates = sum(n for word, n in text.counts.items() if _spells_date(word))
    if dates >= _MOSTLY * shown:
        return ColumnKind(name, "date", "dates as text")
    many = f"more than {n_levels - 1}" if text.is_full else str(n_levels)
    if not text.is_full and n_levels <= FEW_VALUES and n_levels <= max(2, n_present // 2):
        why = f"text with {n_levels} values" if n_levels > 1 else "text with one value"
        return ColumnKind(name, "category", why)
    if n_present >= FEWEST_ROWS and n_levels >= _MOSTLY * shown:
        nearly = "" if n_levels == shown else "nearly "
        return ColumnKind(name, "identifier", f"{nearly}distinct text")
    return ColumnKind(name, "text", f"text with {many} different values")


def _kind_of_digits(name: str, text: TextFacts) -> ColumnKind | None:
    """Digits that are no numbers: too long for float64, or with zeros in front as codes have."""
    words = [word.strip() for word in text.counts]
    if not all(word.isdecimal() and word.isascii() for word in words):
        return None
    if any(len(word) > 1 and word.startswith("0") for word in words):
        if len(words) <= FEW_VALUES:
            return ColumnKind(name, "category", f"codes with {len(words)} values")
        return ColumnKind(name, "identifier", "digits with zeros in front: codes")
    if max(map(len, words)) <= _EXACT_DIGITS or len(words) < FEWEST_ROWS:
        return None
    numbers = np.array([float(word) for word in words])
    why = _time_unit(name, numbers, float(numbers.min()), float(numbers.max()))
    if why is not None:
        return ColumnKind(name, "date", why)
    return ColumnKind(name, "identifier", "integers beyond those that float64 holds exactly")


def _spells_date(word: str) -> bool:
    return len(word) <= _LONGEST_WORD and _DATE_WORD.fullmatch(word.strip()) is not None


def as_number(word: str) -> float | None:
    """The number that a word spells: thousands separators, currency signs and per cent allowed.

    Examples
    --------
    >>> as_number("$1,234.50"), as_number("12 %"), as_number("about 3")
    (1234.5, 12.0, None)
    """
    match = _NUMBER_WORD.fullmatch(word.strip()) if len(word) <= _LONGEST_WORD else None
    if match is None:
        return None
    number = float(re.sub(r"[,'\s]", "", match["body"]))
    if math.isinf(number):
        return None
    return -number if match["sign"] == "-" else number


def as_truth(word: str) -> float:
    """1 for words that mean yes, 0 for those that mean no, NaN for others."""
    folded = word.strip().casefold()
    return 1.0 if folded in _TRUE else 0.0 if folded in _FALSE else math.nan


def as_seconds(word: str) -> float | None:
    """The moment that a date with the year first spells, in seconds since 1970.

    Examples
    --------
    >>> as_seconds("1970-01-02 00:00:01"), as_seconds("2/1/1970")
    (86401.0, None)
    """
    if not _YEAR_FIRST.match(word.strip()) or len(word) > _LONGEST_WORD:
        return None
    try:
        moment = datetime.fromisoformat(word.strip().replace("/", "-"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True)
class GapCounts:
    """Gaps among the features of a table."""

    by_column: Mapping[str, int]
    """Of the columns that have any, in the order of the kinds."""
    n_rows: int | None
    """Rows with a gap; None where one pass could not tell."""


def count_gaps(facts: TableFacts, kinds: Sequence[ColumnKind]) -> GapCounts:
    """Count gaps, and words that stand for nothing, in columns that are features."""
    missing = dict(zip(facts.feature_names, facts.n_missing.tolist(), strict=True))
    missing.update({name: text.n_missing for name, text in facts.texts.items()})
    counts = {}
    for kind in kinds:
        if kind.is_feature:
            words = kind.words_as_gaps
            unread = sum(facts.texts[kind.name].counts[word] for word in words)
            counts[kind.name] = missing[kind.name] + unread
    by_column = {name: count for name, count in counts.items() if count}
    elsewhere = any(missing[kind.name] for kind in kinds if not kind.is_feature)
    if not elsewhere and not any(kind.words_as_gaps for kind in kinds):
        return GapCounts(by_column, facts.n_rows_with_gaps)
    if len(facts.sample_rows) < facts.n_rows:
        return GapCounts(by_column, None)
    words_of = {kind.name: set(kind.words_as_gaps) for kind in kinds}
    places = [at for at, name in enumerate(facts.feature_names) if name in by_column]
    rows = have_gaps(facts.sample[:, places])
    for column in facts.sample_others:
        if column.name in by_column:
            rows |= column.missing
            rows |= np.array([word in words_of[column.name] for word in column.values], dtype=bool)
    return GapCounts(by_column, int(rows.sum()))
