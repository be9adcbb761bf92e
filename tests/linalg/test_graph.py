"""Neighbour graphs and reconstructions against their definitions and the authors' programs."""

import numpy as np
import pytest

from keepers.linalg.graph import (
    NeighbourList,
    graph_defect,
    heat_weights,
    laplacian,
    reconstruction_laplacian,
    reconstruction_weights,
    union_graph,
)
from keepers.linalg.ordering import nearest_by_distance
from keepers.linalg.scatter import row_sums
from keepers.methods.neighbours import nearest_neighbours
from shared_material import fixture

# Four samples on a line, at 0, 1, 3 and 7, each with its one nearest neighbour.
LINE = NeighbourList(np.array([[1], [0], [1], [2]]), np.array([[1.0], [1.0], [2.0], [4.0]]))


def test_an_edge_joins_two_samples_if_either_lists_the_other():
    expected = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(union_graph(LINE).toarray(), expected)


def test_self_loops_put_ones_on_the_diagonal_and_cancel_in_the_laplacian():
    with_loops = union_graph(LINE, self_loops=True)
    np.testing.assert_array_equal(with_loops.diagonal(), np.ones(4))
    np.testing.assert_array_equal(row_sums(with_loops), [2, 3, 3, 2])
    np.testing.assert_array_equal(
        laplacian(with_loops).toarray(), laplacian(union_graph(LINE)).toarray()
    )


def test_the_laplacian_measures_differences_along_edges():
    graph = union_graph(LINE, heat_weights(LINE, 2.0))
    f = np.array([2.0, -1.0, 0.5, 3.0])
    S = graph.toarray()
    by_pairs = 0.5 * np.sum(S * (f[:, np.newaxis] - f) ** 2)
    assert f @ (laplacian(graph) @ f) == pytest.approx(by_pairs, rel=1e-14)
    np.testing.assert_allclose(laplacian(graph) @ np.ones(4), 0.0, atol=1e-15)
    np.testing.assert_allclose(laplacian(S), laplacian(graph).toarray(), atol=1e-15)


def test_weights_that_underflow_are_told_as_such():
    graph = union_graph(LINE, heat_weights(LINE, 1e-200))  # and no overflow warning on the way
    assert "underflow" in graph_defect(graph, LINE)


def test_points_that_coincide_up_to_rounding_are_the_nearest_and_ties_go_to_the_first():
    squared = 0.5 * np.ones((4, 4))
    squared[:3, :3] = 0.0
    squared[0, 1] = squared[1, 0] = 1e-18
    assert nearest_by_distance(squared.copy(), 1)[:, 0].tolist() == [1, 0, 0, 0]
    assert np.sort(nearest_by_distance(squared, 2)[:3]).tolist() == [[1, 2], [0, 2], [0, 1]]


def test_isolated_samples_are_counted():
    graph = union_graph(LINE, heat_weights(LINE, 0.1))  # exp(-200), nothing for 4 / 0.1
    assert graph_defect(graph, LINE) == "1 of 4 samples have no neighbour of non-zero weight"


def test_equal_distances_are_told_as_ties():
    neighbours = NeighbourList(np.array([[1], [2], [3], [0]]), np.ones((4, 1)))
    assert "ties" in graph_defect(union_graph(neighbours), neighbours)


def test_defects_of_a_graph_of_all_pairs_are_told():
    pairs = np.ones((4, 4)) - np.eye(4)
    assert "every pair has the same weight" in graph_defect(pairs)
    assert "underflow" in graph_defect(1e-250 * pairs)
    apart = pairs * np.outer([1, 1, 1, 0], [1, 1, 1, 0])
    assert "1 of 4 samples" in graph_defect(apart)
    assert graph_defect(pairs + np.diag([0.5, 0, 0], 1) + np.diag([0.5, 0, 0], -1)) is None


DATA = ["mix", "digits", "blobs", "wide"]


def _weights(X, n_neighbors):
    return reconstruction_weights(X, nearest_neighbours(X, n_neighbors))


def _solved_one_by_one(X, indices):
    """The specification, sample by sample, through a constrained least-squares system."""
    n_samples, n_neighbors = indices.shape
    W = np.zeros((n_samples, n_samples))
    for i, listed in enumerate(indices):
        differences = X[listed] - X[i]
        bordered = np.ones((n_neighbors + 1, n_neighbors + 1))
        bordered[:-1, :-1] = differences @ differences.T
        bordered[-1, -1] = 0.0
        W[i, listed] = np.linalg.solve(bordered, np.eye(n_neighbors + 1)[-1])[:-1]
    return W


def test_the_weights_minimise_the_distance_to_the_sample_under_unit_sum():
    X = np.random.default_rng(0).normal(size=(40, 12))
    neighbours = nearest_neighbours(X, 5)
    expected = _solved_one_by_one(X, neighbours.indices)
    np.testing.assert_allclose(
        reconstruction_weights(X, neighbours).toarray(), expected, rtol=0, atol=1e-11
    )


def test_more_neighbours_than_features_are_regularised_by_a_thousandth_of_the_trace():
    X = np.array([[0.0], [1.0], [3.0]])
    W = _weights(X, 2).toarray()
    # Sample 0: differences (1, 3), G = [[1, 3], [3, 9]] + 0.01 I; G w = 1 by Cramer's rule.
    w = np.array([9.01 - 3.0, 1.01 - 3.0])
    np.testing.assert_allclose(W[0, 1:], w / w.sum(), rtol=1e-10)


def test_a_sample_that_coincides_with_all_its_neighbours_weighs_them_equally():
    W = _weights(np.zeros((4, 3)), 3).toarray()
    np.testing.assert_allclose(W, (1 - np.eye(4)) / 3, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", DATA)
def test_weights_are_those_of_the_authors_program(name):
    stored = fixture(f"rne_authors_{name}")
    W = _weights(stored["X"], int(stored["k"]))
    np.testing.assert_allclose(W.toarray(), stored["W_lle"], rtol=0, atol=3e-13)


@pytest.mark.parametrize("name", DATA)
def test_the_authors_residual_is_that_of_the_transposed_weights(name):
    stored = fixture(f"rne_authors_{name}")
    W = _weights(stored["X"], int(stored["k"]))
    released = stored["X"] - W.T @ stored["X"]
    np.testing.assert_allclose(released, stored["A_authors"], rtol=0, atol=1e-13)


def test_the_reconstruction_laplacian_measures_what_neighbours_cannot_rebuild():
    X = np.random.default_rng(4).standard_normal((30, 6))
    W = reconstruction_weights(X, nearest_neighbours(X, 4))
    L = reconstruction_laplacian(W).toarray()
    rest = X - W @ X
    np.testing.assert_allclose(X.T @ L @ X, rest.T @ rest, atol=1e-10)
    np.testing.assert_allclose(L.sum(axis=1), 0.0, atol=1e-10)
    assert np.linalg.eigvalsh(L).min() > -1e-10
