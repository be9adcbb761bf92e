"""Types of columns: number, category, date, identifier, free text.

One pass over a table, or over its blocks, finds facts about its columns; rules turn them into
kinds. Counts and extremes cover all rows. What needs the values themselves, such as the number of
different ones, comes from at most 2,000 rows, drawn as in `linalg.ordering`: the same
rows from a table in memory and from blocks of any size.

The rules decide which columns are not used, unless the user overrides them. Each rule is narrow: a
measurement that is taken for an identifier is lost. Distinct whole numbers are not enough (gene
counts in few samples are distinct, and totals rise from day to day): they must number the rows, or
the name of the column must call them an id.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.ordering import row_keys, smallest_keys
from keepers.linalg.scatter import as_array
from keepers.tables.scans import FileScan
from keepers.tables.table import (
    GAP_WORDS,
    LARGEST_EXACT_INTEGER,
    Table,
    refuse_absent,
    stack_tables,
)

if TYPE_CHECKING:
    import polars as pl

Source = FileScan | Table

MOST_ROWS = 2000
MOST_LEVELS = 1000
"""Different values of a text column that are counted."""
SEED = 0
_CHUNK_BYTES = 2**22

Kind = str
KINDS = (
    *("number", "boolean", "tick", "category", "choices", "ordered"),
    *("date", "identifier", "text", "empty", "drop"),
)
NOT_USED = ("date", "identifier", "text", "empty", "drop")
Missing = Literal["error", "keep", "mean", "median", "model"]
MISSING: tuple[Missing, ...] = get_args(Missing)
NUMBERS_AS_TEXT, DURATIONS = "numbers as text", "durations in seconds"
AS_SET = "as you set"

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


class RowSample:
    """At most ``n_rows`` rows with their text, names and labels: those with the smallest keys."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self._n_seen = n_rows, 0
        self._pieces: list[Table] = []
        self._numbers: IndexArray = np.empty(0, dtype=np.intp)

    def add(self, table: Table) -> None:
        numbers = np.arange(self._n_seen, self._n_seen + table.n_samples)
        self._n_seen += len(numbers)
        new = smallest_keys(row_keys(numbers, SEED), self.n_rows)
        self._pieces.append(table if len(new) == len(numbers) else table.take(new))
        self._numbers = np.concatenate([self._numbers, numbers[new]])
        if len(self._numbers) > 2 * self.n_rows:
            self.drawn()

    def drawn(self) -> tuple[Table, IndexArray]:
        """The drawn rows in their order, and their numbers in the table, from 0."""
        kept = smallest_keys(row_keys(self._numbers, SEED), self.n_rows)
        if len(self._pieces) > 1:
            self._pieces = [stack_tables(self._pieces).take(kept)]
            self._numbers = self._numbers[kept]
        return self._pieces[0], self._numbers


class TextFacts:
    """Values of a column of text and how often each occurs."""

    def __init__(self, dtype: "pl.DataType") -> None:
        self.dtype = dtype
        is_enum = str(dtype).startswith("Enum")
        self.levels = tuple(getattr(dtype, "categories", ())) if is_enum else ()
        """Values of an ordered category, lowest first."""
        self.n_missing = 0
        self.counts: dict[str, int] = {}
        self.is_full = False
        """True if there are more different values than are counted."""

    def add(self, column: "pl.Series") -> None:
        self.n_missing += column.null_count()
        if self.dtype.is_temporal() or self.is_full:
            return
        words = column.drop_nulls()
        new = (words.is_first_distinct() & ~words.is_in([*self.counts])).arg_true()
        spare = MOST_LEVELS - len(self.counts)
        if len(new) > spare:
            # Stop at the word that is one too many: the same one, however rows are divided.
            words, self.is_full = words.head(int(new[spare]) + 1), True
        for word, count in words.alias("word").value_counts(name="n").iter_rows():
            self.counts[word] = self.counts.get(word, 0) + count
        self.counts = dict(sorted(self.counts.items()))


class TableFacts:
    """Facts about the columns of a table; add all rows before reading any of them.

    Arrays have an entry for each column of numbers, in the order of ``names``. Except for counts,
    they are about finite values only. The table is called ``name``, or as the first part added.
    """

    def __init__(self, name: str | None = None, categories: Collection[str] = ()) -> None:
        self._name = name
        self.codes: dict[str, set[float]] = {each: set() for each in categories}
        """Different values of the columns of numbers that are ``categories``; if there are more
        than `MOST_LEVELS`, some of them."""
        self.n_rows = 0
        self.texts: dict[str, TextFacts] = {}
        self._sample = RowSample(MOST_ROWS)

    def _begin(self, table: Table) -> None:
        self.names = [str(name) for name in table.names]
        self.columns = list(dict.fromkeys([*table.columns, *table.others]))
        """All columns in the order of the source."""
        self.name = self._name or table.name
        self.truths = {name for name, dtype in table.types.items() if str(dtype) == "Boolean"}
        """Columns of numbers that were stored as true and false."""
        d = len(self.names)
        self.n_missing, self.n_infinite = np.zeros(d, dtype=np.intp), np.zeros(d, dtype=np.intp)
        self.minimum, self.maximum = np.full(d, np.inf), np.full(d, -np.inf)
        self.whole = np.ones(d, dtype=bool)

    @classmethod
    def of(cls, source: Source, kinds: Mapping[str, str] | None = None) -> "TableFacts":
        """The facts of one pass over a table; ``kinds`` are those that the user chose."""
        coded = [name for name, kind in (kinds or {}).items() if kind in ("category", "choices")]
        facts = cls(source.name, coded)
        for table in source.tables():
            facts.add(table)
        return facts

    def add(self, table: Table) -> None:
        if not self.n_rows:
            self._begin(table)
        elif [*table.names] != self.names or table.others != [*self.texts]:
            raise DataError(
                f"All blocks must have the same columns of numbers and of text; "
                f"{shorten(table.name)} differs from those before it. Write it again like them."
            )
        self._sample.add(table)
        X = table.values
        for name in self.codes.keys() & set(self.names):
            if len(self.codes[name]) <= MOST_LEVELS:
                values = as_array(X[:, [self.names.index(name)]]).astype(np.float64)
                self.codes[name].update(np.unique(values[~np.isnan(values)]).tolist())
        if table.is_sparse:
            self._add_sparse(X)
        else:
            step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
            for at in range(0, X.shape[0], step):
                self._add_dense(np.asarray(X[at : at + step], dtype=np.float64))
        if table.frame is not None and table.others:
            for column in table.frame:
                text = self.texts.setdefault(column.name, TextFacts(column.dtype))
                text.add(as_words(column))
        self.n_rows += table.n_samples

    def _add_dense(self, X: FloatArray) -> None:
        n_missing = np.isnan(X).sum(axis=0)
        absent = ~np.isfinite(X)
        self.n_missing += n_missing
        self.n_infinite += absent.sum(axis=0) - n_missing
        X = np.where(absent, np.nan, X) if absent.any() else X
        self.minimum = np.fmin(self.minimum, np.fmin.reduce(X, axis=0))
        self.maximum = np.fmax(self.maximum, np.fmax.reduce(X, axis=0))
        if self.whole.any():
            self.whole &= np.all((np.rint(X) == X) | absent, axis=0)

    def _add_sparse(self, X: Any) -> None:
        """The same for a CSR matrix, which is not made dense."""
        d = X.shape[1]
        X = X.astype(np.float64)  # a copy
        self.n_missing += np.bincount(X.indices[np.isnan(X.data)], minlength=d)
        self.n_infinite += np.bincount(X.indices[np.isinf(X.data)], minlength=d)
        X.data[~np.isfinite(X.data)] = np.nan
        self.minimum = np.fmin(self.minimum, X.nanmin(axis=0).toarray().ravel())
        self.maximum = np.fmax(self.maximum, X.nanmax(axis=0).toarray().ravel())
        self.whole[X.indices[np.abs(np.rint(X.data) - X.data) > 0.0]] = False

    @property
    def sample(self) -> Table:
        sample = self._sample.drawn()[0]
        return sample if sample.name == self.name else replace(sample, name=self.name)

    @property
    def sample_rows(self) -> IndexArray:
        """Numbers of the drawn rows in the table, from 0."""
        return self._sample.drawn()[1]


def draw_table(source: Source, n_rows: int) -> Table:
    sample = RowSample(n_rows)
    for table in source.tables():
        sample.add(table)
    return replace(sample.drawn()[0], name=source.name)


def as_words(column: "pl.Series") -> "pl.Series":
    """Text and categories as text, words such as NA as null; dates and times as they are."""
    if column.dtype.is_temporal():
        return column
    words = column.cast(str)
    return words.set(words.str.strip_chars().is_in(GAP_WORDS), None)


def number_word(value: float) -> str:
    """A number as people write it: 1 for 1.0, and 0.1 whether it was float32 or float64."""
    if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
        return str(int(value))
    with np.errstate(over="ignore"):
        short = np.float32(value)
    return str(short) if float(short) == value else repr(value)


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column, and the reason for it."""

    name: str
    kind: Kind
    why: str = ""
    """The reason, as a phrase: "text with 3 values"."""
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
    found = ColumnKind(name, kind, AS_SET)
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
    # A few drawn rows of many differ by chance.
    known = len(values) == n_rows or high - low == n_rows - 1
    if all_differ and numbers_rows and known:
        return "identifier", f"distinct integers, {low:.0f} to {high:.0f}, for {n_rows} rows"
    if is_named and n_distinct >= max(FEWEST_ROWS, 0.5 * len(present)):
        many = "distinct" if all_differ else f"{n_distinct} different"
        return "identifier", f"{many} integers, and an identifier by name"
    if is_code and n_distinct >= FEWEST_ROWS:
        return "identifier", "codes by name"
    return "number", ""


def _time_unit(name: str, values: FloatArray, low: float, high: float) -> str | None:
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
        return kind("number", NUMBERS_AS_TEXT, tuple(unread), decimal, doubtful)
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


def count_gaps(facts: TableFacts, kinds: Mapping[str, ColumnKind]) -> dict[str, int]:
    """Missing values of the features that have any."""
    missing = dict(zip(facts.names, facts.n_missing.tolist(), strict=True))
    missing |= {name: text.n_missing for name, text in facts.texts.items()}
    for name, kind in kinds.items():
        missing[name] += sum(facts.texts[name].counts[word] for word in kind.words_as_gaps)
    can_miss = [n for n, kind in kinds.items() if kind.is_feature and kind.kind != "tick"]
    return {name: missing[name] for name in can_miss if missing[name]}
