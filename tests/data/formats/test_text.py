"""Text tables as pandas, R, spreadsheets and pyarrow write them."""

import bz2
import gzip
import lzma

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats import text, text_cells
from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError, DataWarning

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * 10.0 ** rng.integers(-200, 200, size=(40, 6))
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(6)])
    frame.insert(0, "sample", [f"s{i}" for i in range(40)])
    frame.insert(3, "kind", rng.choice(["red", "green", "blüe"], size=40))
    return frame


def _assert_is(table, frame):
    features = [name for name in frame.columns if name.startswith("g")]
    assert list(table.feature_names) == features
    np.testing.assert_array_equal(table.X, frame[features].to_numpy())
    assert list(table.labels) == list(frame["kind"])
    assert list(table.sample_names) == list(frame["sample"])


ROLES = {"labels": "kind", "identifier": "sample"}


@pytest.mark.parametrize("quoting", [0, 1, 2])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_pandas_writes_is_read_back_exactly(frame, tmp_path, quoting, line_end, delimiter):
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False, quoting=quoting, lineterminator=line_end, sep=delimiter)
    _assert_is(open_table(path, **ROLES), frame)


@pytest.mark.parametrize("suffix", [".tsv", ".tab", ".TSV"])
def test_tab_separated_tables(frame, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    frame.to_csv(path, index=False, sep="\t")
    _assert_is(open_table(path, **ROLES), frame)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda text: pa.Codec("zstd").compress(text, asbytes=True)),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_compressed_tables(frame, tmp_path, suffix, pack, kind):
    text = frame.to_csv(index=False, sep="," if kind == "csv" else "\t").encode()
    path = tmp_path / f"a.{kind}{suffix}"
    path.write_bytes(pack(text))
    table = open_table(path, **ROLES)
    _assert_is(table, frame)
    assert table.name == "a"


def test_what_pyarrow_writes_is_read_back_exactly(frame, tmp_path):
    path = tmp_path / "a.csv"
    pa_csv.write_csv(pa.Table.from_pandas(frame), path)
    _assert_is(open_table(path, **ROLES), frame)


def test_blocks_join_without_a_seam(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 300)
    for quoting in (0, 1):
        path = tmp_path / f"{quoting}.csv"
        frame.to_csv(path, index=False, quoting=quoting)
        _assert_is(open_table(path, **ROLES), frame)


def test_quotation_marks_that_begin_late_are_obeyed(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 300)
    frame.loc[35, "kind"] = 'a "b", and\nc'
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    _assert_is(open_table(path, **ROLES), frame)


def test_the_row_names_of_pandas_name_the_samples(frame, tmp_path):
    path = tmp_path / "a.csv"
    frame.set_index("sample").rename_axis(None).to_csv(path)
    _assert_is(open_table(path, labels="kind"), frame)
    dropped = open_table(path, labels="kind", drop=["column 1"])
    assert dropped.sample_names is None


def test_the_row_names_of_r_name_the_samples(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"a"\t"b"\n"r1"\t1\t2.5\n"r2"\t3\t4.5\n')
    table = open_table(path)
    assert list(table.sample_names) == ["r1", "r2"]
    assert list(table.feature_names) == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4.5]])


def test_a_table_of_numbers_alone_gets_numbered_columns(tmp_path):
    X = np.random.default_rng(0).normal(size=(5, 3))
    np.savetxt(tmp_path / "a.csv", X, delimiter=",", fmt="%.17g")
    table = open_table(tmp_path / "a.csv")
    assert list(table.feature_names) == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(table.X, X)


def test_columns_without_a_name_are_numbered_from_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,,c, \n1,2,3,4\n")
    assert list(open_table(path).feature_names) == ["a", "column 2", "c", "column 4"]


def test_decimal_commas_are_understood_between_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1,5;2\n-3,25;4e-3\n")
    np.testing.assert_array_equal(open_table(path).X, [[1.5, 2], [-3.25, 0.004]])


def test_missing_cells_truth_values_and_spaces(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c,d\n1,True, 1.5 ,\n,FALSE,NA,7\nnan,true,  ,inf\n3,false,-2,-Infinity\n")
    expected = [
        [1, 1, 1.5, np.nan],
        [np.nan, 0, np.nan, 7],
        [np.nan, 1, np.nan, np.inf],
        [3, 0, -2, -np.inf],
    ]
    np.testing.assert_array_equal(open_table(path).X, expected)


@pytest.mark.parametrize("quote", ["", '"'])
def test_blank_lines_are_no_rows(tmp_path, quote):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n\n{quote}1{quote},2\n\n\n3,4\n\n")
    np.testing.assert_array_equal(open_table(path).X, [[1, 2], [3, 4]])


def test_a_byte_order_mark_and_a_missing_last_line_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("é,b\n1,2\n3,4".encode("utf-8-sig"))
    table = open_table(path)
    assert list(table.feature_names) == ["é", "b"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_a_single_column_is_a_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2.5\nnan\n")
    np.testing.assert_array_equal(open_table(path).X, [[1], [2.5], [np.nan]])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["1.0", "2.0", "1.0"], [1, 2, 1]),
        (["1.5", "2", "1.5"], [1.5, 2, 1.5]),
        (["a", "1", "b"], ["a", "1", "b"]),
    ],
)
def test_labels_written_as_numbers_become_numbers(tmp_path, cells, expected):
    path = tmp_path / "a.csv"
    path.write_text("y,a\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    assert open_table(path, labels="y").labels.tolist() == expected


def test_a_missing_label_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,a\nu,1\n,2\nNA,3\n")
    with pytest.raises(DataError, match="2 of 'y' are missing"):
        open_table(path, labels="y")


def test_a_ragged_line_is_found_even_if_the_next_makes_up_for_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n1,2,3\n4,5,6\n7,8\n9,10,11,12\n")
    with pytest.raises(DataError, match="line 4 there are 2"):
        open_table(path)


def test_numbers_agree_with_python_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(1)
    words = [repr(x) for x in rng.normal(size=200) * 10.0 ** rng.integers(-320, 308, size=200)]
    words += ["0.1", "1e-320", "4.9e-324", "1.7976931348623157e308", "-0.0", "123456789012345678.0"]
    path = tmp_path / "a.csv"
    words = [word.removeprefix("np.float64(").removesuffix(")") for word in words]
    path.write_text("a\n" + "\n".join(words) + "\n")
    expected = np.array([[float(word)] for word in words])
    np.testing.assert_array_equal(open_table(path).X, expected)


def test_a_wide_table_is_read_like_a_narrow_one(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, size=(3, 20_000)).astype(float)
    names = [f"gene{j}" for j in range(20_000)]
    path = tmp_path / "wide.csv"
    pd.DataFrame(X, columns=names).assign(kind=["a", "b", "a"]).to_csv(path, index=False)
    table = open_table(path, labels="kind", drop=names[5:10])
    np.testing.assert_array_equal(table.X, np.delete(X, np.s_[5:10], axis=1))
    assert list(table.labels) == ["a", "b", "a"]


def _read_in_blocks(path, **roles):
    table = open_blocks(path, **roles)
    return np.vstack([block.values for block in table.blocks()])


def _read_whole(path, **roles):
    return open_table(path, **roles).X


BOTH_WAYS = pytest.mark.parametrize("read", [_read_whole, _read_in_blocks])


def _written(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
}


@BOTH_WAYS
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('t,a\nu,1\n"v,2\nw,3\nx,4\n', 3),
        ('t,a\nu,1\n"v,2\nw,3\n"x",4\n', 3),
        ('t,a\n"u\nu",1\n\n"v,2\nw,3\n', 5),
        ('"t,a\nu,1\nv,2\n', 1),
        ('t,a\n"u\n","v\n', 3),
        ('t,a\nu,1\n"v,2\n' + "w,3\n" * 40_000, 3),
    ],
)
def test_an_unclosed_quote_does_not_swallow_the_rows_after_it(tmp_path, read, content, line):
    with pytest.raises(DataError, match=f"opened in line {line} is not"):
        read(_written(tmp_path, content), drop=["t"])


@BOTH_WAYS
def test_a_quotation_mark_inside_an_unquoted_cell_is_text(tmp_path, read):
    path = _written(tmp_path, 't,a\n5" disk,1\n"3"" disk",2\n')
    np.testing.assert_array_equal(read(path, drop=["t"]), [[1], [2]])


def test_a_space_may_stand_before_a_quoted_cell(tmp_path):
    table = open_table(_written(tmp_path, '"a", "b, c"\n1, "2"\n'))
    assert list(table.feature_names) == ["a", "b, c"]
    np.testing.assert_array_equal(table.X, [[1, 2]])


@pytest.mark.parametrize(
    "pair",
    [
        ("1_0", "10"),
        ("１２", "12"),
        ("1e5_0", "1e50"),
        ("18446744073709551616", "18446744073709551617"),
        ("9007199254740992.0", "9007199254740993.0"),
        ("0x10", "16"),
        ("inf", "Infinity"),
        ("1e400", "1e401"),
    ],
)
def test_labels_that_differ_do_not_become_one_number(tmp_path, pair):
    path = _written(tmp_path, f"y,a\n{pair[0]},1\n{pair[1]},2\n")
    assert open_table(path, labels="y").labels.tolist() == list(pair)
    assert open_table(path, identifier="y").sample_names.tolist() == list(pair)


def test_large_labels_are_exact_integers(tmp_path):
    path = _written(tmp_path, "y,a\n9007199254740993,1\n9007199254740992,2\n")
    assert open_table(path, labels="y").labels.tolist() == [9007199254740993, 9007199254740992]


@BOTH_WAYS
@pytest.mark.parametrize("word", ["1_0", "１２", "0x10", "1e5_0", "1d3", "--1", ".", "1 2"])
def test_what_is_no_plain_decimal_number_is_text(tmp_path, read, word):
    path = _written(tmp_path, f"a\tb\n{word}\t1\n2\t3\n", "a.tsv")
    with pytest.raises(DataError, match="must hold numbers; these do not: 'a'"):
        read(path)


@BOTH_WAYS
@pytest.mark.parametrize("beside", ["0", "true"])
def test_every_spelling_of_a_number_is_read_alike_beside_other_words(tmp_path, read, beside):
    words = ["+1", "1.", ".5", " 12 ", "1E+05", "nan", "NA", "-1.#IND", "<NA>", "inf", "-Infinity"]
    if beside == "0":
        words.remove("<NA>")
    expected = [1, 1, 0.5, 12, 1e5, *[np.nan] * (len(words) - 7), np.inf, -np.inf]
    path = _written(tmp_path, "a,b\n" + "".join(f"{word},{beside}\n" for word in words))
    np.testing.assert_array_equal(read(path)[:, 0], expected)


@BOTH_WAYS
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.filterwarnings("error")
def test_the_numbers_that_pandas_gives_columns_are_names(tmp_path, read, index):
    X = np.random.default_rng(0).normal(size=(4, 3))
    pd.DataFrame(X).to_csv(tmp_path / "a.csv", index=index)
    np.testing.assert_array_equal(read(tmp_path / "a.csv"), X)
    assert list(open_table(tmp_path / "a.csv").feature_names) == ["0", "1", "2"]


@BOTH_WAYS
@pytest.mark.parametrize(
    ("content", "n_rows", "told"),
    [
        ("0,1,2\n3,4,5\n", 1, "read as column names"),
        (",5,7\n1,4,5\n", 1, "read as column names"),
        ("400,402,404,406,408\n3,1,4,1,5\n", 2, "read as a sample"),
    ],
)
def test_a_first_line_that_may_be_names_or_a_sample_is_told(tmp_path, read, content, n_rows, told):
    path = _written(tmp_path, content)
    with pytest.warns(DataWarning, match=told):
        assert len(read(path)) == n_rows


@BOTH_WAYS
@pytest.mark.filterwarnings("error")
def test_header_says_what_the_first_line_is(tmp_path, read):
    path = _written(tmp_path, "0,1,2\n3,4,5\n")
    np.testing.assert_array_equal(read(path, header=True), [[3, 4, 5]])
    np.testing.assert_array_equal(read(path, header=False), [[0, 1, 2], [3, 4, 5]])
    assert list(open_table(path, header=False).feature_names) == ["x0", "x1", "x2"]
    iris = _written(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n")
    np.testing.assert_array_equal(read(iris, header=False, drop=["x2"]), [[5.1, 3.5], [4.9, 3.0]])


def test_a_sample_with_text_above_others_like_it_is_told(tmp_path):
    path = _written(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n")
    with pytest.warns(DataWarning, match="header=False"):
        open_table(path, labels="setosa")


@BOTH_WAYS
@pytest.mark.filterwarnings("error")
def test_a_first_sample_with_a_missing_value_is_not_a_header(tmp_path, read):
    path = _written(tmp_path, "1.5,,3\n2,5,4\n7,NA,1\n")
    np.testing.assert_array_equal(read(path), [[1.5, np.nan, 3], [2, 5, 4], [7, np.nan, 1]])


@pytest.mark.filterwarnings("error")
def test_row_names_after_a_blank_or_a_broken_line_are_found(tmp_path):
    table = open_table(_written(tmp_path, '"a","b"\n\n"r\n1",1,2\n"r2",3,4\n'))
    assert list(table.sample_names) == ["r\n1", "r2"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


@BOTH_WAYS
@pytest.mark.parametrize("head", ["a,b\n", "a,b,\n"])
def test_a_delimiter_at_the_end_of_every_line_makes_no_column(tmp_path, read, head):
    path = _written(tmp_path, head + "1,2,\n3,4,\n")
    with pytest.warns(DataWarning, match="empty column behind it is left out"):
        np.testing.assert_array_equal(read(path), [[1, 2], [3, 4]])
    with pytest.warns(DataWarning):
        assert list(open_table(path).feature_names) == ["a", "b"]


@BOTH_WAYS
def test_a_delimiter_at_the_end_of_the_header_alone_makes_no_column(tmp_path, read):
    np.testing.assert_array_equal(read(_written(tmp_path, "a,b,\n1,2\n3,4\n")), [[1, 2], [3, 4]])


@BOTH_WAYS
def test_an_empty_last_cell_of_some_lines_does_not_make_row_names_of_values(tmp_path, read):
    with pytest.raises(DataError, match=r"columns \(2\); in line 2 there are 3"):
        read(_written(tmp_path, "a,b\n1,2,\n3,4,5\n"))
    values = read(_written(tmp_path, "a,b,\n1,2,\n3,4,5\n"))
    np.testing.assert_array_equal(values, [[1, 2, np.nan], [3, 4, 5]])


@BOTH_WAYS
@pytest.mark.parametrize("n_rows", [1, 500])
def test_a_last_line_that_was_cut_off_is_told(tmp_path, read, n_rows):
    told = rf"columns \(3\); the last one, line {n_rows + 2}, has 2 .* cut off"
    with pytest.raises(DataError, match=told):
        read(_written(tmp_path, "a,b,c\n" + "1,2,3\n" * n_rows + "4,5"))


@BOTH_WAYS
def test_a_decimal_comma_in_a_single_column_is_not_taken_for_row_names(tmp_path, read):
    with pytest.raises(DataError, match="decimal comma, or a row name"):
        read(_written(tmp_path, "a\n1,5\n2,5\n"))


@BOTH_WAYS
@pytest.mark.parametrize(
    ("content", "column", "word"),
    [
        ("a;b\n1.234;1,5\n", "a", "1.234"),
        ("a;b\n2;1,5\n" + "3;4\n" * 200 + "1.234;2\n", "a", "1.234"),
        ("a;b\n2;1.5\n" + "3;4\n" * 200 + "1,25;2\n", "a", "1,25"),
        ("a;b\n1.000,5;2\n", "a", "1.000,5"),
        ('a;b\n"1.234";"1,5"\n', "a", "1.234"),
    ],
)
def test_decimal_commas_and_points_do_not_mix(tmp_path, read, content, column, word, monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 50)
    with pytest.raises(DataError, match=f"not both; column '{column}' holds '{word}'"):
        read(_written(tmp_path, content))


@BOTH_WAYS
@pytest.mark.parametrize("header", ["a;b\n", '"a,c";b\n', ""])
def test_decimal_commas_do_not_hide_the_semicolons(tmp_path, read, header):
    path = _written(tmp_path, header + "1,5;2,5\n3;,5\n")
    np.testing.assert_array_equal(read(path), [[1.5, 2.5], [3, 0.5]])


@BOTH_WAYS
@pytest.mark.parametrize(
    "word", ["9007199254740993", "-9007199254740993", "1" * 400, '"1234567890123456789"']
)
def test_integers_that_float64_would_round_are_refused(tmp_path, read, word):
    path = _written(tmp_path, f"a,b\n1,2\n1,{word}\n")
    with pytest.raises(DataError, match=r"at most 2\*\*53 .* larger ones in 'b'.*--drop"):
        read(path)
    np.testing.assert_array_equal(read(path, drop=["b"]), [[1], [1]])
    assert open_table(path, identifier="b").sample_names[1] == word.strip('"')


@BOTH_WAYS
def test_numbers_that_are_exact_or_written_as_floats_may_be_large(tmp_path, read):
    path = _written(tmp_path, "a\n9007199254740992\n9007199254740993.0\n1e300\n")
    np.testing.assert_array_equal(read(path), [[2.0**53], [2.0**53], [1e300]])


@pytest.fixture
def low_limits(monkeypatch):
    """The limits on lines, so low that a small file goes past them."""
    monkeypatch.setattr(text_cells, "_SHORTEST_LIMIT", 2**10)
    monkeypatch.setattr(text_cells, "LONGEST_LINE", 2**16)
    monkeypatch.setattr(text_cells, "LONGEST_CELL", 2**8)
    monkeypatch.setattr(text, "LONGEST_CELL", 2**8)
    monkeypatch.setattr(text_cells, "_PIECE", 2**10)
    monkeypatch.setattr(text, "BLOCK_BYTES", 2**10)


@BOTH_WAYS
@pytest.mark.usefixtures("low_limits")
@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a" * 2**17, "must be shorter than 1.0 kB"),
        (b"a," * 2**17, "must be shorter than 65.5 kB"),
        (b"a,b\n" + b"1" * 2**17, "must be shorter than 1.0 kB"),
        (b"a,b\n1,2\n" + b"1" * 2**17, "must be shorter than 1.0 kB"),
        (b"a,b\n1,2\n" + b"1," * 2**17, r"columns \(2\); in line 3"),
        (b'a,b\n1,2\n"1",' + b"1," * 2**17, r"columns \(2\); in line 3"),
        (b'a,b\n1,2\n"1' + b'\n","' * 2**17, "must be shorter than 1.0 kB"),
    ],
)
def test_a_line_that_expands_beyond_any_table_is_not_awaited(tmp_path, read, suffix, content, told):
    path = _written(tmp_path, PACKERS[suffix](content), f"a.csv{suffix}")
    with pytest.raises(DataError, match=told):
        read(path)


@BOTH_WAYS
def test_a_header_of_too_many_columns_is_refused_before_it_is_split(tmp_path, read, monkeypatch):
    monkeypatch.setattr("keepers.data.limits.MOST_COLUMNS", 1000)
    monkeypatch.setattr(text, "read_records", None)
    path = _written(tmp_path, gzip.compress(b"a," * 2**17), "a.csv.gz")
    with pytest.raises(DataError, match="At most 1000 columns are read"):
        read(path)


def test_quoted_text_that_is_left_out_does_not_gather(tmp_path, monkeypatch):
    monkeypatch.setattr(text_cells, "_CHARACTERS_PER_BLOCK", 10)
    path = _written(tmp_path, "t,a\n" + f'"{"x" * 500}",7\n' * 20)
    np.testing.assert_array_equal(_read_in_blocks(path, drop=["t"]), [[7]] * 20)


@BOTH_WAYS
def test_lines_may_end_in_a_carriage_return_alone(tmp_path, read):
    frame = pd.DataFrame({"a": [1.5, 3], "two\nlines": [2, 4]})
    path = _written(tmp_path, frame.to_csv(index=False, lineterminator="\r", quoting=1))
    np.testing.assert_array_equal(read(path), frame)


@BOTH_WAYS
def test_a_carriage_return_inside_a_line_is_no_line_end(tmp_path, read):
    with pytest.raises(DataError, match="must hold numbers; these do not: 'a'"):
        read(_written(tmp_path, "a,b\n1,2\n3\r4,5\n"))


@BOTH_WAYS
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\n1,\x002\n", "must hold numbers; these do not: 'b'"),
        (b"a,b\n1,2\n\x00\x00,3\n", "must hold numbers; these do not: 'a'"),
        (b"a,b\n1,\xff\n", "must be UTF-8"),
        (b"\xe9,b\n1,2\n", "must be UTF-8.* 0xe9 .*Latin-1"),
        (b"a,b\n1,2\n3,\xe9\n", "must hold numbers; these do not: 'b'"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "truncated data"),
    ],
)
def test_bytes_that_are_no_text_are_refused(tmp_path, read, content, told):
    with pytest.raises(DataError, match=told):
        read(_written(tmp_path, content))


@BOTH_WAYS
@pytest.mark.parametrize("suffix", PACKERS)
def test_a_damaged_file_is_read_or_refused(tmp_path, read, suffix):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(20, 3)), 3)
    text = pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(index=False, quoting=1).encode()
    packed = PACKERS[suffix](text)
    for _ in range(40):
        damaged = bytearray(packed)
        damaged[int(rng.integers(len(packed)))] ^= 1 << int(rng.integers(8))
        path = _written(tmp_path, bytes(damaged[: int(rng.integers(1, 2 * len(packed)))]))
        path = path.rename(tmp_path / f"a.csv{suffix}")
        try:
            assert read(path).shape[1] in (1, 2, 3)
        except DataError as refusal:
            assert str(path) in str(refusal)  # noqa: PT017


@BOTH_WAYS
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path, read, encoding, line_end, suffix):
    frame = pd.DataFrame({"größe": [1.5, 3], "基因": [2, 4]})
    text = frame.to_csv(index=False, lineterminator=line_end)
    path = _written(tmp_path, PACKERS[suffix](text.encode(encoding)), f"a.csv{suffix}")
    np.testing.assert_array_equal(read(path), frame)
    assert list(open_table(path).feature_names) == list(frame.columns)


@BOTH_WAYS
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_the_delimiter_that_excel_declares_is_not_a_column_name(tmp_path, read, name, sep):
    text = f"sep={sep}\r\na{sep}b\r\n1.5{sep}2\r\n"
    path = _written(tmp_path, b"\xef\xbb\xbf" + text.encode(), name)
    np.testing.assert_array_equal(read(path), [[1.5, 2]])
    assert list(open_table(path).feature_names) == ["a", "b"]


def test_lines_are_counted_with_the_declaration_of_the_delimiter(tmp_path):
    with pytest.raises(DataError, match="in line 4 there are 1"):
        open_table(_written(tmp_path, "sep=;\na;b\n1;2\n3\n"))


@BOTH_WAYS
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_decimal_commas_are_understood_between_tabs(tmp_path, read, name):
    frame = pd.DataFrame({"a": [1234.5, -1.234], "b": [2.0, np.nan]})
    path = tmp_path / name
    frame.to_csv(path, sep="\t", decimal=",", index=False)
    np.testing.assert_array_equal(read(path), frame)


@BOTH_WAYS
def test_a_comma_between_tabs_that_may_separate_thousands_is_refused(tmp_path, read):
    with pytest.raises(DataError, match=r"'1,234' may as well be 1234.*Write decimal points"):
        read(_written(tmp_path, "a\tb\n1,234\t1\n2\t3\n", "a.tsv"))
    with pytest.raises(DataError, match="a decimal comma or a decimal point, not both"):
        read(_written(tmp_path, "a\tb\n1,234.5\t1\n2\t3\n", "a.tsv"))


def test_labels_with_decimal_commas_are_numbers(tmp_path):
    table = open_table(_written(tmp_path, "y;a\n0,5;1,5\n-1,0;2\n"), labels="y")
    assert table.labels.tolist() == [0.5, -1.0]
    table = open_table(_written(tmp_path, "y;a\n1,234;1,5\n2,345;2\n"), labels="y")
    assert table.labels.tolist() == ["1,234", "2,345"]


@BOTH_WAYS
@pytest.mark.parametrize("above", ["", "made up\n"])
def test_the_header_that_numpy_savetxt_comments_out_holds_the_names(tmp_path, read, above):
    path, X = tmp_path / "a.csv", np.arange(6.0).reshape(3, 2) / 7
    np.savetxt(path, X, delimiter=",", header=above + "a,b")
    with pytest.warns(DataWarning, match="begin with '# ' are read as comments"):
        np.testing.assert_array_equal(read(path), X)
    with pytest.warns(DataWarning):
        assert list(open_table(path).feature_names) == ["a", "b"]


@BOTH_WAYS
def test_a_comment_of_numpy_savetxt_without_names_is_no_sample(tmp_path, read):
    path, X = tmp_path / "a.csv", np.arange(6.0).reshape(3, 2) / 7
    np.savetxt(path, X, delimiter=",", header="made up")
    with pytest.warns(DataWarning, match="there are no column names"):
        np.testing.assert_array_equal(read(path), X)


@pytest.mark.parametrize("first", ["#a", '"# of cells"'])
def test_a_name_that_begins_with_a_hash_is_kept(tmp_path, first):
    table = open_table(_written(tmp_path, f"{first},b\n1.5,2\n"))
    assert list(table.feature_names) == [first.strip('"'), "b"]


@BOTH_WAYS
@pytest.mark.parametrize("sep", [";", "\t"])
@pytest.mark.parametrize("quoting", [0, 1])
def test_a_comma_in_a_name_does_not_hide_another_delimiter(tmp_path, read, sep, quoting):
    columns = ["two\nlines", "a,b", "c"]
    frame = pd.DataFrame([[1.5, 2, 3], [4, 5, 6]], columns=columns)
    path = tmp_path / "a.csv"
    frame.to_csv(path, sep=sep, index=False, quoting=quoting)
    np.testing.assert_array_equal(read(path), frame)
    assert list(open_table(path).feature_names) == columns


@BOTH_WAYS
@pytest.mark.parametrize("header", ["t,a\n", 't,5" a\n', ""])
def test_lines_read_to_find_the_delimiter_are_not_lost(tmp_path, read, header):
    rows = ['5" disk,1\n', *("x,2\n" for _ in range(150)), 'y"z,3\n']
    path = _written(tmp_path, header + "".join(rows))
    drop = ["t"] if header else ["x0"]
    values = read(path, drop=drop, header=bool(header))
    np.testing.assert_array_equal(values, [[1], *[[2]] * 150, [3]])


@BOTH_WAYS
@pytest.mark.parametrize("text", ['a,b\n"1,2\n', '"a,b\n', 'a,5" b\n', 'a,b\n5" 1,2\n'])
def test_an_open_quotation_mark_in_a_short_file_is_refused_soon(tmp_path, read, text):
    with pytest.raises(DataError):
        read(_written(tmp_path, PACKERS[".gz"](text.encode()), "a.csv.gz"))
