"""Quadratic forms in every storage against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.quadratic_form import DenseForm, LaplacianForms, LowRankForm, SparseForm


def laplacian_of(n_samples, seed=0):
    weights = np.random.default_rng(seed).random((n_samples, n_samples))
    weights = np.where(weights + weights.T > 1.4, weights + weights.T, 0.0)
    np.fill_diagonal(weights, 0.0)
    return sp.csr_array(np.diag(weights.sum(axis=1)) - weights)


def form_and_matrix(kind):
    rng = np.random.default_rng(1)
    L = laplacian_of(20)
    if kind == "sparse":
        return SparseForm(L), L.toarray()
    X = rng.standard_normal((20, 12 if kind == "dense" else 50))
    X -= X.mean(axis=0)
    return LaplacianForms.of(X).form(L), X.T @ L.toarray() @ X


KINDS = pytest.mark.parametrize(
    ("kind", "storage"), [("dense", DenseForm), ("low rank", LowRankForm), ("sparse", SparseForm)]
)


@KINDS
def test_the_storage_suits_the_data_and_holds_the_same_matrix(kind, storage):
    form, M = form_and_matrix(kind)
    assert isinstance(form, storage)
    assert form.size == len(M)
    W = np.random.default_rng(2).standard_normal((len(M), 3))
    np.testing.assert_allclose(form.images(W), M @ W, atol=1e-10 * np.abs(M).max())
    np.testing.assert_allclose(form.diagonal(), np.diag(M), atol=1e-10 * np.abs(M).max())


@KINDS
def test_the_inverse_solves_with_the_diagonal_added(kind, storage):
    form, M = form_and_matrix(kind)
    rng = np.random.default_rng(3)
    diagonal = 10.0 ** rng.uniform(-1, 3, len(M))
    V = rng.standard_normal((len(M), 2))
    np.testing.assert_allclose(
        form.inverse(diagonal)(V), np.linalg.solve(M + np.diag(diagonal), V), rtol=1e-6, atol=1e-9
    )


@KINDS
@pytest.mark.parametrize("count", [1, 4])
def test_the_bound_is_above_the_eigenvalue(kind, storage, count):
    form, M = form_and_matrix(kind)
    diagonal = 10.0 ** np.random.default_rng(4).uniform(-1, 3, len(M))
    eigenvalue = np.linalg.eigvalsh(M + np.diag(diagonal))[count - 1]
    assert form.bound(diagonal, count) >= eigenvalue * (1 - 1e-10)


def test_heavy_features_leave_a_good_guess_at_the_leading_eigenvectors_of_the_inverse():
    rng = np.random.default_rng(5)
    Q = np.linalg.qr(rng.standard_normal((400, 6)))[0]
    form = LowRankForm(Q, rng.uniform(1, 2, 6))
    diagonal = np.concatenate([rng.uniform(0.1, 0.2, 40), rng.uniform(1e3, 1e4, 360)])
    guess = form.inverse(diagonal).leading_guess(3, reach=1.0)
    M = (Q * form.s) @ Q.T + np.diag(diagonal)
    exact = np.linalg.eigh(M)[1][:, :3]
    np.testing.assert_allclose(guess.T @ guess, np.eye(3), atol=1e-10)
    overlap = np.linalg.svd(exact.T @ guess, compute_uv=False)
    np.testing.assert_allclose(overlap, 1.0, atol=1e-4)
