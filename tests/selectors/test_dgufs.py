import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.selectors.dgufs import DGUFS


def clusters(seed=0):
    """Three groups of 20 samples that differ in features 4, 7 and 9, which also vary most."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), 20)
    X = rng.normal(size=(60, 12))
    X[:, [4, 7, 9]] += 6.0 * np.eye(3)[labels]
    return X


def test_the_default_finds_the_features_that_tell_clusters_apart():
    X = clusters()
    selector = DGUFS(3, n_clusters=3).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])
    assert selector.converged_
    assert selector.labels_.shape == (60,)
    assert set(selector.labels_) <= {0, 1, 2}
    assert (selector.scores_ > 0).all()


def test_the_released_solver_takes_the_smallest_norms_and_says_so():
    X = clusters()
    with pytest.warns(ConvergenceWarning, match="smallest norm"):
        selector = DGUFS(3, n_clusters=3, solver="admm", alpha=100.0).fit(X)
    smallest = np.argsort(np.linalg.norm(X, axis=0))[:3]
    assert set(np.flatnonzero(selector.support_)) == set(smallest)
    np.testing.assert_allclose(selector.scores_[smallest], np.linalg.norm(X, axis=0)[smallest])
    assert np.count_nonzero(selector.scores_) == 3
    np.testing.assert_array_equal(selector.labels_, 0)


def test_the_released_solver_warns_when_its_constraints_are_not_met():
    X = clusters()
    with pytest.warns(ConvergenceWarning, match="did not meet its constraints"):
        DGUFS(3, solver="admm", alpha=0.1).fit(X)


def test_a_runaway_of_the_released_solver_is_an_error_with_a_way_out():
    X = clusters()
    with pytest.raises(ParameterError, match=r"alpha=0\.0001.*solver='bcd'"):
        DGUFS(3, solver="admm", alpha=1e-4).fit(X)


def test_the_selection_does_not_depend_on_the_unit():
    X = clusters(seed=1)
    plain = DGUFS(4, n_clusters=3).fit(X)
    scaled = DGUFS(4, n_clusters=3).fit(1e6 * X)
    np.testing.assert_array_equal(scaled.ranking_, plain.ranking_)


def test_more_features_than_vary_can_be_asked_for():
    X = clusters()
    X[:, 5:] = 1.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = DGUFS(8, n_clusters=3).fit(X)
    assert selector.support_.sum() == 8
    assert selector.support_[:5].all()


def test_few_samples_lower_the_numbers_of_clusters_and_neighbours_with_a_warning():
    X = np.random.default_rng(1).normal(size=(4, 6))
    with pytest.warns(DataWarning) as caught:
        selector = DGUFS(2, n_clusters=9, n_neighbors=7).fit(X)
    messages = " ".join(str(warning.message) for warning in caught)
    assert "n_clusters=9" in messages
    assert "n_neighbors=7" in messages
    assert selector.n_clusters_ == 4


def test_a_selection_that_goes_round_is_reported():
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.warns(ConvergenceWarning, match="cycles through 2 choices"):
        selector = DGUFS(2, n_clusters=4, n_neighbors=3).fit(X)
    assert not selector.converged_


def test_one_pass_is_not_enough_to_know():
    X = clusters()
    with pytest.warns(ConvergenceWarning, match="still changing after max_iter=1"):
        DGUFS(3, n_clusters=3, max_iter=1).fit(X)


@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_a_sparse_table_is_refused_with_the_reason_and_ways_out(solver):
    with pytest.raises(DataError, match=r"centred columns.*X.toarray\(\).* or use .*MCFS or NDFS"):
        DGUFS(solver=solver).fit(sp.csr_array(np.eye(8)))


def test_kernels_that_do_not_fit_are_refused_with_their_size(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1e5)
    X = clusters()
    with pytest.raises(DataError, match="60 x 60 kernels"):
        DGUFS(3, solver="admm").fit(X)
    with pytest.raises(DataError, match="60 x 60 kernels"):
        DGUFS(3, n_clusters=6).fit(X)


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta": 0.0},
        {"beta": 1.5},
        {"alpha": -1.0},
        {"solver": "cd"},
        {"n_clusters": 0},
        {"n_neighbors": 2.5},
        {"max_iter": 0},
    ],
    ids=str,
)
def test_settings_outside_their_rule_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        DGUFS(2, **wrong).fit(clusters())
