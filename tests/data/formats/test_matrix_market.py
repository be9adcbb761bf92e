"""Matrix Market agrees with scipy's reader on what scipy writes."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import open_table
from keepers.exceptions import DataError

SYMMETRIES = {
    "general": lambda A: A,
    "symmetric": lambda A: A + A.T,
    "skew-symmetric": lambda A: A - A.T,
}


# A pattern stores where entries are and no values: it is sparse, and nothing is the negative of it.
KINDS = [
    (symmetry, field, sparse)
    for symmetry in SYMMETRIES
    for field in ("real", "integer", "pattern")
    for sparse in (True, False)
    if field != "pattern" or (sparse and symmetry != "skew-symmetric")
]


@pytest.mark.parametrize(("symmetry", "field", "sparse"), KINDS)
@pytest.mark.parametrize("packed", [True, False])
def test_what_scipy_writes_is_read_as_scipy_reads_it(tmp_path, symmetry, field, sparse, packed):
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
        ("2 2 2\n1 1 1\n", "must hold 2 lines of numbers; there are 1"),
        ("2 2 1\n1 1 1\n2 2 2\n", "must hold 1 lines of numbers; there are 2"),
        (
            "2 2 1\n1.5 1 1\n",
            "a row, a column and a number and nothing else; line 3 reads '1.5 1 1'",
        ),
        ("2 2 1\n0 1 1\n", "Row index out of bounds"),
        ("2 2 1\n3 1 1\n", "Row index out of bounds"),
        ("2 2 1\n1 nan 1\n", "line 3 reads '1 nan 1'"),
        ("2 2 1\n1 1 x\n", "line 3 reads '1 1 x'"),
        ("2 2 1\n1 1 1,5\n", "line 3 reads '1 1 1,5'"),
        ("2 2 1\n1 1 1.2.3", "line 3 reads '1 1 1.2.3'"),
        ("2 2 1\n1 1 1+2\n", "line 3 reads '1 1 1\\+2'"),
        ("2 2 1\n1 1 1 1\n", "line 3 reads '1 1 1 1'"),
        ("2 2 1\n1 1 1\0\n", "line 3 reads"),
        ("2 2\n1 1 1\n", "not a readable Matrix Market file"),
        ("", "truncated"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_body_that_does_not_keep_its_word_is_refused(tmp_path, body, message):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n" + body)
    with pytest.raises(DataError, match=message):
        open_table(path)


@pytest.mark.parametrize("layout", ["coordinate", "array"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**62 + 1])
def test_integers_that_float64_would_round_are_refused(tmp_path, layout, symmetry, value):
    A = np.array([[1, 2, 0], [2, 4, 0], [0, 0, value]])
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(
        path, sp.coo_matrix(A) if layout == "coordinate" else A, field="integer", symmetry=symmetry
    )
    with pytest.raises(DataError, match=r"at most 2\*\*53 .* larger ones in 'x2'"):
        open_table(path)
    assert open_table(path, drop=["x2"]).n_features == 2
    assert open_table(path, identifier="x2").sample_names[2] == str(value)


def test_an_integer_matrix_holds_integers_up_to_the_largest_exact_one(tmp_path):
    A = np.array([[2**53, 1], [-(2**53), 0]])
    scipy.io.mmwrite(tmp_path / "a.mtx", A, field="integer")
    np.testing.assert_array_equal(open_table(tmp_path / "a.mtx").X, A.astype(float))


@pytest.mark.parametrize("sizes", ["1_0 2 1", "１ 2 1", "1.0 2 1", "a b c"])
def test_sizes_are_plain_integers(tmp_path, sizes):
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n{sizes}\n1 1 1\n")
    with pytest.raises(DataError, match="must hold 2 or 3 integers"):
        open_table(path)


@pytest.mark.parametrize("value", ["1.5", "inf", "nan"])
def test_an_integer_matrix_of_other_numbers_is_refused(tmp_path, value):
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {value}\n")
    with pytest.raises(DataError, match="a row, a column and an integer"):
        open_table(path)


def test_a_body_on_one_line_is_not_cut_inside_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr("keepers.data.formats.matrix_market._BLOCK_BYTES", 10)
    monkeypatch.setattr("keepers.data.formats.matrix_market._LONGEST_LINE", 50)
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n9 1\n" + "12345678 " * 9)
    with pytest.raises(DataError, match="A line must hold a number and nothing else; line 3 reads"):
        open_table(path)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_real_hermitian_matrix_is_a_symmetric_one(tmp_path, sparse):
    A = np.array([[1.5, 2, 0], [2, 0, -3], [0, -3, 4]])
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sp.coo_matrix(A) if sparse else A, symmetry="symmetric")
    path.write_bytes(path.read_bytes().replace(b"symmetric", b"hermitian", 1))
    X = open_table(path).X
    np.testing.assert_array_equal(X.toarray() if sparse else X, A)


@pytest.mark.parametrize("field", ["real", "pattern"])
def test_a_sparse_matrix_without_entries_is_read(tmp_path, field):
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sp.coo_matrix((3, 2)), field=field)
    np.testing.assert_array_equal(open_table(path).X.toarray(), np.zeros((3, 2)))


@pytest.mark.parametrize("field", ["real", "integer"])
def test_numbers_may_have_a_plus_sign(tmp_path, field):
    path = tmp_path / "a.mtx"
    path.write_text(f"%%MatrixMarket matrix array {field} general\n2 2\n+1\n -2\n\t+3\n+4\n")
    np.testing.assert_array_equal(open_table(path).X, [[1, 3], [-2, 4]])


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        ("array real general\n0 5\n", "needs rows and columns; this one is 0 x 5"),
        ("array real general\n5 0\n", "needs rows and columns; this one is 5 x 0"),
        ("coordinate real general\n0 0 0\n", "needs rows and columns; this one is 0 x 0"),
        ("array real general\n2 1\n1\n", "must hold 2 lines of numbers; there are 1"),
        ("array real general\n2 1\n1\n2\n3\n", "must hold 2 lines of numbers; there are 3"),
        ("array real symmetric\n2 2\n1\n2\n", "must hold 3 lines of numbers; there are 2"),
        ("array real symmetric\n2 2\n1\n2\n3\n4\n", "must hold 3 lines.*there are 4"),
        ("array real symmetric\n3 2\n1\n2\n3\n4\n5\n6\n", "square"),
        ("array real skew-symmetric\n3 3\n1\n2\n", "must hold 3 lines of numbers; there are 2"),
        ("array real skew-symmetric\n3 3\n1\n2\n3\n4\n", "must hold 3 lines.*there are 4"),
        ("array real skew-symmetric\n1 1\n5\n", "must hold 0 lines of numbers; there are 1"),
    ],
)
def test_as_many_values_as_the_sizes_say(tmp_path, layout, told):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix " + layout)
    with pytest.raises(DataError, match=told):
        open_table(tmp_path / "a.mtx")
