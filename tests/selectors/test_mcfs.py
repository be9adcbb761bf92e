"""What the selector adds to MCFS."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.linalg import graph_spectrum as solver
from keepers.linalg.graph import degrees
from keepers.selectors.mcfs import MCFS
from keepers.selectors.neighbours import heat_graph
from shared_material import fixture


def table(seed=0, n=60, d=12):
    """Three overlapping clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 3 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


@pytest.mark.parametrize(("m", "n_clusters", "key"), [(5, 5, "sel_5"), (8, 4, "sel_8_neig4")])
def test_the_whole_fit_is_cais_program_on_a_connected_graph(m, n_clusters, key):
    stored = fixture("mcfs_cai_mix")
    assert int(stored["n_eig"]) == 5
    selector = MCFS(m, n_clusters=n_clusters).fit(stored["X"])
    np.testing.assert_array_equal(selector.top(m).indices, stored[key].ravel())


def test_several_numbers_of_features_come_from_one_walk_as_from_a_fit_each():
    stored = fixture("mcfs_cai_mix")
    counts = [8, 2, 5]
    unfitted = MCFS(3, n_clusters=5)
    together = unfitted.fit_each(stored["X"], counts)
    assert [selector.n_features_to_select for selector in together] == counts
    for count, selector in zip(counts, together, strict=True):
        alone = MCFS(count, n_clusters=5).fit(stored["X"])
        np.testing.assert_allclose(selector.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(selector.ranking_, alone.ranking_)
        np.testing.assert_array_equal(selector.support_, alone.support_)
        assert (selector.n_iter_, selector.cardinality_) == (alone.n_iter_, alone.cardinality_)
    # Cai's program, and a selector that is left as it was.
    np.testing.assert_array_equal(together[2].top(5).indices, stored["sel_5"].ravel())
    assert not hasattr(unfitted, "ranking_")


def test_a_path_that_ends_early_is_told_for_each_number_it_misses():
    X = np.repeat(table(d=3), 4, axis=1)
    selector = MCFS(n_clusters=2, ridge=0.0)
    with pytest.warns(DataWarning, match="ended before") as told:
        two, six, nine = selector.fit_each(X, [2, 6, 9])
    assert len(told) == 2
    assert np.count_nonzero(two.coef_[0]) == 2
    np.testing.assert_array_equal(six.coef_, nine.coef_)


def test_the_number_of_features_is_the_cardinality_unless_one_is_given():
    X = table()
    selector = MCFS(4, n_clusters=3).fit(X)
    assert selector.cardinality_ == 4
    np.testing.assert_array_equal(np.count_nonzero(selector.coef_, axis=1), 4)
    wider = MCFS(4, n_clusters=3, cardinality=7).fit(X)
    np.testing.assert_array_equal(np.count_nonzero(wider.coef_, axis=1), 7)
    assert wider.support_.sum() == 4


def test_features_outside_every_regression_tie_at_zero_and_follow_by_variance():
    X = table()
    selector = MCFS(2, n_clusters=2).fit(X)
    outside = np.flatnonzero(selector.scores_ == 0)
    assert len(outside) >= 12 - 2 * 2
    behind = np.argsort(selector.ranking_)[-len(outside) :]
    assert set(behind) == set(outside)
    assert np.all(np.diff(X.var(axis=0)[behind]) <= 0)


def test_what_is_stored_fits_together():
    X = table()
    selector = MCFS(4, n_clusters=3).fit(X)
    # Exactly: one of the numbers, not a sum of them.
    np.testing.assert_array_equal(selector.scores_, np.abs(selector.coef_).max(axis=0))
    D = degrees(heat_graph(X, 5, None, np.random.default_rng(0)))
    Y = selector.embedding_
    np.testing.assert_allclose(Y.T @ (D[:, np.newaxis] * Y), np.eye(3), atol=1e-9)
    assert np.all(np.diff(selector.eigenvalues_) >= 0)
    assert selector.n_iter_ >= 3 * 4
    assert selector.converged_


def test_constant_columns_come_last_with_score_zero():
    X = table()
    X[:, 1] = -3.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = MCFS(n_clusters=3, cardinality=12).fit(X)
    assert selector.scores_[1] == 0.0
    assert selector.ranking_[1] == 12
    assert selector.cardinality_ == 11


def test_few_samples_cap_neighbours_and_eigenvectors_and_say_so():
    with pytest.warns(DataWarning) as record:
        selector = MCFS(2).fit(table(n=4))
    messages = " ".join(str(warning.message) for warning in record)
    assert "n_neighbors=5 needs at least 6 samples; X has 4, so 3" in messages
    assert "n_clusters=5 needs at least 6 samples; X has 4, so 3" in messages
    assert selector.coef_.shape[0] <= 3


def test_without_ridge_more_non_zeros_than_the_rank_cannot_be_had():
    X = table(n=8, d=20)
    with pytest.warns(DataWarning, match="ended before they had 15 non-zero coefficients"):
        MCFS(15, n_clusters=2, n_neighbors=3, ridge=0.0).fit(X)
    MCFS(15, n_clusters=2, n_neighbors=3).fit(X)


def test_a_bandwidth_far_below_the_distances_warns_and_scores_nothing():
    with pytest.warns(DataWarning, match="underflow"):
        selector = MCFS(3, bandwidth=1e-3).fit(table())
    np.testing.assert_array_equal(selector.scores_, 0.0)


def test_eigenvectors_that_do_not_converge_are_told(monkeypatch):
    monkeypatch.setattr(solver, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(solver, "MOST_RESTARTS", 1)
    line = np.column_stack([np.arange(900.0), np.random.default_rng(0).standard_normal(900)])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        selector = MCFS(1).fit(line)
    assert not selector.converged_
    assert selector.coef_.shape == (5, 2)


def test_the_seed_decides_nothing_that_shows():
    X = table(n=500)
    first = MCFS(5, random_state=0).fit(X)
    np.testing.assert_allclose(MCFS(5, random_state=1).fit(X).scores_, first.scores_, atol=1e-8)


def test_work_past_the_memory_of_the_machine_is_refused_with_the_number(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 1000.0)
    with pytest.raises(DataError, match="MCFS needs about"):
        MCFS(4).fit(table())


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
def test_sparse_storage_changes_nothing(storage):
    X = table() * (np.random.default_rng(1).uniform(size=(60, 12)) < 0.5)
    np.testing.assert_allclose(
        MCFS(4, n_clusters=3).fit(storage(X)).scores_,
        MCFS(4, n_clusters=3).fit(X).scores_,
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be an integer >= 1; got 2.5"),
        ({"cardinality": 0}, "cardinality must be an integer >= 1; got 0"),
        ({"cardinality": 13}, "cardinality must be an integer from 1 to 12; got 13"),
        ({"ridge": -1.0}, "ridge must be a finite number >= 0; got -1.0"),
        ({"bandwidth": "mean"}, "bandwidth must be a finite number > 0; got 'mean'"),
    ],
)
def test_a_setting_outside_its_rule_is_refused_with_the_rule(parameters, message):
    with pytest.raises(ParameterError, match=message):
        MCFS(**parameters).fit(table())
