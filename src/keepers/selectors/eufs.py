"""EUFS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.graph import laplacian
from keepers.linalg.subspace import row_norms
from keepers.selectors.fitted_table import Table
from keepers.selectors.kmeans_start import kmeans_labels
from keepers.selectors.neighbours import heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_neighbors,
    check_bandwidth,
    check_count,
    check_positive,
    check_positive_or_scale,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.eufs import EUFSResult, solve_eufs, start_from_labels, vanishing_alpha

ALPHA_SCALE = 0.3
# The split E = X - UV' usually holds to four digits after 300 iterations; worse than this, they
# were too few.
INEXACT = 1e-2
# Scores this far below the others count as zero, and may still carry an order.
BELOW_ALL = 1e-12


@dataclass(eq=False, repr=False)
class EUFS(RankingSelector):
    """Embedded unsupervised feature selection: clustering with row-sparse cluster centres.

    Factors the table into a cluster indicator U (samples x clusters) and centres V (features x
    clusters) of which most rows are zero::

        minimise  |X - U V'|_{2,1} + alpha |V|_{2,1} + beta Tr(U' L U)
        subject to  U'U = I,  U >= 0,

    where the norms sum the lengths of rows and L is the Laplacian of a neighbour graph of the
    samples. A feature's score is the norm of its row of V. This is the method of "Embedded
    unsupervised feature selection" (Wang, Tang and Liu, AAAI 2015), with the threshold alpha / mu
    that its derivation asks for.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit.
    n_clusters : int, default=5
        Columns of U and V. With fewer samples (or distinct samples) than that, as many as there
        are, with a warning.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most n_samples - 1, with a warning beyond.
    alpha : "scale" or float, default="scale"
        Weight of the row sparsity. Too large, and V is zero. "scale" means 0.3 times the least
        alpha at which V = 0 is stationary for the k-means clusters; it does not depend on the unit
        of X.
    beta : float, default=0.1
        Weight of the graph; in the unit of X.
    max_iter : int, default=300
        Iterations at most; the penalty of the splitting has then grown to about 1e9. Usually all
        of them are run.
    tol : float, default=1e-6
        The iteration ends when U V' + E = X (relative to the largest entry of X) and U >= 0 hold
        to this.
    bandwidth : float or None, default=None
        Of the heat kernel exp(-distance^2 / (2 bandwidth^2)); None takes the mean distance between
        samples.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the k-means start, and the sample from which the bandwidth is taken past 3000 rows.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of V; higher is better. Rows at zero get up to 1e-12 of the smallest other norm,
        which orders them: first those that once were not zero, by the last norm they had, then the
        others by how near they came to it. If all rows are at zero, the scores are that order, in
        [0, 1].
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    components_ : array of shape (n_clusters, n_features)
        V transposed.
    objective_ : array
        The objective after every iteration. It need not fall.
    n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether both constraints held to ``tol`` within ``max_iter`` iterations; usually not.
    residual_ : float
        max|X - U V' - E| / max|X| at the end.
    indicator_gap_ : float
        How far U is from being non-negative at the end.
    alpha_ : float
        The weight used.
    n_clusters_ : int
        The number of clusters used.
    n_active_ : int
        Rows of V that are not zero.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    UDFS : Row-sparse as well, without clusters.
    NDFS : A row-sparse regression of clusters.
    DGUFS : Clusters and features by their dependence.

    Examples
    --------
    >>> from keepers import EUFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = EUFS(50, n_clusters=4, random_state=0).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    why_not_sparse = "its residual X - U V' has no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float | str = "scale"
    beta: float = 0.1
    max_iter: int = 300
    tol: float = 1e-6
    bandwidth: float | None = None
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Row norms of V, and an order among rows at zero below them."""
        # In one layout: the iteration amplifies what rounding makes of another.
        values = np.ascontiguousarray(table.X, dtype=np.float64)
        random = check_random_state(self.random_state)
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        rng = np.random.default_rng(random.randint(2**31 - 1))
        graph = heat_graph(values, n_neighbors, self.bandwidth, rng)
        start = start_from_labels(values, *kmeans_labels(values, self.n_clusters, random))
        alpha = self.alpha
        if isinstance(alpha, str):
            alpha = ALPHA_SCALE * vanishing_alpha(values, start.U)
        result = solve_eufs(
            values,
            laplacian(graph),
            start,
            alpha=alpha,
            beta=self.beta,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        norms = row_norms(result.V)
        self._warn_of_outcome(result, alpha, norms)
        self.components_ = table.to_all_columns(result.V.T)
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.residual_ = result.residual
        self.indicator_gap_ = result.indicator_gap
        self.alpha_ = float(alpha)
        self.n_clusters_ = start.U.shape[1]
        self.n_active_ = int(np.count_nonzero(norms))
        return table.to_all_columns(_scores(norms, result.last_norms, result.pulls))

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_positive_or_scale("alpha", self.alpha)
        check_positive("beta", self.beta, zero=True)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_bandwidth(self.bandwidth)

    def _warn_of_outcome(self, result: EUFSResult, alpha: float, norms: FloatArray) -> None:
        if not result.converged and result.residual > INEXACT:
            warn_caller(
                f"After max_iter={self.max_iter} iterations U V' + E still differs from X by "
                f"{result.residual:.2g} of its largest entry. Raise max_iter; 300 is usual.",
                ConvergenceWarning,
            )
        elif not norms.any():
            warn_caller(
                f"All rows of V vanished with alpha={alpha:.3g}. The features are ranked by the "
                "last norm their row had, then by how near it came to having one. Lower alpha "
                "(alpha='scale' adapts it to the data) or raise n_clusters.",
                ConvergenceWarning,
            )


def _scores(norms: FloatArray, last_norms: FloatArray, pulls: FloatArray) -> FloatArray:
    """Row norms of V; rows at zero below all others, by their last norm, then by their pull."""
    active = norms > 0
    largest = max(last_norms.max(), np.finfo(np.float64).tiny)
    among_zeros = np.where(last_norms > 0, 0.5 + 0.5 * last_norms / largest, 0.5 * pulls)
    ceiling = BELOW_ALL * norms[active].min() if active.any() else 1.0
    return np.where(active, norms, ceiling * among_zeros)
