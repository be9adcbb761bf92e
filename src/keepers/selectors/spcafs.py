"""SPCAFS as a scikit-learn selector."""

import logging
import os
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import IndexArray, SymmetricOperator
from keepers.data.in_memory import comes_in_blocks
from keepers.data.limits import as_n_bytes
from keepers.exceptions import (
    ConvergenceWarning,
    InactiveRowsWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.linalg.spectrum import leading_spectrum
from keepers.linalg.subspace import fix_signs
from keepers.selectors.block_tables import ROUTES, read_tall_array
from keepers.selectors.checkpoint import Checkpoint, SavedFit, check_checkpoint
from keepers.selectors.control import FeatureControl, check_control, control_of
from keepers.selectors.fitted_table import (
    FittedTable,
    is_tall_array,
    read_table,
    table_values,
    warn_of_units,
)
from keepers.selectors.kept_sets import refine_order
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    check_callback,
    check_choice,
    check_choice_or_none,
    check_component_count,
    check_components,
    check_count,
    check_positive,
    check_positive_or_scale,
    check_verbose,
    expected_width,
)
from keepers.selectors.saved_passes import SavedPasses
from keepers.selectors.scatter_fit import ScatterSelector
from keepers.solvers.penalty import RowPenalty, find_inactive_rows
from keepers.solvers.spcafs import (
    MAX_ITER,
    PLATEAU,
    Callback,
    SolverProgress,
    SPCAFSResult,
    dense_is_cheaper,
    solve_block,
    solve_dense,
)

logger = logging.getLogger("keepers")

# Chosen by the study in docs/without-labels.md. Weaker penalties rank a little better on real
# tables and lose a few informative features among many; from 0.01 to 0.03, where rows begin to
# vanish, the ranking was worst on real tables.
GAMMA_SCALE = 0.1


@dataclass(eq=False, repr=False)
class SPCAFS(ScatterSelector):
    r"""Unsupervised feature selection by row-sparse PCA.

    Finds an orthonormal W (d features x m components) that keeps as much of the variance as it can
    while a penalty on the norms of its rows drives most of them to zero:

    .. math::

        \min_{W} \;
            & -\operatorname{Tr}\left(W^\top S\, W\right) + \gamma \sum_{i=1}^{d}
            c_i \left(\lVert w_i \rVert_2^2 + \varepsilon\right)^{p/2} \\
        \text{s.t.} \; & W^\top W = I, \qquad 0 < p \le 1.

    Here S is the scatter of the centred data, w_i the row of feature i, and c_i its weight, 1
    unless you say otherwise. The score of a feature is the norm of its row. This is
    Algorithm 1 of "Sparse PCA via l2,p-norm regularization for unsupervised feature selection"
    (Li, Nie, Bian and Li), with eigenproblems that cost a few products with X instead of a
    decomposition of S.

    With default settings it beats random features where groups of features move together (text,
    cells, most gene tables), not where all features are strongly correlated (images, spectra);
    there ``max_correlation=0.8`` helps. `AutoSelector` is the selector to start with.

    What you know beforehand goes into the penalty: see ``must_keep``, ``never_keep``,
    ``penalty_weights`` and ``groups``. With groups G of features the sum is over groups,

    .. math::

        \gamma \sum_{G} c_G \left(\lVert W_G \rVert_F^2 + \varepsilon\right)^{p/2},

    where W_G has the rows of a group, and a feature in no group is a group of one.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None keeps half.
        It does not influence the fit: ``top(k)`` gives the best k for any k afterwards.
    n_components : "auto", int or float in (0, 1), default="auto"
        Columns of W. A float keeps as many principal components as explain that share of the
        variance. "auto" counts the eigenvalues of the covariance that exceed the largest one to be
        expected of unrelated columns with the same variances (parallel analysis in closed form),
        at least 1 and at most 100. The paper sets the number of clusters minus one.
    gamma : "scale" or float, default="scale"
        Weight of the penalty, on the scale of S: the paper's absolute number. "scale" means 0.1
        times the leading eigenvalue of S. For p = 1 practically all rows are active below 0.001
        times that eigenvalue, and no more than ``n_components`` above it. `SPCAFSCV` chooses.
    p : float in (0, 1], default=1.0
        Exponent of the penalty. Below 1 the problem has many more local minima.
    scaling : float in [0, 1], default=0.0
        Every feature is divided by its standard deviation to this power before the fit: 0 takes the
        values as they are, as in the paper; 1 gives all features the same variance, so that what
        counts is how much they have in common. ``mean_`` and ``transform`` stay in the units of X.
    eps : float, default=1e-12
        Smoothing of the penalty at zero, beside squared row norms that sum to ``n_components``.
    solver : {"auto", "block", "dense"}, default="auto"
        "dense" is Algorithm 1 as printed, with S in memory and O(d^3) a step. "block" follows the
        same path with products of X and thin blocks. "auto" takes the cheaper one.
    max_iter : int, default=1000
        Steps at most.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by less than this, relatively.
    refine : {"l20"} or None, default=None
        "l20" exchanges kept features for others as long as ``n_components`` components made of the
        kept ones hold more variance (the steps of `FSPCA`, from this selection). That is all it
        promises: clusters are not found better for it. The selection then depends on
        ``n_features_to_select``.
    penalty_weights : array of shape (n_features,), dict or None, default=None
        A factor c_i on the penalty of each feature (a cost, say), or a dict from names or indices
        to factors, 1 for the others. 0 means always kept, infinity never.
    groups : array of shape (n_features,), list of lists, dict of lists or None, default=None
        Features that are kept or dropped together: a label per feature (None or NaN: in no group),
        or lists of names or indices. A group of k counts as k^(1 - p/2) times its mean weight.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay: the same as weight 0. Names need a data frame.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that go: the same as weight infinity, and as a fit without these columns.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN: refuse it, or fill the gaps for the fit, with the mean or the median
        of the column, or from the other columns ("model", the best of them on average: a few
        components fitted to the values that are there; see the page "Missing values"). Columns
        without any value are set aside like constant ones. ``transform`` leaves gaps as they are.
        Tables that are read in blocks must have none.
    memory_limit : int, str or None, default=None
        Memory that ``fit_blocks``, ``partial_fit`` and Dask collections may take, in bytes or as
        "500MB", "4GB"; None is a quarter of the machine's. The route follows from it.
    route : {"auto", "scatter", "memory", "stream"}, default="auto"
        What is held in memory of a table that is read in blocks: the d x d scatter, the rows, or a
        few d x m blocks. "auto" takes the cheapest that fits into ``memory_limit``; one that does
        not fit is refused. Scores do not depend on it. It is for ``fit_blocks``, large memory maps
        and Dask collections only; ``fit`` on a table in memory and ``partial_fit`` ignore it.
    checkpoint : path or None, default=None
        A file that holds the state of the fit after each step. A fit that was killed resumes from
        there if it is run again with the same settings and data; one that was finished returns at
        once. A file of other settings or data is refused. Nothing in it is ever unpickled. Passes
        over blocks that take longer than 30 s have files beside it, ``<checkpoint>.pass-...``, and
        resume where they were interrupted; they are removed when the fit ends. The first pass does
        so for tables in files only, and passes of Dask collections never do.
    random_state : int, RandomState or None, default=None
        Seeds the start of the eigensolver where both sides of X exceed 3000; elsewhere nothing is
        random.
    verbose : int, default=0
        1 logs every step to the logger "keepers" (level INFO), which goes to the error stream
        unless the program has set logging up otherwise.
    callback : callable or None, default=None
        Called after each step with an object that has ``n_iter``, ``objective``, ``n_active`` and
        ``n_rows``.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Those of inactive rows are what the smoothing leaves in
        the limit, in closed form: for p = 1, ``sqrt(eps) r / sqrt(1 - r^2)`` with ``r = 2 |(S W)_i|
        / (gamma c_i)``, at most ``2 sqrt(eps)``. They rise with r, and where r reaches 1 the row
        becomes active: inactive features are ranked by how near they are to that.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
        Features always kept come before all others, those never kept after all others, and the
        members of a group stand together, in the place that the root mean square of their scores
        gives them. With ``refine``, the kept features come first.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_components, n_features)
        W transposed, rows ordered by the weight they carry in the penalised problem.
    objective_ : array
        The objective after every accepted step; it never rises.
    n_iter_ : int
        Eigenproblems solved.
    converged_ : bool
        Whether the objective converged within ``max_iter`` steps.
    stop_reason_ : str
        Why the iteration ended: "converged"; "max_iter"; or "plateau", where the leading components
        have nearly the same variance, as in a table without structure: many solutions are then as
        good as each other, and none is waited for.
    n_products_ : int
        Products of S with a block of ``n_components`` columns, or of a part of it with a part.
    n_active_ : int
        Active rows of W: those whose norm (or that of their group) exceeds 2 sqrt(eps), the size
        that the smoothing leaves to rows that the penalty sends to zero; rows without penalty are
        always active. If ``n_features_to_select`` asks for more, an `InactiveRowsWarning` gives the
        numbers and a gamma that is small enough.
    active_ : boolean array of shape (n_features,)
        The features whose rows are active; ``n_active_`` of them.
    refined_from_ : Refinement
        With ``refine``: ``n_changed``, how many of the kept features are others than those with
        the best scores; ``variance_before`` and ``variance_after``, the variance that
        ``n_components`` components made of the kept features hold, on the scale of S.
    penalty_weights_ : array of shape (n_features,)
        The factors used; 0 for features always kept, infinity for those never kept.
    gamma_ : float
        The penalty weight used.
    n_components_ : int
        The number of components used.
    solver_ : str
        The solver used.
    mean_ : array of shape (n_features,)
        Column means.
    var_ : array of shape (n_features,)
        Column variances, divided by n; 0 for columns set aside as constant.
    n_samples_seen_ : int
        Number of rows.
    n_passes_ : int
        How many times the table was read, after ``fit_blocks`` and for Dask collections.
    route_ : str
        What was held in memory for it: "scatter" (the d x d scatter), "memory" (the rows) or
        "stream" (a few d x m blocks).
    scatter_sum_ : object
        What ``partial_fit`` has summed so far; only after it.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    AutoSelector : The selector to start with: no settings, and it says how many are enough.
    SPCAFSCV : Chooses the settings and the number of features without labels.
    spcafs_path : The same fit for many values of ``gamma``, from PCA to the sparsest.
    FSPCA : The features that hold the most variance.
    StabilitySelector : Whether other samples would choose the same features.
    prune_redundant : What ``max_correlation`` does, for any scores.
    certify : How near the selection is to the features that hold the most variance.

    Notes
    -----
    :doc:`The method </method>` has the derivation, both solvers and the effect of ``gamma`` and
    ``p``; :doc:`its page </methods/spcafs>` the costs, and when not to use it.

    Examples
    --------
    A data frame of 178 wines with 13 measurements in different units, which ``scaling=1`` makes
    comparable. The kept columns are columns of the frame:

    >>> from sklearn.datasets import load_wine
    >>> from keepers import SPCAFS
    >>> wines = load_wine(as_frame=True).data
    >>> selector = SPCAFS(3, scaling=1).set_output(transform="pandas")
    >>> selector.fit_transform(wines).head(2)
       alcohol  color_intensity  proline
    0    14.23             5.64   1065.0
    1    13.20             4.38   1050.0

    The ranking of all features comes with the fit, for any number of them:

    >>> selector.top(4).to_frame().round(2)
       rank          feature  score
    0     1  color_intensity   0.58
    1     2          alcohol   0.54
    2     3          proline   0.48
    3     4       flavanoids   0.43

    All 13 rows of W are active here. A larger ``gamma`` leaves as many as there are components:

    >>> selector.n_active_, selector.n_components_
    (13, 2)
    >>> SPCAFS(2, scaling=1, gamma=600).fit(wines).n_active_
    2

    Features that must stay, or must not, are given by their names:

    >>> known = {"must_keep": ["ash"], "never_keep": ["proline"]}
    >>> SPCAFS(3, scaling=1, **known).fit(wines).top().names
    array(['ash', 'color_intensity', 'alcohol'], dtype=object)
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int | float | str = "auto"
    gamma: float | str = "scale"
    p: float = 1.0
    scaling: float = 0.0
    eps: float = 1e-12
    solver: str = "auto"
    max_iter: int = 1000
    tol: float = 1e-8
    refine: str | None = None
    penalty_weights: Any = None
    groups: Any = None
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "error"
    memory_limit: int | float | str | None = None
    route: str = "auto"
    checkpoint: str | os.PathLike[str] | None = None
    random_state: Seed = None
    verbose: int = 0
    callback: Callback | None = None

    @property
    def depends_on_k(self) -> bool:  # type: ignore[override]
        """A refined selection is one for its number of features."""
        return self.refine is not None

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_components(self.n_components)
        check_positive("scaling", self.scaling, at_most=1.0, zero=True)
        if self.memory_limit is not None:
            as_n_bytes(self.memory_limit, "memory_limit")
        check_choice("route", self.route, ("auto", *ROUTES))
        check_control(**self._user_control())
        check_choice("solver", self.solver, ("auto", "block", "dense"))
        check_positive("p", self.p, at_most=1.0, hint="p = 1 is the convex-like default.")
        check_positive("eps", self.eps, at_most=1.0, hint="It smooths squared row norms at zero.")
        check_positive("tol", self.tol, zero=True)
        check_count("max_iter", self.max_iter)
        check_positive_or_scale("gamma", self.gamma)
        check_callback(self.callback)
        check_verbose(self.verbose)
        check_choice_or_none("refine", self.refine, ("l20",))
        if self.refine is not None and self.max_correlation is not None:
            raise ParameterError(
                "refine='l20' and max_correlation must not be given together: the second undoes "
                f"what the first found; got max_correlation={shorten(self.max_correlation)}. Leave "
                "one of them out."
            )
        if self.checkpoint is not None:
            check_checkpoint(self.checkpoint, self._settings())

    def _fit(self, X: Any) -> None:
        values = table_values(X)
        if comes_in_blocks(values):
            self._fit_blocks(X)
        elif is_tall_array(values):
            self._fit_table(read_tall_array(self, X, sketched=self.checkpoint is not None))
        else:
            self._fit_table(read_table(self, X))

    def _fit_table(self, everything: FittedTable, files: SavedPasses | None = None) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        self.n_features_to_select_ = control.count_to_select(self.n_features_to_select)
        penalty = control.penalty(1.0, float(self.p), float(self.eps), table.usable)
        checkpoint = self._open_checkpoint(everything, control, files)
        width, n_usable = expected_width(self.n_components), len(table.usable)
        saved = None if checkpoint is None else checkpoint.load(penalty, n_usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = table.scatter(width)
            fit = self._begin(scatter, table) if saved is None else saved
            result = self._solve(scatter, fit, replace(penalty, gamma=fit.gamma), checkpoint)
            norms = result.row_norms.astype(table.working_dtype, copy=False)
            scores = table.to_all_columns(norms)
            order = control.order(scores, everything)
            if self.refine is not None:
                order = self._refine(scatter, order, table, control, fit.width)
        self._store(result, fit, table)
        self.var_ = everything.variances  # float32 may not hold it
        self.scores_ = scores.astype(table.dtype, copy=False)
        self.penalty_weights_ = control.weights
        self._store_order(order, everything, control.must, control.never)
        self._warn_of_inactive_rows()

    def _refine(
        self,
        scatter: SymmetricOperator,
        order: IndexArray,
        table: FittedTable,
        control: FeatureControl,
        width: int,
    ) -> IndexArray:
        """The order with the features first that hold more variance."""
        order, self.refined_from_ = refine_order(
            scatter, order, table, control, self.n_features_to_select_, width
        )
        return order

    def _begin(self, scatter: SymmetricOperator, table: FittedTable) -> SavedFit:
        """PCA, where the iteration starts, and what follows from it."""
        n_usable = len(table.usable)
        check_component_count(self.n_components, table.n_samples, n_usable)
        spectrum = leading_spectrum(
            scatter,
            self.n_components,
            n_samples=table.n_samples,
            sum_of_squares=table.moments.sum_of_squares,
            rng=self.random_generator(),
        )
        solver = self._choose_solver(table.n_samples, n_usable, spectrum.width)
        if solver == "dense":
            refuse_past_memory(
                "solver='dense'",
                f"the {n_usable} x {n_usable} scatter, a copy and its decomposition",
                24.0 * n_usable**2,
                "solver='block' needs none of them.",
            )
        gamma = float(GAMMA_SCALE * spectrum.values[0] if self.gamma == "scale" else self.gamma)
        return SavedFit(gamma, spectrum.width, solver, spectrum.subspace)

    def _choose_solver(self, n_samples: int, n_features: int, width: int) -> str:
        if self.solver != "auto":
            return self.solver
        return "dense" if dense_is_cheaper(n_samples, n_features, width) else "block"

    def _solve(
        self,
        scatter: SymmetricOperator,
        fit: SavedFit,
        penalty: RowPenalty,
        checkpoint: Checkpoint | None,
    ) -> SPCAFSResult:
        solve = solve_dense if fit.solver == "dense" else solve_block
        result = solve(
            scatter,
            fit.run,
            penalty,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._on_step,
            keep=None if checkpoint is None else partial(checkpoint.save, fit),
        )
        if result.stop == MAX_ITER:
            warn_caller(
                f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol; the ranking usually converges long before the objective does.",
                ConvergenceWarning,
            )
        elif result.stop == PLATEAU:
            warn_caller(
                f"Stopped after {result.n_iter} steps on a plateau: the {fit.width} leading "
                "components have nearly the same variance, so that many solutions are as good as "
                "each other and the ranking among the active features means little. The table may "
                "have no structure; AutoSelector says so if it finds none.",
                ConvergenceWarning,
            )
        return result

    def _store(self, result: SPCAFSResult, fit: SavedFit, table: FittedTable) -> None:
        W = fix_signs(result.W)
        self.components_ = table.to_all_columns(W.T.astype(table.dtype, copy=False))
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.active_ = table.to_all_columns(result.active)
        self.n_active_ = result.n_active
        self.stop_reason_ = result.stop
        self.n_products_ = result.n_products
        self.gamma_ = fit.gamma
        self.n_components_ = fit.width
        self.solver_ = fit.solver
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.n_samples_seen_ = table.n_samples

    def _warn_of_inactive_rows(self) -> None:
        if self.n_features_to_select is None:
            return  # None keeps half of the features, whatever the penalty does
        inactive = find_inactive_rows(self, np.flatnonzero(self.support_))
        if inactive is not None:
            warn_caller(f"{inactive} {inactive.way_out()}", InactiveRowsWarning)

    def _open_checkpoint(
        self, table: FittedTable, control: FeatureControl, files: SavedPasses | None
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        groups = np.arange(len(control.weights)) if control.groups is None else control.groups
        penalised = np.vstack([control.weights, groups])
        path = Path(self.checkpoint)
        return Checkpoint(path, self._settings(), table.sketch(), penalised, files)

    def _settings(self) -> dict[str, Any]:
        """The settings that the result depends on, as a checkpoint keeps them."""
        named = ("n_components", "gamma", "p", "scaling", "eps", "solver", "tol")
        return {name: _plain(getattr(self, name)) for name in named}

    def _user_control(self) -> dict[str, Any]:
        named = ("penalty_weights", "groups", "must_keep", "never_keep")
        return {name: getattr(self, name) for name in named}

    def _count_top(self, k: Any) -> int:
        return FeatureControl(self.penalty_weights_, None).count(k, "k")

    def _on_step(self, progress: SolverProgress) -> None:
        if self.verbose:
            _ensure_log_handler()
            logger.info(
                "step %d: objective %.8g, %d active rows of %d in the work",
                progress.n_iter,
                progress.objective,
                progress.n_active,
                progress.n_rows,
            )
        if self.callback is not None:
            self.callback(progress)


def _plain(value: float | str) -> float | str:
    """A setting as JSON holds it."""
    return value if isinstance(value, str) else float(value)


def _ensure_log_handler() -> None:
    """Let verbose=1 be seen on the error stream by users who never set logging up."""
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
