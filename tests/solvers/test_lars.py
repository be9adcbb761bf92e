"""The lasso path against scikit-learn's, and against the optimality conditions."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import lars_path_gram

from keepers.solvers.lars import Gram, first_knots_of_sizes, lasso_knots


def problem(seed):
    """Correlated columns, sometimes more of them than samples, so that paths have drops."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(5, 60), rng.integers(2, 60)
    mixing = np.eye(d) + rng.uniform(0, 2) * rng.standard_normal((d, d)) / np.sqrt(d)
    X = rng.standard_normal((n, d)) @ mixing + rng.uniform(0, 3)
    return X, 10 * rng.standard_normal(n), float(rng.choice([1e-3, 0.1, 1.0]))


def dense(knot, d):
    coef = np.zeros(d)
    coef[knot.features] = knot.values
    return coef


def scikit_learn_path(X, y, ridge):
    d = X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where residuals become small
        _, _, path = lars_path_gram(
            X.T @ y, X.T @ X + ridge * np.eye(d), n_samples=1, method="lasso", max_iter=20 * d
        )
    return path.T[1:]  # without the knot at which nothing is active


def n_drops(path):
    sizes = [np.sum(np.abs(coef) > 1e-10 * np.abs(coef).max()) for coef in path]
    return int(np.sum(np.diff(sizes) < 0))


@pytest.mark.parametrize("block", range(6))
def test_every_knot_is_scikit_learns_with_drops_on_the_way(block):
    drops = 0
    for seed in range(20 * block, 20 * (block + 1)):
        X, y, ridge = problem(seed)
        expected = scikit_learn_path(X, y, ridge)
        knots = list(lasso_knots(Gram(X, ridge), X.T @ y))
        found = np.array([dense(knot, X.shape[1]) for knot in knots])
        assert found.shape == expected.shape
        # The largest condition number among these is about 1e7.
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
        drops += n_drops(expected)
    assert drops >= 10


@given(seed=st.integers(0, 100_000))
@settings(max_examples=30, deadline=None)
def test_every_knot_meets_the_optimality_conditions_of_the_lasso(seed):
    X, y, ridge = problem(seed)
    d = X.shape[1]
    highest = np.abs(X.T @ y).max()
    penalties = []
    for knot in lasso_knots(Gram(X, ridge), X.T @ y):
        coef = dense(knot, d)
        correlation = (X.T @ (y - X @ coef) - ridge * coef) / highest
        penalty = knot.penalty / highest
        assert np.abs(correlation).max() <= penalty + 1e-7
        inside = np.flatnonzero(np.abs(coef) > 1e-10 * np.abs(coef).max())
        np.testing.assert_allclose(correlation[inside], penalty * np.sign(coef[inside]), atol=1e-7)
        penalties.append(knot.penalty)
    assert np.all(np.diff(penalties) <= 0)
    assert penalties[-1] == 0.0


def test_the_path_ends_at_the_ridge_solution():
    X, y, _ = problem(3)
    last = list(lasso_knots(Gram(X, 0.1), X.T @ y))[-1]
    d = X.shape[1]
    expected = np.linalg.solve(X.T @ X + 0.1 * np.eye(d), X.T @ y)
    np.testing.assert_allclose(dense(last, d), expected, rtol=1e-8, atol=1e-10)


def test_more_features_than_samples_become_active_through_the_ridge():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 50)), rng.standard_normal(12)
    fit = first_knots_of_sizes(Gram(X, 1e-3), X.T @ y, [30])[0]
    assert fit.reached
    assert fit.knot.n_nonzero == 30
    expected = scikit_learn_path(X, y, 1e-3)[fit.n_knots - 1]
    np.testing.assert_allclose(dense(fit.knot, 50), expected, atol=1e-9)


def test_without_ridge_the_path_is_exhausted_at_the_rank_of_X():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 50)), rng.standard_normal(12)
    fit = first_knots_of_sizes(Gram(X, 0.0), X.T @ y, [30])[0]
    assert not fit.reached
    assert fit.knot.n_nonzero == 12
    np.testing.assert_allclose(X @ dense(fit.knot, 50), y, atol=1e-9)


def test_the_first_knot_of_the_size_is_taken_where_a_drop_makes_the_path_come_back():
    """Seeds whose path visits a size, goes on, and visits it again, found with scikit-learn."""
    visited_again = 0
    for seed in range(20):
        X, y, ridge = problem(seed)
        path = scikit_learn_path(X, y, ridge)
        sizes = np.array([np.sum(np.abs(coef) > 1e-10 * np.abs(coef).max()) for coef in path])
        for size in np.unique(sizes):
            at = np.flatnonzero(sizes == size)
            if len(at) > 1:
                visited_again += 1
                fit = first_knots_of_sizes(Gram(X, ridge), X.T @ y, [int(size)])[0]
                scale = np.abs(path[at[0]]).max()
                np.testing.assert_allclose(
                    dense(fit.knot, X.shape[1]), path[at[0]], atol=1e-7 * scale
                )
    assert visited_again >= 10


def test_of_two_equal_columns_without_ridge_the_second_stays_out():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    X = np.column_stack([X, X[:, 0]])
    y = 3 * X[:, 0] + rng.standard_normal(30)
    knots = list(lasso_knots(Gram(X, 0.0), X.T @ y))
    last = dense(knots[-1], 5)
    assert last[4] == 0.0
    expected = np.linalg.lstsq(X[:, :4], y, rcond=None)[0]
    np.testing.assert_allclose(last[:4], expected, rtol=1e-9)


def test_two_equal_columns_share_their_coefficient_under_a_ridge():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    X = np.column_stack([X, X[:, 0]])
    y = 3 * X[:, 0] + rng.standard_normal(30)
    fit = first_knots_of_sizes(Gram(X, 1e-3), X.T @ y, [1])[0]
    coef = dense(fit.knot, 5)
    assert fit.reached
    assert fit.knot.n_nonzero == 2  # they join in a tie
    assert coef[0] == pytest.approx(coef[4], rel=1e-6)


def test_orthonormal_columns_are_thresholded():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((40, 10)))[0]
    y = rng.standard_normal(40)
    products = Q.T @ y
    order = np.argsort(-np.abs(products))
    for size in range(1, 10):
        knot = first_knots_of_sizes(Gram(Q, 0.0), products, [size])[0].knot
        level = np.abs(products[order[size]])
        expected = np.sign(products) * np.maximum(np.abs(products) - level, 0.0)
        np.testing.assert_allclose(dense(knot, 10), expected, atol=1e-14)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("n_samples", [15, 60])
def test_sparse_storage_changes_nothing(storage, n_samples):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n_samples, 50)) * (rng.uniform(size=(n_samples, 50)) < 0.3)
    y = rng.standard_normal(n_samples)
    found = first_knots_of_sizes(Gram(storage(X), 1e-2), X.T @ y, [30])[0]
    expected = first_knots_of_sizes(Gram(X, 1e-2), X.T @ y, [30])[0]
    assert found.n_knots == expected.n_knots
    np.testing.assert_allclose(dense(found.knot, 50), dense(expected.knot, 50), atol=1e-10)


def test_the_unit_of_the_target_only_scales_the_path():
    X, y, ridge = problem(5)
    plain = [dense(knot, X.shape[1]) for knot in lasso_knots(Gram(X, ridge), X.T @ y)]
    small = [dense(knot, X.shape[1]) for knot in lasso_knots(Gram(X, ridge), 1e-12 * (X.T @ y))]
    np.testing.assert_allclose(1e12 * np.array(small), plain, rtol=1e-6, atol=1e-9)


def test_a_target_unrelated_to_every_feature_has_no_knot():
    fit = first_knots_of_sizes(Gram(np.eye(3), 1e-3), np.zeros(3), [2])[0]
    assert not fit.reached
    assert fit.n_knots == 0
    assert len(fit.knot.features) == 0


def smooth_table(seed, scale):
    """More columns than samples, neighbours all but equal: spectra, say, in small units."""
    rng = np.random.default_rng(seed)
    places = np.linspace(0, 1, 120)
    waves = np.array([np.cos(np.pi * i * places) / (1 + i) ** 2 for i in range(30)])
    X = scale * (rng.standard_normal((30, 30)) @ waves + 1e-4 * rng.standard_normal((30, 120)))
    return X, rng.standard_normal(30)


@pytest.mark.parametrize("scale", [100.0, 1000.0, 3000.0])
def test_past_the_number_of_samples_knots_of_smooth_tables_are_on_the_path_or_said_not_to_be(scale):
    # Inverses that many changes had worn out gave numbers that were none.
    n_reached = 0
    for seed in range(12):
        X, y = smooth_table(seed, scale)
        c = X.T @ y
        (fit,) = first_knots_of_sizes(Gram(X, 1e-3), c, [40])
        assert np.isfinite(fit.knot.values).all()
        a = np.zeros(120)
        a[fit.knot.features] = fit.knot.values
        left = c - X.T @ (X @ a) - 1e-3 * a
        off = np.abs(np.abs(left[fit.knot.features]) - fit.knot.penalty).max()
        above = np.abs(left).max() - fit.knot.penalty
        if fit.reached:
            assert max(off, above) <= 1e-3 * np.abs(c).max()
            n_reached += 1
    assert n_reached >= 9
