"""The walk along gamma: where it begins and ends, and that nothing is lost on the way."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from keepers.linalg.scatter import DenseScatter, as_scatter, column_moments
from keepers.linalg.spectrum import orthonormal_subspace, principal_subspace
from keepers.methods.path import find_path, solve_point
from keepers.methods.spcafs import RowPenalty, solve_block

EPS = 1e-12


def planted(seed=0, n=60, d=80):
    """Two groups of correlated columns of different strength, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :10] += 3.0 * rng.standard_normal((n, 1)) * np.linspace(1, 2, 10)
    X[:, 10:25] += 2.0 * rng.standard_normal((n, 1)) * np.linspace(0.5, 1.5, 15)
    return X


def start(X, width):
    scatter = as_scatter(X, column_moments(X), width)
    pca = principal_subspace(scatter, width, np.random.default_rng(0))
    return scatter, pca, RowPenalty(1.0, 1.0, EPS)


def test_at_the_last_point_no_row_outside_gains_from_leaving_zero():
    """The optimality condition for p = 1: 2 |S_jA| <= gamma for every row j that is zero."""
    X = planted(1)
    scatter, pca, penalty = start(X, 2)
    solve = partial(solve_point, scatter, penalty, 200, 1e-7)
    last = find_path(solve, scatter, pca, 10)[-1]
    centred = X - X.mean(axis=0)
    S = centred.T @ centred
    live = last.row_norms**2 > 1e-6
    assert live.sum() == 2
    assert 2 * np.linalg.norm(S[~live][:, live], axis=1).max() <= last.gamma
    smoothing = last.gamma * np.sqrt(EPS) * (~live).sum()
    expected = 2 * last.gamma + smoothing - np.trace(S[live][:, live])
    assert last.objective == pytest.approx(expected, rel=1e-6)


def test_rows_dead_at_the_start_come_back_where_they_should_live():
    """From the sparse end back to a weak penalty: with the dead left out nothing could return."""
    X = planted(3)
    scatter, pca, penalty = start(X, 2)
    top = float(pca.values[0])
    sparse = solve_block(
        scatter, pca, replace(penalty, gamma=top), max_iter=1000, tol=1e-9, warm=True
    )
    assert sparse.n_active == 2
    there = orthonormal_subspace(scatter, np.where(sparse.active[:, np.newaxis], sparse.W, 0.0))
    weak = replace(penalty, gamma=1e-3 * top)
    back = solve_block(scatter, there, weak, max_iter=5000, tol=1e-10, warm=True)
    direct = solve_block(scatter, pca, weak, max_iter=2000, tol=1e-10)
    assert back.n_active > 70
    assert back.objective[-1] == pytest.approx(direct.objective[-1], rel=1e-3)


def test_a_point_out_of_steps_says_so_and_has_all_its_rows():
    X = planted(4, d=300)
    scatter, pca, penalty = start(X, 2)
    for share in (1e-2, 0.1):
        short, space = solve_point(scatter, penalty, 3, 1e-12, share * float(pca.values[0]), pca)
        assert not short.converged
        assert space.vectors.shape == (300, 2)
        assert short.n_iter == 3


def test_with_as_many_components_as_features_every_row_lives_everywhere():
    scatter = DenseScatter(np.diag([4.0, 3.0, 2.0]) + 0.5)
    pca = principal_subspace(scatter, 3, np.random.default_rng(0))
    solve = partial(solve_point, scatter, RowPenalty(1.0, 1.0, EPS), 50, 1e-8)
    points = find_path(solve, scatter, pca, 6)
    assert [point.n_active for point in points] == [3] * 6
    assert np.allclose([point.trace for point in points], 10.5)  # nothing is lost


def test_uncorrelated_features_are_alone_from_the_first_point():
    scatter = DenseScatter(np.diag([5.0, 4.0, 3.0, 2.0, 1.0]))
    pca = principal_subspace(scatter, 2, np.random.default_rng(0))
    solve = partial(solve_point, scatter, RowPenalty(1.0, 1.0, EPS), 50, 1e-8)
    points = find_path(solve, scatter, pca, 5)
    assert [point.n_active for point in points] == [2] * 5
    assert np.allclose([point.trace for point in points], 9.0)
