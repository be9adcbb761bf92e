"""The layout of text: options, notes where a guess is doubtful, files of R, NumPy and pandas."""

import gzip

import numpy as np
import pandas as pd
import pytest

from keepers.datasets import open_table
from keepers.exceptions import DataWarning, ParameterError
from tables.both_ways import both_ways, written

X = np.random.default_rng(1).normal(size=(25, 3)).round(6)
FRAME = pd.DataFrame(X, columns=["größe", "b c", "d"])


@both_ways
@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"sep": "|"}, FRAME.to_csv(index=False, sep="|")),
        ({"sep": "\\t"}, FRAME.to_csv(index=False, sep="\t", quoting=1)),
        ({"sep": "space"}, FRAME.to_csv(index=False, sep=" ")),
        ({"sep": ":"}, FRAME.to_csv(index=False, sep=":", quoting=1)),
        ({"decimal": ","}, FRAME.to_csv(index=False, sep="\t", decimal=",")),
        ({"comment": "//"}, "// a, b\n" + FRAME.to_csv(index=False) + '//"5,6\n'),
        *(
            ({"encoding": name}, FRAME.to_csv(index=False, lineterminator="\r\n").encode(name))
            for name in ("latin-1", "utf-16", "utf-16-le", "utf-8", "cp037")
        ),
    ],
    ids=lambda part: ", ".join(part.values()) if isinstance(part, dict) else "",
)
def test_what_an_option_says_is_not_guessed(tmp_path, options, content, read):
    table = read(written(tmp_path / "t.csv", content), **options)
    content = content if isinstance(content, bytes) else content.encode()
    packed = read(written(tmp_path / "t.csv.gz", gzip.compress(content)), **options)
    np.testing.assert_array_equal(packed.values, X)
    assert table.columns == list(FRAME.columns)
    np.testing.assert_array_equal(table.values, X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "latn-1"}, r"such as 'utf-8', .*got 'latn-1'"),
        *(({"encoding": name}, "an encoding of Python") for name in ("base64", "a\0b", "ä")),
        *(({"sep": mark}, "one ASCII character") for mark in ("", "::", '"', "\n", "§", "a")),
        ({"decimal": ";"}, "decimal= must be '.' or ','; got ';'"),
        ({"sep": ",", "decimal": ","}, "must differ"),
        *(({"comment": mark}, "comment=") for mark in ("", "a\nb")),
        ({"skip_rows": -1}, "skip_rows= must be an integer >= 0; got -1"),
        ({"header_rows": 0}, "header_rows= must be an integer >= 1; got 0"),
        ({"header": False, "header_rows": 2}, "exclude each other"),
    ],
)
def test_an_option_that_cannot_be_is_refused(tmp_path, options, message):
    with pytest.raises(ParameterError, match=message):
        open_table(written(tmp_path / "t.csv", "a,b\n1,2\n"), **options)


@both_ways
@pytest.mark.parametrize(
    ("text", "n_rows", "note"),
    [
        ("0,1,2\n3,4,5\n", 1, "read as column names.*--no-header"),
        ("400,402,404,406,408\n3,1,4,1,5\n", 1, "read as column names"),
        ("5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n", 1, "header=False"),
        ("# made up\na,b\n1,2\n", 1, r"Lines at the top .*\(1\) are skipped as comments"),
        ("# a,b\n1,2\n", 1, "names are read from the last line that begins with '#'"),
        ("a,b,\n1,2,\n3,4,\n", 2, "empty column after it is left out"),
        ("größe,b\n1,2\n".encode("latin-1"), 1, "not UTF-8 .* Windows-1252"),
    ],
)
def test_a_doubtful_guess_comes_with_a_note(tmp_path, text, n_rows, note, read):
    with pytest.warns(DataWarning, match=note):
        assert read(written(tmp_path / "t.csv", text)).n_samples == n_rows


@pytest.mark.parametrize(
    ("text", "header", "names", "n_rows"),
    [
        ("0,1,2\n3,4,5\n", True, ["0", "1", "2"], 1),
        ("0,1,2\n3,4,5\n", False, ["x0", "x1", "x2"], 2),
        (",0,1\n0,1.5,2\n1,3,4\n", None, ["0", "1"], 2),
        ("#gene,s1\nx,1\n", None, ["#gene", "s1"], 1),
        ("id,0.5,1.0,1.5\nx,1,2,1\n", None, ["id", "0.5", "1.0", "1.5"], 1),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_given_or_clear_comes_without_a_note(tmp_path, text, header, names, n_rows):
    table = open_table(written(tmp_path / "t.csv", text), header=header)
    assert (table.columns, table.n_samples) == (names, n_rows)


@both_ways
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Title\n\na,b,c\n1,2,3\n4,5,6\n", {}),
        ('"A title\nof two lines",,\n,,\na,b,c\n1,2,3\n4,5,6\n', {}),
        ("x,y,z\nq,q,q\na,b,c\n1,2,3\n4,5,6\n", {"skip_rows": 2}),
        ("a,b,c\nm,s,kg\n1,2,3\n4,5,6\n", {"header_rows": 2}),
        ("a,b,c\nm,s,kg\n1,2,3\n4,5,6\n", {}),
        ("# made up\nTitle\na,b,c\nm,s,kg\n1,2,3\n4,5,6\n", {}),
        ("a,b,c\n7,8,9\n1,2,3\n4,5,6\n", {"skip_rows": 0, "header_rows": 2}),
    ],
)
@pytest.mark.filterwarnings("ignore::keepers.exceptions.DataWarning")
def test_titles_and_lines_of_names(tmp_path, text, options, read):
    table = read(written(tmp_path / "t.csv", text), **options)
    assert table.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(table.values, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    "text",
    [
        "a,,,\n1,2,3,4\n5,6,7,8\n9,1,2,3\n",  # one name, but no title
        "a,b,c,d\n?,?,?,?\n1,2,3,4\n5,6,7,8\n",  # a sample without values
        "name,a,b,c\nx,1,2,3\ny,4,5,6\nz,7,8,9\n",
        "a,b,c\nunknown,missing,n.a.\n1,2,3\n4,5,6\n",
    ],
)
def test_what_is_not_a_title_or_a_line_of_names(tmp_path, text):
    path = written(tmp_path / "t.csv", text)
    assert open_table(path).n_samples == 3
    assert open_table(path).columns[0] in ("a", "name")


@pytest.mark.parametrize("encoding", ["mac_roman", "cp1252"])
@pytest.mark.parametrize("words", [["don’t", "can’t"], ["Köln", "Zürich"], ["cafés", "dépôt"]])
def test_the_encoding_of_letters(tmp_path, encoding, words):
    text = "town,x\n" + "".join(f"{word},{at}\n" for at, word in enumerate(words))
    with pytest.warns(DataWarning, match="not UTF-8"):
        table = open_table(written(tmp_path / "t.csv", text.encode(encoding)))
    assert list(table.frame["town"]) == words
    far_down = f"{'Rome' * 500},1\n" * 600  # more than is looked at first
    late = "town,x\n" + far_down + text.removeprefix("town,x\n")
    with pytest.warns(DataWarning, match="not UTF-8"):
        table = open_table(written(tmp_path / "late.csv", late.encode(encoding)))
    assert list(table.frame["town"][-2:]) == words
