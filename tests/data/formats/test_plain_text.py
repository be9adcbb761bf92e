"""Text of unknown delimiter is read as R, NumPy and pandas wrote it."""

import gzip

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats.plain_text import find_delimiter
from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError, DataWarning

pytest.importorskip("pyarrow")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(25, 3))


@pytest.mark.parametrize("sep", ["\t", ",", ";", "|", " "])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("quoting", [0, 1, 2])
def test_what_pandas_writes_is_read_by_its_delimiter(tmp_path, sep, decimal, index, quoting):
    if sep == decimal:
        pytest.skip("no such table")
    frame = pd.DataFrame(X, columns=["a", "b c", "d"], index=[f"s {i}" for i in range(25)])
    frame.index.name = "name"
    path = tmp_path / "a.txt"
    frame.to_csv(path, sep=sep, decimal=decimal, index=index, quoting=quoting)
    table = open_table(path, identifier="name" if index else None)
    np.testing.assert_array_equal(table.X, X)
    assert list(table.feature_names) == list(frame.columns)
    if index:
        assert list(table.sample_names) == list(frame.index)
    assert table.name == "a"


def _r_table(names, rows, quote='"'):
    """As R's write.table writes by default: blanks, quoted text, no name for row names."""
    lines = [" ".join(f"{quote}{name}{quote}" for name in names)]
    lines += [f"{quote}{row}{quote} " + " ".join(map(repr, x)) for row, x in rows]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["a.txt", "a.dat", "a.data", "a", "a.R-table", "a.txt.gz"])
@pytest.mark.parametrize("quote", ['"', ""])
def test_what_r_writes_by_default(tmp_path, name, quote):
    rows = [(f"row{i}", x) for i, x in enumerate(X.tolist())]
    text = _r_table(["a", "b", "d"], rows, quote).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    for table in (open_table(path), open_table(path, sep="whitespace")):
        np.testing.assert_array_equal(table.X, X)
        assert list(table.feature_names) == ["a", "b", "d"]
        assert table.sample_names[3] == "row3"
    blocks = np.concatenate([block.values for block in open_blocks(path).blocks()])
    np.testing.assert_array_equal(blocks, X)


@pytest.mark.parametrize("delimiter", [" ", "\t", ",", ";", "|", "   "])
def test_what_numpy_writes(tmp_path, delimiter):
    path = tmp_path / "a.dat"
    np.savetxt(path, X, delimiter=delimiter)
    np.testing.assert_array_equal(
        open_table(path).X, np.loadtxt(path, delimiter=delimiter.strip(" ") or None)
    )


def test_the_names_that_numpy_writes_between_blanks_are_found(tmp_path):
    path = tmp_path / "a.txt"
    np.savetxt(path, X, header="made up\na b c")
    with pytest.warns(DataWarning, match=r"as numpy\.savetxt writes them"):
        table = open_table(path)
    assert list(table.feature_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(table.X, X)


def test_a_fixed_width_table_is_read(tmp_path):
    frame = pd.DataFrame(X.round(4), columns=["a", "b", "c"])
    path = tmp_path / "a.txt"
    path.write_text(frame.to_string())
    np.testing.assert_array_equal(open_table(path).X, frame)


def test_a_single_column_of_numbers_is_a_table(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x\n1.5\n2\n")
    table = open_table(path)
    np.testing.assert_array_equal(table.X, [[1.5], [2]])
    assert list(table.feature_names) == ["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name\ta\nsample 1\t2\nsample 2\t3\n", "\t"),
        ("go;a,b\nx;1,5\ny;2,5\n", ";"),
        ("1,5 2,5\n3,5 4,5\n", "whitespace"),
        ("1, 2, 3\n4, 5, 6\n", ","),
        ("# a, b\n# c;d\nx;y\n1;2\n", ";"),
        ('"a,b"|"c"\n1|2\n', "|"),
        ("a,b\n" + "1,2\n" * 20 + "1\n", ","),
        ("a b\nr1 1 2\nr2 3 4\n", "whitespace"),
    ],
)
def test_delimiters_are_told_apart(text, expected):
    assert find_delimiter(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "word\n", "Some words\nabout nothing in particular.\n", "a,b\n", "x,y\nz,w\n"],
)
def test_what_is_no_table_is_refused_with_what_was_tried(tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.txt: It holds no(thing| table): ") as refusal:
        open_table(path)
    assert ("tabs, semicolons, '|', commas nor blanks" in str(refusal.value)) == bool(text.strip())


def test_a_line_that_does_not_fit_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a|b\n" + "1|2\n" * 30 + "1|2|3\n")
    with pytest.raises(DataError, match="in line 32 there are 3"):
        open_table(path)


def test_a_declared_delimiter_counts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("sep=|\na,x|b,y\n1|2\n")
    assert list(open_table(path).feature_names) == ["a,x", "b,y"]


def test_lines_longer_than_what_is_looked_at_are_told(tmp_path):
    path = tmp_path / "wide.txt"
    wide = np.arange(3 * 60_000.0).reshape(3, -1) + 0.5
    np.savetxt(path, wide, fmt="%.1f")
    np.testing.assert_array_equal(open_table(path).X, wide)
