"""How a table becomes columns to pick from."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataError
from keepers.linalg.moments import column_moments
from keepers.selectors.fitted_table import table_of_moments
from keepers.selectors.picked_columns import read_columns


def selector(center=True):
    return SimpleNamespace(center=center, n_features_to_select_=3)


def table(X):
    return table_of_moments(X, column_moments(X))


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("center", [True, False])
def test_columns_have_the_inner_products_of_the_table(shape, storage, center):
    X = np.random.default_rng(0).standard_normal(shape) + 2.0
    found = read_columns(selector(center), table(storage(X)))
    expected = X - X.mean(axis=0) if center else X
    np.testing.assert_allclose(found.dense(), expected.T @ expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.moments.sum_of_squares, np.sum(expected**2, axis=0))


def test_what_does_not_fit_into_memory_is_refused_for_every_storage(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1e4)
    X = np.random.default_rng(0).standard_normal((30, 8))
    for storage in (np.asarray, sp.csr_array):
        with pytest.raises(DataError, match="3 directions of"):
            read_columns(selector(), table(storage(X)))
