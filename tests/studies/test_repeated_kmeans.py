"""k-means from many starts is scikit-learn's, start by start."""

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus

from keepers import datasets
from keepers.studies.repeated_kmeans import lloyd, repeated_kmeans


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits").X[:300]


def inertia(X, labels):
    return sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in set(labels))


def test_from_the_same_centres_the_labels_are_those_of_scikit_learn(digits):
    rng = np.random.default_rng(0)
    starts = np.array([digits[rng.choice(300, 10, replace=False)] for _ in range(5)])
    own = lloyd(digits, starts)
    for centres, labels in zip(starts, own, strict=True):
        expected = KMeans(10, init=centres, n_init=1).fit(digits).labels_
        np.testing.assert_array_equal(labels, expected)


def test_the_first_centres_are_as_good_as_those_of_scikit_learn(digits):
    """Greedy k-means++ is random: the mean potential of many starts is compared."""

    def potential(centres):
        return ((digits[:, None] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum()

    from keepers.studies.repeated_kmeans import _plus_plus

    own = [potential(c) for c in _plus_plus(digits, 10, range(60))]
    theirs = [potential(kmeans_plusplus(digits, 10, random_state=s)[0]) for s in range(60)]
    error = np.sqrt((np.var(own) + np.var(theirs)) / 60)
    assert abs(np.mean(own) - np.mean(theirs)) < 4 * error


def test_a_start_does_not_depend_on_the_others(digits):
    together = repeated_kmeans(digits, 10, [3, 4, 5])
    np.testing.assert_array_equal(repeated_kmeans(digits, 10, [4])[0], together[1])
    assert not np.array_equal(together[0], together[1])


def test_with_more_columns_than_samples_clusters_that_are_apart_are_found():
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], 8)
    X = 20 * rng.normal(size=(3, 200))[classes] + rng.normal(size=(24, 200))
    for labels in repeated_kmeans(X, 3, range(4)):
        assert len(set(zip(classes, labels, strict=True))) == 3


def test_the_clusterings_are_as_tight_as_those_of_scikit_learn(digits):
    own = [inertia(digits, labels) for labels in repeated_kmeans(digits, 10, range(30))]
    theirs = [KMeans(10, n_init=1, random_state=s).fit(digits).inertia_ for s in range(30)]
    error = np.sqrt((np.var(own) + np.var(theirs)) / 30)
    assert abs(np.mean(own) - np.mean(theirs)) < 4 * error


def test_an_empty_cluster_takes_the_sample_farthest_from_its_centre():
    X = np.array([[0.0], [0.1], [0.2], [10.0]])
    (labels,) = lloyd(X, np.array([[[0.0], [-50.0]]]))
    assert len(set(labels[:3])) == 1
    assert labels[3] != labels[0]


def test_equal_samples_and_more_clusters_than_samples_do_no_harm():
    assert repeated_kmeans(np.zeros((6, 3)), 2, [0, 1]).shape == (2, 6)
    assert repeated_kmeans(np.eye(3), 5, [0]).shape == (1, 3)
