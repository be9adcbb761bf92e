"""CUR as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.exceptions import ConvergenceWarning, warn_caller
from keepers.selectors.fitted_table import Table
from keepers.selectors.parameters import (
    FeatureCount,
    check_component_count,
    check_count,
    check_flag,
)
from keepers.selectors.picked_columns import read_columns, store_picks
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.cur import leverage_scores, solve_cur


@dataclass(eq=False, repr=False)
class CUR(RankingSelector):
    """The features with the largest part in the leading singular vectors, picked one by one.

    The leverage of a feature is its part in the k leading right singular vectors of the centred
    table, ``pi_j = sum of v_ij^2 over i`` (Mahoney and Drineas, PNAS 2009). Picked is the feature
    with the largest one; it and all it explains are taken out of the table, and leverages are
    computed anew from what is left (Imbalzano et al., J. Chem. Phys. 2018). The features that are
    picked are the C of a CUR decomposition. Nothing is drawn at random.

    Like `ColumnSubset` it reconstructs: of features that resemble each other it takes one, and
    noise that nobody resembles comes next. With ``recompute_every=0`` features are ranked by their
    leverage in the whole table instead, which keeps features that resemble each other: it is the
    limit of `SPCAFS` as gamma goes to 0. Features with large numbers win: standardise the table if
    its units differ.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to pick, or which share of them; None picks half. Picks are nested:
        ``top(k)`` is the same as in a fit for k up to one more than that; beyond it, fit again.
    n_components : int, default=1
        The number k of singular vectors.
    recompute_every : int, default=1
        Leverages are computed anew after every so many picks; 0 ranks by the first ones.
    center : bool, default=True
        Whether the mean of every column is taken off first. Constant columns are left out either
        way.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. ``explained_share_`` is that of the picks before. None ranks as found.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Of a pick, the share of the variance that was left to explain when it was picked: 1 for the
        first. Of the others, their leverage times the share that is left at the end. Higher is
        better. 0 for what the picks determine, and for constant columns. With
        ``recompute_every=0`` the leverages.
    leverage_ : array of shape (n_features,)
        The leverage of each pick when it was picked, and that of the others at the end. It need not
        fall along the order.
    ranking_ : array of shape (n_features,)
        1 is the best feature. The picks come first, in their order; the others by their leverage at
        the end. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_picked_ : int
        How many features were picked: fewer than wanted if those explain everything.
    explained_share_ : array of shape (``n_picked_``,)
        Share of the variance of all features that the first 1, 2, ... picks explain.
    best_share_ : array of shape (``n_picked_``,)
        The share that as many directions could explain at most: the same number of principal
        components.
    converged_ : bool
        Whether all singular vectors were found to rounding.
    n_features_to_select_ : int
        How many features are kept.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    ColumnSubset : Picks what explains most; mostly explains a little more.
    SPCAFS : Singular vectors that few features carry.

    Examples
    --------
    >>> from keepers import CUR, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = CUR(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.685 of 0.768'
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_components: int = 1
    recompute_every: int = 1
    center: bool = True
    max_correlation: float | None = None

    why_not_dask = "it reads the whole table again for every pick."
    picks_one_by_one = True

    @property
    def depends_on_k(self) -> bool:  # type: ignore[override]
        """Picks do; leverages of the whole table do not."""
        return self.recompute_every != 0

    def score_features(self, table: Table) -> FloatArray:
        """What was left to explain when each feature was picked, or its leverage."""
        check_component_count(self.n_components, table.n_samples, len(table.usable))
        n_picks, k = self.n_features_to_select_, int(self.n_components)
        with one_blas_thread_if_small(min(table.X.shape)):
            X = read_columns(self, table)
            if self.recompute_every:
                picked = solve_cur(X, k, n_picks, int(self.recompute_every))
            else:
                picked = leverage_scores(X, k, min(n_picks, X.size))
            store_picks(self, X, picked)
        self.leverage_ = table.to_all_columns(picked.values)
        self.converged_ = picked.converged
        if not picked.converged:
            warn_caller(
                "The singular vectors did not converge: the leading singular values are too close "
                "to each other. The picks are arbitrary from there on.",
                ConvergenceWarning,
            )
        return table.to_all_columns(picked.scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_components", self.n_components)
        check_count("recompute_every", self.recompute_every, at_least=0)
        check_flag("center", self.center)
