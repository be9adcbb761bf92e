"""FSPCA as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.data.in_memory import comes_in_blocks
from keepers.data.limits import as_n_bytes
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.spectrum import leading_spectrum
from keepers.linalg.subspace import Subspace, fix_signs
from keepers.selectors.block_tables import ROUTES, read_tall_array
from keepers.selectors.control import (
    FeatureControl,
    check_control,
    check_costs,
    control_of,
    read_costs,
)
from keepers.selectors.fitted_table import (
    FittedTable,
    is_tall_array,
    read_table,
    table_values,
    warn_of_units,
)
from keepers.selectors.kept_sets import allowed_sets, candidate_count, refuse_nothing
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    check_choice,
    check_component_count,
    check_components,
    check_count,
    check_positive,
    expected_width,
    is_whole,
)
from keepers.selectors.saved_passes import SavedPasses
from keepers.selectors.scatter_fit import ScatterSelector
from keepers.solvers.row_sparse import RowSparseResult, solve_row_sparse
from keepers.solvers.set_changes import hold
from keepers.solvers.set_limit import SetLimit


@dataclass(eq=False, repr=False)
class FSPCA(ScatterSelector):
    """The k features on which m components hold the most variance.

    PCA with at most k features in all of its components together::

        maximise  Tr(W' S W)   subject to W'W = I, at most k non-zero rows of W,

    where S is the scatter of the centred data. What counts is the set of features: the best W on it
    holds the sum of the m largest eigenvalues of S on these features. The problem is NP-hard. It is
    approached by the projection steps of "Learning feature-sparse principal subspace" (Tian, Nie,
    Wang and Li, NeurIPS 2020), of which none loses variance, from several starts, and by exchanges
    of single features; on tables small enough to try all sets it found the best one in 99 of 100.

    More variance is not better in every respect: clusters are often found as well, or better, with
    `SPCAFS` or `AutoSelector`. Use it where the variance held is the aim, as in compression and
    reconstruction. Features with large numbers win; see ``scaling``.

    The selection is made for one number of features. ``top(k)`` for another k is nested in it, or
    holds it, and is not the best for that k: fit again.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None keeps half,
        or, with ``budget``, as many as it pays for.
    n_components : "auto", int or float in (0, 1), default="auto"
        The number of components m. A float takes as many principal components as explain that
        share of the variance; "auto" counts the eigenvalues of the covariance that exceed the
        largest one to be expected of unrelated columns with the same variances. Both are lowered
        to the number of features kept, if that is smaller; an integer must not be larger.
    scaling : float in [0, 1], default=0.0
        Every feature is divided by its standard deviation to this power before the fit: 0 takes the
        values as they are; 1 gives all features the same variance, so that what counts is how much
        they have in common. ``mean_`` and ``transform`` stay in the units of X.
    costs : array of shape (n_features,), dict or None, default=None
        What it costs to keep each feature, or a dict from names or indices to costs, 1 for the
        others. Needs ``budget``.
    budget : float or None, default=None
        What the costs of the kept features may add up to (without ``costs``, 1 each). Given in
        place of ``n_features_to_select``: the number of features kept follows. A step takes the
        features that are worth most for their cost, a good filling of the budget and not always the
        best one.
    groups : array of shape (n_features,), list of lists, dict of lists or None, default=None
        Features that are kept or dropped together: a label per feature (None or NaN: in no group),
        or lists of names or indices. At most ``n_features_to_select`` features are then kept; fewer
        where no further group fits.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay. Names need a data frame.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that go: the same as a fit without these columns.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. The kept features then hold less variance. None ranks as found.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN: refuse it, or fill the gaps for the fit, with the mean or the median
        of the column, or from the other columns ("model"; see the page "Missing values"). Columns
        without any value are set aside like constant ones. ``transform`` leaves gaps as they are.
        Tables that are read in blocks must have none.
    memory_limit : int, str or None, default=None
        Memory that ``fit_blocks``, ``partial_fit`` and Dask collections may take, in bytes or as
        "500MB", "4GB"; None is a quarter of the machine's. The route follows from it.
    route : {"auto", "scatter", "memory", "stream"}, default="auto"
        What is held in memory of a table that is read in blocks: the d x d scatter, the rows, or a
        few d x m blocks and the scatter of some candidates. "auto" takes the cheapest that fits
        into ``memory_limit``. It is for ``fit_blocks``, large memory maps and Dask collections
        only; ``fit`` on a table in memory and ``partial_fit`` ignore it.
    max_iter : int, default=100
        Projection steps from one start, at most; they mostly end after 0 to 6.
    random_state : int, RandomState or None, default=None
        Seeds the start of the eigensolver where both sides of X exceed 3000; elsewhere nothing is
        random.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        How much of each feature's sum of squares the components of the selection hold, as scores of
        the samples: ``|Q'x_j|^2`` with Q their orthonormal scores. Higher is better; over the kept
        features they add up to ``value_``.
    ranking_ : array of shape (n_features,)
        1 is the best feature. The kept features come first, each part in the order of the scores;
        ties go by variance, then by index. Constant columns and those never kept come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_components, n_features)
        W transposed: the leading eigenvectors of S on the kept features, zero elsewhere. Fewer rows
        where the kept features do not span as many dimensions.
    explained_variance_ : array of shape (n_components,)
        The variance of the data along each component, divided by n - 1 as in scikit-learn's PCA.
    value_ : float
        Tr(W'SW): (n - 1) times the sum of ``explained_variance_``.
    objective_ : array
        Tr(W'SW) of every set on the way from the start that won; it never falls.
    start_ : str
        The start that won: "go" (the authors'), "variance", "greedy", "backward" or "spcafs" with
        its gamma as a share of the largest eigenvalue.
    n_iter_ : int
        Projection steps, the last of which changes nothing, and exchanges on that way.
    n_products_ : int
        Products of S with a block of m columns. Work on the scatter of candidates is not counted.
    n_components_ : int
        The number of components used.
    n_features_to_select_ : int
        The number of features kept.
    mean_ : array of shape (n_features,)
        Column means.
    var_ : array of shape (n_features,)
        Column variances, divided by n; 0 for columns set aside as constant.
    n_samples_seen_ : int
        Number of rows.
    n_passes_ : int
        How many times the table was read, after ``fit_blocks`` and for Dask collections.
    route_ : str
        What was held in memory for it: "scatter", "memory" or "stream".
    scatter_sum_ : object
        What ``partial_fit`` has summed so far; only after it.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    SPCAFS : Row-sparse PCA by a penalty: a ranking for all numbers of features at once.

    Examples
    --------
    >>> from keepers import FSPCA, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = FSPCA(20, n_components=3).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> selector.start_, selector.n_iter_
    ('go', 2)
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int | float | str = "auto"
    scaling: float = 0.0
    costs: Any = None
    budget: float | None = None
    groups: Any = None
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "error"
    memory_limit: int | float | str | None = None
    route: str = "auto"
    max_iter: int = 100
    random_state: Seed = None

    depends_on_k = True

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_components(self.n_components)
        check_positive("scaling", self.scaling, at_most=1.0, zero=True)
        if self.memory_limit is not None:
            as_n_bytes(self.memory_limit, "memory_limit")
        check_choice("route", self.route, ("auto", *ROUTES))
        check_control(**self._user_control())
        check_count("max_iter", self.max_iter)
        check_costs(self.costs)
        if self.budget is not None:
            check_positive("budget", self.budget)
            if self.n_features_to_select is not None:
                raise ParameterError(
                    "n_features_to_select and budget must not be given together; got "
                    f"{shorten(self.n_features_to_select)} and {shorten(self.budget)}. The budget "
                    "decides how many features are kept."
                )
        elif self.costs is not None:
            raise ParameterError("costs must come with a budget, which they may add up to.")
        if is_whole(self.n_features_to_select):
            self._check_width(self.n_features_to_select)

    def _check_width(self, n_kept: int) -> None:
        """Refuse more components than features; a number that the data gave is lowered instead."""
        if is_whole(self.n_components) and self.n_components > n_kept:
            raise ParameterError(
                f"n_components must be at most the number of features kept, {n_kept}; got "
                f"{shorten(self.n_components)}. Keep more features, or give fewer components."
            )

    def _user_control(self) -> dict[str, Any]:
        named = ("groups", "must_keep", "never_keep")
        return {name: getattr(self, name) for name in named}

    def _check_columns(self, n_features: int) -> None:
        super()._check_columns(n_features)
        if self.budget is None:
            control = control_of(self, n_features)
            self._check_width(control.count_to_select(self.n_features_to_select))
        else:
            self._read_costs(n_features)

    def _read_costs(self, n_features: int) -> FloatArray:
        return read_costs(self.costs, n_features, getattr(self, "feature_names_in_", None))

    def _fit(self, X: Any) -> None:
        values = table_values(X)
        if comes_in_blocks(values):
            self._fit_blocks(X)
        elif is_tall_array(values):
            self._fit_table(read_tall_array(self, X, sketched=False))
        else:
            self._fit_table(read_table(self, X))

    def _fit_table(self, everything: FittedTable, files: SavedPasses | None = None) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        limit = self._allowed_sets(control, table)
        refuse_nothing(limit)
        width, n_usable = expected_width(self.n_components), len(table.usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = table.scatter(width)
            pca = self._components(scatter, table, limit)
            result = solve_row_sparse(
                scatter,
                pca,
                limit,
                max_iter=self.max_iter,
                most_candidates=candidate_count(table),
            )
            self._store_set(result, control, table, everything, limit)
            self._store_components(result, scatter, table)
        self.objective_ = result.history
        self.start_ = result.start
        self.n_iter_ = result.n_iter
        self.n_products_ = result.n_products
        self.n_components_ = len(pca.values)
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.var_ = everything.variances  # float32 may not hold it
        self.n_samples_seen_ = table.n_samples

    def _allowed_sets(self, control: FeatureControl, table: FittedTable) -> SetLimit:
        if self.budget is None:
            count = control.count_to_select(self.n_features_to_select)
            self._check_width(count)
            self.n_features_to_select_ = count
            return allowed_sets(control, table, float(count))
        costs = self._read_costs(table.n_features)
        needed = float(np.sum(costs[control.must]))
        if needed > self.budget:
            raise ParameterError(
                f"budget must cover the features that are always kept, which cost {needed:g}; got "
                f"{shorten(self.budget)}. Raise it, or shorten must_keep."
            )
        return allowed_sets(control, table, float(self.budget), costs)

    def _components(
        self, scatter: SymmetricOperator, table: FittedTable, limit: SetLimit
    ) -> Subspace:
        """The leading eigenpairs of S: no more than features may be kept."""
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        spectrum = leading_spectrum(
            scatter,
            self.n_components,
            n_samples=table.n_samples,
            sum_of_squares=table.moments.sum_of_squares,
            rng=self.random_generator(),
        )
        pca = spectrum.subspace
        width = min(spectrum.width, len(limit.choose(scatter.diagonal())))
        return replace(
            pca,
            vectors=pca.vectors[:, :width],
            images=pca.images[:, :width],
            values=pca.values[:width],
        )

    def _store_set(
        self,
        result: RowSparseResult,
        control: FeatureControl,
        table: FittedTable,
        everything: FittedTable,
        limit: SetLimit,
    ) -> None:
        scores = table.to_all_columns(result.projections)
        self.scores_ = scores.astype(table.dtype, copy=False)
        order = control.order(scores, everything)
        kept = control.must.copy()
        kept[table.usable[result.features]] = True
        if not limit.is_count:
            self.n_features_to_select_ = int(kept.sum())
        order = np.concatenate([order[kept[order]], order[~kept[order]]])
        self._store_order(order, everything, control.must, control.never)

    def _store_components(
        self, result: RowSparseResult, scatter: SymmetricOperator, table: FittedTable
    ) -> None:
        """The components on the kept features, which ``max_correlation`` may have changed."""
        kept: IndexArray = np.flatnonzero(self.support_[table.usable])
        values, vectors = result.values, result.vectors
        if not np.array_equal(kept, result.features):
            width = min(len(values), len(kept))
            held = hold(scatter, kept, width)
            values, vectors = held.values, held.vectors
        components = np.zeros((len(values), len(table.usable)))
        components[:, kept] = fix_signs(vectors).T
        self.components_ = table.to_all_columns(components.astype(table.dtype, copy=False))
        self.explained_variance_ = values / (table.n_samples - 1)
        self.value_ = float(np.sum(values))

    def _count_top(self, k: Any) -> int:
        return control_of(self, self.n_features_in_).count(k, "k")
