"""Greedy column subsets against least squares for every candidate, in every storage."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.scatter import as_short_factor
from keepers.solvers import column_subset as module
from keepers.solvers.column_subset import solve_column_subset
from keepers.solvers.picked_columns import best_shares
from shared_material import fixture

STORAGES = {"array": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}
SETS = ["mix", "digits", "blobs", "wide"]


def columns(X, storage="array"):
    values = STORAGES[storage](X)
    return as_short_factor(values, column_moments(values))


def uncentred(X):
    X = np.asarray(X, dtype=float)
    return as_short_factor(X, ColumnMoments(len(X), np.zeros(X.shape[1]), np.sum(X**2, axis=0)))


def residual_form(X, n_picks):
    """The order and what is left, from the residual matrix itself in extended precision."""
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


@pytest.fixture(params=["rows are few", "by products"])
def way(request, monkeypatch):
    """With XX' formed, and without."""
    if request.param == "by products":
        monkeypatch.setattr(module, "SMALL_SIDE", 1)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", SETS)
def test_order_and_residuals_are_those_of_least_squares_for_every_candidate(name, storage):
    stored = fixture(f"cur_css_{name}")
    found = solve_column_subset(columns(stored["X"], storage), 12)
    np.testing.assert_array_equal(found.order, stored["css_selected"])
    residuals = found.left[1:] * stored["css_total"]
    np.testing.assert_allclose(residuals, stored["css_residuals"], rtol=2.1e-13)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", SETS)
def test_gains_at_every_step_are_what_each_candidate_would_explain(name):
    stored = fixture(f"cur_css_{name}")
    X, total = columns(stored["X"]), float(stored["css_total"])
    candidates = stored["css_candidate_residuals"]
    for step in (0, 1, 5, 11):
        found = solve_column_subset(X, step)
        free = ~np.isnan(candidates[step])
        expected = found.left[-1] - candidates[step] / total
        np.testing.assert_allclose(found.values[free], expected[free], atol=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_what_is_left_never_grows_and_is_never_below_what_pca_leaves(name):
    stored = fixture(f"cur_css_{name}")
    X = columns(stored["X"])
    found = solve_column_subset(X, 12)
    assert np.all(np.diff(found.left) < 0)
    best = best_shares(X, 12)
    pca = 1.0 - stored["css_pca_residuals"] / stored["css_total"]
    np.testing.assert_allclose(best, pca, rtol=1e-10)
    assert np.all(found.explained <= best + 1e-12)


def test_picks_explain_the_shares_that_the_page_tells():
    for name, share in zip(SETS, (0.715, 0.835, 0.928, 0.732), strict=True):
        found = solve_column_subset(columns(fixture(f"cur_css_{name}")["X"]), 12)
        assert found.explained[-1] == pytest.approx(share, abs=5e-4)


def test_a_diagonal_is_picked_by_the_size_of_its_entries():
    assert solve_column_subset(uncentred(np.diag([3.0, 2.0, 1.0])), 3).order.tolist() == [0, 1, 2]
    assert solve_column_subset(uncentred(np.diag([1.0, 2.0, 3.0])), 3).order.tolist() == [2, 1, 0]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("factor", [1.0, -2.0, 1e-30])
def test_a_copy_of_a_pick_is_never_picked(factor):
    X = np.random.default_rng(0).standard_normal((40, 9))
    X = np.hstack([X, factor * X])
    found = solve_column_subset(columns(X), 18)
    assert len(found.order) == 9
    assert len(set(found.order % 9)) == 9
    rest = np.setdiff1d(np.arange(18), found.order)
    # Nothing was computed for them: exactly 0.
    np.testing.assert_array_equal(found.scores[rest], 0.0)
    assert found.left[-1] == 0.0


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("storage", STORAGES)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1000), n=st.integers(3, 14), d=st.integers(2, 14))
def test_it_is_the_residual_form_on_any_small_table(seed, n, d, storage):
    X = np.random.default_rng(seed).standard_normal((n, d))
    found = solve_column_subset(columns(X, storage), d)
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


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("storage", ["array", "csr"])
@pytest.mark.parametrize(("X", "n_picks"), [(spectra(), 19), (decaying(), 50)])
def test_digits_lost_by_subtraction_are_computed_anew(X, n_picks, storage):
    order, left = residual_form(X, n_picks)
    assert left[-1] < 1e-8
    found = solve_column_subset(columns(X, storage), n_picks)
    assert found.order.tolist() == order
    # Columns that are spanned to 1e-12 count as explained.
    np.testing.assert_allclose(found.left, left, rtol=1e-6, atol=1e-12)


def test_picks_are_nested_and_one_more_than_was_picked_is_known():
    X = columns(fixture("cur_css_digits")["X"])
    whole = solve_column_subset(X, 20)
    for k in (1, 5, 12):
        part = solve_column_subset(X, k)
        np.testing.assert_array_equal(part.order, whole.order[:k])
        assert np.argsort(-part.scores)[k] == whole.order[k]


def test_scores_fall_along_the_order_and_the_others_follow():
    found = solve_column_subset(columns(fixture("cur_css_wide")["X"]), 12)
    assert np.all(np.diff(found.scores[found.order]) < 0)
    rest = np.setdiff1d(np.arange(80), found.order)
    assert found.scores[rest].max() < found.scores[found.order].min()
    assert found.scores[found.order[0]] == 1.0


def test_the_published_update_alone_loses_the_order(monkeypatch):
    """Never computed anew, f is rounding where little is left."""
    monkeypatch.setattr(module, "_FORMED_ANEW", 0.0)
    monkeypatch.setattr(module, "_BELIEVED", np.inf)
    found = solve_column_subset(columns(spectra()), 19)
    assert found.order.tolist() != residual_form(spectra(), 19)[0]


def test_it_reconstructs_and_does_not_look_for_clusters():
    found = {}
    for name, k in (("mix", 8), ("blobs", 6), ("wide", 10)):
        stored = fixture(f"data_{name}")
        order = solve_column_subset(columns(stored["X"]), k).order
        found[name] = len(set(order) & set(stored["informative"]))
    assert found == {"mix": 4, "blobs": 2, "wide": 4}
