"""Weighted ridge regressions against least squares; eigenproblems and reweighting against SciPy."""

import numpy as np
import pytest
from scipy.linalg import eigh, null_space

from keepers.methods.rivals.ndfs import WeightedRidge
from keepers.methods.rivals.udfs import (
    QuadraticForm,
    RowSparseProjection,
    first_weights,
    form_in_coordinates,
    row_coordinates,
    row_sparse_projection,
    smallest_eigenvectors,
)

WIDE, TALL = (40, 300), (300, 60)


def table(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * rng.uniform(0.3, 3.0, shape[1])
    return X - X.mean(axis=0)


def form_of(X):
    coordinates, basis = row_coordinates(X)
    return form_in_coordinates(coordinates.T @ coordinates, basis)


def distance(first, second):
    """Sine of the largest angle between two subspaces."""
    return np.linalg.norm(first - second @ (second.T @ first), 2)


def by_the_inverse(X, diagonal, width):
    """Eigenvectors that a dense solver finds to full accuracy, whatever the diagonal."""
    C = np.linalg.inv(X.T @ X + np.diag(diagonal))
    return eigh((C + C.T) / 2)[1][:, ::-1][:, :width]


@pytest.mark.parametrize(("shape", "is_factor"), [(WIDE, True), (TALL, False)])
def test_the_storage_suits_the_data_and_holds_the_same_matrix(shape, is_factor):
    X = table(shape)
    form = form_of(X)
    assert form.is_factor == is_factor
    W = np.random.default_rng(1).standard_normal((shape[1], 3))
    assert form.trace(W) == pytest.approx(np.sum((X @ W) ** 2), rel=1e-10)
    np.testing.assert_allclose(form.diagonal(), (X**2).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("shape", [WIDE, TALL, (60, 90), (3, 4), (9, 2)])
@pytest.mark.parametrize("width", [1, 3, 20])
def test_eigenvectors_are_those_of_the_sum(shape, width):
    X = table(shape)
    width = min(width, shape[1] - 1)
    diagonal = np.random.default_rng(1).uniform(1.0, 50.0, shape[1])
    found = smallest_eigenvectors(form_of(X), diagonal, width, np.random.default_rng(2))
    _, vectors = eigh(X.T @ X + np.diag(diagonal), subset_by_index=[0, width - 1])
    assert distance(found, vectors) <= 1e-9
    np.testing.assert_allclose(found.T @ found, np.eye(width), atol=1e-12)


@pytest.mark.parametrize("shape", [WIDE, (300, 100)])
@pytest.mark.parametrize("ratio", [1e4, 1e7])
def test_rows_of_any_weight_keep_their_digits(shape, ratio):
    X = table(shape)
    rng = np.random.default_rng(1)
    scale = np.linalg.norm(X.T @ X)
    diagonal = ratio * scale * rng.uniform(1.0, 9.0, shape[1])
    diagonal[rng.permutation(shape[1])[:50]] = scale * rng.uniform(0.01, 1.0, 50)
    found = smallest_eigenvectors(form_of(X), diagonal, 4, rng)
    expected = by_the_inverse(X, diagonal, 4)
    assert distance(found, expected) <= 1e-9
    # Row by row, and not only as a whole: the next weights come from the norms of small rows.
    norms = np.sqrt((expected**2).sum(axis=1))
    np.testing.assert_allclose(np.sqrt((found**2).sum(axis=1)), norms, rtol=1e-6, atol=1e-14)


def test_a_nearly_constant_diagonal_is_resolved_inside_the_null_space():
    """The eigenvalues 1 + 1e-6 t would be lost in the rounding of M."""
    X = 1e3 * table(WIDE)
    tilt = np.random.default_rng(1).uniform(0.3, 3.0, WIDE[1])
    found = smallest_eigenvectors(form_of(X), 1.0 + 1e-6 * tilt, 5, np.random.default_rng(2))
    N = null_space(X)
    _, inside = eigh(N.T @ (tilt[:, np.newaxis] * N), subset_by_index=[0, 4])
    assert distance(found, N @ inside) <= 1e-8


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_equal_eigenvalues_are_all_found(shape):
    X = table(shape)
    half = shape[1] // 2
    X[:, half:] = X[:, :half]
    diagonal = np.full(shape[1], 2.0)
    diagonal[:20] = diagonal[half : half + 20] = 1.0
    found = smallest_eigenvectors(form_of(X), diagonal, 6, np.random.default_rng(0))
    # The difference of two equal columns costs nothing but the diagonal.
    total = X.T @ (X @ found) + diagonal[:, np.newaxis] * found
    np.testing.assert_allclose(np.einsum("ij,ij->j", found, total), 1.0, rtol=1e-9)


def test_a_matrix_that_is_zero_leaves_the_lightest_coordinates():
    diagonal = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    form = QuadraticForm(np.zeros((0, 200)), is_factor=True)
    found = smallest_eigenvectors(form, diagonal, 3, np.random.default_rng(1))
    assert distance(found, np.eye(200)[:, np.argsort(diagonal)[:3]]) <= 1e-9


def run(M, gamma, width, max_iter=100):
    return row_sparse_projection(
        QuadraticForm(M),
        gamma,
        width,
        np.ones(len(M)),
        np.random.default_rng(0),
        max_iter=max_iter,
        tol=1e-8,
    )


def test_a_diagonal_matrix_selects_its_smallest_entries():
    found = run(np.diag([1.0, 2.0, 3.0, 4.0]), 0.5, 2)
    np.testing.assert_allclose(found.squared_norms, [1, 1, 0, 0], atol=1e-12)
    # 1 + 2 + 0.5 * (1 + 1), and sqrt(eps) for each of the two rows that are zero.
    assert found.objective[-1] == pytest.approx(
        4 + 0.5 * 2 * np.sqrt(np.finfo(float).eps), abs=1e-12
    )


@pytest.mark.parametrize("gamma", [1e-3, 10.0])
def test_the_objective_never_rises_and_w_is_orthonormal(gamma):
    A = np.random.default_rng(1).standard_normal((50, 30))
    found = run(A.T @ A, gamma, 4)
    assert np.all(np.diff(found.objective) <= 0)
    np.testing.assert_allclose(found.W.T @ found.W, np.eye(4), atol=1e-12)
    r = np.sqrt((found.W**2).sum(axis=1) + np.finfo(float).eps)
    value = np.trace(found.W.T @ A.T @ A @ found.W) + gamma * r.sum()
    assert found.objective[-1] == pytest.approx(value, rel=1e-12)


def test_the_first_weights_favour_features_of_large_spread():
    weights = first_weights(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(weights, 1 + 1e-6 * np.array([2.0, 1.0, 2 / 3]), rtol=1e-15)


def test_scores_that_are_noise_are_ordered_by_cost_below_the_others():
    squared_norms = np.array([0.7, 1e-20, 1e-10, 1e-18, 0.0])
    found = RowSparseProjection(np.zeros((5, 1)), squared_norms, np.zeros(1), True)
    scores = found.scores(np.array([9.0, 3.0, 8.0, 1.0, 2.0]))
    assert found.n_active == 2
    np.testing.assert_array_equal(scores[[0, 2]], squared_norms[[0, 2]])
    assert list(np.argsort(-scores)) == [0, 2, 3, 4, 1]
    assert 0 < scores[[1, 3, 4]].min() <= scores[[1, 3, 4]].max() <= 0.7e-12


def test_a_form_of_one_column_that_is_zero_but_for_rounding_has_its_eigenvector():
    form = QuadraticForm(np.array([[-1e-16]]))
    found = smallest_eigenvectors(form, np.array([1e-17]), 1, np.random.default_rng(0))
    np.testing.assert_array_equal(np.abs(found), [[1.0]])


# Regressions.

SHAPES = [(30, 12), (12, 30), (15, 15)]


def problem(shape, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    return X, rng.standard_normal((shape[0], 3)), 10.0 ** rng.uniform(-3, 2, shape[1])


def least_squares(X, Y, q):
    """The same as a least squares problem with one more row for every feature."""
    stacked = np.vstack([X, np.diag(q**-0.5)])
    target = np.vstack([Y, np.zeros((X.shape[1], Y.shape[1]))])
    return np.linalg.lstsq(stacked, target, rcond=None)[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_regression_is_that_of_least_squares(shape):
    X, Y, q = problem(shape)
    expected = least_squares(X, Y, q)
    factor = WeightedRidge(X).at(q)
    W, residual = factor.fit(Y)
    np.testing.assert_allclose(W, expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(residual, Y - X @ expected, atol=1e-9)
    np.testing.assert_allclose(factor.residual(Y), residual, atol=1e-12)


def test_both_forms_give_the_same_numbers():
    X, Y, q = problem((30, 12), seed=3)
    # Columns of zeros change nothing, but there are more of them than samples.
    wide = WeightedRidge(np.hstack([X, np.zeros((30, 40))])).at(np.concatenate([q, np.ones(40)]))
    (W, residual), (wide_W, wide_residual) = WeightedRidge(X).at(q).fit(Y), wide.fit(Y)
    np.testing.assert_allclose(wide_W[:12], W, atol=1e-9 * np.abs(W).max())
    np.testing.assert_allclose(wide_residual, residual, atol=1e-9)
    np.testing.assert_allclose(wide_W[12:], 0.0, atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_near_zero_leave_rows_that_are_proportional_to_them(shape):
    X, Y, q = problem(shape, seed=4)
    q[:4] = [1e-8, 1e-12, 1e-16, 1e-20]
    W, residual = WeightedRidge(X).at(q).fit(Y)
    expected = q[:4, np.newaxis] * (X.T @ residual)[:4]
    for row, wanted in zip(W[:4], expected, strict=True):
        np.testing.assert_allclose(row, wanted, rtol=1e-4)
