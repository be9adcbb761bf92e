"""SPEC against hand cases, its definition by eigenvectors, and Zhao's program."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from keepers.solvers.laplacian_score import laplacian_scores
from keepers.solvers.spec import leading_energy, smoothness_scores, worst_score
from shared_material import fixture

PATH = sp.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
HAND = np.array([[-1.0, 1, 0], [0, 0, 0], [1, 1, 1]])
TABLES = ["mix", "digits", "blobs", "wide"]
STORAGES = pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_matrix])


def rng():
    return np.random.default_rng(0)


def random_graph(seed, n=20):
    generator = np.random.default_rng(seed)
    S = generator.uniform(size=(n, n)) * (generator.uniform(size=(n, n)) < 0.2)
    S = np.triu(S, 1) + np.diag(np.ones(n - 1), 1)
    return S + S.T


def spectrum(S, X):
    """Eigenvalues of the normalised Laplacian, and the shares a_i of the features: a row each."""
    D = S.sum(axis=1)
    values, vectors = np.linalg.eigh(np.eye(len(S)) - S / np.sqrt(np.outer(D, D)))
    F = np.sqrt(D)[:, np.newaxis] * X
    return values, ((F / np.linalg.norm(F, axis=0)).T @ vectors) ** 2


@STORAGES
@pytest.mark.parametrize("graph", [PATH, PATH.toarray()])
def test_three_samples_on_a_path_score_as_by_hand(storage, graph):
    X = storage(HAND)
    phi1 = smoothness_scores(graph, X, "phi1", _centred=False).scores
    np.testing.assert_allclose(phi1, [1, 1, 1], rtol=1e-14)
    np.testing.assert_allclose(smoothness_scores(graph, X).scores, [1, 2, 4 / 3], rtol=1e-14)
    phi3 = leading_energy(graph, X, 2, rng(), _centred=False).scores
    np.testing.assert_allclose(phi3, [1, 0, 0.5], atol=1e-14)


@given(seed=st.integers(0, 10_000), power=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_scores_are_the_sums_over_eigenvectors_of_the_definition(seed, power):
    S = random_graph(seed)
    X = np.random.default_rng(seed).standard_normal((20, 5)) + 0.5
    xi, a = spectrum(S, X)
    g = np.maximum(xi, 0.0) ** power
    phi1 = smoothness_scores(S, X, "phi1", power=power, _centred=False).scores
    np.testing.assert_allclose(phi1, a @ g, rtol=1e-9)
    phi2 = smoothness_scores(S, X, "phi2", power=power).scores
    np.testing.assert_allclose(phi2, (a[:, 1:] @ g[1:]) / (1 - a[:, 0]), rtol=1e-9)
    phi3 = leading_energy(S, X, 6, rng(), power=power, _centred=False).scores
    np.testing.assert_allclose(phi3, a[:, 1:6] @ (2.0**power - g[1:6]), rtol=1e-8)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_eigenvectors_together_leave_phi3_and_phi1_complementary(seed):
    S = random_graph(seed)
    X = np.random.default_rng(seed).standard_normal((20, 5))
    _, a = spectrum(S, X)
    np.testing.assert_allclose(a.sum(axis=1), 1.0, rtol=1e-12)
    phi1 = smoothness_scores(S, X, "phi1", _centred=False).scores
    phi3 = leading_energy(S, X, 20, rng(), _centred=False).scores
    np.testing.assert_allclose(phi3, 2 * (1 - a[:, 0]) - phi1, rtol=1e-10)
    assert np.all((phi1 >= 0) & (phi1 <= 2))


@STORAGES
def test_phi2_is_the_laplacian_score_and_phi1_of_centred_features_is_phi2(storage):
    S = sp.csr_array(random_graph(4))
    X = storage(np.random.default_rng(4).standard_normal((20, 6)) + 3.0)
    phi2 = smoothness_scores(S, X, "phi2").scores
    np.testing.assert_allclose(phi2, laplacian_scores(S, X).scores, rtol=1e-12)
    np.testing.assert_allclose(smoothness_scores(S, X, "phi1").scores, phi2, rtol=1e-12)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("mode", ["heat", "binary"])
def test_phi2_is_what_cais_program_calls_the_laplacian_score(name, mode):
    stored = fixture(f"lapscore_cai_{name}")
    graph = sp.csr_array(stored[f"W_{mode}"])
    found = smoothness_scores(graph, stored["X"], "phi2").scores
    np.testing.assert_allclose(found, stored[f"score_{mode}"].ravel(), atol=1.3e-10)


@pytest.mark.parametrize("kind", ["phi1", "phi2"])
@pytest.mark.parametrize("power", [1, 3])
def test_neither_unit_nor_offset_matters_to_phi1_and_phi2(kind, power):
    S = random_graph(5)
    X = np.random.default_rng(5).standard_normal((20, 6))
    before = smoothness_scores(S, X, kind, power=power).scores
    after = smoothness_scores(S, -3e5 * (X + np.arange(6) * 100), kind, power=power).scores
    np.testing.assert_allclose(after, before, rtol=1e-9)


@STORAGES
def test_neither_unit_nor_offset_matters_to_phi3(storage):
    S = random_graph(5)
    X = np.random.default_rng(5).standard_normal((20, 6))
    before = leading_energy(S, X, 4, rng()).scores
    after = leading_energy(S, storage(-3e5 * (X + np.arange(6) * 100)), 4, rng()).scores
    np.testing.assert_allclose(after, before, atol=1e-8)


@STORAGES
@pytest.mark.parametrize("power", [1, 2, 3])
def test_sparse_storage_changes_nothing(storage, power):
    S = sp.csr_array(random_graph(6, 60))
    generator = np.random.default_rng(6)
    X = generator.standard_normal((60, 30)) * (generator.uniform(size=(60, 30)) < 0.2)
    for graph in (S, S.toarray()):
        np.testing.assert_allclose(
            smoothness_scores(graph, storage(X), power=power).scores,
            smoothness_scores(S, X, power=power).scores,
            rtol=1e-10,
        )
        np.testing.assert_allclose(
            leading_energy(graph, storage(X), 5, rng(), power=power).scores,
            leading_energy(S, X, 5, rng(), power=power).scores,
            atol=1e-10,
        )


@STORAGES
def test_constant_features_hold_the_worst_score(storage):
    X = storage(np.column_stack([HAND, np.full(3, 7.0), np.zeros(3)]))
    for kind in ("phi1", "phi2"):
        result = smoothness_scores(PATH, X, kind, power=3)
        np.testing.assert_array_equal(result.flat, [False, False, False, True, True])
        # Exactly: assigned to flat features, not computed.
        np.testing.assert_array_equal(result.scores[3:], worst_score(kind, 3))
    assert worst_score("phi1", 3) == 8.0
    # Exactly: assigned.
    np.testing.assert_array_equal(leading_energy(PATH, X, 3, rng()).scores[3:], 0.0)


def test_a_graph_without_edges_gives_every_feature_the_worst_score():
    for graph in (sp.csr_array((3, 3)), np.zeros((3, 3))):
        np.testing.assert_array_equal(smoothness_scores(graph, HAND).scores, 2.0)
        np.testing.assert_array_equal(smoothness_scores(graph, HAND, power=3).scores, 8.0)
        np.testing.assert_array_equal(leading_energy(graph, HAND, 2, rng()).scores, 0.0)


@pytest.mark.parametrize("score", [smoothness_scores, lambda S, X: leading_energy(S, X, 2, rng())])
def test_negative_weights_are_refused(score):
    for graph in (-PATH, -PATH.toarray()):
        with pytest.raises(ValueError, match="weights of a graph must be >= 0; the smallest is -1"):
            score(graph, HAND)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("graph", ["knn", "rbf"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_phi1_and_phi2_are_those_of_zhaos_program(name, graph, store):
    stored = fixture(f"spec_zhao_{name}")
    S, X = store(stored[f"S_{graph}"]), stored["X"]
    # 100 times what another implementation reached.
    for power, ending, of_phi1, of_phi2 in (
        (1, "", 1.9e-13, 8.4e-13),
        (3, "_cubed", 1.6e-12, 1.6e-12),
    ):
        phi1 = smoothness_scores(S, X, "phi1", power=power, _centred=False).scores
        np.testing.assert_allclose(phi1, stored[f"phi1_{graph}{ending}"], rtol=0, atol=of_phi1)
        phi2 = smoothness_scores(S, X, "phi2", power=power).scores
        np.testing.assert_allclose(phi2, stored[f"phi2_{graph}{ending}"], rtol=0, atol=of_phi2)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("graph", ["knn", "rbf"])
def test_phi3_on_connected_graphs_is_that_of_zhaos_program(name, graph):
    stored = fixture(f"spec_zhao_{name}")
    keys = [key for key in stored if key.startswith("phi3_") and key.endswith(f"_{graph}")]
    connected = graph == "rbf" or int(stored["n_components_knn"]) == 1
    assert len(keys) == (3 if connected else 0)
    for key in keys:
        k = int(key.split("_")[1][1:])
        found = leading_energy(stored[f"S_{graph}"], stored["X"], k, rng(), _centred=False)
        np.testing.assert_allclose(found.scores, stored[key], rtol=0, atol=2e-11)


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


def test_the_first_terms_on_a_graph_in_pieces_are_the_share_between_them():
    S = sp.block_diag([random_graph(7, 9), random_graph(8, 12), random_graph(9, 6)]).toarray()
    piece = np.repeat([0, 1, 2], [9, 12, 6])
    X = np.random.default_rng(7).standard_normal((27, 4))
    D = S.sum(axis=1)
    X = X - D @ X / D.sum()
    between = sum((D[piece == c] @ X[piece == c]) ** 2 / D[piece == c].sum() for c in range(3)) / (
        D @ X**2
    )
    np.testing.assert_allclose(leading_energy(S, X, 3, rng()).scores, 2 * between, rtol=1e-10)


def svd_phi3(S, X, k):
    """As Zhao's program and scikit-feature do: singular vectors of Ln, the last one dropped."""
    D = S.sum(axis=1)
    _, values, vectors = np.linalg.svd(np.eye(len(S)) - S / np.sqrt(np.outer(D, D)))
    F = np.sqrt(D)[:, np.newaxis] * X
    a = (vectors @ (F / np.linalg.norm(F, axis=0))) ** 2
    return (2 - values[-k:-1]) @ a[-k:-1]


def test_published_programs_leave_phi3_of_a_graph_in_pieces_to_the_linear_algebra():
    stored = fixture("spec_zhao_mix")
    found = svd_phi3(stored["S_knn"], stored["X"], 4)
    np.testing.assert_allclose(found, stored["phi3_k4_knn"], atol=2e-11)
    stored = fixture("spec_zhao_blobs")
    S, X = stored["S_knn"], stored["X"]
    order = np.random.default_rng(1).permutation(len(X))
    change = svd_phi3(S[np.ix_(order, order)], X[order], 3) - svd_phi3(S, X, 3)
    assert np.abs(change).max() > 0.05


@pytest.mark.parametrize("name", ["mix", "blobs", "wide"])
def test_a_ranking_by_large_phi2_or_small_phi3_puts_informative_features_last(name):
    """The rule of scikit-feature, with the scores of Zhao's program."""
    stored = fixture(f"spec_zhao_{name}")
    informative = fixture(f"data_{name}")["informative"]
    k = int(stored["n_clusters"])
    backwards = {
        "phi2": np.argsort(stored["phi2_rbf"])[::-1],
        "phi3": np.argsort(stored[f"phi3_k{k}_rbf"]),
    }
    for order in backwards.values():
        last = order[-len(informative) :]
        assert np.isin(last, informative).sum() >= len(informative) - 2
        assert not np.isin(order[: len(informative)], informative).any()


def test_published_phi1_orders_shifted_columns_by_their_shift():
    stored = fixture("spec_zhao_mix")
    S, X = sp.csr_array(stored["S_knn"]), stored["X"]
    shifts = np.random.default_rng(0).permutation(np.linspace(0, 10, X.shape[1]))
    published = smoothness_scores(S, X + shifts, "phi1", _centred=False).scores
    assert spearmanr(published, shifts)[0] < -0.8
    np.testing.assert_allclose(
        smoothness_scores(S, X + shifts, "phi1").scores, stored["phi2_knn"], atol=8e-13
    )


def test_published_phi1_puts_a_constant_feature_first():
    stored = fixture("spec_zhao_mix")
    S = sp.csr_array(stored["S_knn"])
    constant = np.full(len(stored["X"]), 3.0)
    D = np.asarray(S.sum(axis=1)).ravel()
    published = (constant @ (D * constant) - constant @ (S @ constant)) / (
        constant @ (D * constant)
    )
    assert abs(published) < 1e-12 < stored["phi1_knn"].min()
