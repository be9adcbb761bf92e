"""Columns that repeat others are dropped, and nothing else."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from keepers import SPCAFS, DropCorrelated, VarianceScore, all_selectors
from keepers.exceptions import DataError
from keepers.linalg.correlation import ColumnCorrelations, walk_ranking
from keepers.linalg.scatter import column_moments


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
    correlations = ColumnCorrelations(storage(X), column_moments(storage(X)))
    walk = walk_ranking(correlations, order, max_correlation, most=len(order))
    assert order[walk.keeps].tolist() == walk_down(X, order, max_correlation)
    first = walk_ranking(correlations, order, max_correlation, most=3)
    assert order[first.keeps].tolist() == order[walk.keeps][:3].tolist()


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


def test_what_must_stay_stays_however_alike_and_what_must_not_comes_last():
    X = table_with_copies(6, n_features=50)
    X[:, 1] = X[:, 0] + 1e-3 * np.random.default_rng(0).standard_normal(len(X))
    selector = SPCAFS(5, n_components=2, max_correlation=0.5, must_keep=[0, 1], never_keep=[2]).fit(
        X
    )
    assert sorted(selector.top(2).indices.tolist()) == [0, 1]
    assert selector.ranking_[2] == 50


def test_a_limit_of_one_passes_copies_whatever_rounding_makes_of_their_correlation():
    x = np.random.default_rng(0).standard_normal((30, 1))
    X = np.hstack([x * factor for factor in (3.0, 2.0, 0.7, 1 / 3, -1.1)])
    selector = VarianceScore(5, max_correlation=1.0).fit(X)
    assert selector.top().indices.tolist() == [0, 1, 4, 2, 3]


@parametrize_with_checks([DropCorrelated()])
def test_scikit_learn_accepts_drop_correlated(estimator, check):
    check(estimator)


def slowly(frame, threshold, goodness):
    """The rule with pandas: kept columns, and what was kept instead of the others."""
    correlation = frame.corr(min_periods=3)
    kept, instead = [], {}
    for name in sorted(frame.columns, key=lambda name: -goodness[name]):
        theirs = correlation.loc[name, kept].abs()
        if len(theirs) and theirs.max() > threshold:
            other = theirs.idxmax()
            instead[name] = (other, correlation.loc[name, other])
        else:
            kept.append(name)
    return kept, instead


def frame_of(seed, n_rows, n_columns, gaps):
    """Columns in families, whose members are more or less alike."""
    rng = np.random.default_rng(seed)
    sources = rng.standard_normal((n_rows, max(1, n_columns // 4)))
    X = sources[:, rng.integers(sources.shape[1], size=n_columns)]
    X = X * rng.choice([-1.0, 1.0], n_columns) * rng.uniform(0.5, 20.0, n_columns)
    X = X + rng.uniform(0.0, 2.0, n_columns) * rng.standard_normal(X.shape) + 5.0
    X[rng.uniform(size=X.shape) < gaps] = np.nan
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(n_columns)])


def agrees(step, frame, goodness):
    kept, instead = slowly(frame, step.threshold, goodness)
    step.fit(frame)
    assert sorted(step.get_feature_names_out()) == sorted(kept)
    assert list(step.kept_instead_) == list(instead)
    for name, (other, r) in instead.items():
        assert step.kept_instead_[name][0] == other
        assert step.kept_instead_[name][1] == pytest.approx(r, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(5, 40),
    n_columns=st.integers(1, 30),
    gaps=st.sampled_from([0.0, 0.1, 0.5]),
    threshold=st.sampled_from([0.3, 0.6, 0.9, 0.95]),
)
def test_it_keeps_what_the_rule_keeps_and_names_what_is_kept_instead(
    seed, n_rows, n_columns, gaps, threshold
):
    frame = frame_of(seed, n_rows, n_columns, gaps)
    if frame.var().isna().any() or (frame.var() == 0).any():
        return  # ties in the order, which have a test of their own
    agrees(DropCorrelated(threshold), frame, frame.var(ddof=0))


def test_constant_columns_and_columns_without_values_stay():
    x = np.random.default_rng(0).standard_normal(30)
    X = np.column_stack([np.ones(30), x, np.ones(30), 2.0 * x])
    assert DropCorrelated().fit(X).get_support(indices=True).tolist() == [0, 2, 3]
    X = np.column_stack([X, np.full(30, np.nan), np.where(x > 0, np.nan, 5.0)])
    assert DropCorrelated().fit(X).get_support(indices=True).tolist() == [0, 2, 3, 4, 5]
    assert DropCorrelated().fit(np.ones((5, 2))).support_.all()


def test_columns_with_few_common_rows_are_not_compared():
    X = np.random.default_rng(0).standard_normal((40, 2))
    X[:, 1] = X[:, 0]
    X[:20, 0], X[22:, 1] = np.nan, np.nan
    assert DropCorrelated().fit(X).support_.all()
    X[:22, 1] = X[:22, 0] = np.arange(22.0)
    assert DropCorrelated().fit(X).support_.sum() == 1
    assert DropCorrelated().fit(np.array([[1.0, 2.0], [3.0, 5.0]])).support_.all()


def test_what_the_mathematics_does_not_allow_is_refused_in_a_sentence():
    X = frame_of(10, 20, 4, 0.2).to_numpy()
    with pytest.raises(DataError, match="sparse matrix with NaN"):
        DropCorrelated().fit(sp.csr_array(X))
    with pytest.raises(DataError, match="between 1e-140 and 1e140"):
        DropCorrelated().fit(X * 1e250)
    with pytest.raises(DataError, match="these are not: 'colour'"):
        DropCorrelated().fit(pd.DataFrame(X).assign(colour="red").rename(columns=str))
