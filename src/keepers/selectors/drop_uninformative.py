"""Columns that cannot tell samples apart, or only tell which sample it is."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from keepers.data.columns import is_gap
from keepers.data.in_memory import (
    array_or_frame,
    canonical_sparse,
    frame_columns,
    is_anndata,
    is_dask,
    refuse_duplicate_names,
)
from keepers.data.table import LabelledTable, NamedValues
from keepers.data.wording import some_of
from keepers.exceptions import DataError, shorten
from keepers.linalg.moments import CONSTANT_RATIO
from keepers.selectors.fitted_table import named_table, refuse_dask, table_values
from keepers.selectors.parameters import check_flag, check_positive
from keepers.selectors.ranking import ColumnSelector

# In fewer rows, values of any column may well all differ.
FEWEST_ROWS = 10
# Texts such as names repeat now and then by mistake; integers that are measured do so as a rule.
SHARE_OF_TEXTS = 0.99
# Up to so many columns of different integers are identifiers in a table of any width.
FEWEST_COUNTS = 3

Kind = Literal["integer", "real", "text", "other"]


@dataclass(eq=False, repr=False)
class DropUninformative(ColumnSelector):
    """Drop constant columns, identifiers and columns of gaps.

    Columns are only dropped: the values of the others are handed on as they are, and a data frame
    remains a data frame of the same library with the same types. Text, dates and categories are
    welcome.

    Parameters
    ----------
    constant : bool, default=True
        Drop columns with a single value, gaps aside.
    all_distinct : bool, default=True
        Drop identifiers: columns of integers that all differ, of text that differs in at least 99
        of 100 rows, and integers that rise or fall by equal steps from row to row. Measurements
        with decimals are no identifiers, nor are dates; nothing is one in fewer than 10 rows. Where
        more than half of the numeric columns (and at least three) hold different integers, the
        table is taken for one of counts, and only those with equal steps are dropped.
    max_missing : float in [0, 1], default=0.5
        Drop columns in which a larger share of the values is missing; 1 drops none for that.

    Attributes
    ----------
    reasons_ : dict of str to str
        For each dropped column the reason, a sentence. Columns without names are x0, x1, ...
    support_ : boolean array of shape (n_features,)
        The columns kept.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    DropCorrelated : Drops columns that repeat others.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import DropUninformative
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.arange(20), rng.normal(size=20), np.full(20, 7.0)])
    >>> step = DropUninformative().fit(X)
    >>> step.reasons_
    {'x0': 'It counts the rows, in steps of 1.', 'x2': "All its values are the same, '7.0'."}
    >>> step.transform(X).shape
    (20, 1)
    """

    _: KW_ONLY
    constant: bool = True
    all_distinct: bool = True
    max_missing: float = 0.5

    def __sklearn_tags__(self) -> Tags:
        """Every kind of value is welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        check_flag("constant", self.constant)
        check_flag("all_distinct", self.all_distinct)
        check_positive("max_missing", self.max_missing, at_most=1.0, zero=True)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns that carry no information about the samples.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, LabelledTable or AnnData object.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        with self._fitting():
            X = named_table(X)
            reason = "it looks at columns of a table in memory."
            refuse_dask(table_values(X), type(self).__name__, reason)
            n_rows, columns = self._read(X)
            reasons = self._reasons(n_rows, columns)
            if len(reasons) == self.n_features_in_:
                raise DataError(
                    "At least one column must carry information; every column would be dropped: "
                    f"{some_of([f'{at} ({reasons[at]})' for at in reasons], 3)} Check that samples "
                    "are rows, or switch a rule off."
                )
            self.support_ = np.ones(self.n_features_in_, dtype=bool)
            self.support_[list(reasons)] = False
            names = self._names_of_columns()
            self.reasons_ = {str(names[at]): reason for at, reason in reasons.items()}
        return self

    def _read(self, X: Any) -> tuple[int, Iterator[NDArray[Any]]]:
        """The number of rows, and the values of one column after the other without its gaps."""
        names = X.feature_names if isinstance(X, NamedValues) else None
        X = array_or_frame(table_values(X))
        frame = frame_columns(X)
        if frame is not None:
            refuse_duplicate_names(frame)
            validate_data(self, X, skip_check_array=True)
            if X.shape[0] < 2 or not frame:
                raise DataError(
                    "A table needs at least two rows and a column; X has shape "
                    f"{X.shape[0]} x {len(frame)}."
                )
            return X.shape[0], (_present_of_series(column.values()) for column in frame)
        if sp.issparse(X):
            X = canonical_sparse(X)
        X = validate_data(
            self,
            X,
            dtype=None,
            accept_sparse=("csr", "csc"),
            ensure_all_finite=False,
            ensure_min_samples=2,
        )
        if names is not None:
            self.feature_names_in_ = names
        return X.shape[0], _columns_of_array(X)

    def _reasons(self, n_rows: int, columns: Iterator[NDArray[Any]]) -> dict[int, str]:
        found: dict[int, str] = {}
        all_differ, n_numeric = [], 0
        for at, values in enumerate(columns):
            share = 1.0 - len(values) / n_rows
            kind, values = _kind_of(values)
            n_numeric += kind in ("integer", "real")
            if share > self.max_missing:
                found[at] = (
                    f"{share:.0%} of its values are missing, more than {self.max_missing:.0%}."
                )
            elif self.constant and _is_constant(values):
                found[at] = (
                    f"All its values are the same, {shorten(str(values[0]))}."
                    if len(values)
                    else "It has no value."
                )
            elif self.all_distinct and len(values) >= FEWEST_ROWS:
                if kind == "text" and _differ(values, SHARE_OF_TEXTS):
                    found[at] = "It has another text in (nearly) every row, as a name has."
                elif kind == "integer" and (step := _equal_step(values)):
                    found[at] = f"It counts the rows, in steps of {step}."
                elif kind == "integer" and _differ(values):
                    all_differ.append(at)
        if len(all_differ) < FEWEST_COUNTS or len(all_differ) <= n_numeric / 2:
            for at in all_differ:
                found[at] = "All its values are different integers, as those of an identifier."
        return dict(sorted(found.items()))

    def transform(self, X: Any) -> Any:
        """The columns kept of X, with their types.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            A table with the columns of the fit.

        Returns
        -------
        array, data frame, sparse matrix, AnnData object or Dask collection
            The kept columns, in the order of X. A data frame in gives a data frame out, without
            ``set_output``.
        """
        check_is_fitted(self)
        if isinstance(X, LabelledTable) or is_anndata(X) or is_dask(X):
            return super().transform(X)
        X = array_or_frame(X)
        if frame_columns(X) is None:
            return super().transform(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        columns = self.get_support(indices=True).tolist()
        if hasattr(X, "iloc"):
            return X.iloc[:, columns]
        return X.select(columns) if hasattr(X, "column_names") else X[:, columns]


def _present_of_series(series: Any) -> NDArray[Any]:
    """The values of a column of pandas, polars or Arrow, without gaps."""
    for name in ("dropna", "drop_nulls", "drop_null"):
        if hasattr(series, name):
            series = getattr(series, name)()
            break
    return _present(series.to_numpy())


def _columns_of_array(X: Any) -> Iterator[NDArray[Any]]:
    if not sp.issparse(X):
        yield from (_present(X[:, at]) for at in range(X.shape[1]))
        return
    X = X.tocsc()
    for at in range(X.shape[1]):
        stored = X.data[X.indptr[at] : X.indptr[at + 1]]
        n_zeros = X.shape[0] - len(stored)
        if n_zeros <= 1:  # the order of the rows may matter
            yield _present(X[:, [at]].toarray().ravel())
        else:
            yield np.concatenate([_present(stored), np.zeros(n_zeros, dtype=X.dtype)])


def _present(values: NDArray[Any]) -> NDArray[Any]:
    """Without gaps; empty text is a value."""
    if values.dtype.kind == "f":
        return values[~np.isnan(values)]
    if values.dtype.kind in "mM":
        return values[~np.isnat(values)]
    if values.dtype.kind == "O":
        there = [isinstance(value, str) or not is_gap(value) for value in values]
        return values[np.array(there, dtype=bool)]
    return values


def _kind_of(values: NDArray[Any]) -> tuple[Kind, NDArray[Any]]:
    """What values without gaps are; numbers among Python objects as an array of numbers."""
    kind = values.dtype.kind
    if kind == "O":
        types = set(map(type, values))
        if all(issubclass(found, (str, bytes)) for found in types):
            return _kind_of_texts(values), values
        if any(issubclass(found, (bool, np.bool_)) for found in types):
            return "other", values
        if all(issubclass(found, Integral) for found in types):
            return "integer", values
        if not all(issubclass(found, (Real, Decimal)) for found in types):
            return "other", values
        values = values.astype(np.float64)
        kind = "f"
    if kind == "f":
        whole = np.isfinite(values) & (values == np.floor(values))
        return ("integer" if whole.all() else "real"), values
    kinds: dict[str, Kind] = {"i": "integer", "u": "integer"}
    return (_kind_of_texts(values) if kind in "USTB" else kinds.get(kind, "other")), values


def _kind_of_texts(values: NDArray[Any]) -> Kind:
    """Text, unless it spells measurements with decimals."""
    try:
        numbers = np.array([float(value) for value in values])
    except ValueError:
        return "text"
    return "text" if np.all(numbers == np.floor(numbers)) else "other"


def _is_constant(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f" or not len(values):
        return _count_distinct(values) <= 1
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        return bool(low == high)
    return bool(high / 2 - low / 2 <= CONSTANT_RATIO * max(abs(low), abs(high)))


def _differ(values: NDArray[Any], share: float = 1.0) -> bool:
    return _count_distinct(values) >= share * len(values)


def _count_distinct(values: NDArray[Any]) -> int:
    """How many values differ; those that cannot be compared, such as lists, count as different."""
    if values.dtype.kind != "O":
        return len(np.unique(values))
    try:
        return len(set(values))
    except TypeError:
        return len(values)


def _equal_step(values: NDArray[Any]) -> int:
    """The step between neighbours, if it is the same everywhere; else 0."""
    exact = [int(value) for value in (values[0], values[1], values[-1])]
    step = exact[1] - exact[0]
    if exact[2] - exact[0] != step * (len(values) - 1):  # in nearly every column, at once
        return 0
    steps = {int(after) - int(before) for before, after in pairwise(values)}
    return step if steps == {step} else 0
