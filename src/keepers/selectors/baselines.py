"""What a method has to beat: features drawn at random, the largest variances, all features."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state

from keepers._protocols import FloatArray
from keepers.selectors.fitted_table import Table
from keepers.selectors.parameters import FeatureCount, Seed
from keepers.selectors.ranking import RankingSelector

YARDSTICK = "it is a yardstick for tables in memory."


@dataclass(eq=False, repr=False)
class RandomScore(RankingSelector):
    """Features in random order.

    The scores are uniform on [0, 1) and do not depend on the values in X: the same seed and the
    same number of columns give the same scores. Only constant columns are put last, with score 0.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.
    random_state : int, RandomState or None, default=None
        Seeds the scores.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The random numbers; higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        Their number.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    VarianceScore : Another baseline.
    AllFeatures : No selection at all.

    Examples
    --------
    >>> from keepers import RandomScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> RandomScore(50, random_state=0).fit_transform(X).shape
    (83, 50)
    """

    why_not_dask = YARDSTICK

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: Table) -> FloatArray:
        """Random numbers, drawn for constant columns as well."""
        scores = check_random_state(self.random_state).uniform(size=table.n_features)
        return np.where(table.unusable, 0.0, scores)


@dataclass(eq=False, repr=False)
class VarianceScore(RankingSelector):
    """Features by their variance, largest first.

    The variance is that of the values as they are: a feature in smaller units counts for more. It
    is measured after centring, so a large mean costs no digits.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of them; None keeps half. It does not influence
        the scores: ``top(k)`` gives the best k for any k afterwards.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None ranks by score alone.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Variances (divided by the number of samples); higher is better.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        Their number.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    RandomScore : Another baseline.
    SPCAFS : Looks at what features have in common.

    Examples
    --------
    >>> from keepers import VarianceScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> int(VarianceScore(20).fit(X).top(1).indices[0]) == int(X.var(axis=0).argmax())
    True
    """

    why_not_dask = YARDSTICK
    seeks_variance = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    max_correlation: float | None = None

    def score_features(self, table: Table) -> FloatArray:
        """The variances."""
        return table.variances


@dataclass(eq=False, repr=False)
class AllFeatures(RankingSelector):
    """Every feature, constant ones included.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Checked as in every selector, so that this one can stand in for any other; it changes
        nothing.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        1 for every feature.
    ranking_ : array of shape (n_features,)
        By variance; constant columns come last.
    support_ : boolean array of shape (n_features,)
        True for every feature.
    n_features_to_select_ : int
        The number of features.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    RandomScore : Another baseline.
    VarianceScore : Another baseline.

    Examples
    --------
    >>> from keepers import AllFeatures, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> AllFeatures().fit_transform(X).shape
    (83, 2308)
    """

    why_not_dask = YARDSTICK

    n_features_to_select: FeatureCount = None

    def score_features(self, table: Table) -> FloatArray:
        """Ones."""
        self.n_features_to_select_ = table.n_features
        return np.ones(table.n_features)
