"""SPEC as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.linalg.graph import Graph
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.neighbours import binary_graph, full_heat_graph, heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_clusters,
    cap_neighbors,
    check_bandwidth,
    check_choice,
    check_count,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.spec import (
    SCORES,
    SPECScores,
    leading_energy,
    smoothness_scores,
    worst_score,
)

# Past this, xi^power leaves nothing of all but the largest eigenvalues.
LARGEST_POWER = 20


@dataclass(eq=False, repr=False)
class SPEC(RankingSelector):
    """Spectral feature selection: features that are smooth on a graph of the samples.

    A feature f, freed of its degree-weighted mean, is compared with the eigenvectors u_i of the
    normalised Laplacian of the graph, 0 = xi_1 <= xi_2 <= ... <= 2. With a_i the share of
    D^1/2 f along u_i (Zhao and Liu, ICML 2007)::

        phi1 = phi2 = sum_i a_i g(xi_i)                     small is good
        phi3        = sum_{2 <= i <= k} a_i (g(2) - g(xi_i))    large is good

    and g(xi) = xi^power. ``scores_`` is higher for better features in all cases. Phi2 with power 1
    is the Laplacian score of the same graph. Features are scored one by one: copies of a good
    feature are all ranked high.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    criterion : {"phi1", "phi2", "phi3"}, default="phi2"
        Which score of the paper. As published, "phi1" prefers features with a large mean, and
        "phi2" corrects that; of centred features both are the same. "phi3" looks at the first
        ``n_clusters`` eigenvectors only.
    n_clusters : int, default=5
        The k of "phi3", at least 2: eigenvectors, the trivial one included. Raised, with a warning,
        to the number of connected pieces of the graph. Not used by the others.
    graph : {"heat", "binary", "rbf"}, default="heat"
        "heat" and "binary" join nearest neighbours, with weight exp(-d^2 / (2 t^2)) of the distance
        d, or 1. "rbf" joins all pairs by the heat kernel; its memory grows with the square of the
        number of samples.
    n_neighbors : int, default=5
        Neighbours of each sample. An edge joins two samples if either lists the other. Not used
        by "rbf".
    bandwidth : float or None, default=None
        The t of the heat kernel, in the unit of the distances. None takes the mean distance
        between samples ("heat": over a random 3000 of them if there are more). Not used by
        "binary".
    power : int, default=1
        The exponent of g, up to 20: larger ones punish roughness more.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Draws the samples for the mean distance past 3000 of them, and seeds the eigensolver of
        "phi3" past 400.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Minus phi1, minus phi2, or phi3; higher is better. Constant columns hold the worst value,
        -2^power or 0.
    phi_ : array of shape (n_features,)
        The score as published: phi1 and phi2 from 0 (best) to 2^power, phi3 from 0 to 2^power
        (best).
    eigenvalues_ : array
        The xi_2, ..., xi_k that "phi3" took; empty for the others, which take none.
    n_clusters_ : int or None
        The k that "phi3" used; None for the others.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    LaplacianScore : The same as phi2 with power 1.
    MCFS : Regresses the eigenvectors, so that copies do not pile up.

    Examples
    --------
    >>> from keepers import SPEC, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPEC(50, criterion="phi3", n_clusters=4).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> len(selector.eigenvalues_)
    3
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    criterion: str = "phi2"
    n_clusters: int = 5
    graph: str = "heat"
    n_neighbors: int = 5
    bandwidth: float | None = None
    power: int = 1
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Minus phi1, minus phi2, or phi3."""
        rng = self.random_generator()
        if self.criterion == "phi3":
            n_clusters = cap_clusters(self.n_clusters, table.n_samples)
            graph = self._join_samples(table, rng)
            result = leading_energy(graph, table.X, n_clusters, rng, power=self.power)
            _warn_of_shortfalls(result, n_clusters)
            self.n_clusters_: int | None = len(result.eigenvalues) + 1
        else:
            graph = self._join_samples(table, rng)
            result = smoothness_scores(graph, table.X, self.criterion, power=self.power)
            self.n_clusters_ = None
        self.eigenvalues_ = result.eigenvalues
        self.converged_ = result.converged
        self.phi_ = table.to_all_columns(result.scores, worst_score(self.criterion, self.power))
        return self.phi_.copy() if self.criterion == "phi3" else 0.0 - self.phi_

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_choice("criterion", self.criterion, SCORES)
        if self.criterion == "phi3":
            hint = "The trivial eigenvector is one of them."
            check_count("n_clusters", self.n_clusters, at_least=2, hint=hint)
        else:
            check_count("n_clusters", self.n_clusters)
        check_choice("graph", self.graph, ("heat", "binary", "rbf"))
        check_count("n_neighbors", self.n_neighbors)
        check_bandwidth(self.bandwidth)
        check_count("power", self.power, at_most=LARGEST_POWER)

    def _join_samples(self, table: Table, rng: np.random.Generator) -> Graph:
        if self.graph == "rbf":
            n = table.n_samples
            refuse_past_memory("SPEC", f"three {n} x {n} matrices", 24.0 * n**2)
            return full_heat_graph(table.X, self.bandwidth)
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        if self.graph == "binary":
            return binary_graph(table.X, n_neighbors)
        return heat_graph(table.X, n_neighbors, self.bandwidth, rng)


def _warn_of_shortfalls(result: SPECScores, n_clusters: int) -> None:
    if result.n_pieces is not None and result.n_pieces > n_clusters:
        warn_caller(
            f"n_clusters={n_clusters} is below the number of connected pieces of the graph, "
            f"{result.n_pieces}, which is used instead: fewer of their eigenvectors would be an "
            "arbitrary choice. More neighbours make fewer pieces.",
            DataWarning,
        )
    if not result.converged:
        warn_caller(
            "The eigenvectors of the graph did not converge: it is long and thin, or its pieces "
            "are all but separate. The scores are rough; more neighbours may help.",
            ConvergenceWarning,
        )
