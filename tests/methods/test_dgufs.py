"""DGUFS: exact selection by brute force, dense formulas, planted features."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning
from keepers.methods.rivals.dgufs import (
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
    return solve_dgufs(
        X - X.mean(axis=0), graph, n_selected, n_clusters, beta=beta, max_iter=max_iter
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


@pytest.mark.parametrize("n_samples", [30, 260])
def test_a_converged_selection_reproduces_its_own_kernel(n_samples):
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


# The authors' program, on the same graph.


@pytest.mark.parametrize("name", ["mix", "blobs"])
def test_planted_features_are_kept_where_the_authors_program_keeps_the_smallest_norms(name):
    theirs, planted = fixture(f"dgufs_authors_{name}"), fixture(f"data_{name}")["informative"]
    X, n_selected = theirs["X"], int(theirs["n_select"])
    result = solve(X, sp.csr_array(theirs["S"]), n_selected, int(theirs["n_clusters"]))
    assert set(planted) <= set(chosen(result, n_selected))
    kept_by_theirs = np.flatnonzero(theirs["Y_a0.01_b0.5"].any(axis=1))  # features are rows of Y
    smallest = np.argsort(np.linalg.norm(X, axis=0))[:n_selected]
    assert set(kept_by_theirs) == set(smallest)
    assert not set(planted) <= set(kept_by_theirs)
