"""K-means on kept columns, judged against classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from keepers.studies.protocol import judge_columns


@pytest.fixture
def blobs():
    random = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 20)
    X = random.standard_normal((60, 6))
    X[:, 3] += 20 * y
    return X, y


def test_the_column_that_holds_the_classes_is_clustered_perfectly(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([3]), n_repeats=4, seed=0)
    assert max(judgement.acc) == 1.0
    assert max(judgement.nmi) == pytest.approx(1.0)
    assert len(judgement.acc) == len(judgement.nmi) == 4


def test_each_repeat_is_scikit_learns_k_means_with_its_seed(blobs):
    X, y = blobs
    judgement = judge_columns(X, y, np.array([5, 0]), n_repeats=3, seed=10)
    for repeat, nmi in enumerate(judgement.nmi):
        found = KMeans(3, n_init=1, random_state=10 + repeat).fit(X[:, [0, 5]]).labels_
        expected = normalized_mutual_info_score(y, found, average_method="max")
        assert nmi == pytest.approx(expected)


def test_the_order_in_which_a_method_ranks_columns_does_not_matter(blobs):
    X, y = blobs
    one, other = (judge_columns(X, y, np.array(c), n_repeats=5, seed=0) for c in ([4, 1], [1, 4]))
    assert one.acc == other.acc
    assert one.nmi == other.nmi


def test_sparse_and_dense_tables_are_judged_alike(blobs):
    X, y = blobs
    X = np.where(X > 0.5, X, 0)
    dense = judge_columns(X, y, np.array([1, 3]), n_repeats=2, seed=0)
    sparse = judge_columns(sp.csr_matrix(X), y, np.array([1, 3]), n_repeats=2, seed=0)
    assert dense.acc == pytest.approx(sparse.acc)
