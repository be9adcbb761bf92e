"""Correlations among the best features, against NumPy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.reporting.selection.redundancy import (
    correlation_matrix,
    nearest_neighbours,
    redundancy_of,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12))
    X[:, 3] = X[:, 0] + 0.3 * rng.standard_normal(40)
    X[:, 7] = -2 * X[:, 5] + 0.1 * rng.standard_normal(40)
    X[np.abs(X) < 0.3] = 0
    return X


def by_numpy(X, columns):
    """The neighbour and its r, from np.corrcoef."""
    r = np.corrcoef(X[:, columns], rowvar=False)
    strength = np.abs(r)
    np.fill_diagonal(strength, -1)
    position = strength.argmax(axis=1)
    return np.asarray(columns)[position], r[np.arange(len(columns)), position]


@pytest.mark.parametrize("storage", [np.asarray, pd.DataFrame, sp.csr_matrix, sp.csc_matrix])
def test_the_neighbour_is_the_one_numpy_finds(table, storage):
    order = [5, 0, 7, 3, 11, 2]
    index, r = nearest_neighbours(storage(table), order, depth=5)
    expected_index, expected_r = by_numpy(table, order[:5])
    np.testing.assert_array_equal(index, expected_index)
    np.testing.assert_allclose(r, expected_r, atol=1e-12)


def test_the_sign_of_the_correlation_is_kept(table):
    index, r = nearest_neighbours(table, range(12), depth=12)
    assert index[5] == 7
    assert r[5] < -0.9


def test_a_large_offset_does_not_spoil_the_correlation(table):
    shifted = table + 1e8
    np.testing.assert_allclose(
        correlation_matrix(shifted, np.arange(12)), np.corrcoef(table, rowvar=False), atol=1e-6
    )


def test_a_constant_column_has_no_neighbour_and_is_nobodys(table):
    table[:, 2] = 3.0
    index, r = nearest_neighbours(table, range(12), depth=12)
    assert index[2] == -1
    assert np.isnan(r[2])
    assert 2 not in index[[0, 1, *range(3, 12)]]


def test_a_single_feature_has_no_neighbour(table):
    index, r = nearest_neighbours(table, [4], depth=10)
    assert index.tolist() == [-1]
    assert np.isnan(r).all()


def test_exact_copies_are_told_apart_by_rank():
    column = np.random.default_rng(0).standard_normal(30)
    X = np.column_stack([column, 1e-3 * column, 7 * column, -column])
    assert nearest_neighbours(X, [0, 1, 2, 3], depth=4)[0].tolist() == [1, 0, 0, 0]


def test_the_summary_of_redundancy_agrees_with_numpy(table):
    r = np.corrcoef(table, rowvar=False)
    found = redundancy_of(correlation_matrix(table, np.arange(12)))
    pairs = np.abs(r[np.triu_indices(12, 1)])
    assert found.median == pytest.approx(np.median(pairs))
    assert found.closest == (5, 7)
    assert found.closest_r == pytest.approx(r[5, 7])
    assert found.n_near_copies == np.sum(np.sort(np.abs(r), axis=1)[:, -2] > 0.9)
    np.testing.assert_allclose(found.correlation, r[np.ix_(found.shown, found.shown)], atol=1e-12)


def test_similar_features_stand_side_by_side():
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((60, 3))
    group = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    X = causes[:, group] + 0.1 * rng.standard_normal((60, 9))
    found = redundancy_of(correlation_matrix(X, np.arange(9)))
    assert np.count_nonzero(np.diff(group[found.shown])) == 2


def test_one_varying_feature_has_no_redundancy(table):
    table[:, 1:] = 0
    assert redundancy_of(correlation_matrix(table, np.arange(12))) is None


def test_the_map_stops_at_sixty():
    X = np.random.default_rng(0).standard_normal((30, 90))
    found = redundancy_of(correlation_matrix(X, np.arange(90)))
    assert found.n_compared == 90
    assert sorted(found.shown) == list(range(60))
