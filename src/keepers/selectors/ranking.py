"""What every selector shares: the columns it keeps, a ranking of them, and the first k of it."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._tables import AsTable
from keepers.data.dask_blocks import selected_columns
from keepers.data.foreign_frames import as_frame
from keepers.data.in_memory import describe_missing, frame_columns, is_anndata, is_dask
from keepers.data.table import LabelledTable
from keepers.exceptions import DataError
from keepers.linalg.correlation import unlike_the_better
from keepers.linalg.ordering import best_first
from keepers.selectors.fitted_table import (
    FittedTable,
    Table,
    fills_gaps,
    named_table,
    naming_gaps,
    read_table,
    refuse_infinity,
    refuse_other_columns,
    sound_indices,
    validate,
)
from keepers.selectors.parameters import (
    FeatureCount,
    check_feature_count,
    check_max_correlation,
    check_missing,
    check_seed,
    count_features,
    is_real,
)

if TYPE_CHECKING:
    from keepers.selectors.certificate import Certificate

# With max_correlation, the walk down the ranking ends once so many unlike features were found, or
# as many as are asked for: going on to the end takes time with the square of their number.
FEWEST_COMPARED = 2000


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

    def rows(self) -> list[dict[str, Any]]:
        """The table, a dict a feature.

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


class ColumnSelector(SelectorMixin, BaseEstimator):
    """A transformer that keeps some of the columns.

    A subclass fits inside ``_fitting`` and sets ``support_``.
    """

    support_: BoolArray
    _gaps_may_pass: bool = False

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

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data.

        ``fit`` calls it first. A subclass extends it by the rules of its own parameters.

        Raises
        ------
        ParameterError
            Names the rule, the value and what to give instead.
        """

    def _forget(self) -> None:
        """Drop everything learned from data."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it is known which columns are kept."""
        return hasattr(self, "support_")

    def transform(self, X: Any) -> Any:
        """The columns kept of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, LabelledTable, AnnData object or Dask collection
            with the columns of the table fitted; also a lazy frame of polars, a relation of
            DuckDB, a table, reader or dataset of pyarrow.

        Returns
        -------
        array, data frame, sparse matrix, AnnData object or Dask collection
            The kept columns, in the order of X, with their values as they are: where a selector was
            told to fill gaps (``missing``), X may have gaps, and they stay. Dropped columns of a
            frame may have gaps in any case. Of a Dask collection
            lazily, of an AnnData object as a view of it; of any frame, lazy or not, as an array
            unless ``set_output`` asks for frames.
        """
        columns = self.get_support(indices=True)
        if isinstance(X, LabelledTable):
            return validate(self, X, reset=False, fewest=1)[:, columns]
        if is_anndata(X):
            refuse_other_columns(self, X.n_vars, X.var_names)
            return X[:, columns]
        if is_dask(X):
            refuse_other_columns(self, X.shape[1], getattr(X, "columns", None))
            return selected_columns(X, columns)
        X = sound_indices(X)
        if fills_gaps(self):
            refuse_infinity(X)
        selector: Any = self
        if frame_columns(X) is not None and not get_tags(self).input_tags.allow_nan:
            selector = self._letting_gaps_pass(X)
        with naming_gaps(selector, X):
            kept = SelectorMixin.transform(selector, X)
        return self._like(X, kept, columns)

    def _like(self, X: Any, kept: Any, columns: IndexArray) -> Any:
        """The kept columns as a frame if X is one of pandas or polars with the names of the fit."""
        if not isinstance(kept, np.ndarray) or not hasattr(self, "feature_names_in_"):
            return kept
        library = type(X).__module__.split(".")[0]
        if library == "pandas":
            return X.iloc[:, columns]
        return X[:, columns.tolist()] if library == "polars" else kept

    def _letting_gaps_pass(self, X: Any) -> Self:
        """The selector for a frame whose dropped columns may have gaps, once the kept are checked.

        Of arrays scikit-learn wants every value checked.
        """
        if X.shape[1] == self.n_features_in_:
            explanation = describe_missing(X, among=self.get_support())
            if explanation is not None:
                raise DataError(explanation)
        twin = copy.copy(self)
        twin._gaps_may_pass = True
        return twin

    def fit_transform(self, X: Any, y: Any = None, **settings: Any) -> Any:
        """Fit, and return the columns kept of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As in ``fit``. What can be read only once, such as a reader of pyarrow, is read once.
        y : None
            Ignored.
        **settings
            Those of ``fit``.

        Returns
        -------
        array, data frame, sparse matrix, AnnData object or Dask collection
            As of `transform`.
        """
        return super().fit_transform(as_frame(X), y, **settings)

    def inverse_transform(self, X: Any) -> Any:
        """The kept columns back in their places, and zeros in the others.

        Parameters
        ----------
        X : table of shape (n_samples, n_selected)
            What `transform` returned, or a table of the same columns.

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
            Of any frame an array.
        """
        return super().inverse_transform(sound_indices(X))

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

    A method is a subclass that implements `score_features`, and extends `check_parameters` by the
    rules of its own parameters. ``fit`` checks the parameters, reads the table, has its features
    scored and stores the ranking; nothing fitted stays behind if it is interrupted.

    See Also
    --------
    keepers.extending : Everything that a method of your own needs.
    """

    n_features_to_select: FeatureCount
    """A parameter of every selector."""

    why_not_sparse: ClassVar[str | None] = None
    """Set by methods that cannot take a sparse matrix: the reason, as a clause."""

    why_not_dask: ClassVar[str] = "it compares every sample with every other one."
    """Why chunks on several workers will not do, as a clause."""

    depends_on_k: bool = False
    """True for methods whose ranking depends on ``n_features_to_select``, so that each k needs its
    own fit."""
    picks_one_by_one: ClassVar[bool] = False
    """Whether the first features of a fit for many are those of a fit for fewer."""
    fits_each_together: ClassVar[bool] = False
    """Whether `fit_each` takes about as long as one fit, though each k needs its own."""
    seeks_variance: ClassVar[bool] = False
    """Whether it looks for features that hold much variance: then their certificate is shown."""

    max_correlation: float | None = None
    """A parameter of every selector but `AllFeatures`."""

    missing: str = "error"
    """A parameter of selectors that can fill gaps."""

    def __sklearn_tags__(self) -> Tags:
        """CSR and CSC are welcome, unless the method says why not; NaN if it was told to fill."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = fills_gaps(self) or self._gaps_may_pass
        tags.input_tags.sparse = self.why_not_sparse is None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Rank the features of X.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, LabelledTable or AnnData object: one row a sample,
            one column a feature. A `LabelledTable` is what `keepers.datasets.open_table` returns;
            its labels are not looked at. Of an AnnData object, X is.
        y : ignored
            Present for API consistency; no method here looks at labels.

        Returns
        -------
        self : object
            The fitted selector.
        """
        with self._fitting():
            self._fit(named_table(X))
        return self

    def fit_each(self, X: Any, counts: Sequence[int]) -> list[Self]:
        """Copies of this selector, one fitted for each number of features.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As in ``fit``.
        counts : sequence of int
            The numbers of features.

        Returns
        -------
        list of selectors
            In the order of ``counts``.
        """
        return [clone(self).set_params(n_features_to_select=count).fit(X) for count in counts]

    def _fit(self, X: Any) -> None:
        table = read_table(self, X)
        # Refused before any work. A method may depend on it.
        self.n_features_to_select_ = count_features(self.n_features_to_select, table.n_features)
        self._store_ranking(self.score_features(table), table)

    def score_features(self, table: Table) -> FloatArray:
        """A score for every feature of a table: what a method is.

        Parameters
        ----------
        table : Table
            The columns that vary, with their moments. ``n_features_to_select_`` is set.

        Returns
        -------
        array of shape (n_features,)
            Higher is better. ``table.to_all_columns`` makes it of scores of the columns that vary.
        """
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data.

        ``fit`` calls it first. A subclass extends it by the rules of its own parameters.

        Raises
        ------
        ParameterError
            Names the rule, the value and what to give instead.
        """
        check_feature_count(self.n_features_to_select)
        check_max_correlation(self.max_correlation)
        check_missing(self.missing)
        check_seed(getattr(self, "random_state", None))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read a pickle; ``n_live_`` is an earlier name of ``n_active_``."""
        super().__setstate__(state)
        n_active = self.__dict__.pop("n_live_", None)
        if n_active is not None:
            self.__dict__.setdefault("n_active_", n_active)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a ranking is there."""
        return hasattr(self, "ranking_")

    def _store_ranking(self, scores: FloatArray, table: FittedTable) -> None:
        """Set ``scores_``, ``ranking_`` and ``support_``.

        Scores that agree to rounding are ties: they go by variance, then by index. Constant columns
        come last.
        """
        self.scores_ = scores
        order = best_first(scores, table.variances)
        order = order[np.argsort(table.unusable[order], kind="stable")]
        self._store_order(order, table)

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
        position = np.full(table.n_features, -1)
        position[table.usable] = np.arange(len(table.usable))
        walk = order[compared[order]]
        places = position[walk]
        keeps = unlike_the_better(
            table.correlations(places),
            places,
            float(self.max_correlation or 1.0),
            most=max(self.n_features_to_select_, FEWEST_COMPARED),
            always=None if always is None else always[table.usable],
        )
        unlike_first = np.concatenate([walk[keeps], walk[~keeps], order[~compared[order]]])
        if always is None:
            return unlike_first
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
        """The k best features, whatever number the selector was made with; nothing is refitted.

        Parameters
        ----------
        k : int, float in (0, 1] or None
            How many features, or which share of those that may be kept. None: as many as the
            selector keeps.

        Returns
        -------
        TopFeatures
            ``indices``, ``names`` and ``scores``, best first.
        """
        check_is_fitted(self)
        check_feature_count(k, name="k")
        count = self.n_features_to_select_ if k is None else self._count_top(k)
        indices = np.argsort(self.ranking_)[:count]
        return TopFeatures(indices, self._names_of_columns()[indices], self.scores_[indices])

    def _count_top(self, k: Any) -> int:
        return count_features(k, len(self.scores_), name="k")

    def certificate(
        self,
        X: Any,
        k: int | float | None = None,
        n_components: int | float | str | None = None,
        **settings: Any,
    ) -> "Certificate":
        """How much of the variance that any k features could hold the best k hold, with proof.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The table of the fit, or another one with its columns; or a path, blocks or Dask
            collection, as `certify` takes them.
        k : int, float in (0, 1] or None, default=None
            How many features, as in `top`.
        n_components : int, float in (0, 1), "auto" or None, default=None
            In how many components. None: those of the fit (``n_components_``), at most k, where the
            method has any; else "auto".
        **settings
            Other settings of `certify`. ``scaling`` and ``missing`` are those of the selector
            unless they are given, so that the certificate is about the table as it was fitted.

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
        from keepers.selectors.certificate import certify_columns  # it reads tables by a selector

        features = self.top(k).indices
        fitted = getattr(self, "best_estimator_", self)  # of those that choose their settings
        if n_components is None:
            m = getattr(fitted, "n_components_", None)
            n_components = "auto" if m is None else min(int(m), len(features))
        scaling = getattr(fitted, "scaling", 0.0)
        settings.setdefault("scaling", scaling if is_real(scaling) else 0.0)
        settings.setdefault("missing", self.missing)
        return certify_columns(self, X, features, n_components, **settings)
