"""Proximal maps against hand cases, optimality conditions and brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import ortho_group

from keepers.linalg.proximal import (
    keep_top_rows,
    nearest_orthonormal,
    project_rows_onto_simplex,
    rank_threshold,
    shrink_rows,
    soft_threshold,
)
from shared_material import fixture


def test_shrinking_shortens_rows_by_the_threshold_and_no_further_than_zero():
    Q = np.array([[3.0, 4.0], [0.6, 0.8], [0.0, 0.0], [-0.3, 0.4]])
    expected = [[2.4, 3.2], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    np.testing.assert_allclose(shrink_rows(Q, 1.0), expected, atol=1e-15)


def test_shrinking_by_zero_changes_nothing():
    Q = np.array([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_array_equal(shrink_rows(Q, 0.0), Q)


@given(seed=st.integers(0, 10_000), threshold=st.floats(0.01, 3.0))
@settings(max_examples=40, deadline=None)
def test_shrunken_rows_satisfy_the_optimality_conditions(seed, threshold):
    Q = np.random.default_rng(seed).normal(size=(6, 3))
    E = shrink_rows(Q, threshold)
    lengths = np.linalg.norm(E, axis=1)
    live = lengths > 0
    # 0 in threshold * (subgradient of |e_i|) + e_i - q_i
    np.testing.assert_allclose((Q - E)[live], threshold * E[live] / lengths[live, None], atol=1e-12)
    assert (np.linalg.norm(Q[~live], axis=1) <= threshold * (1 + 1e-12)).all()


def test_soft_threshold_moves_entries_towards_zero():
    Q = np.array([[2.0, -0.5], [-3.0, 1.0]])
    np.testing.assert_array_equal(soft_threshold(Q, 1.0), [[1.0, 0.0], [-2.0, 0.0]])


@pytest.mark.parametrize("q", [-1.7, -0.2, 0.4, 2.5])
def test_soft_threshold_minimises_its_objective(q):
    found = minimize(lambda e: 0.6 * abs(e[0]) + 0.5 * (e[0] - q) ** 2, [q], method="Nelder-Mead")
    assert soft_threshold(np.array([[q]]), 0.6)[0, 0] == pytest.approx(found.x[0], abs=1e-3)


def test_the_top_rows_are_the_best_choice_of_rows():
    Q = np.random.default_rng(3).normal(size=(6, 4))
    kept = keep_top_rows(Q, 3)
    errors = []
    for rows in combinations(range(6), 3):
        candidate = np.zeros_like(Q)
        candidate[list(rows)] = Q[list(rows)]
        errors.append(np.linalg.norm(candidate - Q))
    assert np.linalg.norm(kept - Q) == pytest.approx(min(errors))
    assert np.count_nonzero(kept.any(axis=1)) == 3


def test_among_rows_of_equal_norm_the_first_are_kept():
    kept = keep_top_rows(np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), 2)
    np.testing.assert_array_equal(kept.any(axis=1), [True, True, False, False])


@pytest.mark.parametrize("n_rows", [0, 4])
def test_keeping_no_or_all_rows_works(n_rows):
    Q = np.ones((4, 2))
    np.testing.assert_array_equal(keep_top_rows(Q, n_rows), Q if n_rows else 0 * Q)


def test_rank_threshold_keeps_eigenvalues_above_the_root():
    basis = ortho_group.rvs(4, random_state=1)
    A = (basis * [5.0, 2.0, 1.9, -7.0]) @ basis.T
    expected = 5.0 * np.outer(basis[:, 0], basis[:, 0])
    part = rank_threshold(A, 4.0 * (1 + 1e-9))  # the root is 2, and 2 goes too
    np.testing.assert_allclose(part.dense(), expected, atol=1e-12)
    assert part.rank == 1


def test_rank_threshold_orders_eigenpairs_and_looks_at_the_symmetric_part():
    lopsided = np.diag([3.0, 5.0, 4.0]) + np.array([[0, 1.0, 0], [-1.0, 0, 0], [0, 0, 0]])
    part = rank_threshold(lopsided, 1.0)
    np.testing.assert_allclose(part.values, [5.0, 4.0, 3.0])
    np.testing.assert_allclose(part.dense(), np.diag([3.0, 5.0, 4.0]), atol=1e-14)


@given(seed=st.integers(0, 10_000), eta=st.floats(0.05, 20.0))
@settings(max_examples=40, deadline=None)
def test_no_other_choice_of_eigenpairs_beats_the_rank_threshold(seed, eta):
    A = np.random.default_rng(seed).normal(size=(5, 5))
    A = A + A.T
    values, vectors = np.linalg.eigh(A)

    def cost(L, rank):
        return np.sum((L - A) ** 2) + eta * rank

    part = rank_threshold(A, eta)
    reached = cost(part.dense(), part.rank)
    positive = np.flatnonzero(values > 0)
    for size in range(len(positive) + 1):
        for chosen in combinations(positive, size):
            columns = vectors[:, list(chosen)]
            other = cost((columns * values[list(chosen)]) @ columns.T, size)
            assert reached <= other + 1e-9


def test_a_matrix_below_the_threshold_gives_rank_zero():
    part = rank_threshold(np.full((3, 3), 0.5), 100.0)
    assert part.rank == 0
    np.testing.assert_array_equal(part.dense(), np.zeros((3, 3)))


def test_the_nearest_orthonormal_matrix_has_the_largest_trace():
    rng = np.random.default_rng(5)
    N = rng.normal(size=(7, 3))
    U = nearest_orthonormal(N)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-13)
    # The maximum is the sum of singular values.
    assert np.vdot(U, N) == pytest.approx(np.linalg.svd(N, compute_uv=False).sum())
    others = [np.linalg.qr(rng.normal(size=(7, 3)))[0] for _ in range(200)]
    assert np.vdot(U, N) > max(np.vdot(other, N) for other in others)


def test_the_nearest_orthonormal_matrix_to_an_orthonormal_one_is_itself():
    U = np.linalg.qr(np.random.default_rng(6).normal(size=(6, 2)))[0]
    np.testing.assert_allclose(nearest_orthonormal(3.0 * U), U, atol=1e-14)


def test_points_of_the_simplex_stay_where_they_are():
    V = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    np.testing.assert_allclose(project_rows_onto_simplex(V), V, atol=1e-16)


def test_hand_cases():
    V = np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 0.8], [-5.0, -7.0]])
    expected = [[1.0, 0.0], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0]]
    np.testing.assert_allclose(project_rows_onto_simplex(V), expected, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_no_other_point_of_the_simplex_is_nearer(scale):
    rng = np.random.default_rng(0)
    V = scale * rng.standard_normal((50, 7))
    P = project_rows_onto_simplex(V)
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-14)
    # (v - p)'(q - p) <= 0 for every corner q, hence for every point.
    toward_corners = (V - P)[:, :, np.newaxis] * (np.eye(7) - P[:, :, np.newaxis])
    assert toward_corners.sum(axis=1).max() <= 1e-12 * max(scale, 1.0)


def test_a_common_offset_of_a_row_changes_nothing():
    V = np.random.default_rng(1).standard_normal((20, 5))
    shifted = project_rows_onto_simplex(V + 2.0**20)
    np.testing.assert_allclose(shifted, project_rows_onto_simplex(V), atol=1e-9)


def test_matches_the_newton_iteration_of_the_authors():
    reference = fixture("simplex_projection")
    found = project_rows_onto_simplex(reference["V"])
    np.testing.assert_allclose(found, reference["P"], rtol=0, atol=2e-13)
