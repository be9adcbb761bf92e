"""UDFS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.graph import union_graph
from keepers.linalg.quadratic_form import LaplacianForms, QuadraticForm
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_quadratic_form
from keepers.selectors.neighbours import nearest_neighbours, warn_of_defect
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_columns,
    cap_neighbors,
    check_count,
    check_flag,
    check_positive,
    check_positive_or_scale,
    warn_of_noise,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.reweighting import RowSparseProjection, break_ties_by_cost, count_active
from keepers.solvers.udfs import local_scatter, solve_udfs

GAMMA_SCALE = 0.1


@dataclass(eq=False, repr=False)
class UDFS(RankingSelector):
    """Unsupervised discriminative feature selection.

    Finds an orthonormal W (features x clusters) under which every sample and its nearest
    neighbours stay easy to tell apart, while a penalty on the norms of its rows drives most of
    them to zero::

        minimise  Tr(W' M W) + gamma * sum_j |w_j|   subject to W'W = I.

    M = X' Lbar X adds up the local scatter of all neighbourhoods. A feature's score is the squared
    norm of its row. The method is that of Yang, Shen, Ma, Huang and Zhou (IJCAI 2011).

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    n_clusters : int, default=5
        Columns of W. Capped, with a warning, below the number of columns that vary.
    n_neighbors : int, default=5
        Neighbours per sample. Capped, with a warning, at n_samples - 1.
    gamma : "scale" or float, default="scale"
        Weight of the penalty, on the scale of M. "scale" means 0.1 times the mean of the diagonal
        of M. That diagonal depends on the unit of X, the number of samples and
        ``regularization``, so no fixed number suits two tables: with 5 clusters, gamma = 1 left
        5 to 8 active rows on seven tables, "scale" 20 to 150 on six of them.
    regularization : float, default=1000.0
        The paper's lambda: added to the local scatter before it is inverted. To be read beside the
        squared distances between neighbours: X -> aX with lambda -> a^2 lambda changes nothing.
    max_iter : int, default=100
        Eigenproblems at most.
    tol : float, default=1e-8
        The iteration ends when a step lowers the objective by no more than this, relatively.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver; it does not change the scores beyond rounding.
    tie_breaker : bool, default=True
        Whether features of larger standard deviation win (by one part in a million of the first
        weights) what the objective leaves open. Without it the outcome for more features than
        samples is arbitrary, as in the published programs; False serves to compare with those.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W; higher is better; they sum to ``n_clusters_``. Scores up to 1e-12 of
        the largest are rounding noise: they are replaced by values below that limit that order
        these features by M_jj, the cheapest first.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    objective_ : array
        The objective after every step, the norms smoothed at zero; it never rises.
    n_iter_ : int
        Eigenproblems solved.
    converged_ : bool
        Whether the objective converged within ``max_iter`` steps.
    n_active_ : int
        Features whose score is not rounding noise.
    gamma_ : float
        The penalty weight used.
    n_clusters_ : int
        The number of columns of W used.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    SOGFS : Learns the graph together with the projection.
    SPCAFS : Row-sparse as well, without a graph.

    Examples
    --------
    >>> from keepers import UDFS, datasets
    >>> X, names, y = datasets.load("digits")
    >>> X = X[:, X.std(axis=0) > 0]
    >>> selector = UDFS(20, n_clusters=10, gamma=0.1).fit(X)
    >>> selector.transform(X).shape
    (1797, 20)
    >>> selector.converged_
    True
    """

    why_not_sparse = "it works with centred neighbourhoods, which have no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    gamma: float | str = "scale"
    regularization: float = 1000.0
    max_iter: int = 100
    tol: float = 1e-8
    max_correlation: float | None = None
    random_state: Seed = None
    tie_breaker: bool = True

    def score_features(self, table: Table) -> FloatArray:
        """Squared row norms of W; those that are rounding noise by their cost."""
        values = table.in_double() - table.moments.mean
        n_samples, n_usable = values.shape
        n_clusters = cap_columns("n_clusters", self.n_clusters, n_usable)
        refuse_quadratic_form("UDFS", n_samples, n_usable)
        rng = self.random_generator()
        neighbours = nearest_neighbours(values, cap_neighbors(self.n_neighbors, n_samples))
        warn_of_defect(neighbours, union_graph(neighbours))
        forms = LaplacianForms.of(values)
        form = forms.of_middle(
            local_scatter(forms.coordinates, neighbours.indices, float(self.regularization))
        )
        gamma = self._absolute_gamma(form)
        with one_blas_thread_if_small(min(values.shape)):
            result = solve_udfs(
                form,
                gamma,
                n_clusters,
                np.sqrt(table.moments.variance),
                rng,
                max_iter=self.max_iter,
                tol=self.tol,
                tie_breaker=self.tie_breaker,
            )
        self._warn_unless_converged(result)
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.n_active_ = count_active(result.squared_norms)
        self.gamma_ = gamma
        self.n_clusters_ = n_clusters
        warn_of_noise(self.n_active_, self.n_features_to_select_)
        scores = break_ties_by_cost(result.squared_norms, form.diagonal())
        return table.to_all_columns(scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_positive("regularization", self.regularization, hint="The paper's lambda.")
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_flag("tie_breaker", self.tie_breaker)
        check_positive_or_scale("gamma", self.gamma)

    def _absolute_gamma(self, form: QuadraticForm) -> float:
        if self.gamma != "scale":
            return float(self.gamma)
        scale = float(form.diagonal().mean())
        return GAMMA_SCALE * scale if scale > 0.0 else 1.0  # 0: all neighbours coincide

    def _warn_unless_converged(self, result: RowSparseProjection) -> None:
        if not result.converged:
            warn_caller(
                f"The objective was still falling after max_iter={self.max_iter} steps. Raise "
                "max_iter or tol.",
                ConvergenceWarning,
            )
