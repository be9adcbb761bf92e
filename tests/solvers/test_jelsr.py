"""JELSR against two published programs, closed forms and a transcription with explicit inverses."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from keepers.linalg.graph import (
    laplacian,
    nearest_in_cloud,
    reconstruction_laplacian,
    reconstruction_weights,
    union_graph,
)
from keepers.linalg.weighted_ridge import WeightedRidge
from keepers.solvers import jelsr
from keepers.solvers.jelsr import solve_jelsr
from shared_material import fixture

DATA = ("mix", "digits", "blobs", "wide")
EPS = np.finfo(float).eps


def norms(W):
    return np.linalg.norm(W, axis=1)


def run(X, L, n_columns, *, alpha=1.0, beta=1.0, max_iter=20, tol=-1.0, seed=0, **switches):
    rng = np.random.default_rng(seed)
    settings = {"alpha": alpha, "beta": beta, "max_iter": max_iter, "tol": tol}
    return solve_jelsr(WeightedRidge(X), sp.csr_array(L), n_columns, rng, **settings, **switches)


def centred(X):
    return X - X.mean(axis=0)


def groups(n_samples=60, n_features=12, seed=0):
    """Four groups of samples that differ in the first four features; the graph of neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :4] += 4.0 * np.eye(4)[np.arange(n_samples) % 4]
    return centred(X), laplacian(union_graph(nearest_in_cloud(X, 5)))


def transcription(X, L, n_columns, alpha, beta, n_steps):
    """The published steps with explicit inverses; the constant vector moved out of the way."""
    n_samples, n_features = X.shape
    U = np.eye(n_features)
    for _ in range(n_steps):
        A = np.linalg.inv(X.T @ X + alpha * U) @ X.T
        K = L + beta * (np.eye(n_samples) - X @ A)
        K = (K + K.T) / 2 + 1e3 / n_samples
        Y = np.linalg.eigh(K)[1][:, :n_columns]
        W = A @ Y
        U = np.diag(1 / (2 * (norms(W) + EPS)))
    return W, Y


PROGRAM = [
    (name, array)
    for name in DATA
    for array in fixture(f"jelsr_fsasl_{name}")
    if re.match(r"score_(lle|lpp)_a.*_it\d+$", array)
]


def test_ninety_six_scores_of_the_published_program_are_compared():
    assert len(PROGRAM) == 96


@pytest.mark.parametrize(("name", "array"), PROGRAM)
def test_the_published_program_is_reproduced_with_its_constant(name, array):
    stored = fixture(f"jelsr_fsasl_{name}")
    graph, parameters, n_steps = re.match(r"score_(lle|lpp)_(a.*)_it(\d+)$", array).groups()
    alpha, beta = (float(value) for value in stored[f"params_{parameters}"][:2])
    settings = {"alpha": alpha, "beta": beta, "max_iter": int(n_steps)}
    n_columns = int(stored["n_clusters"])
    L = stored[f"L_{graph}"]
    result = run(stored["X"], L, n_columns, **settings, _keep_constant=True)
    # 100 times what another implementation reached.
    expected = stored[array]
    assert np.abs(norms(result.W) - expected).max() <= 6.2e-10 * expected.max()
    Y = stored.get(f"Y{array[5:]}")
    if Y is not None:
        assert np.abs(result.Y @ result.Y.T - Y @ Y.T).max() <= 2.3e-10
    place = stored["iterations"].tolist().index(int(n_steps))
    objective = stored[f"objective_{graph}_{parameters}"][place]
    assert result.objective[-1] == pytest.approx(objective, rel=1e-9)


def test_the_twenty_steps_of_the_program_are_too_few_where_rows_approach_zero():
    """The stored scores after 20 steps, beside those after 19."""
    changes = []
    for name, array in PROGRAM:
        if not array.endswith("_it20"):
            continue
        stored = fixture(f"jelsr_fsasl_{name}")
        graph, parameters = re.match(r"score_(lle|lpp)_(a.*)_it20$", array).groups()
        alpha, beta = (float(value) for value in stored[f"params_{parameters}"][:2])
        settings = {"alpha": alpha, "beta": beta, "max_iter": 19, "_keep_constant": True}
        before = run(stored["X"], stored[f"L_{graph}"], int(stored["n_clusters"]), **settings)
        changes.append(np.abs(stored[array] - norms(before.W)).max() / stored[array].max())
    assert len(changes) == 32
    assert np.count_nonzero(np.array(changes) > 1e-3) == 22
    assert 0.03 < max(changes) < 0.04


@pytest.mark.parametrize("parameters", ["a1_b1", "a0.1_b10", "a10_b0.1"])
def test_the_program_in_its_authors_form_is_reproduced(parameters):
    stored = fixture("jelsr_hou_mix")
    X, S = centred(stored["X"]), stored["S"]
    degrees = S.sum(axis=1)
    L = np.diag(degrees) - S
    alpha, beta = (float(value) for value in stored[f"params_{parameters}"][:2])
    n_columns = int(stored["reduced_dim"]) - 1
    start = eigh(L, np.diag(degrees))[1][:, 1 : n_columns + 1]
    W = np.linalg.solve(X.T @ X + alpha * np.eye(X.shape[1]), X.T @ start)
    switches = {"_degrees": degrees, "_first_norms": norms(W)}
    result = run(X, L, n_columns, alpha=alpha, beta=beta, **switches)
    expected, Y = stored[f"score_{parameters}"], stored[f"Y_{parameters}"]
    assert np.abs(norms(result.W) - expected).max() <= 1e-10 * expected.max()
    assert np.abs(result.Y @ result.Y.T - Y @ Y.T).max() <= 1e-10


@pytest.mark.parametrize("name", DATA)
def test_reconstruction_laplacians_are_those_of_the_program_but_for_its_ridge(name):
    stored = fixture(f"jelsr_fsasl_{name}")
    X, k = stored["X"], int(stored["k"])
    neighbours = nearest_in_cloud(X, k)
    B = np.zeros((len(X), len(X)))
    for i, near in enumerate(neighbours.indices):
        G = (X[near] - X[i]) @ (X[near] - X[i]).T
        weights = np.linalg.solve(G + 1e-12 * np.trace(G) * np.eye(k), np.ones(k))
        B[i, near] = weights / weights.sum()
    theirs = (np.eye(len(X)) - B).T @ (np.eye(len(X)) - B)
    np.testing.assert_allclose(theirs, stored["L_lle"], rtol=0, atol=1e-12)
    ours = reconstruction_laplacian(reconstruction_weights(X, neighbours)).toarray()
    np.testing.assert_allclose(ours, stored["L_lle"], atol=2e-8)


@pytest.mark.parametrize("name", DATA)
def test_the_heat_weights_of_the_program_are_those_of_a_binary_graph_in_effect(name):
    stored = fixture(f"jelsr_fsasl_{name}")
    X = stored["X"]
    distances = cdist(X, X)
    neighbours = nearest_in_cloud(X, int(stored["k"]))
    edges = union_graph(neighbours).toarray() > 0
    # Squared distances relative to the largest kept, over the square of one in the unit of X.
    scaled = distances**2 / (distances[edges] ** 2).max()
    S = np.where(edges, np.exp(-scaled / np.median(distances) ** 2), 0.0)
    expected = np.diag(S.sum(axis=1)) - S
    np.testing.assert_allclose(stored["L_lpp"], expected, atol=1e-12 * S.sum(axis=1).max())
    assert S[edges].min() > 0.9


@pytest.mark.parametrize(("shape", "n_steps"), [((40, 12), 5), ((12, 40), 5), ((40, 12), 1)])
def test_the_lean_steps_are_those_with_explicit_inverses(shape, n_steps):
    X, L = groups(*shape)
    W, Y = transcription(X, L.toarray(), 3, 0.8, 0.7, n_steps)
    result = run(X, L, 3, alpha=0.8, beta=0.7, max_iter=n_steps)
    np.testing.assert_allclose(norms(result.W), norms(W), atol=1e-9 * norms(W).max())
    np.testing.assert_allclose(result.Y @ result.Y.T, Y @ Y.T, atol=1e-10)


@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", DATA)
def test_the_objective_never_rises_and_the_embedding_is_orthonormal_without_the_constant(
    name, beta
):
    stored = fixture(f"jelsr_fsasl_{name}")
    X = centred(stored["X"])
    alpha = 0.2 * np.sqrt((X**2).sum(axis=0).max())
    for L in (stored["L_lle"], fixture(f"ndfs_authors_{name}")["L_unnormalised"]):
        result = run(X, L, 3, alpha=alpha, beta=beta, max_iter=100)
        assert (np.diff(result.objective) <= 1e-12 * result.objective[1:]).all()
        np.testing.assert_allclose(result.Y.T @ result.Y, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(result.Y.sum(axis=0), 0.0, atol=1e-10)
        W, Y = result.W, result.Y
        loss = np.sum((X @ W - Y) ** 2) + alpha * norms(W).sum()
        expected = np.trace(Y.T @ L @ Y) + beta * loss
        assert result.objective[-1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.05, 0.6])
def test_orthonormal_features_of_a_fixed_embedding_are_thresholded(alpha):
    rng = np.random.default_rng(1)
    n_samples = 30
    basis = np.linalg.qr(np.column_stack([np.ones(n_samples), rng.standard_normal((30, 10))]))[0]
    X, Y = basis[:, 1:9], np.linalg.qr(centred(rng.standard_normal((30, 2))))[0]
    # So heavy a graph leaves no other embedding.
    L = 1e6 * (np.eye(n_samples) - Y @ Y.T - 1 / n_samples)
    result = run(X, L, 2, alpha=alpha, max_iter=3000)
    np.testing.assert_allclose(result.Y @ result.Y.T, Y @ Y.T, atol=1e-5)
    expected = np.maximum(norms(X.T @ Y) - alpha / 2, 0)
    assert np.count_nonzero(expected) > 0
    np.testing.assert_allclose(norms(result.W), expected, atol=1e-3 * expected.max())


def test_a_constant_in_the_embedding_of_raw_features_is_shut_out_by_centring():
    stored = fixture("jelsr_fsasl_blobs")
    X, L = stored["X"], stored["L_lpp"]
    constant = np.full(len(X), len(X) ** -0.5)
    raw = run(X, L, 3, _keep_constant=True)
    assert np.linalg.norm(raw.Y.T @ constant) > 0.85
    shifted = run(centred(X + 7.0), L, 3)
    plain = run(centred(X), L, 3)
    np.testing.assert_allclose(plain.Y.T @ constant, 0.0, atol=1e-12)
    np.testing.assert_allclose(norms(shifted.W), norms(plain.W), atol=1e-8 * norms(plain.W).max())


def test_features_in_another_order_get_the_same_rows():
    X, L = groups(seed=2)
    order = np.random.default_rng(0).permutation(X.shape[1])
    expected = norms(run(X, L, 3).W)[order]
    np.testing.assert_allclose(norms(run(X[:, order], L, 3).W), expected, atol=1e-10)


def test_another_unit_of_the_table_only_changes_that_of_the_rows():
    X, L = groups(seed=3)
    plain = norms(run(X, L, 3, alpha=5.0, max_iter=1500).W)
    scaled = norms(run(10 * X, L, 3, alpha=50.0, max_iter=1500).W)
    np.testing.assert_allclose(10 * scaled, plain, atol=1e-6 * plain.max())


def test_the_iteration_stops_when_the_objective_has_stopped_falling():
    X, L = groups(seed=4)
    result = run(X, L, 3, alpha=5.0, max_iter=2000, tol=1e-8)
    assert result.converged
    assert result.n_iter < 2000
    assert 0 <= result.change <= 1e-8
    short = run(X, L, 3, max_iter=1, tol=1.0)
    assert not short.converged
    assert short.change == np.inf


@pytest.mark.parametrize("shape", [(150, 20), (90, 140)])
@pytest.mark.parametrize("beta", [0.1, 10.0])
def test_products_find_the_embedding_of_a_decomposition(shape, beta, monkeypatch):
    X, L = groups(*shape, seed=5)
    alpha = 0.2 * np.sqrt((X**2).sum(axis=0).max())
    expected = run(X, L, 3, alpha=alpha, beta=beta, max_iter=8)
    monkeypatch.setattr(jelsr, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(jelsr, "SUBSPACE_TOL", 1e-9)
    monkeypatch.setattr(jelsr, "MOST_PRODUCTS", 500)
    result = run(X, L, 3, alpha=alpha, beta=beta, max_iter=8, seed=1)
    np.testing.assert_allclose(result.Y @ result.Y.T, expected.Y @ expected.Y.T, atol=1e-6)
    np.testing.assert_allclose(
        norms(result.W), norms(expected.W), atol=1e-6 * norms(expected.W).max()
    )


def test_past_the_dense_size_the_objective_still_never_rises_and_ends_where_it_should():
    X, L = groups(800, 16, seed=6)
    alpha = 0.2 * np.sqrt((X**2).sum(axis=0).max())
    result = run(X, L, 3, alpha=alpha, max_iter=60)
    assert (np.diff(result.objective) <= 1e-12 * result.objective[1:]).all()
    np.testing.assert_allclose(result.Y.T @ result.Y, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(result.Y.sum(axis=0), 0.0, atol=1e-6)
    W, Y = transcription(X, L.toarray(), 3, alpha, 1.0, 60)
    loss = np.sum((X @ W - Y) ** 2) + alpha * norms(W).sum()
    assert result.objective[-1] == pytest.approx(np.trace(Y.T @ (L @ Y)) + loss, rel=1e-6)
    assert set(np.argsort(-norms(result.W))[:4]) == {0, 1, 2, 3}


@pytest.mark.parametrize(("name", "at_least"), [("mix", 7), ("blobs", 6), ("wide", 9)])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (10.0, 0.1)])
def test_informative_features_come_first(name, at_least, alpha, beta):
    stored = fixture(f"ndfs_authors_{name}")
    informative = fixture(f"data_{name}")["informative"]
    n_columns = int(stored["n_clusters"]) - 1
    result = run(centred(stored["X"]), stored["L_unnormalised"], n_columns, alpha=alpha, beta=beta)
    first = np.argsort(-norms(result.W))[: len(informative)]
    assert np.isin(first, informative).sum() >= at_least
