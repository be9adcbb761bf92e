"""Scalings agree with scikit-learn, on arrays and on sparse matrices, and change nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler, normalize

from keepers.datasets import SCALINGS, scale_samples
from keepers.exceptions import DataError, ParameterError


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.6)
    X[3] = 0
    X[:, 5] = 0
    return X


EXPECTED = {
    "raw": lambda X: X,
    "unit-samples": lambda X: normalize(X, axis=1),
    "standardize-features": lambda X: StandardScaler().fit_transform(X),
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_agrees_with_scikit_learn(X, scaling, order, dtype):
    given = np.array(X, dtype=dtype, order=order)
    before = given.copy()
    scaled = scale_samples(given, scaling)
    assert scaled.dtype == dtype
    np.testing.assert_allclose(scaled, EXPECTED[scaling](X), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("scaling", ["raw", "unit-samples"])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_agrees_with_scikit_learn_and_stays_sparse(X, scaling, container):
    given = container(X)
    scaled = scale_samples(given, scaling)
    assert scaled.format == given.format
    assert scaled.nnz == given.nnz
    np.testing.assert_allclose(scaled.toarray(), EXPECTED[scaling](X), atol=1e-14)
    np.testing.assert_array_equal(given.toarray(), X)


def test_norms_do_not_overflow():
    X = np.array([[3e200, 4e200], [3e-200, 4e-200]])
    expected = [[0.6, 0.8], [0.6, 0.8]]
    np.testing.assert_allclose(scale_samples(X, "unit-samples"), expected)
    np.testing.assert_allclose(scale_samples(sp.csr_matrix(X), "unit-samples").toarray(), expected)


def test_what_would_fill_sparse_data_is_refused_with_a_way_out(X):
    with pytest.raises(DataError, match=r"(?s)fills.*standardize-features.*toarray"):
        scale_samples(sp.csr_matrix(X), "standardize-features")


def test_an_unknown_scaling_is_met_with_the_known_ones(X):
    with pytest.raises(ParameterError, match="Did you mean 'unit-samples'"):
        scale_samples(X, "unit_samples")
