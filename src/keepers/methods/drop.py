"""Columns that need no method to be dropped: repeats of others, and those that tell nothing.

`prune_redundant` leaves out what repeats a better feature of a ranking; `DropCorrelated` needs no
ranking. `DropUninformative` drops constant columns, identifiers and columns of gaps, of any type.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from keepers._protocols import FloatArray, IndexArray
from keepers._tables import as_frame
from keepers._wording import some_of
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.correlation import (
    ColumnCorrelations,
    Correlations,
    PairwiseCorrelations,
    walk_ranking,
)
from keepers.linalg.gaps import observed_columns
from keepers.linalg.moments import CONSTANT_RATIO, ColumnMoments, column_moments
from keepers.linalg.ordering import best_first
from keepers.methods.base import ColumnSelector
from keepers.methods.baselines import VarianceScore
from keepers.methods.parameters import FLAG, check_value, one_of, positive, whole
from keepers.methods.reading import (
    named_table,
    read_table,
    refuse_dask,
    refuse_unrepresentable,
    table_values,
    validate_table,
)
from keepers.tables.objects import (
    array_or_frame,
    frame_columns,
    is_frame,
)
from keepers.tables.table import NamedValues, canonical_sparse

# In fewer rows, values of any column may well all differ.
FEWEST_ROWS = 10
# Texts such as names repeat now and then by mistake; integers that are measured do so as a rule.
SHARE_OF_TEXTS = 0.99
# Up to this number, columns of different integers are identifiers in a table of any width.
FEWEST_COUNTS = 3

Kind = Literal["integer", "real", "text", "other"]


def prune_redundant(
    X: Any, ranking: Any, max_correlation: float = 0.8, *, n_features: int | None = None
) -> IndexArray:
    """Walk down a ranking and leave out every feature too much like one already kept.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    ranking : array of shape (n_features,)
        1 is the best feature: ``ranking_`` of any selector.
    max_correlation : float in (0, 1], default=0.8
        A feature whose correlation with a better kept one exceeds this in size, whichever its
        sign, is left out.
    n_features : int or None, default=None
        Stop once this number is kept; None goes through all.

    Returns
    -------
    array of int
        Columns that are kept, best first. Constant columns are never among them.

    See Also
    --------
    SPCAFS : ``max_correlation`` does the same within a fit, as in every selector.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import prune_redundant
    >>> X = np.array([[0.0, 1.0, 0.1], [1.0, 0.0, 1.0], [2.0, 0.0, 2.1], [3.0, 1.0, 2.9]])
    >>> prune_redundant(X, ranking=[1, 3, 2], max_correlation=0.9)
    array([0, 1])
    """
    hint = "1 leaves nothing out."
    check_value("max_correlation", max_correlation, positive(at_most=1.0, hint=hint))
    if n_features is not None:
        check_value("n_features", n_features, whole())
    refuse_dask(X, "prune_redundant", "it compares features of a table in memory.")
    table = read_table(VarianceScore(), X)  # any selector that takes every kind of table
    ranks = np.asarray(ranking)
    expected = np.arange(1, table.n_features + 1)
    if ranks.shape != expected.shape or not np.array_equal(np.sort(ranks), expected):
        raise ParameterError(
            f"ranking must hold each of 1 (best) to {len(expected)}, the number of columns of X, "
            "exactly once. The attribute ranking_ of a fitted selector does."
        )
    most = table.n_features if n_features is None else n_features
    order = np.argsort(ranks[table.usable])
    walk = walk_ranking(table.correlations(order), order, max_correlation, most=most)
    return np.asarray(table.usable[order[walk.keeps]])


@dataclass(eq=False, repr=False)
class DropCorrelated(ColumnSelector):
    """Drop columns that correlate too much with a better one.

    Goes through the columns from best to worst (see ``representative``). A column is dropped if its
    absolute correlation with a column already kept exceeds ``threshold``. The order of the columns
    in the table decides only between equally good ones: then the first is kept.

    Columns without variation correlate with nothing and stay, as do columns without values; see
    `DropUninformative`. Gaps (NaN) may stay as well: a correlation is that of the rows in which
    both columns have a value.

    Parameters
    ----------
    threshold : float in (0, 1], default=0.95
        Absolute correlation above which the worse of two columns is dropped; 1 drops nothing.
    representative : {"variance", "gaps", "score"}, default="variance"
        Which column is the better one: that of the larger variance, with fewer gaps, or with the
        higher of your ``scores``. Ties go by variance, then to the first.
    scores : array of shape (n_features,) or None, default=None
        A number for every column, higher is better; for representative="score".
    method : {"pearson", "spearman"}, default="pearson"
        The correlation of the values or of their ranks; of ranks only without gaps, and not of a
        sparse matrix.
    min_rows : int, default=3
        Columns with fewer common rows are not compared. From two rows the correlation is always 1
        or -1; with many gaps, ask for more.

    Attributes
    ----------
    kept_instead_ : dict of str to (str, float)
        For each dropped column, best first, the kept one that it is most like among those better
        than itself, and their correlation. Columns without names are x0, x1, ...
    support_ : boolean array of shape (n_features,)
        The columns kept.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    prune_redundant : The same for a ranking that you have.
    DropUninformative : Drops constant columns, identifiers and columns of gaps.

    Notes
    -----
    The columns are compared in blocks: memory grows with the table, not with the square of its
    number of columns. In the worst case, where nothing is dropped, every pair is compared once.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import DropCorrelated
    >>> rng = np.random.default_rng(0)
    >>> length, width = rng.normal(size=(2, 50))
    >>> X = np.column_stack([length, width, 2.54 * length])
    >>> step = DropCorrelated(0.9).fit(X)
    >>> step.transform(X).shape
    (50, 2)
    >>> for name, (kept, r) in step.kept_instead_.items():
    ...     print(f"{name}: {kept} was kept, r = {r:.2f}")
    x0: x2 was kept, r = 1.00
    """

    threshold: float = 0.95
    _: KW_ONLY
    representative: Literal["variance", "gaps", "score"] = "variance"
    scores: ArrayLike | None = None
    method: Literal["pearson", "spearman"] = "pearson"
    min_rows: int = 3

    why_not_dask = "it compares columns of a table in memory."

    @property
    def why_not_sparse(self) -> str | None:
        """Ranks of a sparse matrix are not sparse."""
        if self.method == "pearson":
            return None
        return "method='spearman' ranks all rows, and only method='pearson' leaves zeros out."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = self.method == "pearson"
        return tags

    parameter_rules: ClassVar = {
        "threshold": positive(at_most=1.0),
        "representative": one_of("variance", "gaps", "score"),
        "method": one_of("pearson", "spearman"),
        "min_rows": whole(at_least=3, hint="Two rows always correlate."),
    }

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if (self.representative == "score") == (self.scores is None):
            found = "None" if self.scores is None else f"scores and {self.representative!r}"
            raise ParameterError(
                f"scores and representative='score' go together; got {found}. Give both, or "
                "neither."
            )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns that repeat a better one.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, Table or AnnData object of numbers; NaN is
            a gap.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        with self._fitting():
            self._fit(validate_table(self, named_table(X)))
        return self

    def _fit(self, X: Any) -> None:
        n_rows, n_columns = X.shape
        has_gaps = bool(np.isnan(X.data if sp.issparse(X) else X).any())
        if has_gaps and sp.issparse(X):
            raise DataError(
                "DropCorrelated cannot compare columns of a sparse matrix with NaN. Pass "
                "X.toarray() if it fits in memory, or fill the gaps."
            )
        n_values = np.full(n_columns, n_rows, dtype=np.intp)
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a sentence
            if has_gaps:  # as if all rows had values like those that are there
                seen = observed_columns(X.astype(np.float64, copy=False))
                moments = ColumnMoments(n_rows, seen.means, n_rows * seen.scales**2)
                n_values = seen.counts
            else:
                moments = column_moments(X)
        refuse_unrepresentable(None if has_gaps else X, moments)
        by = {"variance": moments.variance, "gaps": n_values.astype(np.float64)}
        goodness = self._scores(n_columns) if self.scores is not None else by[self.representative]
        order = best_first(goodness, moments.variance)
        order = order[~moments.constant[order] & (n_values[order] >= self.min_rows)]
        columns = np.sort(order)  # only these are compared, by their place among them
        correlations = self._correlations(X[:, columns], moments.subset(columns), has_gaps)
        places = np.searchsorted(columns, order)
        walk = walk_ranking(correlations, places, float(self.threshold), most=len(order))
        self.support_ = np.ones(n_columns, dtype=bool)
        self.support_[order[~walk.keeps]] = False
        names = self._names_of_columns()
        self.kept_instead_ = {
            # Rounding takes a correlation past 1.
            str(names[order[at]]): (
                str(names[columns[walk.instead[at]]]),
                float(np.clip(walk.r[at], -1.0, 1.0)),
            )
            for at in np.flatnonzero(~walk.keeps)
        }

    def _scores(self, n_columns: int) -> FloatArray:
        try:
            scores = np.asarray(self.scores, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.empty(0)
        if scores.shape != (n_columns,) or not np.all(np.isfinite(scores)):
            raise ParameterError(
                f"scores must be a finite number for each of the {n_columns} columns; got "
                f"{shorten(self.scores)}."
            )
        return scores

    def _correlations(self, X: Any, moments: ColumnMoments, has_gaps: bool) -> Correlations:
        if has_gaps:
            return PairwiseCorrelations.of(X, int(self.min_rows))
        if self.method == "spearman":
            X = rankdata(X, axis=0)
            moments = column_moments(X)
        if sp.issparse(X):
            X = sp.csc_array(X, dtype=np.float64)
        return ColumnCorrelations(X, moments)

    def to_frame(self) -> Any:
        """The dropped columns as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            The columns ``feature``, ``kept_instead`` and ``r``; one row for each dropped column.
        """
        check_is_fitted(self)
        rows = [
            {"feature": name, "kept_instead": kept, "r": r}
            for name, (kept, r) in self.kept_instead_.items()
        ]
        return as_frame(rows, ["feature", "kept_instead", "r"])


@dataclass(eq=False, repr=False)
class DropUninformative(ColumnSelector):
    """Drop constant columns, identifiers and columns of gaps.

    The other columns keep their values and types, and a data frame stays a data frame. Text, dates
    and categories are welcome.

    Parameters
    ----------
    constant : bool, default=True
        Drop columns with a single value, gaps aside.
    all_distinct : bool, default=True
        Drop identifiers: columns of integers that all differ, of text that differs in at least 99
        of 100 rows, and integers that rise or fall by equal steps from row to row. Measurements
        with decimals and dates are not identifiers; with fewer than 10 rows nothing is. Where
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
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    parameter_rules: ClassVar = {
        "constant": FLAG,
        "all_distinct": FLAG,
        "max_missing": positive(at_most=1.0, zero=True),
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns that carry no information about the samples.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, Table or AnnData object.
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
        names = X.names if isinstance(X, NamedValues) else None
        X = array_or_frame(table_values(X))
        if is_frame(X):
            frame = [column for _, column in frame_columns(X)]
            validate_data(self, X, skip_check_array=True)
            if X.shape[0] < 2 or not frame:
                raise DataError(
                    "A table needs at least two rows and a column; X has shape "
                    f"{X.shape[0]} x {len(frame)}."
                )
            return X.shape[0], (_present(column.drop_nulls().to_numpy()) for column in frame)
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
        for at, column in enumerate(columns):
            kind, values = _kind_of(column)
            n_numeric += kind in ("integer", "real")
            reason = self._reason(kind, values, n_rows)
            if reason:
                found[at] = reason
            elif self.all_distinct and kind == "integer" and _share_that_differs(values) == 1.0:
                all_differ.append(at)
        if len(all_differ) < FEWEST_COUNTS or len(all_differ) <= n_numeric / 2:
            for at in all_differ:
                found[at] = "All its values are different integers, like an identifier."
        return dict(sorted(found.items()))

    def _reason(self, kind: Kind, values: NDArray[Any], n_rows: int) -> str:
        """The reason to drop a column, whatever the others are; empty if there is none."""
        missing = 1.0 - len(values) / n_rows
        if missing > self.max_missing:
            return f"{missing:.0%} of its values are missing, more than {self.max_missing:.0%}."
        if self.constant and not len(values):
            return "It has no value."
        if self.constant and _is_constant(values):
            return f"All its values are the same, {shorten(str(values[0]))}."
        if self.all_distinct and kind == "text" and _share_that_differs(values) >= SHARE_OF_TEXTS:
            return "Its text differs in (nearly) every row, as names do."
        if self.all_distinct and kind == "integer" and (step := _equal_step(values)):
            return f"It counts the rows, in steps of {step}."
        return ""


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
        there = [not _is_gap(value) for value in values]
        return values[np.array(there, dtype=bool)]
    return values


def _is_gap(value: Any) -> bool:
    """True for None, NaN, NaT and pandas' NA."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _kind_of(values: NDArray[Any]) -> tuple[Kind, NDArray[Any]]:
    """The kind of values without gaps; numbers among Python objects become an array."""
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
    if values.dtype.kind != "f":
        return _count_distinct(values) <= 1
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        return bool(low == high)
    return bool(high / 2 - low / 2 <= CONSTANT_RATIO * max(abs(low), abs(high)))


def _share_that_differs(values: NDArray[Any]) -> float:
    """Different values over all values; 0 if there are too few rows to judge."""
    return _count_distinct(values) / len(values) if len(values) >= FEWEST_ROWS else 0.0


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
    if len(values) < FEWEST_ROWS:
        return 0
    step = int(values[1]) - int(values[0])
    if int(values[-1]) - int(values[0]) != step * (len(values) - 1):  # nearly always, at once
        return 0
    steps = {int(after) - int(before) for before, after in pairwise(values)}
    return step if steps == {step} else 0
