"""Correlations against NumPy, repeats of better features, and columns that are nearly the same."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.linalg.correlation import (
    COMPARED_ALL,
    ColumnCorrelations,
    FetchedCorrelations,
    PairwiseCorrelations,
    ScatterCorrelations,
    similar_columns,
    walk_ranking,
)
from keepers.linalg.scatter import column_moments


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
    keeps = walk_ranking(SOURCES[source](X), order, 0.999, most=12).keeps
    np.testing.assert_array_equal(np.flatnonzero(~keeps), [4, 6, 9])
    always = order == 9
    keeps = walk_ranking(SOURCES[source](X), order, 0.999, most=12, always=always).keeps
    np.testing.assert_array_equal(np.flatnonzero(~keeps), [4, 6])


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


def by_brute_force(X, least):
    """Every column with the first that it resembles and that resembles none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num(np.corrcoef(X.T))
    found = {}
    for first in range(X.shape[1]):
        for second in range(first + 1, X.shape[1]):
            alike = abs(r[first, second]) >= least
            if alike and first not in found and second not in found:
                found[second] = (first, r[first, second])
    return found


def plant(X, n_pairs, noise, rng):
    """Copies of columns with noise, in other units and with either sign; returns the pairs."""
    first, second = rng.permutation(X.shape[1])[: 2 * n_pairs].reshape(2, n_pairs)
    deviations = X[:, first].std(axis=0)
    copies = X[:, first] + noise * deviations * rng.standard_normal((len(X), n_pairs))
    X[:, second] = copies * rng.choice([-1.0, 1.0], n_pairs) * rng.uniform(0.01, 100, n_pairs)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def tables():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((80, 3))
    yield "noise", rng.standard_normal((80, 300))
    yield "factors", factor @ rng.standard_normal((3, 300)) + 0.1 * rng.standard_normal((80, 300))
    yield "far from zero", 1e7 + rng.standard_normal((80, 300))
    yield "counts", rng.poisson(0.3, (80, 300)).astype(float)
    yield "constant columns", rng.standard_normal((80, 300)) * (np.arange(300) % 5 > 0)


TABLES = dict(tables())


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("least", [0.9, 0.99])
def test_few_columns_are_all_compared(name, least):
    X = TABLES[name].copy()
    plant(X, 20, 0.05, np.random.default_rng(1))
    found, expected = similar_columns(X, least), by_brute_force(X, least)
    assert {column: first for column, (first, _) in found.items()} == {
        column: first for column, (first, _) in expected.items()
    }
    for column, (_, r) in found.items():
        assert r == pytest.approx(expected[column][1], abs=1e-9)


@pytest.mark.parametrize("n", [15, 300])
def test_of_many_columns_copies_are_found(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5000))
    assert X.shape[1] > COMPARED_ALL
    pairs = plant(X, 200, 0.0, rng)
    X[:, 4999] = X[:, 4998] = X[:, 17]
    found = similar_columns(X, 0.99)
    for first, second in pairs:
        if max(first, second) < 4998 and 17 not in (first, second):
            at, r = found[max(first, second)]
            assert at == min(first, second)
            assert abs(r) == pytest.approx(1.0)
    assert found[4998][0] == found[4999][0] <= 17


def test_extreme_values_and_constant_columns_are_no_trouble():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(30)
    X = np.column_stack([x * 1e200, np.full(30, 0.1), x * 1e-200, np.zeros(30), -x])
    assert {column: first for column, (first, _) in similar_columns(X, 0.99).items()} == {
        2: 0,
        4: 0,
    }
