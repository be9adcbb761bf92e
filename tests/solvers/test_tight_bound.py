"""The tight bound, against every set of small problems."""

import numpy as np
import pytest

from brute_force_sets import random_restriction, scatter_of, small_cases
from keepers import datasets
from keepers.linalg.held_variance import variance_held
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import DenseScatter, as_scatter
from keepers.solvers.row_sparse import improve_by_projection
from keepers.solvers.tight_bound import _Search, factor_columns, tight_bound
from keepers.solvers.variance_bounds import spectral_bound

BELOW = 1e-13


def test_it_is_never_below_the_optimum_and_proofs_are_right():
    n_proved, gaps = 0, []
    for case in small_cases(300, seed=21, largest=11):
        found = tight_bound(DenseScatter(case.S), case.k, case.m, enough=case.best, one_by_one=True)
        assert found.value >= case.best * (1 - BELOW), case
        proofs, share = found.proofs(case.best), case.share_of_best_sets()
        assert np.all(share[proofs.outside] == 0.0), case
        assert np.all(share[proofs.inside] == 1.0), case
        n_proved += int(proofs.outside.sum() + proofs.inside.sum())
        for j in range(len(case.S)):
            has = (case.sets == j).any(axis=1)
            assert found.with_it[j] >= case.values[has].max() * (1 - BELOW)
            if not has.all():
                assert found.without[j] >= case.values[~has].max() * (1 - BELOW)
        gaps.append(found.value / case.best - 1.0)
    assert n_proved > 300
    assert np.median(gaps) < 0.03


def test_sets_with_forced_features_are_bounded():
    rng = np.random.default_rng(22)
    for case in small_cases(100, seed=23, largest=10):
        allowed, forced = random_restriction(case, rng)
        left = np.flatnonzero(allowed)
        found = tight_bound(
            DenseScatter(case.S).restrict(left), case.k, case.m, forced=forced[left]
        )
        assert found.value >= case.best_among(allowed, forced) * (1 - BELOW), case


@pytest.mark.parametrize("seed", range(5))
def test_every_summand_exceeds_what_it_stands_for(seed):
    """The matrix x x' - Y has no eigenvalue above t, for weights that fit and for others."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        r = int(rng.integers(2, 9))
        x = rng.standard_normal(r) * rng.exponential(size=r)
        s = float(x @ x)
        t = s * rng.uniform(1e-6, 0.999)
        y = _Search._factors(t, rng.exponential(size=r) ** 3, x[:, np.newaxis], np.array([s]))[:, 0]
        largest = np.linalg.eigvalsh(np.outer(x, x) - np.outer(y, y))[-1]
        assert largest <= t + 1e-12 * s


def test_any_number_of_steps_gives_a_bound_and_more_a_better_one():
    X = datasets.load("srbct").X[:, :300]
    scatter = as_scatter(X, column_moments(X), 3)
    values = [tight_bound(scatter, 10, 3, max_steps=steps).value for steps in (0, 1, 5, 30)]
    largest = np.argsort(-scatter.diagonal())[:10]
    assert values[3] >= variance_held(scatter, largest, 3)
    assert values[3] <= values[2] <= values[1] <= values[0]
    assert values[3] < 0.99 * values[0]


def test_it_stops_at_what_is_enough():
    S = scatter_of("flat", 11, np.random.default_rng(25))
    first = tight_bound(DenseScatter(S), 5, 2, max_steps=1).value
    assert tight_bound(DenseScatter(S), 5, 2, enough=2 * first).n_steps == 1


@pytest.mark.parametrize("shape", [(8, 30), (30, 8)])
def test_columns_have_the_scatter_as_their_inner_products(shape):
    X = np.random.default_rng(26).standard_normal(shape)
    scatter = as_scatter(X, column_moments(X), 3)
    Z, left_out = factor_columns(scatter)
    Xc = X - X.mean(axis=0)
    np.testing.assert_allclose(Z.T @ Z, Xc.T @ Xc, atol=1e-10)
    assert len(Z) == min(shape[0] - 1, shape[1])
    assert left_out <= 1e-12


def test_an_operator_without_a_small_side_is_refused():
    class ByProducts(DenseScatter):
        def small_side(self):
            return None

    with pytest.raises(ValueError, match="small side"):
        tight_bound(ByProducts(np.eye(3)), 2, 1)


@pytest.mark.parametrize(("k", "most"), [(20, 0.04), (50, 0.04), (100, 0.05)])
def test_genes_are_bounded_to_a_few_per_cent_where_the_spectrum_says_little(k, most):
    X = datasets.load("srbct").X
    scatter = as_scatter(X, column_moments(X), 3)
    spectrum = spectral_bound(scatter, 3, np.random.default_rng(0))
    start = np.argsort(-spectrum.leading_terms(3))[:k]
    value = improve_by_projection(scatter, start, 3).variance
    assert tight_bound(scatter, k, 3).value / value - 1.0 < most
    assert spectrum.bound(k, 3).value / value - 1.0 > 0.2
