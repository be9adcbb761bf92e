"""What the selector adds to U2FS."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers import SPEC, U2FS
from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.linalg import graph_spectrum
from shared_material import fixture


def table(seed=0, n=60, d=12):
    """Three overlapping clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 3 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_the_graph_and_the_embedding_are_those_of_the_authors_program(name):
    stored = fixture(f"u2fs_authors_{name}")
    t = np.sqrt(float(stored["sigma_squared_scale"]) / 2)
    found = U2FS(n_clusters=int(stored["n_clusters"])).fit(stored["X"])
    given = U2FS(n_clusters=int(stored["n_clusters"]), bandwidth=t).fit(stored["X"])
    for selector in (found, given):
        E = selector.embedding_
        signs = np.sign(np.sum(E * stored["E"], axis=0))
        np.testing.assert_allclose(E * signs, stored["E"], atol=1e-8)
        np.testing.assert_allclose(E.sum(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
def test_of_columns_of_mean_zero_the_selection_is_that_of_the_authors_program(name):
    """Theirs does not centre: given centred columns, both do the same."""
    stored = fixture(f"u2fs_authors_{name}")
    X = stored["X"] - stored["X"].mean(axis=0)
    E = stored["E"]
    n, d = X.shape
    selector = U2FS(n_clusters=int(stored["n_clusters"])).fit(stored["X"])
    left = list(range(d))
    for _ in range(d - 5):
        K = X[:, left].T @ X[:, left] / n + selector.ridge_ * np.eye(len(left))
        Kinv = np.linalg.inv(K)
        w = Kinv @ (X[:, left].T @ E / n)
        del left[int(np.argmin(np.sum(w**2, axis=1) / np.diag(Kinv)))]
    assert set(selector.top(5).indices) == set(left)


def test_scores_count_the_places_in_the_order_of_removal():
    selector = U2FS(4, n_clusters=2).fit(table())
    assert sorted(selector.scores_) == list(range(1, 13))
    np.testing.assert_array_equal(selector.ranking_, 13 - selector.scores_)
    assert np.all(selector.utilities_ > 0)
    assert selector.ridge_ == 0.0
    assert selector.eigenvalues_.shape == (2,)
    assert set(selector.top(2).indices) <= {0, 1, 2}


def test_offsets_of_columns_do_not_matter():
    X = table()
    plain = U2FS().fit(X)
    shifted = U2FS().fit(X + 1e4 * np.arange(12))
    np.testing.assert_array_equal(shifted.scores_, plain.scores_)


def test_more_features_than_samples_are_ranked_to_the_end():
    selector = U2FS(5).fit(table(n=15, d=80))
    assert selector.ridge_ > 0.0
    assert sorted(selector.scores_) == list(range(1, 81))


def test_copies_of_a_column_go_early_and_the_first_of_them_stays():
    X = table()
    selector = U2FS(12).fit(np.hstack([X, X]))
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), np.arange(12))


def test_constant_columns_have_score_zero_and_come_last():
    X = table()
    X[:, 1] = -3.0
    with pytest.warns(DataWarning, match="do not vary"):
        selector = U2FS(n_clusters=3).fit(X)
    assert selector.scores_[1] == 0.0
    assert selector.ranking_[1] == 12
    assert selector.scores_.max() == 11


def test_few_samples_cap_the_eigenvectors_and_say_so():
    with pytest.warns(DataWarning, match="n_clusters=5 needs at least 6 samples; X has 4, so 3"):
        selector = U2FS(2).fit(table(n=4))
    assert selector.embedding_.shape == (4, 3)


def test_a_bandwidth_far_below_the_distances_warns_and_ranks_by_variance():
    X = table()
    with pytest.warns(DataWarning, match="underflow"):
        selector = U2FS(3, bandwidth=1e-3).fit(X)
    np.testing.assert_array_equal(np.argsort(selector.ranking_), np.argsort(-X.var(axis=0)))


def test_samples_far_from_all_others_are_told():
    X = np.vstack([table(n=120), np.full((1, 12), 1e6)])
    with pytest.warns(DataWarning, match="1 of 121 samples have no neighbour"):
        selector = U2FS(3).fit(X)
    np.testing.assert_allclose(selector.embedding_[-1], 0.0, atol=1e-12)


def test_eigenvectors_that_do_not_converge_are_told(monkeypatch):
    monkeypatch.setattr(graph_spectrum, "DENSE_SAMPLES", 10)
    monkeypatch.setattr(graph_spectrum, "MOST_RESTARTS", 1)
    line = np.column_stack([np.arange(900.0), np.random.default_rng(0).standard_normal(900)])
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        selector = U2FS(1, bandwidth=1.0).fit(line)
    assert not selector.converged_


def test_the_seed_decides_nothing_that_shows():
    X = table(n=500)
    first, second = (U2FS(random_state=seed).fit(X) for seed in (0, 1))
    np.testing.assert_array_equal(second.scores_, first.scores_)
    np.testing.assert_allclose(second.utilities_, first.utilities_, rtol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1; got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be an integer >= 1; got 2.5"),
        ({"bandwidth": "mean"}, "bandwidth must be a finite number > 0; got 'mean'"),
    ],
)
def test_a_setting_outside_its_rule_is_refused_with_the_rule(parameters, message):
    with pytest.raises(ParameterError, match=message):
        U2FS(**parameters).fit(table())


def test_a_sparse_matrix_is_refused_with_the_reason():
    with pytest.raises(DataError, match="centred columns"):
        U2FS().fit(sp.csr_array(table()))


@pytest.mark.parametrize(("name", "n_clusters"), [("mix", 4), ("blobs", 3), ("wide", 4)])
def test_redundant_informative_features_go_early_where_spec_keeps_them_all(name, n_clusters):
    stored = fixture(f"data_{name}")
    informative = set(stored["informative"].tolist())
    m = len(informative)
    kept = set(U2FS(m, n_clusters=n_clusters).fit(stored["X"]).top().indices)
    assert 2 <= len(kept & informative) <= 2 * m // 3
    for spec in (SPEC(m), SPEC(m, criterion="phi3", n_clusters=n_clusters)):
        assert set(spec.fit(stored["X"]).top().indices) == informative
