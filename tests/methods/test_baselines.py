"""Random scores, variances and all features."""

import numpy as np
import pytest

from keepers import AllFeatures, RandomScore, VarianceScore
from keepers.exceptions import DataWarning


def _table(n_features=12, seed=0):
    return np.random.default_rng(seed).normal(size=(30, n_features))


def test_random_scores_depend_on_the_seed_and_the_width_only():
    first = RandomScore(random_state=4).fit(_table(seed=0)).scores_
    second = RandomScore(random_state=4).fit(1e3 * _table(seed=1)[:9]).scores_
    # Exactly: the draws do not look at the table.
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, RandomScore(random_state=5).fit(_table()).scores_)


def test_random_scores_leave_constant_columns_for_last():
    X = _table()
    X[:, 3] = 1.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = RandomScore(random_state=0).fit(X)
    assert selector.scores_[3] == 0.0
    assert selector.ranking_[3] == 12


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
