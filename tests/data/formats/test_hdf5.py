"""Plain HDF5 files as tables, whole and in blocks, against the arrays that were written."""

import numpy as np
import pytest

from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError, ParameterError

h5py = pytest.importorskip("h5py")

X = np.random.default_rng(0).normal(size=(20, 4))


def _stacked(table):
    return np.vstack([block.values for block in table.blocks()])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.h5"


@pytest.mark.parametrize("place", ["X", "values", "group/inner/values"])
@pytest.mark.parametrize("layout", [{}, {"chunks": (8, 2), "compression": "gzip"}])
def test_the_only_matrix_of_an_h5_file_is_read_whole_and_in_blocks(path, place, layout):
    with h5py.File(path, "w") as file:
        file.create_dataset(place, data=X, **layout)
    np.testing.assert_array_equal(open_table(path).X, X)
    np.testing.assert_array_equal(_stacked(open_blocks(path)), X)


def test_labels_and_sample_names_may_be_arrays_of_their_own(path):
    kinds = [f"kind{i % 3}" for i in range(20)]
    names = [f"s{i}" for i in range(20)]
    with h5py.File(path, "w") as file:
        file["values"], file["about"] = X, np.zeros((20, 1))
        file["y"] = np.arange(20)[:, np.newaxis]
        file["kinds"], file["who"] = kinds, names
    np.testing.assert_array_equal(open_table(path).labels, np.arange(20))
    table = open_table(path, labels="kinds", identifier="who", drop=["x0"])
    assert list(table.labels) == kinds
    assert list(table.sample_names) == names
    np.testing.assert_array_equal(table.X, X[:, 1:])
    blocks = open_blocks(path, labels="kinds", identifier="who", drop=["x0"])
    np.testing.assert_array_equal(_stacked(blocks), X[:, 1:])
    table = open_table(path, labels="x1")
    np.testing.assert_array_equal(table.X, X[:, [0, 2, 3]])
    np.testing.assert_array_equal(_stacked(open_blocks(path, labels="x1")), X[:, [0, 2, 3]])


def test_one_of_several_matrices_is_named_or_is_x(path):
    with h5py.File(path, "w") as file:
        file["train/X"], file["test/X"] = X[:12], X[12:]
    for opened in (open_table, open_blocks):
        told = r"dataset=\); this one holds 'test/X' \(8 x 4\), 'train/X' \(12 x 4\)"
        with pytest.raises(DataError, match=told):
            opened(path)
    np.testing.assert_array_equal(open_table(path, dataset="test/X").X, X[12:])
    np.testing.assert_array_equal(_stacked(open_blocks(path, dataset="test/X")), X[12:])
    with h5py.File(path, "a") as file:
        file["X"] = X
    np.testing.assert_array_equal(open_table(path).X, X)
    np.testing.assert_array_equal(_stacked(open_blocks(path)), X)


def test_the_columns_of_a_frame_that_pandas_stored_keep_their_names(path):
    """As DataFrame.to_hdf lays it out: values, and the names of their columns, side by side."""
    with h5py.File(path, "w") as file:
        file["frame/block0_values"] = X
        file["frame/block0_items"] = np.array([b"a", b"b", b"c", b"d"])
        file["frame/axis1"] = np.arange(20)
    for opened in (open_table, open_blocks):
        assert list(opened(path, drop=["c"]).feature_names) == ["a", "b", "d"]


def test_a_dataset_is_named_in_hdf5_files_only(tmp_path):
    np.save(tmp_path / "a.npy", X)
    for opened in (open_table, open_blocks):
        with pytest.raises(ParameterError, match="dataset= names an array in an HDF5 file"):
            opened(tmp_path / "a.npy", dataset="X")


def test_integers_that_float64_cannot_hold_are_refused(path):
    with h5py.File(path, "w") as file:
        file["X"] = np.array([[2**53 + 1, 1], [1, 2]])
    with pytest.raises(DataError, match=r"2\*\*53"):
        open_table(path)
    with pytest.raises(DataError, match=r"2\*\*53"):
        _stacked(open_blocks(path))


@pytest.mark.parametrize("layout", [{}, {"chunks": (8, 16)}])
def test_values_that_look_like_a_damaged_store_of_text_are_values(path, layout):
    values = np.zeros((20, 16), dtype=np.uint8)
    values[3, :8] = np.frombuffer(b"GCOL\x01\0\0\0", dtype=np.uint8)
    values[3, 8] = 200  # a length, with nothing but zeros behind it
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=values, **layout)
        file["kinds"] = [f"kind{i % 3}" for i in range(20)]
    table = open_table(path, labels="kinds")
    np.testing.assert_array_equal(table.X, values)
    assert list(table.labels[:3]) == ["kind0", "kind1", "kind2"]


def test_labels_of_another_length_are_refused(path):
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, np.arange(25)
    with pytest.raises(DataError, match=r"labels must have one entry each \(20\)"):
        open_table(path)
