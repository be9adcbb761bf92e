"""FSPCA against the authors' program and all sets; every storage."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from brute_force_sets import case_of
from keepers import FSPCA, SPCAFS
from keepers.exceptions import ParameterError, UnitsWarning
from keepers.linalg.scatter import DenseScatter, FactoredScatter, column_moments
from keepers.linalg.spectrum import principal_subspace
from keepers.methods.fspca import (
    AllowedSets,
    gains_of_adding,
    go_scores,
    hold,
    improve_by_projection,
    losses_of_removing,
    solve_fspca,
)
from shared_material import fixture

CHOOSE_ROUTE = "keepers.methods.reading.choose_route"

pytestmark = pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")


CASES = [
    (name, m, k)
    for name in ("blobs", "digits", "mix", "wide")
    for m, k in [(1, 5), (2, 5), (3, 8), (4, 10), (4, 15)]
]


def held_variance(S, features, width):
    return float(np.linalg.eigvalsh(S[np.ix_(features, features)])[::-1][:width].sum())


def leading(S, width):
    return principal_subspace(DenseScatter(S), width, np.random.default_rng(0))


def solve(S, count, width):
    allowed = AllowedSets.of_count(len(S), count)
    return solve_fspca(DenseScatter(S), leading(S, width), allowed)


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


class TestTheSolver:
    @pytest.mark.parametrize(("name", "m", "k"), CASES)
    def test_every_step_keeps_the_features_that_the_authors_program_keeps(self, name, m, k):
        stored = fixture(f"fspca_authors_{name}")
        S, case = stored["S"], f"m{m}_k{k}"
        scores = go_scores(leading(S, m))
        np.testing.assert_allclose(scores, stored[f"go_score_{case}"], rtol=1e-8, atol=1e-12)
        start = AllowedSets.of_count(len(S), k).choose(scores)
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
        squared[end.features] = np.sum(end.held.vectors**2, axis=1)
        np.testing.assert_allclose(squared, stored[f"ipu_squared_norms_{case}"], atol=1e-8)

    @pytest.mark.parametrize(("name", "m", "k"), CASES)
    def test_it_holds_no_less_than_the_authors_program_and_no_more_than_can_be(self, name, m, k):
        stored = fixture(f"fspca_authors_{name}")
        case = f"m{m}_k{k}"
        found = solve(stored["S"], k, m).held.variance
        assert found >= float(stored[f"ipu_value_path_{case}"][-1]) * (1 - 1e-10)
        assert found <= float(stored[f"upper_bound_{case}"]) * (1 + 1e-10)
        if f"brute_value_{case}" in stored:
            assert found == pytest.approx(float(stored[f"brute_value_{case}"]), rel=1e-9)

    def test_of_100_small_tables_it_finds_the_best_set_of_all_in_98_percent(self):
        rng = np.random.default_rng(0)
        n_best = 0
        for trial in range(100):
            d, n, m = int(rng.integers(6, 13)), int(rng.integers(5, 30)), int(rng.integers(1, 5))
            k = int(rng.integers(m, min(8, d - 1) + 1))
            X = table(trial, trial % 4, n, d)
            case = case_of(X.T @ X, k, m)
            found = solve(case.S, k, m)
            held = found.held
            assert len(held.features) == k
            assert held.variance == pytest.approx(held_variance(case.S, held.features, m), rel=1e-9)
            assert held.variance <= case.best * (1 + 1e-9)
            n_best += held.variance >= case.best * (1 - 1e-9)
        assert n_best >= 98

    @pytest.mark.parametrize("seed", range(6))
    def test_no_projection_loses_variance(self, seed):
        X = table(seed, seed % 4, 25, 40)
        scatter, start = DenseScatter(X.T @ X), np.arange(8)
        found = [improve_by_projection(scatter, start, 3, max_iter=n) for n in range(7)]
        values = [held_variance(scatter.matrix, each.features, 3) for each in found]
        assert np.all(np.diff(values) >= -1e-12 * values[-1])

    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_the_gain_of_a_feature_is_what_the_components_hold_more_with_it(self, width):
        for seed in range(20):
            X = table(seed, seed % 4, 15, 12)
            S = X.T @ X
            held = hold(DenseScatter(S), np.arange(5), width)
            images = S[:, :5] @ held.vectors
            gains = gains_of_adding(held, images, np.diag(S))
            for j in range(5, 12):
                bordered = np.diag([*held.values, S[j, j]])
                bordered[-1, :-1] = bordered[:-1, -1] = images[j]
                expected = np.linalg.eigvalsh(bordered)[1:].sum() - held.variance
                assert gains[j] == pytest.approx(expected, rel=1e-3, abs=1e-9 * held.variance)
                assert gains[j] <= expected + 1e-9 * held.variance

    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_the_loss_of_a_feature_is_what_the_components_hold_less_without_it(self, width):
        for seed in range(20):
            X = table(seed, seed % 4, 15, 8)
            S = X.T @ X
            held = hold(DenseScatter(S), np.arange(8), width)
            losses = losses_of_removing(held, np.diag(S))
            for i in range(8):
                rest = np.delete(held.vectors, i, axis=0)
                Q = np.linalg.qr(rest)[0]
                left = np.trace(Q.T @ np.delete(np.delete(S, i, axis=0), i, axis=1) @ Q)
                expected = min(held.variance - left, S[i, i])
                assert losses[i] == pytest.approx(expected, rel=1e-6, abs=1e-9 * held.variance)

    def test_all_features_are_pca_and_a_diagonal_gives_its_largest_entries(self):
        X = table(0, 2, 20, 9)
        S = X.T @ X
        expected = held_variance(S, range(9), 3)
        assert solve(S, 9, 3).held.variance == pytest.approx(expected, rel=1e-10)
        held = solve(np.diag([3.0, 9.0, 1.0, 7.0, 5.0, 2.0]), 4, 2).held
        assert held.features.tolist() == [0, 1, 3, 4]
        assert held.variance == pytest.approx(16.0)

    def test_many_kept_features_are_found_without_holding_their_scatter(self, monkeypatch):
        monkeypatch.setattr("keepers.methods.fspca.MOST_CANDIDATES", 40)
        X = table(3, 3, 40, 60)
        operator = FactoredScatter(X, column_moments(X))
        pca = principal_subspace(operator, 3, np.random.default_rng(0))
        found = solve_fspca(operator, pca, AllowedSets.of_count(60, 30))
        largest = np.argsort(-np.sum(X**2, axis=0))[:30]
        direct = improve_by_projection(DenseScatter(X.T @ X), largest, 3)
        assert found.held.variance >= direct.variance * (1 - 1e-9)

    @pytest.mark.parametrize("seed", range(6))
    def test_must_keep_stays_and_the_set_is_near_the_best(self, seed):
        rng = np.random.default_rng(seed)
        X = table(seed, 1 + seed % 3, 25, 10)
        S = X.T @ X
        must = int(rng.integers(10))
        allowed = AllowedSets.of_count(10, 4, np.arange(10) == must)
        found = solve_fspca(DenseScatter(S), leading(S, 2), allowed)
        sets = [list(rows) for rows in itertools.combinations(range(10), 4) if must in rows]
        assert found.held.features.tolist() in sets
        best = max(held_variance(S, rows, 2) for rows in sets)
        assert 0.97 * best <= found.held.variance <= best * (1 + 1e-9)


@pytest.fixture(scope="module")
def X():
    """120 x 60: three components in the first 20 features; a third of the values is zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 60)) * rng.uniform(0.5, 1.5, 60)
    X[:, :20] += 2 * rng.standard_normal((120, 3)) @ rng.standard_normal((3, 20))
    X[rng.random(X.shape) < 0.3] = 0.0
    return X


@pytest.fixture(scope="module")
def wide():
    """200 x 1500, to be searched among candidates."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 1500)) * rng.uniform(0.5, 1.2, 1500)
    X[:, :60] += rng.standard_normal((200, 4)) @ rng.standard_normal((4, 60))
    return X + 3.0


def held(X, features, width):
    Xc = X - X.mean(axis=0)
    return float(np.sum(np.linalg.svd(Xc[:, features], compute_uv=False)[:width] ** 2))


def cut(X, n_rows):
    return [X[start : start + n_rows] for start in range(0, len(X), n_rows)]


def test_what_is_stored_is_what_the_kept_features_hold(X):
    selector = FSPCA(8, n_components=3).fit(X)
    kept = np.flatnonzero(selector.support_)
    assert len(kept) == selector.n_features_to_select_ == 8
    assert selector.value_ == pytest.approx(held(X, kept, 3), rel=1e-9)
    pca = PCA(3).fit(X[:, kept])
    np.testing.assert_allclose(selector.explained_variance_, pca.explained_variance_, rtol=1e-9)
    inside = np.abs(selector.components_[:, kept])
    np.testing.assert_allclose(inside, np.abs(pca.components_), atol=1e-8)
    assert not selector.components_[:, ~selector.support_].any()
    np.testing.assert_allclose(selector.mean_, X.mean(axis=0))
    np.testing.assert_allclose(selector.var_, X.var(axis=0))
    # Scores are what the components hold of every feature, least squares of it on their scores.
    Xc = X - X.mean(axis=0)
    Q = np.linalg.qr(Xc @ selector.components_.T)[0]
    np.testing.assert_allclose(selector.scores_, np.sum((Q.T @ Xc) ** 2, axis=0), rtol=1e-7)
    assert selector.scores_[kept].sum() == pytest.approx(selector.value_, rel=1e-9)


@pytest.mark.parametrize("route", ["scatter", "memory", "stream"])
def test_blocks_give_the_same_features_by_every_route(wide, route, monkeypatch):
    monkeypatch.setattr(CHOOSE_ROUTE, lambda *_: route)
    expected = FSPCA(12, n_components=4).fit(wide)
    found = FSPCA(12, n_components=4, random_state=0).fit_blocks(cut(wide, 64))
    np.testing.assert_array_equal(found.support_, expected.support_)
    assert found.value_ == pytest.approx(expected.value_, rel=1e-9)
    assert found.route_ == route
    # Moments, products for the components, the candidates, and one or two looks at the rest.
    assert found.n_passes_ == 1 if route != "stream" else found.n_passes_ <= 10


def test_features_stay_and_go_as_the_user_says(X):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(60)])
    plain = FSPCA(8, n_components=3).fit(frame)
    best = [str(name) for name in plain.top(2).names]
    told = FSPCA(8, n_components=3, must_keep=["f55"], never_keep=best).fit(frame)
    assert told.support_[55]
    assert not told.support_[plain.top(2).indices].any()
    assert told.ranking_[55] == 1
    assert told.value_ < plain.value_
    without = FSPCA(8, n_components=3, must_keep=["f55"]).fit(frame.drop(columns=best))
    assert set(without.get_feature_names_out()) == set(told.get_feature_names_out())
    assert len(told.top(1.0)) == 58


@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
def test_constant_columns_alone_cannot_be_kept(X):
    X = np.column_stack([X, np.ones(len(X))])
    with pytest.raises(ParameterError, match="all places, 1, go to constant columns"):
        FSPCA(1, n_components=1, must_keep=[60]).fit(X)
    assert FSPCA(2, n_components=1, must_keep=[60]).fit(X).support_[60]


def test_components_that_the_data_count_are_lowered_to_the_features_kept(X):
    assert FSPCA(2).fit(X).n_components_ == 2
    assert FSPCA(1, n_components=0.9).fit(X).n_components_ == 1
    assert FSPCA(20).fit(X).n_components_ == SPCAFS().fit(X).n_components_


def test_columns_of_larger_numbers_are_warned_of_unless_they_are_scaled(X):
    other_units = X * np.where(np.arange(60) == 7, 1e5, 1.0)
    with pytest.warns(UnitsWarning, match="FSPCA keeps what has large numbers"):
        FSPCA(8).fit(other_units)
    FSPCA(8, scaling=1).fit(other_units)
    FSPCA(8).fit(X)
