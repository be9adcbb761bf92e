"""The block eigensolver against LAPACK."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from keepers.linalg import subspace
from keepers.linalg.scatter import DenseScatter
from keepers.linalg.spectrum import principal_subspace
from keepers.linalg.subspace import leading_subspace, orthonormal_subspace


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


def test_at_least_one_product_is_made_even_from_the_solution():
    S = scatter(1)
    operator = DenseScatter(S)
    solution = principal_subspace(operator, 3, np.random.default_rng(0))
    assert leading_subspace(operator, np.zeros(30), solution, tol=1.0).n_products == 1


def test_the_width_may_reach_the_full_dimension():
    S = scatter(2, d=6)
    operator = DenseScatter(S)
    space = orthonormal_subspace(operator, np.random.default_rng(0).standard_normal((6, 6)))
    found = leading_subspace(operator, np.ones(6), space)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(S - np.eye(6))[::-1], rtol=1e-9)


@pytest.fixture
def problem(monkeypatch):
    """Shifts over orders of magnitude; a block spread over all rows to start from."""
    monkeypatch.setattr(subspace, "_FEWEST_LIGHT", 40)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 300))
    shift = 10.0 ** rng.uniform(1, 6, 300)
    operator = DenseScatter(X.T @ X)
    start = orthonormal_subspace(operator, rng.standard_normal((300, 4)))
    exact = eigh(X.T @ X - np.diag(shift), eigvals_only=True)[::-1][:4].sum()
    return operator, shift, start, exact


def held(space, shift):
    return space.trace - float(shift @ space.squared_row_norms)


def test_it_is_nearer_to_the_solution_and_orthonormal(problem):
    operator, shift, start, exact = problem
    nearer = subspace.with_light_rows(operator, shift, start)
    W = nearer.vectors
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(nearer.images, operator.matrix @ W, rtol=1e-9, atol=1e-6)
    assert exact - held(nearer, shift) < 0.05 * (exact - held(start, shift))
    assert held(nearer, shift) <= exact * (1 + 1e-12)


def test_after_as_many_products_it_is_further_on(problem):
    operator, shift, start, exact = problem
    nearer = subspace.with_light_rows(operator, shift, start)
    cold = leading_subspace(operator, shift, start, tol=0.0, max_iter=6)
    warm = leading_subspace(operator, shift, nearer, tol=0.0, max_iter=4)
    assert held(cold, shift) < held(warm, shift) <= exact * (1 + 1e-12)


def test_a_small_problem_needs_no_short_cut(problem):
    _, _, start, _ = problem
    small = DenseScatter(np.eye(60))
    assert subspace.with_light_rows(small, np.ones(60), start) is None
