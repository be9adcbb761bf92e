import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors.baselines import AllFeatures, RandomScore, VarianceScore


def _table(n_features=12, seed=0):
    return np.random.default_rng(seed).normal(size=(30, n_features))


def _with_constants(X, columns):
    X = X.copy()
    X[:, columns] = 3.0
    return X


def test_random_scores_depend_on_the_seed_and_the_width_only():
    first = RandomScore(random_state=4).fit(_table(seed=0)).scores_
    second = RandomScore(random_state=4).fit(1e3 * _table(seed=1)[:9]).scores_
    # Exactly: the draws do not look at the table.
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, RandomScore(random_state=5).fit(_table()).scores_)


def test_random_scores_are_uniform():
    scores = np.sort(RandomScore(random_state=0).fit(_table(n_features=4000)).scores_)
    assert np.abs(scores - np.linspace(0, 1, 4000)).max() < 0.03  # Kolmogorov-Smirnov, p ~ 0.001
    assert scores[0] >= 0
    assert scores[-1] < 1


def test_random_selection_takes_every_feature_equally_often():
    X = _table(n_features=6)
    counts = sum(RandomScore(2, random_state=seed).fit(X).support_ for seed in range(300))
    assert counts.sum() == 600
    assert counts.min() > 100 - 4 * 8.2  # binomial standard deviation 8.2
    assert counts.max() < 100 + 4 * 8.2


def test_constant_columns_are_last_at_random_and_move_no_other_score():
    X = _table()
    plain = RandomScore(random_state=0).fit(X).scores_
    with pytest.warns(DataWarning, match="do not vary"):
        selector = RandomScore(random_state=0).fit(_with_constants(X, [0, 5]))
    assert selector.ranking_[[0, 5]].tolist() == [11, 12]
    others = np.delete(np.arange(12), [0, 5])
    # Exactly: the draws do not look at the table.
    np.testing.assert_array_equal(selector.scores_[others], plain[others])
    assert selector.scores_[[0, 5]].tolist() == [0.0, 0.0]


def test_variances_of_whole_numbers_are_exact_beside_a_mean_of_a_million():
    steps = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    X = 1e6 + np.column_stack([steps, 3 * steps, 2 * steps])
    selector = VarianceScore(1).fit(X)
    np.testing.assert_allclose(selector.scores_, [2.0, 18.0, 8.0], rtol=1e-12)
    assert selector.ranking_.tolist() == [3, 1, 2]


def test_variances_are_numpys_and_constant_columns_have_none():
    X = _with_constants(_table(), [2])
    with pytest.warns(DataWarning, match="do not vary"):
        selector = VarianceScore(3).fit(X)
    np.testing.assert_allclose(selector.scores_, X.var(axis=0), rtol=1e-12, atol=1e-30)
    assert selector.ranking_[2] == 12


@pytest.mark.parametrize("setting", [None, 1, 0.25, 12])
def test_all_features_are_kept_whatever_is_asked_for(setting):
    X = _table()
    selector = AllFeatures(setting).fit(X)
    assert selector.support_.all()
    assert selector.n_features_to_select_ == 12
    assert np.all(np.diff(X.var(axis=0)[np.argsort(selector.ranking_)]) <= 0)
    assert (selector.scores_ == 1.0).all()
    np.testing.assert_array_equal(selector.transform(X), X)


def test_all_features_include_constant_ones_ranked_last():
    X = _with_constants(_table(n_features=4), [1])
    with pytest.warns(DataWarning, match="do not vary"):
        selector = AllFeatures().fit(X)
    assert selector.support_.all()
    assert selector.ranking_[1] == 4
    assert sorted(selector.ranking_) == [1, 2, 3, 4]
    assert len(selector.top()) == 4


def test_all_features_still_check_the_number_asked_for():
    with pytest.raises(ParameterError, match="n_features_to_select"):
        AllFeatures(13).fit(_table())


@pytest.mark.parametrize("floor", [RandomScore(4, random_state=0), VarianceScore(4), AllFeatures()])
@pytest.mark.parametrize("storage", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_a_sparse_table_gives_the_scores_of_the_same_dense_one(floor, storage):
    X = np.where(np.abs(_table()) > 0.5, _table(), 0.0)
    dense = floor.fit(X).scores_
    np.testing.assert_allclose(floor.fit(storage(X)).scores_, dense, rtol=1e-12)
