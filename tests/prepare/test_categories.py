"""Numbers for the values of categories follow structure, and not noise."""

import numpy as np
import pandas as pd
import pytest

from keepers.prepare.categories import in_first_half, quantify

N = 400
ROWS = np.arange(N)


def leading_component(X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.linalg.svd(Z, full_matrices=False)[0][:, 0]


def clustered(n, d, rng, n_clusters=3, apart=2.0):
    """Noise with clusters in the first half of the columns, and the cluster of every row."""
    cluster = rng.integers(0, n_clusters, n)
    X = rng.standard_normal((n, d))
    X[:, : d // 2] += apart * rng.standard_normal((n_clusters, d // 2))[cluster]
    return X, cluster


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


def one_hot(codes, n_levels=None):
    """1 where a row has a value, else 0; NaN for the code -1, a gap."""
    chosen = (codes[:, None] == np.arange(n_levels or codes.max() + 1)).astype(float)
    chosen[codes < 0] = np.nan
    return chosen


def column_of(numbers, chosen, *, rows=None, new=False):
    """One category as numbers, as in the table of the fit or, if new, in other rows."""
    rows = np.arange(len(chosen)) if rows is None else rows
    (found,) = quantify(numbers, [chosen], rows)
    return found.of(chosen, np.arange(len(chosen)), None if new else rows)


@pytest.mark.parametrize(("n", "n_levels"), [(200, 3), (200, 30), (60, 5)])
def test_an_unrelated_category_is_like_a_random_column(n, n_levels):
    of_category, of_random = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, _ = clustered(n, 10, rng)
        component = leading_component(X)
        chosen = one_hot(rng.integers(0, n_levels, n))
        of_category.append(correlation(column_of(X, chosen), component))
        of_random.append(correlation(rng.standard_normal(n), component))
    assert np.mean(of_category) < 1.4 * np.mean(of_random)
    assert np.quantile(of_category, 0.95) < 1.5 * np.quantile(of_random, 0.95)


def test_a_category_tied_to_clusters_follows_them():
    rng = np.random.default_rng(0)
    X, cluster = clustered(200, 10, rng, apart=3.0)
    # Several values mean the same cluster, and one row in ten another.
    codes = cluster + 3 * rng.integers(0, 2, 200)
    codes = np.where(rng.random(200) < 0.1, rng.integers(0, 6, 200), codes)
    chosen, component = one_hot(codes), leading_component(X)
    (found,) = quantify(X, [chosen], np.arange(200))
    assert correlation(column_of(X, chosen), component) > 0.6
    assert correlation(column_of(X, chosen, new=True), component) > 0.6
    assert correlation(found.both[:3], found.both[3:6]) > 0.9


def test_beside_one_column_a_value_gets_its_mean_in_the_other_half():
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=N)
    x = rng.standard_normal(N) + codes
    (found,) = quantify(x[:, None], [one_hot(codes)], ROWS)
    first, counts = in_first_half(ROWS), np.bincount(codes)
    for given, there in ((found.second, first), (found.first, ~first), (found.both, ROWS >= 0)):
        means = pd.Series(x[there]).groupby(codes[there]).mean().to_numpy()
        centred = means - np.average(means, weights=counts)
        expected = centred / np.sqrt(np.average(centred**2, weights=counts))
        numbers = given[:-1] + given[-1]
        np.testing.assert_allclose(np.abs(numbers @ expected), numbers @ numbers, rtol=1e-9)


@pytest.mark.parametrize("change", ["rows", "names", "units", "nothing"])
def test_order_of_rows_names_of_values_and_units_do_not_matter(change):
    rng = np.random.default_rng(0)
    X, cluster = clustered(120, 8, rng)
    codes, rows, renamed = cluster + 3 * rng.integers(0, 2, 120), np.arange(120), np.arange(6)
    order = rng.permutation(120) if change == "rows" else rows
    renamed = rng.permutation(6) if change == "names" else renamed
    units = rng.uniform(0.01, 100, 8) if change == "units" else np.ones(8)
    expected = column_of(X, one_hot(codes))
    chosen = one_hot(renamed[codes][order])
    found = np.empty(120)
    found[order] = column_of((X * units)[order], chosen, rows=rows[order])
    np.testing.assert_allclose(np.sign(found @ expected) * found, expected, atol=1e-8)
    numbers = column_of(X, one_hot(codes), new=True)
    np.testing.assert_allclose([numbers.mean(), numbers.std()], [0, 1], atol=1e-9)


def test_gaps_have_no_number_and_values_that_these_rows_lack_have_one():
    rng = np.random.default_rng(0)
    X, codes = clustered(120, 8, rng)
    codes[[3, 4]] = -1
    X[5:20, 2] = np.nan
    chosen = one_hot(codes, 9)
    for numbers in (column_of(X, chosen), column_of(X, chosen, new=True)):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(numbers)), [3, 4])
    (found,) = quantify(X, [chosen], np.arange(120))
    assert len(found.both) == 9 + 1
    assert np.isfinite(found.of(np.eye(9), np.array([7, 8]), np.array([0, 1]))).all()


@pytest.mark.parametrize("X", [np.empty((35, 0)), np.ones((35, 3)), np.full((35, 3), np.nan)])
def test_beside_nothing_to_follow_it_goes_by_frequency(X):
    codes = np.repeat([0, 1, 2], [5, 20, 10])
    (found,) = quantify(X, [one_hot(codes)], np.arange(35))
    assert np.argsort(found.both[:3]).tolist() == [0, 2, 1]


def test_answers_follow_the_columns_they_belong_to_and_noise_does_not():
    rng = np.random.default_rng(1)
    chosen = (rng.random((N, 6)) < 0.4).astype(float)
    signal = chosen[:, :2] @ [1.0, -1.0]
    numbers = signal[:, None] + 0.3 * rng.standard_normal((N, 5))
    found = quantify(numbers, [chosen], ROWS)[0]
    assert correlation(found.of(chosen, ROWS, ROWS), signal) > 0.95
    noise = [
        correlation(column_of(X, chosen), leading_component(X))
        for X in rng.standard_normal((50, N, 5))
    ]
    assert np.mean(noise) < 2 / np.sqrt(N)  # |r| of independent columns is 0.8 / sqrt(N)
    chosen[7] = np.nan
    assert np.isnan(found.of(chosen, ROWS)).tolist() == [row == 7 for row in range(N)]
