"""What picks explain, beside what as many directions could."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import as_short_factor
from keepers.solvers import picked_columns as module
from keepers.solvers.picked_columns import PickedColumns, best_shares, scores_of_picks


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("small_side", [3000, 5])
def test_the_best_shares_are_those_of_singular_values(shape, storage, small_side, monkeypatch):
    monkeypatch.setattr(module, "SMALL_SIDE", small_side)
    X = np.random.default_rng(0).standard_normal(shape)
    values = storage(X)
    found = best_shares(as_short_factor(values, column_moments(values)), 7)
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    expected = np.cumsum(squares)[:7] / squares.sum()
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(300, 90), (90, 300)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_past_the_small_side_a_few_best_shares_are_right_to_a_thousandth(
    shape, storage, monkeypatch
):
    monkeypatch.setattr(module, "SMALL_SIDE", 5)
    monkeypatch.setattr(module, "principal_subspace", None)  # not the way of few directions
    rng = np.random.default_rng(1)
    X = 2.0 + rng.standard_normal(shape) * (rng.random(shape) < 0.2)
    values = storage(X)
    found = best_shares(as_short_factor(values, column_moments(values)), 10)
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(found, np.cumsum(squares)[:10] / squares.sum(), rtol=1e-3)
    again = best_shares(as_short_factor(values, column_moments(values)), 10)
    np.testing.assert_array_equal(found, again)  # exactly: the same computation, run twice


def test_no_picks_have_no_shares():
    X = np.eye(4)
    assert best_shares(as_short_factor(X, column_moments(X)), 0).shape == (0,)


def test_a_pick_scores_what_was_left_before_it():
    scores = scores_of_picks([2, 0], [1.0, 0.5, 0.2], np.array([0.0, 0.1, 0.0, 0.2]))
    np.testing.assert_array_equal(scores, [0.5, 0.1, 1.0, 0.2])


def test_explained_is_what_is_not_left():
    nothing = np.zeros(3)
    found = PickedColumns(np.array([1, 0]), np.array([1.0, 0.25, 0.0]), nothing, nothing)
    np.testing.assert_array_equal(found.explained, [0.75, 1.0])
