"""Columns without their units, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import rankdata

from keepers.linalg import unit_free
from keepers.linalg.moments import column_moments
from keepers.linalg.unit_free import UnitFreeColumns, mean_ranks


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.standard_normal((40, 30)) * np.exp(rng.standard_normal(30))
    X[:, 10:20] = rng.integers(0, 3, (40, 10))
    X[:, 20:] = rng.standard_normal((40, 10)) * (rng.random((40, 10)) < 0.2)
    X[0] += 1.0
    return X


@pytest.mark.parametrize(
    "storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array]
)
@pytest.mark.parametrize("most_held", [0, 1 << 25])
def test_products_of_standardised_columns_are_correlations(X, storage, most_held, monkeypatch):
    monkeypatch.setattr(unit_free, "_MOST_HELD", most_held)
    columns = UnitFreeColumns(storage(X), column_moments(X))
    some = np.array([3, 0, 15, 29])
    unit = columns.standardised(some)
    np.testing.assert_allclose(unit @ unit.T, np.corrcoef(X[:, some].T), atol=1e-9)
    ranked = columns.ranked(some)
    spearman = np.corrcoef(rankdata(X[:, some], axis=0).T)
    np.testing.assert_allclose(ranked @ ranked.T, spearman, atol=1e-9)
    np.testing.assert_allclose(ranked.sum(axis=1), 0.0, atol=1e-9)


def test_blocks_hold_every_column_once(X, monkeypatch):
    monkeypatch.setattr(unit_free, "_VALUES_AT_ONCE", 7 * 40)
    columns = UnitFreeColumns(X, column_moments(X))
    parts = list(columns.blocks(np.arange(30)))
    assert max(len(part) for part in parts) == 7
    assert np.concatenate(parts).tolist() == list(range(30))


@pytest.mark.parametrize("levels", [2, 5, 10**9])
def test_ranks_are_those_of_scipy(levels):
    rows = np.random.default_rng(levels).integers(0, levels, (20, 33)).astype(float)
    # Exactly: halves of whole numbers.
    np.testing.assert_array_equal(mean_ranks(rows), rankdata(rows, axis=1) - 1.0)


def test_rounding_does_not_break_ties():
    row = np.array([[0.1 + 0.2, 0.5, 0.3, 0.3 * (1 + 1e-15), -4.0]])
    assert mean_ranks(row).tolist() == [[2.0, 4.0, 2.0, 2.0, 0.0]]


def test_by_size_an_outlier_does_not_make_the_others_equal():
    row = np.array([[0.1 + 0.2, 0.3, 1e15, 0.5, -0.1]])  # 0.1 + 0.2 is not 0.3 in binary
    assert mean_ranks(row, by_size=True).tolist() == [[1.5, 1.5, 4.0, 3.0, 0.0]]
    assert mean_ranks(row).tolist() == [[1.5, 1.5, 4.0, 1.5, 1.5]]
