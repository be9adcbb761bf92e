"""LaplacianScore and SPEC against hand cases, their definitions, and published programs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from keepers import SPEC, LaplacianScore
from keepers.exceptions import ConvergenceWarning, DataWarning
from keepers.linalg import graph as graph_module
from keepers.methods.laplacian import laplacian_scores, leading_energy
from shared_material import fixture

PATH = sp.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
HAND = np.array([[-1.0, 1, 0], [0, 0, 0], [1, 1, 1]])
TABLES = ["mix", "digits", "blobs", "wide"]
CRITERIA = ["phi1", "phi2", "phi3"]
STORAGES = pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_matrix])


def rng():
    return np.random.default_rng(0)


def random_graph(seed, n=20):
    generator = np.random.default_rng(seed)
    S = generator.uniform(size=(n, n)) * (generator.uniform(size=(n, n)) < 0.2)
    S = np.triu(S, 1) + np.diag(np.ones(n - 1), 1)  # a chain through all samples
    return S + S.T


def table(seed=0, n=60, d=8, spread=8):
    """Three clusters that columns 0 to 2 tell apart; the rest is noise."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    X[:, :3] += spread * generator.standard_normal((3, 3))[generator.integers(0, 3, n)]
    return X


def spectrum(S, X):
    """Eigenvalues of the normalised Laplacian, and the shares a_i of the features: a row each."""
    D = S.sum(axis=1)
    values, vectors = np.linalg.eigh(np.eye(len(S)) - S / np.sqrt(np.outer(D, D)))
    F = np.sqrt(D)[:, np.newaxis] * X
    return values, ((F / np.linalg.norm(F, axis=0)).T @ vectors) ** 2


def off_trivial(S, X):
    """1 - a_1 of features as they are: phi1 and phi3 as published are ours times this."""
    D = np.asarray(S.sum(axis=1)).ravel()
    return 1.0 - (D @ X) ** 2 / (D.sum() * (D @ X**2))


# On a given graph


@STORAGES
@pytest.mark.parametrize("graph", [PATH, PATH.toarray()])
def test_three_samples_on_a_path_score_as_by_hand(storage, graph):
    X = storage(HAND)
    np.testing.assert_allclose(laplacian_scores(graph, X).scores, [1, 2, 4 / 3], rtol=1e-14)
    loops = graph + np.eye(3) if isinstance(graph, np.ndarray) else graph + sp.csr_array(np.eye(3))
    np.testing.assert_allclose(laplacian_scores(loops, X).scores, [0.5, 7 / 6, 0.7], rtol=1e-14)
    phi3 = leading_energy(graph, X, 2, rng()).scores * off_trivial(PATH, HAND)
    np.testing.assert_allclose(phi3, [1, 0, 0.5], atol=1e-14)


@given(seed=st.integers(0, 10_000), power=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_scores_are_the_sums_over_eigenvectors_of_the_definition(seed, power):
    S = random_graph(seed)
    X = np.random.default_rng(seed).standard_normal((20, 5)) + 0.5
    xi, a = spectrum(S, X)
    g = np.maximum(xi, 0.0) ** power
    phi2 = laplacian_scores(S, X, power).scores
    np.testing.assert_allclose(phi2, (a[:, 1:] @ g[1:]) / (1 - a[:, 0]), rtol=1e-9)
    phi3 = leading_energy(S, X, 6, rng(), power).scores * (1 - a[:, 0])
    np.testing.assert_allclose(phi3, a[:, 1:6] @ (2.0**power - g[1:6]), rtol=1e-8)


@STORAGES
@pytest.mark.parametrize("power", [1, 3])
def test_neither_unit_nor_offset_matters(storage, power):
    S = sp.csr_array(random_graph(5))
    X = np.random.default_rng(5).standard_normal((20, 6))
    other = storage(-3e5 * (X + np.arange(6) * 100))
    before, after = laplacian_scores(S, X, power).scores, laplacian_scores(S, other, power).scores
    np.testing.assert_allclose(after, before, rtol=1e-9)
    before, after = (leading_energy(S, Z, 4, rng(), power).scores for Z in (X, other))
    np.testing.assert_allclose(after, before, atol=1e-7)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_mean_a_hundred_million_times_the_spread_costs_no_more_than_its_digits(storage):
    graph = sp.csr_array(random_graph(0, 40))
    steps = rng().integers(-8, 9, (40, 5)).astype(float)  # exact beside the offset
    expected = laplacian_scores(graph, steps).scores
    found = laplacian_scores(graph, storage(steps + 1e8)).scores
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@STORAGES
def test_constant_features_hold_the_worst_score(storage):
    X = storage(np.column_stack([HAND, np.full(3, 7.0), np.zeros(3)]))
    for power in (1, 3):
        result = laplacian_scores(PATH, X, power)
        np.testing.assert_array_equal(result.flat, [False, False, False, True, True])
        # Exactly: assigned to flat features, not computed.
        np.testing.assert_array_equal(result.scores[3:], 2.0**power)
    np.testing.assert_array_equal(leading_energy(PATH, X, 3, rng()).scores[3:], 0.0)


@pytest.mark.parametrize("scale", [1e-150, 1e-15, 1e100])
def test_the_scale_of_the_weights_does_not_matter(scale):
    found = laplacian_scores(scale * PATH, HAND).scores
    np.testing.assert_allclose(found, [1, 2, 4 / 3], rtol=1e-14)


def test_a_graph_without_edges_gives_every_feature_the_worst_score():
    for graph in (sp.csr_array((3, 3)), np.zeros((3, 3))):
        for power in (1, 3):
            result = laplacian_scores(graph, HAND, power)
            np.testing.assert_array_equal(result.scores, 2.0**power)
            assert result.flat.all()
        np.testing.assert_array_equal(leading_energy(graph, HAND, 2, rng()).scores, 0.0)


@pytest.mark.parametrize("name", ["digits", "blobs", "wide"])
def test_on_a_graph_in_pieces_phi3_does_not_depend_on_the_order_of_the_samples(name):
    stored = fixture(f"spec_zhao_{name}")
    S, X = stored["S_knn"], stored["X"]
    pieces = int(stored["n_components_knn"])
    assert pieces > 1
    order = np.random.default_rng(1).permutation(len(X))
    for k in (2, pieces, pieces + 3):
        plain = leading_energy(sp.csr_array(S), X, k, rng())
        shuffled = leading_energy(sp.csr_array(S[np.ix_(order, order)]), X[order], k, rng())
        np.testing.assert_allclose(shuffled.scores, plain.scores, atol=1e-10)
        assert plain.n_pieces == pieces
        assert len(plain.eigenvalues) == max(k, pieces) - 1


# Published programs


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("mode", "parameters"),
    [
        ("heat", {}),
        ("heat_t1", {"bandwidth": 1.0}),
        ("binary", {"weights": "binary"}),
        ("binary_self", {"weights": "binary", "self_loops": True}),
    ],
)
def test_the_whole_fit_is_cais_program(name, mode, parameters):
    stored = fixture(f"lapscore_cai_{name}")
    selector = LaplacianScore(n_neighbors=int(stored["k"]), **parameters).fit(stored["X"])
    expected = stored[f"score_{mode}"].ravel()
    np.testing.assert_allclose(-selector.scores_, expected, atol=4e-9)


@pytest.mark.parametrize("name", ["mix", "digits"])
@pytest.mark.parametrize("mode", ["heat", "binary"])
def test_scores_are_those_of_scikit_feature(name, mode):
    stored = fixture(f"lapscore_skfeature_{name}")
    found = laplacian_scores(sp.csr_array(stored[f"W_{mode}"]), stored["X"]).scores
    np.testing.assert_allclose(found, stored[f"score_{mode}"], atol=1.3e-12)
    np.testing.assert_array_equal(np.argsort(found, kind="stable"), stored[f"ranking_{mode}"])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("graph", ["knn", "rbf"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_phi1_and_phi2_are_those_of_zhaos_program(name, graph, store):
    stored = fixture(f"spec_zhao_{name}")
    S, X = stored[f"S_{graph}"], stored["X"]
    # 100 times what another implementation reached.
    for power, ending, of_phi1, of_phi2 in (
        (1, "", 1.9e-13, 8.4e-13),
        (3, "_cubed", 1.6e-12, 1.6e-12),
    ):
        phi2 = laplacian_scores(store(S), X, power).scores
        np.testing.assert_allclose(phi2, stored[f"phi2_{graph}{ending}"], rtol=0, atol=of_phi2)
        phi1 = phi2 * off_trivial(S, X)
        np.testing.assert_allclose(phi1, stored[f"phi1_{graph}{ending}"], rtol=0, atol=of_phi1)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("graph", ["knn", "rbf"])
def test_phi3_on_connected_graphs_is_that_of_zhaos_program(name, graph):
    stored = fixture(f"spec_zhao_{name}")
    S, X = stored[f"S_{graph}"], stored["X"]
    keys = [key for key in stored if key.startswith("phi3_") and key.endswith(f"_{graph}")]
    connected = graph == "rbf" or int(stored["n_components_knn"]) == 1
    assert len(keys) == (3 if connected else 0)
    for key in keys:
        found = leading_energy(S, X, int(key.split("_")[1][1:]), rng()).scores * off_trivial(S, X)
        np.testing.assert_allclose(found, stored[key], rtol=0, atol=2e-11)


@pytest.mark.parametrize("name", TABLES)
def test_the_whole_fit_is_zhaos_program_on_the_default_graph(name):
    stored = fixture(f"spec_zhao_{name}")
    X = stored["X"]
    np.testing.assert_allclose(-SPEC().fit(X).scores_, stored["phi2_knn"], atol=4e-9)
    cubed = SPEC(power=3).fit(X)
    np.testing.assert_allclose(-cubed.scores_, stored["phi2_knn_cubed"], atol=4e-9)


# The selectors


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("graph", ["heat", "binary", "rbf"])
def test_higher_scores_are_better_and_find_the_columns_that_tell_clusters_apart(criterion, graph):
    selector = SPEC(3, criterion=criterion, graph=graph, n_clusters=3).fit(table(spread=3))
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [0, 1, 2])


def test_pairs_of_all_samples_are_weighted_by_the_heat_kernel():
    X = table(n=20)
    D2 = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    S = np.exp(-D2 / (2 * np.sqrt(D2).mean() ** 2)) - np.eye(20)
    D = np.diag(S.sum(axis=1))
    F = X - (D @ X).sum(axis=0) / D.sum()
    expected = np.diag(F.T @ (D - S) @ F) / np.diag(F.T @ D @ F)
    np.testing.assert_allclose(-SPEC(graph="rbf").fit(X).scores_, expected, rtol=1e-10)
    assert not np.allclose(-SPEC(graph="rbf", bandwidth=100.0).fit(X).scores_, expected)


def test_eigenvectors_that_do_not_converge_are_told(monkeypatch):
    monkeypatch.setattr(graph_module, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(graph_module, "MOST_RESTARTS", 1)
    line = np.column_stack([np.arange(900.0), rng().standard_normal(900)])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        selector = SPEC(1, criterion="phi3").fit(line)
    assert not selector.converged_


@pytest.mark.parametrize(
    "selector",
    [LaplacianScore(3, bandwidth=1e-3), SPEC(3, graph="rbf", bandwidth=1e-3)],
)
def test_a_bandwidth_far_below_the_distances_warns_and_ranks_nothing(selector):
    with pytest.warns(DataWarning, match="underflow"):
        selector.fit(table())
    np.testing.assert_array_equal(selector.scores_, -2.0)
