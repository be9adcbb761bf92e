"""The Laplacian score and SPEC: features that vary little across the edges of a graph of samples.

The Laplacian score is a Rayleigh quotient in [0, 2] of the normalised Laplacian

    Ln = D^-1/2 (D - S) D^-1/2 = sum_i xi_i u_i u_i',    0 = xi_1 <= ... <= xi_n <= 2.

phi1 = phi2 = y' Ln^power y / y'y with y = D^1/2 f needs ``power`` products with the graph and no
eigenvector; phi3 needs k - 1 eigenvectors. On a graph in C pieces xi = 0 has C eigenvectors; with
k >= C all of them count and phi3 is the same for every basis of them. Smaller k are raised to C.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from keepers._protocols import BoolArray, FloatArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.linalg.graph import Graph, leading_eigenvectors
from keepers.linalg.scatter import CONSTANT_RATIO, as_array, by_columns, row_blocks, row_sums
from keepers.methods.base import RankingSelector
from keepers.methods.neighbours import BANDWIDTH, binary_graph, full_heat_graph, heat_graph
from keepers.methods.parameters import (
    FLAG,
    FeatureCount,
    Seed,
    cap_clusters,
    cap_neighbors,
    check_value,
    one_of,
    refuse_past_memory,
    whole,
)
from keepers.methods.reading import MemoryTable


@dataclass(frozen=True)
class GraphScores:
    """The score of every feature on a graph."""

    scores: FloatArray
    """As published: small is good for phi1 and phi2, large for phi3."""
    flat: BoolArray
    """Features without variance under the degrees; they hold the worst score."""
    eigenvalues: FloatArray
    """xi_2, ..., xi_k of phi3, rising; empty for the others."""
    n_pieces: int | None = None
    converged: bool = True


def laplacian_scores(graph: Graph, X: Any, power: int = 1) -> GraphScores:
    """The Laplacian score of every column of X; with another power, phi1 = phi2 of SPEC.

    X is an array or a CSR/CSC matrix, the graph a CSR matrix or an array.
    """
    n_features, worst = X.shape[1], 2.0**power
    total = float(row_sums(graph).sum())
    if total == 0.0:  # no edge at all
        return GraphScores(np.full(n_features, worst), np.ones(n_features, bool), np.empty(0))
    S, weight = graph / total, row_sums(graph) / total
    forms, lengths = np.empty((2, n_features))
    flat = np.empty(n_features, dtype=bool)
    joined = weight > np.finfo(float).tiny
    inverse = np.divide(1.0, weight, out=np.zeros(len(weight)), where=joined)
    for columns, F, length, is_flat in _centred_blocks(weight, X):
        lengths[columns], flat[columns] = length, is_flat
        for _ in range(power // 2):  # in f = D^-1/2 y, Ln is I - D^-1 S
            F = F - inverse[:, np.newaxis] * (S @ F)
        forms[columns] = length if power == 1 else np.einsum("i,ij,ij->j", weight, F, F)
        if power % 2:
            forms[columns] -= np.einsum("ij,ij->j", F, S @ F)
    scores = np.divide(forms, lengths, out=np.full(n_features, worst), where=~flat)
    scores[scores < 1e-12] = 0.0  # rounding: the same on both ends of every edge
    return GraphScores(np.minimum(scores, worst), flat, np.empty(0))


def leading_energy(
    graph: Graph, X: Any, n_clusters: int, rng: np.random.Generator, power: int = 1
) -> GraphScores:
    """phi3 with k = ``n_clusters``, or the number of pieces of the graph if that is larger."""
    spectrum = leading_eigenvectors(graph, n_clusters - 1, rng, whole_pieces=True)
    xi = np.clip(1.0 - spectrum.mu, 0.0, 2.0)
    gains = 2.0**power - xi**power
    root = spectrum.root_degrees / (np.linalg.norm(spectrum.root_degrees) or 1.0)
    axes = root[:, np.newaxis] * spectrum.vectors
    energy, lengths = np.empty((2, X.shape[1]))
    flat = np.empty(X.shape[1], dtype=bool)
    for columns, F, length, is_flat in _centred_blocks(root**2, X):
        energy[columns], lengths[columns] = (F.T @ axes) ** 2 @ gains, length
        flat[columns] = is_flat
    scores = np.divide(energy, lengths, out=np.zeros(len(flat)), where=~flat)
    return GraphScores(scores, flat, xi, spectrum.n_pieces, spectrum.converged)


def _centred_blocks(
    weight: FloatArray, X: Any
) -> Iterator[tuple[slice, FloatArray, FloatArray, BoolArray]]:
    """Some columns at a time: their places, centred values, f' D f, and True where it is zero.

    ``weight``, the diagonal of D, sums to one.
    """
    by_column = by_columns(X)
    for columns in row_blocks(X.shape[1], X.shape[0]):
        F = as_array(by_column[:, columns]).astype(np.float64)
        mean = weight @ F
        F -= mean
        residue = weight @ F  # the mean that rounding left
        F -= residue
        length = np.einsum("i,ij,ij->j", weight, F, F)
        # Relative, because an absolute bound takes every feature for constant if weights are small.
        yield columns, F, length, length <= CONSTANT_RATIO**2 * (length + (mean + residue) ** 2)


def _join_samples(
    selector: "LaplacianScore | SPEC", table: MemoryTable, kind: str, *, self_loops: bool = False
) -> Graph:
    if kind == "rbf":
        n = table.n_samples
        refuse_past_memory("SPEC", f"three {n} x {n} matrices", 24.0 * n**2)
        return full_heat_graph(table.X, selector.bandwidth)
    n_neighbors = cap_neighbors(selector.n_neighbors, table.n_samples)
    if kind == "binary":
        return binary_graph(table.X, n_neighbors, self_loops=self_loops)
    rng = selector.random_generator()
    return heat_graph(table.X, n_neighbors, selector.bandwidth, rng, self_loops=self_loops)


@dataclass(eq=False, repr=False)
class LaplacianScore(RankingSelector):
    """Unsupervised feature selection by smoothness over a neighbour graph.

    Joins every sample to its nearest neighbours and prefers features that differ less between
    neighbours than between other samples::

        LS(f) = (f' L f) / (f' D f),   f minus its degree-weighted mean,

    with S the graph, D its degrees and L = D - S (He, Cai and Niyogi, NIPS 2005). A smaller LS is
    better; ``scores_`` is -LS. Copies of a good feature all rank high.

    Parameters
    ----------
    {n_features_to_select}
    {n_neighbors}
    weights : {"heat", "binary"}, default="heat"
        Weight of an edge: exp(-d^2 / (2 t^2)) of the distance d, or 1.
    {bandwidth}
        Not used by "binary".
    self_loops : bool, default=False
        Join every sample to itself with weight 1 as well, as in scikit-feature.
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Draws the samples for the mean distance if there are more than 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Minus the Laplacian score, from -2 to 0; higher is better. Constant columns get -2.
    {fitted}

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

    looks_for = "features that take similar values in similar samples"
    score_means = "from -2 (similar samples differ) to 0 (they agree exactly)"

    parameter_rules: ClassVar = {
        "n_neighbors": whole(),
        "weights": one_of("heat", "binary"),
        "bandwidth": BANDWIDTH,
        "self_loops": FLAG,
    }

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_neighbors: int = 5
    weights: str = "heat"
    bandwidth: float | None = None
    self_loops: bool = False
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        graph = _join_samples(self, table, self.weights, self_loops=self.self_loops)
        result = laplacian_scores(graph, table.X)
        return 0.0 - table.to_all_columns(result.scores, fill=2.0)


@dataclass(eq=False, repr=False)
class SPEC(RankingSelector):
    """Spectral feature selection: features that are smooth on a graph of the samples.

    A feature f, minus its degree-weighted mean, is compared with the eigenvectors u_i of the
    normalised Laplacian of the graph, 0 = xi_1 <= xi_2 <= ... <= 2. With a_i the share of
    D^1/2 f along u_i (Zhao and Liu, ICML 2007)::

        phi1 = phi2 = sum_i a_i g(xi_i)                     small is good
        phi3        = sum_{2 <= i <= k} a_i (g(2) - g(xi_i))    large is good

    and g(xi) = xi^power. phi2 with power 1 is the Laplacian score of the same graph. Copies of a
    good feature all rank high.

    Parameters
    ----------
    {n_features_to_select}
    criterion : {"phi1", "phi2", "phi3"}, default="phi2"
        The score of the paper. "phi1" and "phi2" are the same for centred features, which are used
        here. "phi3" uses only the first ``n_clusters`` eigenvectors.
    n_clusters : int, default=5
        The k of "phi3", at least 2, with the trivial eigenvector. Raised, with a warning, to the
        number of connected pieces of the graph.
    graph : {"heat", "binary", "rbf"}, default="heat"
        "heat" and "binary" join nearest neighbours, with weight exp(-d^2 / (2 t^2)) of the distance
        d, or 1. "rbf" joins all pairs, in memory that grows with the square of their number.
    {n_neighbors}
        Not used by "rbf".
    {bandwidth}
        Not used by "binary". "rbf" takes the mean over all samples.
    power : int, default=1
        The exponent of g, up to 20; larger exponents penalise roughness more.
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Draws the samples for the mean distance if there are more than 3000, and seeds the
        eigensolver of "phi3" beyond 400 samples.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Minus phi1, minus phi2, or phi3, which lie between 0 and 2^power; higher is better. Constant
        columns hold the worst value.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.
    {fitted}

    Examples
    --------
    >>> from keepers import SPEC, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = SPEC(50, criterion="phi3", n_clusters=4).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    """

    looks_for = "features that take similar values in similar samples"
    score_means = "how smooth the feature is over a graph of the samples"

    parameter_rules: ClassVar = {
        "criterion": one_of("phi1", "phi2", "phi3"),
        "n_clusters": whole(),
        "graph": one_of("heat", "binary", "rbf"),
        "n_neighbors": whole(),
        "bandwidth": BANDWIDTH,
        "power": whole(at_most=20),  # beyond it all but the largest eigenvalues vanish
    }

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

    def check_parameters(self) -> None:
        """Raise for settings outside their rules, without looking at data."""
        super().check_parameters()
        if self.criterion == "phi3":
            rule = whole(at_least=2, hint="The trivial eigenvector is one of them.")
            check_value("n_clusters", self.n_clusters, rule)

    def score_features(self, table: MemoryTable) -> FloatArray:
        graph = _join_samples(self, table, self.graph)
        if self.criterion == "phi3":
            n_clusters = cap_clusters(self.n_clusters, table.n_samples)
            result = leading_energy(graph, table.X, n_clusters, self.random_generator(), self.power)
            _warn_of_shortfalls(result, n_clusters)
        else:
            result = laplacian_scores(graph, table.X, self.power)
        self.converged_ = result.converged
        if self.criterion == "phi3":
            return table.to_all_columns(result.scores)
        return 0.0 - table.to_all_columns(result.scores, fill=2.0**self.power)


def _warn_of_shortfalls(result: GraphScores, n_clusters: int) -> None:
    if result.n_pieces is not None and result.n_pieces > n_clusters:
        warn_caller(
            f"n_clusters={n_clusters} is below the number of connected pieces of the graph, so "
            f"{result.n_pieces} is used. More neighbours make fewer pieces.",
            DataWarning,
        )
    if not result.converged:
        warn_caller(
            "The eigenvectors of the graph did not converge, so the scores are rough. More "
            "neighbours may help.",
            ConvergenceWarning,
        )
