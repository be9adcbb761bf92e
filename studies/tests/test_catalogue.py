"""The catalogue describes sets that it does not hold."""

import numpy as np
import pytest
from keepers_studies.catalogue import catalogue, data_folder, entry_named, find
from scipy.sparse import issparse

from keepers.datasets import open_table
from keepers.exceptions import DataError


@pytest.mark.parametrize("name", catalogue().index)
def test_the_files_at_hand_are_the_catalogued_ones(name):
    entry = entry_named(name.upper())
    assert entry.name == name
    assert all((entry["values"], entry.source, entry.licence_remark, entry.kind))
    if not (data_folder() / f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not there; set KEEPERS_DATA to the folder that holds it")
    table = open_table(find(entry))  # whose checksum is compared
    assert table.values.shape == (entry.n_samples, entry.n_features)
    assert len(np.unique(table.labels)) == entry.n_classes
    # Whole numbers become doubles; values stored in single precision stay as they are.
    values = table.values.data if issparse(table.values) else table.values
    assert values.dtype == (np.float32 if name == "pbmc68k_reduced" else np.float64)


def test_an_absent_set_names_its_folder_and_its_source(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    with pytest.raises(DataError) as refusal:
        find(entry_named("pie"))
    for part in (str(tmp_path), "PIE.npz", "SPCA-PSD", "KEEPERS_DATA"):
        assert part in str(refusal.value)


def test_a_changed_file_raises_and_other_names_are_not_of_the_catalogue(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    np.savez(tmp_path / "Yale.npz", X=np.arange(12.0).reshape(4, 3), y=np.arange(4))
    with pytest.raises(DataError, match=r"SHA-256.*name its path"):
        find(entry_named("yale"))
    assert entry_named("srbct") is None
    assert entry_named(str(tmp_path / "Yale.npz")) is None
