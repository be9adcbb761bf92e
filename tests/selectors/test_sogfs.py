import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from keepers.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from keepers.selectors.sogfs import SOGFS


def table(shape=(60, 20), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    X[:, :6] += 4 * rng.standard_normal((3, 6))[np.arange(shape[0]) % 3]
    return X


@pytest.mark.parametrize(
    ("wanted", "n_clusters", "expected"), [(8, 3, 8), (2, 3, 3), (20, 3, 19), (0.5, 3, 10)]
)
def test_the_number_of_components_follows_the_number_of_features_wanted(
    wanted, n_clusters, expected
):
    selector = SOGFS(wanted, n_clusters=n_clusters, gamma=0.01, max_iter=50).fit(table())
    assert selector.n_components_ == expected


@pytest.mark.filterwarnings("ignore:10 features are wanted")
def test_without_a_number_wanted_there_is_a_component_for_each_cluster():
    assert SOGFS(n_clusters=3).fit(table()).n_components_ == 3


def test_the_graph_learned_has_the_components_asked_for():
    selector = SOGFS(6, n_clusters=3).fit(table())
    assert selector.converged_
    count, labels = connected_components(selector.graph_)
    assert count == 3
    assert all(len(set(labels[i::3])) == 1 for i in range(3))
    assert set(selector.top(6).indices) == set(range(6))


def test_a_mean_of_1e6_costs_no_digits_that_matter():
    X = table()
    near, far = (SOGFS(6, gamma=0.1, n_clusters=3).fit(data) for data in (X, X + 1e6))
    np.testing.assert_allclose(far.scores_, near.scores_, rtol=0, atol=1e-6)


def test_a_run_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="exactly 3 components after max_iter=1"):
        assert not SOGFS(6, n_clusters=3, max_iter=1).fit(table()).converged_


def test_more_features_than_are_live_warns():
    with pytest.warns(DataWarning, match="15 features are wanted"):
        SOGFS(15, n_clusters=3, n_components=3, gamma=100.0).fit(table())


@pytest.mark.filterwarnings("ignore:The graph does not have exactly")
def test_small_tables_cap_neighbours_and_clusters_with_a_warning():
    with pytest.warns(DataWarning) as caught:
        SOGFS(1, n_clusters=9, gamma=0.1).fit(np.random.default_rng(0).standard_normal((6, 3)))
    messages = " ".join(str(warning.message) for warning in caught)
    assert "n_neighbors=5 needs at least 7 samples" in messages
    assert "n_clusters=9 needs as many samples" in messages


def test_two_samples_are_refused():
    with pytest.raises(DataError, match="at least 3 samples"):
        SOGFS().fit(np.array([[0.0, 1.0], [1.0, 3.0]]))


def test_sparse_input_is_refused_with_the_reason():
    with pytest.raises(DataError, match="centred columns"):
        SOGFS().fit(sp.csr_array(table()))


@pytest.mark.parametrize("setting", [{"gamma": 0}, {"n_components": 0}, {"tol": 0.0}])
def test_settings_outside_their_rule_are_refused(setting):
    with pytest.raises(ParameterError, match=next(iter(setting))):
        SOGFS(**setting).fit(table())
