"""Histograms and the heat map, as numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.reporting.kept_values import FARTHEST, N_BARS, heat_map, histograms


def test_a_histogram_is_that_of_numpy():
    X = np.random.default_rng(0).standard_normal((300, 4)) * [1.0, 1e-30, 1e30, 5.0]
    for values, found in zip(X.T, histograms(X, np.arange(4)), strict=True):
        counts, _ = np.histogram(values, N_BARS)
        assert [int(height) for height in found.heights] == np.ceil(
            9 * counts / counts.max()
        ).tolist()
        assert (found.low, found.high) == (values.min(), values.max())  # copied


def test_a_bar_that_holds_anything_can_be_seen():
    X = np.append(np.zeros(10_000), 1.0)[:4900].reshape(-1, 1)
    X[-1] = 1.0
    assert histograms(X, np.array([0]))[0].heights == "9" + "0" * (N_BARS - 2) + "1"


def test_constants_and_extremes_have_a_histogram():
    X = np.array([[3.0, -1e308], [3.0, 1e308]])
    constant, extreme = histograms(X, np.array([0, 1]))
    assert constant.heights == "9"
    assert extreme.heights == "9" + "0" * (N_BARS - 2) + "9"


def test_sparse_tables_give_the_same():
    X = np.random.default_rng(0).random((40, 6)) * (np.random.default_rng(1).random((40, 6)) < 0.3)
    columns = np.array([4, 1])
    assert histograms(sp.csr_matrix(X), columns) == histograms(X, columns)  # the same computation
    dense, sparse = (heat_map(each, columns, None, None) for each in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.z, sparse.z)


def test_without_a_table_there_is_nothing_to_show():
    assert histograms(None, np.array([0])) == ()
    assert heat_map(None, np.array([0]), None, None) is None


def test_the_heat_map_holds_standard_deviations_of_samples_grouped_by_class():
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[3, 1] = 100.0
    classes = np.arange(30) % 3
    found = heat_map(X, np.array([2, 1]), classes, None)
    assert found.classes == ((0, 10), (1, 10), (2, 10))
    np.testing.assert_array_equal(classes[found.samples], np.repeat([0, 1, 2], 10))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(
        found.z, np.clip(z[found.samples][:, [2, 1]].T, -FARTHEST, FARTHEST), atol=1e-12
    )


def test_without_classes_samples_stand_along_a_component():
    X = np.random.default_rng(0).standard_normal((30, 5))
    found = heat_map(X, np.array([0]), None, X[:, 3])
    assert np.all(np.diff(X[found.samples, 3]) >= 0)
    assert found.classes == ()


@pytest.mark.parametrize("n_samples", [400, 401, 5000])
def test_at_most_four_hundred_samples_and_sixty_features_are_shown(n_samples):
    X = np.random.default_rng(0).standard_normal((n_samples, 70))
    found = heat_map(X, np.arange(70), None, None)
    assert found.z.shape == (60, 400)
    assert found.n_samples == n_samples
    assert len(set(found.samples.tolist())) == 400
