"""Excel workbooks, written by pandas, openpyxl and keepers, and damaged ones."""

import datetime
import zipfile
from contextlib import suppress

import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.formats.excel import _CELL_BYTES
from keepers.datasets import open_blocks, open_table, write_table
from keepers.exceptions import DataError, DataWarning, ParameterError

VALUES = np.array([[1.5, 2.0, -3.0], [0.25, np.nan, 1e-300]])
NAMES = ["a", "b", "c"]


@pytest.fixture
def workbook(tmp_path):
    """A workbook with the given rows, whose first cell stands at ``corner``."""

    def make(*rows, name="book.xlsx", corner=(1, 1)):
        book = openpyxl.Workbook()
        for down, row in enumerate(rows):
            for right, value in enumerate(row):
                book.active.cell(corner[0] + down, corner[1] + right, value)
        book.save(tmp_path / name)
        return tmp_path / name

    return make


def test_a_frame_that_pandas_wrote_is_read_as_pandas_reads_it(tmp_path):
    frame = pd.DataFrame(VALUES, columns=NAMES, index=["s1", "s2"])
    frame.to_excel(tmp_path / "frame.xlsx")
    table = open_table(tmp_path / "frame.xlsx")
    read = pd.read_excel(tmp_path / "frame.xlsx", index_col=0, engine="openpyxl")
    np.testing.assert_array_equal(table.X, read.to_numpy())
    assert list(table.feature_names) == list(read.columns)
    assert list(table.sample_names) == list(read.index)
    assert table.name == "frame"


def test_a_written_workbook_is_read_by_pandas(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 3)) * [1e-200, 1.0, 1e200]
    path = tmp_path / "a.xlsx"
    write_table(path, X, NAMES, [f"s{at}" for at in range(7)], np.arange(7) % 2)
    read = pd.read_excel(path, engine="openpyxl")
    assert list(read.columns) == ["sample", "label", *NAMES]
    np.testing.assert_allclose(read[NAMES].to_numpy(dtype=float), X, rtol=1e-15)
    assert read["label"].tolist() == [0, 1, 0, 1, 0, 1, 0]
    table = open_table(path, identifier="sample", labels="label")
    np.testing.assert_allclose(table.X, X, rtol=1e-15)
    assert table.labels.tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert table.sample_names[0] == "s0"


def test_a_sparse_matrix_is_written_as_numbers(tmp_path):
    X = sp.random_array((6, 4), density=0.4, format="csr", random_state=0)
    write_table(tmp_path / "a.xlsx", X, list("abcd"))
    np.testing.assert_allclose(open_table(tmp_path / "a.xlsx").X, X.toarray(), rtol=1e-15)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-a", "@x", "http://a.b", "{=1}", "007", ""])
def test_texts_are_written_as_text_cells(tmp_path, text):
    path = tmp_path / "a.xlsx"
    write_table(path, np.ones((1, 1)), [text or "x"], [text], np.array([text or "x"]))
    sheet = openpyxl.load_workbook(path).active
    for cell in (sheet["A2"], sheet["B2"], sheet["C1"]):
        assert cell.data_type != "f"
        assert cell.value in (text, "x", None)
        assert cell.hyperlink is None


def test_gaps_are_empty_cells(tmp_path):
    write_table(tmp_path / "a.xlsx", VALUES, NAMES)
    assert openpyxl.load_workbook(tmp_path / "a.xlsx").active["B3"].value is None
    np.testing.assert_allclose(open_table(tmp_path / "a.xlsx").X, VALUES, rtol=1e-15)


def test_booleans_errors_and_numbers_written_as_text_are_numbers(workbook):
    path = workbook(
        NAMES, [True, "#N/A", " 1.5 "], [False, "#DIV/0!", 2], [None, 4, "NA"], [True, 5, "true"]
    )
    expected = [[1, np.nan, 1.5], [0, np.nan, 2], [np.nan, 4, np.nan], [1, 5, 1]]
    np.testing.assert_array_equal(open_table(path).X, expected)


def test_empty_rows_and_columns_around_and_between_are_skipped(workbook):
    path = workbook(["a", None, "b"], [1, None, 2], [], [3, None, 4], [" "], corner=(4, 3))
    table = open_table(path, sheet="Sheet")
    assert list(table.feature_names) == ["a", "b"]
    np.testing.assert_array_equal(table.X[:2], [[1, 2], [3, 4]])


def test_text_and_dates_are_refused_all_at_once_or_handed_over(workbook):
    day, moment = datetime.date(2020, 1, 2), datetime.datetime(1999, 12, 31, 23, 59)
    path = workbook(
        ["t", "a", "d", "both"], ["x", 1, day, day], [None, 2, None, "y"], ["NA", 3, moment, 2.0]
    )
    with pytest.raises(DataError, match="these do not: 't', 'd', 'both'"):
        open_table(path)
    table = open_table(path, mixed=True)
    np.testing.assert_array_equal(table.X, [[1], [2], [3]])
    assert [(c.name, c.kind, c.position) for c in table.others] == [
        ("t", "text", 0),
        ("d", "date", 2),
        ("both", "text", 3),
    ]
    text, date, both = table.others
    assert text.values.tolist() == ["x", None, None]
    assert date.values.tolist() == [datetime.datetime(2020, 1, 2), None, moment]
    assert both.values.tolist() == ["2020-01-02", "y", "2"]


def test_a_date_past_the_last_one_is_no_error(workbook):
    path = workbook(["d", "a"], [datetime.date(2020, 1, 2), 1], [None, 2])
    book = openpyxl.load_workbook(path)
    for place, days in (("A3", 9_000_000), ("A4", -40)):
        book.active[place] = days
        book.active[place].number_format = "yyyy-mm-dd"
    book.active["B4"] = 3
    book.save(path)
    (column,) = open_table(path, mixed=True).others
    assert column.kind == "text"
    assert column.values[0] == "2020-01-02"


def test_a_sheet_is_named_by_name_or_number_and_several_are_told(tmp_path):
    with pd.ExcelWriter(tmp_path / "a.xlsx") as writer:
        for at, name in enumerate(["first", "second", "1"]):
            pd.DataFrame({"a": [at, at + 1]}).to_excel(writer, sheet_name=name, index=False)
    path = tmp_path / "a.xlsx"
    with pytest.warns(DataWarning, match=r"3 sheets \('first', 'second', '1'\); the first is read"):
        assert open_table(path).X[0, 0] == 0
    assert open_table(path, sheet="second").X[0, 0] == 1
    assert open_table(path, sheet=2).X[0, 0] == 1
    assert open_table(path, sheet="1").X[0, 0] == 2  # a name comes before a number
    with pytest.raises(DataError, match=r"no sheet 'secnd'\. Did you mean 'second'"):
        open_table(path, sheet="secnd")
    with pytest.raises(DataError, match="The sheets are 'first'"):
        open_table(path, sheet=4)


def test_the_first_row_holds_names_as_in_a_text_table(workbook):
    bare = workbook([1.5, 2.5], [3.5, 1.0])
    assert list(open_table(bare).feature_names) == ["x0", "x1"]
    assert open_table(bare).n_samples == 2
    assert list(open_table(bare, header=True).feature_names) == ["1.5", "2.5"]
    named = workbook(["a", "b"], [1, 2])
    assert open_table(named).n_samples == 1
    with pytest.raises(DataError, match="must hold numbers"):
        open_table(named, header=False)


def test_repeated_and_empty_names(workbook):
    path = workbook(["a", "a", None], [1, 2, 3], [4, 5, 7])
    with pytest.raises(DataError, match="duplicates: 'a'"):
        open_table(path)
    assert list(open_table(path, make_unique=True).feature_names) == ["a", "a.1", "column 3"]


def test_roles_and_labels_are_as_in_a_text_table(workbook):
    path = workbook(["id", "a", "b", "y"], [1, 1, 2, "u"], [2, 3, 4, "v"])
    table = open_table(path, identifier="id", labels="y", drop=["b"])
    assert table.sample_names.tolist() == ["1", "2"]
    assert table.labels.tolist() == ["u", "v"]
    assert table.feature_names.tolist() == ["a"]
    with pytest.raises(DataError, match="no column 'q'"):
        open_table(path, labels="q")
    with pytest.raises(DataError, match="needs a label"):
        open_table(workbook(["a", "y"], [1, None], [2, 3]), labels="y")


@pytest.mark.parametrize("rows", [[], [["a", "b"]]])
def test_a_sheet_without_rows_is_refused(workbook, rows):
    with pytest.raises(DataError, match="at least one row"):
        open_table(workbook(*rows))


def test_cells_far_apart_are_refused_before_memory_is_asked_for(workbook):
    path = workbook(["a"], [1])
    book = openpyxl.load_workbook(path)
    book.active["XFD1048576"] = 1
    book.save(path)
    with pytest.raises(DataError, match=r"\(1048576 x 16384\) needs"):
        open_table(path)


@pytest.mark.parametrize("wanted", ["<x:c ", "<c "])
def test_cells_that_tell_no_place_are_counted(workbook, wanted):
    path = workbook(*[["a", "b", "c"]] * 50)
    parts = {}
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    sheet = parts[name].replace(b"<c ", wanted.encode()).replace(b' r="', b' q="')
    parts[name] = sheet
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    with pytest.raises(DataError, match="needs"):
        open_table(path, max_bytes=_CELL_BYTES * 10_000 - 1)


def test_a_workbook_that_expands_past_the_limit_is_refused(tmp_path):
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 10_000_000)
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match=r"expanded, needs 10\.0 MB"):
        open_table(path, max_bytes=1_000_000)


def test_a_declared_size_that_is_a_lie_is_refused(tmp_path):
    path = tmp_path / "lie.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 10_000_000)
    content = path.read_bytes().replace((10_000_000).to_bytes(4, "little"), b"\x10\0\0\0")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"lie\.xlsx"):
        open_table(path, max_bytes=1_000_000)


def test_damaged_workbooks_are_refused_or_read(tmp_path, workbook):
    whole = workbook(NAMES, [1, 2, 3], [4, 5, 7]).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.xlsx"
    for trial in range(60):
        content = bytearray(whole)
        if trial % 2:
            content = content[: rng.integers(len(content))]
        for at in rng.integers(len(content), size=5) if content else ():
            content[at] = rng.integers(256)
        path.write_bytes(bytes(content))
        with suppress(DataError):  # nothing else, and the process lives
            assert open_table(path, max_bytes=10**8).n_features <= len(NAMES)


def test_what_no_sheet_holds_is_not_written(tmp_path):
    path = tmp_path / "a.xlsx"
    with pytest.raises(ParameterError, match="16384 columns; this table needs 2 x 16385"):
        write_table(path, np.zeros((1, 16385)), range(16385))
    with pytest.raises(ParameterError, match="infinity"):
        write_table(path, np.array([[np.inf]]), ["a"])
    with pytest.raises(ParameterError, match="32767 characters"):
        write_table(path, np.ones((1, 1)), ["a" * 40_000])
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_is_read_whole_only(workbook):
    with pytest.raises(DataError, match="Excel files are read whole only"):
        open_blocks(workbook(NAMES, [1, 2, 3]))


def test_a_workbook_of_an_older_kind_is_told_what_to_do(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2000))  # .xls, or with a password
    with pytest.raises(DataError, match=r"save it as \.xlsx"):
        open_table(path)


def test_a_workbook_with_macros_is_read(workbook):
    assert open_table(workbook(NAMES, [1, 2, 3], name="a.xlsm")).n_features == 3


def test_a_sheet_is_asked_of_workbooks_only(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="sheet= names a sheet of a workbook"):
        open_table(tmp_path / "a.csv", sheet=1)
