"""Column moments keep the digits that E[x^2] - E[x]^2 throws away."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.scatter import column_moments, row_blocks


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
def test_moments_agree_with_extended_precision(offset, container):
    X = np.random.default_rng(0).standard_normal((500, 7)) + offset
    wide = X.astype(np.longdouble)
    squares = ((wide - wide.mean(axis=0)) ** 2).sum(axis=0).astype(float)
    moments = column_moments(container(X))
    np.testing.assert_allclose(
        moments.mean, wide.mean(axis=0).astype(float), rtol=1e-15, atol=1e-15
    )
    np.testing.assert_allclose(moments.sum_of_squares, squares, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_of_sparse_tables_are_those_of_numpy(dtype, container, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 12)) * (rng.random((30, 12)) < 0.3)).astype(dtype)
    X[:, 3] = X[5] = 0.0  # a column and a row without entries
    X[11] = 1.0
    found = column_moments(container(X))
    np.testing.assert_allclose(found.mean, X.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(found.variance, X.var(axis=0, dtype=np.float64), rtol=1e-12)


def test_implicit_zeros_count():
    X = sp.csc_array(np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 4.0]]))
    moments = column_moments(X)
    np.testing.assert_allclose(moments.mean, [1.0, 2.0])
    np.testing.assert_allclose(moments.sum_of_squares, [6.0, 8.0])


def test_a_column_is_constant_if_its_spread_is_rounding_noise():
    varying = np.array([0.1, 0.2, 0.3])
    X = np.column_stack([np.full(3, 0.1), np.zeros(3), varying, 1e9 + varying, np.full(3, 1e9 / 3)])
    assert column_moments(X).constant.tolist() == [True, True, False, False, True]


def test_blocks_cover_every_row_once():
    rows = np.concatenate([np.arange(100_000)[block] for block in row_blocks(100_000, 500)])
    np.testing.assert_array_equal(rows, np.arange(100_000))
