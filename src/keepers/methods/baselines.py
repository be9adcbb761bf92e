"""Baselines: features drawn at random, the largest variances, all features.

`as_score_function` makes any selector a score function of scikit-learn's `SelectKBest`.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from keepers._protocols import FloatArray
from keepers.exceptions import ParameterError, shorten
from keepers.methods.base import RankingSelector
from keepers.methods.parameters import FeatureCount, Seed
from keepers.methods.reading import MemoryTable

YARDSTICK = "it is a yardstick for tables in memory."


@dataclass(eq=False, repr=False)
class RandomScore(RankingSelector):
    """Features in random order.

    The scores are uniform on [0, 1) and do not depend on the values in X: the same seed and the
    same number of columns give the same scores. Only constant columns are put last, with score 0.

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

    looks_for = "the features with the largest variance, each for itself"
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
    """Every feature, constant ones included.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Checked as in every selector; it changes nothing.

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


def as_score_function(selector: RankingSelector) -> Callable[..., Any]:
    """A selector as ``score_func`` of `SelectKBest`, `SelectPercentile` and their like.

    ``SelectKBest(as_score_function(selector), k=20)`` keeps what ``selector.fit(X).top(20)`` names.
    Labels are handed over by scikit-learn and not looked at.

    Parameters
    ----------
    selector : selector
        Any selector of this library. It is not changed: a clone is fitted.

    Returns
    -------
    callable
        ``score_func(X, y=None)``: the scores of the features. Where the ranking is not that of the
        scores (ties, ``max_correlation``, features that must stay), the scores are handed out in
        the order of the ranking. For `AutoSelector` the p-values come with them, which `SelectFdr`
        and its like need.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from keepers import LaplacianScore, as_score_function, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> SelectKBest(as_score_function(LaplacianScore()), k=20).fit_transform(X).shape
    (83, 20)
    """
    if not isinstance(selector, RankingSelector):
        raise ParameterError(
            "selector must be a selector of this library, such as AutoSelector(), not a class; got "
            f"{shorten(selector)}."
        )
    return partial(_fit_and_score, selector)


def _fit_and_score(selector: RankingSelector, X: Any, y: Any = None) -> Any:
    """Scores of a clone fitted to X, and p-values if it has them."""
    fitted = clone(selector).fit(X)
    # The largest for the best feature, and no two alike: of equal scores scikit-learn keeps the
    # last.
    falling = np.sort(fitted.scores_.astype(np.float64))[::-1]
    for at in range(1, len(falling)):
        falling[at] = min(falling[at], np.nextafter(falling[at - 1], -np.inf))
    scores = falling[fitted.ranking_ - 1]
    p_values = getattr(fitted, "p_values_", None)
    return scores if p_values is None else (scores, p_values)
