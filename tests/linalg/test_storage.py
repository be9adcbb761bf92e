"""Products of sparse matrices against those of arrays, and stacked rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg import scatter


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < 0.1)
    table[7] = 0.0  # a row without entries
    return sp.csr_array(table)


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["by dense rows", "by sparse rows"])
def test_the_gram_is_that_of_the_dense_matrix(X, share, monkeypatch):
    monkeypatch.setattr(scatter, "DENSE_SHARE", share)
    monkeypatch.setattr(scatter, "_DENSE_ENTRIES", 60)
    dense = X.toarray()
    np.testing.assert_allclose(scatter.gram(X), dense.T @ dense, atol=1e-13)


def test_stacked_rows_are_as_precise_as_the_most_precise_piece():
    single, double = np.float32([[0.1]]), np.float64([[0.1]])
    stacked = scatter.stack_rows([single, double])
    np.testing.assert_array_equal(stacked, [[np.float64(np.float32(0.1))], [0.1]])  # copied


def test_stacked_rows_are_sparse_if_a_piece_is():
    dense = np.arange(6.0).reshape(2, 3)
    stacked = scatter.stack_rows([dense, sp.csr_array(dense)])
    assert stacked.format == "csr"
    np.testing.assert_array_equal(stacked.toarray(), np.vstack([dense, dense]))  # copied
