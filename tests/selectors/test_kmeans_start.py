import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataWarning
from keepers.metrics import clustering_accuracy
from keepers.selectors.kmeans_start import kmeans_labels

GROUPS = np.repeat(np.arange(3), 20)


def clusters():
    """Three groups of 20 samples far apart."""
    return np.random.default_rng(0).normal(size=(60, 4)) + 9.0 * np.eye(4)[GROUPS]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_groups_far_apart_are_found_without_a_warning(container):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels, count = kmeans_labels(container(clusters()), 3, np.random.RandomState(0))
    assert count == 3
    assert clustering_accuracy(GROUPS, labels) == 1.0  # counted


def test_fewer_distinct_samples_than_clusters_give_fewer_and_none_is_empty():
    X = np.repeat(clusters()[[0, 30, 50]], 4, axis=0)
    with pytest.warns(DataWarning, match=r"n_clusters=5 .* 3 clusters in the 12") as caught:
        labels, count = kmeans_labels(X, 5, np.random.RandomState(0))
    assert len(caught) == 1
    assert count == 3
    np.testing.assert_array_equal(np.bincount(labels), [4, 4, 4])


def test_fewer_samples_than_clusters_give_one_cluster_each():
    with pytest.warns(DataWarning, match="n_clusters=5"):
        labels, count = kmeans_labels(clusters()[[0, 30]], 5, np.random.RandomState(0))
    assert count == 2
    assert sorted(labels) == [0, 1]
