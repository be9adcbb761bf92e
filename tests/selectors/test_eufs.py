import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    KeepersWarning,
    ParameterError,
)
from keepers.selectors.eufs import EUFS, _scores


def clusters(seed=0):
    """Three groups of 20 samples that differ in features 4, 7 and 9, which also vary most."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 12))
    X[:, [4, 7, 9]] += 6.0 * np.eye(3)[np.repeat(np.arange(3), 20)]
    return X


def test_the_default_finds_the_features_that_tell_clusters_apart_without_a_warning():
    selector = EUFS(3, n_clusters=3, random_state=0).fit(clusters())
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])
    norms = np.linalg.norm(selector.components_, axis=0)
    np.testing.assert_allclose(selector.scores_, norms, atol=1e-11 * norms.max())
    assert selector.n_active_ == np.count_nonzero(norms)
    assert selector.residual_ < 1e-2


def test_the_default_alpha_does_not_depend_on_the_unit():
    plain = EUFS(n_clusters=3, random_state=0, max_iter=50)
    scaled = EUFS(n_clusters=3, random_state=0, max_iter=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain.fit(clusters())
        scaled.fit(100 * clusters())
    assert scaled.alpha_ == pytest.approx(plain.alpha_)


def test_too_large_an_alpha_is_reported_and_features_are_ranked_by_their_pull():
    X = clusters()
    with pytest.warns(ConvergenceWarning, match=r"vanished with alpha=5\."):
        selector = EUFS(3, n_clusters=3, alpha=5.0, random_state=0).fit(X)
    assert selector.n_active_ == 0
    # Exactly: rows below the threshold are multiplied by zero.
    np.testing.assert_array_equal(selector.components_, 0.0)
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])


def test_rows_at_zero_are_ranked_below_the_others_by_last_norm_then_by_pull():
    norms = np.array([0.0, 2.0, 0.0, 0.0, 5.0, 0.0])
    last_norms = np.array([0.0, 2.0, 0.3, 9.0, 5.0, 0.0])
    pulls = np.array([0.4, 1.0, 0.9, 0.1, 1.0, 0.8])
    scores = _scores(norms, last_norms, pulls)
    np.testing.assert_array_equal(np.argsort(-scores), [4, 1, 3, 2, 5, 0])
    np.testing.assert_array_equal(scores[[1, 4]], [2.0, 5.0])
    assert scores[[0, 2, 3, 5]].max() <= 1e-12 * 2.0


def test_rows_at_zero_have_an_order():
    X = clusters()
    selector = EUFS(n_clusters=3, alpha=0.7, random_state=0).fit(X)
    zero = ~selector.components_.any(axis=0)
    assert 0 < zero.sum() < 12
    assert len(np.unique(selector.scores_)) == 12
    assert selector.ranking_[zero].min() > selector.ranking_[~zero].max()


def test_too_few_iterations_are_reported():
    with pytest.warns(ConvergenceWarning, match="After max_iter=10"):
        EUFS(n_clusters=3, max_iter=10, random_state=0).fit(clusters())


def test_fewer_distinct_samples_than_clusters_lower_the_number_with_a_warning():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 5)), 4, axis=0)
    with pytest.warns(DataWarning, match=r"n_clusters=5 .* 3 clusters"):
        selector = EUFS(2, random_state=0).fit(X)
    assert selector.n_clusters_ == 3


def test_few_samples_lower_the_number_of_neighbours_with_a_warning():
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.warns(DataWarning) as caught:
        EUFS(2, random_state=0).fit(X)
    messages = " ".join(str(warning.message) for warning in caught)
    assert "n_neighbors=5" in messages
    assert "n_clusters=5" in messages


def test_two_opposite_samples_in_one_cluster_are_no_trouble():
    # Their pulls cancel: V = 0 is stationary for every alpha, and the default alpha is zero.
    X = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        selector = EUFS(1, n_clusters=1, random_state=0).fit(X)
    # Exactly: what cancels up to rounding is set to zero.
    assert selector.alpha_ == 0.0
    assert np.isfinite(selector.scores_).all()


def test_a_sparse_table_is_refused_with_the_reason():
    with pytest.raises(DataError, match="residual"):
        EUFS().fit(sp.csr_array(np.eye(8)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": "auto"},
        {"beta": -1.0},
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
        EUFS(2, **wrong).fit(clusters())
