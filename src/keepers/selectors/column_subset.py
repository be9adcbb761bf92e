"""Greedy column subset selection as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray
from keepers.selectors.fitted_table import Table
from keepers.selectors.parameters import FeatureCount, check_flag
from keepers.selectors.picked_columns import read_columns, store_picks
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.column_subset import solve_column_subset


@dataclass(eq=False, repr=False)
class ColumnSubset(RankingSelector):
    """The features from which all others are reconstructed best, picked one after another.

    Greedy column subset selection (Farahat, Ghodsi and Kamel, ICDM 2011): each pick explains as
    much as a single further feature can of what the picks before it leave of the table, in the
    sense of least squares::

        minimise  |X - P X|^2,   P the projector on the picked columns of X.

    It reconstructs. Of features that resemble each other it takes one, and then it goes to those
    that nobody resembles, noise among them: on a table with clusters it keeps fewer of the features
    that tell them apart than most other methods here. Use it to compress a table, to place sensors,
    or to drop columns that others determine. Features with large numbers win: standardise the table
    if its units differ.

    The order is nested: the first k picks are those of a fit for k features. Nothing is random.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to pick, or which share of them; None picks half. ``top(k)`` is the same
        as in a fit for k up to one more than that; beyond it, fit again.
    center : bool, default=True
        Whether the mean of every column is taken off first. Without it the picks reconstruct the
        values themselves, without an intercept. Constant columns are left out either way.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. ``explained_share_`` is that of the picks before. None ranks as found.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Of a pick, the share of the variance that was left to explain when it was picked: 1 for the
        first. Of the others, the share that they would explain as the next pick. Higher is better.
        0 for what the picks determine, and for constant columns.
    gains_ : array of shape (n_features,)
        Share of the variance that each pick explained beyond those before it, and that each of the
        others would as the next one. It need not fall along the order.
    ranking_ : array of shape (n_features,)
        1 is the best feature. The picks come first, in their order; the others by what they would
        explain next. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_picked_ : int
        How many features were picked: fewer than wanted if those explain everything.
    explained_share_ : array of shape (``n_picked_``,)
        Share of the variance of all features that the first 1, 2, ... picks explain.
    best_share_ : array of shape (``n_picked_``,)
        The share that as many directions could explain at most: the same number of principal
        components.
    n_features_to_select_ : int
        How many features are kept.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    CUR : Picks by leading singular vectors of what is left.
    FSPCA : The features that hold the most variance in a few components.

    Examples
    --------
    >>> from keepers import ColumnSubset, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = ColumnSubset(20).fit(X)
    >>> selector.transform(X).shape
    (83, 20)
    >>> f"{selector.explained_share_[-1]:.3f} of {selector.best_share_[-1]:.3f}"
    '0.691 of 0.768'
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    center: bool = True
    max_correlation: float | None = None

    depends_on_k = True
    picks_one_by_one = True
    why_not_dask = "it reads the whole table again for every pick."

    def score_features(self, table: Table) -> FloatArray:
        """What was left to explain when each feature was picked."""
        with one_blas_thread_if_small(min(table.X.shape)):
            X = read_columns(self, table)
            picked = solve_column_subset(X, self.n_features_to_select_)
            store_picks(self, X, picked)
        self.gains_ = table.to_all_columns(picked.values)
        return table.to_all_columns(picked.scores)

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_flag("center", self.center)
