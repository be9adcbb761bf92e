"""Gaps filled from a few components: recovery, bounds, symmetries, tables with little in them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.impute import SimpleImputer

from keepers.exceptions import DataError
from keepers.linalg.gaps import (
    MOST_ROWS_FITTED,
    GapModel,
    column_medians,
    fill_by_model,
    fill_rows,
    fit_gap_model,
    observed_columns,
)


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
    assert model.converged
    assert relative_error(fill_rows(model, G), X) < 1e-6


@pytest.mark.parametrize(("n", "d"), [(80, 25), (40, 200)])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_bound_on_the_likelihood_never_falls(n, d, share):
    X = low_rank(n, d, 3, noise=1.0)
    model = fit_gap_model(with_gaps(X, share))
    bound = np.array(model.objective)
    assert len(bound) == model.n_iter > 1
    assert np.all(np.diff(bound) >= -1e-9 * np.abs(bound[1:]))


def test_estimates_are_nearly_as_close_as_the_regression_on_the_true_components():
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


def test_a_table_without_gaps_stays_as_it_is():
    X = low_rank(40, 12, 2, noise=0.5)
    filled = fill_by_model(X)
    # Exactly: nothing is computed of these values.
    np.testing.assert_array_equal(filled.X, X)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_observed_values_stay_as_they_are_and_the_table_given_too(share):
    X = low_rank(40, 12, 2, noise=0.5)
    G = with_gaps(X, share)
    before = G.copy()
    found = fill_by_model(G).X
    there = ~np.isnan(G)
    np.testing.assert_array_equal(found[there], X[there])
    np.testing.assert_array_equal(G, before)
    assert np.all(np.isfinite(found))


def test_means_and_medians_are_those_of_scikit_learn():
    G = with_gaps(low_rank(31, 300, 2, noise=0.5), 0.3)
    observed = observed_columns(G)
    expected = SimpleImputer(strategy="mean").fit(G).statistics_
    np.testing.assert_allclose(observed.means, expected, rtol=1e-12)
    np.testing.assert_allclose(observed.scales, np.nanstd(G, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(observed.counts, (~np.isnan(G)).sum(axis=0))
    expected = SimpleImputer(strategy="median").fit(G).statistics_
    np.testing.assert_allclose(column_medians(G), expected, rtol=1e-14)


def test_deviations_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    found = observed_columns(with_gaps(X + 1e8))
    np.testing.assert_allclose(found.scales, np.nanstd(with_gaps(X), axis=0), rtol=1e-6)


def test_moments_of_two_parts_merge_to_those_of_the_whole():
    G = with_gaps(low_rank(50, 8, 2, noise=0.5), 0.4)
    G[:20, 1] = np.nan
    G[20:, 2] = np.nan
    whole = observed_columns(G)
    merged = observed_columns(G[:20]).merge(observed_columns(G[20:]))
    np.testing.assert_array_equal(merged.counts, whole.counts)
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-12)
    np.testing.assert_allclose(merged.scales, whole.scales, rtol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(70, 30), (30, 70)])
def test_reordered_rows_and_columns_are_filled_alike(n, d):
    G = with_gaps(low_rank(n, d, 2, noise=0.5))
    scales = np.nanstd(G, axis=0)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(n), rng.permutation(d)
    plain = fill_by_model(G).X
    reordered = fill_by_model(G[np.ix_(rows, columns)]).X
    expected = plain[np.ix_(rows, columns)]
    np.testing.assert_allclose((reordered - expected) / scales[columns], 0.0, atol=1e-6)


def test_units_of_the_columns_do_not_matter():
    G = with_gaps(low_rank(60, 20, 2, noise=0.5))
    factors, offsets = 10.0 ** np.linspace(-4, 4, 20), np.linspace(-5, 5, 20)
    found = (fill_by_model(G * factors + offsets).X - offsets) / factors
    np.testing.assert_allclose((found - fill_by_model(G).X) / np.nanstd(G, axis=0), 0.0, atol=1e-5)


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_layouts_and_repetitions_give_the_same(layout):
    G = with_gaps(low_rank(60, 20, 2, noise=0.5))
    expected = fill_by_model(G).X
    found = fill_by_model(layout(G)).X
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_new_rows_are_filled_by_a_ridge_regression_on_the_loadings():
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


def test_filled_columns_agree_with_the_components_about_as_complete_ones_do():
    rng = np.random.default_rng(0)
    T, W = rng.standard_normal((2000, 2)), rng.standard_normal((100, 2)) / 2
    X = T @ W.T + rng.standard_normal((2000, 100))
    G = with_gaps(X, 0.5)
    model = fit_gap_model(G)
    basis = np.linalg.qr(np.hstack([np.ones((2000, 1)), T]))[0][:, 1:]

    def agreement(table):
        centred = table - table.mean(axis=0)
        return np.mean(np.sum((basis.T @ centred) ** 2, axis=0) / np.sum(centred**2, axis=0))

    by_weight = [
        agreement(fill_rows(replace(model, weights=model.weights**power), G)) for power in (0, 1, 2)
    ]
    expected = agreement(X)
    assert by_weight[0] > by_weight[1] > by_weight[2]
    np.testing.assert_allclose(by_weight[2], expected, rtol=0.1)  # t is known from 50 columns
    assert by_weight[0] > 1.25 * expected


def test_a_model_survives_json():
    G = with_gaps(low_rank(60, 20, 2, noise=0.5))
    model = fit_gap_model(G)
    again = GapModel.from_dict(json.loads(json.dumps(model.to_dict())))
    # Exactly: the same numbers, and the same computation with them.
    np.testing.assert_array_equal(fill_rows(again, G), fill_rows(model, G))
    assert again.rank == model.rank
    flat = fit_gap_model(with_gaps(np.random.default_rng(0).standard_normal((6, 4))))
    assert GapModel.from_dict(flat.to_dict()).loadings.shape == (4, 0)


def test_a_model_of_some_columns_fills_tables_of_these():
    G = with_gaps(low_rank(60, 20, 2, noise=0.5))
    model = fit_gap_model(G)
    order = np.random.default_rng(0).permutation(20)
    found = fill_rows(model.restrict(order), G[:, order])
    np.testing.assert_allclose(found, fill_rows(model, G)[:, order], rtol=1e-9)
    assert np.all(np.isfinite(fill_rows(model.restrict(order[:5]), G[:, order[:5]])))


def test_noise_is_filled_with_means():
    G = with_gaps(np.random.default_rng(0).standard_normal((50, 200)))
    filled = fill_by_model(G)
    assert filled.model.rank == 0
    np.testing.assert_allclose(filled.X, SimpleImputer().fit_transform(G), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (2, 5), (3, 1), (3, 2), (5, 1)])
def test_tables_too_small_for_a_model_are_filled_with_means(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    if len(X) > 1:
        X[1, 0] = np.nan
    found = fill_by_model(X).X
    np.testing.assert_allclose(found, SimpleImputer().fit_transform(X), rtol=1e-12)


def test_rows_and_columns_with_little_in_them():
    X = low_rank(60, 20, 2, noise=0.3)
    G = with_gaps(X)
    G[7] = np.nan  # a row without any value
    G[:, 3], G[:, 4] = np.where(np.isnan(G[:, 3]), np.nan, 7.5), np.nan
    G[11, 4] = 2.5  # a column with one value
    filled = fill_by_model(G)
    assert np.all(np.isfinite(filled.X))
    np.testing.assert_allclose(filled.X[:, 3], 7.5, rtol=1e-14)
    np.testing.assert_allclose(filled.X[:, 4], 2.5, rtol=1e-14)
    others = [j for j in range(20) if j not in (3, 4)]
    np.testing.assert_allclose(filled.X[7, others], filled.model.means[others], rtol=1e-9)


def test_a_table_with_many_rows_is_modelled_by_some_of_them():
    X = low_rank(MOST_ROWS_FITTED + 500, 12, 2, noise=0.1)
    G = with_gaps(X)
    found = fill_by_model(G).X
    gaps = np.isnan(G)
    assert np.sqrt(np.mean(((found - X) / X.std(axis=0))[gaps] ** 2)) < 0.2


def test_a_model_of_a_sample_fills_the_other_rows_with_the_moments_of_all():
    X = low_rank(400, 12, 2, noise=0.1)
    G = with_gaps(X)
    G[:100, 5] = np.nan  # the sample knows nothing of this column
    model = fit_gap_model(G[:100], observed_columns(G))
    found = fill_rows(model, G)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[:100, 5], np.nanmean(G[:, 5]), rtol=1e-12)
    others = [j for j in range(12) if j != 5]
    assert relative_error(found[:, others], X[:, others]) < 2.0


def test_what_cannot_be_filled_is_refused():
    G = with_gaps(low_rank(20, 5, 2))
    G[:, 2] = np.nan
    with pytest.raises(DataError, match="1 of 5 columns are empty"):
        fill_by_model(G)
    G[:, 2] = np.inf
    with pytest.raises(DataError, match="finite values"):
        fill_by_model(G)
