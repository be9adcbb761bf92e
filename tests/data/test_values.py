"""Arrays of every kind become float values exactly, or are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.datasets import open_table
from keepers.exceptions import DataError

LARGE = np.array([[1, 2**53 + 1], [3, -(2**53) - 3]], dtype=np.int64)


def _npy(path, X):
    np.save(path.with_suffix(".npy"), X)
    return path.with_suffix(".npy")


def _sparse(path, X):
    sp.save_npz(path.with_suffix(".npz"), sp.csc_matrix(X))
    return path.with_suffix(".npz")


@pytest.mark.parametrize("write", [_npy, _sparse])
def test_a_column_of_large_integers_can_be_named_or_left_out(tmp_path, write):
    path = write(tmp_path / "a", LARGE)
    with pytest.raises(DataError, match=r"at most 2\*\*53 .* larger ones in 'x1'"):
        open_table(path)
    assert open_table(path, drop=["x1"]).n_features == 1
    assert list(open_table(path, identifier="x1").sample_names) == [str(x) for x in LARGE[:, 1]]
    np.testing.assert_array_equal(open_table(path, labels="x1").labels, LARGE[:, 1])
