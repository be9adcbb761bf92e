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


@KINDS
def test_the_inverse_can_be_had_as_a_matrix(kind, storage):
    form, M = form_and_matrix(kind)
    diagonal = 10.0 ** np.random.default_rng(5).uniform(-1, 3, len(M))
    expected = np.linalg.inv(M + np.diag(diagonal))
    np.testing.assert_allclose(form.inverse(diagonal).matrix(), expected, rtol=1e-6, atol=1e-9)


@KINDS
def test_rows_of_the_product_are_those_of_the_whole(kind, storage):
    form, M = form_and_matrix(kind)
    rows = np.array([1, 4, 5])
    W = np.random.default_rng(6).standard_normal((len(M), 2))
    part = np.zeros_like(W)
    part[rows] = W[rows]
    atol = 1e-10 * np.abs(M).max()
    np.testing.assert_allclose(form.images(W, wanted=rows), (M @ W)[rows], atol=atol)
    np.testing.assert_allclose(form.images(W[rows], given=rows), M @ part, atol=atol)


@KINDS
def test_the_norm_is_that_of_the_matrix(kind, storage):
    form, M = form_and_matrix(kind)
    assert form.norm == pytest.approx(np.linalg.norm(M), rel=1e-10)


@pytest.mark.parametrize("kind", ["dense", "low rank"])
@pytest.mark.parametrize("every", [2, 5])
def test_the_light_part_is_the_schur_complement_for_a_heavy_diagonal(kind, every):
    form, M = form_and_matrix(kind)
    light = np.arange(0, len(M), every)
    heavy = np.setdiff1d(np.arange(len(M)), light)
    b = 1e6 * np.random.default_rng(7).uniform(1, 2, len(heavy)) * np.abs(M).max()
    across = M[np.ix_(heavy, light)]
    # The inverse holds M_hh as well, which is a millionth of b.
    response = np.linalg.solve(M[np.ix_(heavy, heavy)] + np.diag(b), across)
    expected = M[np.ix_(light, light)] - across.T @ response
    found = form.light_part(light, heavy, b).images(np.eye(len(light)))
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(M).max())
    assert np.abs(found - M[np.ix_(light, light)]).max() > 1e-8 * np.abs(M).max()
