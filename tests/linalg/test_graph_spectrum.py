"""Leading eigenvectors of a graph against SciPy's dense solver, sparse and dense, in pieces."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers.linalg import graph as graphs
from keepers.linalg.graph import leading_eigenvectors


def rng():
    return np.random.default_rng(0)


def random_graph(sizes, seed=0):
    """One connected piece of each size, in one order of the samples."""
    generator = np.random.default_rng(seed)
    blocks = []
    for n in sizes:
        S = generator.uniform(size=(n, n)) * (generator.uniform(size=(n, n)) < 0.3)
        S = np.triu(S, 1) + np.diag(np.ones(n - 1), 1)
        blocks.append(S + S.T)
    return sp.block_diag(blocks).toarray()


def normalised(S):
    D = S.sum(axis=1)
    return S / np.sqrt(np.outer(D, D)), D


@pytest.fixture(params=["dense", "lanczos"], autouse=True)
def eigensolver(request, monkeypatch):
    if request.param == "lanczos":
        monkeypatch.setattr(graphs, "DENSE_SAMPLES", 0)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("sizes", [[40], [30, 20], [25, 18, 11]])
def test_pairs_are_those_of_the_normalised_graph_but_the_trivial_one(storage, sizes):
    S = random_graph(sizes)
    found = leading_eigenvectors(storage(S), 6, rng())
    N, D = normalised(S)
    values = eigh(N, eigvals_only=True)[::-1]
    np.testing.assert_allclose(found.mu, values[1:7], atol=1e-9)
    np.testing.assert_allclose(N @ found.vectors, found.mu * found.vectors, atol=1e-8)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(np.sqrt(D) @ found.vectors, 0.0, atol=1e-8)
    assert found.n_pieces == len(sizes)
    assert found.converged


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_whole_pieces_adds_the_vectors_that_a_smaller_number_would_cut_off(storage):
    S = storage(random_graph([12, 10, 9, 8]))
    assert leading_eigenvectors(S, 1, rng()).vectors.shape == (39, 1)
    found = leading_eigenvectors(S, 1, rng(), whole_pieces=True)
    np.testing.assert_allclose(found.mu, np.ones(3))
    assert leading_eigenvectors(S, 5, rng(), whole_pieces=True).vectors.shape == (39, 5)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_sample_without_an_edge_has_zeros_and_is_no_piece(storage):
    S = np.zeros((31, 31))
    S[:30, :30] = random_graph([30])
    found = leading_eigenvectors(storage(S), 3, rng())
    assert found.n_pieces == 1
    np.testing.assert_allclose(found.vectors[30], 0.0, atol=1e-9)
    assert found.inverse_root_degrees[30] == 0.0


def test_a_graph_without_edges_has_no_vectors():
    found = leading_eigenvectors(np.zeros((5, 5)), 3, rng())
    assert found.vectors.shape == (5, 0)
    assert found.n_pieces == 0
