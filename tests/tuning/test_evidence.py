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
    found = evidence_module._nearest(evidence_module.squared_distances(points), 5)
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


def test_identical_samples_do_not_divide_by_zero():
    X = np.repeat(np.eye(3), 10, axis=0)
    assert weigh(X).clumpiness == 2.0
    # Which of ten samples at the same place are the nearest five is open, but at least one agrees.
    assert weigh(X).fidelity > 0.1
