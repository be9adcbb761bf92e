import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.selectors.udfs import UDFS
from shared_material import fixture


def table(shape=(60, 20), seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_without_the_tie_breaker_scores_are_those_of_the_authors_at_the_limit():
    reference = fixture("udfs_authors_blobs")
    settings = {"n_clusters": 4, "gamma": 10.0, "regularization": 1.0, "tie_breaker": False}
    selector = UDFS(4, **settings).fit(reference["X"])
    expected = reference["score_l1_g10"]
    live = expected > 1e-6
    np.testing.assert_allclose(selector.scores_[live], expected[live], atol=1e-6)


def test_a_mean_of_1e6_costs_no_digits_that_matter():
    X = table()
    near, far = UDFS(5).fit(X), UDFS(5).fit(X + 1e6)
    np.testing.assert_allclose(far.scores_, near.scores_, rtol=0, atol=1e-7)


@pytest.mark.filterwarnings("ignore:The objective was still falling")
@pytest.mark.filterwarnings("ignore:30 features are wanted")
def test_gamma_scale_makes_the_scores_independent_of_the_unit():
    X = table((40, 60))
    first = UDFS(regularization=1.0, max_iter=20).fit(X)
    second = UDFS(regularization=100.0, max_iter=20).fit(10 * X)
    np.testing.assert_allclose(first.scores_, second.scores_, rtol=0, atol=1e-7)


def test_features_beyond_the_live_ones_are_ordered_by_cost_and_named_in_a_warning():
    X = table((50, 10))
    # With everyone a neighbour and a huge lambda, the cost is proportional to the variance.
    settings = {"n_clusters": 2, "n_neighbors": 49, "regularization": 1e9, "gamma": 1.0}
    with pytest.warns(DataWarning, match="8 features are wanted, but only 2"):
        selector = UDFS(8, **settings).fit(X)
    assert selector.n_active_ == 2
    first, others = np.split(np.argsort(selector.ranking_), [2])
    assert list(others) == [j for j in np.argsort(X.std(axis=0)) if j not in first]
    assert selector.scores_.min() > 0


def test_n_clusters_is_capped_below_the_number_of_columns():
    with pytest.warns(DataWarning, match="n_clusters=5 has to be below .* 3; 2 is used"):
        assert UDFS(1).fit(table((30, 3))).n_clusters_ == 2


@pytest.mark.filterwarnings("ignore:The neighbour graph is degenerate")
def test_neighbours_that_all_coincide_leave_the_widest_features():
    X = np.repeat(table((2, 30)), 8, axis=0)
    selector = UDFS(3, n_clusters=3).fit(X)
    assert set(selector.top(3).indices) == set(np.argsort(-X.std(axis=0))[:3])


def test_a_run_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert not UDFS(5, max_iter=2).fit(table()).converged_


def test_sparse_input_is_refused_with_the_reason():
    with pytest.raises(DataError, match="centred neighbourhoods"):
        UDFS().fit(sp.csr_array(table()))


@pytest.mark.parametrize(
    "setting",
    [{"gamma": "auto"}, {"gamma": 0.0}, {"regularization": 0.0}, {"tie_breaker": "yes"}],
)
def test_settings_outside_their_rule_are_refused(setting):
    with pytest.raises(ParameterError, match=next(iter(setting))):
        UDFS(**setting).fit(table())
