"""FSPCA's sets against the authors' program, all sets of small tables, and closed forms."""

import itertools

import numpy as np
import pytest

from keepers.linalg.moments import column_moments
from keepers.linalg.ordering import nearest_first
from keepers.linalg.scatter import DenseScatter, FactoredScatter
from keepers.linalg.spectrum import principal_subspace
from keepers.solvers import row_sparse
from keepers.solvers.row_sparse import improve_by_projection, rank_one_by_one, solve_row_sparse
from keepers.solvers.set_limit import SetLimit
from shared_material import fixture

CASES = [
    (name, m, k)
    for name in ("blobs", "digits", "mix", "wide")
    for m, k in [(1, 5), (2, 5), (3, 8), (4, 10), (4, 15)]
]


def held_variance(S, features, width):
    return float(np.linalg.eigvalsh(S[np.ix_(features, features)])[::-1][:width].sum())


def best_of_all(S, count, width):
    sets = itertools.combinations(range(len(S)), count)
    return max(held_variance(S, features, width) for features in sets)


def leading(S, width):
    return principal_subspace(DenseScatter(S), width, np.random.default_rng(0))


def solve(S, count, width, **settings):
    limit = SetLimit.of_count(len(S), count)
    return solve_row_sparse(DenseScatter(S), leading(S, width), limit, **settings)


def table(seed, kind, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == 1:
        X = X * rng.exponential(size=d)
    elif kind == 2:
        X = X @ rng.standard_normal((d, d))
    elif kind == 3:
        X = 0.7 * X + 2 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return X - X.mean(axis=0)


@pytest.mark.parametrize(("name", "m", "k"), CASES)
def test_every_step_keeps_the_features_that_the_authors_program_keeps(name, m, k):
    stored = fixture(f"fspca_authors_{name}")
    S, case = stored["S"], f"m{m}_k{k}"
    limit = SetLimit.of_count(len(S), k)
    scores = rank_one_by_one(leading(S, m))
    np.testing.assert_allclose(scores, stored[f"go_score_{case}"], rtol=1e-8, atol=1e-12)
    start = limit.choose(scores)
    np.testing.assert_array_equal(start, stored[f"go_support_{case}"])
    value = held_variance(S, start, m)
    assert value == pytest.approx(float(stored[f"go_value_{case}"]), rel=1e-10)
    path, values = stored[f"ipu_support_path_{case}"], stored[f"ipu_value_path_{case}"]
    for n_steps, support in enumerate(path, 1):
        found = improve_by_projection(DenseScatter(S), start, m, max_iter=n_steps)
        np.testing.assert_array_equal(found.features, support)
        assert found.variance == pytest.approx(values[n_steps - 1], rel=1e-10)
    end = improve_by_projection(DenseScatter(S), start, m)
    squared = np.zeros(len(S))
    squared[end.features] = np.sum(end.vectors**2, axis=1)
    np.testing.assert_allclose(squared, stored[f"ipu_squared_norms_{case}"], atol=1e-8)


@pytest.mark.parametrize(("name", "m", "k"), CASES)
def test_from_a_random_start_it_goes_the_way_of_the_authors_program(name, m, k):
    stored = fixture(f"fspca_authors_{name}")
    S, case = stored["S"], f"m{m}_k{k}"
    W = stored[f"ipu_random_W0_{case}"]
    B = S @ W
    p = np.einsum("ij,jk,ik->i", B, np.linalg.pinv(W.T @ B), B)
    start = np.sort(nearest_first(-p[np.newaxis], k)[0])
    path = stored[f"ipu_random_support_path_{case}"]
    np.testing.assert_array_equal(start, path[0])
    for n_steps, support in enumerate(path[1:], 1):
        found = improve_by_projection(DenseScatter(S), start, m, max_iter=n_steps)
        np.testing.assert_array_equal(found.features, support)
    end = improve_by_projection(DenseScatter(S), start, m)
    np.testing.assert_array_equal(end.features, stored[f"ipu_random_support_{case}"])
    value = stored[f"ipu_random_value_path_{case}"][-1]
    assert end.variance == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("name", "m", "k"), CASES)
def test_it_holds_no_less_than_the_authors_program_and_no_more_than_can_be_held(name, m, k):
    stored = fixture(f"fspca_authors_{name}")
    case = f"m{m}_k{k}"
    found = solve(stored["S"], k, m)
    assert found.variance >= float(stored[f"ipu_value_path_{case}"][-1]) * (1 - 1e-10)
    assert found.variance <= float(stored[f"upper_bound_{case}"]) * (1 + 1e-10)
    if f"brute_value_{case}" in stored:
        assert found.variance == pytest.approx(float(stored[f"brute_value_{case}"]), rel=1e-9)


def test_of_300_small_tables_it_finds_the_best_set_of_all_in_96_percent():
    rng = np.random.default_rng(0)
    n_best = 0
    for trial in range(300):
        d, n, m = int(rng.integers(6, 13)), int(rng.integers(5, 30)), int(rng.integers(1, 5))
        k = int(rng.integers(m, min(8, d - 1) + 1))
        X = table(trial, trial % 4, n, d)
        S = X.T @ X
        best, found = best_of_all(S, k, m), solve(S, k, m)
        assert len(found.features) == k
        assert found.variance == pytest.approx(held_variance(S, found.features, m), rel=1e-9)
        assert found.variance <= best * (1 + 1e-9)
        assert np.all(np.diff(found.history) >= -1e-12 * best)
        assert found.history[-1] == pytest.approx(found.variance, rel=1e-9)
        n_best += found.variance >= best * (1 - 1e-9)
    assert n_best >= 288


@pytest.mark.parametrize("m", [2, 3])
def test_of_a_scatter_of_rank_m_the_largest_variances_are_kept(m):
    rng = np.random.default_rng(m)
    X = rng.standard_normal((40, m)) @ rng.standard_normal((m, 30))
    X -= X.mean(axis=0)
    S = X.T @ X
    found = solve(S, 7, m)
    largest = np.sort(np.argsort(-S.diagonal())[:7])
    np.testing.assert_array_equal(found.features, largest)
    assert found.variance == pytest.approx(S.diagonal()[largest].sum(), rel=1e-9)
    assert found.start == "go"


def test_with_equal_noise_on_every_feature_the_largest_variances_are_kept():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((3, 25))
    S = A.T @ A + 5.0 * np.eye(25)
    found = solve(S, 8, 3)
    np.testing.assert_array_equal(found.features, np.sort(np.argsort(-S.diagonal())[:8]))
    expected = 15.0 + np.sum((A**2).sum(axis=0)[found.features])
    assert found.variance == pytest.approx(expected, rel=1e-9)


def test_all_features_are_pca_and_a_diagonal_gives_its_largest_entries():
    X = table(0, 2, 20, 9)
    S = X.T @ X
    assert solve(S, 9, 3).variance == pytest.approx(held_variance(S, range(9), 3), rel=1e-10)
    D = np.diag([3.0, 9.0, 1.0, 7.0, 5.0, 2.0])
    found = solve(D, 4, 2)
    assert found.features.tolist() == [0, 1, 3, 4]
    assert found.variance == pytest.approx(16.0)


@pytest.mark.parametrize("seed", range(5))
def test_as_many_features_as_components_are_those_of_the_largest_variance(seed):
    X = table(seed, 1, 15, 10)
    S = X.T @ X
    found = solve(S, 3, 3)
    np.testing.assert_array_equal(found.features, np.sort(np.argsort(-S.diagonal())[:3]))


def test_features_outside_the_candidates_come_in(monkeypatch):
    monkeypatch.setattr(row_sparse, "FEWEST_CANDIDATES", 12)
    monkeypatch.setattr(row_sparse, "CANDIDATES_EACH", 2)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 80)) + 1.5 * rng.standard_normal((60, 4)) @ rng.standard_normal(
        (4, 80)
    )
    whole = solve((X - X.mean(axis=0)).T @ (X - X.mean(axis=0)), 6, 2)
    operator = FactoredScatter(X, column_moments(X))
    pca = principal_subspace(operator, 2, np.random.default_rng(0))
    found = solve_row_sparse(operator, pca, SetLimit.of_count(80, 6))
    assert found.n_products >= 1
    # Exchanges of single features do not always end in the same set.
    assert found.variance >= 0.99 * whole.variance
    start = np.argsort(operator.diagonal())[:6]  # the worst there is
    near = improve_by_projection(operator, start, 2, candidates=start)
    plain = improve_by_projection(operator, start, 2)
    assert near.history[0] == pytest.approx(plain.history[0], rel=1e-9)
    assert near.variance > 1.5 * near.history[0]
    assert np.all(np.diff(near.history) >= -1e-9 * near.variance)
    assert set(near.features.tolist()) - set(start.tolist())


def test_many_kept_features_are_found_without_holding_their_scatter():
    X = table(3, 3, 40, 60)
    operator = FactoredScatter(X, column_moments(X))
    pca = principal_subspace(operator, 3, np.random.default_rng(0))
    found = solve_row_sparse(operator, pca, SetLimit.of_count(60, 30), most_candidates=40)
    direct = improve_by_projection(DenseScatter(X.T @ X), np.argsort(-np.sum(X**2, axis=0))[:30], 3)
    assert found.start in ("go", "variance")
    assert found.variance >= direct.variance * (1 - 1e-9)


def test_duplicated_features_give_the_same_set_every_time():
    X = table(7, 3, 30, 6)
    X = np.hstack([X, X])
    S = X.T @ X
    first = solve(S, 5, 2)
    for order in ("C", "F"):
        np.testing.assert_array_equal(
            solve(np.array(S, order=order), 5, 2).features, first.features
        )


@pytest.mark.parametrize("seed", range(12))
def test_groups_must_keep_and_costs_stay_allowed_and_near_the_best(seed):
    rng = np.random.default_rng(seed)
    X = table(seed, 1 + seed % 3, 25, 10)
    S = X.T @ X
    none = np.zeros(10, dtype=bool)
    must = none.copy()
    must[int(rng.integers(10))] = True
    costs = rng.uniform(0.3, 2.0, size=10)
    groups = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4, 5])
    limits = {
        "must": SetLimit(10, 4.0, must),
        "costs": SetLimit(10, 4.0, none, None, costs),
        "groups": SetLimit(10, 5.0, none, groups),
    }
    for limit in limits.values():
        found = solve_row_sparse(DenseScatter(S), leading(S, 2), limit)
        allowed = [
            limit.rows_of(np.flatnonzero(units))
            for units in itertools.product([False, True], repeat=len(limit.unit_costs))
            if np.asarray(limit.unit_costs)[list(units)].sum() <= limit.capacity
            and np.all(np.array(units)[limit.unit_must])
        ]
        assert any(np.array_equal(found.features, rows) for rows in allowed)
        best = max(held_variance(S, rows, 2) for rows in allowed if len(rows))
        assert 0.97 * best <= found.variance <= best * (1 + 1e-9)
        assert np.all(np.diff(found.history) >= -1e-12 * best)
