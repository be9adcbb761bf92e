"""Options of text tables, and comments, agree with what pandas reads."""

import gzip

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats import text
from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError, DataWarning, ParameterError

pytest.importorskip("pyarrow")


def _whole(path, **options):
    table = open_table(path, **options)
    return table.X, list(table.feature_names)


def _in_blocks(path, **options):
    table = open_blocks(path, **options)
    return np.concatenate([block.values for block in table.blocks()]), list(table.feature_names)


BOTH_WAYS = pytest.mark.parametrize("read", [_whole, _in_blocks])


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(30, 4)), 6)
    X[3, 2] = np.nan
    return pd.DataFrame(X, columns=["größe", "b c", "d", "e"])


def _assert_is(found, frame):
    values, names = found
    assert names == list(frame.columns)
    np.testing.assert_array_equal(values, frame.to_numpy())


@BOTH_WAYS
@pytest.mark.parametrize("quoting", [0, 1])
@pytest.mark.parametrize(
    ("sep", "asked"), [("|", "|"), ("\t", "tab"), ("\t", "\\t"), (" ", "space"), (":", ":")]
)
def test_any_delimiter_can_be_given(tmp_path, frame, read, sep, asked, quoting):
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False, sep=sep, quoting=quoting)
    _assert_is(read(path, sep=asked), frame)


@BOTH_WAYS
@pytest.mark.parametrize("sep", [";", "\t", " ", "|"])
def test_a_decimal_comma_can_be_given(tmp_path, frame, read, sep):
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False, sep=sep, decimal=",", na_rep="NA")
    asked = {"sep": sep} if sep in " |" else {}
    _assert_is(read(path, decimal=",", **asked), frame)


def test_a_decimal_mark_that_is_given_settles_what_may_be_thousands(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n1,234\t1\n2,5\t3\n")
    np.testing.assert_array_equal(open_table(path, decimal=",").X, [[1.234, 1], [2.5, 3]])
    with pytest.raises(DataError, match=r"not both; column 'a' holds '1,234'"):
        open_table(path, decimal=".")
    path.write_text("a\tb\n1.5\t1\n")
    with pytest.raises(DataError, match=r"not both; column 'a' holds '1\.5'"):
        open_table(path, decimal=",")


def test_labels_follow_the_decimal_mark_that_is_given(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("y\tb\n1,5\t1\n2,5\t3\n")
    assert open_table(path, labels="y", decimal=".").labels.tolist() == ["1,5", "2,5"]
    assert open_table(path, labels="y", decimal=",").labels.tolist() == [1.5, 2.5]


@BOTH_WAYS
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["#", "!", "//"])
def test_comments_anywhere_are_left_out(tmp_path, frame, read, mark, end):
    lines = frame.to_csv(index=False, lineterminator="\n").splitlines()
    with_comments = [f"{mark} made, by", mark, *lines[:9], f'{mark}"5,6', *lines[9:], f"{mark} end"]
    path = tmp_path / "a.csv"
    path.write_text(end.join(with_comments), encoding="utf-8-sig", newline="")
    _assert_is(read(path, comment=mark), frame)


def test_lines_keep_their_numbers_beside_comments(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# one\na,b\n1,2\n# two\n3\n")
    with pytest.raises(DataError, match="in line 5 there are 1"):
        open_table(path, comment="#")


@BOTH_WAYS
def test_more_comments_than_are_read_at_once_are_left_out(tmp_path, monkeypatch, read):
    monkeypatch.setattr(text, "BLOCK_BYTES", 50)
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\nx,1,2\n" + "#\n" * 500 + "y,3,4\n" + "# end\n" * 50)
    values, _ = read(path, comment="#", identifier="a")
    np.testing.assert_array_equal(values, [[1, 2], [3, 4]])


@BOTH_WAYS
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8", "cp037"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_any_encoding_can_be_given(tmp_path, frame, read, encoding, suffix):
    text = frame.to_csv(index=False, lineterminator="\r\n").encode(encoding)
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(gzip.compress(text) if suffix else text)
    _assert_is(read(path, encoding=encoding), frame)


def test_text_in_another_encoding_is_refused_with_the_option_that_reads_it(tmp_path, frame):
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False, encoding="latin-1")
    with pytest.raises(DataError, match=r'encoding="latin-1" \(--encoding latin-1\)'):
        open_table(path)
    with pytest.raises(DataError, match=r"is not in the encoding ascii: .* 0xf6"):
        open_table(path, encoding="ascii")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"encoding": "latn-1"}, r"that Python knows.*got 'latn-1'\. Did you mean 'latin-1'"),
        ({"encoding": "base64"}, "that Python knows"),
        ({"encoding": "a\0b"}, "that Python knows"),
        ({"encoding": "ä"}, "that Python knows"),
        ({"sep": ""}, "one ASCII character"),
        ({"sep": "::"}, "one ASCII character"),
        ({"sep": '"'}, "one ASCII character"),
        ({"sep": "\n"}, "one ASCII character"),
        ({"sep": "§"}, "one ASCII character"),
        ({"sep": "a"}, "one ASCII character"),
        ({"decimal": ";"}, "decimal= is '.' or ','; got ';'"),
        ({"sep": ",", "decimal": ","}, "must differ"),
        ({"comment": ""}, "comment= is what lines begin with"),
        ({"comment": "a\nb"}, "comment= is what lines begin with"),
    ],
)
def test_an_option_that_cannot_be_is_refused(tmp_path, options, told):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match=told):
        open_table(path, **options)


@BOTH_WAYS
@pytest.mark.parametrize(
    "above",
    [
        "# created by a program\n",
        "#created by a program\n",
        "# created by a program, version 2, in 2020\n#\n# second\n\n",
        "## a\n## b, c, d, e\n",
        '# one, "two\n',
    ],
)
@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_comments_above_the_header_need_no_option(tmp_path, frame, read, above, sep):
    path = tmp_path / "a.csv"
    path.write_text(above + frame.to_csv(index=False, sep=sep), encoding="utf-8")
    with pytest.warns(DataWarning, match=r"begins? with '#', (is|are) skipped as comments"):
        _assert_is(read(path), frame)
    path.write_text(path.read_text(encoding="utf-8") + "1\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"in line {above.count(chr(10)) + 32} there are 1"):
        read(path, comment="#")


@BOTH_WAYS
@pytest.mark.parametrize("above", ["", "##fileformat=1\n##source=x\n"])
@pytest.mark.parametrize("sep", [",", "\t"])
@pytest.mark.parametrize("first", ["#gene", "#CHROM", "# of cells"])
def test_a_header_that_begins_with_a_hash_is_the_header(tmp_path, read, above, sep, first):
    frame = pd.DataFrame({first: ["x", "y"], "s1": [1.5, 2], "s2": [3, 4]})
    path = tmp_path / "a.csv"
    path.write_text(above + frame.to_csv(index=False, sep=sep))
    if above:
        with pytest.warns(DataWarning, match="first 2 lines"):
            values, names = read(path, drop=[first])
    else:
        values, names = read(path, drop=[first])
    assert names == ["s1", "s2"]
    np.testing.assert_array_equal(values, frame[names])


@BOTH_WAYS
def test_row_names_below_a_header_that_begins_with_a_hash(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text("#s1,s2\nx,1,2\ny,3,4\n")
    values, names = read(path)
    assert names == ["#s1", "s2"]
    np.testing.assert_array_equal(values, [[1, 2], [3, 4]])


@BOTH_WAYS
@pytest.mark.parametrize("text", ["#x,a\n#1,2\n#3,4\n", "#x,a\n#1,2\nz,4\n", "#x,a\nz,2\n#3,4\n"])
def test_rows_that_begin_with_a_hash_below_such_a_header_are_no_comments(tmp_path, read, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    values, names = read(path, identifier="#x")
    assert names == ["a"]
    np.testing.assert_array_equal(values, [[2], [4]])


@BOTH_WAYS
def test_comments_above_numbers_alone_are_skipped(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text("#made by someone\n1.5,2,3\n4,5,6\n")
    with pytest.warns(DataWarning, match="there are no column names"):
        np.testing.assert_array_equal(read(path)[0], [[1.5, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("text", ["#\n#\n", "#a,b\n", "# a\n\n", "#", "#a\n#b\n#c\n"])
def test_a_file_of_comments_alone_is_refused_or_read_as_a_column_of_text(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.csv"):
        open_table(path)
