"""U2FS as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.linalg.ordering import best_first
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.neighbours import full_heat_graph
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_eigenvectors,
    check_bandwidth,
    check_count,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.u2fs import embed_for_utility, remove_by_utility


@dataclass(eq=False, repr=False)
class U2FS(RankingSelector):
    """Utility-based selection: features without which the samples' embedding is predicted worse.

    Embeds the samples by the leading eigenvectors of a heat kernel over all pairs, predicts the
    embedding from all features by least squares, and removes one feature after another: always
    the one whose removal raises the error least (Villa, Mundanad Narayanan, Van Huffel, Bertrand
    and Varon, 2021). Those removed last rank first. Of features that say the same all but one
    are removed early.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    n_clusters : int, default=5
        Number of eigenvectors, which are predicted together. Capped, with a warning, below the
        number of samples.
    bandwidth : float or None, default=None
        The t of the heat kernel exp(-d^2 / (2 t^2)). None takes the mean distance between samples,
        which is the authors' sigma="mean".
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the eigensolver past 400 samples; it does not change the scores beyond rounding.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The place in the order of removal: 1 for the feature removed first, the number of columns
        that vary for the one that was left; 0 for constant columns. Higher is better.
    utilities_ : array of shape (n_features,)
        By how much the mean squared error of the prediction rose when the feature was removed.
        They need not rise from one removal to the next.
    ranking_ : array of shape (n_features,)
        1 is the best feature; constant columns come last. Utilities that agree to rounding are
        ties, which go by variance, then by index.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    embedding_ : array of shape (n_samples, n_vectors)
        The coordinates E that are predicted; its columns sum to zero.
    eigenvalues_ : array of shape (n_vectors,)
        Of the normalised graph, falling from 1.
    ridge_ : float
        What is added to the diagonal of the covariance: 0, or a share of 1e-5 of its sixth
        eigenvalue where its rank is below the number of features.
    converged_ : bool
        Whether the eigenvectors reached their tolerance.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    MCFS : Predicts an embedding by few features, along the lasso path.
    SPEC : Scores features one by one.

    Examples
    --------
    >>> from keepers import U2FS, datasets
    >>> X, names, y = datasets.load("digits")
    >>> X = X[:, X.std(axis=0) > 0]
    >>> selector = U2FS(20, n_clusters=10).fit(X)
    >>> selector.transform(X).shape
    (1797, 20)
    >>> selector.ridge_
    0.0
    """

    why_not_sparse = "it works with centred columns, which have no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_clusters: int = 5
    bandwidth: float | None = None
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """The place of every feature in the order of removal."""
        n_samples, n_usable = table.X.shape
        n_vectors = cap_eigenvectors(self.n_clusters, n_samples)
        _refuse_large(n_samples, n_usable)
        graph = full_heat_graph(table.X, self.bandwidth)
        embedding = embed_for_utility(graph, n_vectors, self.random_generator())
        if not embedding.converged:
            warn_caller(
                "The eigenvectors of the graph did not converge: some samples are all but apart "
                "from the others. The scores are rough; a larger bandwidth may help.",
                ConvergenceWarning,
            )
        # Of features that tie, the last one goes.
        order = best_first(np.zeros(n_usable), table.moments.variance)
        values = (table.in_double() - table.moments.mean)[:, order]
        with one_blas_thread_if_small(min(values.shape)):
            result = remove_by_utility(values, embedding.E)
        places, utilities = np.empty((2, n_usable))
        places[order[result.removed]] = np.arange(1, n_usable + 1)
        utilities[order] = result.utilities
        self.utilities_ = table.to_all_columns(utilities)
        self.embedding_ = embedding.E
        self.eigenvalues_ = embedding.mu
        self.ridge_ = result.ridge.delta
        self.converged_ = embedding.converged
        return table.to_all_columns(places)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_clusters", self.n_clusters)
        check_bandwidth(self.bandwidth)


def _refuse_large(n_samples: int, n_features: int) -> None:
    """Distances of all pairs, and matrices of the smaller side; a few copies of a wide table."""
    side = min(n_samples, n_features)
    numbers = 3.0 * n_samples**2 + 5.0 * side**2 + 4.0 * n_samples * n_features
    what = f"matrices of {n_samples} x {n_samples}, {side} x {side} and {n_samples} x {n_features}"
    refuse_past_memory("U2FS", what, 8.0 * numbers)
