"""Matrix Market agrees with scipy's reader on what scipy writes."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.data import open_table
from keepers.exceptions import DataError

SYMMETRIES = {
    "general": lambda A: A,
    "symmetric": lambda A: A + A.T,
    "skew-symmetric": lambda A: A - A.T,
}


@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_what_scipy_writes_is_read_as_scipy_reads_it(tmp_path, symmetry, field, sparse, packed):
    if field == "pattern" and (not sparse or symmetry == "skew-symmetric"):
        pytest.skip("there is no such matrix")
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 9)) if field == "real" else rng.integers(-5, 6, size=(9, 9))
    A = SYMMETRIES[symmetry](A * (rng.random((9, 9)) < 0.5))
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(
        path,
        sp.coo_matrix(A) if sparse else A,
        comment="one\ntwo",
        field=field,
        symmetry=symmetry,
        precision=17,
    )
    expected = scipy.io.mmread(path)
    if packed:
        path = tmp_path / "a.mtx.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    table = open_table(path)
    assert table.is_sparse == sparse
    np.testing.assert_array_equal(
        table.X.toarray() if sparse else table.X, expected.toarray() if sparse else expected
    )
    assert table.name == "a"


def test_it_reads_without_pyarrow(tmp_path, monkeypatch):
    A = sp.random(40, 30, density=0.2, random_state=0, format="csr")
    scipy.io.mmwrite(tmp_path / "a.mtx", A, precision=17)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    np.testing.assert_array_equal(open_table(tmp_path / "a.mtx").X.toarray(), A.toarray())


def test_blocks_join_without_a_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.data.formats.matrix_market._BLOCK_BYTES", 100)
    A = sp.random(40, 30, density=0.2, random_state=0, format="csr")
    scipy.io.mmwrite(tmp_path / "a.mtx", A, precision=17)
    np.testing.assert_array_equal(open_table(tmp_path / "a.mtx").X.toarray(), A.toarray())


def test_odd_spacing_and_repeated_entries(tmp_path):
    (tmp_path / "a.mtx").write_text(
        "%%MatrixMarket  MATRIX coordinate Real general\n% note\n\n 2\t3  3 \n"
        "1 1   2.5\n\n1 1 1\r\n 2 3 -4e0"
    )
    np.testing.assert_array_equal(
        open_table(tmp_path / "a.mtx").X.toarray(), [[3.5, 0, 0], [0, 0, -4]]
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("2 2 2\n1 1 1\n", "there are 3"),
        ("2 2 1\n1 1 1\n2 2 2\n", "there are more"),
        ("2 2 1\n1.5 1 1\n", "whole numbers from 1"),
        ("2 2 1\n0 1 1\n", "whole numbers from 1"),
        ("2 2 1\n1 nan 1\n", "whole numbers from 1"),
        ("2 2 1\n1 1 x\n", "numbers only"),
        ("2 2\n1 1 1\n", "line of sizes"),
        ("", "truncated"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_body_that_does_not_keep_its_word_is_refused(tmp_path, body, message):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n" + body)
    with pytest.raises(DataError, match=message):
        open_table(path)
