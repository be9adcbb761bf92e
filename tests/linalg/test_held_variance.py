"""The variance that a set of features holds, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.held_variance import variance_held
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import DenseScatter, as_scatter


def leading_sum(X, features, m):
    centred = X[:, features] - X[:, features].mean(axis=0)
    return np.sum(np.linalg.svd(centred, compute_uv=False)[:m] ** 2)


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (9, 2000)])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array])
def test_it_is_the_sum_of_the_leading_eigenvalues_in_every_storage(shape, convert):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * rng.exponential(size=shape[1]) + 3.0
    features = rng.permutation(shape[1])[:10]
    stored = convert(X)
    scatter = as_scatter(stored, column_moments(stored), 5)
    for m in (1, 3, 8):
        assert variance_held(scatter, features, m) == pytest.approx(
            leading_sum(X, features, m), rel=1e-10
        )


def test_fewer_features_than_components_hold_all_of_their_variance():
    X = np.random.default_rng(1).standard_normal((20, 6))
    scatter = as_scatter(X, column_moments(X), 3)
    features = np.array([4, 1])
    expected = 20 * X[:, features].var(axis=0).sum()
    assert variance_held(scatter, features, 5) == pytest.approx(expected)
    assert variance_held(scatter, features, 2) == pytest.approx(expected)


def test_more_components_than_rows_hold_everything_that_there_is():
    X = np.random.default_rng(2).standard_normal((4, 30))
    scatter = as_scatter(X, column_moments(X), 3)
    features = np.arange(20)
    assert variance_held(scatter, features, 10) == pytest.approx(
        4 * X[:, features].var(axis=0).sum()
    )


def test_a_large_small_side_gives_the_same_sum():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((950, 6)) @ rng.standard_normal((6, 1000))
    X += 0.1 * rng.standard_normal(X.shape)
    scatter = as_scatter(X, column_moments(X), 5)
    features = np.arange(0, 1000)
    assert variance_held(scatter, features, 5) == pytest.approx(
        leading_sum(X, features, 5), rel=1e-9
    )


def test_sets_too_large_to_be_decomposed_are_iterated(monkeypatch):
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 80))
    X += 4 * rng.standard_normal((60, 2)) @ rng.standard_normal((2, 80))
    X -= X.mean(axis=0)
    features = np.arange(5, 70)
    found = variance_held(DenseScatter(X.T @ X), features, 2)
    assert found == pytest.approx(leading_sum(X, features, 2), rel=1e-9)
