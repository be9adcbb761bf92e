"""Numbers for the values of categories: they follow structure, and no noise."""

import numpy as np
import pytest

from keepers.preparation.categories import quantify


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


@pytest.mark.parametrize(("n", "n_levels"), [(200, 3), (200, 12), (200, 30), (60, 5)])
def test_a_category_that_has_nothing_to_do_with_the_rest_is_like_a_random_column(n, n_levels):
    of_category, of_random = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, _ = clustered(n, 10, rng)
        codes = rng.integers(0, n_levels, n)
        (found,) = quantify(X, [codes], np.arange(n), [n_levels])
        component = leading_component(X)
        of_category.append(correlation(found.of_rows(np.arange(n), codes), component))
        of_random.append(correlation(rng.standard_normal(n), component))
    assert np.mean(of_category) < 1.4 * np.mean(of_random)
    assert np.quantile(of_category, 0.95) < 1.5 * np.quantile(of_random, 0.95)


@pytest.mark.parametrize("seed", range(5))
def test_a_category_tied_to_clusters_follows_them(seed):
    rng = np.random.default_rng(seed)
    X, cluster = clustered(200, 10, rng, apart=3.0)
    # Several values mean the same cluster, and one row in ten another.
    codes = cluster + 3 * rng.integers(0, 2, 200)
    codes = np.where(rng.random(200) < 0.1, rng.integers(0, 6, 200), codes)
    (found,) = quantify(X, [codes], np.arange(200))
    component = leading_component(X)
    assert correlation(found.of_rows(np.arange(200), codes), component) > 0.6
    assert correlation(found.of_new(codes), component) > 0.6
    assert correlation(found.both[:3], found.both[3:6]) > 0.9


def assert_same_up_to_sign(found, expected):
    sign = np.sign(np.dot(found, expected))
    np.testing.assert_allclose(sign * found, expected, atol=1e-8)


def example(seed=0):
    rng = np.random.default_rng(seed)
    X, cluster = clustered(120, 8, rng)
    return X, cluster + 3 * rng.integers(0, 2, 120), rng


def test_the_order_of_the_rows_does_not_matter():
    X, codes, rng = example()
    rows = np.arange(120)
    order = rng.permutation(120)
    (first,) = quantify(X, [codes], rows)
    (second,) = quantify(X[order], [codes[order]], rows[order])
    assert_same_up_to_sign(second.of_rows(rows, codes), first.of_rows(rows, codes))
    assert_same_up_to_sign(second.both, first.both)


def test_what_the_values_are_called_does_not_matter():
    X, codes, rng = example()
    rows, renamed = np.arange(120), rng.permutation(6)
    (first,) = quantify(X, [codes], rows)
    (second,) = quantify(X, [renamed[codes]], rows)
    assert_same_up_to_sign(second.of_rows(rows, renamed[codes]), first.of_rows(rows, codes))


def test_the_units_of_the_other_columns_do_not_matter():
    X, codes, rng = example()
    (first,) = quantify(X, [codes], np.arange(120))
    (second,) = quantify(X * rng.uniform(0.01, 100, 8) + 5.0, [codes], np.arange(120))
    assert_same_up_to_sign(second.both, first.both)


def test_the_same_table_gives_the_same_numbers():
    X, codes, _ = example()
    (first,), (second,) = (quantify(X, [codes], np.arange(120)) for _ in range(2))
    # Exactly: the same computation twice.
    np.testing.assert_array_equal(first.both, second.both)


def test_numbers_have_mean_zero_and_variance_one_over_the_rows():
    X, codes, _ = example()
    (found,) = quantify(X, [codes], np.arange(120))
    numbers = found.of_new(codes)
    np.testing.assert_allclose([numbers.mean(), numbers.std()], [0, 1], atol=1e-9)


def test_gaps_have_no_number():
    X, codes, _ = example()
    codes[[3, 4]] = -1
    X[5:20, 2] = np.nan
    (found,) = quantify(X, [codes], np.arange(120))
    for numbers in (found.of_rows(np.arange(120), codes), found.of_new(codes)):
        np.testing.assert_array_equal(np.flatnonzero(np.isnan(numbers)), [3, 4])


def test_values_that_these_rows_do_not_show_have_a_number():
    X, codes, _ = example()
    (found,) = quantify(X, [codes], np.arange(120), [9])
    assert len(found.both) == 9
    assert np.isfinite(found.of_new(np.array([8]))).all()
    assert np.isfinite(found.of_rows(np.array([0, 1]), np.array([7, 8]))).all()


def test_two_categories_follow_each_other():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 300)
    second = np.where(rng.random(300) < 0.9, first, rng.integers(0, 4, 300))
    one, other = quantify(np.empty((300, 0)), [first, second], np.arange(300))
    numbers = one.of_new(first), other.of_new(second)
    assert correlation(*numbers) > 0.5


def test_a_category_alone_in_a_table_is_told_by_frequency():
    codes = np.repeat([0, 1, 2], [5, 20, 10])
    (found,) = quantify(np.empty((35, 0)), [codes], np.arange(35))
    assert np.argsort(found.both).tolist() == [0, 2, 1]


@pytest.mark.parametrize("X", [np.ones((40, 3)), np.full((40, 3), np.nan)])
def test_columns_that_tell_nothing_are_no_trouble(X):
    codes = np.arange(40) % 4
    (found,) = quantify(X, [codes], np.arange(40))
    assert np.isfinite(found.of_rows(np.arange(40), codes)).all()


def test_many_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, cluster = clustered(40, 3000, rng)
    (found,) = quantify(X, [cluster], np.arange(40))
    assert correlation(found.of_rows(np.arange(40), cluster), leading_component(X)) > 0.6
