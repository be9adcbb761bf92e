"""Without the optional packages, an error names the command that installs them."""

import sys

import numpy as np
import pandas as pd
import pytest

from keepers.datasets import Table, open_table, scan_table, write_table
from keepers.exceptions import MissingDependencyError
from keepers.prepare.check import check_table
from keepers.prepare.preparer import TablePreparer
from keepers.tables.objects import table_of_object

X = np.array([[1.5, 2.0], [0.25, 4.0]])
TABLE = Table(X, np.array(["a", "b"], dtype=object))


@pytest.fixture
def without(monkeypatch):
    def hide(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return hide


@pytest.mark.parametrize(
    ("name", "content", "extra"),
    [
        ("a.csv", b"a,b\n1,2\n", "io"),
        ("a.parquet", b"PAR1", "io"),
        ("a.feather", b"ARROW1", "io"),
        ("a.h5", b"\x89HDF\r\n\x1a\n", "io"),
        ("a.h5ad", b"\x89HDF\r\n\x1a\n", "(io|h5ad)"),
        ("a.xlsx", b"PK\3\4", "excel"),
    ],
)
def test_reading_names_the_command(tmp_path, without, name, content, extra):
    without("polars", "polars.selectors", "h5py", "anndata", "anndata.io", "python_calamine")
    (tmp_path / name).write_bytes(content)
    for read in [open_table] if name == "a.xlsx" else [open_table, scan_table]:
        with pytest.raises(MissingDependencyError, match=rf'pip install "keepers\[{extra}\]"'):
            read(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather", "a.h5ad", "a.xlsx"])
def test_writing_names_the_command_and_leaves_nothing(tmp_path, without, name):
    without("polars", "polars.selectors", "h5py", "anndata", "xlsxwriter")
    with pytest.raises(MissingDependencyError, match=r'pip install "keepers\[(io|h5ad|excel)\]"'):
        write_table(tmp_path / name, TABLE)
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_a_frame_need_no_polars_and_text_names_the_command(without):
    without("polars", "polars.selectors")
    frame = pd.DataFrame({"i": [1, 2], "b": [True, None], "x": [1.5, np.nan]}, index=["u", "v"])
    assert table_of_object(frame).names.tolist() == ["i", "b", "x"]
    assert table_of_object([[1, None], [2, 3]]).n_features == 2
    numbers = pd.DataFrame({"x": np.sin(np.arange(40.0)), "kind": np.arange(40.0) % 4})
    numbers.loc[3, "x"] = np.nan
    preparer = TablePreparer(missing="model", kinds={"kind": "category"})
    for table in (numbers, numbers.to_numpy()):
        if table is not numbers:
            preparer.set_params(kinds={"x1": "category"})
        assert np.isfinite(np.asarray(preparer.fit_transform(table))).all()
        assert check_table(table).findings
    with pytest.raises(MissingDependencyError, match=r"keepers\[io\]"):
        table_of_object(frame.assign(t="word"))
