import numpy as np
import pytest

from keepers.linalg.quadratic_form import DenseForm
from keepers.solvers.reweighting import (
    break_ties_by_cost,
    count_active,
    first_weights,
    row_sparse_projection,
)

EPS = 2.220446049250313e-16


def run(M, gamma, width, max_iter=100):
    return row_sparse_projection(
        DenseForm(M),
        gamma,
        width,
        np.ones(len(M)),
        np.random.default_rng(0),
        max_iter=max_iter,
        has_converged=lambda history: history[-2] - history[-1] <= 1e-8 * abs(history[-1]),
    )


def test_a_diagonal_matrix_selects_its_smallest_entries():
    found = run(np.diag([1.0, 2.0, 3.0, 4.0]), 0.5, 2)
    np.testing.assert_allclose(found.squared_norms, [1, 1, 0, 0], atol=1e-12)
    # 1 + 2 + 0.5 * (1 + 1), and sqrt(eps) for each of the two rows that are zero.
    assert found.objective[-1] == pytest.approx(4 + 0.5 * 2 * np.sqrt(EPS), abs=1e-12)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 10.0])
def test_the_objective_never_rises_and_w_is_orthonormal(gamma):
    A = np.random.default_rng(1).standard_normal((50, 30))
    found = run(A.T @ A, gamma, 4)
    assert np.all(np.diff(found.objective) <= 0)
    np.testing.assert_allclose(found.W.T @ found.W, np.eye(4), atol=1e-12)
    r = np.sqrt((found.W**2).sum(axis=1) + EPS)
    value = np.trace(found.W.T @ A.T @ A @ found.W) + gamma * r.sum()
    assert found.objective[-1] == pytest.approx(value, rel=1e-12)


def test_the_tie_breaker_favours_features_of_large_spread():
    weights = first_weights(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(weights, 1 + 1e-6 * np.array([2.0, 1.0, 2 / 3]), rtol=1e-15)
    np.testing.assert_array_equal(first_weights(np.array([1.0, 2.0]), tie_breaker=False), [1, 1])


def test_scores_that_are_noise_are_ordered_by_cost_below_the_others():
    squared_norms = np.array([0.7, 1e-20, 1e-10, 1e-18, 0.0])
    scores = break_ties_by_cost(squared_norms, np.array([9.0, 3.0, 8.0, 1.0, 2.0]))
    assert count_active(squared_norms) == 2
    np.testing.assert_array_equal(scores[[0, 2]], squared_norms[[0, 2]])
    assert list(np.argsort(-scores)) == [0, 2, 3, 4, 1]
    assert 0 < scores[[1, 3, 4]].min() <= scores[[1, 3, 4]].max() <= 0.7e-12


def test_costs_that_are_zero_or_rounded_below_leave_scores_positive():
    scores = break_ties_by_cost(np.array([1.0, 0.0, 0.0]), np.array([0.0, -1e-18, 0.0]))
    assert scores.min() > 0


def test_the_tie_breaker_stays_a_tilt_where_spreads_are_120_decades_apart():
    weights = first_weights(np.array([1e-60, 1.0, 1e60]))
    assert weights.max() <= 2.0
    assert np.all(np.diff(weights) <= 0)
