"""MCFS against Cai's program, its own equations, scikit-learn's lasso path and its optimality."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from sklearn.linear_model import lars_path_gram

from keepers import MCFS
from keepers.exceptions import DataWarning
from keepers.linalg import graph as graphs
from keepers.linalg.graph import laplacian
from keepers.linalg.scatter import row_sums
from keepers.methods.neighbours import heat_graph
from keepers.methods.rivals.mcfs import (
    Gram,
    embed,
    first_knots_of_sizes,
    lasso_knots,
    solve_mcfs,
)
from shared_material import fixture


def table(seed=0, n=60, d=12):
    """Three overlapping clusters that columns 0 to 2 tell apart; the rest is noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] += 3 * rng.standard_normal((3, 3))[rng.integers(0, 3, n)]
    return X


def test_several_numbers_of_features_come_from_one_walk_as_from_a_fit_each():
    stored = fixture("mcfs_cai_mix")
    counts = [8, 2, 5]
    unfitted = MCFS(3, n_clusters=5)
    together = unfitted.fit_each(stored["X"], counts)
    assert [selector.n_features_to_select for selector in together] == counts
    for count, selector in zip(counts, together, strict=True):
        alone = MCFS(count, n_clusters=5).fit(stored["X"])
        np.testing.assert_allclose(selector.coef_, alone.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(selector.ranking_, alone.ranking_)
        np.testing.assert_array_equal(selector.support_, alone.support_)
        assert selector.n_iter_ == alone.n_iter_
    # Cai's program, and a selector that is left as it was.
    np.testing.assert_array_equal(together[2].top(5).indices, stored["sel_5"].ravel())
    assert not hasattr(unfitted, "ranking_")


def test_a_path_that_ends_early_is_told_for_each_number_it_misses():
    X = np.repeat(table(d=3), 4, axis=1)
    selector = MCFS(n_clusters=2, ridge=0.0)
    with pytest.warns(DataWarning, match="ended before") as told:
        two, six, nine = selector.fit_each(X, [2, 6, 9])
    assert len(told) == 2
    assert np.count_nonzero(two.coef_[0]) == 2
    np.testing.assert_array_equal(six.coef_, nine.coef_)


def rng():
    return np.random.default_rng(0)


def blobs(n_pieces, seed=0):
    """Graph of clusters too far apart to be joined, of clearly different volumes."""
    generator = np.random.default_rng(seed)
    sizes = [20 + 11 * i for i in range(n_pieces)]
    X = np.vstack([generator.standard_normal((n, 8)) + 100.0 * i for i, n in enumerate(sizes)])
    X = X[generator.permutation(len(X))]
    return X, heat_graph(X, 5, None, generator)


@pytest.fixture(params=["dense", "lanczos"])
def eigensolver(request, monkeypatch):
    if request.param == "lanczos":
        monkeypatch.setattr(graphs, "DENSE_SAMPLES", 0)


@pytest.mark.usefixtures("eigensolver")
@pytest.mark.parametrize("n_pieces", [1, 3, 8])
def test_the_embedding_solves_the_eigenproblem_of_the_graph(n_pieces):
    _, graph = blobs(n_pieces)
    Y, mu, converged = embed(graph, 5, rng())
    D = row_sums(graph)
    assert Y.shape[1] == 5
    assert converged
    np.testing.assert_allclose(Y.T @ (D[:, np.newaxis] * Y), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(laplacian(graph) @ Y, D[:, np.newaxis] * Y * (1 - mu), atol=1e-9)
    np.testing.assert_allclose(D @ Y, 0.0, atol=1e-9)  # nothing of the trivial vector
    L, diagonal = laplacian(graph).toarray(), np.diag(D)
    smallest = eigh(L, diagonal, eigvals_only=True, subset_by_index=[1, 5])
    np.testing.assert_allclose(1 - mu, smallest, atol=1e-9)


@pytest.mark.usefixtures("eigensolver")
def test_a_disconnected_graph_has_one_embedding_however_the_samples_are_ordered():
    X, graph = blobs(3)
    order = np.random.default_rng(5).permutation(len(X))
    shuffled = sp.csr_array(graph.toarray()[np.ix_(order, order)])
    plain = solve_mcfs(X, embed(graph, 5, rng())[0], [4], 1e-3)[0].scores
    again = solve_mcfs(X[order], embed(shuffled, 5, rng())[0], [4], 1e-3)[0].scores
    np.testing.assert_allclose(again, plain, atol=1e-8)


def test_cais_program_is_reproduced_from_the_data_on_a_connected_graph():
    stored = fixture("mcfs_cai_mix")
    X, k = stored["X"], int(stored["k"])
    graph = heat_graph(X, k, None, rng())
    np.testing.assert_allclose(graph.toarray(), stored["W"], atol=1e-9)
    Y = embed(graph, int(stored["n_eig"]), rng())[0]
    signs = np.sign(np.sum(Y * stored["Y"], axis=0))
    np.testing.assert_allclose(Y * signs, stored["Y"], atol=1e-9)
    for m in (5, 10, 15):
        result = solve_mcfs(X, Y, [m], 1e-3)[0]
        np.testing.assert_allclose(result.coef.T * signs, stored[f"coef_{m}"], atol=1e-8)
        np.testing.assert_array_equal(
            np.argsort(-result.scores, kind="stable")[:m], stored[f"sel_{m}"].ravel()
        )
    result = solve_mcfs(X, embed(graph, 4, rng())[0], [8], 1e-3)[0]
    np.testing.assert_array_equal(
        np.argsort(-result.scores, kind="stable")[:8], stored["sel_8_neig4"].ravel()
    )


@pytest.mark.parametrize(
    ("name", "sizes"), [("mix", (5, 10, 15)), ("digits", (10, 15)), ("wide", (5, 10, 15))]
)
def test_coefficients_on_a_given_embedding_are_those_of_cais_program(name, sizes):
    stored = fixture(f"mcfs_cai_{name}")
    for m in sizes:
        result = solve_mcfs(stored["X"], stored["Y"], [m], 1e-3)[0]
        np.testing.assert_allclose(result.coef.T, stored[f"coef_{m}"], atol=4e-12)
        np.testing.assert_array_equal(
            np.argsort(-result.scores, kind="stable")[:m], stored[f"sel_{m}"].ravel()
        )


def test_more_non_zeros_than_samples_are_those_of_cais_program():
    stored = fixture("mcfs_cai_wide_largecard")
    for m in (30, 60):
        result = solve_mcfs(stored["X"], stored["Y"], [m], 1e-3)[0]
        np.testing.assert_array_equal(np.count_nonzero(result.coef, axis=1), m)
        np.testing.assert_allclose(result.coef.T, stored[f"coef_{m}"], atol=3.4e-9)


def problem(seed):
    """Correlated columns, sometimes more of them than samples, so that paths have drops."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(5, 60), rng.integers(2, 60)
    mixing = np.eye(d) + rng.uniform(0, 2) * rng.standard_normal((d, d)) / np.sqrt(d)
    X = rng.standard_normal((n, d)) @ mixing + rng.uniform(0, 3)
    return X, 10 * rng.standard_normal(n), float(rng.choice([1e-3, 0.1, 1.0]))


def dense(knot, d):
    coef = np.zeros(d)
    coef[knot.features] = knot.values
    return coef


def scikit_learn_path(X, y, ridge):
    d = X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where residuals become small
        _, _, path = lars_path_gram(
            X.T @ y, X.T @ X + ridge * np.eye(d), n_samples=1, method="lasso", max_iter=20 * d
        )
    return path.T[1:]  # without the knot at which nothing is active


def n_drops(path):
    sizes = [np.sum(np.abs(coef) > 1e-10 * np.abs(coef).max()) for coef in path]
    return int(np.sum(np.diff(sizes) < 0))


@pytest.mark.parametrize("block", range(3))
def test_every_knot_is_scikit_learns_with_drops_on_the_way(block):
    drops = 0
    for seed in range(20 * block, 20 * (block + 1)):
        X, y, ridge = problem(seed)
        expected = scikit_learn_path(X, y, ridge)
        knots = list(lasso_knots(Gram(X, ridge), X.T @ y))
        found = np.array([dense(knot, X.shape[1]) for knot in knots])
        assert found.shape == expected.shape
        # The largest condition number among these is about 1e7.
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
        drops += n_drops(expected)
    assert drops >= 10


@given(seed=st.integers(0, 100_000))
@settings(max_examples=30, deadline=None)
def test_every_knot_meets_the_optimality_conditions_of_the_lasso(seed):
    X, y, ridge = problem(seed)
    d = X.shape[1]
    highest = np.abs(X.T @ y).max()
    penalties = []
    for knot in lasso_knots(Gram(X, ridge), X.T @ y):
        coef = dense(knot, d)
        correlation = (X.T @ (y - X @ coef) - ridge * coef) / highest
        penalty = knot.penalty / highest
        assert np.abs(correlation).max() <= penalty + 1e-7
        inside = np.flatnonzero(np.abs(coef) > 1e-10 * np.abs(coef).max())
        np.testing.assert_allclose(correlation[inside], penalty * np.sign(coef[inside]), atol=1e-7)
        penalties.append(knot.penalty)
    assert np.all(np.diff(penalties) <= 0)
    assert penalties[-1] == 0.0


def test_without_ridge_the_path_is_exhausted_at_the_rank_of_X():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 50)), rng.standard_normal(12)
    ((knot, _),) = first_knots_of_sizes(Gram(X, 0.0), X.T @ y, [30])
    assert not knot.reached
    assert knot.n_nonzero == 12
    np.testing.assert_allclose(X @ dense(knot, 50), y, atol=1e-9)


def test_the_first_knot_of_the_size_is_taken_where_a_drop_makes_the_path_come_back():
    """Seeds whose path visits a size, goes on, and visits it again, found with scikit-learn."""
    visited_again = 0
    for seed in range(20):
        X, y, ridge = problem(seed)
        path = scikit_learn_path(X, y, ridge)
        sizes = np.array([np.sum(np.abs(coef) > 1e-10 * np.abs(coef).max()) for coef in path])
        for size in np.unique(sizes):
            at = np.flatnonzero(sizes == size)
            if len(at) > 1:
                visited_again += 1
                ((knot, _),) = first_knots_of_sizes(Gram(X, ridge), X.T @ y, [int(size)])
                scale = np.abs(path[at[0]]).max()
                np.testing.assert_allclose(dense(knot, X.shape[1]), path[at[0]], atol=1e-7 * scale)
    assert visited_again >= 10


def smooth_table(seed, scale):
    """More columns than samples, neighbours all but equal: spectra, say, in small units."""
    rng = np.random.default_rng(seed)
    places = np.linspace(0, 1, 120)
    waves = np.array([np.cos(np.pi * i * places) / (1 + i) ** 2 for i in range(30)])
    X = scale * (rng.standard_normal((30, 30)) @ waves + 1e-4 * rng.standard_normal((30, 120)))
    return X, rng.standard_normal(30)


@pytest.mark.parametrize("scale", [100.0, 3000.0])
def test_past_the_number_of_samples_knots_of_smooth_tables_are_on_the_path_or_said_not_to_be(scale):
    # Inverses that many changes had worn out gave numbers that were none.
    n_reached = 0
    for seed in range(12):
        X, y = smooth_table(seed, scale)
        c = X.T @ y
        ((knot, _),) = first_knots_of_sizes(Gram(X, 1e-3), c, [40])
        assert np.isfinite(knot.values).all()
        a = np.zeros(120)
        a[knot.features] = knot.values
        left = c - X.T @ (X @ a) - 1e-3 * a
        off = np.abs(np.abs(left[knot.features]) - knot.penalty).max()
        above = np.abs(left).max() - knot.penalty
        if knot.reached:
            assert max(off, above) <= 1e-3 * np.abs(c).max()
            n_reached += 1
    assert n_reached >= 9
