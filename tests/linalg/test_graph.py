"""Neighbour graphs against their definitions."""

import numpy as np
import pytest

from keepers.linalg.graph import (
    NeighbourList,
    degrees,
    graph_defect,
    heat_weights,
    laplacian,
    union_graph,
)

# Four samples on a line, at 0, 1, 3 and 7, each with its one nearest neighbour.
LINE = NeighbourList(np.array([[1], [0], [1], [2]]), np.array([[1.0], [1.0], [2.0], [4.0]]))


def test_an_edge_joins_two_samples_if_either_lists_the_other():
    expected = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    np.testing.assert_array_equal(union_graph(LINE).toarray(), expected)


def test_self_loops_put_ones_on_the_diagonal_and_cancel_in_the_laplacian():
    with_loops = union_graph(LINE, self_loops=True)
    np.testing.assert_array_equal(with_loops.diagonal(), np.ones(4))
    np.testing.assert_array_equal(degrees(with_loops), [2, 3, 3, 2])
    np.testing.assert_array_equal(
        laplacian(with_loops).toarray(), laplacian(union_graph(LINE)).toarray()
    )


def test_heat_weights_are_gaussian_in_the_distance():
    expected = [[np.exp(-1 / 8)], [np.exp(-1 / 8)], [np.exp(-4 / 8)], [np.exp(-16 / 8)]]
    np.testing.assert_allclose(heat_weights(LINE, 2.0), expected, rtol=1e-15)


def test_the_laplacian_measures_differences_along_edges():
    graph = union_graph(LINE, heat_weights(LINE, 2.0))
    f = np.array([2.0, -1.0, 0.5, 3.0])
    S = graph.toarray()
    by_pairs = 0.5 * np.sum(S * (f[:, np.newaxis] - f) ** 2)
    assert f @ (laplacian(graph) @ f) == pytest.approx(by_pairs, rel=1e-14)
    np.testing.assert_allclose(laplacian(graph) @ np.ones(4), 0.0, atol=1e-15)


def test_the_graph_is_symmetric():
    graph = union_graph(LINE, heat_weights(LINE, 2.0))
    assert abs(graph - graph.T).max() == 0.0


def test_weights_that_underflow_are_told_as_such():
    graph = union_graph(LINE, heat_weights(LINE, 1e-200))  # and no overflow warning on the way
    assert "underflow" in graph_defect(LINE, graph)
    assert "smallest 1" in graph_defect(LINE, graph)


def test_self_loops_do_not_hide_that_all_weights_vanished():
    graph = union_graph(LINE, heat_weights(LINE, 1e-3), self_loops=True)
    assert "underflow" in graph_defect(LINE, graph)


def test_isolated_samples_are_counted():
    graph = union_graph(LINE, heat_weights(LINE, 0.1))  # exp(-200), nothing for 4 / 0.1
    assert graph_defect(LINE, graph) == "1 of 4 samples have no neighbour of non-zero weight"


def test_samples_that_all_coincide_are_told():
    neighbours = NeighbourList(np.array([[1], [0], [3], [2]]), np.zeros((4, 1)))
    assert "coincide" in graph_defect(neighbours, union_graph(neighbours))


def test_equal_distances_are_told_as_ties():
    neighbours = NeighbourList(np.array([[1], [2], [3], [0]]), np.ones((4, 1)))
    assert "ties" in graph_defect(neighbours, union_graph(neighbours))


def test_a_complete_graph_with_equal_weights_is_not_called_a_tie():
    neighbours = NeighbourList(np.array([[1, 2], [0, 2], [0, 1]]), np.ones((3, 2)))
    assert "equally far from each other" in graph_defect(neighbours, union_graph(neighbours))


def test_a_sound_graph_has_no_defect():
    assert graph_defect(LINE, union_graph(LINE)) is None
