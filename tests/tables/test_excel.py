"""Workbooks, written by pandas and openpyxl, and damaged ones."""

import datetime

import numpy as np
import openpyxl
import pandas as pd
import pytest

from keepers.datasets import open_table, scan_table
from keepers.exceptions import DataError, DataWarning


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
    path = tmp_path / "frame.xlsx"
    values = np.array([[1.5, 2.0, -3.0], [0.25, np.nan, 1e-300]])
    pd.DataFrame(values, columns=list("abc"), index=["s1", "s2"]).to_excel(path)
    table = open_table(path)
    read = pd.read_excel(path, index_col=0, engine="openpyxl")
    np.testing.assert_array_equal(table.values, read.to_numpy())
    assert table.names.tolist() == list("abc")
    assert table.ids.tolist() == ["s1", "s2"]
    assert (table.name, table.frame) == ("frame", None)
    with pytest.raises(DataError, match="read whole only"):
        scan_table(path)
    pd.DataFrame({"gene": ["g", "h"], "s1": [1, 3], "s2": [2, 4]}).to_excel(path, index=False)
    turned = open_table(path, transpose=True)
    np.testing.assert_array_equal(turned.values, [[1, 3], [2, 4]])
    assert (turned.names.tolist(), turned.ids.tolist()) == (["g", "h"], ["s1", "s2"])


def test_text_dates_truth_and_mixed_columns(workbook):
    day, moment = datetime.date(2020, 1, 2), datetime.datetime(1999, 12, 31, 23, 59)
    table = open_table(
        workbook(
            ["t", "a", "day", "moment", "both", "yes", "code"],
            [" x ", 1, day, day, day, True, "007"],
            [None, 2, None, None, "y", False, "012"],
            ["NA", 3, day, moment, 2.0, None, "100"],
        )
    )
    assert table.columns == ["t", "a", "day", "moment", "both", "yes", "code"]
    np.testing.assert_array_equal(table.values, [[1, 1], [2, 0], [3, np.nan]])
    assert table.names.tolist() == ["a", "yes"]
    found = {name: table.frame[name].to_list() for name in table.others}
    assert found == {
        "t": ["x", None, None],
        "day": ["2020-01-02", None, "2020-01-02"],
        "moment": ["2020-01-02", None, "1999-12-31 23:59:00"],
        "both": ["2020-01-02", "y", "2"],
        "code": ["007", "012", "100"],
    }


def test_a_sheet_is_named_by_name_or_number(tmp_path):
    path = tmp_path / "a.xlsx"
    book = openpyxl.Workbook()
    for at, name in enumerate(["first", "second", "1"]):
        sheet = book.create_sheet(name, at)
        sheet.append(["a"])
        sheet.append([at])
    del book["Sheet"]
    book.save(path)
    with pytest.warns(DataWarning, match=r"3 sheets \('first', 'second', '1'\); the first is read"):
        assert open_table(path).values[0, 0] == 0
    for sheet, expected in (("second", 1), (2, 1), ("2", 1), ("1", 2), (1, 0)):
        assert open_table(path, sheet=sheet).values[0, 0] == expected
    with pytest.raises(DataError, match=r"no sheet 'secnd'\. Did you mean 'second'"):
        open_table(path, sheet="secnd")
    with pytest.raises(DataError, match="The sheets are 'first'"):
        open_table(path, sheet=4)
