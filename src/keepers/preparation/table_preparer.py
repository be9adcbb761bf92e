"""`TablePreparer`: from a table with gaps, categories, dates and identifiers to numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.data.columns import OtherColumn
from keepers.data.foreign_frames import as_frame
from keepers.data.in_memory import frame_columns
from keepers.data.mixed import as_mixed_table
from keepers.data.table import LabelledTable
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.gaps import GapModel, column_medians, fill_rows, fit_gap_model
from keepers.preparation.categories import LevelNumbers, quantify
from keepers.preparation.column_kinds import (
    KINDS,
    ColumnKind,
    GapCounts,
    Kind,
    as_number,
    as_seconds,
    as_truth,
    count_gaps,
    kinds_in_order,
)
from keepers.preparation.facts import MOST_LEVELS, TableFacts, have_gaps

Missing = Literal["error", "mean", "median", "model", "drop-rows"]
MISSING: tuple[Missing, ...] = ("error", "mean", "median", "model", "drop-rows")


@dataclass(frozen=True)
class PreparedColumn:
    """One feature that is made from one column of the source."""

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    """The values of a category, by their codes; of an ordered one, lowest first."""
    numbers: LevelNumbers | None = field(default=None, repr=False)
    """Of a category with more than two values."""

    def of_text(self, column: OtherColumn, *, first_row: int | None) -> FloatArray:
        """The column as numbers; NaN for gaps and for values that the fit has not seen.

        ``first_row`` is the number of the first row in the table of the fit; None for other rows.
        """
        if column.kind == "date":
            moments = column.values.astype("datetime64[us]")
            seconds = moments.astype(np.int64) / 1e6
            return np.where(np.isnat(moments), np.nan, seconds)
        if self.kind in ("number", "date"):
            return np.array([_number(word) for word in column.values])
        if self.kind == "boolean":
            return np.array([np.nan if w is None else as_truth(w) for w in column.values])
        code_of = {level: code for code, level in enumerate(self.levels)}
        codes = np.array([code_of.get(word, -1) for word in column.values], dtype=np.intp)
        if self.numbers is None:
            return np.where(codes < 0, np.nan, codes.astype(np.float64))
        if first_row is None:
            return self.numbers.of_new(codes)
        return self.numbers.of_rows(first_row + np.arange(len(codes)), codes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        stored: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.levels:
            stored["levels"] = list(self.levels)
        if self.numbers is not None:
            stored["numbers"] = self.numbers.both.tolist()
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "PreparedColumn":
        """The column of which `to_dict` was stored."""
        given = stored.get("numbers")
        both = None if given is None else np.asarray(given, dtype=np.float64)
        numbers = None if both is None else LevelNumbers(both, both, both)
        return cls(str(stored["name"]), stored["kind"], tuple(stored.get("levels", ())), numbers)


def _number(word: str | None) -> float:
    if word is None:
        return np.nan
    number = as_number(word)
    number = as_seconds(word) if number is None else number
    return np.nan if number is None else number


class TablePreparer(TransformerMixin, BaseEstimator):
    """Turn a table as people have it into numbers that a selector takes.

    Every feature is one column of the source under its own name:

    - numbers stay as they are; text that spells numbers becomes numbers;
    - booleans, and text that says yes or no, become 1 and 0; ordered categories 0, 1, 2, ...;
    - text with few different values becomes one column: every value gets the number that follows
      the other columns best (see the guide);
    - dates, Unix times, identifiers and free text are set aside, unless ``kinds`` says otherwise;
    - gaps are refused, or filled as ``missing`` says; columns without any value are set aside.

    ``set_aside_`` and ``notes_`` say what was done.

    Parameters
    ----------
    missing : {"error", "mean", "median", "model", "drop-rows"}
        What to do with gaps. "model" fills each from the other columns by a model of a few
        components. "drop-rows" leaves out rows with gaps; only `prepare` can do that.
    kinds : dict of str to str or None
        What columns are, by name, where that is to be decided otherwise: "number", "boolean",
        "category", "ordered", "date", "identifier", "text" or "drop". A date that is to be a
        feature is a "number": seconds since 1970.
    log : bool
        Take log(1 + x) of all columns of numbers, as for counts.
    make_unique : bool
        Number repeated column names (a, a.1); otherwise they are refused.

    Attributes
    ----------
    columns_ : list of PreparedColumn
        The features, in the order of the source.
    kinds_ : dict of str to ColumnKind
        What each column of the source is, and why.
    set_aside_ : dict of str to str
        Columns that are no features, with the reason.
    notes_ : list of str
        What was done, a sentence each.
    fill_values_ : array of shape (n_features_out,) or None
        What gaps are filled with, for "mean" and "median"; for "model" where it knows no better.
        Means are of all rows; medians of at most 2,000, drawn at random but always the same.
    n_filled_ : array of shape (n_features_out,)
        Gaps of each feature in the table of the fit.
    feature_names_in_, n_features_in_
        Columns of the source.

    Examples
    --------
    >>> import pandas as pd
    >>> from keepers import TablePreparer
    >>> survey = pd.DataFrame({
    ...     "id": range(1, 13),
    ...     "town": ["Rome", "Oslo", "Lima"] * 4,
    ...     "member": ["yes", "no"] * 6,
    ...     "age": [31, 45, None] * 4,
    ...     "height": [180.5, 165.0, 172.2] * 4,
    ... })
    >>> preparer = TablePreparer(missing="median").fit(survey)
    >>> preparer.set_aside_
    {'id': 'identifier: distinct integers in order, 1 to 12'}
    >>> list(preparer.get_feature_names_out())
    ['town', 'member', 'age', 'height']
    """

    def __init__(
        self,
        *,
        missing: Missing = "error",
        kinds: Mapping[str, Kind] | None = None,
        log: bool = False,
        make_unique: bool = False,
    ) -> None:
        self.missing = missing
        self.kinds = kinds
        self.log = log
        self.make_unique = make_unique

    def __sklearn_tags__(self) -> Any:
        """Text and sparse matrices are welcome, and gaps if they are to be filled."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        if self.missing not in MISSING:
            raise ParameterError(
                f"missing must be one of {', '.join(map(repr, MISSING))}; got "
                f"{shorten(self.missing)}.{closest(str(self.missing), MISSING)}"
            )
        for name, kind in (self.kinds or {}).items():
            if kind not in KINDS:
                raise ParameterError(
                    f"A column is one of {', '.join(KINDS)}; got {shorten(kind)} for "
                    f"{shorten(name)}.{closest(str(kind), KINDS)}"
                )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the columns are and what gaps are filled with.

        Parameters
        ----------
        X : data frame, array, sparse matrix or LabelledTable
            The table.
        y : ignored
            No labels are looked at.

        Returns
        -------
        self : object
            The fitted preparer.
        """
        self._forget()
        self.check_parameters()
        table = as_mixed_table(X, make_unique=self.make_unique)
        return self.fit_facts(TableFacts.of(table))

    def fit_facts(self, facts: TableFacts) -> Self:
        """Learn from what one pass over the rows has told, as for tables in blocks."""
        self._forget()
        self.check_parameters()
        try:
            self._fit(facts)
        except BaseException:
            self._forget()
            raise
        return self

    def _forget(self) -> None:
        """A fit that fails leaves nothing of itself or of an earlier one."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _fit(self, facts: TableFacts) -> None:
        self.kinds_ = kinds_in_order(facts, self.kinds)
        self.set_aside_ = {
            name: f"{_CALLED[kind.kind]}: {kind.why}" if kind.why else _CALLED[kind.kind]
            for name, kind in self.kinds_.items()
            if not kind.is_feature
        }
        features = [kind for kind in self.kinds_.values() if kind.is_feature]
        if not features:
            told = [f"{name!r} ({why})" for name, why in self.set_aside_.items()]
            raise DataError(
                f"At least one column must be a feature; all {len(told)} are set aside: "
                f"{some_of(told)}. Say what they are: kinds={{name: 'number'}} (--as name=number)."
            )
        chosen = np.array([self.kinds_[name].is_feature for name in facts.feature_names], bool)
        _refuse_infinite(facts.feature_names, np.where(chosen, facts.n_infinite, 0))
        self._refuse_categories(features, facts)
        self._refuse_below_zero(features, facts)
        self.columns_ = self._prepare_columns(features, facts)
        self.feature_names_in_ = np.array(list(self.kinds_), dtype=object)
        self.n_features_in_ = len(self.kinds_)
        self._learn_filling(facts)
        self.notes_ = self._notes()

    def _refuse_categories(self, features: Sequence[ColumnKind], facts: TableFacts) -> None:
        """Raise for text with more values than are counted that is to be a category."""
        full = {name for name, text in facts.texts.items() if text.is_full}
        many = [kind.name for kind in features if kind.kind == "category" and kind.name in full]
        if many:
            raise DataError(
                f"A category has at most {MOST_LEVELS:,} different values; these have more: "
                f"{some_of([repr(name) for name in many])}. Group the values, or leave the columns "
                "out (kinds={name: 'drop'}, --drop)."
            )

    def _refuse_below_zero(self, features: Sequence[ColumnKind], facts: TableFacts) -> None:
        """Raise for columns of which no logarithm can be taken."""
        if not self.log:
            return
        lowest = dict(zip(facts.feature_names, facts.minimum.tolist(), strict=True))
        numbers = [kind.name for kind in features if kind.kind != "category"]
        _refuse_negative({name: lowest[name] for name in numbers if lowest.get(name, 0.0) < 0.0})

    def _prepare_columns(
        self, features: Sequence[ColumnKind], facts: TableFacts
    ) -> list[PreparedColumn]:
        columns = []
        for kind in features:
            text = facts.texts.get(kind.name)
            levels: tuple[str, ...] = ()
            if text is not None and kind.kind == "ordered":
                levels = text.levels or tuple(sorted(text.counts))
            elif text is not None and kind.kind == "category":
                levels = tuple(sorted(text.counts))
            elif kind.kind == "category":  # numbers that the user calls a category
                at = facts.feature_names.index(kind.name)
                levels = tuple(str(value) for value in _values_of(facts.sample, at))
            columns.append(PreparedColumn(kind.name, kind.kind, levels))
        several = [c for c in columns if c.kind == "category" and len(c.levels) > 2]
        if not several:
            return columns
        # Found on the drawn rows, from all that is a number already.
        named = {column.name for column in several}
        numbers, coded = self._sample_parts(facts, [c for c in columns if c.name not in named])
        codes = [coded(column) for column in several]
        found = dict(
            zip(
                [c.name for c in several],
                quantify(numbers, codes, facts.sample_rows, [len(c.levels) for c in several]),
                strict=True,
            )
        )
        return [replace(c, numbers=found[c.name]) if c.name in found else c for c in columns]

    def _sample_parts(self, facts: TableFacts, columns: Sequence[PreparedColumn]) -> Any:
        sample = facts.sample
        dense = sample.toarray() if sp.issparse(sample) else np.asarray(sample, dtype=np.float64)
        table = LabelledTable(
            dense, np.array(facts.feature_names, dtype=object), others=facts.sample_others
        )
        others = {column.name: column for column in facts.sample_others}
        places = {name: at for at, name in enumerate(facts.feature_names)}

        def coded(column: PreparedColumn) -> IndexArray:
            words = _words(column, dense, places, others)
            code_of = {level: code for code, level in enumerate(column.levels)}
            return np.array([code_of.get(word, -1) for word in words], dtype=np.intp)

        return self._encode(table, columns, first_row=None), coded

    def _encode(
        self, table: LabelledTable, columns: Sequence[PreparedColumn], *, first_row: int | None
    ) -> Any:
        """The features of a table as numbers, gaps as NaN; sparse if the table is."""
        places = {str(name): at for at, name in enumerate(table.feature_names)}
        others = {column.name: column for column in table.others}
        absent = [c.name for c in columns if c.name not in places and c.name not in others]
        if absent:
            raise DataError(
                f"The table lacks {len(absent)} of the {len(columns)} columns that are needed: "
                f"{some_of([repr(name) for name in absent])}."
            )
        plain = all(c.name in places and c.kind != "category" for c in columns)
        if plain:
            chosen = np.array([places[c.name] for c in columns], dtype=np.intp)
            everything = len(chosen) == table.X.shape[1] and np.all(np.diff(chosen) == 1)
            X = table.X if everything else table.X[:, chosen]
            return self._logarithm(X, np.ones(len(columns), dtype=bool), columns)
        X = np.empty((table.n_samples, len(columns)))
        measured = np.zeros(len(columns), dtype=bool)
        for at, column in enumerate(columns):
            if column.name in others:
                X[:, at] = column.of_text(others[column.name], first_row=first_row)
                measured[at] = column.kind == "number" and others[column.name].kind == "text"
            elif column.kind == "category":
                words = _words(column, table.X, places, others)
                text = OtherColumn(column.name, "text", words, at)
                X[:, at] = column.of_text(text, first_row=first_row)
            else:
                value = table.X[:, [places[column.name]]]
                X[:, at] = (value.toarray() if sp.issparse(value) else value).ravel()
                measured[at] = True
        return self._logarithm(X, measured, columns)

    def _logarithm(self, X: Any, measured: BoolArray, columns: Sequence[PreparedColumn]) -> Any:
        if not self.log:
            return X
        if sp.issparse(X):
            lowest = X.min(axis=0).toarray().ravel()
        else:
            lowest = np.fmin.reduce(X, axis=0, initial=0.0)
        below = np.flatnonzero(measured & (lowest < 0.0)).tolist()
        _refuse_negative({columns[at].name: float(lowest[at]) for at in below})
        if sp.issparse(X):
            return X.log1p()
        X = X.copy()
        X[:, measured] = np.log1p(X[:, measured])
        return X

    def _learn_filling(self, facts: TableFacts) -> None:
        """What gaps are filled with: exact means; medians and the model from the drawn rows."""
        self.gap_model_: GapModel | None = None
        self.fill_values_: FloatArray | None = None
        gaps = count_gaps(facts, list(self.kinds_.values()))
        self.n_filled_ = np.array(
            [gaps.by_column.get(column.name, 0) for column in self.columns_], dtype=np.intp
        )
        self._refuse_gaps(gaps, facts.n_rows)
        if self.missing in ("error", "drop-rows"):
            return
        sample = LabelledTable(
            facts.sample,
            np.array(facts.feature_names, dtype=object),
            others=facts.sample_others,
        )
        X = self._encode(sample, self.columns_, first_row=None)
        if sp.issparse(X):
            if self.n_filled_.any():
                raise DataError(
                    "Gaps in a sparse table cannot be filled without making it dense. Drop the "
                    "rows (missing='drop-rows', --missing drop-rows), or store 0 for them."
                )
            return
        X = np.asarray(X, dtype=np.float64)
        known = ~np.isnan(X).all(axis=0)
        values = np.zeros(X.shape[1])
        medians = self.missing == "median"
        if known.any():
            values[known] = column_medians(X[:, known]) if medians else np.nanmean(X[:, known], 0)
        whole = self._whole_table_means(facts) if not medians else {}
        for at, column in enumerate(self.columns_):
            values[at] = whole.get(column.name, values[at])
        self.fill_values_ = values
        if self.missing == "model":
            self.gap_model_ = self._fit_model(X, values)

    def _whole_table_means(self, facts: TableFacts) -> dict[str, float]:
        """Means over all rows, of the columns that are used as they are."""
        if self.log:
            return {}
        means = facts.means
        used = {c.name: c for c in self.columns_ if c.kind != "category"}
        found = {
            name: float(means[at]) for at, name in enumerate(facts.feature_names) if name in used
        }
        for name, text in facts.texts.items():
            if name in used and text.counts and not text.is_full:
                words = np.array(list(text.counts), dtype=object)
                numbers = used[name].of_text(OtherColumn(name, "text", words, 0), first_row=None)
                known = np.where(np.isnan(numbers), 0.0, [*text.counts.values()])
                if known.any():
                    found[name] = float(np.nansum(numbers * known) / known.sum())
        return found

    def _fit_model(self, X: FloatArray, means: FloatArray) -> GapModel:
        X = X.copy()
        empty = np.isnan(X).all(axis=0)
        X[:, empty] = means[empty]  # no value among the drawn rows
        return fit_gap_model(X)

    def _refuse_gaps(self, gaps: GapCounts, n_rows: int) -> None:
        if self.missing != "error" or not gaps.by_column:
            return
        told = [f"{name!r} ({count})" for name, count in gaps.by_column.items()]
        raise DataError(
            f"{'Some' if gaps.n_rows is None else gaps.n_rows} of {n_rows} rows have gaps, in "
            f"{len(told)} of {len(self.columns_)} columns (how many): {some_of(told)}. Fill what "
            "is NaN: missing='median', 'mean' or 'model' (--missing median); or leave out the "
            "rows: missing='drop-rows' (--missing drop-rows)."
        )

    def prepare(self, table: LabelledTable, *, first_row: int | None = None) -> LabelledTable:
        """A table of numbers without gaps, with the sample names and labels of ``table``.

        Parameters
        ----------
        table : LabelledTable
            What `open_table(..., mixed=True)` returns.
        first_row : int or None
            Where these rows stand in the table of the fit, if they do: categories then get the
            numbers that were found on the other half of its rows.

        Returns
        -------
        LabelledTable
            With ``missing="drop-rows"``, without the rows that have gaps.
        """
        check_is_fitted(self)
        X = self.encode(table, first_row=first_row)
        names = np.array([column.name for column in self.columns_], dtype=object)
        kept: Any = slice(None)
        if self.missing == "drop-rows":
            kept = self.complete_rows(X)
            X = X[kept]
        else:
            X = self.fill(X)
        return LabelledTable(
            X,
            names,
            None if table.sample_names is None else table.sample_names[kept],
            None if table.labels is None else table.labels[kept],
            table.name,
        )

    def encode(self, table: LabelledTable, *, first_row: int | None = None) -> Any:
        """The features of a table as numbers; gaps are NaN. ``first_row`` is as in `prepare`."""
        X = self._encode(table, self.columns_, first_row=first_row)
        infinite = np.isinf(X.data if sp.issparse(X) else X)
        if infinite.any():
            counts = (
                np.bincount(X.indices[infinite], minlength=X.shape[1])
                if sp.issparse(X)
                else infinite.sum(axis=0)
            )
            _refuse_infinite([column.name for column in self.columns_], counts)
        return X

    def find_complete(self, X: Any) -> BoolArray:
        """Which rows have no gap."""
        return ~have_gaps(X)

    def complete_rows(self, X: Any) -> BoolArray:
        """Which rows have no gap; it is an error if none is left."""
        complete = self.find_complete(X)
        if not complete.any():
            self.refuse_no_rows(X.shape[0])
        return complete

    def refuse_no_rows(self, n_rows: int) -> NoReturn:
        """Raise because every row of a table has a gap."""
        raise DataError(
            f"Leaving out rows with gaps leaves none of {n_rows}. Fill the gaps "
            "(missing='model', --missing model), or leave out the columns with most of them."
        )

    def fill(self, X: Any) -> Any:
        """X, the features as numbers, with its gaps filled; refused if they are not to be."""
        if sp.issparse(X):
            self._refuse_new_gaps(np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1]))
            return X
        gaps = np.isnan(X)
        if not gaps.any():
            return X
        if self.fill_values_ is None:
            self._refuse_new_gaps(gaps.sum(axis=0))
            return X
        if self.gap_model_ is not None:
            filled = fill_rows(self.gap_model_, np.asarray(X, dtype=np.float64))
            return filled.astype(X.dtype, copy=False)
        return np.where(gaps, self.fill_values_.astype(X.dtype), X)

    def fill_source(self, table: LabelledTable) -> LabelledTable:
        """The table as it was, but with the gaps of its numbers filled; text stays as it is."""
        places = {str(name): at for at, name in enumerate(table.feature_names)}
        numbers = [
            (j, places[c.name])
            for j, c in enumerate(self.columns_)
            if c.name in places and c.kind != "category"  # whose numbers are not its values
        ]
        if table.is_sparse or self.fill_values_ is None:
            return table
        gaps = np.isnan(table.X)
        if not gaps.any():
            return table
        filled = self.fill(self.encode(table))
        X = table.X.copy()
        for j, place in numbers:
            new = np.expm1(filled[:, j]) if self.log else filled[:, j]
            X[:, place] = np.where(gaps[:, place], new, X[:, place])
        return replace(table, X=X)

    def transform(self, X: Any) -> Any:
        """The features of X as numbers.

        Parameters
        ----------
        X : data frame, array, sparse matrix or LabelledTable
            A table with the columns of the fit; those that were set aside may be absent.

        Returns
        -------
        data frame, array or sparse matrix
            A frame for a frame (pandas, polars), else an array.
        """
        return self._transform(X, first_row=None)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the features of X as numbers.

        Categories get the numbers found on the other half of the rows, so that they cannot follow
        noise; ``fit(X).transform(X)`` gives those found on all rows.
        """
        X = as_frame(X)  # what can be read only once is read once
        return self.fit(X)._transform(X, first_row=0)

    def _transform(self, X: Any, *, first_row: int | None) -> Any:
        check_is_fitted(self)
        if self.missing == "drop-rows":
            raise ParameterError(
                "missing='drop-rows' changes the number of rows, which transform must not. Use "
                "prepare(table), or missing='median'."
            )
        X = as_frame(X)
        table = as_mixed_table(X, make_unique=self.make_unique)
        if frame_columns(X) is None and not isinstance(X, LabelledTable):
            self._refuse_other_width(table)
        prepared = self.fill(self.encode(table, first_row=first_row))
        return _like(X, prepared, self.get_feature_names_out())

    def _refuse_other_width(self, table: LabelledTable) -> None:
        """Raise for an array with more or fewer columns than the fit; names tell in a frame."""
        width = table.n_features + len(table.others)
        expected = getattr(self, "n_features_in_", width)  # not known if it was stored
        if width != expected:
            raise DataError(
                f"X has {width} features, but {type(self).__name__} is expecting {expected} "
                "features as input. Pass the columns of the fit, or a frame with their names."
            )

    def _refuse_new_gaps(self, counts: IndexArray) -> None:
        """Raise for gaps, counted by feature, that nothing was learnt to fill with."""
        if counts.any():
            told = [f"{self.columns_[at].name!r} ({counts[at]})" for at in np.flatnonzero(counts)]
            raise DataError(
                "Gaps (NaN), or values that the fit has not seen, are in these columns (how "
                f"many): {some_of(told)}. Fit with missing='median', 'mean' or 'model' to fill "
                "them."
            )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features."""
        check_is_fitted(self)
        return np.array([column.name for column in self.columns_], dtype=object)

    def _notes(self) -> list[str]:
        """What was done, a sentence each."""
        notes = []
        for kind in ("identifier", "date", "text", "empty", "drop"):
            named = [c for c in self.kinds_.values() if c.kind == kind]
            if not named:
                continue
            told = [f"{c.name!r} ({c.why})" if c.why else repr(c.name) for c in named]
            notes.append(f"Set aside as {_CALLED[kind]}: {some_of(told)}.")
        classes = "; if one holds classes, name it as labels (labels=, --labels)"
        for kind, called, hint in (
            ("category", "categories", classes),
            ("boolean", "yes or no", ""),
        ):
            named = [c for c in self.kinds_.values() if c.kind == kind]
            if named:
                notes.append(f"Taken as {called}: {some_of([repr(c.name) for c in named])}{hint}.")
        spelled = [c for c in self.kinds_.values() if c.why == "numbers as text"]
        if spelled:
            told = [
                f"{c.name!r} ({', '.join(map(repr, c.words_as_gaps[:3]))} as gaps)"
                if c.words_as_gaps
                else repr(c.name)
                for c in spelled
            ]
            notes.append(f"Read as numbers: {some_of(told)}.")
        if self.n_filled_.any() and self.missing != "error":
            at = np.flatnonzero(self.n_filled_)
            told = [f"{self.columns_[j].name!r} ({self.n_filled_[j]})" for j in at]
            how = f"filled ({self.missing})" if self.missing != "drop-rows" else "left out by rows"
            columns = "1 column" if len(at) == 1 else f"{len(at)} columns"
            notes.append(f"Gaps {how} in {columns}: {some_of(told)}.")
        return notes

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """What `keepers apply` needs to repeat it, as plain values; of some features if given."""
        check_is_fitted(self)
        chosen = set(self.get_feature_names_out() if names is None else names)
        at = [j for j, column in enumerate(self.columns_) if column.name in chosen]
        model = None
        if self.gap_model_ is not None:
            model = self.gap_model_.restrict(at).to_dict()
        return {
            "missing": self.missing,
            "log": bool(self.log),
            "columns": [self.columns_[j].to_dict() for j in at],
            "fill_values": None if self.fill_values_ is None else self.fill_values_[at].tolist(),
            "gap_model": model,
            "set_aside": dict(self.set_aside_),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "TablePreparer":
        """The preparer of which `to_dict` was stored, fitted."""
        preparer = cls(missing=stored["missing"], log=bool(stored["log"]))
        preparer.columns_ = [PreparedColumn.from_dict(each) for each in stored["columns"]]
        values, model = stored["fill_values"], stored["gap_model"]
        preparer.fill_values_ = None if values is None else np.asarray(values, dtype=np.float64)
        preparer.gap_model_ = None if model is None else GapModel.from_dict(model)
        preparer.set_aside_ = dict(stored["set_aside"])
        preparer.kinds_ = {c.name: ColumnKind(c.name, c.kind) for c in preparer.columns_}
        preparer.feature_names_in_ = preparer.get_feature_names_out()
        preparer.n_filled_ = np.zeros(len(preparer.columns_), dtype=np.intp)
        preparer.notes_ = []
        return preparer


def _refuse_infinite(names: Sequence[str], counts: IndexArray) -> None:
    """Raise for columns that hold infinity, counted by column."""
    if counts.any():
        told = [f"{names[at]!r} ({counts[at]})" for at in np.flatnonzero(counts).tolist()]
        raise DataError(
            f"Values must be finite; infinity is in these columns (how often): "
            f"{some_of(told)}. Write gaps instead, or leave the columns out (drop=, --drop)."
        )


def _refuse_negative(lowest: Mapping[str, float]) -> None:
    """Raise for columns with values below 0, given with the lowest of each."""
    if lowest:
        told = [f"{name!r} ({value:g})" for name, value in lowest.items()]
        raise DataError(
            "log(1 + x) is for values >= 0, such as counts; these columns have values below 0 "
            f"(the lowest): {some_of(told)}. Leave out log=True (--log), or the columns."
        )


_CALLED: dict[str, str] = {
    "identifier": "identifier",
    "date": "date",
    "text": "free text",
    "empty": "empty",
    "drop": "left out",
}


def _values_of(sample: Any, at: int) -> FloatArray:
    column = sample[:, [at]]
    values = (column.toarray() if sp.issparse(column) else np.asarray(column)).ravel()
    return np.unique(values[~np.isnan(values)])


def _words(
    column: PreparedColumn,
    X: Any,
    places: Mapping[str, int],
    others: Mapping[str, OtherColumn],
) -> np.ndarray:
    """The values of a category as they are called in its levels."""
    if column.name in others:
        return others[column.name].values
    value = X[:, [places[column.name]]]
    value = (value.toarray() if sp.issparse(value) else np.asarray(value)).ravel()
    words = np.empty(len(value), dtype=object)
    words[:] = [None if np.isnan(number) else str(number) for number in value]
    return words


def _like(X: Any, values: Any, names: np.ndarray) -> Any:
    """Values as a frame of the library that X is of; as they are if it is none."""
    if frame_columns(X) is None or sp.issparse(values):
        return values
    kind = type(X)
    if kind.__module__.startswith("pandas"):
        return kind(values, columns=names, index=X.index)
    if kind.__module__.startswith("polars"):
        return kind(values, schema=names.tolist(), orient="row")
    return values
