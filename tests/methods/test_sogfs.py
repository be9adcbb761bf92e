import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from keepers.exceptions import DataError, DataWarning
from keepers.linalg.graph import NeighbourList
from keepers.methods.neighbours import nearest_neighbours
from keepers.methods.rivals.sogfs import (
    SOGFS,
    first_similarities,
    solve_sogfs,
    symmetric_graph,
    unit_columns,
)
from keepers.methods.rivals.udfs import first_weights
from shared_material import fixture

SETTINGS = [("0.001", 8), ("0.1", 8), ("1", 8), ("0.1", 4)]


def clusters(n_samples, n_features, n_clusters=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :6] += 4 * rng.standard_normal((n_clusters, 6))[np.arange(n_samples) % n_clusters]
    return X


def solve(X, weights=None, **settings):
    chosen = {"n_neighbors": 5, "n_clusters": 3, "width": 4, "gamma": 0.1, **settings}
    return solve_sogfs(
        unit_columns(X),
        first_weights(X.std(axis=0)) if weights is None else weights,
        np.random.default_rng(0),
        **chosen,
    )


def test_columns_are_centred_to_unit_norm_whatever_their_mean():
    X = clusters(30, 8) + 1e6
    Z = unit_columns(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose((Z**2).sum(axis=0), 1, rtol=1e-12)


def test_first_similarities_on_a_line():
    # Squared distances 1, 4, 9: rr = (2 * 9 - 5) / 2, weights (9 - 1) / 13 and (9 - 4) / 13.
    listed = NeighbourList(np.array([[1, 2, 3]]), np.array([[1.0, 2.0, 3.0]]))
    similarities, alpha = first_similarities(listed)
    np.testing.assert_allclose(similarities, [[8 / 13, 5 / 13]], rtol=1e-14)
    assert alpha == pytest.approx(6.5)


@pytest.mark.parametrize("distance", [0.0, 1.0])
def test_equidistant_neighbours_share_evenly(distance):
    listed = NeighbourList(np.array([[1, 2, 3, 4]]), np.full((1, 4), distance))
    similarities, alpha = first_similarities(listed)
    # Exactly: equal shares are assigned, not computed.
    np.testing.assert_array_equal(similarities, np.full((1, 3), 1 / 3))
    assert alpha > 0


@pytest.mark.parametrize("shape", [(60, 20), (36, 160)])
def test_a_normal_exit_leaves_exactly_the_components_asked_for(shape):
    found = solve(clusters(*shape))
    assert found.converged
    assert connected_components(found.graph)[0] == 3
    np.testing.assert_allclose(found.projection.W.T @ found.projection.W, np.eye(4), atol=1e-9)
    assert found.projection.squared_norms.sum() == pytest.approx(4, abs=1e-9)
    assert len(found.lambdas) == len(found.objective)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
def test_the_first_graph_is_that_of_the_authors(name):
    reference = fixture(f"sogfs_ref_{name}")
    k = int(reference["k"])
    listed = nearest_neighbours(unit_columns(reference["X"]), k + 1)
    similarities, alpha = first_similarities(listed)
    # The file holds the graph after symmetrising, whatever its description says.
    graph = symmetric_graph(listed.indices[:, :k], similarities).toarray()
    np.testing.assert_allclose(graph, reference["S0"], rtol=0, atol=1.4e-7)
    assert alpha == pytest.approx(float(reference["r"]), rel=1e-12)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
@pytest.mark.parametrize(("gamma", "width"), SETTINGS)
def test_scores_graph_and_lambdas_are_those_of_the_authors(name, gamma, width):
    reference = fixture(f"sogfs_ref_{name}")
    key = f"g{gamma}_m{width}"
    found = solve(
        reference["X"],
        np.ones(reference["X"].shape[1]),
        n_neighbors=int(reference["k"]),
        n_clusters=int(reference["n_clusters"]),
        width=width,
        gamma=float(gamma),
    )
    assert len(found.objective) == int(reference[f"iters_{key}"])
    np.testing.assert_allclose(found.lambdas, reference[f"lambdas_{key}"].ravel(), rtol=1e-12)
    np.testing.assert_allclose(
        found.projection.squared_norms, reference[f"score_{key}"], rtol=0, atol=4e-7
    )
    np.testing.assert_allclose(found.graph.toarray(), reference[f"S_{key}"], rtol=0, atol=1.4e-7)


@pytest.mark.parametrize(
    ("wanted", "n_clusters", "expected"), [(8, 3, 8), (2, 3, 3), (20, 3, 19), (0.5, 3, 10)]
)
def test_the_number_of_components_follows_the_number_of_features_wanted(
    wanted, n_clusters, expected
):
    selector = SOGFS(wanted, n_clusters=n_clusters, gamma=0.01, max_iter=50).fit(clusters(60, 20))
    assert selector.n_components_ == expected


def test_more_features_than_are_live_warns():
    with pytest.warns(DataWarning, match="15 features should be kept"):
        SOGFS(15, n_clusters=3, n_components=3, gamma=100.0).fit(clusters(60, 20))


def test_two_samples_are_refused():
    with pytest.raises(DataError, match="at least 3 samples"):
        SOGFS().fit(np.array([[0.0, 1.0], [1.0, 3.0]]))
