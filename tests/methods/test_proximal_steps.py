"""Proximal maps against hand cases, optimality conditions and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from keepers.methods.rivals.eufs import nearest_orthonormal, shrink_rows
from keepers.methods.rivals.rne import soft_threshold
from keepers.methods.rivals.sogfs import project_rows_onto_simplex
from shared_material import fixture


@given(seed=st.integers(0, 10_000), threshold=st.floats(0.01, 3.0))
@settings(max_examples=40, deadline=None)
def test_shrunken_rows_satisfy_the_optimality_conditions(seed, threshold):
    Q = np.random.default_rng(seed).normal(size=(6, 3))
    Q[0] = 0.0
    E = shrink_rows(Q, threshold)
    lengths = np.linalg.norm(E, axis=1)
    live = lengths > 0
    # 0 in threshold * (subgradient of |e_i|) + e_i - q_i
    np.testing.assert_allclose((Q - E)[live], threshold * E[live] / lengths[live, None], atol=1e-12)
    assert (np.linalg.norm(Q[~live], axis=1) <= threshold * (1 + 1e-12)).all()


@pytest.mark.parametrize("q", [-1.7, -0.2, 0.4, 2.5])
def test_soft_threshold_minimises_its_objective(q):
    found = minimize(lambda e: 0.6 * abs(e[0]) + 0.5 * (e[0] - q) ** 2, [q], method="Nelder-Mead")
    assert soft_threshold(np.array([[q]]), 0.6)[0, 0] == pytest.approx(found.x[0], abs=1e-3)


def test_the_nearest_orthonormal_matrix_has_the_largest_trace():
    rng = np.random.default_rng(5)
    N = rng.normal(size=(7, 3))
    U = nearest_orthonormal(N)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-13)
    # The maximum is the sum of singular values.
    assert np.vdot(U, N) == pytest.approx(np.linalg.svd(N, compute_uv=False).sum())
    others = [np.linalg.qr(rng.normal(size=(7, 3)))[0] for _ in range(200)]
    assert np.vdot(U, N) > max(np.vdot(other, N) for other in others)


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


def test_matches_the_newton_iteration_of_the_authors():
    reference = fixture("simplex_projection")
    found = project_rows_onto_simplex(reference["V"])
    np.testing.assert_allclose(found, reference["P"], rtol=0, atol=2e-13)
