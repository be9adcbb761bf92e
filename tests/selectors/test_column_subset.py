"""What the selector adds to greedy column subsets."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import ColumnSubset, datasets
from keepers.exceptions import DataError, DataWarning, ParameterError
from shared_material import fixture


def residual_share(X, kept):
    centred = X - X.mean(axis=0)
    left = centred - centred[:, kept] @ np.linalg.lstsq(centred[:, kept], centred, rcond=None)[0]
    return np.sum(left**2) / np.sum(centred**2)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_a_fit_has_the_order_of_least_squares_for_every_candidate(name):
    stored = fixture(f"cur_css_{name}")
    selector = ColumnSubset(12).fit(stored["X"])
    np.testing.assert_array_equal(selector.top().indices, stored["css_selected"])
    explained = 1.0 - stored["css_residuals"] / stored["css_total"]
    np.testing.assert_allclose(selector.explained_share_, explained, rtol=1e-10)
    best = 1.0 - stored["css_pca_residuals"] / stored["css_total"]
    np.testing.assert_allclose(selector.best_share_, best, rtol=1e-10)


def test_the_kept_columns_explain_what_is_told():
    X = datasets.load("srbct").X
    selector = ColumnSubset(15).fit(X)
    left = residual_share(X, np.flatnonzero(selector.support_))
    assert selector.explained_share_[-1] == pytest.approx(1.0 - left, rel=1e-10)
    assert selector.gains_[selector.support_].sum() == pytest.approx(1.0 - left, rel=1e-10)


def test_the_first_picks_are_those_of_a_fit_for_fewer_and_the_next_one_is_known():
    X = datasets.load("srbct").X
    few, many = ColumnSubset(5).fit(X), ColumnSubset(20).fit(X)
    np.testing.assert_array_equal(few.top(6).indices, many.top(6).indices)


def test_without_centring_the_values_themselves_are_reconstructed():
    X = np.zeros((4, 3))
    X[0] = [3.0, 2.0, 1.0]
    X[1:] = np.diag([0.5, 1.0, 2.0])
    selector = ColumnSubset(3, center=False).fit(X)
    squares = np.sum(X**2)
    best = max(range(3), key=lambda j: np.sum((X.T @ X[:, j]) ** 2) / np.sum(X[:, j] ** 2))
    assert selector.top(1).indices[0] == best
    singular = np.linalg.svd(X, compute_uv=False) ** 2
    np.testing.assert_allclose(selector.best_share_, np.cumsum(singular) / squares)


@pytest.mark.parametrize("center", [True, False])
def test_sparse_and_dense_tables_give_the_same_shares(center):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 70)) * (rng.random((50, 70)) < 0.2) + 0.0
    expected = ColumnSubset(10, center=center).fit(X)
    for storage in (sp.csr_array, sp.csc_array):
        found = ColumnSubset(10, center=center).fit(storage(X))
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.explained_share_, expected.explained_share_, rtol=1e-12)
        np.testing.assert_allclose(found.best_share_, expected.best_share_, rtol=1e-12)


def test_columns_that_the_picks_determine_are_ranked_by_variance_with_a_warning():
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = np.column_stack([X, 0.1 * X[:, 0], 0.2 * X[:, 1], 0.01 * X[:, 2]])
    with pytest.warns(DataWarning, match="6 features are wanted, but 3 explain all others"):
        selector = ColumnSubset(6).fit(X)
    assert selector.n_picked_ == 3
    assert selector.explained_share_[-1] == 1.0
    variances = X.var(axis=0)
    last = selector.top(6).indices[3:]
    np.testing.assert_array_equal(variances[last], np.sort(variances[last])[::-1])
    # Nothing was computed for them.
    np.testing.assert_array_equal(selector.scores_[last], 0.0)


def test_as_many_features_as_there_are_dimensions_give_no_warning():
    X = np.random.default_rng(0).standard_normal((30, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ColumnSubset(4).fit(X).n_picked_ == 4


def test_a_table_in_single_precision_is_worked_on_in_double():
    X = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)
    single, double = ColumnSubset(10).fit(X), ColumnSubset(10).fit(X.astype(np.float64))
    np.testing.assert_array_equal(single.ranking_, double.ranking_)


def test_a_bad_setting_is_refused_in_one_sentence():
    with pytest.raises(ParameterError, match="center must be True or False; got 'no'"):
        ColumnSubset(center="no").fit(np.eye(4))


def test_memory_is_said_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1e5)
    with pytest.raises(DataError, match=r"ColumnSubset needs about .* GB for 20 directions of 60"):
        ColumnSubset(20).fit(np.random.default_rng(0).standard_normal((60, 100)))
