"""RNE against the authors' program, the specification as written, and degenerate tables."""

import numpy as np
import pytest

from keepers import RNE
from keepers.exceptions import DataWarning
from keepers.linalg.graph import reconstruction_weights
from keepers.methods.neighbours import nearest_neighbours
from keepers.methods.rivals.rne import solve_rne
from shared_material import fixture

DATA = ["mix", "digits", "blobs", "wide"]
EPS = np.finfo(float).eps


def scores(result):
    return (result.H**2).sum(axis=1)


def _solve(A, H0, *, max_iter=50, alpha=1e3, tol=0.0):
    return solve_rne(A, H0, alpha=alpha, max_iter=max_iter, tol=tol)


def _random_problem(n_samples, n_features, width, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_samples, n_features)), rng.random((n_features, width))


def _as_written(A, H, alpha, max_iter):
    """The specification with the positive and the negative part of A'A in memory."""
    G = A.T @ A
    M, Y, g = A @ H, np.zeros((A.shape[0], H.shape[1])), 10.0

    def above(P):
        return (np.abs(P) + P) / 2

    for _ in range(max_iter):
        B, C = A.T @ M, A.T @ Y
        for _ in range(30):
            H = H / np.sqrt((H**2).sum(axis=0) + EPS)
            upper = alpha * H + g * above(B) + g * above(-G) @ H + above(C)
            lower = alpha * H @ H.T @ H + g * above(-B) + g * above(G) @ H + above(-C) + EPS
            H = H * np.sqrt(upper / lower)
        AH = A @ H
        M = np.sign(AH - Y / g) * np.maximum(np.abs(AH - Y / g) - 1 / g, 0)
        Y = Y + g * (M - AH)
        g = min(1.1 * g, 1e10)
    return H


@pytest.mark.parametrize(
    ("n_samples", "n_features"), [(30, 12), (10, 20), (9, 20), (5, 60)], ids=str
)
def test_two_products_take_the_place_of_the_signed_parts(n_samples, n_features):
    A, H0 = _random_problem(n_samples, n_features, 4)
    expected = _as_written(A, H0, 1e3, 5)
    np.testing.assert_allclose(_solve(A, H0, max_iter=5).H, expected, rtol=0, atol=1e-10)


def test_the_recorded_objective_is_that_of_the_returned_h():
    A, H0 = _random_problem(20, 15, 4)
    result = _solve(A, H0, max_iter=7, alpha=50.0)
    gap = np.linalg.norm(result.H.T @ result.H - np.eye(4))
    expected = np.abs(A @ result.H).sum() + 50.0 / 4 * gap**2
    np.testing.assert_allclose(result.objective[-1], expected, rtol=1e-12)
    assert result.objective.shape == (7,)


def test_the_iteration_ends_after_two_calm_steps_in_a_row():
    A, H0 = _random_problem(25, 15, 4)
    tol = 1e-3
    full = _solve(A, H0).objective
    calm = np.abs(np.diff(full)) < tol * np.abs(full[1:])
    expected = int(np.flatnonzero(calm[1:] & calm[:-1])[0]) + 3
    result = _solve(A, H0, tol=tol)
    assert len(result.objective) == expected < 50
    assert result.converged
    assert not _solve(A, H0).converged


@pytest.mark.parametrize("steps", [1, 5, 50])
@pytest.mark.parametrize("name", DATA)
def test_h_objective_and_selection_are_those_of_the_authors_program(name, steps):
    stored = fixture(f"rne_authors_{name}")
    result = _solve(stored["A_authors"], stored["H0"], max_iter=steps)
    np.testing.assert_allclose(result.H, stored[f"H_it{steps}"], rtol=0, atol=7e-13)
    np.testing.assert_allclose(result.objective, stored[f"obj_it{steps}"], rtol=0, atol=2e-11)
    _assert_selected(result, stored, f"sel_it{steps}")


def _assert_selected(result, stored, key):
    order = np.argsort(-scores(result), kind="stable")
    np.testing.assert_array_equal(order[: int(stored["m"])], stored[key])


def _table(n_samples=40, n_features=15, seed=0):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features)) + 1.0


@pytest.fixture
def start_seen(monkeypatch):
    """The residual and the start that the selector hands to the solver."""
    seen = {}

    def spy(A, start, **settings):
        seen["A"], seen["start"] = A, start.copy()
        return solve_rne(A, start, **settings)

    monkeypatch.setattr("keepers.methods.rivals.rne.solve_rne", spy)
    return seen


def test_what_is_embedded_is_the_residual_of_unit_samples(start_seen):
    X = _table()
    RNE(4, max_iter=1, random_state=0).fit(X)
    unit = X / np.sqrt((X**2).sum(axis=1, keepdims=True))
    W = reconstruction_weights(unit, nearest_neighbours(unit, 5))
    np.testing.assert_allclose(start_seen["A"], unit - W.toarray() @ unit, rtol=0, atol=1e-12)


def test_starts_are_uniform_seeded_and_as_wide_as_the_selection(start_seen):
    X = _table()
    RNE(0.4, max_iter=1, random_state=5).fit(X)
    first = start_seen["start"]
    RNE(0.4, max_iter=1, random_state=5).fit(X)
    np.testing.assert_array_equal(start_seen["start"], first)
    assert first.shape == (15, 6)
    assert 0 < first.min() < 0.2
    assert 0.8 < first.max() < 1
    RNE(0.4, max_iter=1, random_state=6).fit(X)
    assert not np.array_equal(start_seen["start"], first)


def test_samples_on_one_ray_are_said_to_carry_nothing():
    X = np.outer(np.arange(1.0, 9.0), np.array([1.0, 2.0, 2.0]))
    with pytest.warns(DataWarning, match="random start"):
        RNE(1, max_iter=1, random_state=0).fit(X)
