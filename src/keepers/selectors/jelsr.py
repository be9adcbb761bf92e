"""JELSR as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.graph import (
    laplacian,
    reconstruction_laplacian,
    reconstruction_weights,
    union_graph,
)
from keepers.linalg.storage import as_array
from keepers.linalg.subspace import row_norms
from keepers.linalg.weighted_ridge import WeightedRidge
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_weighted_ridge
from keepers.selectors.neighbours import heat_graph, nearest_neighbours, warn_of_defect
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_clusters,
    cap_neighbors,
    check_bandwidth,
    check_choice,
    check_count,
    check_positive,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.jelsr import JELSRResult, solve_jelsr

# Rows longer than this share of the longest are active, or at least not yet near zero.
ACTIVE_SHARE = 1e-6
# A step usually lowers the objective by less than a millionth of it in the end; by more than this,
# they were too few.
INEXACT = 1e-4


@dataclass(eq=False, repr=False)
class JELSR(RankingSelector):
    """Joint embedding learning and sparse regression.

    Embeds the samples by coordinates Y that are smooth on a neighbour graph, and learns at the same
    time a regression W of them on the features, of which most rows are driven to zero::

        minimise  Tr(Y' L Y) + beta (|X W - Y|^2 + alpha sum_j |w_j|)
        subject to  Y'Y = I,  Y'1 = 0,

    where X is centred and L is the Laplacian of the graph: `MCFS` in one step instead of two. A
    feature's score is the norm of its row of W. This is the method of "Feature selection via joint
    embedding learning and sparse regression" (Hou, Nie, Yi and Wu, IJCAI 2011), with the constant
    vector, which is no coordinate, kept out of Y.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    n_clusters : int, default=5
        Y has one column less, at least one: so many contrasts tell the clusters apart. Capped, with
        a warning, at the number of samples.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n_samples - 1, with a warning beyond.
    graph : {"heat", "lle"}, default="heat"
        L: D - S of the graph with heat-kernel weights, or (I - B)'(I - B) with the weights B that
        rebuild every sample from its neighbours, as in locally linear embedding.
    alpha : float in (0, 1], default=0.1
        Weight of the row sparsity, as a share of the weight from which on W = 0 whatever Y is:
        twice the length of the longest centred column (``alpha_max_``). The paper's alpha is
        ``alpha * alpha_max_``; it has the unit of X, so that no fixed number would suit two tables.
    beta : float, default=1.0
        Weight of the regression beside the graph.
    max_iter : int, default=200
        Steps at most. Often all of them are made.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by no more than this, relatively.
    bandwidth : float or None, default=None
        Of the heat kernel exp(-distance^2 / (2 bandwidth^2)); None takes the mean distance between
        samples (over a random 3000 of them if there are more).
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver past 600 samples and the sample for the mean distance past 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows that the penalty sends to zero shrink from step to
        step, the sooner the less they explain, and are ranked by what is left of them.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_columns, n_features)
        W transposed.
    embedding_ : array of shape (n_samples, n_columns)
        Y: orthonormal columns, orthogonal to the constant.
    objective_ : array
        The objective after every step; it never rises.
    n_iter_ : int
        Steps made.
    converged_ : bool
        Whether the last step lowered the objective by ``tol`` or less; often not. A warning is
        given if it lowered it by more than 1e-4.
    n_active_ : int
        Rows of W longer than a millionth of the longest.
    alpha_max_ : float
        The weight of the row sparsity from which on W = 0 whatever Y is.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    MCFS : Embeds first, and regresses then.
    NDFS : A row-sparse regression as well, of clusters instead of an embedding.

    Examples
    --------
    >>> from keepers import JELSR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = JELSR(50, n_clusters=4).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> selector.embedding_.shape
    (83, 3)
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    graph: str = "heat"
    alpha: float = 0.1
    beta: float = 1.0
    max_iter: int = 200
    tol: float = 1e-8
    bandwidth: float | None = None
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Row norms of W."""
        refuse_weighted_ridge("JELSR", table.X)
        n_clusters = cap_clusters(self.n_clusters, table.n_samples)
        rng = self.random_generator()
        # The unit of the fit, so that it does not depend on that of X.
        unit = float(np.sqrt(np.mean(table.moments.variance)))
        moments = table.moments.scaled(np.full(len(table.usable), 1.0 / unit))
        ridge = WeightedRidge.centred(table.in_double() / unit, moments)
        L = self._laplacian(ridge.X, unit, rng)
        alpha_max = 2.0 * float(np.sqrt(moments.sum_of_squares.max()))
        with one_blas_thread_if_small(min(ridge.X.shape)):
            result = solve_jelsr(
                ridge,
                L,
                max(1, n_clusters - 1),
                rng,
                alpha=float(self.alpha) * alpha_max,
                beta=float(self.beta),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self._warn_if_inexact(result)
        norms = row_norms(result.W)
        self.components_ = table.to_all_columns(result.W.T / unit)
        self.embedding_ = result.Y
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.n_active_ = int(np.count_nonzero(norms > ACTIVE_SHARE * norms.max()))
        self.alpha_max_ = alpha_max * unit
        return table.to_all_columns(norms / unit)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_choice("graph", self.graph, ("heat", "lle"))
        check_positive("alpha", self.alpha, at_most=1.0, hint="It is a share of alpha_max_.")
        check_positive("beta", self.beta)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_bandwidth(self.bandwidth)

    def _laplacian(self, X: Any, unit: float, rng: np.random.Generator) -> sp.csr_array:
        n_neighbors = cap_neighbors(self.n_neighbors, X.shape[0])
        if self.graph == "heat":
            bandwidth = None if self.bandwidth is None else float(self.bandwidth) / unit
            return laplacian(heat_graph(X, n_neighbors, bandwidth, rng))
        neighbours = nearest_neighbours(X, n_neighbors)
        weights = reconstruction_weights(as_array(X), neighbours)
        warn_of_defect(neighbours, union_graph(neighbours))
        return reconstruction_laplacian(weights)

    def _warn_if_inexact(self, result: JELSRResult) -> None:
        if result.change > max(INEXACT, self.tol):
            warn_caller(
                f"In the last of max_iter={self.max_iter} steps the objective still fell by "
                f"{result.change:.2g} of itself. Raise max_iter; 200 is usual.",
                ConvergenceWarning,
            )
