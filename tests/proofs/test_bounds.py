"""Bounds on the variance that k features can hold, against every set of small problems."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force_sets import EQUAL, case_of, random_restriction, scatter_of, small_cases
from keepers import datasets
from keepers.linalg.scatter import DenseScatter, FactoredScatter, as_scatter, column_moments
from keepers.methods.fspca import improve_by_projection, variance_held
from keepers.proofs.bounds import (
    DOUBLE_ROUNDING,
    SpectralBound,
    admissible_vectors,
    factor_columns,
    spectral_bound,
    tight_bound,
)

FIXTURES = Path(__file__).parent.parent / "fixtures"
NAMES = ("mix", "blobs", "digits", "wide")
# The allowance for rounding is added to bounds: they must not be below the optimum at all, but for
# the rounding of the brute force itself.
BELOW = 1e-13


def rng():
    return np.random.default_rng(0)


def bound_of(S, m):
    return spectral_bound(DenseScatter(S), m, rng())


def assert_proofs_hold(case, proofs):
    share = case.share_of_best_sets()
    assert np.all(share[proofs.inside] == 1.0)
    assert np.all(share[proofs.outside] == 0.0)
    return int(proofs.inside.sum() + proofs.outside.sum())


def test_it_is_never_below_the_optimum_and_proofs_are_right():
    n_proved = 0
    for case in small_cases(180, seed=1):
        found = bound_of(case.S, case.m).bound(case.k, case.m)
        assert found.value >= case.best * (1 - BELOW), case
        n_proved += assert_proofs_hold(case, found.proofs(case.best))
    assert n_proved > 180  # proofs of nothing would always be right


def test_blocks_of_any_kind_bound_the_optimum():
    generator = np.random.default_rng(2)
    for case in small_cases(100, seed=3):
        d = len(case.S)
        V = generator.standard_normal((d, int(generator.integers(1, d + 1))))
        if generator.random() < 0.3:
            V[:, 0] = V[:, -1]  # dependent columns
        found = SpectralBound.from_block(V, case.S @ V, case.S.diagonal(), DOUBLE_ROUNDING)
        bound = found.bound(case.k, case.m)
        assert bound.value >= case.best * (1 - BELOW), case
        assert_proofs_hold(case, bound.proofs(case.best))


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_blocks_bound_in_any_unit(unit):
    S = np.cov(np.random.default_rng(0).standard_normal((30, 8)), rowvar=False)
    V = np.linalg.eigh(S)[1]
    V[:, 0] = V[:, 1] + V[:, 2]  # dependent columns
    expected, found = (
        SpectralBound.from_block(V, s * (S @ V), s * S.diagonal(), DOUBLE_ROUNDING).bound(6, 1)
        for s in (1.0, unit)
    )
    assert expected.value < 0.6 * np.sort(S.diagonal())[-6:].sum()  # the spectrum counts
    assert found.value / unit == pytest.approx(expected.value, rel=1e-9)


@pytest.mark.parametrize("n_more", [0, 1, 3])
def test_a_part_of_the_eigenpairs_bounds_the_optimum(n_more, monkeypatch):
    monkeypatch.setattr("keepers.proofs.bounds.CHEAP_PAIRS", 0)
    monkeypatch.setattr("keepers.proofs.bounds.MORE_PAIRS", n_more)
    for case in small_cases(60, seed=5):
        found = bound_of(case.S, case.m).bound(case.k, case.m)
        assert found.value >= case.best * (1 - BELOW), case
        assert_proofs_hold(case, found.proofs(case.best))


def test_problems_with_forced_features_are_bounded():
    generator = np.random.default_rng(6)
    for case in small_cases(120, seed=7):
        _, forced = random_restriction(case, generator)
        best = case.best_among(forced=forced)
        found = bound_of(case.S, case.m).bound(case.k, case.m, forced)
        assert found.value >= best * (1 - BELOW), case
        proofs = found.proofs(best)
        sets = case.sets[case.admitted(forced=forced) & (case.values >= best * (1 - EQUAL))]
        share = np.bincount(sets.ravel(), minlength=len(case.S)) / len(sets)
        assert np.all(share[proofs.inside] == 1.0)
        assert np.all(share[proofs.outside] == 0.0)


def test_the_search_finds_the_least_bound():
    for case in small_cases(30, seed=10):
        bound = bound_of(case.S, case.m)
        grid = np.linspace(0.0, bound.values[0], 2001)
        least = min(case.m * mu + np.sort(bound.terms(mu))[-case.k :].sum() for mu in grid)
        assert bound.bound(case.k, case.m).value <= least * (1 + 1e-9) + bound.rounding(case.m)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_bound_of_the_fixtures(name):
    stored = np.load(FIXTURES / f"fspca_authors_{name}.npz")
    for m, k in stored["cases"]:
        expected = float(stored[f"upper_bound_m{m}_k{k}"])
        found = bound_of(stored["S"], m).bound(int(k), int(m))
        assert found.value == pytest.approx(expected, rel=1e-6)
        if f"brute_value_m{m}_k{k}" in stored:
            assert found.value >= float(stored[f"brute_value_m{m}_k{k}"])


def test_it_is_exact_where_the_rank_is_at_most_the_number_of_components():
    generator = np.random.default_rng(11)
    A = generator.standard_normal((3, 10))
    case = case_of(A.T @ A, 5, 3)
    assert bound_of(case.S, 3).bound(5, 3).value == pytest.approx(case.best, rel=1e-9)
    with_noise = case_of(A.T @ A + 0.4 * np.eye(10), 5, 3)
    assert bound_of(with_noise.S, 3).bound(5, 3).value == pytest.approx(with_noise.best, rel=1e-9)


def test_it_is_exact_for_all_features_for_a_diagonal_and_for_as_many_features_as_components():
    S = scatter_of("flat", 9, np.random.default_rng(12))
    pca = np.linalg.eigvalsh(S)[-2:].sum()
    assert bound_of(S, 2).bound(9, 2).value == pytest.approx(pca, rel=1e-9)
    diagonal = np.diag(np.arange(1.0, 10.0))
    assert bound_of(diagonal, 2).bound(5, 2).value == pytest.approx(17.0, rel=1e-9)
    largest = np.sort(S.diagonal())[-3:].sum()
    assert bound_of(S, 3).bound(3, 3).value == pytest.approx(largest, rel=1e-9)


def test_of_equal_columns_none_is_proved():
    S = np.kron(np.diag([5.0, 1.0]), np.ones((2, 2)))  # 0 and 1 are equal, 2 and 3 are
    proofs = bound_of(S, 1).bound(1, 1).proofs(5.0)
    assert not proofs.inside.any()
    np.testing.assert_array_equal(proofs.outside, [False, False, True, True])


@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
def test_tables_give_the_bound_of_their_scatter(shape):
    X = np.random.default_rng(13).standard_normal(shape) + 2.0
    scatter = FactoredScatter(X, column_moments(X))
    Xc = X - X.mean(axis=0)
    expected = bound_of(Xc.T @ Xc, 3).bound(8, 3)
    found = spectral_bound(scatter, 3, rng()).bound(8, 3)
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    np.testing.assert_allclose(found.terms, expected.terms, rtol=1e-6, atol=1e-8 * expected.value)


def test_a_truncated_spectrum_of_a_wide_table_costs_little(monkeypatch):
    X = np.random.default_rng(14).standard_normal((70, 200)) * np.exp(-np.arange(200) / 60)
    scatter = FactoredScatter(X, column_moments(X))
    whole = spectral_bound(scatter, 2, rng())
    monkeypatch.setattr("keepers.proofs.bounds.CHEAP_PAIRS", 0)
    part = spectral_bound(scatter, 2, rng())
    assert len(part.values) == 52 < len(whole.values)
    least, found = whole.bound(20, 2).value, part.bound(20, 2).value
    assert least * (1 - 1e-10) <= found <= least * 1.01


class ByProducts(DenseScatter):
    """A matrix without a small side."""

    def small_side(self):
        return None


def test_products_alone_bound_the_optimum():
    for case in small_cases(60, seed=15):
        found = spectral_bound(ByProducts(case.S), case.m, rng()).bound(case.k, case.m)
        assert found.value >= case.best * (1 - BELOW), case


def test_products_give_almost_the_bound_of_the_spectrum():
    generator = np.random.default_rng(16)
    A = generator.standard_normal((300, 5)) @ generator.standard_normal((5, 120))
    A += 0.1 * generator.standard_normal(A.shape)
    S = A.T @ A
    exact = bound_of(S, 5).bound(30, 5).value
    found = spectral_bound(ByProducts(S), 5, rng()).bound(30, 5).value
    assert exact * (1 - 1e-9) <= found <= 1.02 * exact


@given(st.integers(0, 10**6), st.integers(4, 9), st.integers(1, 3), st.floats(-6, 6))
@settings(max_examples=60, deadline=None)
def test_any_matrix_is_bounded(seed, d, m, exponent):
    generator = np.random.default_rng(seed)
    A = generator.standard_normal((int(generator.integers(1, 12)), d))
    A *= 10.0 ** generator.uniform(-3, 3, d)
    k = int(generator.integers(m, d + 1))
    case = case_of(A.T @ A * 10.0**exponent, k, m)
    found = bound_of(case.S, m).bound(k, m)
    assert found.value >= case.best * (1 - BELOW)
    assert_proofs_hold(case, found.proofs(case.best))


def test_the_tight_bound_is_never_below_the_optimum_and_proofs_are_right():
    n_proved, gaps = 0, []
    for case in small_cases(120, seed=21, largest=10):
        found = tight_bound(DenseScatter(case.S), case.k, case.m, enough=case.best)
        assert found.value >= case.best * (1 - BELOW), case
        proofs, share = found.proofs, case.share_of_best_sets()
        assert np.all(share[proofs.outside] == 0.0), case
        assert np.all(share[proofs.inside] == 1.0), case
        n_proved += int(proofs.outside.sum() + proofs.inside.sum())
        gaps.append(found.value / case.best - 1.0)
    assert n_proved > 120
    assert np.median(gaps) < 0.03


def test_sets_with_forced_features_are_bounded_tightly():
    rng = np.random.default_rng(22)
    for case in small_cases(60, seed=23, largest=10):
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
        y = admissible_vectors(t, rng.exponential(size=r) ** 3, x[:, np.newaxis], np.array([s]))[
            :, 0
        ]
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


@pytest.mark.parametrize("shape", [(8, 30), (30, 8)])
def test_columns_have_the_scatter_as_their_inner_products(shape):
    X = np.random.default_rng(26).standard_normal(shape)
    scatter = as_scatter(X, column_moments(X), 3)
    Z, left_out = factor_columns(scatter)
    Xc = X - X.mean(axis=0)
    np.testing.assert_allclose(Z.T @ Z, Xc.T @ Xc, atol=1e-10)
    assert len(Z) == min(shape[0] - 1, shape[1])
    assert left_out <= 1e-12


@pytest.mark.parametrize(("k", "most"), [(20, 0.04), (50, 0.04), (100, 0.05)])
def test_genes_are_bounded_to_a_few_per_cent_where_the_spectrum_says_little(k, most):
    X = datasets.load("srbct").X
    scatter = as_scatter(X, column_moments(X), 3)
    spectrum = spectral_bound(scatter, 3, np.random.default_rng(0))
    start = np.argsort(-spectrum.leading_terms(3))[:k]
    value = improve_by_projection(scatter, start, 3).variance
    assert tight_bound(scatter, k, 3).value / value - 1.0 < most
    assert spectrum.bound(k, 3).value / value - 1.0 > 0.2
