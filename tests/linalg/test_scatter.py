"""Storage, moments and scatter of columns: every form is the same, and no digit is lost."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg import scatter
from keepers.linalg.scatter import (
    DenseScatter,
    FactoredScatter,
    as_factored,
    as_scatter,
    column_moments,
    forming_pays,
    row_blocks,
)


def textbook_scatter(X):
    """N times NumPy's covariance, in extended precision."""
    wide = np.asarray(X, dtype=np.longdouble)
    centred = wide - wide.mean(axis=0)
    return (centred.T @ centred).astype(np.float64)


def storages(X):
    moments = column_moments(X)
    csr, csc = sp.csr_array(X), sp.csc_array(X)
    return {
        "factored": FactoredScatter(X, moments),
        "dense": DenseScatter(FactoredScatter(X, moments).dense()),
        "csr": as_scatter(csr, column_moments(csr), 3),
        "csc": as_scatter(csc, column_moments(csc), 3),
        "csr_matrix": as_scatter(sp.csr_matrix(X), column_moments(sp.csr_matrix(X)), 3),
        "fortran": as_scatter(np.asfortranarray(X), moments, 3),
    }


@pytest.fixture
def sparse_like():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 25)) * (rng.random((40, 25)) < 0.3)


@pytest.mark.parametrize("name", ["factored", "dense", "csr", "csc", "csr_matrix", "fortran"])
def test_products_diagonal_and_dense_form_agree_with_the_textbook(sparse_like, name):
    S = textbook_scatter(sparse_like)
    V = np.random.default_rng(1).standard_normal((25, 4))
    operator = storages(sparse_like)[name]
    assert operator.size == 25
    np.testing.assert_allclose(operator.matmat(V), S @ V, atol=1e-12)
    np.testing.assert_allclose(operator.diagonal(), np.diag(S), atol=1e-12)
    np.testing.assert_allclose(operator.dense(), S, atol=1e-12)


@pytest.mark.parametrize("name", ["factored", "dense", "csr", "csc"])
def test_restriction_is_the_principal_submatrix(sparse_like, name):
    rows = np.array([3, 7, 8, 20])
    S = textbook_scatter(sparse_like)[np.ix_(rows, rows)]
    operator = storages(sparse_like)[name].restrict(rows)
    np.testing.assert_allclose(operator.matmat(np.eye(4)), S, atol=1e-12)


@pytest.mark.parametrize("name", ["factored", "dense", "csr", "csc"])
@pytest.mark.parametrize("shape", [(40, 25), (12, 25)])
def test_the_small_side_has_the_eigenpairs_of_s(sparse_like, name, shape):
    X = sparse_like[: shape[0]]
    S = textbook_scatter(X)
    side = storages(X)[name].small_side()
    values, vectors = np.linalg.eigh(side.matrix)
    lifted = side.lift(vectors[:, -3:], values[-3:])
    np.testing.assert_allclose(values[-3:], np.linalg.eigvalsh(S)[-3:], rtol=1e-10)
    np.testing.assert_allclose(S @ lifted, lifted * values[-3:], atol=1e-9)
    np.testing.assert_allclose(lifted.T @ lifted, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("offset", [1e3, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("shape", [(200, 12), (20, 300)])
def test_a_large_mean_costs_no_digit(offset, container, shape):
    rng = np.random.default_rng(2)
    signal = rng.standard_normal(shape)
    X = signal + offset
    exact = textbook_scatter(X)
    V = rng.standard_normal((shape[1], 2))
    stored = container(X)
    moments = column_moments(stored)
    product = as_scatter(stored, moments, 2).matmat(V)
    # X itself holds its numbers to one part in 2^53 of the offset; nothing more may be lost.
    tolerance = 100 * offset * np.finfo(float).eps
    np.testing.assert_allclose(product, exact @ V, rtol=0, atol=tolerance * np.abs(exact @ V).max())
    np.testing.assert_allclose(moments.sum_of_squares, np.diag(exact), rtol=tolerance)


@pytest.mark.parametrize(
    ("n", "d", "m", "expected"),
    [
        (2600, 2200, 99, True),
        (10_000, 500, 5, True),
        (83, 2308, 3, False),
        (500, 450_000, 10, False),
    ],
)
def test_s_is_formed_only_where_that_is_cheaper(n, d, m, expected):
    assert forming_pays(n, d, m) is expected


@pytest.mark.parametrize("shape", [(40, 25), (12, 25), (3, 40)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
def test_a_factor_has_the_products_of_the_centred_table(shape, storage):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.4) + 0.2
    values = storage(X)
    factor = as_factored(values, column_moments(values))
    centred = X - X.mean(axis=0)
    V, P = rng.standard_normal((shape[1], 3)), centred @ rng.standard_normal((shape[1], 2))
    assert factor.n_rows == shape[0]
    np.testing.assert_allclose(factor.times(V), centred @ V, atol=1e-12)
    np.testing.assert_allclose(factor.back(P), centred.T @ P, atol=1e-12)
    np.testing.assert_allclose(factor.sample_gram(), centred @ centred.T, atol=1e-12)


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


def test_a_column_is_constant_if_its_spread_is_rounding_noise():
    varying = np.array([0.1, 0.2, 0.3])
    X = np.column_stack([np.full(3, 0.1), np.zeros(3), varying, 1e9 + varying, np.full(3, 1e9 / 3)])
    assert column_moments(X).constant.tolist() == [True, True, False, False, True]


def test_blocks_cover_every_row_once():
    rows = np.concatenate([np.arange(100_000)[block] for block in row_blocks(100_000, 500)])
    np.testing.assert_array_equal(rows, np.arange(100_000))


@pytest.fixture
def with_empty_row():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < 0.1)
    table[7] = 0.0  # a row without entries
    return sp.csr_array(table)


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["by dense rows", "by sparse rows"])
def test_the_gram_is_that_of_the_dense_matrix(with_empty_row, share, monkeypatch):
    monkeypatch.setattr(scatter, "DENSE_SHARE", share)
    monkeypatch.setattr(scatter, "_DENSE_ENTRIES", 60)
    dense = with_empty_row.toarray()
    np.testing.assert_allclose(scatter.gram(with_empty_row), dense.T @ dense, atol=1e-13)


def test_stacked_rows_are_as_precise_as_the_most_precise_piece():
    single, double = np.float32([[0.1]]), np.float64([[0.1]])
    stacked = scatter.stack_rows([single, double])
    np.testing.assert_array_equal(stacked, [[np.float64(np.float32(0.1))], [0.1]])  # copied


def test_stacked_rows_are_sparse_if_a_piece_is():
    dense = np.arange(6.0).reshape(2, 3)
    stacked = scatter.stack_rows([dense, sp.csr_array(dense)])
    assert stacked.format == "csr"
    np.testing.assert_array_equal(stacked.toarray(), np.vstack([dense, dense]))  # copied
