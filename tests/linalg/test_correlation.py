"""Correlations from every source against NumPy's, and which features repeat a better one."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.linalg.correlation import (
    ColumnCorrelations,
    FetchedCorrelations,
    PairwiseCorrelations,
    ScatterCorrelations,
    UnitColumnCorrelations,
    unlike_the_better,
    walk_ranking,
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
    "unit columns": lambda X: UnitColumnCorrelations.of(X, column_moments(X)),
    "pairwise": lambda X: PairwiseCorrelations.of(X, fewest=3),
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


@pytest.mark.parametrize("source", SOURCES)
def test_a_walk_names_the_best_of_the_kept_features_that_a_skipped_one_is_most_like(source):
    X = table(3)
    X[:, 4], X[:, 6], X[:, 9] = 2.0 * X[:, 0], -X[:, 1], X[:, 0]
    order = np.array([9, 4, 1, 2, 0, 6, 3, 5, 7, 8, 10, 11])
    walk = walk_ranking(SOURCES[source](X), order, 0.999, most=12)
    skipped = np.flatnonzero(~walk.keeps)
    assert order[skipped].tolist() == [4, 0, 6]
    assert walk.instead[skipped].tolist() == [9, 9, 1]
    np.testing.assert_allclose(walk.r[skipped], [1.0, 1.0, -1.0], atol=1e-9)
    assert np.all(walk.instead[walk.keeps] == -1)
    assert np.isnan(walk.r[walk.keeps]).all()


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("gaps", [0.05, 0.4, 0.8])
def test_correlations_over_common_rows_are_those_of_pandas(gaps, offset):
    rng = np.random.default_rng(int(10 * gaps))
    X = table(4, n_samples=30) + offset
    X[rng.uniform(size=X.shape) < gaps] = np.nan
    X[0, 0] = 1e7  # an outlier, which some pairs do not have in common
    X[:, 1] = np.where(rng.uniform(size=30) < 0.5, np.nan, 3.0)
    columns = np.arange(12)
    found = PairwiseCorrelations.of(X, fewest=5).between(columns, columns)
    expected = pd.DataFrame(X).corr(min_periods=5).fillna(0.0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_many_columns_are_compared_in_parts():
    X = np.random.default_rng(0).standard_normal((4, 5000))
    columns = np.arange(5000)
    expected = np.corrcoef(X.T[:2], X.T)[:2, 2:]
    for name in ("unit columns", "pairwise"):
        found = SOURCES[name](X).between(np.array([0, 1]), columns)
        np.testing.assert_allclose(found, expected, atol=1e-12)
