"""The Laplacian score as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

from keepers._protocols import FloatArray
from keepers.selectors.fitted_table import Table
from keepers.selectors.neighbours import binary_graph, heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_neighbors,
    check_bandwidth,
    check_choice,
    check_count,
    check_flag,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.laplacian_score import WORST_SCORE, laplacian_scores


@dataclass(eq=False, repr=False)
class LaplacianScore(RankingSelector):
    """Unsupervised feature selection by smoothness over a neighbour graph.

    Joins every sample to its nearest neighbours and prefers features that differ little between
    neighbours and much between samples at large::

        LS(f) = (f' L f) / (f' D f),   f freed of its degree-weighted mean,

    with S the graph, D its degrees and L = D - S (He, Cai and Niyogi, NIPS 2005). LS lies in
    [0, 2] and small is good; ``scores_`` holds -LS, so that higher is better as everywhere here.
    Features are scored one by one: copies of a good feature are all ranked high.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    n_neighbors : int, default=5
        Neighbours of each sample. An edge joins two samples if either lists the other.
    weights : {"heat", "binary"}, default="heat"
        Weight of an edge: exp(-d^2 / (2 t^2)) of the distance d, or 1.
    bandwidth : float or None, default=None
        The t of the heat kernel, in the unit of the distances. None takes the mean distance
        between samples (over a random 3000 of them if there are more). Not used by "binary".
    self_loops : bool, default=False
        Whether every sample is also joined to itself with weight 1, as in scikit-feature.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Draws the samples for the mean distance where there are more than 3000; nothing else is
        random.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Minus the Laplacian score, from -2 to 0; higher is better. Constant columns hold -2.
    laplacian_scores_ : array of shape (n_features,)
        The Laplacian score itself; lower is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    SPEC : The same score and two relatives, on more kinds of graphs.
    MCFS : Regresses eigenvectors of the same graph, so that copies do not pile up.
    SPCAFS : Looks at all features together, without a graph.

    Examples
    --------
    >>> from keepers import LaplacianScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = LaplacianScore(50).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> bool(selector.scores_.max() <= 0)
    True
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_neighbors: int = 5
    weights: str = "heat"
    bandwidth: float | None = None
    self_loops: bool = False
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Minus the Laplacian scores."""
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        if self.weights == "binary":
            graph = binary_graph(table.X, n_neighbors, self_loops=self.self_loops)
        else:
            rng = self.random_generator()
            graph = heat_graph(
                table.X, n_neighbors, self.bandwidth, rng, self_loops=self.self_loops
            )
        result = laplacian_scores(graph, table.X)
        self.laplacian_scores_ = table.to_all_columns(result.scores, fill=WORST_SCORE)
        return 0.0 - self.laplacian_scores_

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_neighbors", self.n_neighbors)
        check_choice("weights", self.weights, ("heat", "binary"))
        check_bandwidth(self.bandwidth)
        check_flag("self_loops", self.self_loops)
