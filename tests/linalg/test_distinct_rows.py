"""An order of the rows that follows from their values, without copies."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.ordering import distinct_rows
from keepers.linalg.scatter import column_moments


def in_order(X, **more):
    return X[distinct_rows(X, column_moments(X), **more)]


def tables():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((60, 25))
    yes_or_no = (rng.random((60, 25)) < np.linspace(0.1, 0.6, 25)).astype(float)
    return {"normal": normal, "yes or no": yes_or_no, "ranks": np.argsort(normal, axis=0) * 1.0}


@pytest.mark.parametrize("name", tables())
def test_the_order_does_not_depend_on_rows_signs_units_or_the_order_of_columns(name):
    X, rng = tables()[name], np.random.default_rng(1)
    expected = in_order(X)
    assert sorted(expected.tolist()) == sorted(X.tolist())
    np.testing.assert_array_equal(in_order(X[rng.permutation(60)]), expected)
    flipped = X * np.where(np.arange(25) % 2, -1.0, 1.0)
    np.testing.assert_array_equal(np.abs(in_order(flipped)), np.abs(expected))
    units = 2.0 ** rng.integers(-9, 9, 25)
    np.testing.assert_array_equal(in_order(X * units), expected * units)
    columns = rng.permutation(25)
    np.testing.assert_array_equal(in_order(X[:, columns]), expected[:, columns])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_copies_of_rows_are_left_out(storage):
    X = np.random.default_rng(2).poisson(0.5, (40, 30)).astype(float)
    copied = np.concatenate([X, X[5:17], -0.0 * X[:1] + X[:1]])
    rows = distinct_rows(storage(copied), column_moments(storage(copied)))
    expected = np.unique(copied, axis=0)
    np.testing.assert_array_equal(np.unique(copied[rows], axis=0), expected)
    assert len(rows) == len(expected)


def test_rows_that_are_equal_by_chance_stay():
    X = np.random.default_rng(3).integers(0, 2, (200, 4)).astype(float)  # 16 different rows
    assert len(distinct_rows(X, column_moments(X))) == 200


def test_filled_values_do_not_count():
    X = np.random.default_rng(4).standard_normal((30, 8))
    observed = np.ones((30, 8), dtype=bool)
    observed[[3, 11], 2] = False
    X[11] = X[3]
    X[11, 2] += 1e-3  # filled with another value
    rows = distinct_rows(X, column_moments(X), observed)
    assert len(rows) == 29
    assert 11 not in rows
