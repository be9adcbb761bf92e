"""The Laplacian score against hand cases, its properties, and two published programs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers.solvers.laplacian_score import laplacian_scores
from shared_material import fixture

PATH = sp.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
HAND = np.array([[-1.0, 1, 0], [0, 0, 0], [1, 1, 1]])


def random_graph(rng, n):
    S = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.2)
    S = np.triu(S, 1) + np.diag(np.ones(n - 1), 1)  # a chain through all samples
    return sp.csr_array(S + S.T)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_three_samples_on_a_path_score_as_by_hand(storage):
    scores = laplacian_scores(PATH, storage(HAND)).scores
    np.testing.assert_allclose(scores, [1, 2, 4 / 3], rtol=1e-15)
    with_loops = laplacian_scores(PATH + sp.csr_array(np.eye(3)), storage(HAND)).scores
    np.testing.assert_allclose(with_loops, [0.5, 7 / 6, 0.7], rtol=1e-14)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_scores_are_the_quotient_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    S = random_graph(rng, 20).toarray()
    X = rng.standard_normal((20, 6))
    D = np.diag(S.sum(axis=1))
    expected = []
    for f in X.T:
        f_tilde = f - (f @ D @ np.ones(20)) / D.sum()
        expected.append((f_tilde @ (D - S) @ f_tilde) / (f_tilde @ D @ f_tilde))
    found = laplacian_scores(sp.csr_array(S), X)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert not found.flat.any()
    assert np.all((found.scores >= 0) & (found.scores <= 2))


@given(seed=st.integers(0, 10_000), unit=st.floats(1e-6, 1e6), offset=st.floats(-1e3, 1e3))
@settings(max_examples=30, deadline=None)
def test_scores_depend_on_neither_unit_nor_offset(seed, unit, offset):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 25)
    X = rng.standard_normal((25, 4))
    before = laplacian_scores(graph, X).scores
    np.testing.assert_allclose(
        laplacian_scores(graph, -unit * (X + offset)).scores, before, rtol=1e-9
    )


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_mean_a_hundred_million_times_the_spread_costs_no_more_than_its_digits(storage):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 40)
    steps = rng.integers(-8, 9, (40, 5)).astype(float)  # exact beside the offset
    expected = laplacian_scores(graph, steps).scores
    found = laplacian_scores(graph, storage(steps + 1e8)).scores
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_scores_follow_the_samples_when_they_are_relabelled():
    rng = np.random.default_rng(1)
    graph, X, order = random_graph(rng, 30), rng.standard_normal((30, 5)), rng.permutation(30)
    relabelled = sp.csr_array(graph.toarray()[np.ix_(order, order)])
    np.testing.assert_allclose(
        laplacian_scores(relabelled, X[order]).scores,
        laplacian_scores(graph, X).scores,
        rtol=1e-12,
    )


def test_a_feature_constant_on_every_piece_of_the_graph_scores_zero():
    graph = sp.csr_array(sp.block_diag([PATH, PATH]))
    X = np.repeat([[3.0], [-4.0]], 3, axis=0)
    np.testing.assert_allclose(laplacian_scores(graph, X).scores, 0.0, atol=1e-15)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_constant_feature_gets_the_worst_score(storage):
    X = np.column_stack([HAND, np.full(3, 7.0), np.zeros(3)])
    result = laplacian_scores(PATH, storage(X))
    np.testing.assert_array_equal(result.flat, [False, False, False, True, True])
    # Exactly: assigned to flat features, not computed.
    np.testing.assert_array_equal(result.scores[3:], 2.0)


@pytest.mark.parametrize("scale", [1e-150, 1e-15, 1e100])
def test_the_scale_of_the_weights_does_not_matter(scale):
    np.testing.assert_allclose(
        laplacian_scores(scale * PATH, HAND).scores, [1, 2, 4 / 3], rtol=1e-14
    )


def test_a_graph_without_edges_gives_every_feature_the_worst_score():
    result = laplacian_scores(sp.csr_array((3, 3)), HAND)
    np.testing.assert_array_equal(result.scores, 2.0)
    assert result.flat.all()


@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
def test_sparse_storage_changes_nothing(density, storage):
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 60)
    X = rng.standard_normal((60, 40)) * (rng.uniform(size=(60, 40)) < density)
    np.testing.assert_allclose(
        laplacian_scores(graph, storage(X)).scores, laplacian_scores(graph, X).scores, rtol=1e-10
    )


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
@pytest.mark.parametrize("mode", ["heat", "heat_t1", "binary", "binary_self"])
def test_scores_are_those_of_cais_program(name, mode):
    stored = fixture(f"lapscore_cai_{name}")
    found = laplacian_scores(sp.csr_array(stored[f"W_{mode}"]), stored["X"]).scores
    np.testing.assert_allclose(found, stored[f"score_{mode}"].ravel(), atol=1.3e-10)


@pytest.mark.parametrize("name", ["mix", "digits"])
@pytest.mark.parametrize("mode", ["heat", "binary"])
def test_scores_are_those_of_scikit_feature(name, mode):
    stored = fixture(f"lapscore_skfeature_{name}")
    found = laplacian_scores(sp.csr_array(stored[f"W_{mode}"]), stored["X"]).scores
    np.testing.assert_allclose(found, stored[f"score_{mode}"], atol=1.3e-12)
    np.testing.assert_array_equal(np.argsort(found, kind="stable"), stored[f"ranking_{mode}"])
