"""NDFS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.subspace import row_norms
from keepers.linalg.weighted_ridge import WeightedRidge
from keepers.selectors.fitted_table import Table
from keepers.selectors.kmeans_start import kmeans_labels
from keepers.selectors.memory import refuse_weighted_ridge
from keepers.selectors.neighbours import heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_neighbors,
    check_bandwidth,
    check_count,
    check_positive,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.ndfs import INACTIVE, first_clusters, solve_ndfs, vanishing_beta

# After 200 steps the scores usually change by a thousandth of the largest in a step; by more than
# this, they were too few.
INEXACT = 0.05


@dataclass(eq=False, repr=False)
class NDFS(RankingSelector):
    """Nonnegative discriminative feature selection: clusters and what predicts them.

    Learns a non-negative indicator of clusters F (samples x clusters) that is smooth on a graph of
    the samples, together with a regression W (features x clusters) of it on the features, of
    which most rows are driven to zero::

        minimise  Tr(F' L F) + alpha (|X W - F|^2 + beta sum_j |w_j|) + gamma/2 |F'F - I|^2
        subject to  F >= 0,

    where L is the Laplacian of the graph. A feature's score is the norm of its row of W. This is
    the method of "Unsupervised feature selection using nonnegative spectral analysis" (Li, Yang,
    Liu, Zhou and Lu, AAAI 2012), with an update that keeps F non-negative (the released programs'
    does not), and with weights that do not depend on the unit of X.

    X is taken as it is: a feature with a large mean can stand in for the intercept that the
    regression does not have. Standardise first unless zero means something.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    n_clusters : int, default=5
        Columns of F and W. With fewer samples (or distinct samples) than that, as many as there
        are, with a warning.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n_samples - 1, with a warning beyond.
    alpha : float, default=1.0
        Weight of the regression beside the graph. F follows it only as far as ``gamma`` lets it.
    beta : float in (0, 1], default=0.1
        Weight of the row sparsity, as a share of the least weight for which W = 0 is stationary
        for the k-means clusters (``beta_max_``). The paper's beta is ``beta * beta_max_``; it has
        the unit of X, so that no fixed number would suit two tables.
    gamma : float, default=1000.0
        Weight of F'F = I. From about 1e6 on neither the graph nor ``alpha`` has an effect, and
        the clusters stay what k-means has made of them; the paper's programs take 1e8.
    max_iter : int, default=200
        Steps at most. Usually all of them are made.
    tol : float, default=1e-6
        The iteration ends when no score changes by more than this in a step, relative to the
        largest.
    bandwidth : float or None, default=None
        Of the heat kernel exp(-distance^2 / (2 bandwidth^2)); None takes the mean distance between
        samples (over a random 3000 of them if there are more).
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the k-means start, and the sample from which the bandwidth is taken past 3000 rows.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Those of inactive rows, which the penalty sends to zero,
        are what the smoothing of the penalty leaves of them: the nearer a row is to being active,
        the more.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_clusters, n_features)
        W transposed.
    indicator_ : array of shape (n_samples, n_clusters)
        F; the largest entry of a row is the cluster of the sample.
    objective_ : array
        The objective after every step. Scaling the columns of F may raise it a little.
    n_iter_ : int
        Steps made.
    converged_ : bool
        Whether the scores changed by ``tol`` or less in the last step; usually not.
    change_ : float
        By how much they changed, relative to the largest. Past 0.05 a warning is given.
    n_active_ : int
        Active rows of W: those that are longer than what the smoothing leaves of others.
    beta_max_ : float
        The least weight of the row sparsity for which W = 0 is stationary for the k-means clusters.
    n_clusters_ : int
        The number of clusters used.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    JELSR : A row-sparse regression as well, of an embedding instead of clusters.
    EUFS : Clusters with row-sparse centres.

    Examples
    --------
    >>> from keepers import NDFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = NDFS(50, n_clusters=4, random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> selector.indicator_.shape
    (83, 4)
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float = 1.0
    beta: float = 0.1
    gamma: float = 1000.0
    max_iter: int = 200
    tol: float = 1e-6
    bandwidth: float | None = None
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Row norms of W."""
        refuse_weighted_ridge("NDFS", table.X)
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        unit = _root_mean_square(table.moments)
        values = table.in_double() / unit
        random = check_random_state(self.random_state)
        rng = np.random.default_rng(random.randint(2**31 - 1))
        bandwidth = None if self.bandwidth is None else float(self.bandwidth) / unit
        graph = heat_graph(values, n_neighbors, bandwidth, rng)
        labels, n_clusters = kmeans_labels(values, self.n_clusters, random)
        with one_blas_thread_if_small(min(values.shape)):
            ridge = WeightedRidge(values)
            beta_max = vanishing_beta(ridge, labels, n_clusters)
            result = solve_ndfs(
                ridge,
                graph,
                first_clusters(labels, n_clusters),
                alpha=float(self.alpha),
                beta=float(self.beta) * beta_max,
                gamma=float(self.gamma),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self._warn_if_inexact(result.change)
        self.components_ = table.to_all_columns(result.W.T / unit)
        self.indicator_ = result.F
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.change_ = result.change
        norms = row_norms(result.W)
        self.n_active_ = int(np.count_nonzero(norms > INACTIVE))
        self.beta_max_ = beta_max * unit
        self.n_clusters_ = n_clusters
        return table.to_all_columns(norms / unit)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_positive("alpha", self.alpha, zero=True)
        check_positive("beta", self.beta, at_most=1.0, hint="It is a share of beta_max_.")
        check_positive("gamma", self.gamma, hint="Without it F would vanish.")
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_bandwidth(self.bandwidth)

    def _warn_if_inexact(self, change: float) -> None:
        if change > max(INEXACT, self.tol):
            warn_caller(
                f"In the last of max_iter={self.max_iter} steps the scores still changed by "
                f"{change:.2g} of the largest. Raise max_iter; 200 is usual.",
                ConvergenceWarning,
            )


def _root_mean_square(moments: ColumnMoments) -> float:
    """Of all values: the unit in which the fit is made, so that it does not depend on X's own."""
    return float(np.sqrt(np.mean(moments.variance + moments.mean**2)))
