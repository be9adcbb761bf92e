import numpy as np
import pytest

from keepers.exceptions import DataWarning
from keepers.methods.rivals.udfs import (
    UDFS,
    first_weights,
    form_in_coordinates,
    local_scatter,
    row_coordinates,
    row_sparse_projection,
)
from shared_material import fixture

DATA = ("mix", "digits", "blobs")


def neighbours_of(X, k):
    gaps = ((X[:, np.newaxis, :] - X[np.newaxis, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.argsort(gaps, axis=1, kind="stable")[:, :k]


def centred(X):
    return X - X.mean(axis=0)


def local_form(X, k, regularization):
    X = centred(X)
    coordinates, basis = row_coordinates(X)
    M = local_scatter(coordinates, neighbours_of(X, k), regularization)
    return form_in_coordinates(M, basis)


def matrix_of(form):
    return form.matrix.T @ form.matrix if form.is_factor else form.matrix


def table(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def patch_laplacian(X, neighbours, regularization):
    """Lbar by its definition."""
    n_samples, k = neighbours.shape
    H = np.eye(k + 1) - 1 / (k + 1)
    Lbar = np.zeros((n_samples, n_samples))
    for i in range(n_samples):
        patch = [i, *neighbours[i]]
        Z = H @ X[patch]
        block = H @ np.linalg.inv(Z @ Z.T + regularization * np.eye(k + 1)) @ H
        Lbar[np.ix_(patch, patch)] += block
    return Lbar


@pytest.mark.parametrize("regularization", [1e-6, 0.5, 1000.0])
@pytest.mark.parametrize(("shape", "k"), [((20, 6), 4), ((20, 3), 8), ((9, 30), 4)])
def test_the_local_scatter_equals_the_sum_over_samples_of_its_definition(shape, k, regularization):
    X = centred(table(shape))
    expected = X.T @ patch_laplacian(X, neighbours_of(X, k), regularization) @ X
    M = matrix_of(local_form(X, k, regularization))
    # With 1e-6 the inverse of the definition loses digits in directions of no spread.
    atol = (1e-8 if regularization < 0.1 else 1e-12) * np.abs(expected).max()
    np.testing.assert_allclose(M, expected, rtol=0, atol=atol)


def test_with_everyone_a_neighbour_the_local_scatter_has_a_closed_form():
    X = centred(table((12, 5)))
    expected = 12 * X.T @ np.linalg.inv(2.0 * np.eye(12) + X @ X.T) @ X
    M = matrix_of(local_form(X, 11, 2.0))
    np.testing.assert_allclose(M, expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(60, 20), (200, 180), (30, 250)])
def test_the_objective_never_rises_and_scores_sum_to_the_columns(shape):
    X = table(shape)
    form = local_form(X, 5, 1000.0)
    gamma = 0.1 * form.diagonal().mean()
    found = row_sparse_projection(
        form,
        gamma,
        4,
        first_weights(X.std(axis=0)),
        np.random.default_rng(0),
        max_iter=40,
        tol=1e-8,
    )
    assert np.all(np.diff(found.objective) <= 0)
    assert found.squared_norms.sum() == pytest.approx(4, abs=1e-9)
    np.testing.assert_allclose(found.W.T @ found.W, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("regularization", [1, 1000])
def test_the_local_scatter_is_that_of_the_authors(name, regularization):
    reference = fixture(f"udfs_authors_{name}")
    X = centred(reference["X"])
    M = matrix_of(local_form(X, int(reference["k"]), regularization))
    expected = X.T @ reference[f"L_l{regularization}"] @ X
    np.testing.assert_allclose(M, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("regularization", [1, 1000])
@pytest.mark.parametrize("gamma", ["0.001", "0.1", "10"])
def test_36_steps_from_ones_are_those_of_the_authors(name, regularization, gamma):
    reference = fixture(f"udfs_authors_{name}")
    X = reference["X"]
    found = row_sparse_projection(
        local_form(X, int(reference["k"]), regularization),
        float(gamma),
        int(reference["c"]),
        np.ones(X.shape[1]),
        np.random.default_rng(0),
        max_iter=36,
        tol=-np.inf,
    )
    key = f"l{regularization}_g{gamma}"
    assert len(found.objective) == 36
    np.testing.assert_allclose(found.squared_norms, reference[f"score_{key}"], rtol=0, atol=2e-7)
    np.testing.assert_allclose(found.objective, reference[f"obj_{key}"].ravel(), rtol=6e-9)


@pytest.mark.parametrize(("gamma", "regularization"), [(0.1, 0.1), (1, 0.001), (0.001, 1)])
def test_scores_are_those_of_itmo(gamma, regularization):
    reference = fixture("udfs_itmo_mix")
    X = reference["X"]
    found = row_sparse_projection(
        local_form(X, int(reference["k"]), regularization),
        gamma,
        int(reference["c"]),
        first_weights(X.std(axis=0)),
        np.random.default_rng(0),
        max_iter=1000,
        tol=1e-14,
    )
    expected = reference[f"score_g{gamma:g}_l{regularization:g}"]
    np.testing.assert_allclose(found.squared_norms, expected, rtol=0, atol=1e-5)


def test_the_patches_of_scikit_feature_are_not_imitated():
    reference = fixture("udfs_skfeature_mix")
    M = matrix_of(local_form(reference["X"], 5, 0.1))
    wrong = reference["M_buggy"]
    assert np.abs(M - wrong).max() > 0.1 * np.abs(wrong).max()
    assert np.linalg.matrix_rank(wrong, tol=1e-8) <= 5
    assert np.linalg.matrix_rank(M) == M.shape[0]


def test_the_authors_branch_for_few_features_is_not_imitated():
    reference = fixture("udfs_authors_smalld_branch")
    X, k, regularization = centred(reference["X"]), int(reference["k"]), float(reference["lam"])
    theirs = X.T @ reference["L_ref"] @ X
    M = matrix_of(local_form(X, k, regularization))
    assert np.abs(M - theirs).max() > 0.01 * np.abs(M).max()
    # What that branch computes instead.
    other = matrix_of(local_form(X, k, 1 / regularization)) / regularization
    np.testing.assert_allclose(other, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


def test_features_beyond_the_live_ones_are_ordered_by_cost_and_named_in_a_warning():
    X = table((50, 10))
    # With everyone a neighbour and a huge lambda, the cost is proportional to the variance.
    settings = {"n_clusters": 2, "n_neighbors": 49, "regularization": 1e9, "gamma": 1.0}
    with pytest.warns(DataWarning, match=r"8 features .* 2 "):
        selector = UDFS(8, **settings).fit(X)
    assert selector.n_active_ == 2
    first, others = np.split(np.argsort(selector.ranking_), [2])
    assert list(others) == [j for j in np.argsort(X.std(axis=0)) if j not in first]
    assert selector.scores_.min() > 0


@pytest.mark.filterwarnings("ignore:The neighbour graph is degenerate")
def test_neighbours_that_all_coincide_leave_the_widest_features():
    X = np.repeat(table((2, 30)), 8, axis=0)
    selector = UDFS(3, n_clusters=3).fit(X)
    assert set(selector.top(3).indices) == set(np.argsort(-X.std(axis=0))[:3])
