"""The catalogue describes sets that it does not hold, and says where it looked."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import issparse

from keepers.datasets import (
    SCALINGS,
    catalogue,
    data_folder,
    find,
    load_catalogued,
    open_table,
    present,
)
from keepers.exceptions import DataError
from shared_material import DATA, benchmark_data

NAMES = [entry.name for entry in catalogue()]


def test_the_six_sets_of_the_paper_come_first():
    assert NAMES[:6] == ["PalmData25", "Imm40", "PIE", "AR", "SRBCTML", "LEUML"]
    assert [entry.in_paper for entry in catalogue()] == [True] * 6 + [False] * (len(NAMES) - 6)
    assert len(set(NAMES)) == len(NAMES)


def test_only_srbctml_is_to_be_scaled():
    assert all(entry.scaling in SCALINGS for entry in catalogue())
    assert [entry.name for entry in catalogue() if entry.scaling != "raw"] == ["SRBCTML"]


def test_every_entry_says_what_it_is_and_where_it_comes_from():
    for entry in catalogue():
        assert entry.values
        assert entry.source
        assert entry.licence_remark
        assert len(entry.sha256) == 64


@pytest.mark.parametrize("name", NAMES)
def test_the_files_beside_us_are_the_catalogued_ones(name, monkeypatch):
    X, y = benchmark_data(name)
    monkeypatch.setenv("KEEPERS_DATA", str(DATA))
    entry = next(entry for entry in catalogue() if entry.name == name)
    assert present(entry)
    assert hashlib.sha256(find(name).read_bytes()).hexdigest() == entry.sha256
    assert X.shape == (entry.n_samples, entry.n_features)
    assert len(np.unique(y)) == entry.n_classes
    table = open_table(name.upper())
    assert table.name == name
    values = table.X.toarray() if issparse(table.X) else table.X
    np.testing.assert_array_equal(values, X)  # read twice, nothing computed
    # Whole numbers become doubles; values stored in single precision stay as they are.
    assert values.dtype == (np.float32 if name == "pbmc68k_reduced" else np.float64)
    np.testing.assert_array_equal(table.labels, y)


def test_the_classes_have_their_published_sizes(monkeypatch):
    benchmark_data("SRBCTML")
    monkeypatch.setenv("KEEPERS_DATA", str(DATA))
    assert sorted(Counter(open_table("srbctml").labels.tolist()).values()) == [11, 18, 25, 29]
    assert sorted(Counter(open_table("leuml").labels.tolist()).values()) == [25, 47]


def test_an_absent_set_says_where_it_was_looked_for_and_where_it_comes_from(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    assert not any(present(entry) for entry in catalogue())
    with pytest.raises(DataError) as refusal:
        open_table("pie")
    for part in (str(tmp_path), "PIE.npz", "SPCA-PSD", "KEEPERS_DATA"):
        assert part in str(refusal.value)


def test_a_changed_file_is_refused_unless_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    X = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "Yale.npz", X=X, y=np.arange(4))
    with pytest.raises(DataError, match=r"SHA-256 is .*load_catalogued\('Yale', verify=False\)"):
        open_table("Yale")
    np.testing.assert_array_equal(load_catalogued("yale", verify=False).X, X)


def test_the_data_folder_is_the_named_one_or_one_nearby(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("KEEPERS_DATA")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    assert data_folder().resolve() == work / "data"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert data_folder().resolve() == tmp_path / "shared" / "data"


def test_an_unknown_name_is_met_with_the_known_ones():
    with pytest.raises(DataError, match="Did you mean 'GLIOMA'"):
        find("gliom")
