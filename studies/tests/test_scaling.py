"""Scalings of studies agree with scikit-learn, on arrays and on sparse matrices."""

import numpy as np
import pytest
import scipy.sparse as sp
from keepers_studies.scaling import SCALINGS, scale_data
from sklearn.preprocessing import MinMaxScaler, StandardScaler, minmax_scale, normalize

from keepers.exceptions import DataError


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
    "unit-features": lambda X: normalize(X, axis=0),
    "standardize-samples": lambda X: StandardScaler().fit_transform(X.T).T,
    "standardize-features": lambda X: StandardScaler().fit_transform(X),
    "min-max-features": lambda X: MinMaxScaler().fit_transform(X),
    "0-255": lambda X: minmax_scale(X.ravel(), (0, 255)).reshape(X.shape),
}


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_agrees_with_scikit_learn(X, scaling, order, dtype):
    given = np.array(X, dtype=dtype, order=order)
    before = given.copy()
    scaled = scale_data(given, scaling)
    assert scaled.dtype == dtype
    np.testing.assert_allclose(
        scaled, EXPECTED[scaling](X), rtol=1e-5, atol=1e-4 if scaling == "0-255" else 1e-6
    )
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("scaling", ["raw", "unit-samples", "unit-features"])
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_agrees_with_scikit_learn_and_stays_sparse(X, scaling, container):
    given = container(X)
    scaled = scale_data(given, scaling)
    assert scaled.format == given.format
    assert scaled.nnz == given.nnz
    np.testing.assert_allclose(scaled.toarray(), EXPECTED[scaling](X), atol=1e-14)
    np.testing.assert_array_equal(given.toarray(), X)


@pytest.mark.parametrize(
    "scaling", ["standardize-features", "standardize-samples", "min-max-features", "0-255"]
)
def test_what_would_fill_sparse_data_is_refused_with_a_way_out(X, scaling):
    with pytest.raises(DataError, match="fills a sparse matrix"):
        scale_data(sp.csr_matrix(X), scaling)


def test_sparse_counts_become_grey_levels_and_stay_sparse(X):
    scaled = scale_data(sp.csr_matrix(np.abs(X)), "0-255")
    np.testing.assert_allclose(scaled.toarray(), 255 * np.abs(X) / np.abs(X).max())
    assert scaled.max() == pytest.approx(255)
    assert scaled.nnz == np.count_nonzero(X)
