"""Passing over features that repeat better ones: against np.corrcoef, done the slow way."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers import SPCAFS, VarianceScore, all_selectors, prune_redundant
from keepers.exceptions import DataWarning, ParameterError
from keepers.selectors import ranking as ranking_module


def walk_down(X, order, max_correlation):
    """The definition, one pair at a time."""
    correlation = np.abs(np.corrcoef(X, rowvar=False))
    kept = []
    for j in order:
        if all(correlation[j, i] <= max_correlation for i in kept):
            kept.append(j)
    return kept


def table_with_copies(seed, n_samples=40, n_sources=30, n_features=400):
    rng = np.random.default_rng(seed)
    sources = rng.standard_normal((n_samples, n_sources))
    X = sources[:, rng.integers(n_sources, size=n_features)]
    return X * rng.choice([-1.0, 1.0], n_features) + 0.6 * rng.standard_normal(X.shape) + 5.0


@pytest.mark.parametrize("max_correlation", [0.3, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, sp.csc_matrix, np.float32])
def test_the_walk_keeps_what_the_definition_keeps(storage, max_correlation):
    X = table_with_copies(0)
    order = np.random.default_rng(1).permutation(X.shape[1])
    found = prune_redundant(storage(X), np.argsort(order) + 1, max_correlation)
    assert found.tolist() == walk_down(X, order, max_correlation)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.05, 1.0))
def test_no_kept_pair_exceeds_the_limit_and_every_other_feature_repeats_a_kept_one(seed, limit):
    X = table_with_copies(seed, n_samples=15, n_sources=8, n_features=60)
    ranking = np.random.default_rng(seed).permutation(60) + 1
    kept = prune_redundant(X, ranking, limit)
    correlation = np.abs(np.corrcoef(X, rowvar=False))
    among = correlation[np.ix_(kept, kept)] - np.eye(len(kept))
    assert among.max(initial=0.0) <= limit + 1e-12
    for j in set(range(60)) - set(kept.tolist()):
        better = kept[ranking[kept] < ranking[j]]
        assert correlation[j, better].max() > limit - 1e-12


def test_constant_columns_are_not_kept():
    X = table_with_copies(2)
    X[:, 7] = 3.0
    with pytest.warns(DataWarning, match="do not vary"):
        kept = prune_redundant(X, np.arange(1, X.shape[1] + 1), 1.0)
    assert 7 not in kept
    assert len(kept) == X.shape[1] - 1


def test_the_walk_stops_when_enough_are_kept():
    X = table_with_copies(3)
    ranking = np.arange(1, X.shape[1] + 1)
    everything = prune_redundant(X, ranking, 0.6)
    assert np.array_equal(prune_redundant(X, ranking, 0.6, n_features=5), everything[:5])


@pytest.mark.parametrize("ranking", [[1, 2], np.ones(400), np.arange(400)])
def test_a_ranking_that_is_none_is_refused(ranking):
    with pytest.raises(ParameterError, match="ranking must hold each of 1"):
        prune_redundant(table_with_copies(0), ranking, 0.5)


@pytest.mark.parametrize("value", [0, -0.5, 1.5, np.nan, "much", None])
def test_a_limit_that_is_none_is_refused(value):
    with pytest.raises(ParameterError, match="max_correlation must lie in"):
        prune_redundant(table_with_copies(0), np.arange(1, 401), value)


# The option of every selector


@pytest.mark.filterwarnings("ignore::keepers.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [name for name in all_selectors() if name != "AllFeatures"])
def test_every_selector_ranks_repeating_features_behind_the_others(name):
    X = table_with_copies(4, n_features=50, n_sources=10)
    make = all_selectors()[name]
    settings_ = {"random_state": 0} if "random_state" in make().get_params() else {}
    plain = make(10, **settings_).fit(X)
    spread = make(10, max_correlation=0.6, **settings_).fit(X)
    kept = walk_down(X, np.argsort(plain.ranking_), 0.6)
    behind = [j for j in np.argsort(plain.ranking_) if j not in kept]
    assert np.argsort(spread.ranking_).tolist() == kept + behind
    # Exactly: the same computation twice.
    assert np.array_equal(spread.scores_, plain.scores_)
    assert spread.support_.sum() == 10
    assert np.array_equal(np.flatnonzero(spread.support_), np.sort(spread.top(10).indices))


def test_constant_columns_stay_last_with_the_option():
    X = table_with_copies(5, n_features=50)
    X[:, [3, 9]] = 1.0
    with pytest.warns(DataWarning):
        selector = VarianceScore(10, max_correlation=0.5).fit(X)
    assert sorted(np.argsort(selector.ranking_)[-2:].tolist()) == [3, 9]


def test_what_must_stay_stays_however_alike_and_what_must_not_comes_last():
    X = table_with_copies(6, n_features=50)
    X[:, 1] = X[:, 0] + 1e-3 * np.random.default_rng(0).standard_normal(len(X))
    selector = SPCAFS(5, n_components=2, max_correlation=0.5, must_keep=[0, 1], never_keep=[2]).fit(
        X
    )
    assert sorted(selector.top(2).indices.tolist()) == [0, 1]
    assert selector.ranking_[2] == 50


def test_a_constant_feature_that_must_stay_stays_first_with_the_option():
    X = table_with_copies(8, n_features=50)
    X[:, 30] = 1.0
    with pytest.warns(DataWarning):
        selector = SPCAFS(5, n_components=2, max_correlation=0.5, must_keep=[30]).fit(X)
    assert selector.ranking_[30] == 1


def test_the_option_is_checked_when_fitting():
    with pytest.raises(ParameterError, match=r"max_correlation must lie in \(0, 1\]; got 2"):
        VarianceScore(10, max_correlation=2).fit(table_with_copies(0))


def test_behind_the_last_one_compared_features_keep_the_order_of_their_scores(monkeypatch):
    monkeypatch.setattr(ranking_module, "FEWEST_COMPARED", 5)
    X = table_with_copies(7)
    order = np.argsort(-X.var(axis=0), kind="stable")
    spread = VarianceScore(3, max_correlation=0.6).fit(X)
    first = walk_down(X, order, 0.6)[:5]
    rest = [j for j in order if j not in first]
    assert np.argsort(spread.ranking_).tolist() == first + rest


def test_a_limit_of_one_passes_copies_whatever_rounding_makes_of_their_correlation():
    x = np.random.default_rng(0).standard_normal((30, 1))
    X = np.hstack([x * factor for factor in (3.0, 2.0, 0.7, 1 / 3, -1.1)])
    selector = VarianceScore(5, max_correlation=1.0).fit(X)
    assert selector.top().indices.tolist() == [0, 1, 4, 2, 3]
