"""Scores of methods of the user's own."""

import numpy as np
import pytest

from keepers import extending


class Returns(extending.RankingSelector):
    """Gives the scores it was made with."""

    def __init__(self, n_features_to_select=None, scores=None):
        self.n_features_to_select = n_features_to_select
        self.scores = scores

    def score_features(self, table):
        """The scores, whatever they are."""
        return self.scores


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.array([1.0, np.nan, 2.0]), r"must be finite; 1 .*'x1' is nan"),
        (np.array([1.0, 3.0, -np.inf]), r"must be finite; 1 .*'x2' is -inf"),
        (np.array([1.0, 3.0, 2.0j]), r"a real number .*type complex128"),
        (np.array(["a", "b", "c"]), r"a real number .*type <U1"),
        (np.ones(2), r"must give 3 scores.*shape \(2,\).*to_all_columns"),
        (np.ones((3, 1)), r"must give 3 scores.*shape \(3, 1\)"),
        (None, r"must give 3 scores.*shape \(\)"),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused(scores, message):
    selector = Returns(2, scores)
    with pytest.raises(extending.DataError, match=message):
        selector.fit(np.random.default_rng(0).standard_normal((9, 3)))
    assert not hasattr(selector, "scores_")


@pytest.mark.parametrize("scores", [[1, 3, 2], (1.0, 3.0, 2.0), np.array([False, True, True])])
def test_scores_may_be_any_real_numbers(scores):
    selector = Returns(2, scores).fit(np.random.default_rng(0).standard_normal((9, 3)))
    assert selector.support_.tolist() == [False, True, True]
