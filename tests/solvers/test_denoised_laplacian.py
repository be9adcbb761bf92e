"""Smoothness over denoised neighbours, against closed forms, NumPy and planted structure."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import false_discovery_control, kstest

from keepers.linalg.graph import nearest_in_cloud, union_graph
from keepers.linalg.moments import column_moments
from keepers.linalg.unit_free import UnitFreeColumns
from keepers.solvers.denoised_laplacian import (
    discoveries,
    excess_variance,
    measure_smoothness,
    smoothness,
    take_greedily,
)
from keepers.solvers.laplacian_score import laplacian_scores


def columns_of(X):
    return UnitFreeColumns(X, column_moments(X))


def measure(X, seed=0):
    moments = column_moments(X)
    return measure_smoothness(columns_of(X), moments.variance, 7, np.random.default_rng(seed))


def planted(n_samples, spread, seed, n_features=1000, n_planted=40):
    """Four groups of samples differ in the first features; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    groups = rng.integers(4, size=n_samples)
    X[:, :n_planted] += (spread * rng.standard_normal((4, n_planted)))[groups]
    return X


@pytest.fixture
def graph():
    return union_graph(nearest_in_cloud(np.random.default_rng(1).standard_normal((50, 3)), 6))


def test_smoothness_is_one_minus_the_laplacian_score(graph):
    X = np.random.default_rng(0).standard_normal((50, 12)) + 5.0
    found = smoothness(columns_of(X), np.arange(12), graph)[0]
    np.testing.assert_allclose(found, 1.0 - laplacian_scores(graph, X).scores, atol=1e-10)


def test_samples_in_another_order_are_columns_shuffled(graph):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12))
    order = rng.permutation(50)
    found = smoothness(columns_of(X), np.arange(12), graph, [order])[1]
    expected = smoothness(columns_of(X[order]), np.arange(12), graph)[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_discoveries_are_those_of_benjamini_and_hochberg(seed):
    p_values = np.random.default_rng(seed).random(200) ** 3
    expected = false_discovery_control(p_values) <= 0.01
    np.testing.assert_array_equal(discoveries(p_values, 0.01), expected)
    assert not discoveries(np.ones(10), 0.05).any()


def test_planted_features_carry_structure_and_noise_does_not():
    found = measure(planted(150, 2.0, seed=0, n_features=200, n_planted=100))
    assert not found.weighted
    assert found.carries[:100].mean() > 0.95
    assert found.carries[100:].mean() < 0.05
    assert found.values[:100].mean() > found.values[100:].max()


def test_p_values_of_noise_are_uniform():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 400)) * np.exp(rng.standard_normal(400))
    X[:, :200] = np.random.default_rng(4).standard_normal((4, 200))[rng.integers(4, size=100)]
    X[:, :200] += 0.1 * rng.standard_normal((100, 200))
    found = measure(X)
    assert found.carries[:200].mean() > 0.95
    assert kstest(found.p_values[200:], "uniform").pvalue > 0.01


@pytest.mark.parametrize("kind", ["gaussian", "rescaled", "heavy tails", "rare", "narrow"])
def test_nothing_is_found_in_noise(kind):
    n_found = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 10 if kind == "narrow" else 150))
        if kind == "rescaled":
            X *= np.exp(rng.standard_normal(150))
        elif kind == "heavy tails":
            X = rng.standard_t(2, X.shape)
        elif kind == "rare":
            X = (rng.random(X.shape) < 0.1) + 0.0
        n_found += measure(X, seed).carries.any()
    # One in a hundred is expected of a table.
    assert n_found <= 1


@pytest.mark.parametrize("rescaled", [False, True])
def test_few_planted_features_are_found_among_many(rescaled):
    X = planted(150, 1.5, seed=5)
    if rescaled:
        X *= np.exp(np.random.default_rng(6).standard_normal(1000))
    found = measure(X)
    assert found.weighted
    best = np.argsort(-found.values)[:40]
    assert np.sum(best < 40) >= 36
    by_variance = np.argsort(-X.var(axis=0))[:40]
    assert np.sum(best < 40) >= np.sum(by_variance < 40)
    assert not rescaled or np.sum(by_variance < 40) < 10


def test_units_change_nothing():
    X = planted(80, 2.0, seed=7, n_features=120, n_planted=60)
    factors = np.exp(np.random.default_rng(8).normal(0, 3, 120))
    found, rescaled = measure(X), measure(X * factors + 10 * factors)
    np.testing.assert_allclose(rescaled.values, found.values, atol=1e-8)
    np.testing.assert_array_equal(rescaled.carries, found.carries)


def test_sparse_storage_gives_the_same():
    X = planted(80, 2.0, seed=9, n_features=120, n_planted=60)
    X[np.abs(X) < 1.0] = 0.0
    dense, sparse = measure(X), measure(sp.csr_array(X))
    np.testing.assert_allclose(sparse.values, dense.values, atol=1e-9)


def test_excess_variance_is_told_only_where_variances_agree():
    X = np.random.default_rng(0).standard_normal((100, 500))
    X[:, 0] *= 2.0
    variances = column_moments(X).variance
    excess = excess_variance(columns_of(X), variances)
    # The logarithm of a variance of n normal values has a standard deviation of sqrt(2 / n).
    expected = np.log(variances[0] / np.median(variances)) / np.sqrt(2 / 100)
    np.testing.assert_allclose(excess[0], expected, rtol=0.1)
    factors = np.exp(np.random.default_rng(1).standard_normal(500))
    assert excess_variance(columns_of(X * factors), variances * factors**2) is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_first", [0, 3])
def test_the_lazy_search_takes_what_a_plain_one_takes(seed, n_first):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 80)) + rng.standard_normal((30, 80))
    columns = columns_of(X)
    values = rng.random(80)
    r2 = np.corrcoef(X.T) ** 2
    first = rng.choice(80, n_first, replace=False)
    taken, scores = list(first), []
    while len(taken) < 40:
        left = values * (1.0 - r2[:, taken].max(axis=1)) if taken else values.copy()
        left[taken] = -1.0
        taken.append(int(np.argmax(left)))
        scores.append(left[taken[-1]])
    found = take_greedily(values, columns.standardised, 40, first)
    assert found.order.tolist() == taken
    np.testing.assert_allclose(found.scores[n_first:], scores, atol=1e-9)
    for place in range(1, 40):
        earlier = taken[:place]
        assert found.nearest[place] == earlier[int(np.argmax(r2[taken[place], earlier]))]
        np.testing.assert_allclose(
            found.correlations[place] ** 2, r2[taken[place], earlier].max(), atol=1e-9
        )


def test_a_copy_is_taken_last_and_says_whose_it_is():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    X[:, 4] = -2.0 * X[:, 1] + 7.0
    found = take_greedily(np.array([0.5, 0.9, 0.4, 0.3, 0.9]), columns_of(X).standardised, 5)
    assert found.order[0] == 1
    assert found.order[-1] == 4
    assert found.nearest[-1] == 1
    np.testing.assert_allclose(found.correlations[-1], -1.0)
    np.testing.assert_allclose(found.scores[-1], 0.0, atol=1e-9)
