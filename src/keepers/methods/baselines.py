"""Baselines: features drawn at random, the largest variances, all features."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils import check_random_state

from keepers._protocols import FloatArray
from keepers.methods.base import RankingSelector
from keepers.methods.parameters import FeatureCount, Seed
from keepers.methods.reading import MemoryTable

YARDSTICK = "it is a baseline for tables in memory."


@dataclass(eq=False, repr=False)
class RandomScore(RankingSelector):
    """Rank features in random order.

    The scores are uniform on [0, 1) and depend only on the seed and the number of columns. Constant
    columns come last, with score 0.

    Parameters
    ----------
    {n_features_to_select}
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the scores.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The random numbers; higher is better.
    {fitted}

    Examples
    --------
    >>> from keepers import RandomScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> RandomScore(50, random_state=0).fit_transform(X).shape
    (83, 50)
    """

    looks_for = "nothing: it draws features at random, for comparison"
    score_means = "a random number"

    why_not_dask = YARDSTICK

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    max_correlation: float | None = None
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        scores = check_random_state(self.random_state).uniform(size=table.n_features)
        return np.where(table.unusable, 0.0, scores)


@dataclass(eq=False, repr=False)
class VarianceScore(RankingSelector):
    """Rank features by their variance, largest first.

    The values are not scaled, so a feature in smaller units has a larger variance.

    Parameters
    ----------
    {n_features_to_select}
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Variances (divided by the number of samples); higher is better.
    {fitted}

    Examples
    --------
    >>> from keepers import VarianceScore, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> int(VarianceScore(20).fit(X).top(1).indices[0]) == int(X.var(axis=0).argmax())
    True
    """

    looks_for = "the features with the largest variance, one at a time"
    score_means = "the variance of the feature"

    why_not_dask = YARDSTICK
    seeks_variance = True

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    max_correlation: float | None = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        return table.variances


@dataclass(eq=False, repr=False)
class AllFeatures(RankingSelector):
    """Keep every feature, constant ones included.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Checked as in every selector; it has no effect.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        1 for every feature; ``support_`` is True for each of them.
    {fitted}

    Examples
    --------
    >>> from keepers import AllFeatures, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> AllFeatures().fit_transform(X).shape
    (83, 2308)
    """

    score_means = "1 for every feature"

    why_not_dask = YARDSTICK

    n_features_to_select: FeatureCount = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        self.n_features_to_select_ = table.n_features
        return np.ones(table.n_features)
