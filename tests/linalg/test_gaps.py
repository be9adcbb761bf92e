"""Gaps filled from a few components: recovery, bounds, symmetries, tables with little in them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from keepers.exceptions import DataError
from keepers.linalg.gaps import fill_rows, fit_gap_model, observed_columns


def with_gaps(X, share=0.2, seed=0):
    gaps = np.random.default_rng(seed).random(X.shape) < share
    gaps[0] = False  # every column has a value
    return np.where(gaps, np.nan, X)


def low_rank(n, d, rank, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    return (X + noise * rng.standard_normal((n, d))) * 10.0 ** rng.integers(-3, 4, d)


def relative_error(found, X):
    return np.max(np.abs(found - X) / X.std(axis=0))


@pytest.mark.parametrize(("n", "d", "rank"), [(60, 30, 2), (100, 300, 3), (300, 20, 2)])
def test_an_exactly_low_rank_table_is_recovered(n, d, rank):
    X = low_rank(n, d, rank)
    G = with_gaps(X)
    model = fit_gap_model(G, max_iter=500)
    assert relative_error(fill_rows(model, G), X) < 1e-6


@pytest.mark.parametrize(("n", "d"), [(80, 25), (40, 200)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_bound_on_the_likelihood_never_falls(n, d, share):
    X = low_rank(n, d, 3, noise=1.0)
    model = fit_gap_model(with_gaps(X, share))
    bound = np.array(model.objective)
    assert len(bound) > 1
    assert np.all(np.diff(bound) >= -1e-9 * np.abs(bound[1:]))


def test_estimates_are_nearly_as_close_as_least_squares_on_the_true_components():
    rng = np.random.default_rng(0)
    T, W = rng.standard_normal((200, 3)), rng.standard_normal((60, 3))
    X = T @ W.T + 0.5 * rng.standard_normal((200, 60))
    G = with_gaps(X, 0.3)
    gaps = np.isnan(G)
    model = fit_gap_model(G)
    found = fill_rows(replace(model, weights=np.ones(60)), G)
    error = np.sqrt(np.mean((found - X)[gaps] ** 2))
    best = np.sqrt(np.mean((T @ W.T - X)[gaps] ** 2))
    of_means = np.sqrt(np.mean((SimpleImputer().fit_transform(G) - X)[gaps] ** 2))
    assert best <= error <= 1.1 * best
    assert error < 0.4 * of_means


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_observed_values_stay_as_they_are_and_the_table_given_too(share):
    X = low_rank(40, 12, 2, noise=0.5)
    G = with_gaps(X, share)
    before = G.copy()
    found = fill_rows(fit_gap_model(G), G)
    there = ~np.isnan(G)
    np.testing.assert_array_equal(found[there], X[there])
    np.testing.assert_array_equal(G, before)
    assert np.all(np.isfinite(found))


def test_means_are_those_of_scikit_learn():
    G = with_gaps(low_rank(31, 300, 2, noise=0.5), 0.3)
    observed = observed_columns(G)
    expected = SimpleImputer(strategy="mean").fit(G).statistics_
    np.testing.assert_allclose(observed.means, expected, rtol=1e-12)
    np.testing.assert_allclose(observed.scales, np.nanstd(G, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(observed.counts, (~np.isnan(G)).sum(axis=0))


def test_new_rows_are_filled_by_ridge_on_the_loadings():
    G = with_gaps(low_rank(80, 15, 2, noise=0.5))
    model = fit_gap_model(G)
    row = G[[3]].copy()
    row[0, :5] = np.nan
    there = ~np.isnan(row[0])
    W = model.loadings[there]
    z = (row[0, there] - model.means[there]) / model.scales[there]
    ridge = (model.noise + model.uncertainty[there].sum()) * np.eye(model.rank)
    t = np.linalg.solve(W.T @ W + ridge, W.T @ z)
    expected = model.means + model.scales * model.weights * (model.loadings @ t)
    np.testing.assert_allclose(fill_rows(model, row)[0, ~there], expected[~there], rtol=1e-9)
    # One row, or many of them at once.
    np.testing.assert_allclose(fill_rows(model, G)[[3]], fill_rows(model, G[[3]]), rtol=1e-9)


def test_noise_is_filled_with_means():
    G = with_gaps(np.random.default_rng(0).standard_normal((50, 200)))
    filled = fill_rows(fit_gap_model(G), G)
    assert fit_gap_model(G).rank == 0
    np.testing.assert_allclose(filled, SimpleImputer().fit_transform(G), rtol=1e-12, atol=1e-14)


def test_rows_and_columns_with_little_in_them():
    X = low_rank(60, 20, 2, noise=0.3)
    G = with_gaps(X)
    G[7] = np.nan  # a row without any value
    G[:, 3], G[:, 4] = np.where(np.isnan(G[:, 3]), np.nan, 7.5), np.nan
    G[11, 4] = 2.5  # a column with one value
    filled = fill_rows(fit_gap_model(G), G)
    assert np.all(np.isfinite(filled))
    np.testing.assert_allclose(filled[:, 3], 7.5, rtol=1e-14)
    np.testing.assert_allclose(filled[:, 4], 2.5, rtol=1e-14)
    others = [j for j in range(20) if j not in (3, 4)]
    np.testing.assert_allclose(filled[7, others], fit_gap_model(G).means[others], rtol=1e-9)


def test_what_cannot_be_filled_is_refused():
    G = with_gaps(low_rank(20, 5, 2))
    G[:, 2] = np.inf
    with pytest.raises(DataError, match="finite values"):
        fill_rows(fit_gap_model(G), G)


def test_estimates_of_a_column_with_few_values_weigh_less():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + 0.5 * rng.standard_normal((300, 12))
    G = with_gaps(X, 0.05)
    G[rng.random(300) < 0.7, 0] = np.nan
    weights = fit_gap_model(G).weights
    assert weights[0] < 0.99 * weights[1:].min()
    assert np.all((weights > 0.0) & (weights <= 1.0))
