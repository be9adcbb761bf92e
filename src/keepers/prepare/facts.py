"""Counts, extremes, sums and a sample of rows, found in one pass over a table or its blocks.

Counts, sums and extremes cover all rows. What needs the values themselves, such as the number of
different ones, comes from at most 2,000 rows, drawn as in `linalg.reservoir`: the same rows from a
table in memory and from blocks of any size.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.exceptions import DataError, shorten
from keepers.linalg.ordering import row_keys
from keepers.linalg.scatter import as_array
from keepers.tables.scans import FileScan, MemoryScan
from keepers.tables.table import GAP_WORDS, LARGEST_EXACT_INTEGER, Table, stack_tables

if TYPE_CHECKING:
    import polars as pl

Source = FileScan | Table

MOST_ROWS = 2000
MOST_LEVELS = 1000
"""Different values of a text column that are counted."""
SEED = 0
_CHUNK_BYTES = 2**22


class RowSample:
    """At most ``n_rows`` rows with their text, names and labels: those with the smallest keys."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self._n_seen, self._largest = 0, np.uint64(2**64 - 1)
        self._pieces: list[Table] = []
        self._numbers: IndexArray = np.empty(0, dtype=np.intp)

    def add(self, table: Table) -> None:
        """Add the next rows."""
        start, count = self._n_seen, table.n_samples
        self._n_seen += count
        keys = row_keys(np.arange(start, start + count, dtype=np.intp), SEED)
        new = np.flatnonzero(keys <= self._largest)
        new = np.sort(new[np.argsort(keys[new])[: self.n_rows]])
        if len(new):
            self._pieces.append(table if len(new) == count else table.take(new))
            self._numbers = np.concatenate([self._numbers, new + start])
        if len(self._numbers) > 2 * self.n_rows:
            self.drawn()

    def drawn(self) -> tuple[Table, IndexArray]:
        """The drawn rows in their order, and their numbers in the table, from 0."""
        keys = row_keys(self._numbers, SEED)
        kept = np.sort(np.argsort(keys)[: self.n_rows])
        if len(self._pieces) > 1 or len(kept) < len(keys):
            self._pieces = [stack_tables(self._pieces).take(kept)]
            self._numbers = self._numbers[kept]
            self._largest = keys[kept].max() if len(kept) == self.n_rows else self._largest
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
        """Add the next rows; nulls are gaps."""
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
        self.n_rows = self.n_zero_rows = 0
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
        # Sums of differences from the first value of a column: their squares lose no digits.
        self._pivot: FloatArray = np.full(d, np.nan)
        self._sum, self._squares = np.zeros(d), np.zeros(d)

    @classmethod
    def of(
        cls,
        source: Source,
        kinds: Mapping[str, str] | None = None,
        watch: Callable[[int], None] = lambda n_rows: None,
    ) -> "TableFacts":
        """The facts of one pass over a table; ``kinds`` are those that the user chose.

        ``watch`` gets the number of rows read so far.
        """
        coded = [name for name, kind in (kinds or {}).items() if kind in ("category", "choices")]
        facts = cls(source.name, coded)
        for table in as_scan(source).tables():
            facts.add(table)
            watch(facts.n_rows)
        return facts

    def add(self, table: Table) -> None:
        """Add the next rows."""
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
            words = as_words(table.frame)
            for column, dtype in zip(words, table.frame.dtypes, strict=True):
                self.texts.setdefault(column.name, TextFacts(dtype)).add(column)
        self.n_rows += table.n_samples

    def _add_dense(self, X: FloatArray) -> None:
        n_missing = np.isnan(X).sum(axis=0)
        absent = ~np.isfinite(X)
        self.n_missing += n_missing
        self.n_infinite += absent.sum(axis=0) - n_missing
        self.n_zero_rows += int(np.sum(~X.any(axis=1)))
        X = np.where(absent, np.nan, X) if absent.any() else X
        self.minimum = np.fmin(self.minimum, np.fmin.reduce(X, axis=0))
        self.maximum = np.fmax(self.maximum, np.fmax.reduce(X, axis=0))
        if self.whole.any():
            self.whole &= np.all((np.rint(X) == X) | absent, axis=0)
        if len(new := np.flatnonzero(np.isnan(self._pivot))):
            self._pivot[new] = X[np.argmin(absent[:, new], axis=0), new]  # NaN if all are absent
        with np.errstate(over="ignore", invalid="ignore"):
            shifted = X - self._pivot
            shifted[absent] = 0.0
            self._sum += shifted.sum(axis=0)
            self._squares += np.einsum("ij,ij->j", shifted, shifted)

    def _add_sparse(self, X: Any) -> None:
        """The same for a CSR matrix, which is not made dense."""
        n_rows, d = X.shape
        X = X.astype(np.float64)  # a copy
        self.n_missing += np.bincount(X.indices[np.isnan(X.data)], minlength=d)
        self.n_infinite += np.bincount(X.indices[np.isinf(X.data)], minlength=d)
        self.n_zero_rows += int(np.sum((X != 0).sum(axis=1) == 0))
        X.data[~np.isfinite(X.data)] = np.nan
        self.minimum = np.fmin(self.minimum, X.nanmin(axis=0).toarray().ravel())
        self.maximum = np.fmax(self.maximum, X.nanmax(axis=0).toarray().ravel())
        stored = ~np.isnan(X.data)
        columns, values = X.indices[stored], X.data[stored]
        self.whole[columns[np.rint(values) != values]] = False
        if np.isnan(self._pivot).any():
            self._pivot = np.nan_to_num(X[[0]].toarray().ravel())
        n_absent = n_rows - np.bincount(X.indices, minlength=d)  # these are 0
        with np.errstate(over="ignore", invalid="ignore"):
            shifted = values - self._pivot[columns]
            self._sum += np.bincount(columns, shifted, minlength=d) - n_absent * self._pivot
            self._squares += np.bincount(columns, shifted**2, minlength=d)
            self._squares += n_absent * self._pivot**2

    @property
    def sample(self) -> Table:
        """The drawn rows in their order."""
        sample = self._sample.drawn()[0]
        return sample if sample.name == self.name else replace(sample, name=self.name)

    @property
    def sample_rows(self) -> IndexArray:
        """Numbers of the drawn rows in the table, from 0."""
        return self._sample.drawn()[1]

    @property
    def _n_finite(self) -> IndexArray:
        return np.maximum(self.n_rows - self.n_missing - self.n_infinite, 1)

    @property
    def means(self) -> FloatArray:
        """Means of the finite values; 0 for empty columns."""
        return np.where(np.isnan(self._pivot), 0.0, self._pivot) + self._sum / self._n_finite

    @property
    def variances(self) -> FloatArray:
        """Variances of the finite values (divided by their number)."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._squares / self._n_finite
            return np.maximum(squares - (self._sum / self._n_finite) ** 2, 0.0)


def draw_table(source: Source, n_rows: int) -> Table:
    """At most ``n_rows`` rows of a table in blocks, drawn at random in one pass."""
    sample = RowSample(n_rows)
    for table in as_scan(source).tables():
        sample.add(table)
    return replace(sample.drawn()[0], name=source.name)


def standardise(X: FloatArray, most: int = 2000) -> FloatArray:
    """Columns with mean 0 and variance 1, gaps at the mean; without constant columns.

    Of more than ``most`` columns, evenly spaced ones.
    """
    if X.shape[1] > most:
        X = X[:, np.linspace(0, X.shape[1] - 1, most).astype(np.intp)]
    largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    X = X[:, largest > 0.0] / largest[largest > 0.0]  # squares of huge values would overflow
    deviations = np.nanstd(X, axis=0)
    X = X[:, deviations > 1e-12]
    return np.nan_to_num((X - np.nanmean(X, axis=0)) / deviations[deviations > 1e-12])


def leading_components(centred: FloatArray, most: int) -> FloatArray:
    """Scores of the rows on the first principal components."""
    n, d = centred.shape
    gram = centred @ centred.T if n <= d else centred.T @ centred
    values, vectors = eigh(gram, subset_by_index=[max(len(gram) - most, 0), len(gram) - 1])
    if n > d:
        return np.asarray(centred @ vectors)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def as_scan(source: Source) -> FileScan:
    """A table in memory as blocks of rows; blocks as they are."""
    return MemoryScan(source) if isinstance(source, Table) else source


def as_words(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Columns of text and categories as text; words such as NA become null."""
    import polars as pl

    text = [name for name, dtype in frame.schema.items() if not dtype.is_temporal()]
    words = pl.col(text).cast(pl.String)
    is_gap = words.str.strip_chars().is_in(GAP_WORDS)
    return frame.with_columns(pl.when(~is_gap).then(words)) if text else frame


def number_word(value: float) -> str:
    """A number as people write it: 1 for 1.0, and 0.1 whether it was float32 or float64."""
    if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
        return str(int(value))
    with np.errstate(over="ignore"):
        short = np.float32(value)
    return str(short) if float(short) == value else repr(value)


def have_gaps(X: Any) -> BoolArray:
    """Rows with a gap, as a mask."""
    return np.asarray((X != X).sum(axis=1)).ravel() > 0  # only NaN differs from itself
