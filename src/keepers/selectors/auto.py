"""The front door: is there structure, how many features are enough, and which."""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import IndexArray
from keepers.exceptions import NoStructureWarning, warn_caller
from keepers.linalg.unit_free import UnitFreeColumns
from keepers.selectors.control import FeatureControl
from keepers.selectors.denoised_laplacian import FEWEST_TAKEN, DenoisedLaplacian
from keepers.selectors.parameters import FeatureCount, cap_neighbors
from keepers.solvers.denoised_laplacian import LEVEL, Smoothness
from keepers.solvers.neighbour_agreement import growing_counts, neighbour_agreement

ENOUGH = 0.95
"""Share of the best neighbour agreement that counts as enough."""
N_RANDOM_SETS = 10
# More shuffled features than this reach the p-value of the last one by chance: it is a close call.
_CLOSE_P_VALUE = LEVEL / 10


@dataclass(eq=False, repr=False)
class AutoSelector(DenoisedLaplacian):
    """Choose features without labels and without settings: the selector to start with.

    Answers three questions from the table alone and says why (``summary_``, ``doubts_``):

    * Is there structure? Some features must be smoother over neighbours found without them than
      shuffled features are; otherwise it says "no structure found" and keeps everything.
    * Which features? The ranking of `DenoisedLaplacian`: neighbours agree on them, and better
      features do not say the same.
    * How many? The smallest number whose neighbours agree with those of the whole table almost as
      well (95 %) as those of any number up to 200 do.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None chooses the
        number. The ranking is the same: ``top(k)`` gives the best k for any k afterwards.
    n_neighbors : int, default=7
        Neighbours of each sample in each of the four graphs.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay; others are discounted for resembling them.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that go: the same as a fit without these columns.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None leaves it to the discount.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN: refuse it, or fill the gaps of the rows that are looked at, with the
        mean or the median of the column, or from the other columns ("model", the best of them on
        average: a few components fitted to the values that are there; see the page "Missing
        values"). Columns without any value are set aside like constant ones. ``transform`` leaves
        gaps as they are.
    random_state : int, RandomState or None, default=0
        Draws the rows of large tables, shuffles them for the p-values, and draws the random sets of
        features for comparison. The default gives the same answer every time.

    Attributes
    ----------
    summary_ : str
        What was found, in a sentence.
    doubts_ : list of str
        What it is unsure of, a sentence each; empty if nothing.
    n_enough_ : int
        The number of features that are enough; 0 if no structure was found.
    counts_ : array of int of shape (n_counts,)
        Numbers of features that were tried.
    agreement_ : array of shape (n_counts,)
        For each of them, how well their neighbours agree with those of the whole table, up to 1.
    random_agreement_ : array of shape (10,)
        The same for random sets of as many features as are kept.
    scores_ : array of shape (n_features,)
        Features that carry structure: smoothness after the discount, from 0 to 1. Others: minus
        their Laplacian score, which is 0 or less; -2 for constant columns. Higher is better.
    smoothness_ : array of shape (n_features,)
        Before the discount: 1 if neighbours agree exactly, about 0 for noise; NaN for constant
        columns and those never kept. Where few features carry structure and the table has one
        unit, it includes what an excess of variance is worth as evidence.
    carries_structure_ : boolean array of shape (n_features,)
        Features that neighbours agree on by more than chance; false discovery rate 1 %.
    p_values_ : array of shape (n_features,)
        How often a shuffled feature is as smooth, over neighbours found in other features.
    structure_found_ : bool
        Whether any feature carries structure. If not, all features are kept unless a number was
        given, and a `NoStructureWarning` says so.
    represented_by_ : array of shape (n_features,)
        The better ranked feature that each of the first features resembles most, by index; -1
        where there is none or it was not compared.
    representation_ : array of shape (n_features,)
        The correlation with it; NaN where there is none.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    mean_ : array of shape (n_features,)
        Column means over the rows that were looked at.
    var_ : array of shape (n_features,)
        Column variances over these rows, divided by their number; 0 for constant columns.
    n_samples_seen_ : int
        Rows of the table.
    n_rows_used_ : int
        Rows that were looked at.
    n_passes_ : int
        How many times the table was read.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    DenoisedLaplacian : The ranking alone.
    SPCAFS : Row-sparse PCA, the method of the paper.
    select_settings : Compares this with other methods on your table.

    Examples
    --------
    >>> from keepers import AutoSelector, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = AutoSelector().fit(X)
    >>> X_kept = selector.transform(X)
    >>> selector.structure_found_
    True
    """

    n_features_to_select: FeatureCount = None

    def _check_count(self, control: FeatureControl) -> int:
        if self.n_features_to_select is not None:
            return super()._check_count(control)
        return min(FEWEST_TAKEN, int((~control.never).sum()))

    def _count_to_keep(
        self,
        columns: UnitFreeColumns,
        found: Smoothness,
        order: IndexArray,
        control: FeatureControl,
    ) -> int:
        self.doubts_: list[str] = []
        n_allowed = int((~control.never).sum())
        n_must = int(control.must.sum())
        n_neighbors = cap_neighbors(self.n_neighbors, columns.n_samples)
        most = min(int(found.carries.sum()), FEWEST_TAKEN)
        self.counts_ = np.array(growing_counts(most) if most else [], dtype=np.intp)
        sets = [order[:count] for count in self.counts_]
        self.agreement_ = neighbour_agreement(columns, sets, found.graph, n_neighbors)
        self.n_enough_ = self._count_enough()
        kept = self.n_enough_ or n_allowed
        if self.n_features_to_select is not None:
            kept = control.count_to_select(self.n_features_to_select)
        kept = max(kept, n_must)
        self._compare_with_random(columns, found, order[: min(kept, len(order))], n_neighbors)
        self._say(found, columns.n_features)
        return kept

    def _count_enough(self) -> int:
        if not len(self.counts_):
            return 0
        enough = self.agreement_ >= ENOUGH * self.agreement_.max()
        return int(self.counts_[np.argmax(enough)])

    def _compare_with_random(
        self, columns: UnitFreeColumns, found: Smoothness, kept: IndexArray, n_neighbors: int
    ) -> None:
        """Whether random sets of as many features keep the neighbours as well."""
        rng = self.random_generator()
        n_features = columns.n_features
        few = len(kept) < n_features and self.structure_found_
        sets = [
            rng.permutation(n_features)[: len(kept)] for _ in range(N_RANDOM_SETS if few else 0)
        ]
        found_agreement = neighbour_agreement(columns, [kept, *sets], found.graph, n_neighbors)
        self.random_agreement_ = found_agreement[1:]
        if few and found_agreement[0] <= self.random_agreement_.max():
            self.doubts_.append(
                f"Random sets of {len(kept)} features keep the neighbours as well (agreement "
                f"{self.random_agreement_.mean():.2f} against {found_agreement[0]:.2f}): the "
                "features are interchangeable."
            )

    def _say(self, found: Smoothness, n_features: int) -> None:
        """Put the answer, and what speaks against it, into words."""
        n_carrying = int(found.carries.sum())
        if not n_carrying:
            self.summary_ = (
                f"No structure found: on none of the {n_features} features do neighbouring samples "
                "agree by more than chance, so nothing in the table says which to keep."
            )
            return
        verb = "carries" if n_carrying == 1 else "carry"
        best = self.agreement_.max()
        enough = float(self.agreement_[list(self.counts_).index(self.n_enough_)])
        self.summary_ = (
            f"{n_features} features, {n_carrying} {verb} structure, {self.n_enough_} "
            f"{'is' if self.n_enough_ == 1 else 'are'} enough because their neighbours agree with "
            f"those of the whole table {enough / best:.0%} as well as those of any number up to "
            f"{self.counts_[-1]} do."
        )
        close = self.counts_[self.agreement_ >= ENOUGH * best]
        if self.n_features_to_select is None and len(close) > 1:
            self.doubts_.append(
                f"Any number from {close[0]} to {close[-1]} keeps the neighbours about as well."
            )
        if self.agreement_[-1] == best and self.counts_[-1] == FEWEST_TAKEN:
            self.doubts_.append(
                f"The agreement still rises at {FEWEST_TAKEN} features, where the search ends."
            )
        if found.p_values.min() > _CLOSE_P_VALUE:
            self.doubts_.append(
                f"Whether there is structure is a close call (smallest p-value "
                f"{found.p_values.min():.2g})."
            )

    def _conclude(self) -> None:
        n_without = int(np.sum(self.support_ & ~self.carries_structure_))
        if self.structure_found_ and n_without:
            kept = f"{n_without} of the {self.n_features_to_select_} kept features"
            self.doubts_.append(f"{kept} carry no structure.")
        if not self.structure_found_:
            kept = "All features are kept; give n_features_to_select to keep fewer."
            if self.n_features_to_select is not None:
                kept = "The ranking is about as good as a random one."
            warn_caller(f"{self.summary_} {kept}", NoStructureWarning)
