"""NDFS against the authors' program and closed forms, and the k-means that it starts from."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning
from keepers.methods.rivals.ndfs import (
    INACTIVE,
    WeightedRidge,
    kmeans_clusters,
    solve_ndfs,
    vanishing_beta,
)
from keepers.metrics import clustering_accuracy
from shared_material import fixture

DATA = ("mix", "digits", "blobs", "wide")
EPS = np.finfo(float).eps
GROUPS = np.repeat(np.arange(3), 20)


def norms(W):
    return np.linalg.norm(W, axis=1)


def run(X, S, F, *, alpha=1.0, beta=1.0, gamma=1e3, max_iter=30, tol=-1.0):
    settings = {"alpha": alpha, "beta": beta, "gamma": gamma, "max_iter": max_iter, "tol": tol}
    return solve_ndfs(WeightedRidge(X), sp.csr_array(S), F, **settings)


def run_as_released(X, L, F, alpha, beta, gamma, n_steps, first_norms=None):
    """The released update, whose denominator may have any sign."""
    table = WeightedRidge(X)
    lengths = np.full(X.shape[1], F.shape[1] ** 0.5) if first_norms is None else first_norms
    for _ in range(n_steps):
        W, residual = table.at(2 / beta * np.sqrt(lengths**2 + EPS)).fit(F)
        below = L @ F + alpha * residual + gamma * F @ (F.T @ F) + EPS
        F = F * (gamma * F + EPS) / below
        F = F / np.sqrt((F**2).sum(axis=0) + EPS)
        lengths = norms(W)
    return SimpleNamespace(W=W, target=F)


def laplacian_of(S):
    return np.diag(S.sum(axis=1)) - S


def stored_problem(name):
    stored = fixture(f"ndfs_authors_{name}")
    F = np.eye(int(stored["n_clusters"]))[stored["labels"]] + 0.2
    return stored, stored["X"], stored["W_graph"], F


def share_of_beta_max(stored, share):
    return share * vanishing_beta(stored["X"], np.eye(int(stored["n_clusters"]))[stored["labels"]])


def transcription(X, S, F, alpha, beta, gamma, n_steps):
    """The steps with an inverse and what is negative in N above the bar."""
    W, D = np.ones((X.shape[1], F.shape[1])), np.diag(S.sum(axis=1))
    for _ in range(n_steps):
        Delta = np.diag(1 / (2 * np.sqrt((W**2).sum(axis=1) + EPS)))
        W = np.linalg.inv(X.T @ X + beta * Delta) @ X.T @ F
        P = X @ W
        above = gamma * F + S @ F + alpha * np.maximum(P, 0) + EPS
        below = D @ F + alpha * F + alpha * np.maximum(-P, 0) + gamma * F @ (F.T @ F) + EPS
        F = F * above / below
        F = F / np.sqrt((F**2).sum(axis=0) + EPS)
    return W, F


AUTHORS = [
    (name, array)
    for name in DATA
    for array in fixture(f"ndfs_authors_{name}")
    if re.match(r"W_(normalisedL_|onehot_W0zero_)?a.*_it\d+$", array)
]


@pytest.mark.parametrize(("name", "array"), AUTHORS)
def test_the_authors_program_is_reproduced_with_its_update(name, array):
    stored, X, S, F = stored_problem(name)
    parameters, n_steps = re.search(r"(a[^_]*_b[^_]*_g[^_]*)_it(\d+)", array).groups()
    alpha, beta, gamma = (float(value) for value in stored[f"params_{parameters}"][:3])
    L, first_norms = laplacian_of(S), None
    if "normalisedL" in array:
        root = 1 / np.sqrt(S.sum(axis=1))
        L = np.eye(len(S)) - root[:, np.newaxis] * S * root
    if "onehot" in array:
        F, first_norms = F - 0.2, np.zeros(X.shape[1])
    result = run_as_released(X, L, F, alpha, beta, gamma, int(n_steps), first_norms)
    # 100 times what another implementation reached.
    expected, tolerance = stored[array], 2.3e-10 if gamma >= 1e3 else 8.2e-8
    assert np.abs(result.W - expected).max() <= tolerance * np.abs(expected).max()
    assert np.abs(result.target - stored["F" + array[1:]]).max() <= 3.2e-10
    ranking = stored.get(f"ranking{array[1:]}")
    if ranking is not None:
        clear = norms(expected)[ranking] > 1e-6 * norms(expected).max()
        ordered = np.argsort(-norms(result.W), kind="stable")
        np.testing.assert_array_equal(ordered[clear], ranking[clear])


@pytest.mark.parametrize("name", ["mix", "wide"])
def test_no_n_by_n_matrix_is_needed(name):
    _, X, S, F = stored_problem(name)
    W, expected = transcription(X, S, F, 0.5, 2.0, 1e3, 6)
    result = run(X, S, F, alpha=0.5, beta=2.0, max_iter=6)
    np.testing.assert_allclose(result.W, W, atol=1e-9 * np.abs(W).max())
    np.testing.assert_allclose(result.target, expected, atol=1e-9)


@pytest.mark.parametrize("beta", [0.1, 0.4])
def test_orthonormal_features_of_given_clusters_are_thresholded(beta):
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((60, 8)))[0]
    F = np.eye(3)[np.repeat(np.arange(3), 20)] / 20**0.5
    result = run(X, np.zeros((60, 60)), F, beta=beta, gamma=1e8, max_iter=2000)
    expected = np.maximum(norms(X.T @ F) - beta / 2, 0)
    assert 0 < np.count_nonzero(expected) <= 8
    np.testing.assert_allclose(norms(result.W), expected, atol=2e-4 * expected.max() + 1e-6)


@pytest.mark.parametrize("gamma", [1.0, 1e8])
@pytest.mark.parametrize("name", DATA)
def test_clusters_are_never_negative_and_have_unit_columns(name, gamma):
    _, X, S, F = stored_problem(name)
    for n_steps in (1, 2, 5, 50):
        found = run(X, S, F, gamma=gamma, max_iter=n_steps).target
        assert found.min() >= 0
        np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1.0, atol=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 1e3])
@pytest.mark.parametrize("name", DATA)
def test_the_objective_hardly_rises_after_the_first_steps(name, gamma):
    stored, X, S, F = stored_problem(name)
    history = run(X, S, F, beta=share_of_beta_max(stored, 0.1), gamma=gamma, max_iter=200).objective
    assert (np.diff(history)[5:] <= 1e-4 * history[6:]).all()
    assert history[-1] < history[0]


@pytest.mark.parametrize("name", DATA)
def test_beyond_the_vanishing_beta_all_rows_vanish_and_below_it_not(name):
    stored, X, S, F = stored_problem(name)
    beyond = run(X, S, F, beta=share_of_beta_max(stored, 1.1), max_iter=500)
    assert norms(beyond.W).max() < 1e-6
    below = run(X, S, F, beta=share_of_beta_max(stored, 0.9), max_iter=500)
    assert 1 <= np.count_nonzero(norms(below.W) > INACTIVE) <= 8
    assert norms(below.W).max() > 1e-3


@pytest.mark.parametrize("name", DATA)
def test_what_is_zero_in_the_first_clusters_stays_zero(name):
    _, X, S, F = stored_problem(name)
    frozen = run(X, S, F - 0.2, gamma=10.0, max_iter=100).target
    np.testing.assert_array_equal(frozen > 1e-8, F > 1.0)
    moved = run(X, S, F, gamma=10.0, max_iter=100).target
    assert np.count_nonzero(moved > 1e-8) > np.count_nonzero(F > 1.0)


def test_the_iteration_stops_when_the_rows_have_stopped_changing():
    stored, X, S, F = stored_problem("wide")
    beta = share_of_beta_max(stored, 0.1)
    result = run(X, S, F, beta=beta, max_iter=5000, tol=1e-6)
    assert result.converged
    assert len(result.objective) < 5000
    assert result.change <= 1e-6
    before = norms(run(X, S, F, beta=beta, max_iter=len(result.objective) - 1).W)
    step = np.abs(norms(result.W) - before).max() / norms(result.W).max()
    assert step == pytest.approx(result.change, rel=1e-6)
    assert not run(X, S, F, max_iter=1, tol=1e9).converged  # one step shows no change


def far_apart():
    """Three groups of 20 samples far apart."""
    return np.random.default_rng(0).normal(size=(60, 4)) + 9.0 * np.eye(4)[GROUPS]


def test_groups_far_apart_are_found_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters = kmeans_clusters(far_apart(), 3, np.random.RandomState(0))
    assert clusters.shape == (60, 3)
    assert clustering_accuracy(GROUPS, clusters.argmax(axis=1)) == 1.0  # counted


def test_fewer_distinct_samples_than_clusters_give_fewer_and_none_is_empty():
    X = np.repeat(far_apart()[[0, 30, 50]], 4, axis=0)
    with pytest.warns(DataWarning, match=r"n_clusters=5 .* 3 clusters in 12") as caught:
        clusters = kmeans_clusters(X, 5, np.random.RandomState(0))
    assert len(caught) == 1
    np.testing.assert_array_equal(clusters.sum(axis=0), [4, 4, 4])


def test_fewer_samples_than_clusters_give_one_cluster_each():
    with pytest.warns(DataWarning, match="n_clusters=5"):
        clusters = kmeans_clusters(far_apart()[[0, 30]], 5, np.random.RandomState(0))
    np.testing.assert_array_equal(clusters.sum(axis=0), [1, 1])
