"""Common parts of all selectors: the kept columns, a ranking of all, and its first k."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from textwrap import indent
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pyarrow_table
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable
from keepers.blocks.dask import selected_columns
from keepers.exceptions import DataError, shorten
from keepers.linalg.correlation import walk_ranking
from keepers.linalg.ordering import best_first
from keepers.linalg.scatter import ColumnMoments
from keepers.methods.parameters import (
    FEATURE_COUNT,
    FEATURES,
    SEED,
    FeatureCount,
    Rule,
    check_rules,
    check_value,
    control_of,
    count_features,
    expected_width,
    is_real,
    is_whole,
    memory_budget,
    one_of,
    positive,
    whole,
)
from keepers.methods.reading import (
    FittedTable,
    MemoryTable,
    fills_gaps,
    is_plain,
    named_table,
    naming_gaps,
    open_blocks,
    read_any_table,
    read_blocks,
    read_table,
    refuse_other_columns,
    sound_table,
    table_values,
    validate,
)
from keepers.tables.objects import (
    as_frame,
    comes_in_blocks,
    is_anndata,
    is_dask,
    is_frame,
)
from keepers.tables.table import Table, as_n_bytes

if TYPE_CHECKING:
    from keepers.proofs.certify import Certificate

# With max_correlation, the walk down the ranking ends once this number of unlike features, or the
# wanted number, was found: going on to the end takes time with the square of their number.
FEWEST_COMPARED = 2000

SHARED_DOCS = {
    "n_features_to_select": """n_features_to_select : int, float in (0, 1] or None, default=None
    Number or share of features to keep; None keeps half. It does not influence the fit:
    ``top(k)`` gives the best k for any k afterwards.""",
    "n_features_refit": """n_features_to_select : int, float in (0, 1] or None, default=None
    Number or share of features to keep; None keeps half. The ranking depends on it: fit again
    for another number.""",
    "max_correlation": """max_correlation : float in (0, 1] or None, default=None
    Features whose absolute correlation with a better one exceeds this rank after all others.
    None ranks by score alone.""",
    "random_state": """random_state : int, RandomState or None, default=None
    Seeds the eigensolver; it does not change the scores beyond rounding.""",
    "n_neighbors": """n_neighbors : int, default=5
    Number of neighbours of each sample. An edge joins two samples if either is a neighbour of the
    other. A number above n_samples - 1 is lowered, with a warning.""",
    "bandwidth": """bandwidth : float or None, default=None
    The t of the heat kernel exp(-d^2 / (2 t^2)), in the unit of the distances d. None uses the
    mean distance between samples (of 3000 random samples if there are more).""",
    "scaling": """scaling : float in [0, 1], default=0.0
    Every feature is divided by its standard deviation to this power before the fit. 0 leaves the
    values as they are, as in the paper. 1 gives all features the same variance, so only their
    correlations count. ``mean_`` and ``transform`` keep the units of X.""",
    "missing": """missing : {"error", "mean", "median", "model"}, default="error"
    What to do about NaN: raise an error, or fill the gaps for the fit with the mean or the median
    of the column, or with an estimate from the other columns ("model"). Columns without any value
    rank last, like constant ones. ``transform`` does not fill gaps. Tables that are read in blocks
    must not have gaps.""",
    "memory_limit": """memory_limit : int, str or None, default=None
    Memory that ``fit_blocks`` and Dask collections may take, in bytes or as "500MB", "4GB"; None is
    a quarter of the machine's. The route follows from it.""",
    "fitted": """ranking_ : array of shape (n_features,)
    1 is the best feature. Ties go by variance, then by index; constant columns come last.
support_ : boolean array of shape (n_features,)
    True for the kept features.
n_features_to_select_ : int
    Number of kept features.
n_features_in_ : int
    Number of features seen in ``fit``.
feature_names_in_ : array of shape (n_features,)
    Column names, if X was a data frame with string columns.""",
    "run": """objective_ : array
    The objective after every step.
n_iter_ : int
    Number of steps.
converged_ : bool
    Whether the iteration converged within ``max_iter`` steps.""",
    "picks": """n_picked_ : int
    Number of features picked: fewer than requested if they already explain everything.
explained_share_ : array of shape (``n_picked_``,)
    Share of the variance that the first 1, 2, ... picks explain (before ``max_correlation``).
best_share_ : array of shape (``n_picked_``,)
    The share that the same number of principal components explains: the upper limit.""",
    "seen": """n_components_ : int
    The number of components used.
mean_ : array of shape (n_features,)
    Column means.
var_ : array of shape (n_features,)
    Column variances, divided by n; 0 for constant columns.
n_samples_seen_ : int
    Number of rows.
n_passes_ : int
    How many times the table was read, after ``fit_blocks`` and for Dask collections.
route_ : str
    What was held in memory for it: "scatter" (the d x d scatter), "memory" (the rows) or
    "stream" (a few d x m blocks, and the scatter of some columns).""",
}
"""Parts of docstrings: a line "{fitted}" of a class stands for the part of this name."""


@dataclass(frozen=True)
class TopFeatures(AsTable):
    """The best features of a fitted selector, best first."""

    indices: IndexArray
    """Columns of the table."""
    names: np.ndarray
    """Their names; x0, x1, ... where the table has none."""
    scores: FloatArray
    """Their scores; higher is better."""

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    def rows(self) -> list[dict[str, Any]]:
        """The table, one dict per feature.

        Returns
        -------
        list of dict
            ``rank``, ``feature`` and ``score``.
        """
        return [
            {"rank": rank, "feature": str(name), "score": float(score)}
            for rank, (name, score) in enumerate(zip(self.names, self.scores, strict=True), 1)
        ]

    def __str__(self) -> str:
        width = max([7, *(len(str(name)) for name in self.names)])
        rows = [f"rank  {'feature':<{width}}  score"]
        rows += [
            "{rank:>4}  {feature:<{width}}  {score:.4g}".format(**row, width=width)
            for row in self.rows()
        ]
        return "\n".join(rows)


@dataclass(frozen=True)
class FitNotes:
    """The report of a method about its fit; parts that do not apply are empty."""

    summary: str | None = None
    """The findings, in sentences."""
    doubts: tuple[str, ...] = ()
    """Reasons against the result, one sentence each."""
    how_sure: tuple[str, ...] = ()
    """Reasons for the result, one sentence each."""
    how_many: Literal["asked", "chosen", "half"] = "asked"
    """The origin of the number of kept features: the user, the method, or a default."""
    n_rows_used: int | None = None
    """Rows that it looked at, if not all."""
    n_observed: IndexArray | None = None
    """Values of each column that it looked at, where it leaves out gaps."""
    moments: ColumnMoments | None = None
    """Means and variances of the columns, if it measured them."""
    structure_found: bool | None = None
    """True if a feature carries structure; None if it does not test that."""
    carries_structure: BoolArray | None = None
    alone: FloatArray | None = None
    """Scores before features were discounted for resembling better ones."""
    nearest_better: tuple[IndexArray, FloatArray] | None = None
    """The better feature that each resembles most (-1: not known), and their correlation."""
    tried: tuple[IndexArray, FloatArray] | None = None
    """Numbers of features that were tried, and the share of neighbours that each preserves."""
    by_chance: FloatArray | None = None
    """The share of neighbours that random sets preserve, as large as the kept one."""
    halves: Any = None
    """A `HalfSampleStability`."""
    active: BoolArray | None = None
    """Features with active rows of W."""
    max_correlation: float | None = None
    """The limit beyond which features are ranked behind the others."""


class ColumnSelector(SelectorMixin, BaseEstimator):
    """A transformer that keeps some of the columns.

    A subclass fits inside ``_fitting`` and sets ``support_``.
    """

    support_: BoolArray
    parameter_rules: ClassVar[Mapping[str, Rule]] = {}
    """The rule of each parameter; those of a class are added to those of its parents."""

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Check the parameters first; nothing fitted before or half fitted stays behind."""
        self._forget()
        try:
            self.check_parameters()
            yield
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        """Drop everything learned from data."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data; ``fit`` calls it first.

        Raises
        ------
        ParameterError
            Names the rule, the value and what to give instead.
        """
        rules: dict[str, Rule] = {}
        for parent in reversed(type(self).__mro__):
            rules.update(vars(parent).get("parameter_rules", {}))
        check_rules(self, {name: rule for name, rule in rules.items() if hasattr(self, name)})
        limit = getattr(self, "memory_limit", None)
        if limit is not None:
            as_n_bytes(limit, "memory_limit")

    def __sklearn_is_fitted__(self) -> bool:
        """True if it is known which columns are kept."""
        return hasattr(self, "support_")

    def transform(self, X: Any) -> Any:
        """The columns kept of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, Table, AnnData object or Dask collection
            with the columns of the table fitted; also a lazy frame of polars, a relation of
            DuckDB, a table or reader of pyarrow.

        Returns
        -------
        array, data frame, sparse matrix, AnnData object or Dask collection
            The kept columns, in the order of X, with their values as they are: if the selector
            fills gaps (``missing``), X may have gaps, and they stay. Dropped columns of a
            frame may have gaps in any case. A frame of pandas or polars stays one if the fit knew
            the names; of other tables with columns an array is returned. Columns of a Dask
            collection are picked lazily, those of an AnnData object as a view of it.
        """
        columns = self.get_support(indices=True)
        if isinstance(X, Table):
            if getattr(self, "preparer_", None) is None:
                return validate(self, X, reset=False, fewest=1)[:, columns]
            refuse_other_columns(self, len(X.columns), X.columns)
            return X.select(np.array(X.columns, dtype=object)[columns])
        if is_anndata(X):
            refuse_other_columns(self, X.n_vars, X.var_names)
            return X[:, columns]
        if is_dask(X):
            refuse_other_columns(self, X.shape[1], getattr(X, "columns", None))
            return selected_columns(X, columns)
        X, tags = sound_table(X), get_tags(self).input_tags
        takes_text = bool(tags.string)
        finite: Any = False if takes_text else "allow-nan" if tags.allow_nan else True
        rules = {"dtype": None, "ensure_all_finite": finite}
        if not is_frame(X):
            with naming_gaps(self, X):
                X = validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), **rules)
            return X[:, columns]
        validate_data(self, X, reset=False, skip_check_array=True)
        kept = nw.from_native(X, eager_only=True)[:, columns.tolist()].to_native()
        if takes_text:
            return kept
        with naming_gaps(self, kept):
            values = check_array(kept, **rules)
        # scikit-learn's set_output cannot take an Arrow table.
        is_plain_table = is_pyarrow_table(kept) or not hasattr(self, "feature_names_in_")
        return values if is_plain_table else kept

    def fit_transform(self, X: Any, y: Any = None, **settings: Any) -> Any:
        """Fit, and return the columns kept of X, which is read once: see `fit` and `transform`."""
        return super().fit_transform(as_frame(X), y, **settings)

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def _names_of_columns(self) -> np.ndarray:
        """Names of all columns of the fit; x0, x1, ... where the table had none."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = np.array([f"x{i}" for i in range(self.n_features_in_)], dtype=object)
        return np.asarray(names)


class RankingSelector(ColumnSelector):
    """A selector that scores every feature and keeps the best.

    A method is a subclass that implements `score_features` and declares ``parameter_rules``.
    ``fit`` checks the parameters, reads the table, has its features scored and stores the ranking;
    nothing fitted stays behind if it is interrupted.

    See Also
    --------
    keepers.extending : Everything that a method of your own needs.
    """

    n_features_to_select: FeatureCount
    """A parameter of every selector."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Fill in the parts of the docstring that many methods share."""
        super().__init_subclass__(**options)
        if cls.__doc__ is not None:  # it is None with python -OO
            for name, part in SHARED_DOCS.items():
                filled = indent(part, " " * 4)
                cls.__doc__ = cls.__doc__.replace(f"    {{{name}}}\n", f"{filled}\n")

    parameter_rules: ClassVar[Mapping[str, Rule]] = {
        "n_features_to_select": FEATURE_COUNT,
        "max_correlation": positive(at_most=1.0) | one_of(None, hint="None skips no feature."),
        "missing": one_of("error", "mean", "median", "model"),
        "random_state": SEED,
        "must_keep": FEATURES | one_of(None),
        "never_keep": FEATURES | one_of(None),
    }

    why_not_sparse: ClassVar[str | None] = None
    """Set by methods that cannot take a sparse matrix: the reason, as a clause."""

    why_not_dask: ClassVar[str] = "it compares every sample with every other one."
    """Why chunks on several workers will not do, as a clause."""

    needs_scatter_only: ClassVar[bool] = False
    """True for methods that also read tables in blocks, by their scatter."""
    depends_on_k: bool = False
    """True for methods whose ranking depends on ``n_features_to_select``: each k needs its own
    fit."""
    picks_one_by_one: ClassVar[bool] = False
    """True if the first features of a fit for many are those of a fit for fewer."""
    fits_each_together: ClassVar[bool] = False
    """True if a method `fit_each` fits several numbers of features in the time of one."""
    seeks_variance: ClassVar[bool] = False
    """True if it looks for features that hold much variance: then their certificate is shown."""

    looks_for: ClassVar[str] = ""
    """The aim of the method, after "It looks for"; a report begins with it."""
    score_means: ClassVar[str] = ""
    """The meaning of a score, as a clause."""
    max_correlation: float | None = None
    """A parameter of every selector but `AllFeatures`."""
    missing: str = "error"
    """A parameter of selectors that can fill gaps."""

    @property
    def column_power(self) -> float:
        """Power of the standard deviation that it divides columns by; 1: all count the same."""
        return float(getattr(self, "scaling", 0.0))

    def fit_notes(self) -> FitNotes:
        """Report the fit, for the terminal and the HTML report.

        Returns
        -------
        FitNotes
            Methods fill in what applies to them.
        """
        doubts: tuple[str, ...] = ()
        if vars(self).get("converged_") is False:
            doubts = ("The fit had not converged when it reached the largest number of steps.",)
        how_many: Any = "half" if self.n_features_to_select is None else "asked"
        return FitNotes(doubts=doubts, how_many=how_many, max_correlation=self.max_correlation)

    def __sklearn_tags__(self) -> Tags:
        """CSR and CSC are welcome, unless the method gives a reason; NaN if it fills gaps."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = fills_gaps(self)
        tags.input_tags.sparse = self.why_not_sparse is None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Rank the features of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, Table or AnnData object: one row per sample,
            one column per feature. `keepers.datasets.open_table` returns a `Table`, whose labels
            are not used. The X of an AnnData object is used.
        y : ignored
            Present for API consistency; no method uses labels.

        Returns
        -------
        self : object
            The fitted selector.
        """
        with self._fitting():
            self._fit(named_table(X))
        return self

    def _fit(self, X: Any) -> None:
        is_other = self.needs_scatter_only and not is_plain(values := table_values(X))
        if is_other and comes_in_blocks(values):
            self._fit_blocks(X)
        else:
            self._fit_table(read_table(self, X))

    def _fit_blocks(self, X: Any) -> None:
        raise NotImplementedError

    def _fit_table(self, table: Any) -> None:
        # Raises before any work. A method may depend on it.
        self.n_features_to_select_ = count_features(self.n_features_to_select, table.n_features)
        self._store_ranking(self.score_features(table), table)

    def score_features(self, table: MemoryTable) -> FloatArray:
        """Score every feature of a table; every method implements this.

        Parameters
        ----------
        table : MemoryTable
            The columns that vary, with their moments. ``n_features_to_select_`` is set.

        Returns
        -------
        array of shape (n_features,)
            Finite numbers, higher is better. ``table.to_all_columns`` adds the columns that do not
            vary.
        """
        raise NotImplementedError

    def _store_ranking(self, scores: FloatArray, table: FittedTable) -> None:
        """Set ``scores_``, ``ranking_`` and ``support_``.

        Scores that agree to rounding are ties: they go by variance, then by index. Constant columns
        come last.
        """
        self.scores_ = scores = self._sound_scores(scores, table)
        order = best_first(scores, table.variances)
        order = order[np.argsort(table.unusable[order], kind="stable")]
        self._store_order(order, table)

    def _sound_scores(self, scores: Any, table: FittedTable) -> FloatArray:
        """The scores as an array; raises unless they are a finite number for every column."""
        found, name = np.asarray(scores), type(self).__name__
        if found.shape != (table.n_features,) or found.dtype.kind not in "biuf":
            raise DataError(
                f"{name} must give {table.n_features} scores, a real number for every column of X; "
                f"got an array of shape {found.shape} and type {found.dtype}. "
                "table.to_all_columns(scores) adds the columns that do not vary."
            )
        wrong = np.flatnonzero(~np.isfinite(found))
        if len(wrong):
            raise DataError(
                f"The scores of {name} must be finite; {len(wrong)} are not: that of column "
                f"{shorten(str(self._names_of_columns()[wrong[0]]))} is {found[wrong[0]]}. Give "
                "features that cannot be scored a number below all others."
            )
        return found

    def _store_order(
        self,
        order: IndexArray,
        table: FittedTable,
        always: BoolArray | None = None,
        never: BoolArray | None = None,
    ) -> None:
        """Set ``ranking_`` and ``support_`` from the columns in order, best first.

        With ``max_correlation``, features too much like a better one go behind the others, unless
        they are marked in ``always``; constant columns, and those marked in ``never``, stay last.
        """
        if self.max_correlation is not None:
            compared = ~table.unusable if never is None else ~(table.unusable | never)
            order = self._unlike_first(order, table, compared, always)
        ranking = np.empty(len(order), dtype=np.intp)
        ranking[order] = np.arange(1, len(order) + 1)
        self.support_ = ranking <= self.n_features_to_select_
        self.ranking_ = ranking

    def _unlike_first(
        self, order: IndexArray, table: FittedTable, compared: BoolArray, always: BoolArray | None
    ) -> IndexArray:
        always = np.zeros(table.n_features, dtype=bool) if always is None else always
        position = np.full(table.n_features, -1)
        position[table.usable] = np.arange(len(table.usable))
        walk = order[compared[order]]
        places = position[walk]
        keeps = walk_ranking(
            table.correlations(places),
            places,
            float(self.max_correlation or 1.0),
            most=max(self.n_features_to_select_, FEWEST_COMPARED),
            always=always[table.usable],
        ).keeps
        unlike_first = np.concatenate([walk[keeps], walk[~keeps], order[~compared[order]]])
        return np.concatenate([order[always[order]], unlike_first[~always[unlike_first]]])

    def random_generator(self) -> np.random.Generator:
        """The random numbers of one fit, from ``random_state``.

        Returns
        -------
        numpy.random.Generator
            The same at every call for an integer ``random_state``.
        """
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def top(self, k: int | float | None = None) -> TopFeatures:
        """The k best features, for any k; nothing is refitted.

        Parameters
        ----------
        k : int, float in (0, 1] or None
            Number of features, or share of those that may be kept. None: the number that the
            selector keeps.

        Returns
        -------
        TopFeatures
            ``indices``, ``names`` and ``scores``, best first.
        """
        check_is_fitted(self)
        check_value("k", k, FEATURE_COUNT)
        count = self.n_features_to_select_ if k is None else self._count_top(k)
        indices = np.argsort(self.ranking_)[:count]
        return TopFeatures(indices, self._names_of_columns()[indices], self.scores_[indices])

    def _count_top(self, k: Any) -> int:
        return control_of(self, len(self.scores_)).count(k, "k")

    def certificate(
        self,
        X: Any,
        k: int | float | None = None,
        n_components: int | float | str | None = None,
        **settings: Any,
    ) -> "Certificate":
        """Prove how close the best k features are to the k features that hold the most variance.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The table of the fit, or another one with its columns; or a path, blocks or Dask
            collection, as `certify` takes them.
        k : int, float in (0, 1] or None, default=None
            Number or share of features, as in `top`.
        n_components : int, float in (0, 1), "auto" or None, default=None
            Number of components. None uses the number of the fit (``n_components_``), at most k, or
            "auto" if the method has no components.
        **settings
            Other settings of `certify`. ``scaling`` and ``missing`` default to those of the
            selector, because the certificate is about the table as it was fitted.

        Returns
        -------
        Certificate
            It prints as a sentence.

        Examples
        --------
        >>> from keepers import SPCAFS, datasets
        >>> X = datasets.load("srbct").X
        >>> selector = SPCAFS(40, n_components=3).fit(X)
        >>> selector.certificate(X).share > 0.8
        True
        """
        from keepers.proofs.certify import certify  # it reads tables by a selector

        features = self.top(k).indices
        fitted = getattr(self, "best_estimator_", self)  # of those that choose their settings
        if n_components is None:
            m = getattr(fitted, "n_components_", None)
            n_components = "auto" if m is None else min(int(m), len(features))
        scaling = getattr(fitted, "scaling", 0.0)
        settings.setdefault("scaling", scaling if is_real(scaling) else 0.0)
        # A certificate is about a table without gaps.
        settings.setdefault("missing", "model" if self.missing == "observed" else self.missing)
        missing, check = settings["missing"], partial(refuse_other_columns, self)
        read = read_any_table(X, n_components=n_components, missing=missing, check=check)
        return certify(read, features, n_components, **settings)


class ScatterSelector(RankingSelector):
    """A selector that needs the scatter of the columns only, through its products.

    A subclass implements ``_fit_table`` and has the parameters below.
    """

    needs_scatter_only = True
    seeks_variance = True
    n_components: int | float | str
    scaling: float
    memory_limit: int | float | str | None

    keeps_scatter: bool = False
    """Set to True before ``fit``, it keeps the table and its scatter for a certificate."""

    mean_: FloatArray
    var_: FloatArray
    n_samples_seen_: int

    def fit_notes(self) -> FitNotes:
        """Report the fit, with the moments that it measured."""
        n_samples = self.n_samples_seen_
        moments = ColumnMoments(n_samples, self.mean_, n_samples * self.var_)
        return replace(super().fit_notes(), moments=moments)

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows.

        Scores are those of ``fit`` on the same numbers. What has to be held in memory, and how
        many times the table is read, follows from ``memory_limit``: see ``route_`` and
        ``n_passes_``, and the page "How it scales".

        Parameters
        ----------
        source : path, array, list, function or Dask collection
            A file (Parquet, Arrow, CSV, NPY, HDF5, h5ad), a folder of files or a pattern such as
            ``"part-*.parquet"``; an array, memory map, sparse matrix or anything sliced like one; a
            list of blocks (arrays, sparse matrices or data frames); or a function that returns a
            new iterator of blocks for every pass. The columns of data frames are matched by name.
            Rows that change between passes are an error.
            `keepers.datasets.scan_table` opens files with columns that are not features.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted selector.

        Examples
        --------
        >>> from keepers import SPCAFS, datasets
        >>> X = datasets.load("srbct").X[:, :300]
        >>> blocks = lambda: (X[start : start + 20] for start in range(0, len(X), 20))
        >>> selector = SPCAFS(10).fit_blocks(blocks)
        >>> selector.n_passes_
        1
        """
        with self._fitting():
            self._fit_blocks(source)
        return self

    def _fit_blocks(self, X: Any) -> None:
        source = open_blocks(self, X)
        # Settings that do not go with the columns raise before the rows are read.
        control_of(self, source.n_features).count_to_select(self.n_features_to_select)
        if is_whole(self.n_components):
            rule = whole(at_most=source.n_features, hint=f"X has {source.n_features} columns.")
            check_value("n_components", self.n_components, rule)
        budget = memory_budget(self.memory_limit)
        table, self.route_, passes = read_blocks(
            self, source, budget, expected_width(self.n_components)
        )
        self._fit_table(table)
        self.n_passes_ = passes.n_passes
