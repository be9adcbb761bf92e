"""svmlight files as scikit-learn writes them."""

import bz2

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from keepers.datasets import open_table
from keepers.exceptions import DataError


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


@pytest.mark.parametrize("content", ["1_0 1:2\n", "1 1_0:2\n", "1 1:2_0\n"])
def test_underscores_are_no_part_of_a_number(tmp_path, content):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1 # a_b\n" + content)
    with pytest.raises(DataError, match="line 2 holds an underscore"):
        open_table(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [("1 3:9007199254740993\n", "index 3"), ("-9007199254740993 1:1\n", "the labels")],
)
def test_integers_that_float64_would_round_are_refused(tmp_path, content, told):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1.2345678901234567890 2:9007199254740992\n" + content)
    with pytest.raises(DataError, match=rf"at most 2\*\*53 .*{told} \(line 2\)"):
        open_table(path)


def test_a_row_of_too_many_entries_is_refused_before_it_is_split(tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.data.limits.MOST_COLUMNS", 1000)
    path = tmp_path / "a.svm.bz2"
    path.write_bytes(bz2.compress(b"1 " + b"1:1 " * 2**18))
    with pytest.raises(DataError, match="At most 1000 columns are read; line 1"):
        open_table(path)
