"""JELSR against two published programs, closed forms and a transcription with inverses."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers.linalg.graph import laplacian
from keepers.methods.neighbours import binary_graph
from keepers.methods.rivals import jelsr
from keepers.methods.rivals.jelsr import solve_jelsr
from keepers.methods.rivals.ndfs import WeightedRidge
from shared_material import fixture

DATA = ("mix", "digits", "blobs", "wide")
EPS = np.finfo(float).eps


def norms(W):
    return np.linalg.norm(W, axis=1)


def run(X, L, n_columns, *, alpha=1.0, beta=1.0, max_iter=20, tol=-1.0, seed=0):
    rng = np.random.default_rng(seed)
    settings = {"alpha": alpha, "beta": beta, "max_iter": max_iter, "tol": tol}
    return solve_jelsr(WeightedRidge(X), sp.csr_array(L), n_columns, rng, **settings)


def run_as_released(
    X, L, n_columns, alpha=1.0, beta=1.0, n_steps=20, degrees=None, first_norms=None
):
    """The smallest eigenvectors, whatever they are; with degrees D Y'DY = I, and the first goes."""
    table = WeightedRidge(X)
    lengths = np.full(X.shape[1], 0.5) if first_norms is None else first_norms
    metric, skipped = (None, 0) if degrees is None else (np.diag(degrees), 1)
    for _ in range(n_steps):
        factor = table.at(2 / alpha * (lengths + EPS))
        K = L + beta * factor.residual(np.eye(len(L)))
        Y = eigh((K + K.T) / 2, metric)[1][:, skipped : n_columns + skipped]
        W, _ = factor.fit(Y)
        lengths = norms(W)
    loss = np.sum((X @ W - Y) ** 2) + alpha * lengths.sum()
    return SimpleNamespace(W=W, target=Y, objective=np.trace(Y.T @ L @ Y) + beta * loss)


def centred(X):
    return X - X.mean(axis=0)


def groups(n_samples=60, n_features=12, seed=0):
    """Four groups of samples that differ in the first four features; the graph of neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :4] += 4.0 * np.eye(4)[np.arange(n_samples) % 4]
    return centred(X), laplacian(binary_graph(X, 5))


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


@pytest.mark.parametrize(("name", "array"), PROGRAM)
def test_the_published_program_is_reproduced_with_its_constant(name, array):
    stored = fixture(f"jelsr_fsasl_{name}")
    graph, parameters, n_steps = re.match(r"score_(lle|lpp)_(a.*)_it(\d+)$", array).groups()
    alpha, beta = (float(value) for value in stored[f"params_{parameters}"][:2])
    L, n_columns = stored[f"L_{graph}"], int(stored["n_clusters"])
    result = run_as_released(stored["X"], L, n_columns, alpha, beta, int(n_steps))
    # 100 times what another implementation reached.
    expected = stored[array]
    assert np.abs(norms(result.W) - expected).max() <= 6.2e-10 * expected.max()
    Y = stored.get(f"Y{array[5:]}")
    if Y is not None:
        assert np.abs(result.target @ result.target.T - Y @ Y.T).max() <= 2.3e-10
    place = stored["iterations"].tolist().index(int(n_steps))
    objective = stored[f"objective_{graph}_{parameters}"][place]
    assert result.objective == pytest.approx(objective, rel=1e-9)


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
    result = run_as_released(X, L, n_columns, alpha, beta, 20, degrees, norms(W))
    expected, Y = stored[f"score_{parameters}"], stored[f"Y_{parameters}"]
    assert np.abs(norms(result.W) - expected).max() <= 1e-10 * expected.max()
    assert np.abs(result.target @ result.target.T - Y @ Y.T).max() <= 1e-10


@pytest.mark.parametrize(("shape", "n_steps"), [((40, 12), 5), ((12, 40), 5), ((40, 12), 1)])
def test_the_lean_steps_are_those_with_explicit_inverses(shape, n_steps):
    X, L = groups(*shape)
    W, Y = transcription(X, L.toarray(), 3, 0.8, 0.7, n_steps)
    result = run(X, L, 3, alpha=0.8, beta=0.7, max_iter=n_steps)
    np.testing.assert_allclose(norms(result.W), norms(W), atol=1e-9 * norms(W).max())
    np.testing.assert_allclose(result.target @ result.target.T, Y @ Y.T, atol=1e-10)


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
        np.testing.assert_allclose(result.target.T @ result.target, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(result.target.sum(axis=0), 0.0, atol=1e-10)
        W, Y = result.W, result.target
        loss = np.sum((X @ W - Y) ** 2) + alpha * norms(W).sum()
        expected = np.trace(Y.T @ L @ Y) + beta * loss
        assert result.objective[-1] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.05, 0.6])
def test_orthonormal_features_of_a_given_embedding_are_thresholded(alpha):
    rng = np.random.default_rng(1)
    n_samples = 30
    basis = np.linalg.qr(np.column_stack([np.ones(n_samples), rng.standard_normal((30, 10))]))[0]
    X, Y = basis[:, 1:9], np.linalg.qr(centred(rng.standard_normal((30, 2))))[0]
    # So heavy a graph leaves no other embedding.
    L = 1e6 * (np.eye(n_samples) - Y @ Y.T - 1 / n_samples)
    result = run(X, L, 2, alpha=alpha, max_iter=3000)
    np.testing.assert_allclose(result.target @ result.target.T, Y @ Y.T, atol=1e-5)
    expected = np.maximum(norms(X.T @ Y) - alpha / 2, 0)
    assert np.count_nonzero(expected) > 0
    np.testing.assert_allclose(norms(result.W), expected, atol=1e-3 * expected.max())


def test_a_constant_in_the_embedding_of_raw_features_is_shut_out_by_centring():
    stored = fixture("jelsr_fsasl_blobs")
    X, L = stored["X"], stored["L_lpp"]
    constant = np.full(len(X), len(X) ** -0.5)
    raw = run_as_released(X, L, 3)
    assert np.linalg.norm(raw.target.T @ constant) > 0.85
    shifted = run(centred(X + 7.0), L, 3)
    plain = run(centred(X), L, 3)
    np.testing.assert_allclose(plain.target.T @ constant, 0.0, atol=1e-12)
    np.testing.assert_allclose(norms(shifted.W), norms(plain.W), atol=1e-8 * norms(plain.W).max())


@pytest.mark.parametrize("shape", [(150, 20), (90, 140)])
@pytest.mark.parametrize("beta", [0.1, 10.0])
def test_products_find_the_embedding_of_a_decomposition(shape, beta, monkeypatch):
    X, L = groups(*shape, seed=5)
    alpha = 0.2 * np.sqrt((X**2).sum(axis=0).max())
    expected = run(X, L, 3, alpha=alpha, beta=beta, max_iter=8)
    monkeypatch.setattr(jelsr, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(jelsr, "EMBEDDING_TOL", 1e-9)
    result = run(X, L, 3, alpha=alpha, beta=beta, max_iter=8, seed=1)
    np.testing.assert_allclose(
        result.target @ result.target.T, expected.target @ expected.target.T, atol=1e-6
    )
    np.testing.assert_allclose(
        norms(result.W), norms(expected.W), atol=1e-6 * norms(expected.W).max()
    )
