"""Inf-FS against two released programs, closed forms and plain linear algebra."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from keepers import InfFS
from keepers.methods.rivals.inffs import edge_weights, score_paths, unit_ranks
from shared_material import fixture

DATA = ("mix", "digits", "blobs", "wide", "edge")


def table(shape=(40, 12), seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * rng.uniform(0.5, 2.0, shape[1])


def edges_of(X, alpha):
    return edge_weights(unit_ranks(X), X.std(axis=0, ddof=1), alpha)


def scores_of(X, alpha, coupling=None):
    return score_paths(edges_of(X, alpha), coupling).scores


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("i", range(5))
def test_scores_are_those_of_version_5_1(name, i):
    reference = fixture(f"inffs_u_authors_{name}")
    found = scores_of(reference["X"], float(reference["alphas"][i]))
    np.testing.assert_allclose(1.0 + found, reference[f"weight_{i}"].ravel(), rtol=0, atol=2e-13)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("i", range(5))
def test_scores_with_a_spectral_coupling_are_those_of_version_4_with_the_weights_swapped(name, i):
    reference = fixture(f"inffs_v4_{name}")
    found = score_paths(edges_of(reference["X"], 1.0 - float(reference["alphas"][i])), 0.99)
    np.testing.assert_allclose(found.scores, reference[f"weight_{i}"].ravel(), rtol=1.6e-11)
    expected = 0.99 / float(reference[f"lambda_max_{i}"])
    assert found.coupling == pytest.approx(expected, rel=1e-12)


def test_two_features_have_a_closed_form():
    X = np.column_stack([np.tile([0.0, 1.0], 10), np.repeat([0.0, 3.0], 10)])
    np.testing.assert_allclose(edges_of(X, 1.0), [[0, 1], [1, 1]], atol=1e-15)
    np.testing.assert_allclose(1 + scores_of(X, 1.0), [1.45453355, 1.81816149], atol=1e-8)


def test_ranks_correlate_as_scipys():
    X = np.round(table() * 3)  # with ties
    ranks = unit_ranks(X)
    np.testing.assert_allclose(ranks @ ranks.T, spearmanr(X).statistic, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(ranks, axis=1), 1.0, rtol=1e-14)


def test_alpha_0_sees_only_ranks_and_alpha_1_only_relative_deviations():
    X = table()
    warped = X.copy()
    warped[:, 3], warped[:, 5] = np.exp(X[:, 3]), -(X[:, 5] ** 3)
    np.testing.assert_allclose(scores_of(warped, 0.0), scores_of(X, 0.0), rtol=1e-13)
    shifted = 7.0 * X + np.arange(12)
    np.testing.assert_allclose(scores_of(shifted, 1.0), scores_of(X, 1.0), rtol=1e-12)


@pytest.mark.parametrize("coupling", [None, 0.3, 0.9])
def test_scores_are_row_sums_of_the_inverse_and_of_the_series(coupling):
    A, ones = edges_of(table(), 0.5), np.ones(12)
    found = score_paths(A, coupling)
    inverse = np.linalg.inv(np.eye(12) - found.coupling * A)
    np.testing.assert_allclose(found.scores, inverse.sum(axis=1) - 1, rtol=1e-12)
    term, series = ones, np.zeros(12)
    for _ in range(400):
        term = found.coupling * (A @ term)
        series += term
    np.testing.assert_allclose(found.scores, series, rtol=1e-12)


def test_rounding_in_equal_deviations_decides_nothing():
    """The release scales differences of 1e-16 up to 1."""
    X = table((50, 10))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    moved = X * (1.0 + 1e-15 * np.arange(10))
    np.testing.assert_allclose(scores_of(moved, 0.5), scores_of(X, 0.5), rtol=1e-12)


def test_features_that_resemble_each_other_closely_keep_a_convergent_sum():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 1)) + 0.02 * rng.standard_normal((50, 4))
    X /= X.std(axis=0)
    edges = edges_of(X, 0.5)
    row_sums = edges.sum(axis=1)
    found = score_paths(edges)
    assert row_sums.max() < 0.1  # the formula of the release gives a coupling beyond 1 / rho
    assert found.coupling * row_sums.max() == pytest.approx(0.9, rel=1e-12)
    assert np.all(found.scores > 0)


def test_the_radius_of_a_graph_in_two_halves_is_found():
    """Its eigenvalues come in pairs of either sign."""
    B = np.abs(table((6, 6)))
    A = np.block([[np.zeros((6, 6)), B], [B.T, np.zeros((6, 6))]])
    assert score_paths(A, 0.5).coupling == pytest.approx(0.5 / np.linalg.eigvalsh(A)[-1], rel=1e-12)


@pytest.mark.parametrize("name", ["mix", "digits", "blobs", "wide"])
@pytest.mark.parametrize("i", range(5))
def test_the_whole_fit_is_the_released_program(name, i):
    reference = fixture(f"inffs_u_authors_{name}")
    selector = InfFS(alpha=float(reference["alphas"][i])).fit(reference["X"])
    expected = reference[f"weight_{i}"].ravel() - 1.0
    np.testing.assert_allclose(selector.scores_, expected, rtol=0, atol=2e-13)
    np.testing.assert_array_equal(np.argsort(selector.ranking_), reference[f"ranking_{i}"].ravel())


def test_features_that_rank_alike_keep_their_order():
    X = np.repeat(table((20, 1)), 4, axis=1)
    assert InfFS().fit(X).ranking_.tolist() == [1, 2, 3, 4]


def test_without_edges_all_scores_are_zero():
    found = score_paths(np.zeros((3, 3)))
    assert found.scores.tolist() == [0.0, 0.0, 0.0]
