import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from keepers import JELSR
from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
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
    return JELSR(3, n_clusters=3, **settings).fit(X)


@pytest.mark.parametrize("graph", ["heat", "lle"])
def test_the_default_finds_the_features_that_tell_clusters_apart_without_a_warning(graph):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = fitted(clusters(), graph=graph)
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])
    norms = np.linalg.norm(selector.components_, axis=0)
    np.testing.assert_allclose(selector.scores_, norms, rtol=1e-12)
    assert 3 <= selector.n_active_ <= 12
    assert selector.n_iter_ == len(selector.objective_) <= 200


def test_the_embedding_has_one_column_less_than_clusters_and_no_constant():
    selector = fitted(clusters())
    assert selector.embedding_.shape == (60, 2)
    np.testing.assert_allclose(selector.embedding_.T @ selector.embedding_, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(selector.embedding_.sum(axis=0), 0.0, atol=1e-10)
    labels = KMeans(3, n_init=5, random_state=0).fit(selector.embedding_).labels_
    assert clustering_accuracy(GROUPS, labels) == 1.0  # counted
    assert JELSR(3, n_clusters=1).fit(clusters()).embedding_.shape == (60, 1)


def test_the_objective_never_rises():
    for name in ("mix", "wide"):
        selector = JELSR(n_clusters=4).fit(fixture(f"data_{name}")["X"])
        assert (np.diff(selector.objective_) <= 1e-12 * selector.objective_[1:]).all()


@pytest.mark.parametrize("factor", [1e-9, 1e3, 1e30])
def test_the_unit_of_the_table_does_not_matter(factor):
    plain, scaled = fitted(clusters()), fitted(factor * clusters())
    np.testing.assert_allclose(
        factor * scaled.scores_, plain.scores_, atol=1e-8 * plain.scores_.max()
    )
    assert scaled.alpha_max_ == pytest.approx(factor * plain.alpha_max_)
    with_bandwidth = fitted(factor * clusters(), bandwidth=5.0 * factor)
    expected = fitted(clusters(), bandwidth=5.0).scores_
    np.testing.assert_allclose(
        factor * with_bandwidth.scores_, expected, atol=1e-8 * expected.max()
    )


def test_means_of_columns_do_not_matter():
    X = clusters()
    expected = fitted(X).scores_
    shifted = fitted(X + 100.0 * np.arange(12)).scores_
    np.testing.assert_allclose(shifted, expected, atol=1e-7 * expected.max())


def test_alpha_is_a_share_of_the_weight_that_no_row_survives():
    X = clusters()
    longest = np.linalg.norm(X - X.mean(axis=0), axis=0).max()
    assert fitted(X).alpha_max_ == pytest.approx(2 * longest)
    weak, strong = fitted(X, alpha=0.01), fitted(X, alpha=0.4)
    assert strong.n_active_ < weak.n_active_
    all_gone = fitted(X, alpha=1.0, max_iter=1000)
    assert all_gone.scores_.max() < 1e-3 * weak.scores_.max()


@pytest.mark.parametrize("graph", ["heat", "lle"])
def test_sparse_and_dense_tables_give_the_same_scores(graph):
    X = clusters() * (np.abs(clusters()) > 1.0)
    expected = fitted(X, graph=graph).scores_
    for container in (sp.csr_array, sp.csc_array):
        found = fitted(container(X), graph=graph).scores_
        np.testing.assert_allclose(found, expected, atol=1e-8 * expected.max())


def test_past_the_dense_size_another_seed_changes_little():
    X = load_digits().data[:700]
    X = X[:, X.std(axis=0) > 1.0]
    one, other = (
        JELSR(10, n_clusters=10, max_iter=40, random_state=seed).fit(X) for seed in (0, 1)
    )
    np.testing.assert_allclose(one.scores_, other.scores_, atol=2e-2 * one.scores_.max())
    assert len(set(one.top().indices) & set(other.top().indices)) >= 9


def test_too_few_steps_are_reported():
    with pytest.warns(ConvergenceWarning, match="In the last of max_iter=2 steps"):
        selector = fitted(clusters(), max_iter=2)
    assert not selector.converged_


def test_a_tolerance_that_is_met_ends_the_fit():
    selector = fitted(clusters(), tol=1e-4)
    assert selector.converged_
    assert selector.n_iter_ < 200


def test_more_clusters_than_samples_are_lowered_with_a_warning():
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.warns(DataWarning) as caught:
        selector = JELSR(2).fit(X)
    messages = " ".join(str(warning.message) for warning in caught)
    assert "n_clusters=5" in messages
    assert "n_neighbors=5" in messages
    assert selector.embedding_.shape == (4, 3)


def test_a_table_too_large_for_memory_is_refused_before_it_is_copied(monkeypatch):
    monkeypatch.setattr("keepers.selectors.memory.physical_memory", lambda: 5000.0)
    with pytest.raises(DataError, match="two 12 x 12 matrices and a copy of the table"):
        fitted(clusters())


def test_the_objective_of_3571_genes_never_rises():
    X, _ = benchmark_data("LEUML")
    selector = JELSR(50, n_clusters=2).fit(X)
    assert np.isfinite(selector.scores_).all()
    assert (np.diff(selector.objective_) <= 1e-10 * selector.objective_[1:]).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"graph": "knn"},
        {"alpha": 0.0},
        {"alpha": 2.0},
        {"beta": 0.0},
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
        JELSR(2, **wrong).fit(clusters())
