"""Bundled sets are what they claim to be; the catalogue describes sets that it does not hold."""

import hashlib

import numpy as np
import pytest
from scipy.sparse import issparse

from keepers.datasets import catalogue, find, load, names, open_table, present
from keepers.exceptions import DataError, ParameterError
from shared_material import DATA, benchmark_data

NAMES = [entry.name for entry in catalogue()]
QUICK = ("SRBCTML", "LEUML", "pbmc68k_reduced", "tr11")


def test_the_bundled_sets_have_their_published_shapes_and_classes():
    X, genes, y = load("srbct")
    assert (X.shape, X.dtype, len(set(genes))) == ((83, 2308), np.float64, 2308)
    kinds, counts = np.unique(y.astype(str), return_counts=True)
    assert dict(zip(kinds, counts, strict=True)) == {"BL": 11, "EWS": 29, "NB": 18, "RMS": 25}
    assert X.min() > 0  # ratios, not their logarithms
    X, pixels, y = load("digits")
    assert (X.shape, pixels[0], sorted(set(y))) == ((1797, 64), "pixel_0_0", list(range(10)))
    assert names() == ["srbct", "digits"]
    with pytest.raises(ParameterError, match=r"'srbct', 'digits'; got 'iris'"):
        load("iris")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES],
)
def test_the_files_at_hand_are_the_catalogued_ones(name, monkeypatch):
    X, y = benchmark_data(name)
    monkeypatch.setenv("KEEPERS_DATA", str(DATA))
    entry = next(entry for entry in catalogue() if entry.name == name)
    assert all((entry.values, entry.source, entry.licence_remark, entry.kind))
    assert present(entry)
    assert hashlib.sha256(find(name).read_bytes()).hexdigest() == entry.sha256
    assert X.shape == (entry.n_samples, entry.n_features)
    assert len(np.unique(y)) == entry.n_classes
    table = open_table(name.upper())
    values = table.values.toarray() if issparse(table.values) else table.values
    np.testing.assert_array_equal(values, X)  # read twice, nothing computed
    np.testing.assert_array_equal(table.labels, y)
    # Whole numbers become doubles; values stored in single precision stay as they are.
    kind = np.float32 if name == "pbmc68k_reduced" else np.float64
    assert (table.name, values.dtype) == (name, kind)


def test_an_absent_set_names_its_folder_and_its_source(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    assert not any(present(entry) for entry in catalogue())
    with pytest.raises(DataError) as refusal:
        open_table("pie")
    for part in (str(tmp_path), "PIE.npz", "SPCA-PSD", "KEEPERS_DATA"):
        assert part in str(refusal.value)


def test_a_changed_file_raises_but_is_read_by_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("KEEPERS_DATA", str(tmp_path))
    X = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "Yale.npz", X=X, y=np.arange(4))
    with pytest.raises(DataError, match=r"SHA-256.*by its path"):
        open_table("yale")
    np.testing.assert_array_equal(open_table(find("yale")).values, X)
    with pytest.raises(DataError, match="Did you mean 'GLIOMA'"):
        find("gliom")
