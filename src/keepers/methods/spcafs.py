"""SPCAFS: row-sparse PCA under an l2,p penalty.

    minimise  f(W) = -Tr(W'SW) + gamma * sum_i (|w_i|^2 + eps)^(p/2)   over W'W = I      (23)

"Sparse PCA via l2,p-norm regularization for unsupervised feature selection" (Li, Nie, Bian and Li).
Algorithm 1 of the paper alternates the weights of a quadratic majorant of the penalty (26) with the
m leading eigenvectors of S - gamma diag(g) (27); f never rises (Theorem 2).

The solvers are in `keepers.methods.spcafs_solver`; `SPCAFS`, here, is the selector.
"""

import logging
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import IndexArray, SymmetricOperator
from keepers.exceptions import (
    ConvergenceWarning,
    InactiveRowsWarning,
    ParameterError,
    shorten,
    warn_caller,
)
from keepers.linalg.spectrum import leading_spectrum
from keepers.linalg.subspace import (
    Subspace,
    fix_signs,
)
from keepers.methods.base import FitNotes
from keepers.methods.control import FeatureControl, check_control, control_of
from keepers.methods.memory import refuse_past_memory
from keepers.methods.parameters import (
    COMPONENTS,
    FUNCTION,
    FeatureCount,
    Seed,
    check_component_count,
    expected_width,
    one_of,
    positive,
    whole,
)
from keepers.methods.reading import (
    FittedTable,
    warn_of_units,
)
from keepers.methods.reading_blocks import ScatterSelector
from keepers.methods.sets import refine_order
from keepers.methods.spcafs_solver import (
    MAX_ITER,
    PLATEAU,
    Callback,
    RowPenalty,
    SolverProgress,
    SPCAFSResult,
    dense_is_cheaper,
    solve_block,
    solve_dense,
)
from keepers.tables.table import as_n_bytes

logger = logging.getLogger("keepers")

# Chosen by the study in docs/without-labels.md. Weaker penalties rank a little better on real
# tables and lose a few informative features among many; from 0.01 to 0.03, where rows begin to
# vanish, the ranking was worst on real tables.
GAMMA_SCALE = 0.1


def penalty_of(
    control: FeatureControl, columns: IndexArray, gamma: float, p: float, eps: float
) -> RowPenalty:
    """The penalty on the rows of W that belong to these columns.

    A group of k rows costs k^(1 - p/2) times their mean cost: so k rows of equal norm and cost are
    penalised as much together as one by one, and neither large nor small groups are favoured; for
    p = 1 it is the sqrt(k) of the group lasso.
    """
    costs = control.weights[columns]
    if control.groups is not None:
        _, groups = np.unique(control.groups[columns], return_inverse=True)
        sizes = np.bincount(groups)
        if len(sizes) < len(columns):
            together = np.bincount(groups, costs) * sizes ** (-p / 2)
            return RowPenalty(gamma, p, eps, together, groups)
    return RowPenalty(gamma, p, eps, 1.0 if np.all(costs == 1.0) else costs)


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
    unless you say otherwise. The score of a feature is the norm of its row. The method is that of
    Li, Nie, Bian and Li. With ``groups`` the sum is over the groups G, of
    :math:`c_G (\lVert W_G \rVert_F^2 + \varepsilon)^{p/2}`.

    With default settings it beats random features where groups of features move together (text,
    cells, most gene tables), not where all features are strongly correlated (images, spectra);
    there ``max_correlation=0.8`` helps. `AutoSelector` is the selector to start with.

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
        kept ones hold more variance (the steps of `FSPCA`). That is all it promises. The selection
        then depends on ``n_features_to_select``.
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
    {max_correlation}
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN: refuse it, or fill the gaps for the fit, with the mean or the median
        of the column, or from the other columns ("model"; see the page "Missing values"). Columns
        without any value are set aside like constant ones. ``transform`` leaves gaps as they are.
        Tables that are read in blocks must have none.
    memory_limit : int, str or None, default=None
        Memory that ``fit_blocks``, ``partial_fit`` and Dask collections may take, in bytes or as
        "500MB", "4GB"; None is a quarter of the machine's. The route follows from it.
    random_state : int, RandomState or None, default=None
        Seeds the start of the eigensolver where both sides of X exceed 3000; elsewhere nothing is
        random.
    verbose : int, default=0
        1 logs every step to the logger "keepers" (level INFO).
    callback : callable or None, default=None
        Called after each step with an object that has ``n_iter``, ``objective``, ``n_active`` and
        ``n_rows``.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Those of inactive rows are what the smoothing leaves in
        the limit: for p = 1, ``sqrt(eps) r / sqrt(1 - r^2)``, ``r = 2 |(S W)_i| / (gamma c_i)``,
        at most ``2 sqrt(eps)``. So inactive features are ranked by how near they are to becoming
        active, at r = 1. In the ranking features always kept come first, those never kept last,
        and the members of a group stand together; with ``refine``, the kept features come first.
    {fitted}
    components_ : array of shape (n_components, n_features)
        W transposed, rows ordered by the weight they carry in the penalised problem.
    {steps}
    stop_reason_ : str
        Why the iteration ended: "converged"; "max_iter"; or "plateau", where the leading components
        have nearly the same variance, as in a table without structure: many solutions are then as
        good as each other, and none is waited for.
    n_products_ : int
        Products of S with a block of ``n_components`` columns, or of a part of it with a part.
    n_active_ : int
        Active rows of W: those whose norm (or that of their group) exceeds 2 sqrt(eps), and those
        without penalty. If ``n_features_to_select`` asks for more, an `InactiveRowsWarning` gives
        the numbers and a gamma that is small enough.
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

    See Also
    --------
    AutoSelector : The selector to start with: no settings, and it says how many are enough.
    SPCAFSCV : Chooses the settings and the number of features without labels.
    spcafs_path : The same fit for many values of ``gamma``, from PCA to the sparsest.
    FSPCA : The features that hold the most variance.
    certify : How near the selection is to the features that hold the most variance.

    Notes
    -----
    :doc:`Its page </methods/spcafs>` has the objective, both solvers, the effect of ``gamma`` and
    ``p``, and when not to use it.

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

    The ranking of all features comes with the fit. All 13 rows of W are active here; a larger
    ``gamma`` leaves as many as there are components:

    >>> selector.top(4).names
    array(['color_intensity', 'alcohol', 'proline', 'flavanoids'],
          dtype=object)
    >>> selector.n_active_, selector.n_components_
    (13, 2)
    >>> SPCAFS(2, scaling=1, gamma=600).fit(wines).n_active_
    2

    Features that must stay, or must not, are given by their names:

    >>> known = {"must_keep": ["ash"], "never_keep": ["proline"]}
    >>> SPCAFS(3, scaling=1, **known).fit(wines).top().names
    array(['ash', 'color_intensity', 'alcohol'], dtype=object)
    """

    looks_for = "features that together hold as much of the variance of the table as so few can"
    score_means = (
        "how much the feature counts in the sparse components, from 0 (inactive: not used) to 1"
    )

    parameter_rules: ClassVar = {
        "n_components": COMPONENTS,
        "gamma": one_of("scale") | positive(),
        "p": positive(at_most=1.0, hint="p = 1 is the convex-like default."),
        "scaling": positive(at_most=1.0, zero=True),
        "eps": positive(at_most=1.0, hint="It smooths squared row norms at zero."),
        "solver": one_of("auto", "block", "dense"),
        "max_iter": whole(),
        "tol": positive(zero=True),
        "refine": one_of("l20", None),
        "verbose": whole(at_least=0),
        "callback": FUNCTION,
    }

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
        if self.memory_limit is not None:
            as_n_bytes(self.memory_limit, "memory_limit")
        check_control(**self._user_control())
        if self.refine is not None and self.max_correlation is not None:
            raise ParameterError(
                "refine='l20' and max_correlation must not be given together: the second undoes "
                f"what the first found; got max_correlation={shorten(self.max_correlation)}. Leave "
                "one of them out."
            )

    def _user_control(self) -> dict[str, Any]:
        named = ("penalty_weights", "groups", "must_keep", "never_keep")
        return {name: getattr(self, name) for name in named}

    def _fit_table(self, everything: FittedTable) -> None:
        control = control_of(self, everything.n_features)
        warn_of_units(self, everything)
        table = control.restrict(everything).scale(float(self.scaling))
        self.n_features_to_select_ = control.count_to_select(self.n_features_to_select)
        width, n_usable = expected_width(self.n_components), len(table.usable)
        with one_blas_thread_for(2.0 * width * n_usable * min(2 * table.n_samples, n_usable)):
            scatter = self._scatter_of(table, everything)
            pca = self._principal_components(scatter, table)
            self.gamma_ = float(
                GAMMA_SCALE * pca.values[0] if self.gamma == "scale" else self.gamma
            )
            penalty = penalty_of(control, table.usable, self.gamma_, float(self.p), float(self.eps))
            result = self._solve(scatter, pca, penalty, table.n_samples)
            norms = result.row_norms.astype(table.working_dtype, copy=False)
            scores = table.to_all_columns(norms)
            order = control.order(scores, everything)
            if self.refine is not None:
                order, self.refined_from_ = refine_order(
                    scatter, order, table, control, self.n_features_to_select_, len(pca.values)
                )
        self._store(result, table)
        self.var_ = everything.variances  # float32 may not hold it
        self.scores_ = scores.astype(table.dtype, copy=False)
        self.penalty_weights_ = control.weights
        self._store_order(order, everything, control.must, control.never)
        if self.n_features_to_select is not None:  # None keeps half, whatever the penalty does
            inactive = find_inactive_rows(self, np.flatnonzero(self.support_))
            if inactive is not None:
                warn_caller(f"{inactive} {inactive.way_out()}", InactiveRowsWarning)

    def _principal_components(self, scatter: SymmetricOperator, table: FittedTable) -> Subspace:
        """PCA, where the iteration starts."""
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        return leading_spectrum(
            scatter,
            self.n_components,
            n_samples=table.n_samples,
            sum_of_squares=table.moments.sum_of_squares,
            rng=self.random_generator(),
        ).subspace

    def _solve(
        self, scatter: SymmetricOperator, pca: Subspace, penalty: RowPenalty, n_samples: int
    ) -> SPCAFSResult:
        d, width = pca.vectors.shape
        self.solver_ = self.solver
        if self.solver == "auto":
            self.solver_ = "dense" if dense_is_cheaper(n_samples, d, width) else "block"
        if self.solver_ == "dense":
            refuse_past_memory(
                "solver='dense'",
                f"the {d} x {d} scatter, a copy and its decomposition",
                24.0 * d**2,
                "solver='block' needs none of them.",
            )
        solve = solve_dense if self.solver_ == "dense" else solve_block
        result = solve(
            scatter, pca, penalty, max_iter=self.max_iter, tol=self.tol, callback=self._on_step
        )
        if result.stop == MAX_ITER:
            warn_caller(
                f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol; the ranking usually converges long before the objective does.",
                ConvergenceWarning,
            )
        elif result.stop == PLATEAU:
            warn_caller(
                f"Stopped after {result.n_iter} steps on a plateau: the {width} leading "
                "components have nearly the same variance, so that many solutions are as good as "
                "each other and the ranking among the active features means little. The table may "
                "have no structure; AutoSelector says so if it finds none.",
                ConvergenceWarning,
            )
        return result

    def _store(self, result: SPCAFSResult, table: FittedTable) -> None:
        W = fix_signs(result.W)
        self.components_ = table.to_all_columns(W.T.astype(table.dtype, copy=False))
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.active_ = table.to_all_columns(result.active)
        self.n_active_ = result.n_active
        self.stop_reason_ = result.stop
        self.n_products_ = result.n_products
        self.n_components_ = W.shape[1]
        self.mean_ = table.mean.astype(table.dtype, copy=False)
        self.n_samples_seen_ = table.n_samples

    def _count_top(self, k: Any) -> int:
        return FeatureControl(self.penalty_weights_, None).count(k, "k")

    def fit_notes(self) -> FitNotes:
        """What the fit has to report, with the features whose rows of W are active."""
        return replace(super().fit_notes(), active=self.active_)

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


def _ensure_log_handler() -> None:
    """Let verbose=1 be seen on the error stream by users who never set logging up."""
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)


@dataclass(frozen=True)
class InactiveRows:
    """A selection that reaches past the active rows of W."""

    n_kept: int
    n_active: int
    """Kept features with active rows."""
    gamma: float
    small_enough: float | None
    """A gamma at which about all kept features become active; None if there is no telling."""

    def __str__(self) -> str:
        rest = self.n_kept - self.n_active
        has = (
            "has an active (non-zero) row" if self.n_active == 1 else "have active (non-zero) rows"
        )
        others = "the other is" if rest == 1 else f"the other {rest} are"
        near = "it is" if rest == 1 else "they are"
        return (
            f"Only {self.n_active} of the {self.n_kept} kept features {has} of W with "
            f"gamma={self.gamma:.3g}; {others} ranked by how near {near} to becoming active."
        )

    def way_out(self, set_gamma: str = "gamma=", set_k: str = "") -> str:
        """What to do about it; a command writes its options before the numbers."""
        smaller = ""
        if self.small_enough is not None:
            smaller = f" ({set_gamma}{self.small_enough:.2g} should be small enough)"
        fewer = "1 feature" if self.n_active == 1 else f"{self.n_active} features"
        option = f" ({set_k}{self.n_active})" if set_k else ""
        return f"Use a smaller gamma{smaller}, or keep at most {fewer}{option}."


def find_inactive_rows(selector: Any, kept: IndexArray) -> InactiveRows | None:
    """What a fitted SPCAFS, or one that chose its settings, keeps past its active rows.

    None if every kept feature has an active row, and for selectors without active rows. For p = 1
    an inactive row is pulled by r gamma, and its score is sqrt(eps) r / sqrt(1 - r^2): with W held
    fixed it leaves zero where gamma falls below that pull. With the smaller gamma W spreads and
    pulls grow, so that more rows than these become active.
    """
    fitted = getattr(selector, "best_estimator_", selector)
    if not isinstance(fitted, SPCAFS):
        return None
    # A constant column that the user wants kept has no row, and nobody ranks it.
    inactive = kept[~fitted.active_[kept] & (fitted.penalty_weights_[kept] != 0.0)]
    if len(inactive) == 0:
        return None
    small_enough = None
    if fitted.p == 1.0 and fitted.groups is None:
        size = float(np.min(fitted.scores_[inactive])) / float(np.sqrt(fitted.eps))
        pull = fitted.gamma_ * size / float(np.hypot(1.0, size))
        small_enough = 0.9 * pull if pull > 0.0 else None  # the message rounds it to two digits
    return InactiveRows(len(kept), len(kept) - len(inactive), fitted.gamma_, small_enough)
