"""What the selector adds to SPEC."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPEC, LaplacianScore
from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.linalg import graph_spectrum
from shared_material import fixture

CRITERIA = ["phi1", "phi2", "phi3"]


def table(seed=0, n=60, d=8):
    """Three clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 3 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_the_whole_fit_is_zhaos_program_on_the_default_graph(name):
    stored = fixture(f"spec_zhao_{name}")
    X = stored["X"]
    np.testing.assert_allclose(SPEC().fit(X).phi_, stored["phi2_knn"], atol=4e-9)
    cubed = SPEC(power=3).fit(X)
    np.testing.assert_allclose(cubed.phi_, stored["phi2_knn_cubed"], atol=4e-9)


def test_the_whole_fit_of_phi3_is_zhaos_program_for_columns_of_weighted_mean_zero():
    stored = fixture("spec_zhao_mix")
    X, S = stored["X"], stored["S_knn"]
    D = S.sum(axis=1)
    root = np.sqrt(D)[:, np.newaxis]
    trivial = root / np.linalg.norm(root)
    F = root * X / np.linalg.norm(root * X, axis=0)
    off_trivial = 1 - (F.T @ trivial).ravel() ** 2
    found = SPEC(criterion="phi3", n_clusters=4).fit(X)
    np.testing.assert_allclose(found.phi_, stored["phi3_k4_knn"] / off_trivial, atol=4e-9)
    assert found.n_clusters_ == 4


def test_the_default_is_the_laplacian_score():
    X = table()
    np.testing.assert_allclose(SPEC().fit(X).scores_, LaplacianScore().fit(X).scores_, rtol=1e-12)
    binary = LaplacianScore(weights="binary").fit(X)
    np.testing.assert_allclose(SPEC(graph="binary").fit(X).scores_, binary.scores_, rtol=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("graph", ["heat", "binary", "rbf"])
def test_higher_scores_are_better_and_find_the_columns_that_tell_clusters_apart(criterion, graph):
    selector = SPEC(3, criterion=criterion, graph=graph, n_clusters=3).fit(table())
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [0, 1, 2])
    sign = 1 if criterion == "phi3" else -1
    np.testing.assert_array_equal(selector.scores_, sign * selector.phi_)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_neither_unit_nor_offset_of_a_column_matters_on_its_graph(criterion):
    X = np.column_stack([table(), table()[:, 0]])
    X[:, 8] = -1e-4 * (X[:, 8] + 1e5)  # too small to change the neighbours
    scores = SPEC(criterion=criterion, n_clusters=3).fit(X).scores_
    assert scores[8] == pytest.approx(scores[0], rel=1e-6)


@pytest.mark.parametrize(("criterion", "worst"), [("phi1", -8.0), ("phi2", -8.0), ("phi3", 0.0)])
def test_constant_columns_hold_the_worst_score_there_is(criterion, worst):
    X = table()
    X[:, 4] = 7.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = SPEC(3, criterion=criterion, power=3).fit(X)
    assert selector.scores_[4] == worst
    assert selector.ranking_[4] == 8


def test_pairs_of_all_samples_are_weighted_by_the_heat_kernel():
    X = table(n=20)
    D2 = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    S = np.exp(-D2 / (2 * np.sqrt(D2).mean() ** 2)) - np.eye(20)
    D = np.diag(S.sum(axis=1))
    F = X - (D @ X).sum(axis=0) / D.sum()
    expected = np.diag(F.T @ (D - S) @ F) / np.diag(F.T @ D @ F)
    np.testing.assert_allclose(SPEC(graph="rbf").fit(X).phi_, expected, rtol=1e-10)
    wide = SPEC(graph="rbf", bandwidth=100.0).fit(X)
    assert not np.allclose(wide.phi_, expected)


def test_fewer_clusters_than_pieces_of_the_graph_are_raised_with_both_numbers():
    noise = np.random.default_rng(0).standard_normal((120, 8))
    X = noise + 1000 * np.repeat(np.arange(4), 30)[:, np.newaxis]
    with pytest.warns(DataWarning, match=r"n_clusters=2 is below .* pieces of the graph, 4"):
        selector = SPEC(criterion="phi3", n_clusters=2).fit(X)
    assert selector.n_clusters_ == 4
    np.testing.assert_allclose(selector.eigenvalues_, 0.0, atol=1e-12)
    order = np.random.default_rng(0).permutation(len(X))
    with pytest.warns(DataWarning, match="pieces"):
        again = SPEC(criterion="phi3", n_clusters=2).fit(X[order])
    np.testing.assert_allclose(again.scores_, selector.scores_, atol=1e-10)


def test_more_clusters_than_samples_are_lowered_with_a_warning():
    with pytest.warns(DataWarning, match="n_clusters=9 needs as many samples; X has 7"):
        SPEC(criterion="phi3", n_clusters=9, n_neighbors=3).fit(table(n=7))


def test_eigenvectors_that_do_not_converge_are_told(monkeypatch):
    monkeypatch.setattr(graph_spectrum, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(graph_spectrum, "MOST_RESTARTS", 1)
    line = np.column_stack([np.arange(900.0), np.random.default_rng(0).standard_normal(900)])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        selector = SPEC(1, criterion="phi3").fit(line)
    assert not selector.converged_


def test_the_seed_decides_nothing_that_shows():
    X = table(n=500)
    scores = [SPEC(criterion="phi3", random_state=seed).fit(X).scores_ for seed in (0, 1)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-8)


def test_all_pairs_past_the_memory_of_the_machine_are_refused_with_the_number(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1000.0)
    with pytest.raises(DataError, match=r"SPEC needs about .* three 60 x 60 matrices"):
        SPEC(graph="rbf").fit(table())
    SPEC().fit(table())


@pytest.mark.parametrize("graph", ["heat", "rbf"])
def test_a_bandwidth_far_below_the_distances_warns_and_ranks_nothing(graph):
    with pytest.warns(DataWarning, match="underflow"):
        selector = SPEC(3, graph=graph, bandwidth=1e-3).fit(table())
    np.testing.assert_array_equal(selector.scores_, -2.0)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("graph", ["heat", "rbf"])
def test_sparse_storage_changes_nothing(storage, criterion, graph):
    X = table() * (np.random.default_rng(1).uniform(size=(60, 8)) < 0.5)
    settings = {"criterion": criterion, "graph": graph, "power": 2}
    np.testing.assert_allclose(
        SPEC(**settings).fit(storage(X)).scores_, SPEC(**settings).fit(X).scores_, atol=1e-9
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "phi4"}, "criterion must be one of 'phi1', 'phi2', 'phi3'; got 'phi4'"),
        ({"criterion": "phi3", "n_clusters": 1}, "n_clusters must be an integer >= 2; got 1"),
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1; got 0"),
        ({"graph": "cosine"}, "graph must be one of 'heat', 'binary', 'rbf'; got 'cosine'"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1; got 0"),
        ({"bandwidth": 0.0}, "bandwidth must be a finite number > 0; got 0.0"),
        ({"power": 0}, "power must be an integer from 1 to 20; got 0"),
        ({"power": 1.5}, "power must be an integer from 1 to 20; got 1.5"),
    ],
)
def test_a_setting_outside_its_rule_is_refused_with_the_rule(parameters, message):
    with pytest.raises(ParameterError, match=message):
        SPEC(**parameters).fit(table())
