"""RSR as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BoolArray, FloatArray
from keepers.exceptions import ConvergenceWarning, DataWarning, warn_caller
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.selectors.parameters import FeatureCount, check_count, check_positive
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.rsr import (
    RSRResult,
    identity_penalty,
    largest_penalty,
    solve_rsr,
    working_entries,
)

# Rows of W below this share of the longest, or this length, are zero but for rounding.
ZERO_SHARE, ZERO_LENGTH = 1e-5, 1e-8
# All rows this near to length 1: W is the identity.
NEAR_IDENTITY = 1e-5
# Scores this far below the others count as zero, and still carry an order.
BELOW_ALL = 1e-12


@dataclass(eq=False, repr=False)
class RSR(RankingSelector):
    """Regularised self-representation: features of which all others are combinations.

    Rebuilds every feature as a linear combination of features and lets few of them take part::

        minimise  sum_i |x_i - x_i W| + lambda sum_j |w_j|   over W (features x features),

    x_i the centred samples, w_j the rows of W. Residuals are not squared, so that single samples
    that fit badly count little. A feature's score is the norm of its row. After "Unsupervised
    feature selection by regularized self-representation" (Zhu, Zuo, Zhang, Hu and Shiu, Pattern
    Recognition 2015).

    The problem is convex, and the fit ends with a proof: no W has an objective smaller than the
    one found by more than ``duality_gap_``.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the fit: ``top(k)`` gives the best k for any k afterwards.
    share : float in (0, 1], default=0.3
        lambda as a share of ``lambda_max_``, from which on W = 0 is optimal; it does not depend on
        the unit of X. Small shares end at W = I, where all scores are 1 (``lambda_identity_``).
    tol : float, default=1e-6
        The iteration ends when the objective is proved to be within this of the optimum,
        relatively.
    max_iter : int, default=200
        Steps at most; 10 to 30 are usual.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W; higher is better. Rows at zero get up to 1e-12 of the smallest other norm,
        which orders them by how near they are to entering. If all rows are at zero, the scores are
        that order, in [0, 1].
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    duality_gap_ : float
        The objective is at most this above that of any W, relatively: a proof, not an estimate.
    objective_ : array
        An upper bound of the objective after every step; it never rises.
    n_iter_ : int
        Steps made; 0 where W = I is known to be optimal beforehand.
    converged_ : bool
        Whether the gap came down to ``tol``.
    n_active_ : int
        Rows of W that are not zero.
    lambda_ : float
        The weight of the penalty, in the unit of X.
    lambda_max_ : float
        The least lambda for which W = 0 is optimal.
    lambda_identity_ : float
        A lambda up to which W = I is optimal; 0 where features are linearly dependent, as with as
        many features as samples.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    FSPCA : The k features that hold the most variance.
    InfFS : Prefers features that are not redundant, pair by pair.

    Examples
    --------
    >>> from keepers import RSR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = RSR(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> selector.duality_gap_ < 1e-6
    True
    """

    why_not_sparse = "it works with centred columns, which have no zeros."

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    share: float = 0.3
    tol: float = 1e-6
    max_iter: int = 200
    max_correlation: float | None = None

    def score_features(self, table: Table) -> FloatArray:
        """Row norms of W, and an order among rows at zero below them."""
        n_samples, n_usable = table.X.shape
        entries = n_samples * n_usable + working_entries(n_samples, n_usable)
        refuse_past_memory("RSR", f"seven {n_samples} x {n_usable} tables", 8.0 * entries)
        values = np.ascontiguousarray(table.in_double() - table.moments.mean)
        with one_blas_thread_if_small(min(values.shape)):
            largest = largest_penalty(values)
            penalty = self.share * largest
            result = solve_rsr(values, penalty, tol=self.tol, max_iter=self.max_iter)
            identity = identity_penalty(values)
        norms = _settle_identity(result.row_norms)
        active = norms > max(ZERO_SHARE * norms.max(), ZERO_LENGTH)
        self.duality_gap_ = result.gap
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.n_active_ = int(np.count_nonzero(active))
        self.lambda_ = penalty
        self.lambda_max_ = largest
        self.lambda_identity_ = identity
        self._warn_of_outcome(result, norms)
        return table.to_all_columns(_scores(norms, active, result.pulls))

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_positive(
            "share", self.share, at_most=1.0, hint="lambda as a share of the one where W = 0."
        )
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)

    def _warn_of_outcome(self, result: RSRResult, norms: FloatArray) -> None:
        if not result.converged:
            warn_caller(
                f"After {result.n_iter} steps the objective is proved to be within "
                f"{result.gap:.2g} of the optimum, not within tol={self.tol:g}. Raise max_iter "
                f"(now {self.max_iter}), share or tol.",
                ConvergenceWarning,
            )
        elif len(norms) > 1 and np.all(norms == 1.0):
            warn_caller(
                f"W = I is optimal with share={self.share:g}: every feature rebuilds itself, all "
                "scores are 1, and the features are ranked by variance. W = I is certain up to "
                f"share={self.lambda_identity_ / self.lambda_max_:.3g}; raise share.",
                DataWarning,
            )
        elif self.n_active_ == 0:
            warn_caller(
                f"W = 0 is optimal with share={self.share:g}: the features are ranked by how near "
                "they are to entering. Lower share.",
                DataWarning,
            )
        elif self.n_active_ < self.n_features_to_select_:
            warn_caller(
                f"{self.n_features_to_select_} features are wanted, but only {self.n_active_} rows "
                "of W are not zero; the others are ranked by how near they are to entering. A "
                f"smaller share than {self.share:g} has more.",
                DataWarning,
            )


def _settle_identity(norms: FloatArray) -> FloatArray:
    """Ones, where all norms are 1 up to what the gap leaves open."""
    if np.abs(norms - 1.0).max() <= NEAR_IDENTITY:
        return np.ones_like(norms)
    return norms


def _scores(norms: FloatArray, active: BoolArray, pulls: FloatArray) -> FloatArray:
    """Row norms of W; rows at zero below all others, by how near they are to entering."""
    ceiling = BELOW_ALL * norms[active].min() if active.any() else 1.0
    return np.where(active, norms, ceiling * pulls)
