"""svmlight files as scikit-learn writes them."""

import bz2

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from keepers.data import open_table


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("suffix", [".svm", ".libsvm", ".svmlight", ".svmlight.bz2"])
def test_what_scikit_learn_writes_is_read_back(tmp_path, zero_based, suffix):
    X = np.round(sp.random(30, 12, density=0.3, random_state=0).toarray(), 6)
    X[0, [0, 11]] = 1, 2
    y = np.arange(30) % 4 - 1
    path = tmp_path / f"a{suffix}"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    if suffix.endswith("bz2"):
        path.write_bytes(bz2.compress(path.read_bytes()))
    table = open_table(path)
    assert table.is_sparse
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.labels, y)
    assert table.labels.dtype == np.int64
    assert table.feature_names[11] == "x11"
