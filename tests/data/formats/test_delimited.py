"""Text tables as pandas, R, spreadsheets and pyarrow write them."""

import bz2
import gzip
import lzma

import numpy as np
import pandas as pd
import pytest

from keepers.data import open_table
from keepers.data.formats import delimited
from keepers.exceptions import DataError

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
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 300)
    for quoting in (0, 1):
        path = tmp_path / f"{quoting}.csv"
        frame.to_csv(path, index=False, quoting=quoting)
        _assert_is(open_table(path, **ROLES), frame)


def test_quotation_marks_that_begin_late_are_obeyed(frame, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 300)
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
    words += ["0.1", "1e-320", "4.9e-324", "1.7976931348623157e308", "-0.0", "123456789012345678"]
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
