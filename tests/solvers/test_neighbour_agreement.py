"""Agreement of the neighbours of some columns with a graph."""

import itertools

import numpy as np

from keepers.linalg.graph import nearest_in_cloud, union_graph
from keepers.linalg.moments import column_moments
from keepers.linalg.unit_free import UnitFreeColumns
from keepers.solvers.neighbour_agreement import growing_counts, neighbour_agreement


def test_columns_that_made_the_graph_agree_with_it_and_noise_does_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    X /= X.std(axis=0)
    columns = UnitFreeColumns(X, column_moments(X))
    graph = union_graph(nearest_in_cloud(X[:, :3], 5))
    own, noise = neighbour_agreement(columns, [np.arange(3), np.arange(3, 8)], graph, 5)
    # Every sample has at least five neighbours of weight 1, and names five of them.
    assert own == 1.0
    # A pair of samples is joined with probability of about 1.5 * 5 / 119.
    assert noise < 0.15


def test_heavier_edges_count_more():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    columns = UnitFreeColumns(X, column_moments(X))
    graph = union_graph(nearest_in_cloud(X, 1))  # 0-1, 1-2, 2-3
    graph = graph + 2 * union_graph(nearest_in_cloud(np.array([[0.0], [5.0], [4.0], [0.1]]), 1))
    # Sample 0 names 1 (weight 1 of 2, its best is 3), 1 names 0 (1 of 3), 2 names 1 (3 of 3),
    # 3 names 2 (1 of 2).
    found = neighbour_agreement(columns, [np.array([0])], graph, 1)
    np.testing.assert_allclose(found, [(1 + 1 + 3 + 1) / (2 + 3 + 3 + 2)])


def test_counts_grow_by_a_quarter_up_to_the_most():
    assert growing_counts(3) == [3]
    counts = growing_counts(200)
    assert counts[0] == 5
    assert counts[-1] == 200
    assert all(1 < later / earlier <= 1.34 for earlier, later in itertools.pairwise(counts))
