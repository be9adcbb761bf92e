import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from keepers.linalg.graph import NeighbourList, laplacian
from keepers.linalg.quadratic_form import LaplacianForms
from keepers.solvers.reweighting import row_sparse_projection
from keepers.solvers.sogfs import (
    first_similarities,
    indicator_step,
    similarity_step,
    solve_sogfs,
    symmetric_graph,
    unit_columns,
)
from shared_material import fixture

SETTINGS = [("0.001", 8), ("0.1", 8), ("1", 8), ("0.1", 4)]


def find_neighbours(points, k):
    gaps = ((points[:, np.newaxis, :] - points[np.newaxis, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    indices = np.argsort(gaps, axis=1, kind="stable")[:, :k]
    return NeighbourList(indices, np.sqrt(np.take_along_axis(gaps, indices, axis=1)))


def clusters(n_samples, n_features, n_clusters=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, :6] += 4 * rng.standard_normal((n_clusters, 6))[np.arange(n_samples) % n_clusters]
    return X


def solve(X, *, tie_breaker=True, **settings):
    chosen = {"n_neighbors": 5, "n_clusters": 3, "width": 4, "gamma": 0.1, **settings}
    return solve_sogfs(
        unit_columns(X),
        X.std(axis=0),
        find_neighbours,
        np.random.default_rng(0),
        tie_breaker=tie_breaker,
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


def test_rows_of_the_graph_are_on_the_simplex_with_k_neighbours():
    X = unit_columns(clusters(40, 10))
    neighbours = find_neighbours(X, 5).indices
    S = similarity_step(X[:, :3], X[:, 3:5], neighbours, 0.3, 0.05)
    assert S.shape == (40, 5)
    assert S.min() >= 0
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-14)
    graph = symmetric_graph(neighbours, S)
    assert not np.any(graph.diagonal())
    # Exactly: both halves are the same sum of two numbers.
    np.testing.assert_array_equal(graph.toarray(), graph.toarray().T)
    assert graph.sum() == pytest.approx(40)


def test_many_samples_give_the_indicator_of_the_dense_solver():
    X = clusters(400, 6, seed=1)
    neighbours = find_neighbours(X, 5)
    graph = symmetric_graph(neighbours.indices, np.full((400, 5), 0.2))
    L = laplacian(
        sp.csr_array(graph + 1e-3 * sp.diags_array(np.ones(399), offsets=1)).maximum(
            (graph + 1e-3 * sp.diags_array(np.ones(399), offsets=-1)).tocsr()
        )
    )
    L = sp.csr_array((L + L.T) / 2)
    found = indicator_step(L, 3, np.random.default_rng(0))
    values, vectors = eigh(L.toarray(), subset_by_index=[0, 3])
    np.testing.assert_allclose(found.eigenvalues, values, atol=1e-10)
    F, expected = found.F, vectors[:, :3]
    np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-6)


def chains(sizes):
    """The Laplacian of chains, samples in any order."""
    graph = sp.block_diag([sp.diags_array(np.ones(n - 1), offsets=1, shape=(n, n)) for n in sizes])
    order = np.random.default_rng(4).permutation(sum(sizes))
    graph = sp.csr_array(graph + graph.T)[order][:, order]
    return laplacian(sp.csr_array(graph))


@pytest.mark.parametrize("n_clusters", [2, 3, 7, 12])
def test_the_indicator_of_a_graph_in_parts_is_that_of_the_whole(n_clusters):
    L = chains([331, 61, 41])
    found = indicator_step(L, n_clusters, np.random.default_rng(0))
    values, vectors = eigh(L.toarray())
    np.testing.assert_allclose(found.eigenvalues, values[: n_clusters + 1], atol=1e-10)
    F = found.F
    np.testing.assert_allclose(F.T @ F, np.eye(n_clusters), atol=1e-9)
    np.testing.assert_allclose(L @ F, F * values[:n_clusters], atol=1e-8)
    if n_clusters >= 3:  # with fewer, F is an arbitrary part of the null space
        expected = vectors[:, :n_clusters]
        np.testing.assert_allclose(F @ F.T, expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("shape", [(60, 20), (36, 160)])
def test_a_normal_exit_leaves_exactly_the_components_asked_for(shape):
    found = solve(clusters(*shape))
    assert found.converged
    assert connected_components(found.graph)[0] == 3
    np.testing.assert_allclose(found.W.T @ found.W, np.eye(4), atol=1e-9)
    assert found.squared_norms.sum() == pytest.approx(4, abs=1e-9)
    assert len(found.lambdas) == len(found.objective) == found.n_iter


def test_too_few_passes_are_reported():
    assert not solve(clusters(60, 20), max_iter=1).converged


def test_informative_features_come_first():
    found = solve(clusters(90, 40), width=6)
    assert set(np.argsort(-found.squared_norms)[:6]) == set(range(6))


def test_for_fixed_lambda_and_lists_no_step_raises_the_objective():
    X = unit_columns(clusters(50, 15))
    rng = np.random.default_rng(1)
    neighbours = find_neighbours(X, 5).indices
    lambda_, alpha, gamma = 0.02, 0.05, 0.1
    forms = LaplacianForms.of(X)

    def objective(S, W, F):
        pairs = neighbours.ravel(), np.repeat(np.arange(50), 5)
        gaps = ((X @ W)[pairs[0]] - (X @ W)[pairs[1]]) ** 2
        L = laplacian(symmetric_graph(neighbours, S)).toarray()
        rows = np.sqrt((W**2).sum(axis=1) + 2.220446049250313e-16)
        return (
            (gaps.sum(axis=1) * S.ravel()).sum()
            + alpha * (S**2).sum()
            + 2 * gamma * rows.sum()
            + 2 * lambda_ * np.trace(F.T @ L @ F)
        )

    W = np.linalg.qr(rng.standard_normal((15, 3)))[0]
    F = np.linalg.qr(rng.standard_normal((50, 3)))[0]
    values = []
    for _ in range(8):
        S = similarity_step(X @ W, F, neighbours, lambda_, alpha)
        values.append(objective(S, W, F))
        L = laplacian(symmetric_graph(neighbours, S))
        W = row_sparse_projection(
            forms.form(L),
            gamma,
            3,
            0.5 / np.sqrt((W**2).sum(axis=1) + 2.220446049250313e-16),
            rng,
            max_iter=1,
            has_converged=lambda history: False,
        ).W
        values.append(objective(S, W, F))
        F = indicator_step(L, 3, rng).F
        values.append(objective(S, W, F))
    assert np.diff(values).max() <= 1e-12 * values[0]
    assert values[-1] < values[0]


@pytest.mark.parametrize("shape", [(60, 20), (36, 160)])
def test_the_order_of_samples_does_not_matter(shape):
    X = clusters(*shape)
    order = np.random.default_rng(2).permutation(shape[0])
    first, second = solve(X, max_iter=3), solve(X[order], max_iter=3)
    np.testing.assert_allclose(second.squared_norms, first.squared_norms, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(60, 20), (36, 160)])
def test_permuted_features_get_permuted_scores(shape):
    X = clusters(*shape)
    order = np.random.default_rng(2).permutation(shape[1])
    first, second = solve(X, max_iter=3), solve(X[:, order], max_iter=3)
    np.testing.assert_allclose(second.squared_norms, first.squared_norms[order], rtol=0, atol=1e-6)


def test_units_and_offsets_of_features_do_not_matter():
    X = clusters(60, 20)
    rng = np.random.default_rng(3)
    other = X * rng.uniform(0.1, 10, 20) + rng.uniform(-100, 100, 20)
    np.testing.assert_allclose(
        solve(other).squared_norms, solve(X).squared_norms, rtol=0, atol=4e-7
    )


@pytest.mark.parametrize("name", ["mix", "digits", "blobs"])
def test_the_first_graph_is_that_of_the_authors(name):
    reference = fixture(f"sogfs_ref_{name}")
    k = int(reference["k"])
    listed = find_neighbours(unit_columns(reference["X"]), k + 1)
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
        n_neighbors=int(reference["k"]),
        n_clusters=int(reference["n_clusters"]),
        width=width,
        gamma=float(gamma),
        tie_breaker=False,
    )
    assert found.n_iter == int(reference[f"iters_{key}"])
    np.testing.assert_allclose(found.lambdas, reference[f"lambdas_{key}"].ravel(), rtol=1e-12)
    np.testing.assert_allclose(found.squared_norms, reference[f"score_{key}"], rtol=0, atol=4e-7)
    np.testing.assert_allclose(found.graph.toarray(), reference[f"S_{key}"], rtol=0, atol=1.4e-7)
