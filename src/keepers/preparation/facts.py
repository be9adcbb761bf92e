"""What one pass over the rows of a table tells of its columns, in memory or in blocks.

Sums and extremes are of all rows. What needs the values themselves, such as how many differ, is
told by at most 2,000 rows that are drawn as everywhere in keepers (`linalg.reservoir`): the same
ones from a table in memory and from blocks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.data.columns import OtherColumn
from keepers.data.table import LabelledTable
from keepers.preparation.row_sample import RowSample

MOST_ROWS = 2000
MOST_LEVELS = 1000
"""Different values of a text column that are counted; more are "many"."""
_WORDS_AT_ONCE = 1000
_CHUNK_BYTES = 2**22


class TextFacts:
    """What is known of a column of text: its values and how often each occurs, up to a limit."""

    def __init__(self, column: OtherColumn) -> None:
        self.kind = column.kind
        self.levels = column.levels
        self.position = column.position
        self.n_missing = 0
        self.counts: Counter[str] = Counter()
        self.is_full = False
        """Whether there are more different values than are counted."""

    def add(self, column: OtherColumn) -> None:
        """Take further rows in."""
        missing = column.missing
        self.n_missing += int(missing.sum())
        if self.kind == "date" or self.is_full:
            return
        words = column.values[~missing].tolist()
        for at in range(0, len(words), _WORDS_AT_ONCE):
            some = words[at : at + _WORDS_AT_ONCE]
            if len(self.counts.keys() | set(some)) > MOST_LEVELS:
                self._fill_up(some)
                return
            self.counts.update(some)

    def _fill_up(self, words: Iterable[str]) -> None:
        """Count up to the word that is one too many: the same one, however rows are divided."""
        for word in words:
            self.counts[word] += 1
            if len(self.counts) > MOST_LEVELS:
                break
        self.is_full = True


class TableFacts:
    """Counts, extremes, sums and a sample of the rows of a table.

    Parameters
    ----------
    feature_names : sequence of str
        Names of the columns of numbers.
    """

    def __init__(self, feature_names: Sequence[str]) -> None:
        self.feature_names = [str(name) for name in feature_names]
        d = len(self.feature_names)
        self.n_rows = 0
        self.n_missing: IndexArray = np.zeros(d, dtype=np.intp)
        self.n_infinite: IndexArray = np.zeros(d, dtype=np.intp)
        self.n_zero_rows = 0
        """Rows all of whose numbers are zero."""
        self.n_rows_with_gaps = 0
        """Rows with a gap in any column, of numbers or beside them."""
        # Of the finite values, as everything below.
        self.minimum: FloatArray = np.full(d, np.inf)
        self.maximum: FloatArray = np.full(d, -np.inf)
        self.whole: BoolArray = np.ones(d, dtype=bool)
        """Columns that hold whole numbers only, gaps apart."""
        self.rising: BoolArray = np.ones(d, dtype=bool)
        self.falling: BoolArray = np.ones(d, dtype=bool)
        self.texts: dict[str, TextFacts] = {}
        # Sums are of differences from the first value of a column: squares then lose no digits.
        self._pivot: FloatArray = np.full(d, np.nan)
        self._sum: FloatArray = np.zeros(d)
        self._squares: FloatArray = np.zeros(d)
        self._last: FloatArray | None = None
        self.drawn = RowSample(MOST_ROWS)

    @classmethod
    def of(cls, table: LabelledTable) -> "TableFacts":
        """The facts of a table in memory."""
        facts = cls(list(table.feature_names))
        facts.add(table.X, table.others)
        return facts

    def add(self, X: Any, others: Sequence[OtherColumn] = (), *beside: Any) -> None:
        """Take consecutive rows in: an array or CSR matrix, and the columns beside it.

        ``beside`` are labels and sample names, which go with the drawn rows.
        """
        count = X.shape[0]
        if not count:
            return
        self.drawn.add(X, others, *beside)
        if sp.issparse(X):
            self._add_sparse(X)
        else:
            step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
            for at in range(0, count, step):
                self._add_dense(np.asarray(X[at : at + step], dtype=np.float64))
        self.n_rows += count
        for column in others:
            self.texts.setdefault(column.name, TextFacts(column)).add(column)
        # A row without a gap among the numbers may have one beside them.
        if others:
            lacking = np.any([column.missing for column in others], axis=0)
            self.n_rows_with_gaps += int(np.sum(lacking & ~have_gaps(X)))

    def _add_dense(self, X: FloatArray) -> None:
        missing = np.isnan(X)
        has_gaps = bool(missing.any())
        if has_gaps:
            self.n_missing += missing.sum(axis=0)
            self.n_rows_with_gaps += int(missing.any(axis=1).sum())
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        if X.shape[1] and bool(np.all((low <= 0.0) | np.isnan(low))):
            self.n_zero_rows += int(np.sum(~X.any(axis=1)))
        if bool(np.any(np.isinf(low) | np.isinf(high))):
            infinite = np.isinf(X)
            self.n_infinite += infinite.sum(axis=0)
            X = np.where(infinite, np.nan, X)
            missing, has_gaps = np.isnan(X), True
            low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        self.minimum, self.maximum = np.fmin(self.minimum, low), np.fmax(self.maximum, high)
        if self.whole.any():
            with np.errstate(invalid="ignore"):
                self.whole &= np.all((np.rint(X) == X) | missing, axis=0)
        self._follow_order(X)
        new = np.flatnonzero(np.isnan(self._pivot))
        if len(new):
            at = np.argmin(missing[:, new], axis=0)
            self._pivot[new] = X[at, new]  # NaN still where all are missing
        with np.errstate(over="ignore", invalid="ignore"):
            shifted = X - self._pivot
            if has_gaps:
                shifted[missing] = 0.0
            self._sum += shifted.sum(axis=0)
            self._squares += np.einsum("ij,ij->j", shifted, shifted)

    def _follow_order(self, X: FloatArray) -> None:
        """Whether columns still rise, or fall, from row to row."""
        if not (self.rising.any() or self.falling.any()):
            return
        before = X if self._last is None else np.concatenate([self._last[None], X])
        self._last = X[-1].copy()
        # Most columns are neither after a few rows; only the others are looked at further.
        for mask, compare in ((self.rising, np.greater), (self.falling, np.less)):
            for rows in (before[:16], before):
                at = np.flatnonzero(mask)
                mask[at] = np.all(compare(rows[1:, at], rows[:-1, at]), axis=0)

    def _add_sparse(self, X: Any) -> None:
        columns, (n_rows, d) = X.indices, X.shape
        values = X.data.astype(np.float64, copy=False)
        missing, infinite = np.isnan(values), np.isinf(values)
        self.n_missing += np.bincount(columns[missing], minlength=d)
        self.n_infinite += np.bincount(columns[infinite], minlength=d)
        rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
        self.n_rows_with_gaps += len(np.unique(rows[missing]))
        self.n_zero_rows += n_rows - len(np.unique(rows[values != 0]))
        stored = np.isfinite(values)
        columns, values = columns[stored], values[stored]
        # What is not stored is 0.
        n_absent = n_rows - np.bincount(X.indices, minlength=d)
        low, high = np.where(n_absent > 0, 0.0, np.inf), np.where(n_absent > 0, 0.0, -np.inf)
        np.minimum.at(low, columns, values)
        np.maximum.at(high, columns, values)
        self.minimum, self.maximum = np.minimum(self.minimum, low), np.maximum(self.maximum, high)
        self.whole[columns[np.rint(values) != values]] = False
        self.rising[:] = self.falling[:] = False
        if np.isnan(self._pivot).any():
            first = X[[0]].toarray().ravel()
            self._pivot = np.where(np.isfinite(first), first, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            shifted = values - self._pivot[columns]
            self._sum += np.bincount(columns, shifted, minlength=d) - n_absent * self._pivot
            self._squares += np.bincount(columns, shifted**2, minlength=d)
            self._squares += n_absent * self._pivot**2

    @property
    def sample(self) -> Any:
        """The numbers of the drawn rows, in their order: array or CSR matrix."""
        return self.drawn.values

    @property
    def sample_rows(self) -> IndexArray:
        """The numbers of the drawn rows in the table, from 0."""
        self.drawn.sort_out()
        return self.drawn.numbers

    @property
    def sample_others(self) -> tuple[OtherColumn, ...]:
        """The other columns of the drawn rows."""
        return self.drawn.others

    @property
    def n_present(self) -> IndexArray:
        """Finite values of every column."""
        return self.n_rows - self.n_missing - self.n_infinite

    @property
    def means(self) -> FloatArray:
        """Means of what is there; 0 for empty columns."""
        pivot = np.where(np.isnan(self._pivot), 0.0, self._pivot)
        return pivot + self._sum / np.maximum(self.n_present, 1)

    @property
    def variances(self) -> FloatArray:
        """Variances of what is there (divided by their number)."""
        n = np.maximum(self.n_present, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.maximum(self._squares / n - (self._sum / n) ** 2, 0.0)


def have_gaps(X: Any) -> BoolArray:
    """Which rows have a gap."""
    if not sp.issparse(X):
        return np.isnan(X).any(axis=1)
    found = np.zeros(X.shape[0], dtype=bool)
    found[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[np.isnan(X.data)]] = True
    return found
