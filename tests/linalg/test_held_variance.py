"""The variance that components made of some features hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.held_variance import variance_held
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import DenseScatter, FactoredScatter, SparseScatter


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 40)) * rng.exponential(size=40) + 5.0
    X[X < 5.0] = 0.0
    return X


@pytest.mark.parametrize("width", [1, 3, 7])
def test_it_is_the_sum_of_the_leading_eigenvalues_whatever_the_storage(X, width):
    features = np.array([3, 11, 7, 30, 21, 8, 0])
    Xc = X - X.mean(axis=0)
    part = Xc[:, features]
    expected = np.sum(np.linalg.svd(part, compute_uv=False)[:width] ** 2)
    moments = column_moments(X)
    operators = [
        DenseScatter(Xc.T @ Xc),
        FactoredScatter(X, moments),
        SparseScatter(sp.csr_matrix(X), moments),
    ]
    for operator in operators:
        assert variance_held(operator, features, width) == pytest.approx(expected, rel=1e-10)


def test_with_as_many_components_as_features_it_is_their_variance(X):
    Xc = X - X.mean(axis=0)
    S = Xc.T @ Xc
    features = np.array([1, 5])
    expected = S[1, 1] + S[5, 5]
    assert variance_held(DenseScatter(S), features, 2) == pytest.approx(expected, rel=1e-12)
    assert variance_held(DenseScatter(S), features, 9) == pytest.approx(expected, rel=1e-12)
    assert variance_held(DenseScatter(S), np.empty(0, dtype=np.intp), 2) == 0.0


def test_sets_too_large_to_be_decomposed_are_iterated(monkeypatch):
    monkeypatch.setattr("keepers.linalg.held_variance.SMALL_SIDE", 20)
    monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 20)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 80)) + 4 * rng.standard_normal((60, 2)) @ rng.standard_normal(
        (2, 80)
    )
    X -= X.mean(axis=0)
    features = np.arange(5, 70)
    expected = np.sum(np.linalg.svd(X[:, features], compute_uv=False)[:2] ** 2)
    found = variance_held(DenseScatter(X.T @ X), features, 2)
    assert found == pytest.approx(expected, rel=1e-9)
