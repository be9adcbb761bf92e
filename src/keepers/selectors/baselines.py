"""What a method has to beat: features drawn at random, the largest variances, all features."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from keepers.selectors.fitted_table import read_table
from keepers.selectors.parameters import FeatureCount, Seed
from keepers.selectors.ranking import RankingSelector

__all__ = ["AllFeatures", "RandomScore", "VarianceScore"]


YARDSTICK = "it is a yardstick for tables in memory."


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

    Examples
    --------
    >>> from keepers import RandomScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> RandomScore(50, random_state=0).fit_transform(X).shape
    (83, 50)
    """

    why_not_dask = YARDSTICK

    def __init__(
        self,
        n_features_to_select: FeatureCount = None,
        *,
        max_correlation: float | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.max_correlation = max_correlation
        self.random_state = random_state

    def _fit(self, X: Any) -> None:
        table = read_table(self, X)
        scores = check_random_state(self.random_state).uniform(size=table.n_features)
        self._store_ranking(np.where(table.unusable, 0.0, scores), table)


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

    Examples
    --------
    >>> from keepers import VarianceScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> int(VarianceScore(20).fit(X).top(1).indices[0]) == int(X.var(axis=0).argmax())
    True
    """

    why_not_dask = YARDSTICK

    def __init__(
        self, n_features_to_select: FeatureCount = None, *, max_correlation: float | None = None
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.max_correlation = max_correlation

    def _fit(self, X: Any) -> None:
        table = read_table(self, X)
        self._store_ranking(table.spread(table.moments.variance), table)


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

    Examples
    --------
    >>> from keepers import AllFeatures, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> AllFeatures().fit_transform(X).shape
    (83, 2308)
    """

    why_not_dask = YARDSTICK

    def __init__(self, n_features_to_select: FeatureCount = None) -> None:
        self.n_features_to_select = n_features_to_select

    def _fit(self, X: Any) -> None:
        table = read_table(self, X)
        self._store_ranking(np.ones(table.n_features), table)
        self.n_features_to_select_ = table.n_features
        self.support_ = np.ones(table.n_features, dtype=bool)
