"""EUFS against its optimality conditions, a literal transcription and the authors' program."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.graph import laplacian
from keepers.solvers.eufs import (
    MU_GROWTH,
    MU_START,
    Splitting,
    Start,
    solve_eufs,
    start_from_labels,
    vanishing_alpha,
)
from shared_material import fixture


def clusters(seed=0, n_noise=9):
    """Three groups of 15 samples that differ in the first 3 features; a ring-shaped graph."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), 15)
    X = rng.normal(size=(45, 3 + n_noise))
    X[:, :3] += 5.0 * np.eye(3)[labels]
    ring = np.roll(np.eye(45), 1, axis=1)
    return X, labels, laplacian(sp.csr_array(np.maximum(ring, ring.T)))


def run(X, graph_laplacian, start, alpha=0.3, beta=0.1, max_iter=20, tol=0.0, **switches):
    options = {"alpha": alpha, "beta": beta, "max_iter": max_iter, "tol": tol}
    return solve_eufs(X, graph_laplacian, start, **options, **switches)


def shorten(Q, threshold):
    lengths = np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-300)
    return Q * np.maximum(1 - threshold / lengths, 0)


def transcription(X, L, start, alpha, beta, max_iter):
    """The iteration as published, every variable in memory under its own name."""
    U, V, mu = start.U, start.V, MU_START
    Y1, Y2 = np.zeros_like(U), np.zeros_like(X)
    for _ in range(max_iter):
        E = shorten(X - U @ V.T + Y2 / mu, 1 / mu)
        V = shorten((X - E + Y2 / mu).T @ U, alpha / mu)
        Z = np.maximum(U - Y1 / mu - beta / mu * (L @ U), 0)
        N = Y1 / mu + Z - beta / mu * (L @ Z) + (X - E + Y2 / mu) @ V
        P, _, R = np.linalg.svd(N, full_matrices=False)
        U = P @ R
        Y1, Y2 = Y1 + mu * (Z - U), Y2 + mu * (X - U @ V.T - E)
        mu *= MU_GROWTH
    return U, V, E, Z


def test_the_start_is_an_orthonormal_indicator_and_scaled_cluster_sums():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [10.0, 0.0]])
    start = start_from_labels(X, np.array([0, 0, 1]), 2)
    root = np.sqrt(0.5)
    np.testing.assert_allclose(start.U, [[root, 0], [root, 0], [0, 1]])
    np.testing.assert_allclose(start.V, [[4 * root, 10], [6 * root, 0]])


@pytest.mark.parametrize("alpha", [0.01, 0.3, 2.0])
def test_the_iterates_are_those_of_the_published_steps(alpha):
    X, labels, L = clusters()
    X = 50 * X  # long enough rows for E to be non-zero early on
    start = start_from_labels(X, labels, 3)
    result = run(X, L, start, alpha=alpha, max_iter=25)
    U, V, E, Z = transcription(X, L, start, alpha, 0.1, 25)
    np.testing.assert_allclose(result.V, V, atol=1e-8 * np.abs(V).max())
    np.testing.assert_allclose(result.U, U, atol=1e-8)
    assert result.residual == pytest.approx(np.abs(X - U @ V.T - E).max() / np.abs(X).max())
    assert result.indicator_gap == pytest.approx(np.abs(Z - U).max())
    loss = np.linalg.norm(X - U @ V.T, axis=1).sum() + alpha * np.linalg.norm(V, axis=1).sum()
    assert result.objective[-1] == pytest.approx(loss + 0.1 * np.trace(U.T @ (L @ U)))


def test_every_step_meets_the_optimality_conditions_of_its_problem():
    X, labels, L = clusters(seed=1)
    state = Splitting(X, L, start_from_labels(X, labels, 3), 0.5, 0.1)
    for _ in range(120):
        Q = X - state.U @ state.V.T + state.Y2 / state.mu
        state.update_residual()
        E, mu = state.E, state.mu
        _assert_proximal(E, Q, 1 / mu)
        K = (X - E + state.Y2 / mu).T @ state.U
        state.update_centres()
        _assert_proximal(state.V, K, 0.5 / mu)
        state.update_nonnegative()
        assert (state.Z >= 0).all()
        state.update_indicator()
        np.testing.assert_allclose(state.U.T @ state.U, np.eye(3), atol=1e-10)
        state.update_multipliers()


def _assert_proximal(E, Q, threshold):
    """0 lies in threshold * (subgradient of the sum of row norms) + E - Q."""
    lengths = np.linalg.norm(E, axis=1)
    scale = np.abs(Q).max()
    # A row that is shorter than the rounding of Q is neither clearly there nor clearly gone.
    live = lengths > 1e-9 * scale
    direction = E[live] / lengths[live, None]
    np.testing.assert_allclose((Q - E)[live], threshold * direction, atol=1e-6 * scale)
    assert (np.linalg.norm(Q[~live], axis=1) <= threshold + 1e-8 * scale).all()


def test_no_step_raises_the_augmented_lagrangian():
    X, labels, L = clusters(seed=2)
    alpha, beta = 0.5, 0.3
    state = Splitting(X, L, start_from_labels(X, labels, 3), alpha, beta)

    def lagrangian(E):
        gap = X - state.U @ state.V.T - E
        value = np.linalg.norm(E, axis=1).sum() + alpha * np.linalg.norm(state.V, axis=1).sum()
        value += beta * np.sum(state.Z * (L @ state.U))
        value += np.sum(state.Y1 * (state.Z - state.U)) + np.sum(state.Y2 * gap)
        return value + state.mu / 2 * (np.sum((state.Z - state.U) ** 2) + np.sum(gap**2))

    E = np.zeros_like(X)
    for _ in range(120):
        values = [lagrangian(E)]
        state.update_residual()
        E = state.E
        values.append(lagrangian(E))
        for step in (state.update_centres, state.update_nonnegative, state.update_indicator):
            step()
            values.append(lagrangian(E))
        assert np.diff(values).max() <= 1e-9 * max(1.0, abs(values[0]))
        state.update_multipliers()


def test_features_in_another_order_get_the_same_rows():
    X, labels, L = clusters(seed=3)
    order = np.random.default_rng(0).permutation(X.shape[1])
    rows = run(X, L, start_from_labels(X, labels, 3), max_iter=15).V
    permuted = run(X[:, order], L, start_from_labels(X[:, order], labels, 3), max_iter=15).V
    np.testing.assert_allclose(permuted, rows[order], atol=1e-8)


def test_features_that_tell_the_clusters_apart_get_the_largest_rows():
    X, labels, L = clusters(seed=4)
    result = run(X, L, start_from_labels(X, labels, 3), alpha=1.0, max_iter=300)
    assert set(np.argsort(-np.linalg.norm(result.V, axis=1))[:3]) == {0, 1, 2}


def test_beyond_the_vanishing_alpha_zero_is_a_minimum_and_below_it_is_not():
    X, labels, _ = clusters(seed=5)
    U = start_from_labels(X, labels, 3).U
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


def test_a_sample_of_zeros_has_no_say_in_the_vanishing_alpha():
    X = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert vanishing_alpha(X, np.eye(2)) == pytest.approx(0.8)


def test_vanished_rows_are_remembered_with_their_last_norm():
    X, labels, L = clusters(seed=6)
    start = start_from_labels(X, labels, 3)
    expected = np.zeros(X.shape[1])
    for n_iter in range(1, 61):
        norms = np.linalg.norm(run(X, L, start, alpha=1.0, max_iter=n_iter).V, axis=1)
        expected[norms > 0] = norms[norms > 0]
    result = run(X, L, start, alpha=1.0, max_iter=60)
    assert 0 < np.count_nonzero(result.V.any(axis=1)) < X.shape[1]
    np.testing.assert_allclose(result.last_norms, expected, rtol=1e-8)


def test_the_iteration_stops_when_the_constraints_hold():
    X, labels, L = clusters(seed=7)
    result = run(X, L, start_from_labels(X, labels, 3), alpha=50.0, max_iter=300, tol=1e-6)
    assert result.converged
    assert result.n_iter < 300
    assert not result.V.any()
    assert result.indicator_gap < 1e-6
    assert result.U.min() > -1e-6


AUTHORS = [(name, n_iter) for name in ("mix", "digits", "wide") for n_iter in (5, 20, 60)]


@pytest.mark.parametrize(("name", "n_iter"), AUTHORS)
def test_the_authors_program_is_reproduced_with_its_threshold(name, n_iter):
    stored = fixture(f"eufs_authors_{name}")
    units = np.eye(int(stored["n_clusters"]))
    start = Start(units[stored["row_labels"]] + 0.2, units[stored["col_labels"]] + 0.2)
    result = run(
        stored["X"],
        laplacian(sp.csr_array(stored["W_graph"])),
        start,
        alpha=float(stored["alpha"]),
        beta=float(stored["beta"]),
        max_iter=n_iter,
        _release_threshold=True,
    )
    # 100 times what another implementation reached; by 60 iterations rounding has taken over.
    tolerance = {5: 7e-9, 20: 8e-5, 60: np.inf}[n_iter]
    assert np.abs(result.V - stored[f"V_b0.1_a0.1_it{n_iter}"]).max() < tolerance
    ranking = np.argsort(-np.linalg.norm(result.V, axis=1), kind="stable")
    np.testing.assert_array_equal(ranking, stored[f"ranking_b0.1_a0.1_it{n_iter}"])


@pytest.mark.parametrize("beta", [0.1, 1.0])
@pytest.mark.parametrize("n_iter", [60, 150])
def test_the_informative_features_of_a_mixture_come_first(beta, n_iter):
    stored = fixture("eufs_authors_mix")
    informative = fixture("data_mix")["informative"]
    X = stored["X"]
    graph = laplacian(sp.csr_array(stored["W_graph"]))
    start = start_from_labels(X, stored["row_labels"], int(stored["n_clusters"]))
    result = run(X, graph, start, alpha=0.1, beta=beta, max_iter=n_iter)
    first = np.argsort(-np.linalg.norm(result.V, axis=1))[: len(informative)]
    assert np.isin(first, informative).sum() >= len(informative) - 1


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
