"""Some features of a table, numbers or not, are written so that others read the same."""

import datetime
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepers.data.columns import GAP_WORDS, OtherColumn
from keepers.data.table_files import write_selected
from keepers.datasets import LabelledTable, open_table, write_features, write_table
from keepers.exceptions import DataError, ParameterError

pa = pytest.importorskip("pyarrow")


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


TABLE = LabelledTable(
    np.array([[1.0, 1.0, 0.5], [12_345_678_901.0, 0.0, np.nan]]),
    objects("count", "flag", "height"),
    objects("s1", "s2"),
    np.array([7, 8]),
    others=(
        OtherColumn("town", "text", objects("Oslo", None), 1),
        OtherColumn("day", "date", np.array(["2024-01-02", "NaT"], dtype="datetime64[s]"), 3),
        OtherColumn(
            "when", "date", np.array(["2024-01-02T03:04:05.5", "NaT"], "datetime64[ms]"), 5
        ),
    ),
    types={
        "count": pa.int64(),
        "flag": pa.bool_(),
        "day": pa.date32(),
        "when": pa.timestamp("ms", "Europe/Oslo"),
    },
)
NAMES = ["count", "town", "flag", "day", "height", "when"]


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ","), ("tsv", "\t")])
def test_cells_of_text_files(tmp_path, suffix, mark):
    path = write_features(tmp_path / f"a.{suffix}", TABLE, NAMES[::-1])
    assert path.read_text().replace(mark, ",").splitlines() == [
        "sample,label,count,town,flag,day,height,when",
        "s1,7,1,Oslo,true,2024-01-02,0.5,2024-01-02T03:04:05.500Z",
        "s2,8,12345678901,,false,,,",
    ]


def test_pandas_finds_the_kinds_in_a_text_file(tmp_path):
    frame = pd.read_csv(write_features(tmp_path / "a.csv", TABLE, NAMES), parse_dates=["when"])
    assert [frame[name].dtype.kind for name in ("count", "flag", "height")] == list("ibf")
    assert frame["when"][0] == pd.Timestamp("2024-01-02T03:04:05.5", tz="UTC")
    assert frame["when"].isna().tolist() == [False, True]


def test_cells_of_a_workbook_are_of_their_kind(tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    path = write_features(tmp_path / "a.xlsx", TABLE, NAMES)
    book = openpyxl.load_workbook(path)
    rows = list(book.active.iter_rows(values_only=True))
    assert rows[0] == ("sample", "label", *NAMES)
    day = datetime.datetime(2024, 1, 2)
    when = datetime.datetime(2024, 1, 2, 3, 4, 5, 500_000)
    assert rows[1] == ("s1", 7, 1, "Oslo", True, day, 0.5, when)
    assert rows[2] == ("s2", 8, 12_345_678_901, None, False, None, None, None)
    book.close()


def test_a_day_that_no_sheet_holds_is_text(tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    days = np.array(["1815-06-18", "2024-01-02"], dtype="datetime64[s]")
    table = LabelledTable(
        np.ones((2, 1)), objects("a"), others=(OtherColumn("day", "date", days, 0),)
    )
    book = openpyxl.load_workbook(write_features(tmp_path / "a.xlsx", table, ["day"]))
    cells = [row[0] for row in book.active.iter_rows(min_row=2, values_only=True)]
    assert cells == ["1815-06-18T00:00:00.000000", datetime.datetime(2024, 1, 2)]
    book.close()


def test_filled_booleans_are_numbers(tmp_path):
    table = LabelledTable(np.array([[1.0], [0.5]]), objects("a"), types={"a": pa.bool_()})
    assert write_features(tmp_path / "a.csv", table, ["a"]).read_text() == "a\n1\n0.5\n"


def test_the_order_is_that_of_the_source_whatever_else_the_file_holds(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("who,left,a,town,b,c,land,kind\ni,0,1,Oslo,2,3,no,x\nj,0,4,Rome,5,6,it,y\n")
    table = open_table(path, mixed=True, identifier="who", labels="kind", drop=["left"])
    kept = write_features(tmp_path / "b.csv", table, ["land", "c", "town", "b", "a"])
    assert kept.read_text().splitlines()[0] == "sample,label,a,town,b,c,land"
    write_features(tmp_path / "c.parquet", open_table(path, mixed=True), ["land", "a", "town"])
    again = open_table(tmp_path / "c.parquet", mixed=True)
    assert [(column.name, column.position) for column in again.others] == [("town", 1), ("land", 2)]


@pytest.mark.parametrize("suffix", ["npy", "npz", "mtx", "svmlight", "h5ad", "gct"])
def test_formats_of_numbers_refuse_text_and_name_those_that_take_it(tmp_path, suffix):
    with pytest.raises(ParameterError, match=r"numbers only; .*'town', 'day'.* \.csv.*\.parquet"):
        write_features(tmp_path / f"a.{suffix}", TABLE, ["count", "day", "town"])
    assert os.listdir(tmp_path) == []


def test_numbers_of_a_mixed_table_are_written_to_any_format(tmp_path):
    write_features(tmp_path / "a.npy", TABLE, ["height", "count"])
    found = np.load(tmp_path / "a.npy", allow_pickle=False)
    np.testing.assert_array_equal(found, TABLE.X[:, [0, 2]])


def test_a_name_that_is_not_there_is_refused(tmp_path):
    for write in (write_features, lambda path, *rest: write_selected(path, "", *rest)):
        with pytest.raises(DataError, match=r"no column 'twon'\. Did you mean 'town'"):
            write(tmp_path / "a.csv", TABLE, ["count", "twon"])


def test_one_column_with_gaps_keeps_its_rows(tmp_path):
    write_table(tmp_path / "a.csv", np.array([[1.0], [np.nan], [3.0]]), ["a"])
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "a.csv")["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(open_table(tmp_path / "a.csv").X, [[1], [np.nan], [3]])


def test_large_whole_numbers_have_no_exponent(tmp_path):
    values = np.array([1e10, -(2.0**53), 1e15, 1e300, 0.5e10 + 0.5])
    write_table(tmp_path / "a.csv", values[:, None], ["a"])
    words = (tmp_path / "a.csv").read_text().split()[1:]
    assert words[:3] == ["10000000000", "-9007199254740992", "1000000000000000"]
    assert [float(word) for word in words] == values.tolist()


# Lone surrogates are no text, and pandas takes a null byte for the end of a cell.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6), st.sampled_from(["csv", "tsv"]))
def test_pandas_reads_the_same_text(tmp_path, rows, suffix):
    columns = [objects(*(word or None for word in words)) for words in zip(*rows, strict=True)]
    table = LabelledTable(
        np.arange(len(rows), dtype=float)[:, None],
        objects("n"),
        others=tuple(OtherColumn(f"t{at}", "text", c, 2 * at) for at, c in enumerate(columns)),
    )
    path = write_features(tmp_path / f"a.{suffix}", table, ["t0", "n", "t1"], force=True)
    frame = pd.read_csv(
        path,
        sep="," if suffix == "csv" else "\t",
        dtype={"t0": str, "t1": str},
        keep_default_na=False,
        engine="python",
    )
    assert frame["n"].tolist() == list(range(len(rows)))
    for name, words in zip(("t0", "t1"), columns, strict=True):
        # An apostrophe stands before what a spreadsheet would evaluate.
        found = [word.removeprefix("'") for word in frame[name]]
        given_ = ["" if word is None else word.removeprefix("'") for word in words]
        assert [_lines(word) for word in found] == [_lines(word) for word in given_]


def _lines(text):
    """The text with line ends as Python reads them from a file."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.floats(width=64, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_read_back_the_same(tmp_path, values):
    table = LabelledTable(np.array(values)[:, None], objects("a"))
    path = write_features(tmp_path / "a.csv", table, ["a"], force=True)
    cells = [line.strip('"') for line in path.read_text().splitlines()[1:]]
    found = np.array([float(cell or "nan") for cell in cells])
    np.testing.assert_array_equal(found, values)
    assert not GAP_WORDS - {""} & set(path.read_text().split())
