"""MCFS as a scikit-learn selector."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.selectors.fitted_table import Table, named_table, read_table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.neighbours import heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_eigenvectors,
    cap_neighbors,
    check_bandwidth,
    check_count,
    check_positive,
    count_features,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.mcfs import Embedding, MCFSResult, embed, solve_mcfs


@dataclass(eq=False, repr=False)
class MCFS(RankingSelector):
    """Multi-cluster feature selection: sparse regressions of a spectral embedding.

    Embeds the samples by the leading eigenvectors of a heat-kernel graph of nearest neighbours,
    explains each coordinate by few features, along the lasso path, and scores a feature by its
    largest coefficient (Cai, Zhang and He, KDD 2010).

    A fit is made for one number of features: about ``n_clusters`` times ``cardinality`` of them
    can have a score above zero, often fewer, and all the others tie at zero and are ranked by
    their index. Hence refit for another number of features instead of reading ``top(k)`` far
    beyond ``n_features_to_select``; ``fit_each`` serves several numbers at the price of one.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. Unless ``cardinality``
        is given it is also the number of non-zero coefficients of each regression, and so part
        of the fit.
    n_clusters : int, default=5
        Number of eigenvectors, each of which is regressed on the features.
    n_neighbors : int, default=5
        Neighbours of each sample. An edge joins two samples if either lists the other.
    cardinality : int or None, default=None
        Non-zero coefficients of each regression. None takes the number of features to select.
    ridge : float, default=0.001
        Added to the diagonal of X'X, in the square of the unit of X. It lets a regression reach
        more non-zeros than there are samples; 0 is allowed.
    bandwidth : float or None, default=None
        The t of the heat kernel exp(-d^2 / (2 t^2)). None takes the mean distance between samples
        (over a random 3000 of them if there are more).
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver past 400 samples and the sample for the mean distance past 3000.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Largest absolute coefficient, from 0 to 1; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    coef_ : array of shape (n_vectors, n_features)
        Coefficients of each regression, scaled to length 1; n_vectors is ``n_clusters`` or the
        few less whose eigenvalue does not vanish.
    embedding_ : array of shape (n_samples, n_vectors)
        The coordinates Y that were regressed; Y'DY = I for the degrees D of the graph.
    eigenvalues_ : array of shape (n_vectors,)
        Of the normalised Laplacian, rising; 0 for each further piece of a disconnected graph.
    cardinality_ : int
        Non-zeros asked of each regression.
    n_iter_ : int
        Knots walked, over all regressions.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    LaplacianScore : Scores features one by one on the same graph.
    JELSR : Embedding and regression in one problem; one fit serves every number of features.
    SPCAFS : One fit serves every number of features.

    Examples
    --------
    >>> from keepers import MCFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = MCFS(50, n_clusters=4).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> selector.coef_.shape
    (4, 2308)
    """

    depends_on_k = True
    fits_each_together = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    n_neighbors: int = 5
    cardinality: int | None = None
    ridge: float = 1e-3
    bandwidth: float | None = None
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """The largest coefficient of every feature."""
        ((_, scores),) = self._scores_of([self], table)
        return scores

    def fit_each(self, X: Any, counts: Sequence[int]) -> list[Self]:
        """Copies of this selector, one fitted for each number of features.

        All of them come from one walk along the lasso paths, which takes as long as a fit for the
        largest number.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As in ``fit``.
        counts : sequence of int
            The numbers of features.

        Returns
        -------
        list of MCFS
            In the order of ``counts``; each the same as a fit of its own.
        """
        unfitted = clone(self).set_params(n_features_to_select=max(counts))
        with unfitted._fitting():
            table = read_table(unfitted, named_table(X))
            twins = [copy.copy(unfitted).set_params(n_features_to_select=k) for k in counts]
            for twin in twins:
                twin.n_features_to_select_ = count_features(
                    twin.n_features_to_select, table.n_features
                )
            for twin, scores in self._scores_of(twins, table):
                twin._store_ranking(scores, table)
        return twins

    def _scores_of(
        self, selectors: Sequence[Self], table: Table
    ) -> Iterator[tuple[Self, FloatArray]]:
        """The scores of selectors that differ in the number of features; sets what they learned."""
        values = table.in_double()
        cardinalities = [selector._count_nonzeros(table) for selector in selectors]
        n_vectors = cap_eigenvectors(self.n_clusters, table.n_samples)
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        _refuse_large_gram(values.shape, max(cardinalities), n_vectors)
        rng = self.random_generator()
        graph = heat_graph(values, n_neighbors, self.bandwidth, rng)
        embedding = embed(graph, n_vectors, rng)
        results = solve_mcfs(values, embedding.Y, cardinalities, float(self.ridge))
        for selector, result, cardinality in zip(selectors, results, cardinalities, strict=True):
            _warn_of_shortfalls(embedding, result, cardinality)
            selector.coef_ = table.to_all_columns(result.coef)
            selector.embedding_ = embedding.Y
            selector.eigenvalues_ = np.maximum(1.0 - embedding.mu, 0.0)
            selector.cardinality_ = cardinality
            selector.n_iter_ = int(result.n_knots.sum())
            selector.converged_ = embedding.converged
            yield selector, table.to_all_columns(result.scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_count("n_neighbors", self.n_neighbors)
        check_positive("ridge", self.ridge, zero=True)
        if self.cardinality is not None:
            check_count("cardinality", self.cardinality, hint="None takes n_features_to_select.")
        check_bandwidth(self.bandwidth)

    def _count_nonzeros(self, table: Table) -> int:
        """The cardinality meant, and no more than the columns that vary."""
        wanted = self.n_features_to_select_
        if self.cardinality is not None:
            wanted = check_count(
                "cardinality",
                self.cardinality,
                at_most=table.n_features,
                hint="A regression has no more coefficients than X has columns.",
            )
        return min(wanted, len(table.usable))


def _refuse_large_gram(shape: tuple[int, int], cardinality: int, n_vectors: int) -> None:
    """Rows of X'X are kept for features that became active, and about as many again."""
    n_samples, n_features = shape
    active = min(cardinality, n_samples)
    rows = min(n_features, 2 * n_vectors * active) + active
    refuse_past_memory("MCFS", "rows of X'X", 8.0 * (rows * n_features + active**2))


def _warn_of_shortfalls(embedding: Embedding, result: MCFSResult, cardinality: int) -> None:
    if not embedding.converged:
        warn_caller(
            "The eigenvectors of the graph did not converge: it is long and thin, or its pieces "
            "are all but separate. The scores are rough; more neighbours may help.",
            ConvergenceWarning,
        )
    if result.n_short:
        warn_caller(
            f"{result.n_short} of {len(result.coef)} regressions ended before they had "
            f"{cardinality} non-zero coefficients: the columns of X are dependent beyond that. "
            "Lower cardinality or raise ridge.",
            DataWarning,
        )
