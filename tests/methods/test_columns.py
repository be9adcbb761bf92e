"""ColumnSubset against least squares for every candidate; CUR against skmatter and SVDs."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers import CUR, ColumnSubset
from keepers.exceptions import DataWarning
from keepers.linalg.ordering import best_first
from keepers.methods.rivals import columns as module
from keepers.methods.rivals.columns import (
    Residual,
    best_shares,
    pick_columns,
)
from shared_material import fixture

SETS = ["mix", "digits", "blobs", "wide"]
METHODS = [ColumnSubset, CUR]


def what_is_left(X):
    return Residual(X - X.mean(axis=0))


def solve_column_subset(residual, n_picks):
    return pick_columns(residual, residual.gains, n_picks)


def solve_cur(residual, n_components, n_picks):
    return pick_columns(residual, partial(residual.leverages, n_components), n_picks)


def residual_form(X, n_picks):
    """ColumnSubset's order and what is left, from the residual matrix in extended precision."""
    A = np.asarray(X, dtype=np.longdouble)
    A = A - A.mean(axis=0)
    first = np.sum(A**2, axis=0)
    order, left = [], [1.0]
    for _ in range(n_picks):
        g = np.sum(A**2, axis=0)
        active = g > 1e-12 * first
        if not active.any():
            break
        gains = np.where(active, np.sum((A.T @ A) ** 2, axis=0) / np.where(active, g, 1), 0)
        order.append(int(np.argmax(gains >= gains.max() * (1 - 1e-10))))
        q = A[:, order[-1]] / np.sqrt(g[order[-1]])
        A = A - np.outer(q, q @ A)
        A = A - np.outer(q, q @ A)
        A[:, order[-1]] = 0
        left.append(float(np.sum(A**2) / np.sum(first)))
    return order, left


@pytest.fixture(params=["decomposed", "iterated"])
def way(request, monkeypatch):
    """All eigenvectors of AA', or some of them."""
    if request.param == "iterated":
        monkeypatch.setattr(module, "DECOMPOSED", 1)
    return request.param


# What is left of the columns.


@pytest.mark.parametrize("shape", [(15, 12), (12, 15)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_products_and_sums_are_those_of_the_residual_matrix(shape, count):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6) + 0.1
    A = X - X.mean(axis=0)
    A /= np.linalg.norm(A)
    residual = what_is_left(X)
    taken = [4, 1, 9][:count]
    for column in taken:
        residual.take_out(column)
    if taken:
        A = A - A[:, taken] @ np.linalg.lstsq(A[:, taken], A, rcond=None)[0]
    np.testing.assert_allclose(residual.A.T @ residual.A, A.T @ A, atol=1e-13)
    np.testing.assert_allclose(residual.squares, np.sum(A**2, axis=0), atol=1e-13)
    np.testing.assert_allclose(residual.gram, residual.A @ residual.A.T, atol=1e-13)
    assert residual.left == pytest.approx(np.sum(A**2))


@pytest.mark.parametrize("shape", [(300, 90), (90, 300)])
def test_the_best_shares_are_those_of_singular_values(shape):
    X = 2.0 + np.random.default_rng(1).standard_normal(shape)
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    for count in (10, 40):
        expected = np.cumsum(squares)[:count] / squares.sum()
        np.testing.assert_allclose(best_shares(what_is_left(X), count), expected, rtol=1e-10)


# Greedy column subset selection.


@pytest.mark.parametrize("name", SETS)
def test_order_and_residuals_are_those_of_least_squares_for_every_candidate(name):
    stored = fixture(f"cur_css_{name}")
    found = solve_column_subset(what_is_left(stored["X"]), 12)
    np.testing.assert_array_equal(found.order, stored["css_selected"])
    residuals = found.left[1:] * stored["css_total"]
    np.testing.assert_allclose(residuals, stored["css_residuals"], rtol=2.1e-13)
    assert np.all(np.diff(found.left) < 0)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1000), n=st.integers(3, 14), d=st.integers(2, 14))
def test_it_is_the_residual_form_on_any_small_table(seed, n, d):
    X = np.random.default_rng(seed).standard_normal((n, d))
    found = solve_column_subset(what_is_left(X), d)
    order, left = residual_form(X, d)
    assert found.order.tolist()[: len(order) - 1] == order[:-1]  # the last ones may all tie
    np.testing.assert_allclose(found.left[:-1], left[:-1], rtol=1e-9, atol=1e-14)


def spectra():
    """60 x 200, of which 1e-9 of the variance is left after 17 columns."""
    rng, at = np.random.default_rng(0), np.linspace(0, 1, 200)
    peaks = [np.exp(-((at - centre) ** 2) / 0.02) for centre in np.linspace(0, 1, 25)]
    return rng.random((60, 25)) @ np.array(peaks)


def decaying():
    rng = np.random.default_rng(1)
    scales = np.diag(10.0 ** -np.arange(0, 6, 0.1))
    return rng.standard_normal((80, 60)) @ scales @ rng.standard_normal((60, 60))


@pytest.mark.parametrize(("X", "n_picks"), [(spectra(), 19), (decaying(), 50)])
def test_digits_lost_by_subtraction_are_computed(X, n_picks):
    order, left = residual_form(X, n_picks)
    assert left[-1] < 1e-8
    found = solve_column_subset(what_is_left(X), n_picks)
    assert found.order.tolist() == order
    # Columns that are spanned to 1e-12 count as explained.
    np.testing.assert_allclose(found.left, left, rtol=1e-6, atol=1e-12)


# CUR.


# 100 times what another implementation reached; iterations end at residuals of 1e-12.
LEVERAGE_TOL = {"decomposed": 4.2e-13, "iterated": 1e-10}


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", SETS)
def test_orders_and_leverages_are_those_of_skmatter(name, k, way):
    stored, tol = fixture(f"cur_css_{name}"), LEVERAGE_TOL[way]
    found = solve_cur(what_is_left(stored["X"]), k, 12)
    np.testing.assert_array_equal(found.order, stored[f"cur_selected_k{k}_every1"])
    path = stored[f"cur_pi_path_k{k}_every1"]
    at_selection = path[np.arange(12), found.order]
    np.testing.assert_allclose(found.values[found.order], at_selection, rtol=0, atol=tol)
    final = np.where(np.isin(np.arange(len(found.values)), found.order), 0.0, found.values)
    np.testing.assert_allclose(final, stored[f"cur_pi_final_k{k}_every1"], rtol=0, atol=tol)
    if k == 1:
        residuals = found.left[1:] * stored["css_total"]
        np.testing.assert_allclose(residuals, stored["cur_residuals_k1_every1"], rtol=2.1e-13)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", SETS)
def test_leverages_of_the_whole_table_are_those_of_skmatter(name, k, way):
    stored, tol = fixture(f"cur_css_{name}"), LEVERAGE_TOL[way]
    found = what_is_left(stored["X"]).leverages(k)
    np.testing.assert_array_equal(
        best_first(found, found)[:12], stored[f"cur_selected_k{k}_every0"]
    )
    np.testing.assert_allclose(found, stored[f"cur_pi_first_k{k}_every0"], rtol=0, atol=tol)
    assert found.sum() == pytest.approx(k, abs=1e-12)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("k", [1, 2])
def test_equal_singular_values_share_their_vectors_so_that_rounding_does_not_choose(k):
    """Indicators of six groups of 30: all leverages are equal, and the first columns win."""
    X = np.kron(np.eye(6), np.ones((30, 1)))
    found = solve_cur(Residual(X), k, 6)
    assert found.order.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(Residual(X).leverages(k), k / 6, atol=1e-12)


def low_rank():
    """Integers of rank 3 in eight columns."""
    rng = np.random.default_rng(0)
    base = rng.integers(-3, 4, (12, 3)).astype(float)
    return np.hstack([base, base @ rng.integers(-2, 3, (3, 5))])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("k", [1, 3, 8])
def test_picks_end_where_nothing_is_left(k):
    found = solve_cur(what_is_left(low_rank()), k, 8)
    assert len(found.order) == 3
    assert found.left[-1] == 0.0
    rest = np.setdiff1d(np.arange(8), found.order)
    # Nothing was computed for them: exactly 0.
    np.testing.assert_array_equal(found.scores[rest], 0.0)


@pytest.mark.usefixtures("way")
def test_columns_far_smaller_than_rounding_of_the_largest_are_picked_in_their_turn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) * 10.0 ** np.array([0, -9, -18, -27, -36, -45])
    for found in (solve_cur(what_is_left(X), 1, 6), solve_column_subset(what_is_left(X), 6)):
        assert found.order.tolist() == [0, 1, 2, 3, 4, 5]
        assert found.left[-2] == pytest.approx(1e-90, rel=10)


# Both.


@pytest.fixture(params=["ColumnSubset", "CUR"])
def solve(request):
    if request.param == "CUR":
        return lambda X, n_picks: solve_cur(X, 1, n_picks)
    return solve_column_subset


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("factor", [1.0, -2.0, 1e-30])
def test_a_copy_of_a_pick_is_never_picked(factor, solve):
    X = np.random.default_rng(0).standard_normal((40, 9))
    found = solve(what_is_left(np.hstack([X, factor * X])), 18)
    assert len(found.order) == 9
    assert len(set(found.order % 9)) == 9
    rest = np.setdiff1d(np.arange(18), found.order)
    # Nothing was computed for them: exactly 0.
    np.testing.assert_array_equal(found.scores[rest], 0.0)
    assert found.left[-1] == 0.0


def test_picks_are_nested_and_one_more_than_was_picked_is_known(solve):
    X = fixture("cur_css_digits")["X"]
    whole = solve(what_is_left(X), 20)
    assert np.all(np.diff(whole.scores[whole.order]) < 0)
    assert whole.scores[whole.order[0]] == 1.0
    for k in (1, 5, 12):
        part = solve(what_is_left(X), k)
        np.testing.assert_array_equal(part.order, whole.order[:k])
        assert np.argsort(-part.scores)[k] == whole.order[k]


# The estimators.


@pytest.mark.parametrize("name", SETS)
def test_fits_have_the_orders_and_shares_of_the_references(name):
    stored = fixture(f"cur_css_{name}")
    best = 1.0 - stored["css_pca_residuals"] / stored["css_total"]
    for selector, order, residuals in (
        (ColumnSubset(12), "css_selected", "css_residuals"),
        (CUR(12), "cur_selected_k1_every1", "cur_residuals_k1_every1"),
    ):
        selector.fit(stored["X"])
        np.testing.assert_array_equal(selector.top().indices, stored[order])
        explained = 1.0 - stored[residuals] / stored["css_total"]
        np.testing.assert_allclose(selector.explained_share_, explained, rtol=1e-10)
        np.testing.assert_allclose(selector.best_share_, best, rtol=1e-10)
        assert np.all(selector.explained_share_ <= selector.best_share_)
        again = type(selector)(12).fit(sp.csr_array(stored["X"]))
        np.testing.assert_array_equal(again.top().indices, stored[order])
    uncentred = CUR(12).fit(stored["X_centred"])  # skmatter does not centre
    np.testing.assert_array_equal(uncentred.top().indices, stored["cur_selected_k1_every1"])


@pytest.mark.parametrize("method", METHODS)
def test_columns_that_the_picks_determine_are_ranked_by_variance_with_a_warning(method):
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = np.column_stack([X, 0.1 * X[:, 0], 0.2 * X[:, 1], 0.01 * X[:, 2]])
    with pytest.warns(DataWarning, match="6 features should be kept, but 3"):
        selector = method(6).fit(X)
    assert selector.n_picked_ == 3
    assert selector.explained_share_[-1] == 1.0
    assert selector.top(6).indices[3:].tolist() == [4, 3, 5]
