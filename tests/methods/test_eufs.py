"""EUFS against its optimality conditions, a literal transcription and the authors' program."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning
from keepers.linalg.graph import laplacian
from keepers.methods.rivals.eufs import (
    EUFS,
    EUFSResult,
    iterate,
    solve_eufs,
    start,
    vanishing_alpha,
)
from shared_material import fixture


def ring_of_clusters(seed=0, n_noise=9):
    """Three groups of 15 samples that differ in the first 3 features; a ring-shaped graph."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), 15)
    X = rng.normal(size=(45, 3 + n_noise))
    X[:, :3] += 5.0 * np.eye(3)[labels]
    ring = np.roll(np.eye(45), 1, axis=1)
    return X, labels, laplacian(sp.csr_array(np.maximum(ring, ring.T)))


def indicator(labels, n_clusters):
    U = np.eye(n_clusters)[labels]
    return U / np.sqrt(U.sum(axis=0))


def run(X, graph_laplacian, U, alpha=0.3, beta=0.1, max_iter=20, tol=0.0):
    options = {"alpha": alpha, "beta": beta, "max_iter": max_iter, "tol": tol}
    return solve_eufs(X, graph_laplacian, U, **options)


def shorten(Q, threshold):
    lengths = np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-300)
    return Q * np.maximum(1 - threshold / lengths, 0)


def transcription(X, L, U, alpha, beta, max_iter):
    """The iteration as published, every variable in memory under its own name."""
    V, mu = X.T @ U, 1e-3
    Y1, Y2 = np.zeros_like(U), np.zeros_like(X)
    for _ in range(max_iter):
        E = shorten(X - U @ V.T + Y2 / mu, 1 / mu)
        V = shorten((X - E + Y2 / mu).T @ U, alpha / mu)
        Z = np.maximum(U - Y1 / mu - beta / mu * (L @ U), 0)
        N = Y1 / mu + Z - beta / mu * (L @ Z) + (X - E + Y2 / mu) @ V
        P, _, R = np.linalg.svd(N, full_matrices=False)
        U = P @ R
        Y1, Y2 = Y1 + mu * (Z - U), Y2 + mu * (X - U @ V.T - E)
        mu *= 1.1
    return U, V, E, Z


@pytest.mark.parametrize("alpha", [0.01, 0.3, 2.0])
def test_the_iterates_are_those_of_the_published_steps(alpha):
    X, labels, L = ring_of_clusters()
    X = 50 * X  # long enough rows for E to be non-zero early on
    first = indicator(labels, 3)
    result = run(X, L, first, alpha=alpha, max_iter=25)
    U, V, E, Z = transcription(X, L, first, alpha, 0.1, 25)
    np.testing.assert_allclose(result.last.V, V, atol=1e-8 * np.abs(V).max())
    np.testing.assert_allclose(result.last.U, U, atol=1e-8)
    assert result.residual == pytest.approx(np.abs(X - U @ V.T - E).max() / np.abs(X).max())
    np.testing.assert_allclose(result.last.Z, Z, atol=1e-8)
    loss = np.linalg.norm(X - U @ V.T, axis=1).sum() + alpha * np.linalg.norm(V, axis=1).sum()
    assert result.objective[-1] == pytest.approx(loss + 0.1 * np.trace(U.T @ (L @ U)))


def test_every_step_meets_the_optimality_conditions_of_its_problem():
    X, labels, L = ring_of_clusters(seed=1)
    now = start(X, indicator(labels, 3), np.zeros((12, 3)))
    for _ in range(120):
        then = iterate(X, L, now, 0.5 / now.mu, 0.1)
        W = now.Y2 / now.mu
        _assert_proximal(then.E, X - now.U @ now.V.T + W, 1 / now.mu)
        _assert_proximal(then.V, (X - then.E + W).T @ now.U, 0.5 / now.mu)
        assert (then.Z >= 0).all()
        np.testing.assert_allclose(then.U.T @ then.U, np.eye(3), atol=1e-10)
        now = then


def _assert_proximal(E, Q, threshold):
    """0 lies in threshold * (subgradient of the sum of row norms) + E - Q."""
    lengths = np.linalg.norm(E, axis=1)
    scale = np.abs(Q).max()
    # A row that is shorter than the rounding of Q is neither clearly there nor clearly gone.
    live = lengths > 1e-9 * scale
    direction = E[live] / lengths[live, None]
    np.testing.assert_allclose((Q - E)[live], threshold * direction, atol=1e-6 * scale)
    assert (np.linalg.norm(Q[~live], axis=1) <= threshold + 1e-8 * scale).all()


def test_beyond_the_vanishing_alpha_zero_is_a_minimum_and_below_it_is_not():
    X, labels, _ = ring_of_clusters(seed=5)
    U = indicator(labels, 3)
    alpha = vanishing_alpha(X, U)
    rng = np.random.default_rng(0)

    def objective(V, weight):
        loss = np.linalg.norm(X - U @ V.T, axis=1).sum()
        return loss + weight * np.linalg.norm(V, axis=1).sum()

    zero = objective(np.zeros((12, 3)), 0.0)
    for _ in range(50):
        assert objective(1e-3 * rng.normal(size=(12, 3)), 1.001 * alpha) > zero
    pull = (X / np.linalg.norm(X, axis=1, keepdims=True)).T @ U
    strongest = np.argmax(np.linalg.norm(pull, axis=1))
    V = np.zeros((12, 3))
    V[strongest] = 1e-3 * pull[strongest]
    assert objective(V, 0.99 * alpha) < zero


@pytest.mark.parametrize("tol", [0.05, 0.02])
def test_it_ends_with_the_first_iteration_that_meets_both_constraints(tol):
    X, labels, L = ring_of_clusters(seed=2)
    first = indicator(labels, 3)

    def worst(n_iter):
        last = run(X, L, first, max_iter=n_iter).last
        rest = X - last.U @ last.V.T - last.E
        return max(np.abs(last.Z - last.U).max(), np.abs(rest).max() / np.abs(X).max())

    result = run(X, L, first, max_iter=500, tol=tol)
    n_iter = len(result.objective)
    assert result.converged
    assert worst(n_iter) < tol <= worst(n_iter - 1)
    assert not run(X, L, first, max_iter=n_iter - 1, tol=tol).converged


def test_a_fit_in_which_all_rows_vanish_warns_and_one_that_keeps_some_does_not():
    X, _, _ = ring_of_clusters(seed=1)
    with pytest.warns(ConvergenceWarning, match="All rows of V vanished with alpha=1e"):
        selector = EUFS(3, n_clusters=3, alpha=1e6, random_state=0).fit(X)
    assert selector.n_active_ == 0
    assert EUFS(3, n_clusters=3, alpha=0.1, random_state=0).fit(X).n_active_ > 0


def test_vanished_rows_are_remembered_with_their_last_norm():
    X, labels, L = ring_of_clusters(seed=6)
    first = indicator(labels, 3)
    expected = np.zeros(X.shape[1])
    for n_iter in range(1, 61):
        norms = np.linalg.norm(run(X, L, first, alpha=1.0, max_iter=n_iter).last.V, axis=1)
        expected[norms > 0] = norms[norms > 0]
    result = run(X, L, first, alpha=1.0, max_iter=60)
    assert 0 < np.count_nonzero(result.last.V.any(axis=1)) < X.shape[1]
    np.testing.assert_allclose(result.last_norms, expected, rtol=1e-8)


AUTHORS = [(name, n_iter) for name in ("mix", "digits", "wide") for n_iter in (5, 20, 60)]


@pytest.mark.parametrize(("name", "n_iter"), AUTHORS)
def test_the_authors_program_is_reproduced_with_its_threshold(name, n_iter):
    """It shortens the rows of V by alpha / 2, not alpha / mu."""
    stored = fixture(f"eufs_authors_{name}")
    X, L = stored["X"], laplacian(sp.csr_array(stored["W_graph"]))
    units = np.eye(int(stored["n_clusters"]))
    result = start(X, units[stored["row_labels"]] + 0.2, units[stored["col_labels"]] + 0.2)
    for _ in range(n_iter):
        result = iterate(X, L, result, float(stored["alpha"]) / 2, float(stored["beta"]))
    # 100 times what another implementation reached; by 60 iterations rounding has taken over.
    tolerance = {5: 7e-9, 20: 8e-5, 60: np.inf}[n_iter]
    assert np.abs(result.V - stored[f"V_b0.1_a0.1_it{n_iter}"]).max() < tolerance
    ranking = np.argsort(-np.linalg.norm(result.V, axis=1), kind="stable")
    np.testing.assert_array_equal(ranking, stored[f"ranking_b0.1_a0.1_it{n_iter}"])


def test_pulls_that_cancel_up_to_rounding_are_zero():
    # A tenth is not exact: the sum of ten of them is 1 but for rounding, with kernels as they are.
    X = np.outer([0.1] * 10 + [-0.1] * 10, [1.0, 3.0, 1e-3])
    X[:10] *= 1.0 + 1e-16 * np.arange(10)[:, np.newaxis]
    U = np.full((20, 1), 20**-0.5)
    assert vanishing_alpha(X, U) == 0.0  # exactly: it is the program's decision, not a sum
    X[0] *= 1.001
    assert vanishing_alpha(X[:, ::-1], U) == 0.0  # each sample is weighed by its length
    X[0, 0] += 0.001
    assert vanishing_alpha(X, U) > 1e-6


def test_rows_at_zero_are_ranked_below_the_others_by_last_norm_then_by_pull():
    norms = np.array([0.0, 2.0, 0.0, 0.0, 5.0, 0.0])
    last_norms = np.array([0.0, 2.0, 0.3, 9.0, 5.0, 0.0])
    pulls = np.array([0.4, 1.0, 0.9, 0.1, 1.0, 0.8])
    last = SimpleNamespace(V=norms[:, np.newaxis], pulls=pulls)
    scores = EUFSResult(last, last_norms, 0.0, np.zeros(1), True).scores
    np.testing.assert_array_equal(np.argsort(-scores), [4, 1, 3, 2, 5, 0])
    np.testing.assert_array_equal(scores[[1, 4]], [2.0, 5.0])
    assert scores[[0, 2, 3, 5]].max() <= 1e-12 * 2.0
