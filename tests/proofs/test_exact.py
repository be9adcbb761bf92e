"""The best set, against every set of small problems; restricted, interrupted, in every storage."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from brute_force_sets import case_of, random_restriction, small_cases
from keepers import datasets, solve_exactly
from keepers.exceptions import ParameterError
from keepers.linalg.scatter import DenseScatter
from keepers.proofs.exact import FeatureSearch


def search(S, k, m, **settings):
    return FeatureSearch(DenseScatter(S), k, m, **settings).run()


def test_of_small_problems_it_finds_the_best_set():
    for case in small_cases(120, seed=41):
        found = search(case.S, case.k, case.m)
        assert found.proved
        assert found.value == pytest.approx(case.best, rel=1e-9), case
        assert found.upper_bound >= case.best * (1 - 1e-13)
        assert found.upper_bound <= found.value * (1 + 2e-10)


def test_of_small_problems_with_forced_features_it_finds_the_best_set():
    rng = np.random.default_rng(42)
    for case in small_cases(60, seed=43):
        _, forced = random_restriction(case, rng)
        found = search(case.S, case.k, case.m, forced=forced)
        assert found.proved
        assert found.value == pytest.approx(case.best_among(forced=forced), rel=1e-9), case
        assert np.isin(np.flatnonzero(forced), found.features).all()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("load", "k"), [(load_wine, 5), (load_wine, 10), (load_breast_cancer, 5), (load_digits, 4)]
)
def test_tables_of_scikit_learn_are_solved(load, k, scaled):
    X = load().data
    X = X[:, X.std(axis=0) > 0]
    X = X / X.std(axis=0) if scaled else X
    for m in (1, 2):
        assert solve_exactly(X, k, m).proved


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 11)) * np.linspace(1, 1.4, 11)


@pytest.fixture(scope="module")
def case(X):
    return case_of(np.cov(X.T, bias=True), 4, 2)


def hard_table():
    return np.random.default_rng(1).standard_normal((60, 30))


def test_it_is_the_best_of_all_sets(X, case):
    found = solve_exactly(X, 4, 2)
    assert found.proved
    assert found.gap == 0.0
    assert found.value == pytest.approx(case.best)
    assert found.upper_bound == pytest.approx(case.best)
    np.testing.assert_array_equal(found.features, case.sets[np.argmax(case.values)])
    assert found.names is None
    assert "the most variance in 2 components of all such sets: proved" in str(found)


@pytest.mark.parametrize("convert", [sp.csr_array, lambda X: [X[:15], X[15:]], np.float32])
def test_every_storage_gives_the_same(X, case, convert):
    found = solve_exactly(convert(X), 4, 2)
    assert found.value == pytest.approx(case.best, rel=1e-6)


def test_large_tables_in_single_precision_are_searched_in_double(X, monkeypatch):
    monkeypatch.setattr("keepers.methods.reading.MOST_IN_DOUBLE", 10)
    single = X.astype(np.float32)
    case = case_of(np.cov(single.astype(np.float64).T, bias=True), 4, 2)
    found = solve_exactly(single, 4, 2)
    assert found.proved
    assert found.value == pytest.approx(case.best, rel=1e-12)


def test_more_columns_than_rows_are_searched_by_a_factor():
    X = np.random.default_rng(2).standard_normal((7, 12))
    found = solve_exactly(X, 4, 2)
    assert found.proved
    assert found.value == pytest.approx(case_of(np.cov(X.T, bias=True), 4, 2).best)


def test_few_of_many_genes_are_found():
    """All sets of three of the seventy genes with the largest variances are looked at."""
    X = datasets.load("srbct").X
    S = np.cov(X.T, bias=True)
    largest = np.sort(np.argsort(-S.diagonal())[:70])
    case = case_of(S[np.ix_(largest, largest)], 3, 2)
    found = solve_exactly(X, 3, 2)
    assert found.proved
    assert found.value == pytest.approx(case.best)
    np.testing.assert_array_equal(found.features, largest[case.sets[np.argmax(case.values)]])


def test_of_what_is_too_large_to_search_the_first_bound_is_told(X, case, monkeypatch):
    monkeypatch.setattr("keepers.proofs.exact.SMALL_SIDE", 3)
    found = solve_exactly(X, 4, 2)
    assert not found.proved
    assert found.n_nodes == 0
    assert found.value <= case.best * (1 + 1e-12) <= found.upper_bound
    assert 0.0 < found.gap < 0.3


def test_features_can_be_forced_in_and_left_out(X, case):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefghijk"))
    found = solve_exactly(frame, 4, 2, must_keep=["a"], never_keep=["k", "j"])
    allowed, forced = np.ones(11, dtype=bool), np.zeros(11, dtype=bool)
    forced[0], allowed[9:] = True, False
    assert found.value == pytest.approx(case.best_among(allowed, forced))
    assert list(found.names) == [frame.columns[at] for at in found.features]
    assert "a" in found.names
    assert found.proved


def test_constant_columns_fill_a_set_only_if_nothing_else_is_left(X):
    with_constant = np.column_stack([np.zeros(40), X[:, :3], np.ones(40)])
    found = solve_exactly(with_constant, 4, 2)
    np.testing.assert_array_equal(found.features, [0, 1, 2, 3])
    assert found.value == pytest.approx(solve_exactly(X[:, :3], 3, 2).value)
    forced = solve_exactly(with_constant, 3, 2, must_keep=[4])
    assert 4 in forced.features
    assert len(forced.features) == 3
    assert forced.value == pytest.approx(solve_exactly(X[:, :3], 2, 2).value)
    nothing = solve_exactly(with_constant, 1, 1, must_keep=[0])
    assert nothing.value == 0.0
    assert nothing.proved


def test_a_set_of_forced_constants_holds_nothing():
    X = np.column_stack([np.arange(5.0), np.ones((5, 2))])
    found = solve_exactly(X, 2, 1, must_keep=[1, 2])
    assert found.features.tolist() == [1, 2]
    assert (found.value, found.upper_bound, found.proved, found.n_nodes) == (0.0, 0.0, True, 0)


def test_out_of_time_it_tells_the_gap():
    found = solve_exactly(hard_table(), 10, 3, time_limit=0.1)
    assert not found.proved
    assert found.value < found.upper_bound < 2 * found.value
    assert found.gap == pytest.approx(1 - found.value / found.upper_bound)
    assert "the search did not end" in str(found)
    assert solve_exactly(hard_table(), 10, 3, time_limit=0).n_nodes == 0


def test_with_more_time_the_bound_never_rises_and_the_value_never_falls():
    X = hard_table()
    search = FeatureSearch(DenseScatter(np.cov(X.T)), 10, 3)
    found = [search.run(0.03) for _ in range(10)]
    assert found[-1].n_nodes > found[0].n_nodes > 0
    assert np.all(np.diff([at.upper_bound for at in found]) <= 1e-9 * found[0].value)
    assert np.all(np.diff([at.value for at in found]) >= 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 5}, "n_components must be an integer from 1 to 4; got 5"),
        ({"n_features_to_select": 0}, "n_features_to_select must be an integer >= 1"),
        ({"n_features_to_select": 12}, "at most the number of features, 11"),
        ({"time_limit": -1}, "time_limit"),
        ({"must_keep": [0], "never_keep": [0]}, "in must_keep and in never_keep"),
        ({"never_keep": range(8)}, "at most 3"),
        ({"must_keep": range(5)}, "at least 5"),
    ],
)
def test_what_cannot_be_is_refused(X, settings, message):
    with pytest.raises(ParameterError, match=message):
        solve_exactly(X, **{"n_features_to_select": 4, "n_components": 2, **settings})
