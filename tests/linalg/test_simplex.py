import numpy as np
import pytest

from keepers.linalg.simplex import project_rows_onto_simplex
from shared_material import fixture


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
