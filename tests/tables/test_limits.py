"""Sizes are checked before memory is taken."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.datasets import open_table, scan_table
from keepers.exceptions import DataError, ParameterError
from keepers.tables import table as limits
from keepers.tables.table import as_n_bytes


@pytest.mark.parametrize(
    ("size", "expected"),
    [(500, 500), ("500", 500), ("2K", 2048), ("1.5M", 1572864), ("4GB", 2**32), ("1 tib", 2**40)],
)
def test_sizes_are_numbers_of_bytes_with_a_unit(size, expected):
    assert as_n_bytes(size, "memory") == expected


@pytest.mark.parametrize("size", [0, -1, True, "0", "4X", "", "G", float("nan"), None])
def test_what_is_not_a_size_is_refused_by_its_name(size):
    with pytest.raises(ParameterError, match="memory takes a size like 500M or 4G"):
        as_n_bytes(size, "memory")


def test_a_limit_is_never_more_than_the_memory_of_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "physical_memory", lambda: 1000)
    np.save(tmp_path / "a.npy", np.zeros((50, 4)))
    with pytest.raises(DataError, match="memory of this machine"):
        open_table(tmp_path / "a.npy", max_bytes=10**12)


def test_text_beyond_the_limit_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    assert open_table(path, max_bytes=48).n_samples == 3
    with pytest.raises(DataError, match=r"\(3 x 2\) needs 48 bytes.*--max-size"):
        open_table(path, max_bytes=47)


def test_lines_longer_than_the_limit_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(["name"] * 600_000))  # no line ends
    for read in (open_table, scan_table):
        with pytest.raises(DataError, match=r"first lines needs .*--max-size"):
            read(path, max_bytes=2_000_000)


def test_names_of_more_columns_than_memory_holds_are_refused(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_matrix((3, 2_000_000_000)))
    with pytest.raises(DataError, match=r"needs .*--max-size"):
        open_table(tmp_path / "a.npz")
