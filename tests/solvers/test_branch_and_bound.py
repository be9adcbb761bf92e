"""Branch and bound, against every set of small problems and on the tables of scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from brute_force_sets import random_restriction, scatter_of, small_cases
from keepers.linalg.low_rank import LowRankScatter
from keepers.linalg.scatter import DenseScatter
from keepers.solvers.branch_and_bound import FeatureSearch
from keepers.solvers.variance_bounds import Restriction


def search_of(S, k, m, **settings):
    return FeatureSearch(DenseScatter(S), k, m, **settings)


def test_it_finds_the_best_set():
    for case in small_cases(300, seed=41):
        found = search_of(case.S, case.k, case.m).run()
        assert found.proved
        assert found.value == pytest.approx(case.best, rel=1e-9), case
        assert found.upper_bound >= case.best * (1 - 1e-13)
        assert found.upper_bound <= found.value * (1 + 2e-10)


def test_it_finds_the_best_set_of_a_restricted_problem():
    rng = np.random.default_rng(42)
    for case in small_cases(150, seed=43):
        allowed, forced = random_restriction(case, rng)
        found = search_of(case.S, case.k, case.m, restriction=Restriction(allowed, forced)).run()
        assert found.proved
        assert found.value == pytest.approx(case.best_among(allowed, forced), rel=1e-9), case
        assert allowed[found.features].all()
        assert np.isin(np.flatnonzero(forced), found.features).all()


def test_a_factor_gives_the_same():
    rng = np.random.default_rng(44)
    B = rng.standard_normal((30, 6))
    by_factor = FeatureSearch(LowRankScatter(B), 6, 2).run()
    by_matrix = search_of(B @ B.T, 6, 2).run()
    assert by_factor.proved
    assert by_factor.value == pytest.approx(by_matrix.value, rel=1e-9)


TABLES = {
    "wine": (load_wine, (5, 10)),
    "breast cancer": (load_breast_cancer, (5, 10)),
    "digits": (load_digits, (5,)),
}


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_tables_of_scikit_learn_are_solved(name, m, scaled):
    load, counts = TABLES[name]
    X = load().data
    X = X[:, X.std(axis=0) > 0]
    X = X - X.mean(axis=0)
    if scaled:
        X = X / X.std(axis=0)
    for k in counts:
        found = search_of(X.T @ X, k, m).run(time_limit=60)
        assert found.proved, (k, found)


def hard_matrix():
    X = np.random.default_rng(45).standard_normal((60, 40))
    return X.T @ X


def test_out_of_time_it_tells_the_gap():
    found = search_of(hard_matrix(), 12, 3).run(time_limit=0.2)
    assert not found.proved
    assert found.value < found.upper_bound < 2 * found.value
    assert search_of(hard_matrix(), 12, 3).run(time_limit=0.0).n_nodes == 0


def test_the_bound_never_rises_and_the_value_never_falls():
    told = []
    search_of(hard_matrix(), 10, 3).run(time_limit=0.5, callback=told.append)
    bounds = [at.upper_bound for at in told]
    values = [at.value for at in told]
    assert len(told) > 3
    assert np.all(np.diff(bounds) <= 1e-9 * bounds[0])
    assert np.all(np.diff(values) >= 0)
    assert told[-1].gap == pytest.approx(1 - values[-1] / bounds[-1])
    assert [at.n_nodes for at in told] == list(range(1, len(told) + 1))


class StopError(Exception):
    pass


def test_a_search_resumes_from_its_state():
    S = scatter_of("flat", 20, np.random.default_rng(46))
    whole = search_of(S, 7, 2).run()
    states = []

    def stop(progress):
        if progress.n_nodes == 3:
            raise StopError

    with pytest.raises(StopError):
        search_of(S, 7, 2).run(callback=stop, keep=states.append)
    resumed = search_of(S, 7, 2)
    resumed.restore(states[-1])
    assert resumed.progress().n_nodes == 3
    found = resumed.run()
    assert found.proved
    assert found.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_array_equal(found.features, whole.features)
    assert found.n_nodes == whole.n_nodes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodes", np.zeros((1, 3), dtype=np.int8)),
        ("nodes", np.full((0, 10), 5, dtype=np.int8)),
        ("features", np.array([1, 1, 2])),
        ("features", np.array([1, 2, 99])),
        ("bounds", np.array([np.nan])),
        ("counts", np.array([1.5, 2.0, 1.0])),
        ("seconds", np.array([1.0])),
    ],
)
def test_a_state_of_another_problem_is_refused(name, value):
    S = scatter_of("flat", 10, np.random.default_rng(47))
    state = search_of(S, 3, 2).state()
    with pytest.raises(ValueError, match="not the state"):
        search_of(S, 3, 2).restore({**state, name: value})


def test_a_start_is_used():
    S = hard_matrix()
    good = search_of(S, 12, 3).run(time_limit=0.3)
    again = search_of(S, 12, 3, start=good.features).run(time_limit=0.0)
    assert again.value == pytest.approx(good.value)
