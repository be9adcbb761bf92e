"""RNE as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.graph import reconstruction_residual, reconstruction_weights
from keepers.linalg.storage import as_array
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.neighbours import nearest_neighbours
from keepers.selectors.parameters import (
    FeatureCount,
    Seed,
    cap_neighbors,
    check_choice,
    check_count,
    check_positive,
)
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.rne import gram_count, solve_rne

# Beside samples of unit length, this is rounding.
NO_RESIDUAL = 1e-12


@dataclass(eq=False, repr=False)
class RNE(RankingSelector):
    """Robust neighbourhood embedding.

    Samples are scaled to unit length and each is rebuilt from its nearest neighbours; A holds what
    is left. Then a non-negative H (features x features to select) is sought that leaves little of
    A and has nearly orthonormal columns::

        minimise  |A H|_1 + (alpha/4) |H'H - I|_F^2   over H >= 0.

    A feature's score is the squared norm of its row. After "Robust neighborhood embedding for
    unsupervised feature selection" (Liu, Ye, Li and Wang, Knowledge-Based Systems 2020) and the
    program its authors released.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It is the width of H,
        so it changes the scores and the cost: for another number, fit again. ``top(k)`` reads the
        ranking of this fit.
    n_neighbors : int, default=5
        Neighbours that rebuild a sample. With fewer other samples than that all of them are used,
        with a warning.
    alpha : float, default=1000.0
        Weight of the orthonormality of H, fixed at this value in the authors' program.
    n_init : int, default=1
        Random starts; the one with the smallest final objective is kept. The published protocol
        uses one, yet the selection depends strongly on it.
    lle_orientation : {"consistent", "release"}, default="consistent"
        "consistent": A = (I - W) X, the residual of the samples. "release": A = (I - W') X as in
        the authors' program, to reproduce published numbers.
    max_iter : int, default=50
        Steps at most, of 30 updates of H each.
    tol : float, default=1e-6
        The iteration ends when the objective changes by less than this, relatively, twice in a
        row; 0 always takes all steps.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the starts.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of H; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        Their number.
    objective_ : array
        The objective after every step of the run that was kept. It usually falls; no proof says
        that it must.
    n_iter_ : int
        Steps taken by the run that was kept.
    converged_ : bool
        Whether the objective converged within ``max_iter`` steps. It rarely does: the method is
        defined by its number of steps, and no warning is given.
    split_gap_ : float
        Largest entry of ``|M - A H|``, the constraint that splits off the l1 term.
    orthogonality_gap_ : float
        Frobenius norm of H'H - I.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    Notes
    -----
    A step costs O(d^2 m) for d features of which m are kept; ``|A'A|`` (d x d) must fit in memory.
    With alpha from about 100 on most entries of H soon fall below rounding, and the later steps
    take a small part of that.
    Constant columns are set aside before the samples are scaled. A sample that is zero stays zero.
    A sparse X is accepted and made dense, as A is.

    See Also
    --------
    LaplacianScore : Neighbours as well, feature by feature.
    SPCAFS : Row-sparse, without neighbours.

    Examples
    --------
    >>> from keepers import RNE, datasets
    >>> X, names, y = datasets.load("digits")
    >>> X = X[:300, X[:300].std(axis=0) > 0]
    >>> RNE(20, random_state=0).fit_transform(X).shape
    (300, 20)
    """

    depends_on_k = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_neighbors: int = 5
    alpha: float = 1000.0
    n_init: int = 1
    lle_orientation: str = "consistent"
    max_iter: int = 50
    tol: float = 1e-6
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Squared row norms of H."""
        n_samples, n_usable = table.X.shape
        width = min(self.n_features_to_select_, n_usable)
        _refuse_past_memory(n_samples, n_usable, width)
        n_neighbors = cap_neighbors(self.n_neighbors, n_samples)
        residual = self._residual(_unit_samples(as_array(table.in_double())), n_neighbors)
        if np.abs(residual).max() <= NO_RESIDUAL:
            warn_caller(
                "Scaled to unit length, every sample is rebuilt by its neighbours without rest: "
                "the scores only reflect the random start.",
                DataWarning,
            )
        rng = self.random_generator()
        starts = (rng.random((n_usable, width)) for _ in range(self.n_init))
        result = solve_rne(
            residual, starts, alpha=float(self.alpha), max_iter=self.max_iter, tol=self.tol
        )
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.split_gap_ = result.split_gap
        self.orthogonality_gap_ = result.orthogonality_gap
        return table.to_all_columns(result.squared_row_norms)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_neighbors", self.n_neighbors)
        check_positive("alpha", self.alpha, hint="The authors' program fixes it at 1000.")
        check_count("n_init", self.n_init)
        check_choice("lle_orientation", self.lle_orientation, ("consistent", "release"))
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True, hint="0 always takes max_iter steps.")

    def _residual(self, X: FloatArray, n_neighbors: int) -> FloatArray:
        """What the neighbours of each sample cannot rebuild of it."""
        weights = reconstruction_weights(X, nearest_neighbours(X, n_neighbors))
        if self.lle_orientation == "release":
            weights = weights.T.tocsr()
        return reconstruction_residual(X, weights)


def _refuse_past_memory(n_samples: int, n_features: int, width: int) -> None:
    count = gram_count(n_samples, n_features)
    block = 12.0 * n_features * width + 3.0 * n_samples * n_features
    refuse_past_memory(
        "RNE",
        f"the {n_features} x {n_features} products of the features, {count} of them, and H",
        (8.0 * count + 1.0) * float(n_features) ** 2 + 8.0 * block,  # and signs, a byte each
    )


def _unit_samples(X: FloatArray) -> FloatArray:
    """Samples scaled to unit length; zero samples stay zero."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norms > 0.0, norms, 1.0))
