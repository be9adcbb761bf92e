"""Neighbour lists against all pairwise differences, and graphs against the published programs."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning, ParameterError
from keepers.methods import neighbours as module
from keepers.methods.neighbours import (
    _mean_distance,
    _Points,
    binary_graph,
    full_heat_graph,
    heat_graph,
    nearest_neighbours,
)
from shared_material import fixture


def all_distances(X):
    return np.sqrt(((X[:, np.newaxis] - X[np.newaxis]) ** 2).sum(axis=2))


def sorted_neighbours(X, n_neighbors):
    """By a stable sort of all distances, each sample put last in its own row."""
    distances = all_distances(X)
    np.fill_diagonal(distances, np.inf)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return indices, np.take_along_axis(distances, indices, axis=1)


def tables():
    rng = np.random.default_rng(0)
    return {
        "continuous": rng.standard_normal((120, 20)),
        "far from zero": rng.standard_normal((120, 20)) + 1e6,
        "whole numbers": rng.integers(0, 3, (150, 4)).astype(float),
        "zeros and ones": rng.integers(0, 2, (150, 30)).astype(float),
        "duplicates": np.repeat(rng.standard_normal((15, 17)), 9, axis=0),
        "one huge column": np.column_stack(
            [rng.standard_normal((100, 16)), 1e7 * rng.standard_normal(100)]
        ),
        "one far sample": np.vstack([rng.standard_normal((100, 16)), np.full((1, 16), 1e9)]),
    }


@pytest.fixture(params=["one table of distances", "searched"])
def route(request, monkeypatch):
    if request.param == "searched":
        monkeypatch.setattr(module, "BANDWIDTH_SAMPLES", 10)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("n_neighbors", [1, 99])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_neighbours_are_those_of_a_stable_sort_of_all_distances(name, n_neighbors, storage):
    X = tables()[name]
    found = nearest_neighbours(storage(X), n_neighbors)
    indices, distances = sorted_neighbours(X, n_neighbors)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_mean_distance_counts_the_zero_diagonal(storage):
    X = tables()["continuous"]
    rng = np.random.default_rng(0)
    assert _mean_distance(_Points(storage(X)), rng) == pytest.approx(
        all_distances(X).mean(), rel=1e-12
    )


def test_the_mean_distance_of_many_samples_is_that_of_some(monkeypatch):
    monkeypatch.setattr(module, "BANDWIDTH_SAMPLES", 60)
    X = tables()["continuous"]
    sampled = _mean_distance(_Points(X), np.random.default_rng(3))
    assert sampled == _mean_distance(_Points(X), np.random.default_rng(3))
    assert sampled == pytest.approx(all_distances(X).mean(), rel=0.1)
    assert sampled != _mean_distance(_Points(X), np.random.default_rng(4))


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_graphs_are_those_of_cais_program(name):
    stored = fixture(f"lapscore_cai_{name}")
    X, k, rng = stored["X"], int(stored["k"]), np.random.default_rng(0)
    assert _mean_distance(_Points(X), rng) == pytest.approx(float(stored["t"]), rel=1e-9)
    for graph, weights in (
        (heat_graph(X, k, None, rng), "W_heat"),
        (heat_graph(X, k, 1.0, rng), "W_heat_t1"),
        (binary_graph(X, k), "W_binary"),
        (binary_graph(X, k, self_loops=True), "W_binary_self"),
    ):
        np.testing.assert_allclose(graph.toarray(), stored[weights], atol=1e-9)


@pytest.mark.parametrize("name", ["mix", "digits"])
def test_graphs_with_self_loops_are_those_of_scikit_feature(name):
    stored = fixture(f"lapscore_skfeature_{name}")
    X, k, rng = stored["X"], int(stored["k"]), np.random.default_rng(0)
    heat = heat_graph(X, k, float(stored["t"]), rng, self_loops=True)
    np.testing.assert_allclose(heat.toarray(), stored["W_heat"], atol=1e-10)
    binary = binary_graph(X, k, self_loops=True)
    np.testing.assert_array_equal(binary.toarray(), stored["W_binary"])


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_graph_of_all_pairs_is_that_of_the_programs(name, storage):
    stored = fixture(f"u2fs_authors_{name}")
    found = full_heat_graph(storage(stored["X"]), None)
    np.testing.assert_allclose(found, stored["S"], atol=1e-10)
    rbf = fixture(f"spec_zhao_{name}")
    given = full_heat_graph(storage(rbf["X"]), float(rbf["t_rbf"]))
    np.testing.assert_allclose(given, rbf["S_rbf"] - np.eye(len(given)), atol=1e-10)


def test_a_degenerate_graph_of_all_pairs_warns_and_a_sound_one_does_not():
    X = tables()["continuous"]
    with pytest.warns(DataWarning, match="all heat weights underflow"):
        full_heat_graph(X, 1e-160)
    with pytest.warns(DataWarning, match="equally far"):
        full_heat_graph(np.eye(8), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        full_heat_graph(X, None)
    with pytest.raises(ParameterError, match="mean distance between samples is 0"):
        full_heat_graph(np.ones((5, 3)), None)


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_at_the_same_distance_but_for_rounding_go_by_index(seed):
    # Five samples at distance 0.3 from the first, in directions whose sums round differently.
    rng = np.random.default_rng(seed)
    steps = 0.1 * np.array([[3, 0, 0], [0, -3, 0], [2, 2, 1], [1, -2, 2], [-2, 1, -2]])
    X = 0.1 * np.ones((6, 3))
    X[1:] += steps[rng.permutation(5)]
    X *= 1 + 2e-16 * rng.choice([-1, 1], X.shape)
    assert sorted(nearest_neighbours(X, 3).indices[0]) == [1, 2, 3]
