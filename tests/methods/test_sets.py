"""What sets of features hold, gain and lose, against decompositions; which sets are allowed."""

import numpy as np
import pytest
import scipy.sparse as sp

from brute_force_sets import random_restriction, small_cases
from keepers.linalg.scatter import DenseScatter, as_scatter, column_moments
from keepers.methods.fspca import (
    AllowedSets,
    gains_of_adding,
    hold,
    images_of,
    improve_by_projection,
    losses_of_removing,
    projections,
    variance_held,
)


def scatter(seed, d=12, n=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.exponential(size=d) + rng.standard_normal((n, 1))
    X -= X.mean(axis=0)
    return X.T @ X


def leading_sum(S, features, width):
    return float(np.linalg.eigvalsh(S[np.ix_(features, features)])[::-1][:width].sum())


class TestWhatASetHolds:
    @pytest.mark.parametrize("shape", [(40, 12), (12, 40), (9, 2000)])
    @pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array])
    def test_it_is_the_sum_of_the_leading_eigenvalues_in_every_storage(self, shape, convert):
        rng = np.random.default_rng(0)
        X = rng.standard_normal(shape) * rng.exponential(size=shape[1]) + 3.0
        features = rng.permutation(shape[1])[:10]
        stored = convert(X)
        operator = as_scatter(stored, column_moments(stored), 5)
        Xc = (X - X.mean(axis=0))[:, features]
        for m in (1, 3, 8, 10, 12):
            expected = np.sum(np.linalg.svd(Xc, compute_uv=False)[:m] ** 2)
            assert variance_held(operator, features, m) == pytest.approx(expected, rel=1e-10)

    def test_sets_too_large_to_be_decomposed_are_iterated(self, monkeypatch):
        monkeypatch.setattr("keepers.methods.fspca.SMALL_SIDE", 20)
        monkeypatch.setattr("keepers.linalg.scatter.SMALL_SIDE", 20)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 80))
        X += 4 * rng.standard_normal((60, 2)) @ rng.standard_normal((2, 80))
        S = X.T @ X
        features = np.arange(5, 70)
        found = variance_held(DenseScatter(S), features, 2)
        assert found == pytest.approx(leading_sum(S, features, 2), rel=1e-9)

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("width", [1, 2, 4])
    def test_gains_and_losses_are_bounds_on_what_happens(self, seed, width):
        S = scatter(seed)
        features = np.array([0, 2, 3, 7, 9])
        before = leading_sum(S, features, width)
        held = hold(DenseScatter(S), features, width)
        assert held.variance == pytest.approx(before, rel=1e-12)
        gains = gains_of_adding(held, images_of(DenseScatter(S), held), S.diagonal())
        losses = losses_of_removing(held, S.diagonal()[features])
        tol = 1e-9 * before
        for j in set(range(len(S))) - set(features.tolist()):
            gain = leading_sum(S, np.append(features, j), width) - before
            assert -tol <= gains[j] <= gain + tol
        for at, i in enumerate(features):
            loss = before - leading_sum(S, np.setdiff1d(features, [i]), width)
            assert loss - tol <= losses[at] <= S[i, i] + tol

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("width", [1, 3])
    def test_the_gain_is_that_of_the_bordered_matrix(self, seed, width):
        S = scatter(seed)
        held = hold(DenseScatter(S), np.array([1, 4, 5, 6]), width)
        images = images_of(DenseScatter(S), held)
        gains = gains_of_adding(held, images, S.diagonal())
        for j in (0, 2, 3):
            bordered = np.diag(np.append(held.values, S[j, j]))
            bordered[-1, :-1] = bordered[:-1, -1] = images[j]
            expected = S[j, j] - np.linalg.eigvalsh(bordered)[0]
            assert gains[j] == pytest.approx(expected, rel=1e-6, abs=1e-9 * S.max())

    def test_with_fewer_features_than_components_everything_is_gained(self):
        S = scatter(0)
        held = hold(DenseScatter(S), np.array([1, 4]), 3)
        gains = gains_of_adding(held, images_of(DenseScatter(S), held), S.diagonal())
        np.testing.assert_allclose(gains, S.diagonal())
        losses = losses_of_removing(held, S.diagonal()[[1, 4]])
        np.testing.assert_allclose(losses, S.diagonal()[[1, 4]], rtol=1e-8)

    def test_projections_add_up_to_what_is_held_and_bound_other_sets(self):
        S = scatter(1)
        features = np.array([0, 2, 5, 8])
        held = hold(DenseScatter(S), features, 2)
        p = projections(held, images_of(DenseScatter(S), held))
        assert p[features].sum() == pytest.approx(held.variance, rel=1e-10)
        assert np.all(p <= S.diagonal() * (1 + 1e-9))
        for other in ([1, 3, 4, 6], [0, 2, 5, 9]):
            assert p[other].sum() <= leading_sum(S, other, 2) * (1 + 1e-9)

    def test_components_without_variance_are_left_out(self):
        u = np.array([1.0, 2.0, 3.0, 0.5])
        operator = DenseScatter(np.outer(u, u))
        held = hold(operator, np.array([0, 1, 2]), 2)
        assert len(held.values) == 1
        images = images_of(operator, held)
        np.testing.assert_allclose(projections(held, images), u**2, rtol=1e-10)
        np.testing.assert_allclose(gains_of_adding(held, images, u**2), 0.0, atol=1e-10)


class TestAllowedSets:
    def test_the_largest_values_are_chosen_ties_by_index(self):
        allowed = AllowedSets.of_count(6, 3)
        values = np.array([1.0, 5.0, 2.0, 5.0, 2.0, 2.0 + 1e-14])
        assert allowed.choose(values).tolist() == [1, 2, 3]
        assert AllowedSets.of_count(3, 7).choose(np.arange(3.0)).tolist() == [0, 1, 2]

    def test_features_that_must_be_kept_take_a_place(self):
        must = np.array([False, False, True, False])
        values = np.array([3.0, 4.0, 0.0, 1.0])
        assert AllowedSets.of_count(4, 2, must).choose(values).tolist() == [1, 2]
        assert AllowedSets.of_count(4, 1, must).choose(values).tolist() == [2]

    def test_projections_never_lose_and_keep_what_must_be_kept(self):
        rng = np.random.default_rng(31)
        for case in small_cases(60, seed=32):
            _, must = random_restriction(case, rng)
            allowed = AllowedSets.of_count(len(case.S), case.k, must)
            start = allowed.choose(rng.random(len(case.S)))
            found = improve_by_projection(DenseScatter(case.S), start, case.m, allowed)
            assert len(found.features) == case.k
            assert must.sum() == must[found.features].sum()
            assert found.variance >= leading_sum(case.S, start, case.m) * (1 - 1e-10)
            assert found.variance <= case.best_among(forced=must) * (1 + 1e-10)
