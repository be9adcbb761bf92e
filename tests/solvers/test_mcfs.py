"""MCFS against its own equations and Cai's program."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers.linalg import graph_spectrum as module
from keepers.linalg.graph import degrees, laplacian
from keepers.selectors.neighbours import heat_graph
from keepers.solvers.mcfs import embed, solve_mcfs
from shared_material import fixture


def rng():
    return np.random.default_rng(0)


def blobs(n_pieces, seed=0):
    """Graph of clusters too far apart to be joined, of clearly different volumes."""
    generator = np.random.default_rng(seed)
    sizes = [20 + 11 * i for i in range(n_pieces)]
    X = np.vstack([generator.standard_normal((n, 8)) + 100.0 * i for i, n in enumerate(sizes)])
    X = X[generator.permutation(len(X))]
    return X, heat_graph(X, 5, None, generator)


@pytest.fixture(params=["dense", "lanczos"])
def eigensolver(request, monkeypatch):
    if request.param == "lanczos":
        monkeypatch.setattr(module, "DENSE_SAMPLES", 0)


@pytest.mark.usefixtures("eigensolver")
@pytest.mark.parametrize("n_pieces", [1, 3, 8])
def test_the_embedding_solves_the_eigenproblem_of_the_graph(n_pieces):
    _, graph = blobs(n_pieces)
    found = embed(graph, 5, rng())
    D, Y = degrees(graph), found.Y
    assert Y.shape[1] == 5
    assert found.n_pieces == n_pieces
    assert found.converged
    np.testing.assert_allclose(Y.T @ (D[:, np.newaxis] * Y), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(
        laplacian(graph) @ Y, D[:, np.newaxis] * Y * (1 - found.mu), atol=1e-9
    )
    np.testing.assert_allclose(D @ Y, 0.0, atol=1e-9)  # nothing of the trivial vector
    L, diagonal = laplacian(graph).toarray(), np.diag(D)
    smallest = eigh(L, diagonal, eigvals_only=True, subset_by_index=[1, 5])
    np.testing.assert_allclose(1 - found.mu, smallest, atol=1e-9)


@pytest.mark.usefixtures("eigensolver")
def test_a_disconnected_graph_has_one_embedding_however_the_samples_are_ordered():
    X, graph = blobs(3)
    order = np.random.default_rng(5).permutation(len(X))
    shuffled = sp.csr_array(graph.toarray()[np.ix_(order, order)])
    plain = solve_mcfs(X, embed(graph, 5, rng()).Y, [4], 1e-3)[0].scores
    again = solve_mcfs(X[order], embed(shuffled, 5, rng()).Y, [4], 1e-3)[0].scores
    np.testing.assert_allclose(again, plain, atol=1e-8)


def test_the_first_columns_are_constant_on_the_pieces_and_part_off_the_largest_first():
    X, graph = blobs(3)
    D = degrees(graph)
    piece = np.round(X.mean(axis=1) / 100).astype(int)
    Y = embed(graph, 2, rng()).Y
    for column in Y.T:
        for label in range(3):
            assert np.ptp(column[piece == label]) < 1e-10
    volumes = np.array([D[piece == label].sum() for label in range(3)])
    largest = int(np.argmax(volumes))
    # Gram-Schmidt of the largest indicator against the constant: one value inside, one outside.
    outside = [Y[piece == label][0, 0] for label in range(3) if label != largest]
    assert outside[0] == pytest.approx(outside[1], rel=1e-9)


def test_samples_without_edges_stay_at_zero():
    X, graph = blobs(1)
    n = len(X)
    padded = sp.csr_array(sp.block_diag([graph, sp.csr_array((2, 2))]))
    found = embed(padded, 3, rng())
    np.testing.assert_array_equal(found.Y[n:], 0.0)
    assert found.n_pieces == 1
    np.testing.assert_allclose(found.mu, embed(graph, 3, rng()).mu, atol=1e-10)


@pytest.mark.usefixtures("eigensolver")
def test_a_graph_without_weights_has_no_embedding_and_all_scores_are_zero():
    found = embed(sp.csr_array((30, 30)), 3, rng())
    assert found.Y.shape == (30, 0)
    result = solve_mcfs(np.random.default_rng(0).standard_normal((30, 4)), found.Y, [2], 1e-3)[0]
    # Exactly: no regression was run.
    np.testing.assert_array_equal(result.scores, np.zeros(4))


def test_each_regression_has_the_cardinality_and_length_one():
    X, graph = blobs(1)
    result = solve_mcfs(X, embed(graph, 4, rng()).Y, [5], 1e-3)[0]
    np.testing.assert_array_equal(np.count_nonzero(result.coef, axis=1), 5)
    np.testing.assert_allclose(np.linalg.norm(result.coef, axis=1), 1.0, rtol=1e-14)
    # Exactly: one of the numbers, not a sum of them.
    np.testing.assert_array_equal(result.scores, np.abs(result.coef).max(axis=0))
    assert result.n_short == 0


def test_signs_of_the_embedding_do_not_matter():
    X, graph = blobs(1)
    Y = embed(graph, 4, rng()).Y
    flipped = solve_mcfs(X, Y * [1, -1, -1, 1], [5], 1e-3)[0].scores
    np.testing.assert_allclose(flipped, solve_mcfs(X, Y, [5], 1e-3)[0].scores, rtol=1e-12)


def test_orthonormal_features_are_chosen_by_their_products_with_the_embedding():
    generator = np.random.default_rng(1)
    Q = np.linalg.qr(generator.standard_normal((50, 12)))[0]
    y = generator.standard_normal((50, 1))
    result = solve_mcfs(Q, y, [4], 0.0)[0]
    expected = np.argsort(-np.abs(Q.T @ y[:, 0]))[:4]
    assert set(np.flatnonzero(result.scores)) == set(expected)


def test_paths_that_end_early_are_counted():
    generator = np.random.default_rng(1)
    result = solve_mcfs(
        generator.standard_normal((6, 20)), generator.standard_normal((6, 3)), [10], 0.0
    )[0]
    assert result.n_short == 3


def test_cais_program_is_reproduced_from_the_data_on_a_connected_graph():
    stored = fixture("mcfs_cai_mix")
    X, k = stored["X"], int(stored["k"])
    graph = heat_graph(X, k, None, rng())
    np.testing.assert_allclose(graph.toarray(), stored["W"], atol=1e-9)
    Y = embed(graph, int(stored["n_eig"]), rng()).Y
    signs = np.sign(np.sum(Y * stored["Y"], axis=0))
    np.testing.assert_allclose(Y * signs, stored["Y"], atol=1e-9)
    for m in (5, 10, 15):
        result = solve_mcfs(X, Y, [m], 1e-3)[0]
        np.testing.assert_allclose(result.coef.T * signs, stored[f"coef_{m}"], atol=1e-8)
        np.testing.assert_array_equal(
            np.argsort(-result.scores, kind="stable")[:m], stored[f"sel_{m}"].ravel()
        )
    result = solve_mcfs(X, embed(graph, 4, rng()).Y, [8], 1e-3)[0]
    np.testing.assert_array_equal(
        np.argsort(-result.scores, kind="stable")[:8], stored["sel_8_neig4"].ravel()
    )


@pytest.mark.parametrize(
    ("name", "sizes"), [("mix", (5, 10, 15)), ("digits", (10, 15)), ("wide", (5, 10, 15))]
)
def test_regressions_on_a_given_embedding_are_those_of_cais_program(name, sizes):
    stored = fixture(f"mcfs_cai_{name}")
    for m in sizes:
        result = solve_mcfs(stored["X"], stored["Y"], [m], 1e-3)[0]
        np.testing.assert_allclose(result.coef.T, stored[f"coef_{m}"], atol=4e-12)
        np.testing.assert_array_equal(
            np.argsort(-result.scores, kind="stable")[:m], stored[f"sel_{m}"].ravel()
        )


def test_more_non_zeros_than_samples_are_those_of_cais_program():
    stored = fixture("mcfs_cai_wide_largecard")
    for m in (30, 60):
        result = solve_mcfs(stored["X"], stored["Y"], [m], 1e-3)[0]
        np.testing.assert_array_equal(np.count_nonzero(result.coef, axis=1), m)
        np.testing.assert_allclose(result.coef.T, stored[f"coef_{m}"], atol=3.4e-9)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
def test_sparse_storage_changes_nothing(storage):
    X, graph = blobs(1)
    X = X * (np.abs(X) > 0.5)
    Y = embed(graph, 4, rng()).Y
    np.testing.assert_allclose(
        solve_mcfs(storage(X), Y, [4], 1e-3)[0].scores,
        solve_mcfs(X, Y, [4], 1e-3)[0].scores,
        atol=1e-11,
    )
