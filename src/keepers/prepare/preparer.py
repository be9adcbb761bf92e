"""`TablePreparer`: a table with missing values, categories, dates and IDs becomes numbers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import check_is_fitted

from keepers._protocols import FloatArray, IndexArray, RowBlock
from keepers._wording import closest
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.gaps import GapModel, fill_rows, fit_gap_model
from keepers.linalg.scatter import as_array
from keepers.prepare.categories import LevelNumbers, quantify
from keepers.prepare.check import CALLED, describe_kinds, listed, n_columns
from keepers.prepare.kinds import (
    KINDS,
    MISSING,
    MOST_LEVELS,
    ColumnKind,
    Kind,
    Missing,
    TableFacts,
    as_words,
    count_gaps,
    find_kinds,
    number_word,
    read_words,
    split_answers,
)
from keepers.tables.objects import as_frame, is_frame, table_of_object
from keepers.tables.scans import FileScan, LocalBlocks
from keepers.tables.table import Table, refuse_absent

if TYPE_CHECKING:
    import polars as pl

_INFINITE = (
    "Values must be finite; infinity is in these columns (how often):",
    "Leave those cells empty, or leave the columns out (drop=, --drop).",
)
_NEW_GAPS = (
    "Missing values (NaN), or values that the fit has not seen, are in these columns (how many):",
    "Fit with missing='median', 'mean' or 'model' to fill them. In a sparse table, which filling "
    "would make dense, leave out the columns (--drop) or the rows.",
)


@dataclass(frozen=True)
class PreparedColumn(ColumnKind):
    """One feature, made from one column of the source."""

    levels: tuple[str, ...] = ()
    """Values of a category, or answers; those of an ordered category lowest first."""
    numbers: LevelNumbers | None = field(default=None, repr=False)
    """Numbers of a category with more than two values; None: 0, 1, ..."""

    @property
    def is_plain(self) -> bool:
        """True if numbers of the source are used as they are."""
        return not self.levels and self.kind != "tick"

    def encode(self, column: Any, first_row: int | None = None) -> FloatArray:
        """The column as numbers; NaN for gaps and for values that the fit has not seen.

        ``column`` is a polars series of text or dates, or an array of numbers. ``first_row`` is
        the number of its first row in the table of the fit; None for other rows.
        """
        if self.kind == "tick":
            cells, places = _different_cells(column)
            return np.array([cell is not None for cell in cells], dtype=np.float64)[places]
        if self.levels:
            chosen, places = self.choose(column)
            if self.numbers is None:
                return np.asarray(chosen @ np.arange(len(self.levels)))[places]
            rows = None if first_row is None else first_row + np.arange(len(column))
            return self.numbers.of(chosen, places, rows)
        if isinstance(column, np.ndarray):
            return column
        if column.dtype.is_temporal():
            return _seconds(column)
        return np.asarray(read_words(column.cast(str), self.kind, self.decimal).to_numpy())

    def choose(self, column: Any) -> tuple[FloatArray, IndexArray]:
        """The different cells, a row each with 1 for each of its levels, and the row of each cell.

        Rows of gaps and of unknown values are NaN.
        """
        cells, places = _different_cells(column)
        place_of = {level: at for at, level in enumerate(self.levels)}
        chosen = np.full((len(cells), len(self.levels)), np.nan)
        for row, cell in zip(chosen, cells, strict=True):
            if cell is None:
                continue
            if cell not in place_of:
                with suppress(ValueError):  # "1.0" is the value 1
                    cell = number_word(float(cell))
            values = split_answers(cell, self.mark) if self.mark else [cell]
            known = [place_of[value] for value in values if value in place_of]
            if known or self.mark:
                row[:] = 0.0
                row[known] = 1.0
        return chosen, places


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, text and dates into numbers for a selector.

    Every feature is one column of the source under its own name:

    - numbers stay as they are; text that spells numbers becomes numbers; durations are seconds;
    - booleans, text such as yes and no, and tick boxes (one value or blank) become 1 and 0;
    - ordered categories become 0, 1, 2, ...;
    - each value of other text with few different values gets the number that follows the other
      columns best; cells with several answers ("tea, milk") get the sum of theirs;
    - dates, Unix times, identifiers, free text and empty columns are not used, unless ``kinds``
      changes that.

    Parameters
    ----------
    missing : {"error", "keep", "mean", "median", "model"}
        What to do with missing values. "keep" leaves them as NaN, for a selector that takes gaps
        (`AutoSelector`). "model" estimates each from the other columns by a model of a few
        components.
    kinds : dict of str to str or None
        Kinds of columns by name, to override what is found: "number", "boolean", "tick",
        "category", "choices", "ordered", "date", "identifier", "text" or "drop". As a "number", a
        date becomes seconds since 1970, and a time of day seconds since midnight.
    log : bool
        Take log(1 + x) of all columns of numbers, as for counts.

    Attributes
    ----------
    columns_ : list of PreparedColumn
        The features, in the order of the source; ``feature_names_in_`` are all its columns.
    kinds_, set_aside_ : dict
        The kind of each column with the reason; columns that are not used, with the reason.
    notes_ : list of str
        What was done, a sentence each.
    fill_values_, n_filled_ : arrays of shape (n_features_out,)
        Replacements of missing values (None if they are not replaced), over at most 2,000 rows,
        and numbers of missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> from keepers import TablePreparer
    >>> towns, ages = ["Rome", "Oslo", "Lima"] * 4, [31, 45, None] * 4
    >>> survey = pd.DataFrame({"id": range(1, 13), "town": towns, "age": ages})
    >>> preparer = TablePreparer(missing="median").fit(survey)
    >>> preparer.set_aside_
    {'id': 'identifier: distinct integers in order, 1 to 12'}
    >>> list(preparer.get_feature_names_out())
    ['town', 'age']
    """

    def __init__(
        self,
        *,
        missing: Missing = "error",
        kinds: Mapping[str, Kind] | None = None,
        log: bool = False,
    ) -> None:
        self.missing = missing
        self.kinds = kinds
        self.log = log

    def __sklearn_tags__(self) -> Any:
        """Accept text and sparse matrices, and missing values unless they are an error."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        known: dict[str, tuple[Any, Sequence[str]]] = {"missing": (self.missing, MISSING)}
        known |= {f"The kind of {n!r}": (kind, KINDS) for n, kind in (self.kinds or {}).items()}
        for what, (given, allowed) in known.items():
            if given not in allowed:
                raise ParameterError(
                    f"{what} must be one of {', '.join(map(repr, allowed))}; got "
                    f"{shorten(given)}.{closest(str(given), allowed)}"
                )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kinds of columns and what replaces missing values; ``y`` is not used.

        ``X`` is a data frame, an array, a sparse matrix or a `Table`.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return self.fit_facts(TableFacts.of(table_of_object(X), self.kinds))

    def fit_facts(self, facts: TableFacts) -> Self:
        """Learn from the facts that one pass found, as for tables in blocks."""
        self.check_parameters()
        kinds = find_kinds(facts, self.kinds)
        unused = {
            name: f"{CALLED.get(kind.kind, kind.kind)}: {kind.why}"
            for name, kind in kinds.items()
            if not kind.is_feature
        }
        features = [kind for kind in kinds.values() if kind.is_feature]
        if not features:
            _refuse(
                unused,
                "At least one column must be a feature; none of these is used (why):",
                "Override a kind: kinds={name: 'number'} (--as name=number).",
            )
        infinite = dict(zip(facts.names, facts.n_infinite.tolist(), strict=True))
        used = {kind.name for kind in features}
        _refuse({name: n for name, n in infinite.items() if n and name in used}, *_INFINITE)
        columns = self._with_numbers([_column_of_kind(kind, facts) for kind in features], facts)
        gaps = count_gaps(facts, kinds)
        if self.missing == "error":
            _refuse(
                gaps,
                "Missing values (NaN) are in these columns (how many):",
                "Keep them for AutoSelector (missing='keep'), or fill them (missing='model', "
                "'mean' or 'median'; --missing model).",
            )
        # Nothing is stored before everything is known: a fit that fails leaves nothing.
        self.fill_values_, self.gap_model_ = self._learn_filling(facts, columns, gaps)
        self.columns_, self.kinds_, self.set_aside_ = columns, kinds, unused
        self.n_filled_ = np.array([gaps.get(c.name, 0) for c in columns], dtype=np.intp)
        self.feature_names_in_ = np.array(list(kinds), dtype=object)
        self.n_features_in_ = len(kinds)
        self.notes_ = [finding.sentence for finding in describe_kinds(kinds)]
        if gaps:
            how = "" if self.missing == "keep" else f" filled ({self.missing})"
            self.notes_.append(f"Missing values{how} in {n_columns(len(gaps))}: {listed(gaps)}.")
        return self

    def _with_numbers(
        self, columns: list[PreparedColumn], facts: TableFacts
    ) -> list[PreparedColumn]:
        several = [c for c in columns if c.mark or (c.kind == "category" and len(c.levels) > 2)]
        if not several:
            return columns
        others = self._encode(facts.sample, [c for c in columns if c not in several])
        chosen = [column.choose(column_of(facts.sample, column.name)) for column in several]
        found = quantify(
            as_array(others).astype(np.float64, copy=False),
            [rows[places] for rows, places in chosen],
            facts.sample_rows,
        )
        numbers = {c.name: each for c, each in zip(several, found, strict=True)}
        return [replace(column, numbers=numbers.get(column.name)) for column in columns]

    def _encode(
        self, table: Table, columns: Sequence[PreparedColumn], first_row: int | None = None
    ) -> Any:
        """Columns of a table as numbers, gaps as NaN; sparse if all were sparse numbers.

        With ``log``, their logarithms. ``first_row`` is as in `prepare`.
        """
        places = {str(name): at for at, name in enumerate(table.names)}
        refuse_absent([column.name for column in columns], [*places, *table.others])
        X = table.values
        if all(column.name in places and column.is_plain for column in columns):
            chosen = [places[column.name] for column in columns]
            X = X if chosen == list(range(table.n_features)) else X[:, chosen]
        else:
            X = np.empty((table.n_samples, len(columns)))
            for at, column in enumerate(columns):
                X[:, at] = column.encode(column_of(table, column.name), first_row)
        return self._logarithms(X, columns) if self.log else X

    def _logarithms(self, X: Any, columns: Sequence[PreparedColumn]) -> Any:
        measured = np.array([column.kind == "number" for column in columns], dtype=bool)
        X, is_sparse = X.copy(), sp.issparse(X)
        lowest = X.nanmin(axis=0).toarray().ravel() if is_sparse else np.fmin.reduce(X, axis=0)
        below = np.flatnonzero(measured & (lowest < 0.0)).tolist()
        _refuse(
            {columns[at].name: f"{lowest[at]:g}" for at in below},
            "log(1 + x) is for values >= 0, such as counts; these columns have lower ones (the "
            "lowest):",
            "Leave out log=True (--log), or the columns.",
        )
        values, chosen = (X.data, measured[X.indices]) if is_sparse else (X, measured)
        values[..., chosen] = np.log1p(values[..., chosen])
        return X

    def _learn_filling(
        self, facts: TableFacts, columns: list[PreparedColumn], gaps: Mapping[str, int]
    ) -> tuple[FloatArray | None, GapModel | None]:
        """Means, medians or a model that replace gaps, of the drawn rows."""
        X = self._encode(facts.sample, columns)
        if self.missing == "error":
            return None, None
        if sp.issparse(X):
            _refuse(gaps, *_NEW_GAPS)
        if sp.issparse(X) or self.missing == "keep":
            return None, None
        X = np.asarray(X, dtype=np.float64)
        strategy = "median" if self.missing == "median" else "mean"
        values = SimpleImputer(strategy=strategy, keep_empty_features=True).fit(X).statistics_
        if self.missing != "model":
            return values, None
        return values, fit_gap_model(np.where(np.isnan(X).all(axis=0), values, X))

    def prepare(self, table: Table, *, first_row: int | None = None) -> Table:
        """A table of numbers with sample names and labels; rows with gaps only where they may be.

        For rows of the table of the fit, ``first_row`` is the number of the first: categories then
        get the numbers that were found on the other half of its rows.
        """
        check_is_fitted(self)
        X = self._encode(table, self.columns_, first_row)
        largest = np.finfo(np.float64).max
        _refuse(self._count((largest < X) + (-largest > X)), *_INFINITE)
        names = self.get_feature_names_out()
        return Table(self._fill(X), names, table.ids, table.labels, table.name)

    def _count(self, found: Any) -> dict[str, int]:
        """Count what was found, a mask of the values, by the features that have any."""
        counts = np.asarray(found.sum(axis=0)).ravel().tolist()
        return {c.name: count for c, count in zip(self.columns_, counts, strict=True) if count}

    def _fill(self, X: Any) -> Any:
        """Fill the gaps of the encoded features, keep them or raise, as ``missing`` sets."""
        if self.fill_values_ is None or sp.issparse(X):
            if self.missing != "keep" or sp.issparse(X):
                _refuse(self._count(X != X), *_NEW_GAPS)  # only NaN differs from itself
            return X
        gaps = np.isnan(X)
        if self.gap_model_ is not None and gaps.any():
            filled = fill_rows(self.gap_model_, np.asarray(X, dtype=np.float64))
            return filled.astype(X.dtype, copy=False)
        return np.where(gaps, self.fill_values_.astype(X.dtype), X) if gaps.any() else X

    def transform(self, X: Any) -> Any:
        """The features of X as numbers: a frame for a frame (pandas, polars), else an array.

        X is what `fit` takes; columns that are not used may be absent.
        """
        check_is_fitted(self)
        return self._transform(as_frame(X), None)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the features of X as numbers.

        Categories get the numbers found on the other half of the rows, so they cannot follow
        noise; ``fit(X).transform(X)`` gives those found on all rows.
        """
        X = as_frame(X)  # a stream can be read only once
        return self.fit(X)._transform(X, 0)

    def _transform(self, X: Any, first_row: int | None) -> Any:
        table = table_of_object(X)
        width = len(table.names) + len(table.others)
        expected = self.n_features_in_
        if width != expected and not is_frame(X) and not isinstance(X, Table):
            raise DataError(
                f"X has {width} features, but {type(self).__name__} is expecting {expected} "
                "features as input. Pass the columns of the fit, or a frame with their names."
            )
        values = self.prepare(table, first_row=first_row).values
        names = self.get_feature_names_out()
        if is_pandas_dataframe(X):
            return type(X)(values, columns=names, index=X.index)
        if is_polars_dataframe(X):
            return type(X)(values, schema=names.tolist(), orient="row")
        return values

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features."""
        check_is_fitted(self)
        return np.array([column.name for column in self.columns_], dtype=object)

    def categories(self) -> frozenset[str]:
        """Features whose values have no order: their correlations have no sign."""
        return frozenset(column.name for column in self.columns_ if column.numbers)


def column_of(table: Table, name: str) -> Any:
    """A column of text or dates as a polars series, of numbers as an array."""
    if table.frame is not None and name in table.frame.columns:
        return table.frame[name]
    place = int(np.flatnonzero(table.names == name)[0])
    return as_array(table.values[:, [place]]).ravel()


def _different_cells(column: Any) -> tuple[list[str | None], IndexArray]:
    """The different cells of a column as text, None for a gap, and which of them each cell is."""
    if isinstance(column, np.ndarray):
        values, places = np.unique(column, return_inverse=True)
        cells = [None if np.isnan(value) else number_word(value) for value in values.tolist()]
        return cells, places
    import polars as pl

    words = as_words(column)
    cells = [None, *words.drop_nulls().unique()]
    codes = {cell: at for at, cell in enumerate(cells)}
    found = words.replace_strict(codes, default=0, return_dtype=pl.Int64)
    return cells, found.fill_null(0).to_numpy()


def _seconds(column: "pl.Series") -> FloatArray:
    """Durations in seconds; dates since 1970, times of day since midnight."""
    import polars as pl

    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    unit = getattr(column.dtype, "time_unit", "ns")  # a time of day is stored in nanoseconds
    ticks = column.to_physical().cast(pl.Float64).to_numpy()
    return np.asarray(ticks / {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit])


def _column_of_kind(kind: ColumnKind, facts: TableFacts) -> PreparedColumn:
    """How a column is read; raise for a category with too many values."""
    text = facts.texts.get(kind.name)
    levels: tuple[str, ...] = ()
    if text is None:
        values = facts.codes[kind.name] if kind.kind == "category" else ()
        levels = tuple(sorted(map(number_word, values)))
    elif kind.mark:
        levels = tuple(sorted({a for cell in text.counts for a in split_answers(cell, kind.mark)}))
    elif kind.kind in ("category", "ordered"):
        levels = (text.levels if kind.kind == "ordered" else ()) or tuple(text.counts)
    if kind.kind == "category" and len(levels) > MOST_LEVELS:
        _refuse(
            {kind.name: f"over {MOST_LEVELS:,}"},
            f"A category has at most {MOST_LEVELS:,} different values; this one has more:",
            "Group the values, or leave the column out (kinds={name: 'drop'}, --drop).",
        )
    return PreparedColumn(**vars(kind), levels=levels)


def _refuse(found: Mapping[str, object], before: str, after: str) -> None:
    """Raise if columns were found, with a text before and after them."""
    if found:
        raise DataError(f"{before} {listed(found)}. {after}")


class PreparedBlocks(LocalBlocks):
    """The features of the table of a fit as its preparer encodes them, in blocks.

    ``first_row`` is the number of the first row in that table.
    """

    def __init__(self, source: FileScan, preparer: TablePreparer, first_row: int = 0) -> None:
        self._source, self._preparer, self._first_row = source, preparer, first_row
        self.name, self.n_samples = source.name, source.n_samples
        self.feature_names = preparer.get_feature_names_out()
        self.n_features = len(self.feature_names)
        numbers = set(source.feature_names)
        plain = all(c.name in numbers and c.is_plain for c in preparer.columns_)
        self.dtype = source.dtype if plain else np.dtype(np.float64)
        self.is_sparse = source.is_sparse and plain
        stored = (self.n_samples or 0) * self.n_features
        self.n_stored = source.n_stored if self.is_sparse else stored

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        names, row = [column.name for column in self._preparer.columns_], 0
        for table in self._source.tables(names):
            X = self._preparer.prepare(table, first_row=self._first_row + row).values
            origin = f"{table.name}, rows {row + 1} to {row + table.n_samples} of {self.name}"
            row += table.n_samples
            yield RowBlock(X if columns is None else X[:, columns], origin)

    def parts(self, n_parts: int) -> list["PreparedBlocks"]:
        """The same rows as about ``n_parts`` tables."""
        first_row, tables = self._first_row, []
        for piece in self._source.parts(n_parts):
            tables.append(PreparedBlocks(piece, self._preparer, first_row))
            first_row += piece.n_samples or 0  # files know their number of rows
        return tables
