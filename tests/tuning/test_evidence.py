"""What speaks for a set of features: against scikit-learn, and where the answer is known."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from keepers.tuning import evidence as evidence_module
from keepers.tuning.evidence import Judge, NeighbourEvidence


def weigh(X):
    return Judge(X, np.random.default_rng(0)).weigh(np.arange(X.shape[1]))


def test_neighbours_are_those_of_scikit_learn():
    points = np.random.default_rng(0).standard_normal((80, 6))
    expected = NearestNeighbors(n_neighbors=5).fit(points).kneighbors_graph().toarray() > 0
    found = evidence_module._nearest(evidence_module.squared_distances(points))
    assert np.array_equal(found, expected)


def test_distances_are_those_of_scipy():
    points = np.random.default_rng(1).standard_normal((40, 7)) + 3.0
    found = evidence_module.squared_distances(points - points.mean(axis=0))
    np.testing.assert_allclose(found, cdist(points, points, "sqeuclidean"), atol=1e-10)


def test_all_features_of_equal_variance_have_the_neighbours_of_the_whole_table():
    X = np.random.default_rng(2).standard_normal((60, 12))
    assert weigh(X / X.std(axis=0) + 4.0).fidelity == 1.0


def test_fidelity_is_the_share_of_neighbours_in_the_standardised_table():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((70, 30)) * np.exp(rng.standard_normal(30)) + 5.0
    columns = np.array([0, 4, 9, 20])

    def neighbours(points):
        return NearestNeighbors(n_neighbors=5).fit(points).kneighbors_graph().toarray() > 0

    whole, kept = neighbours(StandardScaler().fit_transform(X)), neighbours(X[:, columns])
    expected = (whole & kept).sum() / whole.sum()
    found = Judge(X, np.random.default_rng(0)).weigh(columns)
    assert found.fidelity == pytest.approx(expected, abs=1e-12)


def test_noise_shares_the_neighbours_of_other_features_by_chance_only():
    X = np.random.default_rng(4).standard_normal((200, 1040))
    found = Judge(X, np.random.default_rng(0)).weigh(np.arange(5))
    assert found.fidelity == pytest.approx(5 / 199, abs=0.02)


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.5])
def test_gaussian_data_of_any_covariance_are_not_clumpy(decay):
    rng = np.random.default_rng(4)
    spread = np.arange(1, 31) ** -decay
    rotation = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    X = (rng.standard_normal((300, 30)) * spread) @ rotation
    assert abs(weigh(X).clumpiness) < 0.06


def test_clusters_are_clumpy_and_the_farther_apart_the_more():
    clumpiness = [
        weigh(make_blobs(200, 20, centers=8, cluster_std=std, random_state=0)[0]).clumpiness
        for std in (8.0, 3.0, 1.0)
    ]
    assert clumpiness[0] < clumpiness[1] < clumpiness[2]
    assert clumpiness[2] > 1.0


def test_evidence_does_not_depend_on_units_or_origin():
    X = make_blobs(120, 10, centers=4, random_state=1)[0]
    plain, moved = weigh(X), weigh(1e3 * X - 7.0)
    assert moved.fidelity == pytest.approx(plain.fidelity, abs=0.01)
    assert moved.clumpiness == pytest.approx(plain.clumpiness, rel=1e-6)


def test_the_score_is_fidelity_times_the_root_of_clumpiness_and_noise_cannot_make_it_vanish():
    assert NeighbourEvidence(0.5, 0.64).score == pytest.approx(0.4)
    assert NeighbourEvidence(0.5, -0.2).score == pytest.approx(0.05)


def test_sparse_and_dense_tables_weigh_the_same():
    X = make_blobs(90, 12, centers=4, random_state=2)[0]
    X[np.abs(X) < 2] = 0.0
    columns = np.array([0, 3, 4, 7, 11])
    dense = Judge(X, np.random.default_rng(0)).weigh(columns)
    found = Judge(sp.csr_matrix(X), np.random.default_rng(0)).weigh(columns)
    assert found.fidelity == pytest.approx(dense.fidelity)
    assert found.clumpiness == pytest.approx(dense.clumpiness)


def test_the_order_of_the_columns_does_not_matter():
    X = make_blobs(90, 12, centers=4, random_state=3)[0]
    judge = Judge(X, np.random.default_rng(0))
    assert judge.weigh(np.array([5, 1, 9])) is judge.weigh(np.array([9, 5, 1]))


@pytest.mark.parametrize("shape", [(2, 2), (3, 1), (5, 3)])
def test_tiny_tables_are_weighed_too(shape):
    found = weigh(np.random.default_rng(0).standard_normal(shape))
    assert 0.0 <= found.fidelity <= 1.0
    assert np.isfinite(found.score)


def test_samples_at_the_same_place_share_the_places_among_the_nearest():
    X = np.repeat(np.eye(3), 10, axis=0)
    found = weigh(X)
    # Each of nine at no distance has 5/9 of a place in the whole table, and so in the columns.
    assert found.fidelity == pytest.approx(9 * (5 / 9) ** 2 / 5)
    assert np.isfinite(found.score)


def test_repeated_samples_of_continuous_features_do_not_divide_by_zero():
    X = np.repeat(np.random.default_rng(0).standard_normal((5, 4)), 12, axis=0)
    assert np.isfinite(weigh(X).score)


# Columns of few values


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
@pytest.mark.parametrize("n_common", [0, 1, 3])
def test_gaussian_data_cut_into_yes_and_no_are_not_clumpy(share, n_common):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 30)) + rng.standard_normal((300, n_common)) @ (
        rng.standard_normal((n_common, 30))
    )
    limits = np.quantile(X, 1 - share, axis=0)
    cut = (limits < X).astype(float)
    assert abs(weigh(cut).clumpiness) < 0.1


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 2.0])
def test_rounding_does_not_make_data_clumpy(step):
    X = np.random.default_rng(6).standard_normal((300, 20))
    rounded = weigh(np.round(X / step) * step).clumpiness
    assert abs(rounded - weigh(X).clumpiness) < 0.05


def test_values_that_occur_once_stay_where_they_are():
    X = np.random.default_rng(7).standard_normal((50, 3))
    assert evidence_module.spread_ties(X, np.random.default_rng(0)) is X
    mixed = np.column_stack([X[:, 0], np.repeat([0.0, 1.0], 25)])
    moved = evidence_module.spread_ties(mixed, np.random.default_rng(0))
    np.testing.assert_allclose(moved[:, 0] - moved[0, 0], X[:, 0] - X[0, 0], atol=1e-12)


def test_a_level_is_spread_as_the_part_of_a_gaussian_that_falls_on_it():
    """Half of a standard Gaussian has the standard deviation sqrt(1 - 2 / pi)."""
    coin = np.repeat([0.0, 1.0], 20_000)[:, np.newaxis]
    moved = evidence_module.spread_ties(coin, np.random.default_rng(0))[:, 0]
    for level in (moved[:20_000], moved[20_000:]):
        assert level.std() == pytest.approx(0.5 * np.sqrt(1 - 2 / np.pi), rel=0.02)
    assert moved[20_000:].mean() - moved[:20_000].mean() == pytest.approx(1.0, abs=0.02)


def survey():
    """120 samples of four kinds: 60 answers from 0 to 4 that depend on the kind, 6 that do not.

    Those six are nearly the same question, with yes or no for an answer: samples coincide in them.
    """
    rng = np.random.default_rng(8)
    kind = np.arange(120) % 4
    answers = np.clip(np.round(2 + 1.2 * rng.standard_normal((4, 60))[kind]), 0, 4)
    answers = np.clip(answers + rng.integers(-1, 2, answers.shape), 0, 4)
    coin = rng.integers(2, size=(120, 1))
    repeated = np.where(rng.random((120, 6)) < 0.01, 1 - coin, coin)
    return np.hstack([answers, repeated])


def test_questions_that_make_samples_coincide_are_no_clusters():
    X = survey()
    judge = Judge(X, np.random.default_rng(0))
    telling, repeated = judge.weigh(np.arange(6)), judge.weigh(np.arange(60, 66))
    # They have nothing to do with who is near in the other 60, and one direction is no cluster.
    assert repeated.fidelity < 0.1 < telling.fidelity
    assert repeated.clumpiness < 0.3
    assert telling.score > repeated.score


def test_scores_on_halves_vary_about_that_on_half_as_many_samples():
    rng = np.random.default_rng(9)
    X = make_blobs(400, 20, centers=4, cluster_std=4.0, random_state=0)[0]
    X = np.hstack([X, rng.standard_normal((400, 20))])
    columns = np.arange(10)
    found = Judge(X, np.random.default_rng(0)).scores_on_halves(columns)
    assert len(found) == 10
    half = Judge(X[::2], np.random.default_rng(0)).weigh(columns).score
    assert abs(found.mean() - half) < 3 * found.std()
    again = Judge(X, np.random.default_rng(0)).scores_on_halves(columns[::-1])
    np.testing.assert_allclose(again, found)
    few = Judge(X[:11], np.random.default_rng(0)).scores_on_halves(columns)
    assert len(few) == 0
