"""The jump onto the light rows against a full decomposition."""

import numpy as np
import pytest
from scipy.linalg import eigh

from keepers.linalg import light_rows
from keepers.linalg.scatter import DenseScatter
from keepers.linalg.subspace import leading_subspace, orthonormal_subspace


@pytest.fixture
def problem(monkeypatch):
    """Shifts over orders of magnitude; a block spread over all rows to start from."""
    monkeypatch.setattr(light_rows, "_FEWEST", 40)
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
    nearer = light_rows.with_light_rows(operator, shift, start)
    W = nearer.vectors
    np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(nearer.images, operator.matrix @ W, rtol=1e-9, atol=1e-6)
    assert exact - held(nearer, shift) < 0.05 * (exact - held(start, shift))
    assert held(nearer, shift) <= exact * (1 + 1e-12)


def test_after_as_many_products_it_is_further_on(problem):
    operator, shift, start, exact = problem
    nearer = light_rows.with_light_rows(operator, shift, start)
    cold = leading_subspace(operator, shift, start, tol=0.0, max_iter=6)
    warm = leading_subspace(operator, shift, nearer, tol=0.0, max_iter=4)
    assert held(cold, shift) < held(warm, shift) <= exact * (1 + 1e-12)


def test_a_small_problem_needs_no_short_cut(problem):
    _, _, start, _ = problem
    small = DenseScatter(np.eye(60))
    assert light_rows.with_light_rows(small, np.ones(60), start) is None
