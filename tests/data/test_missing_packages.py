"""Without the optional packages, an error says which command installs them."""

import sys

import numpy as np
import pytest

from keepers.datasets import open_table, write_table
from keepers.exceptions import MissingDependencyError

INSTALL = r'pip install "keepers\[io\]"'


@pytest.fixture
def without(monkeypatch):
    def hide(*packages):
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return hide


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"a,b\n1,2\n"),
        ("a.tsv", b"a\tb\n1\t2\n"),
        ("a.csv.zst", b""),
        ("a.parquet", b""),
        ("a.feather", b""),
        ("a.h5ad", b""),
        ("a.mat", b"\x89HDF\r\n\x1a\n"),
    ],
)
def test_reading_names_the_command(tmp_path, without, name, content):
    without("pyarrow", "pyarrow.csv", "pyarrow.parquet", "h5py")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MissingDependencyError, match=INSTALL):
        open_table(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.mtx.zst", "a.parquet", "a.feather", "a.h5ad"])
def test_writing_names_the_command_and_leaves_nothing(tmp_path, without, name):
    without("pyarrow", "pyarrow.compute", "pyarrow.parquet", "h5py")
    with pytest.raises(MissingDependencyError, match=INSTALL):
        write_table(tmp_path / name, np.ones((2, 2)), ["a", "b"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("a.xlsx", "python_calamine", "excel"), ("a.zarr", "zarr", "zarr")],
)
def test_extras_of_their_own_are_named(tmp_path, without, name, package, extra):
    without(package)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(MissingDependencyError, match=rf'pip install "keepers\[{extra}\]"'):
        open_table(tmp_path / name)


def test_writing_a_workbook_names_the_command_and_leaves_nothing(tmp_path, without):
    without("xlsxwriter")
    with pytest.raises(MissingDependencyError, match=r'pip install "keepers\[excel\]"'):
        write_table(tmp_path / "a.xlsx", np.ones((2, 2)), ["a", "b"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.mtx", "a.mtx.gz", "a.svmlight"])
def test_the_core_install_reads_and_writes_its_formats(tmp_path, without, name):
    without("pyarrow", "h5py", "pandas")
    X = np.array([[1.5, 2.0], [0.0, 4.25]])
    write_table(tmp_path / name, X, ["a", "b"])
    table = open_table(tmp_path / name)
    np.testing.assert_array_equal(table.X.toarray() if table.is_sparse else table.X, X)
