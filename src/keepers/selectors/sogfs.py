"""SOGFS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, DataError, warn_caller
from keepers.linalg.graph import union_graph
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_quadratic_form
from keepers.selectors.neighbours import nearest_neighbours, warn_of_defect
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_clusters,
    cap_columns,
    cap_neighbors,
    check_count,
    check_positive,
    warn_of_noise,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.reweighting import break_ties_by_cost, count_active
from keepers.solvers.sogfs import SOGFSResult, solve_sogfs, unit_columns

MOST_DEFAULT_COMPONENTS = 100


@dataclass(eq=False, repr=False)
class SOGFS(RankingSelector):
    """Structured optimal graph feature selection.

    Learns three things together, on centred features of unit norm: a graph S in which every sample
    has a few weighted neighbours, a projection W (features x components) with few non-zero rows
    that keeps neighbours close, and an indicator F that drives the graph towards ``n_clusters``
    connected components::

        minimise  sum_ij (|W'x_i - W'x_j|^2 s_ij + alpha s_ij^2) + 2 gamma sum_j |w_j|
                  + 2 lambda Tr(F' L_S F)
        subject to S1 = 1, S >= 0, W'W = I, F'F = I.

    alpha comes from the data, lambda is raised or lowered until the number of components is right.
    A feature's score is the squared norm of its row of W. The method is that of Nie, Zhu and Li
    (AAAI 2016). Scores do not depend on the unit or the offset of a feature.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It enters the fit
        through the default of ``n_components`` only.
    n_clusters : int, default=5
        Connected components the graph is to have. Capped, with a warning, at n_samples.
    n_components : int or None, default=None
        Columns of W. At large ``gamma`` exactly so many features have a score, so it should not
        be below the number of features wanted. None takes ``n_features_to_select`` if that is
        given, at least ``n_clusters`` and at most 100; else ``n_clusters``. Capped, with a
        warning, below the number of columns that vary.
    n_neighbors : int, default=5
        Neighbours per sample. Capped, with a warning, at n_samples - 2.
    gamma : float, default=1.0
        Weight of the penalty on the rows of W, as in the authors' program (half that of the
        printed objective). Features have unit norm, so it needs no adaptation to the data.
    max_iter : int, default=50
        Passes over S, W and F at most.
    tol : float, default=1e-6
        Within a pass, W is reweighted until its part of the objective changes by less than this
        (absolutely), at most 100 times.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver; it does not change the scores beyond its tolerance.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W; higher is better; they sum to ``n_components_``. Scores up to 1e-12
        of the largest are rounding noise: they are replaced by values below that limit that order
        these features by their own cost (X'LX)_jj, the cheapest first.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    graph_ : sparse array of shape (n_samples, n_samples)
        The graph learned, (S + S')/2.
    converged_ : bool
        Whether that graph has exactly ``n_clusters_`` components.
    n_iter_ : int
        Passes made.
    objective_ : array
        The objective after every pass. It is no falling sequence: lambda changes between passes.
    lambdas_ : array
        The lambda of every pass.
    n_active_ : int
        Features whose score is not rounding noise.
    n_components_ : int
        The number of columns of W used.
    n_clusters_ : int
        The number of components asked of the graph.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    UDFS : With a graph that is given, not learned.
    SPCAFS : Row-sparse as well, without a graph.

    Examples
    --------
    >>> from keepers import SOGFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SOGFS(10, n_clusters=4).fit(X[:, :200])
    >>> selector.transform(X[:, :200]).shape
    (83, 10)
    >>> selector.converged_
    True
    """

    why_not_sparse = "it works with centred columns, which have no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_components: int | None = None
    n_neighbors: int = 5
    gamma: float = 1.0
    max_iter: int = 50
    tol: float = 1e-6
    max_correlation: float | None = None
    random_state: Seed = None

    @property
    def depends_on_k(self) -> bool:  # type: ignore[override]
        """Unless told, the number of columns of W follows the number of features wanted."""
        return self.n_components is None

    def score_features(self, table: Table) -> FloatArray:
        """Squared row norms of W; those that are rounding noise by their cost."""
        n_samples, n_usable = table.X.shape
        n_neighbors = self._cap_neighbors(n_samples)
        n_clusters = cap_clusters(self.n_clusters, n_samples)
        width = self._count_components(n_clusters, n_usable)
        refuse_quadratic_form("SOGFS", n_samples, n_usable)
        rng = self.random_generator()
        values = unit_columns(table.in_double() - table.moments.mean)
        neighbours = nearest_neighbours(values, n_neighbors)
        warn_of_defect(neighbours, union_graph(neighbours))
        with one_blas_thread_if_small(min(values.shape)):
            result = solve_sogfs(
                values,
                np.sqrt(table.moments.variance),
                nearest_neighbours,
                rng,
                n_neighbors=n_neighbors,
                n_clusters=n_clusters,
                width=width,
                gamma=float(self.gamma),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self._warn_unless_converged(result, n_clusters)
        self.graph_ = result.graph
        self.converged_ = result.converged
        self.n_iter_ = result.n_iter
        self.objective_ = result.objective
        self.lambdas_ = result.lambdas
        self.n_active_ = count_active(result.squared_norms)
        self.n_components_ = width
        self.n_clusters_ = n_clusters
        warn_of_noise(self.n_active_, self.n_features_to_select_)
        return table.to_all_columns(break_ties_by_cost(result.squared_norms, result.cost))

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        if self.n_components is not None:
            check_count("n_components", self.n_components, hint="Or None.")
        check_positive("gamma", self.gamma)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol)

    def _cap_neighbors(self, n_samples: int) -> int:
        if n_samples < 3:
            raise DataError(
                "SOGFS needs at least 3 samples: a neighbour, and one beyond it that sets the "
                f"scale of the similarities; got {n_samples}."
            )
        return cap_neighbors(self.n_neighbors, n_samples, spare=2)

    def _count_components(self, n_clusters: int, n_usable: int) -> int:
        if self.n_components is not None:
            return cap_columns("n_components", self.n_components, n_usable)
        wanted = 0 if self.n_features_to_select is None else self.n_features_to_select_
        return min(max(n_clusters, min(wanted, MOST_DEFAULT_COMPONENTS)), max(1, n_usable - 1))

    def _warn_unless_converged(self, result: SOGFSResult, n_clusters: int) -> None:
        if not result.converged:
            warn_caller(
                f"The graph does not have exactly {n_clusters} components after max_iter="
                f"{self.max_iter} passes. Raise max_iter, or try another n_clusters.",
                ConvergenceWarning,
            )
