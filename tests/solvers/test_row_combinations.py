"""Combinations against stored arrays, and both against the iteration as it is written."""

import numpy as np
import pytest

from keepers.solvers import row_combinations
from keepers.solvers.row_combinations import (
    CombinedRows,
    StoredRows,
    first_rows,
    kept_shares,
    most_fits,
)

N_SAMPLES, N_FEATURES, N_CLUSTERS = 30, 50, 3


def table(seed=0):
    return 10.0 * np.random.default_rng(seed).normal(size=(N_SAMPLES, N_FEATURES))


def fit_of(X, seed):
    """Some orthonormal U, and V = X'U transposed."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(N_SAMPLES, N_CLUSTERS)))[0]
    return U, U.T @ X


def as_written(X, W, U, Vt, mu):
    """E and B of one iteration."""
    Q = X - U @ Vt + W
    lengths = np.linalg.norm(Q, axis=1, keepdims=True)
    E = Q * np.maximum(1 - 1 / (mu * lengths), 0)
    return E, X + W - E


def forms(X):
    U, Vt = fit_of(X, 1)
    W = np.random.default_rng(9).normal(size=X.shape)
    return {
        "stored": (StoredRows(X, W.copy(), U, Vt), W),
        "combined": (CombinedRows([X], U, Vt), np.zeros_like(X)),
        "combined with W": (CombinedRows([X, W], U, Vt), W),
    }


@pytest.mark.parametrize("form", ["stored", "combined", "combined with W"])
def test_every_form_follows_the_iteration_as_it_is_written(form):
    X = table()
    rows, W = forms(X)[form]
    U, Vt = fit_of(X, 1)
    for step, mu in enumerate([0.01, 0.1, 1.0, 3.0]):
        E, B = as_written(X, W, U, Vt, mu)
        loss = np.linalg.norm(X - U @ Vt, axis=1).sum()
        assert rows.loss() == pytest.approx(loss, rel=1e-10)
        assert rows.shorten(mu) == pytest.approx(loss, rel=1e-10)
        np.testing.assert_allclose(rows.W, W, atol=1e-11)
        np.testing.assert_allclose(rows.E, E, atol=1e-10)
        np.testing.assert_allclose(rows.project(U), U.T @ B, atol=1e-10)
        U, Vt = fit_of(X, step + 2)
        np.testing.assert_allclose(rows.multiply(Vt), B @ Vt.T, atol=1e-8)
        rows.move(U, Vt, 0.5)
        assert rows.violation() == pytest.approx(np.abs(X - U @ Vt - E).max(), rel=1e-10)
        W = 0.5 * (B - U @ Vt)
        np.testing.assert_allclose(rows.W, W, atol=1e-10)


def test_the_kept_share_is_one_less_what_shrinking_leaves():
    np.testing.assert_allclose(kept_shares(np.array([0.0, 0.5, 1.0, 4.0]), 2.0), [1, 1, 0.5, 0.125])


def advance(rows, X, mu, seed):
    rows = rows.form_for(mu)
    rows.shorten(mu)
    U, Vt = fit_of(X, seed)
    rows.project(U)
    rows.multiply(Vt)
    rows.move(U, Vt, 0.9)
    return rows


def test_arrays_are_stored_while_fits_last_and_not_once_they_are_forgotten_fast():
    X = table()
    rows = first_rows(X, *fit_of(X, 1))
    assert isinstance(rows, CombinedRows)  # W is zero to begin with
    for seed in range(most_fits(X, N_CLUSTERS) + 2):
        rows = advance(rows, X, 1e-3, seed)
    assert isinstance(rows, StoredRows)
    for seed in range(4):
        rows = advance(rows, X, 1e4, seed)
    assert isinstance(rows, CombinedRows)


def test_changing_the_form_changes_neither_w_nor_loss():
    X = table()
    rows = advance(advance(first_rows(X, *fit_of(X, 1)), X, 1e4, 2), X, 1e4, 3)
    assert isinstance(rows, CombinedRows)
    stored = StoredRows(X, rows.W, *fit_of(X, 3))
    np.testing.assert_allclose(stored.shorten(1e4), rows.shorten(1e4), rtol=1e-10)
    np.testing.assert_allclose(stored.E, rows.E, atol=1e-10)


def test_samples_that_are_fitted_nearly_exactly_are_stored():
    X = table()
    U, Vt = fit_of(X, 1)
    X[0] = (U @ Vt)[0] + 1e-7
    # Its row of Q has 1e-6 of the length of the sample: twelve digits of its square would go.
    rows = CombinedRows([X], U, Vt)
    assert isinstance(rows.form_for(1e7), StoredRows)


def test_a_v_of_zeros_adds_no_fits():
    X = table()
    rows = first_rows(X, *fit_of(X, 1))
    none = np.zeros((N_CLUSTERS, N_FEATURES))
    for _ in range(2 * row_combinations.MOST_FITS):
        rows = rows.form_for(1e-3)  # shorter than 1/mu: nothing of the first fit is left in B
        rows.shorten(1e-3)
        assert not rows.multiply(none).any()
        rows.move(fit_of(X, 2)[0], none, 0.9)
    assert isinstance(rows, CombinedRows)


def test_fewer_fits_pay_where_they_are_wide():
    assert most_fits(np.empty((2600, 2200)), 99) > most_fits(np.empty((2000, 256)), 99) >= 1
    assert most_fits(np.empty((100, 4)), 2) <= 2  # scalar products would need more room than X
