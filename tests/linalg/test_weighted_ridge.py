"""Ridge regressions with a weight for every feature, against least squares by NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.moments import column_moments
from keepers.linalg.weighted_ridge import WeightedRidge

SHAPES = [(30, 12), (12, 30), (15, 15)]


def problem(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    return X, rng.standard_normal((shape[0], 3)), 10.0 ** rng.uniform(-3, 2, shape[1])


def least_squares(X, Y, q):
    """The same as a least squares problem with one more row for every feature."""
    stacked = np.vstack([X, np.diag(q**-0.5)])
    target = np.vstack([Y, np.zeros((X.shape[1], Y.shape[1]))])
    return np.linalg.lstsq(stacked, target, rcond=None)[0]


@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_solution_is_that_of_least_squares(shape, container):
    X, Y, q = problem(shape)
    expected = least_squares(X, Y, q)
    factor = WeightedRidge(container(X)).at(q)
    fit = factor.fit(Y)
    np.testing.assert_allclose(fit.W, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(fit.residual, Y - X @ expected, atol=1e-9)
    np.testing.assert_allclose(factor.residual(Y), fit.residual, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", SHAPES)
def test_centring_takes_the_means_off(shape, container):
    X, Y, q = problem(shape, seed=1)
    X += 0.5 * (X != 0)
    expected = least_squares(X - X.mean(axis=0), Y, q)
    stored = container(X)
    table = WeightedRidge.centred(stored, column_moments(stored))
    fit = table.at(q).fit(Y)
    np.testing.assert_allclose(fit.W, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(fit.residual, Y - (X - X.mean(axis=0)) @ expected, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_full_sparse_column_far_from_zero_is_centred_in_its_values(shape):
    X, Y, q = problem(shape, seed=2)
    X[:, 3] += 1e9
    stored = sp.csr_array(X)
    table = WeightedRidge.centred(stored, column_moments(stored))
    expected = least_squares(X - X.mean(axis=0), Y, q)
    # Values of 1e9 + 1 have seven digits after the point.
    np.testing.assert_allclose(table.at(q).fit(Y).W, expected, atol=1e-5 * np.abs(expected).max())


def test_both_forms_give_the_same_numbers():
    X, Y, q = problem((30, 12), seed=3)
    narrow = WeightedRidge(X)
    # Columns of zeros change nothing, but there are more of them than samples.
    wide = WeightedRidge(np.hstack([X, np.zeros((30, 40))]))
    assert narrow.by_features
    assert not wide.by_features
    one, other = narrow.at(q).fit(Y), wide.at(np.concatenate([q, np.ones(40)])).fit(Y)
    np.testing.assert_allclose(other.W[:12], one.W, atol=1e-9 * np.abs(one.W).max())
    np.testing.assert_allclose(other.residual, one.residual, atol=1e-9)
    np.testing.assert_allclose(other.W[12:], 0.0, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_near_zero_leave_rows_that_are_proportional_to_them(shape):
    X, Y, q = problem(shape, seed=4)
    q[:4] = [1e-8, 1e-12, 1e-16, 1e-20]
    fit = WeightedRidge(X).at(q).fit(Y)
    expected = q[:4, np.newaxis] * (X.T @ fit.residual)[:4]
    for row, wanted in zip(fit.W[:4], expected, strict=True):
        np.testing.assert_allclose(row, wanted, rtol=1e-4)
