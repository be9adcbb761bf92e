"""What several published methods find on three groups of samples that differ in three features."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from keepers import DGUFS, EUFS, JELSR, NDFS

GROUPS = np.repeat(np.arange(3), 20)


def clusters():
    """Three groups of 20 samples that differ in features 4, 7 and 9, which also vary most."""
    X = np.random.default_rng(0).normal(size=(60, 12))
    X[:, [4, 7, 9]] += 6.0 * np.eye(3)[GROUPS]
    return X


def fitted(method, X, **settings):
    seed = {} if method is DGUFS else {"random_state": 0}
    return method(3, n_clusters=3, **seed, **settings).fit(X)


@pytest.mark.parametrize(
    ("method", "settings"),
    [(NDFS, {}), (JELSR, {}), (JELSR, {"graph": "lle"}), (EUFS, {}), (DGUFS, {})],
)
def test_the_default_finds_the_features_that_tell_clusters_apart_without_a_warning(
    method, settings
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = fitted(method, clusters(), **settings)
    np.testing.assert_array_equal(np.flatnonzero(selector.support_), [4, 7, 9])
    assert (selector.scores_ > 0).all()
    assert selector.n_iter_ == len(selector.objective_) <= selector.max_iter
    if method is not DGUFS:
        norms = np.linalg.norm(selector.components_, axis=0)
        np.testing.assert_allclose(selector.scores_, norms, atol=1e-11 * norms.max())
        assert 3 <= selector.n_active_ <= 12


@pytest.mark.parametrize(("method", "weight"), [(NDFS, "beta_max_"), (JELSR, "alpha_max_")])
@pytest.mark.parametrize("factor", [1e-9, 1e30])
def test_the_unit_of_the_table_does_not_matter(method, weight, factor):
    for settings, scaled in (({}, {}), ({"bandwidth": 5.0}, {"bandwidth": 5.0 * factor})):
        plain = fitted(method, clusters(), **settings)
        found = fitted(method, factor * clusters(), **scaled)
        tolerance = 1e-8 * plain.scores_.max()
        np.testing.assert_allclose(factor * found.scores_, plain.scores_, atol=tolerance)
        assert getattr(found, weight) == pytest.approx(factor * getattr(plain, weight))


def test_the_weight_of_row_sparsity_is_a_share_of_the_one_that_no_row_survives():
    X = clusters()
    indicator = np.eye(3)[KMeans(3, n_init=10, random_state=0).fit(X).labels_]
    indicator /= np.sqrt(indicator.sum(axis=0))
    longest = np.linalg.norm(X.T @ indicator, axis=1).max()
    assert fitted(NDFS, X).beta_max_ == pytest.approx(2 * longest)
    assert fitted(NDFS, X, beta=0.5).n_active_ < fitted(NDFS, X, beta=0.01).n_active_
    longest = np.linalg.norm(X - X.mean(axis=0), axis=0).max()
    assert fitted(JELSR, X).alpha_max_ == pytest.approx(2 * longest)
    weak = fitted(JELSR, X, alpha=0.01)
    assert fitted(JELSR, X, alpha=0.4).n_active_ < weak.n_active_
    all_gone = fitted(JELSR, X, alpha=1.0, max_iter=1000)
    assert all_gone.scores_.max() < 1e-3 * weak.scores_.max()
