"""What a method has to beat, and selectors as score functions of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFdr, SelectKBest
from sklearn.preprocessing import StandardScaler

from keepers import (
    SPCAFS,
    AllFeatures,
    AutoSelector,
    LaplacianScore,
    RandomScore,
    VarianceScore,
    as_score_function,
)
from keepers.exceptions import DataWarning, ParameterError


def _table(n_features=12, seed=0):
    return np.random.default_rng(seed).normal(size=(30, n_features))


def test_random_scores_depend_on_the_seed_and_the_width_only():
    first = RandomScore(random_state=4).fit(_table(seed=0)).scores_
    second = RandomScore(random_state=4).fit(1e3 * _table(seed=1)[:9]).scores_
    # Exactly: the draws do not look at the table.
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, RandomScore(random_state=5).fit(_table()).scores_)


def test_variances_are_numpys_and_constant_columns_have_none():
    X = _table()
    X[:, 2] = 3.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = VarianceScore(3).fit(X)
    np.testing.assert_allclose(selector.scores_, X.var(axis=0), rtol=1e-12, atol=1e-30)
    assert selector.ranking_[2] == 12


@pytest.mark.parametrize("setting", [None, 1])
def test_all_features_are_kept_whatever_is_asked_for(setting):
    X = _table()
    selector = AllFeatures(setting).fit(X)
    assert selector.support_.all()
    assert selector.n_features_to_select_ == 12
    assert np.all(np.diff(X.var(axis=0)[np.argsort(selector.ranking_)]) <= 0)
    assert (selector.scores_ == 1.0).all()
    np.testing.assert_array_equal(selector.transform(X), X)


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


def test_scores_follow_the_ranking_and_no_two_are_alike():
    X = table()
    selector = VarianceScore(max_correlation=0.8)
    found = as_score_function(selector)(X)
    expected = clone(selector).fit(X)
    np.testing.assert_array_equal(np.argsort(-found), np.argsort(expected.ranking_))
    assert len(set(found)) == X.shape[1]
    np.testing.assert_allclose(np.sort(found), np.sort(expected.scores_), atol=1e-12)


def test_p_values_come_along_where_the_method_has_them():
    selector = AutoSelector(random_state=0)
    found = SelectFdr(as_score_function(selector), alpha=0.05).fit(table())
    np.testing.assert_allclose(found.pvalues_, clone(selector).fit(table()).p_values_)


@pytest.mark.parametrize("selector", [VarianceScore, "VarianceScore", StandardScaler()])
def test_anything_but_a_selector_is_refused(selector):
    with pytest.raises(ParameterError, match="must be a selector of this library"):
        as_score_function(selector)
