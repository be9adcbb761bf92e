"""Correlations from every source against NumPy's, and which features repeat a better one."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.correlation import (
    ColumnCorrelations,
    FetchedCorrelations,
    ScatterCorrelations,
    unlike_the_better,
)
from keepers.linalg.moments import column_moments


def table(seed=0, n_samples=50, n_features=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) @ rng.standard_normal((n_features, n_features))
    X[np.abs(X) < 1.0] = 0.0
    return X + 0.0


def scatter_of(X):
    centred = X - X.mean(axis=0)
    return centred.T @ centred


SOURCES = {
    "array": lambda X: ColumnCorrelations(X, column_moments(X)),
    "CSR": lambda X: ColumnCorrelations(sp.csr_array(X), column_moments(X)),
    "CSC": lambda X: ColumnCorrelations(sp.csc_array(X), column_moments(X)),
    "scatter": lambda X: ScatterCorrelations(scatter_of(X)),
    "fetched": lambda X: FetchedCorrelations(
        lambda columns: scatter_of(X[:, columns]), np.arange(X.shape[1]), ahead=3
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_correlations_are_those_of_numpy(source):
    X = table()
    mine, theirs = np.array([3, 0, 7]), np.array([1, 3, 11, 5])
    expected = np.corrcoef(X.T)[np.ix_(mine, theirs)]
    np.testing.assert_allclose(SOURCES[source](X).between(mine, theirs), expected, atol=1e-12)


@pytest.mark.parametrize("source", SOURCES)
def test_copies_are_skipped_whatever_their_sign_unless_they_are_always_kept(source):
    X = table(1)
    X[:, 4], X[:, 6], X[:, 9] = 2.0 * X[:, 0], -X[:, 1], X[:, 0]
    order = np.arange(12)
    keeps = unlike_the_better(SOURCES[source](X), order, 0.999, most=12)
    np.testing.assert_array_equal(np.flatnonzero(~keeps), [4, 6, 9])
    always = order == 9
    keeps = unlike_the_better(SOURCES[source](X), order, 0.999, most=12, always=always)
    np.testing.assert_array_equal(np.flatnonzero(~keeps), [4, 6])


def test_it_ends_with_as_many_as_are_wanted_and_a_limit_of_one_keeps_copies():
    X = table(2)
    X[:, 1] = X[:, 0]
    correlations = SOURCES["array"](X)
    assert (
        unlike_the_better(correlations, np.arange(12), 1.0, most=5).tolist()
        == [True] * 5 + [False] * 7
    )
