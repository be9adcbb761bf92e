"""A selector as the score function of scikit-learn's own selectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from keepers._protocols import FloatArray
from keepers.exceptions import ParameterError, shorten
from keepers.selectors.ranking import RankingSelector


@dataclass(frozen=True)
class ScoreFunction:
    """What `as_score_function` returns: scores for the columns of X; y is not looked at."""

    selector: RankingSelector

    def __call__(self, X: Any, y: Any = None) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Fit a clone of the selector and return its scores, with p-values if it has them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The table.
        y : ignored
            What scikit-learn hands over.

        Returns
        -------
        array of shape (n_features,), or two of them
            Scores, higher is better; and p-values of the methods that test features.
        """
        fitted = clone(self.selector).fit(X)
        scores = scores_in_ranking_order(fitted.scores_, fitted.ranking_)
        p_values = getattr(fitted, "p_values_", None)
        return scores if p_values is None else (scores, p_values)


def as_score_function(selector: RankingSelector) -> ScoreFunction:
    """A selector as ``score_func`` of `SelectKBest`, `SelectPercentile` and their like.

    ``SelectKBest(as_score_function(selector), k=20)`` keeps what ``selector.fit(X).top(20)`` names.
    Labels are handed over by scikit-learn and not looked at, so that ``fit(X)`` and ``fit(X, y)``
    give the same.

    Parameters
    ----------
    selector : selector
        Any selector of this library. It is not changed: a clone is fitted.

    Returns
    -------
    callable
        ``score_func(X, y=None)``: the scores of the features. Where the ranking is not that of the
        scores (ties, ``max_correlation``, features that must stay), the scores are handed out in
        the order of the ranking. For `AutoSelector` and `DenoisedLaplacian` the p-values come with
        them, which `SelectFdr` and its like need.

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
    return ScoreFunction(selector)


def scores_in_ranking_order(scores: FloatArray, ranking: np.ndarray) -> FloatArray:
    """The same scores, the largest for the best-ranked feature, and no two alike.

    scikit-learn keeps the last of equal scores, and a ranking here has the first one first.

    Examples
    --------
    >>> scores_in_ranking_order(np.array([1.0, 1.0, 3.0]), np.array([1, 2, 3])).round(6)
    array([3., 1., 1.])
    """
    falling = np.sort(scores.astype(np.float64))[::-1]
    for at in range(1, len(falling)):
        falling[at] = min(falling[at], np.nextafter(falling[at - 1], -np.inf))
    return falling[ranking - 1]
