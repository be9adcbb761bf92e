import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans

from keepers import NDFS
from keepers.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    KeepersWarning,
    ParameterError,
)
from keepers.metrics import clustering_accuracy
from shared_material import benchmark_data, fixture

GROUPS = np.repeat(np.arange(3), 20)


def clusters(seed=0):
    """Three groups of 20 samples that differ in features 4, 7 and 9."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 12))
    X[:, [4, 7, 9]] += 6.0 * np.eye(3)[GROUPS]
    return X


def fitted(X, **settings):
    return NDFS(3, n_clusters=3, random_state=0, **settings).fit(X)


def test_the_default_finds_the_features_that_tell_clusters_apart_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = fitted(clusters())
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])
    norms = np.linalg.norm(selector.components_, axis=0)
    np.testing.assert_allclose(selector.scores_, norms, rtol=1e-12)
    assert selector.n_active_ >= 3
    assert selector.n_clusters_ == 3
    assert selector.n_iter_ == len(selector.objective_) <= 200


def test_the_indicator_is_non_negative_and_tells_the_clusters():
    indicator = fitted(clusters()).indicator_
    assert indicator.min() >= 0
    np.testing.assert_allclose(np.linalg.norm(indicator, axis=0), 1.0)
    assert clustering_accuracy(GROUPS, indicator.argmax(axis=1)) == 1.0  # counted


@pytest.mark.parametrize("factor", [1e-9, 1e3, 1e30])
def test_the_unit_of_the_table_does_not_matter(factor):
    plain, scaled = fitted(clusters()), fitted(factor * clusters())
    np.testing.assert_allclose(
        factor * scaled.scores_, plain.scores_, atol=1e-8 * plain.scores_.max()
    )
    assert scaled.beta_max_ == pytest.approx(factor * plain.beta_max_)
    with_bandwidth = fitted(factor * clusters(), bandwidth=5.0 * factor)
    expected = fitted(clusters(), bandwidth=5.0).scores_
    np.testing.assert_allclose(
        factor * with_bandwidth.scores_, expected, atol=1e-8 * expected.max()
    )


def test_beta_is_a_share_of_the_weight_that_no_row_survives():
    X = clusters()
    labels = KMeans(3, n_init=10, random_state=0).fit(X).labels_
    indicator = np.eye(3)[labels]
    indicator /= np.sqrt(indicator.sum(axis=0))
    longest = np.linalg.norm(X.T @ indicator, axis=1).max()
    assert fitted(X).beta_max_ == pytest.approx(2 * longest)
    weak, strong = fitted(X, beta=0.01), fitted(X, beta=0.5)
    assert strong.n_active_ < weak.n_active_


def test_inactive_features_have_an_order():
    selector = fitted(clusters(), beta=0.5)
    assert selector.n_active_ < 12
    ascending = np.sort(selector.scores_)
    assert (np.diff(ascending) > 1e-6 * ascending[1:]).all()


def test_the_graph_matters_with_the_default_gamma_and_not_with_the_papers():
    stored = fixture("data_mix")
    few, many = (
        NDFS(n_clusters=4, n_neighbors=k, random_state=0).fit(stored["X"]).scores_ for k in (3, 20)
    )
    assert np.abs(few - many).max() > 1e-3 * few.max()
    few, many = (
        NDFS(n_clusters=4, n_neighbors=k, gamma=1e8, random_state=0).fit(stored["X"]).scores_
        for k in (3, 20)
    )
    np.testing.assert_allclose(few, many, atol=1e-5 * few.max())


def test_sparse_and_dense_tables_give_the_same_scores():
    X = clusters() * (np.abs(clusters()) > 1.0)
    expected = fitted(X)
    for container in (sp.csr_array, sp.csc_array):
        found = fitted(container(X))
        np.testing.assert_allclose(
            found.scores_, expected.scores_, atol=1e-9 * expected.scores_.max()
        )


def test_too_few_steps_are_reported():
    with pytest.warns(ConvergenceWarning, match="In the last of max_iter=2 steps"):
        selector = fitted(clusters(), max_iter=2)
    assert not selector.converged_
    assert selector.change_ > 0.05


def test_a_tolerance_that_is_met_ends_the_fit():
    selector = fitted(clusters(), tol=1e-3)
    assert selector.converged_
    assert selector.change_ <= 1e-3
    assert selector.n_iter_ < 200


def test_fewer_distinct_samples_than_clusters_lower_the_number_with_a_warning():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 5)), 4, axis=0)
    with pytest.warns(DataWarning, match=r"n_clusters=5 .* 3 clusters"):
        selector = NDFS(2, random_state=0).fit(X)
    assert selector.n_clusters_ == 3
    assert selector.components_.shape == (3, 5)


def test_two_opposite_samples_in_one_cluster_are_no_trouble():
    X = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        selector = NDFS(1, n_clusters=1, random_state=0).fit(X)
    assert np.isfinite(selector.scores_).all()


def test_a_table_too_large_for_memory_is_refused_before_it_is_copied(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 5000.0)
    with pytest.raises(DataError, match="two 12 x 12 matrices and a copy of the table"):
        fitted(clusters())


def test_fifty_of_3571_genes_tell_leukemias_apart():
    X, y = benchmark_data("LEUML")
    selector = NDFS(50, n_clusters=2, random_state=0).fit(X)
    labels = KMeans(2, n_init=10, random_state=0).fit(selector.transform(X)).labels_
    assert clustering_accuracy(y, labels) > 0.9


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": -1.0},
        {"beta": 0.0},
        {"beta": 1.5},
        {"beta": "scale"},
        {"gamma": 0.0},
        {"tol": -1.0},
        {"bandwidth": 0.0},
        {"n_clusters": 0},
        {"n_neighbors": 2.5},
        {"max_iter": 0},
    ],
    ids=str,
)
def test_settings_outside_their_rule_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        NDFS(2, **wrong).fit(clusters())
