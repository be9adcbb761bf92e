"""DGUFS: exact selection by brute force, dense formulas, the authors' program."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.proximal import SpectralPart
from keepers.solvers.dgufs import (
    BlendedKernel,
    cluster_labels,
    kernel_is_dense,
    rescale,
    solve_admm,
    solve_bcd,
)
from shared_material import fixture


def ring_graph(n_samples, reach=2):
    steps = [np.roll(np.eye(n_samples), step, axis=1) for step in range(1, reach + 1)]
    return sp.csr_array(sum(steps) + sum(step.T for step in steps))


def centring(n_samples):
    return (np.eye(n_samples) - 1 / n_samples) / (n_samples - 1)


def scaled_by_hand(A):
    """R of the paper's program, entry by entry."""
    off = [A[i, j] for i in range(len(A)) for j in range(len(A)) if i != j]
    scaled = (A - min(off)) / (max(off) - min(off))
    return scaled - np.diag(np.diag(scaled))


def bcd(X, graph, n_selected, n_clusters, beta=0.5, max_iter=100):
    rng = np.random.default_rng(0)
    return solve_bcd(X, graph, n_selected, n_clusters, beta=beta, max_iter=max_iter, rng=rng)


def admm(X, graph, n_selected, alpha, beta=0.5, max_iter=100, **switches):
    options = {"alpha": alpha, "beta": beta, "max_iter": max_iter}
    return solve_admm(X, graph, n_selected, **options, **switches)


def chosen(result, n_selected):
    return np.sort(np.argsort(-result.scores, kind="stable")[:n_selected])


def test_rescaling_empties_the_diagonal_and_fills_the_unit_interval():
    A = np.array([[9.0, 1.0, 3.0], [2.0, -9.0, 5.0], [3.0, 4.0, 0.0]])
    expected = [[0.0, 0.0, 0.5], [0.25, 0.0, 1.0], [0.5, 0.75, 0.0]]
    np.testing.assert_allclose(rescale(A), expected)


def test_rescaling_equal_entries_gives_zero():
    np.testing.assert_array_equal(rescale(np.full((3, 3), 7.0)), np.zeros((3, 3)))
    np.testing.assert_array_equal(rescale(np.array([[1.0, 2.0], [2.0, 1.0]])), np.zeros((2, 2)))


def test_labels_name_the_eigenvector_in_which_a_sample_weighs_most():
    vectors = np.array([[0.8, 0.0], [-0.6, 0.0], [0.0, -1.0], [0.0, 0.0]])
    part = SpectralPart(np.array([4.0, 1.0]), vectors)
    np.testing.assert_array_equal(cluster_labels(part, 2), [0, 0, 1, 0])
    np.testing.assert_array_equal(cluster_labels(part, 1), [0, 0, 0, 0])


def test_the_zero_kernel_puts_all_samples_together():
    nothing = SpectralPart(np.zeros(0), np.zeros((3, 0)))
    np.testing.assert_array_equal(cluster_labels(nothing, 2), [0, 0, 0])


def test_the_blended_kernel_is_that_of_the_dense_formula():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(5, 23))
    Y -= Y.mean(axis=1, keepdims=True)
    graph = ring_graph(23)
    H = centring(23)
    expected = 0.3 * graph.toarray() + 0.7 * scaled_by_hand(H @ Y.T @ Y @ H)
    kernel = BlendedKernel(graph, Y, 0.3)
    np.testing.assert_allclose(kernel @ np.eye(23), expected, atol=1e-13)
    np.testing.assert_allclose(kernel @ Y[0], expected @ Y[0], atol=1e-13)


def test_the_extremes_of_the_kernel_are_found_across_blocks(monkeypatch):
    monkeypatch.setattr("keepers.solvers.dgufs._BLOCK_ENTRIES", 50)
    Y = np.random.default_rng(1).normal(size=(4, 17))
    entries = (Y.T @ Y)[~np.eye(17, dtype=bool)]
    kernel = BlendedKernel(ring_graph(17), Y, 0.5)
    assert kernel.low == pytest.approx(entries.min())
    assert kernel.weight == pytest.approx(0.5 / np.ptp(entries))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_selected", [1, 3, 5])
def test_no_other_subset_has_a_larger_dependence_on_the_kernel(seed, n_selected):
    X = np.random.default_rng(seed).normal(size=(20, 8))
    result = bcd(X, ring_graph(20), n_selected, 3)
    H = centring(20)
    HLH = H @ result.L.dense() @ H

    def dependence(columns):
        Y = X[:, list(columns)].T
        return np.trace(Y.T @ Y @ HLH)

    best = max(dependence(columns) for columns in combinations(range(8), n_selected))
    assert dependence(chosen(result, n_selected)) == pytest.approx(best, rel=1e-12)
    assert (result.scores >= 0).all()
    singles = [dependence([column]) for column in range(8)]
    np.testing.assert_allclose(result.scores, singles, rtol=1e-9)


@pytest.mark.parametrize("n_samples", [30, 260], ids=["dense", "lanczos"])
def test_a_settled_selection_reproduces_its_own_kernel(n_samples):
    assert kernel_is_dense(n_samples, 4) == (n_samples == 30)
    X = np.random.default_rng(2).normal(size=(n_samples, 10))
    graph = ring_graph(n_samples)
    result = bcd(X, graph, 4, 4)
    assert result.converged
    H = centring(n_samples)
    Y = X[:, chosen(result, 4)].T
    G = 0.5 * graph.toarray() + 0.5 * scaled_by_hand(H @ Y.T @ Y @ H)
    values, vectors = np.linalg.eigh(G)
    np.testing.assert_allclose(result.L.values, values[:-5:-1], rtol=1e-10)
    expected = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    np.testing.assert_allclose(result.L.dense(), expected, atol=1e-9)
    S, L = graph.toarray(), expected
    objective = -0.5 * np.trace(S @ L) - 0.5 * np.trace(Y.T @ Y @ H @ L @ H)
    assert result.objective[-1] == pytest.approx(objective)


def test_features_that_tell_the_clusters_apart_are_selected():
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(3), 20)
    X = rng.normal(size=(60, 15))
    X[:, [2, 7, 11]] += 4.0 * np.eye(3)[labels]
    same = labels[:, np.newaxis] == labels
    result = bcd(X, sp.csr_array(same & ~np.eye(60, dtype=bool), dtype=float), 3, 3)
    np.testing.assert_array_equal(chosen(result, 3), [2, 7, 11])


def test_large_means_do_not_change_the_selection():
    X = np.random.default_rng(4).normal(size=(40, 9))
    plain = bcd(X, ring_graph(40), 3, 3)
    moved = bcd(X + 1e7, ring_graph(40), 3, 3)
    np.testing.assert_allclose(moved.scores, plain.scores, rtol=1e-6)


def test_a_single_pass_is_reported_as_unsettled():
    X = np.random.default_rng(5).normal(size=(20, 6))
    result = bcd(X, ring_graph(20), 2, 2, max_iter=1)
    assert (result.n_iter, result.converged, result.period) == (1, False, 0)


def test_going_round_is_noticed(monkeypatch):
    # Three selections that follow each other for ever.
    wheel = [np.array([3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0]), np.array([2.0, 1.0, 3.0])]
    turns = iter(10 * wheel)
    monkeypatch.setattr("keepers.solvers.dgufs._alignment", lambda *_: next(turns))
    X = np.random.default_rng(6).normal(size=(12, 3))
    result = bcd(X, ring_graph(12), 1, 2)
    assert (result.n_iter, result.converged, result.period) == (4, False, 3)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 100.0])
def test_the_authors_iterates_keep_their_constraints(alpha):
    X = np.random.default_rng(7).normal(size=(30, 9))
    result = admm(X, ring_graph(30), 4, alpha)
    assert np.count_nonzero(result.Y.any(axis=1)) == 4
    assert np.count_nonzero((X.T - result.Z).any(axis=1)) <= 9 - 4
    L = result.L.dense()
    np.testing.assert_allclose(L, L.T, atol=1e-12)
    assert np.linalg.eigvalsh(L).min() >= -1e-10
    # Exactly: the diagonal is assigned.
    np.testing.assert_array_equal(np.diag(result.M), 1.0)


@pytest.mark.parametrize("n_samples", [10, 60, 127])
@pytest.mark.parametrize("beta", [0.1, 0.9])
def test_with_few_samples_the_authors_program_takes_the_smallest_norms(n_samples, beta):
    # n <= 1 + 12.6 sqrt(alpha): L never leaves zero, whatever the data.
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n_samples, 10)) * rng.uniform(0.5, 2.0, size=10) + rng.normal(size=10)
    result = admm(X, ring_graph(n_samples), 4, 100.0, beta)
    smallest = np.argsort(np.linalg.norm(X, axis=0))[:4]
    assert set(np.flatnonzero(result.Y.any(axis=1))) == set(smallest)
    assert result.L.rank == 0
    assert not result.converged


def test_a_runaway_is_stopped_unless_asked_not_to():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40, 8))
    stopped = admm(X, ring_graph(40), 3, 1e-4)
    assert stopped.diverged
    assert stopped.n_iter < 100
    left_alone = admm(X, ring_graph(40), 3, 1e-4, stop_runaway=False)
    assert not left_alone.diverged
    assert np.abs(left_alone.Y).max() > 1e6 * np.abs(X).max()


RUNS = [
    (f"a{alpha}_b{beta}{suffix}", float(alpha), float(beta), 5 if suffix else 100)
    for alpha, beta, suffix in [
        ("0.01", "0.5", ""),
        ("0.001", "0.1", ""),
        ("0.5", "0.9", ""),
        ("1", "0.5", ""),
        ("0.0001", "0.5", ""),
        ("0.001", "0.1", "_it5"),
        ("0.0001", "0.5", "_it5"),
    ]
]


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
@pytest.mark.parametrize(("key", "alpha", "beta", "n_iter"), RUNS, ids=[run[0] for run in RUNS])
def test_the_authors_program_is_reproduced_even_where_it_diverges(name, key, alpha, beta, n_iter):
    stored = fixture(f"dgufs_authors_{name}")
    graph, n_selected = sp.csr_array(stored["S"]), int(stored["n_select"])
    result = admm(stored["X"], graph, n_selected, alpha, beta, n_iter, stop_runaway=False)
    Y, L = stored[f"Y_{key}"], stored[f"L_{key}"]
    # 100 times what another implementation reached.
    assert np.abs(result.Y - Y).max() <= 1.2e-10 * np.abs(Y).max()
    assert np.abs(result.L.dense() - L).max() <= 1.1e-12 * max(1.0, np.abs(L).max())
    np.testing.assert_array_equal(result.Y.any(axis=1), Y.any(axis=1))
    if n_iter == 100:
        labels = cluster_labels(result.L, int(stored["n_clusters"]))
        np.testing.assert_array_equal(labels, stored[f"label_{key}"].ravel())
        assert result.L.rank == stored[f"hist_{key}"][-1, 2]


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
def test_the_unmodified_program_is_reproduced(name):
    stored = fixture(f"dgufs_authors_{name}")
    graph, n_selected = sp.csr_array(stored["S"]), int(stored["n_select"])
    result = admm(stored["X"], graph, n_selected, 10.0)
    np.testing.assert_allclose(result.Y, stored["Y_a10_b0_5_unmodified"], rtol=1.2e-10)


def test_the_informative_features_of_a_mixture_are_selected_exactly():
    stored = fixture("dgufs_authors_mix")
    informative = fixture("data_mix")["informative"]
    without_self = sp.csr_array(stored["S"] - np.eye(len(stored["S"])))
    result = bcd(stored["X"], without_self, len(informative), int(stored["n_clusters"]))
    np.testing.assert_array_equal(chosen(result, len(informative)), np.sort(informative))
    assert result.n_iter == 2
