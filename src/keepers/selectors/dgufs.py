"""DGUFS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import scipy.sparse as sp

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, ParameterError, shorten, warn_caller
from keepers.linalg.subspace import row_norms
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.neighbours import binary_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_clusters,
    cap_neighbors,
    check_choice,
    check_count,
    check_positive,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.dgufs import (
    RUNAWAY,
    ADMMResult,
    BCDResult,
    cluster_labels,
    kernel_is_dense,
    solve_admm,
    solve_bcd,
)

# n x n and n x d arrays held at once, work space of the eigenproblem included.
ADMM_SQUARES, ADMM_TABLES = 10, 8
BCD_SQUARES = 4


@dataclass(eq=False, repr=False)
class DGUFS(RankingSelector):
    """Dependence guided unsupervised feature selection.

    Chooses m features and a cluster kernel L of the samples (samples x samples) so that L agrees
    with a neighbour graph S and, by the Hilbert-Schmidt independence criterion, with the features
    chosen::

        minimise  -beta Tr(S L) - (1 - beta) Tr(Y' Y H L H) + alpha rank(L),

    Y being the table with all but m features set to zero. This is the model of "Dependence guided
    unsupervised feature selection" (Guo and Zhu, AAAI 2018), with two solvers.

    "bcd" (ours, the default) fixes rank(L) = n_clusters and alternates two closed forms: L is the
    best approximation of a blend of S and the kernel of the chosen features; the chosen features
    are those with the largest f' H L H f.

    "admm" is the authors' released program. **It selects the features of smallest norm**: it starts
    from zero, its first step keeps exactly those, and nothing moves them afterwards. For n_samples
    <= 1 + 12.6 sqrt(alpha) that is a theorem; beyond, no numerically stable run was seen to do
    otherwise. It is here so that published comparisons can be repeated, not to be used.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. Both solvers need it:
        another number is another fit.
    n_clusters : int, default=5
        Rank of L ("bcd"), and how many labels there can be. With fewer samples than that, as many
        as there are, with a warning.
    n_neighbors : int, default=5
        Neighbours per sample in the graph, the sample itself not counted; at most n_samples - 1,
        with a warning beyond.
    alpha : float, default=10.0
        Weight of the rank of L; used by "admm" only. Below about 1e-3 "admm" runs away.
    beta : float in (0, 1], default=0.5
        Weight of the graph against the dependence on the features.
    solver : {"bcd", "admm"}, default="bcd"
        See above.
    max_iter : int, default=100
        Passes at most; "bcd" usually needs two to four.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the start of the eigensolver of "bcd", which does not influence the result beyond
        rounding. "admm" has nothing random.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Higher is better. "bcd": f' H L H f of every feature. "admm": row norms of Y, 0 for every
        feature that was not selected.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    labels_ : array of shape (n_samples,)
        For every sample, in which of the leading eigenvectors of L (times the root of the
        eigenvalue) it weighs most.
    objective_ : array
        The objective after every pass ("bcd": without the rank, which is fixed).
    n_iter_ : int
        Passes made.
    converged_ : bool
        Whether the selection converged ("bcd"), or the constraints held to 5e-7 ("admm").
    n_clusters_ : int
        The number of clusters used.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    EUFS : Clusters and features by a factorisation.
    SPCAFS : One fit serves every number of features.

    Examples
    --------
    >>> from keepers import DGUFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = DGUFS(50, n_clusters=4).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> selector.converged_
    True
    """

    depends_on_k = True
    why_not_sparse = "its kernels are those of centred columns, which have no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    alpha: float = 10.0
    beta: float = 0.5
    solver: str = "bcd"
    max_iter: int = 100
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Scores of the features selected above those of all others."""
        values = table.in_double()
        n_samples, n_usable = values.shape
        n_selected = min(self.n_features_to_select_, n_usable)
        n_clusters = cap_clusters(self.n_clusters, n_samples)
        self._refuse_past_memory(n_samples, n_usable, n_clusters)
        graph = binary_graph(values, cap_neighbors(self.n_neighbors, n_samples))
        result: ADMMResult | BCDResult
        if self.solver == "admm":
            result = self._solve_admm(values, graph, n_selected)
            scores = row_norms(result.Y)
        else:
            result = self._solve_bcd(values, graph, n_selected, n_clusters)
            scores = result.scores
        self.labels_ = cluster_labels(result.L, n_clusters)
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.n_clusters_ = n_clusters
        return table.to_all_columns(scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_choice("solver", self.solver, ("bcd", "admm"))
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_positive("alpha", self.alpha, hint="The paper's grid is 10 to 1e5.")
        check_positive("beta", self.beta, at_most=1.0)
        check_count("max_iter", self.max_iter)

    def _refuse_past_memory(self, n_samples: int, n_usable: int, n_clusters: int) -> None:
        if self.solver == "admm":
            what = f"{n_samples} x {n_samples} kernels and {n_samples} x {n_usable} tables"
            entries = ADMM_SQUARES * n_samples**2 + ADMM_TABLES * n_samples * n_usable
            refuse_past_memory("DGUFS(solver='admm')", what, 8.0 * entries)
        elif kernel_is_dense(n_samples, n_clusters):
            what = f"{n_samples} x {n_samples} kernels (10 n_clusters >= n_samples)"
            refuse_past_memory("DGUFS", what, 8.0 * BCD_SQUARES * n_samples**2)

    def _solve_bcd(
        self, X: FloatArray, graph: sp.csr_array, n_selected: int, n_clusters: int
    ) -> BCDResult:
        rng = self.random_generator()
        result = solve_bcd(
            X, graph, n_selected, n_clusters, beta=self.beta, max_iter=self.max_iter, rng=rng
        )
        if result.period > 1:
            warn_caller(
                f"The selection cycles through {result.period} choices and will not converge; the "
                "last of them is kept. Another beta or n_clusters may help.",
                ConvergenceWarning,
            )
        elif not result.converged:
            warn_caller(
                f"The selection was still changing after max_iter={self.max_iter} passes. Raise "
                "max_iter.",
                ConvergenceWarning,
            )
        return result

    def _solve_admm(self, X: FloatArray, graph: sp.csr_array, n_selected: int) -> ADMMResult:
        result = solve_admm(
            X, graph, n_selected, alpha=self.alpha, beta=self.beta, max_iter=self.max_iter
        )
        if result.diverged:
            raise ParameterError(
                f"solver='admm' ran away with alpha={shorten(self.alpha)}: after {result.n_iter} "
                f"iterations its entries exceed {RUNAWAY:g} times those of X. alpha must be "
                "larger (the paper's grid is 10 to 1e5), or use solver='bcd'."
            )
        if result.L.rank == 0:
            warn_caller(
                "solver='admm' never left L = 0, so the selected features are simply those of "
                "smallest norm. solver='bcd' solves the same model.",
                ConvergenceWarning,
            )
        elif not result.converged:
            warn_caller(
                f"solver='admm' did not meet its constraints in max_iter={self.max_iter} "
                "iterations; the released program stops at 100 as well. solver='bcd' solves the "
                "same model.",
                ConvergenceWarning,
            )
        return result
