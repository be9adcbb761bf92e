"""Bounds on what a set gains and loses, against decompositions of the changed sets."""

import numpy as np
import pytest

from keepers.linalg.scatter import DenseScatter
from keepers.solvers.set_changes import (
    gains_of_adding,
    hold,
    images_of,
    losses_of_removing,
    projections,
)


def scatter(seed, d=12, n=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.exponential(size=d) + rng.standard_normal((n, 1))
    X -= X.mean(axis=0)
    return X.T @ X


def held_variance(S, features, width):
    return float(np.linalg.eigvalsh(S[np.ix_(features, features)])[::-1][:width].sum())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("width", [1, 2, 4])
def test_gains_and_losses_are_bounds_on_what_happens(seed, width):
    S = scatter(seed)
    features = np.array([0, 2, 3, 7, 9])
    before = held_variance(S, features, width)
    held = hold(DenseScatter(S), features, width)
    assert held.variance == pytest.approx(before, rel=1e-12)
    images = images_of(DenseScatter(S), held)
    gains = gains_of_adding(held, images, S.diagonal())
    losses = losses_of_removing(held, S.diagonal()[features])
    tol = 1e-9 * before
    for j in set(range(len(S))) - set(features.tolist()):
        gain = held_variance(S, np.append(features, j), width) - before
        assert -tol <= gains[j] <= gain + tol
    for at, i in enumerate(features):
        loss = before - held_variance(S, np.setdiff1d(features, [i]), width)
        assert loss - tol <= losses[at] <= S[i, i] + tol


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [1, 3])
def test_the_gain_is_that_of_the_bordered_matrix(seed, width):
    S = scatter(seed)
    held = hold(DenseScatter(S), np.array([1, 4, 5, 6]), width)
    images = images_of(DenseScatter(S), held)
    gains = gains_of_adding(held, images, S.diagonal())
    for j in (0, 2, 3):
        bordered = np.diag(np.append(held.values, S[j, j]))
        bordered[-1, :-1] = bordered[:-1, -1] = images[j]
        expected = S[j, j] - np.linalg.eigvalsh(bordered)[0]
        assert gains[j] == pytest.approx(expected, rel=1e-6, abs=1e-9 * S.max())


def test_with_fewer_features_than_components_everything_is_gained():
    S = scatter(0)
    held = hold(DenseScatter(S), np.array([1, 4]), 3)
    gains = gains_of_adding(held, images_of(DenseScatter(S), held), S.diagonal())
    np.testing.assert_allclose(gains, S.diagonal())
    losses = losses_of_removing(held, S.diagonal()[[1, 4]])
    np.testing.assert_allclose(losses, S.diagonal()[[1, 4]], rtol=1e-8)


def test_projections_add_up_to_what_is_held_and_bound_other_sets():
    S = scatter(1)
    features = np.array([0, 2, 5, 8])
    held = hold(DenseScatter(S), features, 2)
    p = projections(held, images_of(DenseScatter(S), held))
    assert p[features].sum() == pytest.approx(held.variance, rel=1e-10)
    assert np.all(p <= S.diagonal() * (1 + 1e-9))
    for other in ([1, 3, 4, 6], [0, 2, 5, 9]):
        assert p[other].sum() <= held_variance(S, other, 2) * (1 + 1e-9)


def test_components_without_variance_are_left_out():
    u = np.array([1.0, 2.0, 3.0, 0.5])
    held = hold(DenseScatter(np.outer(u, u)), np.array([0, 1, 2]), 2)
    assert len(held.values) == 1
    images = images_of(DenseScatter(np.outer(u, u)), held)
    np.testing.assert_allclose(projections(held, images), u**2, rtol=1e-10)
    gains = gains_of_adding(held, images, u**2)
    np.testing.assert_allclose(gains, 0.0, atol=1e-10)
