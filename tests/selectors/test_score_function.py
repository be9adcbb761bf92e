"""Selectors as score functions: scikit-learn's selectors keep what the selector would."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFdr, SelectKBest, SelectPercentile
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from keepers import SPCAFS, AutoSelector, LaplacianScore, VarianceScore, as_score_function
from keepers.exceptions import ParameterError
from keepers.selectors.score_function import scores_in_ranking_order


def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    X[:, :8] += 3.0 * rng.standard_normal((3, 8))[rng.integers(0, 3, 60)]
    X[:, 12], X[:, 15] = X[:, 0], X[:, 0]
    return X


@pytest.mark.parametrize(
    "selector",
    [
        AutoSelector(random_state=0),
        LaplacianScore(),
        VarianceScore(),
        VarianceScore(max_correlation=0.8),
        SPCAFS(n_components=2, must_keep=[19], random_state=0),
    ],
    ids=lambda selector: repr(selector)[:40],
)
@pytest.mark.parametrize("y", [None, np.arange(60) % 2])
def test_select_k_best_keeps_the_top_of_the_selector(selector, y):
    X = table()
    expected = clone(selector).fit(X)
    for k in (1, 3, 8, 19):
        found = SelectKBest(as_score_function(selector), k=k).fit(X, y)
        assert set(found.get_support(indices=True)) == set(expected.top(k).indices)
    assert not hasattr(selector, "scores_")


def test_scores_are_those_of_the_selector_where_they_rank_alike():
    X = table()[:, :12]
    scores = as_score_function(VarianceScore())(X)
    np.testing.assert_allclose(scores, X.var(axis=0))


def test_scores_follow_the_ranking_and_no_two_are_alike():
    scores = np.array([2.0, 2.0, 0.0, 5.0, 0.0, 0.0])
    ranking = np.array([2, 3, 1, 4, 6, 5])
    found = scores_in_ranking_order(scores, ranking)
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(ranking))
    assert len(set(found)) == 6
    np.testing.assert_allclose(np.sort(found), np.sort(scores), atol=1e-12)


def test_it_works_in_a_pipeline_is_cloned_and_pickled():
    X = table()
    step = SelectPercentile(as_score_function(LaplacianScore()), percentile=25)
    pipeline = clone(make_pipeline(StandardScaler(), step))
    reduced = pipeline.fit_transform(X)
    assert reduced.shape == (60, 5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipeline)).transform(X), reduced)


def test_p_values_come_along_where_the_method_has_them():
    selector = AutoSelector(random_state=0)
    found = SelectFdr(as_score_function(selector), alpha=0.05).fit(table())
    np.testing.assert_allclose(found.pvalues_, clone(selector).fit(table()).p_values_)


@pytest.mark.parametrize("selector", [VarianceScore, "VarianceScore", StandardScaler()])
def test_anything_but_a_selector_is_refused(selector):
    with pytest.raises(ParameterError, match="must be a selector of this library"):
        as_score_function(selector)
