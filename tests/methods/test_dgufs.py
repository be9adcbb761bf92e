"""DGUFS: exact selection by brute force, dense formulas, and the authors' program."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning
from keepers.methods.rivals.dgufs import (
    DENSE_SAMPLES,
    DGUFS,
    blended_kernel,
    solve_dgufs,
)
from shared_material import fixture


def ring_graph(n_samples, reach=2):
    steps = [np.roll(np.eye(n_samples), step, axis=1) for step in range(1, reach + 1)]
    return sp.csr_array(sum(steps) + sum(step.T for step in steps))


def centring(n_samples):
    return (np.eye(n_samples) - 1 / n_samples) / (n_samples - 1)


def rescale(A):
    """R: zero diagonal, the other entries scaled to [0, 1]; all zero if those are equal."""
    off = A[~np.eye(len(A), dtype=bool)]
    if not np.ptp(off) > 0:
        return np.zeros_like(A)
    scaled = (A - off.min()) / np.ptp(off)
    return scaled - np.diag(np.diag(scaled))


def solve(X, graph, n_selected, n_clusters, beta=0.5, max_iter=100):
    rng = np.random.default_rng(0)
    return solve_dgufs(
        X - X.mean(axis=0), graph, n_selected, n_clusters, beta=beta, max_iter=max_iter, rng=rng
    )


def chosen(result, n_selected):
    return np.sort(np.argsort(-result.scores, kind="stable")[:n_selected])


def kernel(result):
    return result.vectors * result.values @ result.vectors.T


# The solver.


def test_the_blended_kernel_is_that_of_the_dense_formula():
    Y = np.random.default_rng(0).normal(size=(5, 23))
    Y -= Y.mean(axis=1, keepdims=True)
    graph, H = ring_graph(23), centring(23)
    expected = 0.3 * graph.toarray() + 0.7 * rescale(H @ Y.T @ Y @ H)
    found = blended_kernel(graph, Y.T, 0.3)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_a_kernel_of_equal_entries_counts_nothing():
    graph = ring_graph(6)
    found = blended_kernel(graph, np.ones((6, 2)), 0.5)
    np.testing.assert_allclose(found, 0.5 * graph.toarray(), atol=1e-15)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_selected", [1, 3, 5])
def test_no_other_subset_has_a_larger_dependence_on_the_kernel(seed, n_selected):
    X = np.random.default_rng(seed).normal(size=(20, 8))
    result = solve(X, ring_graph(20), n_selected, 3)
    HLH = centring(20) @ kernel(result) @ centring(20)

    def dependence(columns):
        Y = X[:, list(columns)].T
        return np.trace(Y.T @ Y @ HLH)

    best = max(dependence(columns) for columns in combinations(range(8), n_selected))
    assert dependence(chosen(result, n_selected)) == pytest.approx(best, rel=1e-12)
    singles = [dependence([column]) for column in range(8)]
    np.testing.assert_allclose(result.scores, singles, rtol=1e-9)


@pytest.mark.parametrize("n_samples", [30, 260], ids=["dense", "lanczos"])
def test_a_converged_selection_reproduces_its_own_kernel(n_samples):
    assert (n_samples <= DENSE_SAMPLES) == (n_samples == 30)
    X = np.random.default_rng(2).normal(size=(n_samples, 10))
    graph = ring_graph(n_samples)
    result = solve(X, graph, 4, 4)
    assert result.converged
    S, H, Y = graph.toarray(), centring(n_samples), X[:, chosen(result, 4)].T
    values, vectors = np.linalg.eigh(0.5 * S + 0.5 * rescale(H @ Y.T @ Y @ H))
    np.testing.assert_allclose(result.values, values[:-5:-1], rtol=1e-10)
    L = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    np.testing.assert_allclose(kernel(result), L, atol=1e-9)
    objective = -0.5 * np.trace(S @ L) - 0.5 * np.trace(Y.T @ Y @ H @ L @ H)
    assert result.objective[-1] == pytest.approx(objective)


# The estimator.


def test_a_selection_that_cycles_is_reported():
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.warns(ConvergenceWarning, match="still changing after max_iter=100 .* cycle"):
        selector = DGUFS(2, n_clusters=4, n_neighbors=3).fit(X)
    assert not selector.converged_


# The authors' program, step by step. It selects the features of smallest norm.


def keep_top_rows(Q, n_rows):
    kept = np.argsort(-np.linalg.norm(Q, axis=1), kind="stable")[:n_rows]
    E = np.zeros_like(Q)
    E[kept] = Q[kept]
    return E


def nearly_binary(entries, penalty):
    if penalty > 1:
        M = (entries > (penalty + 1) / 2).astype(float)
    else:
        M = np.where(entries < np.sqrt(penalty), 0.0, np.minimum(entries, 1.0))
    np.fill_diagonal(M, 1.0)
    return M


def released_program(X, S, n_selected, alpha, beta=0.5, max_iter=100):
    """The order Z, Y, L, M, multipliers; all start from zero."""
    F, n = np.ascontiguousarray(X.T), len(X)
    Y, Lam1 = np.zeros_like(F), np.zeros_like(F)
    M, Lam2 = np.zeros_like(S), np.zeros_like(S)
    values, V = np.zeros(0), np.zeros((n, 0))
    mu = 1e-6
    for _ in range(max_iter):
        HV = (V - V.mean(axis=0)) / (n - 1)
        dropped = F - Y - ((1 - beta) * (Y @ HV * values) @ HV.T - Lam1) / mu
        Z = F - keep_top_rows(dropped, len(F) - n_selected)
        Y = keep_top_rows(Z + ((1 - beta) * (Z @ HV * values) @ HV.T + Lam1) / mu, n_selected)
        kept = np.flatnonzero(Y.any(axis=1))
        left, right = (A[kept] - A[kept].mean(axis=1, keepdims=True) for A in (Y, Z))
        pull = (1 - beta) * rescale(left.T @ right / (n - 1) ** 2) + beta * S
        A = rescale((pull - Lam2) / mu + M)
        values, V = np.linalg.eigh((A + A.T) / 2)
        stay = np.flatnonzero(values > np.sqrt(2 * alpha / mu))[::-1]
        values, V = values[stay], V[:, stay]
        L = V * values @ V.T
        M = nearly_binary(L + Lam2 / mu, 2 * 0.005 / mu)
        if max(np.abs(Z - Y).max(), np.abs(L - M).max()) < 5e-7:
            break
        Lam1, Lam2 = Lam1 + mu * (Z - Y), Lam2 + mu * (L - M)
        mu = min(1.1 * mu, 1e10)
    return SimpleNamespace(Y=Y, L=L, rank=len(values))


RUNS = [
    (f"a{alpha}_b{beta}{suffix}", float(alpha), float(beta), 5 if suffix else 100)
    for alpha, beta, suffix in [
        ("0.01", "0.5", ""),
        ("0.001", "0.1", ""),
        ("0.0001", "0.5", ""),
        ("0.0001", "0.5", "_it5"),
    ]
]


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
@pytest.mark.parametrize(("key", "alpha", "beta", "n_iter"), RUNS, ids=[run[0] for run in RUNS])
def test_the_steps_are_those_of_the_authors_program(name, key, alpha, beta, n_iter):
    stored = fixture(f"dgufs_authors_{name}")
    n_selected = int(stored["n_select"])
    result = released_program(stored["X"], stored["S"], n_selected, alpha, beta, n_iter)
    Y, L = stored[f"Y_{key}"], stored[f"L_{key}"]
    # 100 times what another implementation reached; some of these runs diverge.
    assert np.abs(result.Y - Y).max() <= 1.2e-10 * np.abs(Y).max()
    assert np.abs(result.L - L).max() <= 1.1e-12 * max(1.0, np.abs(L).max())
    np.testing.assert_array_equal(result.Y.any(axis=1), Y.any(axis=1))
    if n_iter == 100:
        assert result.rank == stored[f"hist_{key}"][-1, 2]


@pytest.mark.parametrize("n_samples", [10, 127])
def test_with_few_samples_the_authors_program_takes_the_smallest_norms(n_samples):
    # n <= 1 + 12.6 sqrt(alpha): L never leaves zero, whatever the data.
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n_samples, 10)) * rng.uniform(0.5, 2.0, size=10) + rng.normal(size=10)
    result = released_program(X, ring_graph(n_samples).toarray(), 4, 100.0, 0.1)
    smallest = np.argsort(np.linalg.norm(X, axis=0))[:4]
    assert set(np.flatnonzero(result.Y.any(axis=1))) == set(smallest)
    assert result.rank == 0
