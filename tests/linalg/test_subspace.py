"""The block eigensolver against LAPACK."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh, subspace_angles

from keepers.linalg.scatter import DenseScatter
from keepers.linalg.spectrum import (
    Subspace,
    fix_signs,
    leading_subspace,
    orthonormal_subspace,
    relative_residuals,
)


def scatter(seed, n=50, d=30):
    X = np.random.default_rng(seed).standard_normal((n, d)) @ np.diag(np.linspace(3, 0.5, d))
    centred = X - X.mean(axis=0)
    return centred.T @ centred


@given(seed=st.integers(0, 10_000), width=st.integers(1, 8), spread=st.floats(0, 6))
@settings(max_examples=40, deadline=None)
def test_eigenvalues_agree_with_lapack_however_wide_the_diagonal(seed, width, spread):
    rng = np.random.default_rng(seed)
    S = scatter(seed)
    shift = np.trace(S) / 30 * 10 ** rng.uniform(-spread, spread, 30)
    operator = DenseScatter(S)
    start = orthonormal_subspace(operator, rng.standard_normal((30, width)))
    found = leading_subspace(operator, shift, start, tol=1e-9, max_iter=5000)
    exact = np.linalg.eigvalsh(S - np.diag(shift))[::-1][:width]
    np.testing.assert_allclose(
        found.values, exact, atol=1e-7 * np.abs(exact).max() + 1e-9 * S.max()
    )
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(width), atol=1e-10)
    np.testing.assert_allclose(found.images, S @ found.vectors, atol=1e-9 * np.abs(S).max())


def test_the_trace_never_falls_however_early_it_stops():
    S = scatter(0)
    shift = np.geomspace(1, 1e6, 30)
    operator = DenseScatter(S)
    space = orthonormal_subspace(operator, np.random.default_rng(1).standard_normal((30, 4)))
    before = -np.inf
    for _ in range(20):
        space = leading_subspace(operator, shift, space, tol=0.0, max_iter=1)
        trace = np.trace(space.vectors.T @ (S - np.diag(shift)) @ space.vectors)
        assert trace >= before - 1e-9 * abs(trace)
        before = trace


def test_the_width_may_reach_the_full_dimension():
    S = scatter(2, d=6)
    operator = DenseScatter(S)
    space = orthonormal_subspace(operator, np.random.default_rng(0).standard_normal((6, 6)))
    found = leading_subspace(operator, np.ones(6), space)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(S - np.eye(6))[::-1], rtol=1e-9)


def test_the_residual_is_the_largest_over_the_norm_of_its_image():
    # S = diag(3, 4, 1), w = (1, 1, 0) / sqrt(2): Ritz value 7/2, residual (-1/2, 1/2) / sqrt(2),
    # image (3, 4) / sqrt(2), so a residual of 1/2 over 5 / sqrt(2). The second vector is exact.
    W = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]) / [np.sqrt(2.0), 1.0]
    block = Subspace(W, np.diag([3.0, 4.0, 1.0]) @ W, np.array([3.5, 1.0]))
    np.testing.assert_allclose(relative_residuals(block), [np.sqrt(2.0) / 10, 0.0])


def test_an_image_that_is_next_to_nothing_does_not_set_the_accuracy():
    # A second vector with the image 1e-6 e_2 and the value 0: wrong by all of its image, which is
    # beside the first one's image of norm 1 (of which a share of 1e-4 counts) an error of 1e-2.
    block = Subspace(np.eye(2), np.diag([1.0, 1e-6]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(relative_residuals(block), [0.0, 1e-2])
    nothing = Subspace(np.eye(2), np.zeros((2, 2)), np.zeros(2))
    assert relative_residuals(nothing).tolist() == [0.0, 0.0]  # 0 / tiny


def hard_problem(seed, size=400, width=6):
    """Shifts over six orders of magnitude, and a random start far from the solution."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((120, size)) * np.linspace(2, 1, size)
    shift = 10.0 ** rng.uniform(-1, 5, size)
    operator = DenseScatter(X.T @ X)
    start = orthonormal_subspace(operator, rng.standard_normal((size, width)))
    wanted = [size - width, size - 1]
    values, vectors = eigh(X.T @ X - np.diag(shift), subset_by_index=wanted)
    return operator, shift, start, values[::-1], vectors


@pytest.mark.parametrize("seed", range(2))
def test_a_long_way_ends_orthonormal_and_with_the_eigenpairs_of_lapack(seed):
    operator, shift, start, values, vectors = hard_problem(seed)
    found = leading_subspace(operator, shift, start, tol=1e-9, max_iter=2000)
    assert 20 < found.n_products < 2000  # so that vectors were kept beside the block
    W = found.vectors
    np.testing.assert_allclose(W.T @ W, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
    assert subspace_angles(W, vectors).max() < 1e-5
    np.testing.assert_allclose(found.images, operator.matrix @ W, rtol=0, atol=1e-8 * values[0])


def test_every_column_gets_its_largest_entry_positive():
    W = np.array([[3.0, -1.0], [-4.0, 0.5]])
    np.testing.assert_array_equal(fix_signs(W), [[-3.0, 1.0], [4.0, -0.5]])
