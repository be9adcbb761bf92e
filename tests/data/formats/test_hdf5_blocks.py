"""Plain HDF5 files in blocks, against the array that was written."""

import pickle

import numpy as np
import pytest

from keepers.data.formats import hdf5
from keepers.datasets import open_blocks
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")

X = np.random.default_rng(0).normal(size=(100, 6))


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(hdf5, "rows_at_once", lambda *_: 30)


@pytest.fixture(params=[{}, {"chunks": (8, 4)}, {"chunks": (8, 6), "compression": "gzip"}])
def path(request, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("group/inner/values", data=X, **request.param)
        file["group/about"] = "text"
        file["group/one"] = np.arange(3)
        file["group/words"] = np.array([[b"a", b"b"]])
    return tmp_path / "a.h5"


@pytest.mark.usefixtures("small_blocks")
def test_the_only_matrix_is_found_wherever_it_lies(path):
    table = open_blocks(path)
    assert (table.n_samples, table.n_features, table.n_stored) == (100, 6, 600)
    assert table.dtype == np.float64
    assert list(table.feature_names) == [f"x{j}" for j in range(6)]
    blocks = list(table.blocks())
    assert blocks[0].origin == f"a.h5, rows 1 to {len(blocks[0].values)}"
    assert len(blocks) > 3
    np.testing.assert_array_equal(_stacked(table), X)
    dropped = open_blocks(path, drop=["x0", "x3"])
    np.testing.assert_array_equal(_stacked(dropped, np.array([3, 1])), X[:, [5, 2]])


@pytest.mark.usefixtures("small_blocks")
def test_blocks_end_where_chunks_end(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.create_dataset("X", data=X, chunks=(8, 6))
    table = open_blocks(tmp_path / "a.hdf5")
    assert [len(block.values) for block in table.blocks()] == [24, 24, 24, 24, 4]
    ends = [int(block.origin.split()[-1]) for part in table.parts(3) for block in part.blocks()]
    assert ends == [24, 33, 48, 66, 72, 96, 100]


@pytest.mark.parametrize("n_parts", [1, 3, 100, 1000])
def test_parts_cover_all_rows_once(path, n_parts):
    parts = pickle.loads(pickle.dumps(open_blocks(path).parts(n_parts)))
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)


def test_one_of_several_is_named(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["train/X"], file["test/X"] = X[:60].astype("f4"), X[60:]
    told = r"dataset=\); this one holds 'test/X' \(40 x 6\), 'train/X' \(60 x 6\)"
    with pytest.raises(DataError, match=told):
        open_blocks(path)
    table = open_blocks(path, dataset="train/X")
    assert table.dtype == np.float32
    np.testing.assert_array_equal(_stacked(table), X[:60].astype("f4"))
    np.testing.assert_array_equal(_stacked(open_blocks(path, dataset="/test/X")), X[60:])
    with pytest.raises(DataError, match=r"no array 'test/Y'\. Did you mean 'test/X'"):
        open_blocks(path, dataset="test/Y")
    with pytest.raises(DataError, match="must be an array"):
        open_blocks(path, dataset="test")


def test_a_folder_takes_the_same_array_of_every_file(tmp_path):
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["X"], file["Z"] = X[number * 10 : number * 10 + 10], np.eye(2)
    np.testing.assert_array_equal(_stacked(open_blocks(tmp_path, dataset="X")), X[:30])


@pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "i2", "?"])
def test_every_kind_of_number_is_read(tmp_path, kind):
    values = (X * 3).astype(kind)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = values
    table = open_blocks(tmp_path / "a.h5")
    assert table.dtype == (np.float32 if kind in ("f2", "f4") else np.float64)
    np.testing.assert_array_equal(_stacked(table), values)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.empty((0, 3)), "holds no rows"),
        (np.zeros(3), "this one holds none"),
        (np.zeros((2, 2), dtype=complex), "this one holds none"),
        (np.array([[b"a"]]), "this one holds none"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, values, told):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=values)
    with pytest.raises(DataError, match=told) as refusal:
        open_blocks(path)
    assert str(path) in str(refusal.value)
    if values.ndim == 2 and len(values):
        with pytest.raises(DataError, match="Values must be"):
            open_blocks(path, dataset="X")


def test_values_in_other_files_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = h5py.ExternalLink("other.h5", "/X")
        layout = h5py.VirtualLayout(shape=(100, 6), dtype="f8")
        layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "X", shape=(100, 6))
        file.create_virtual_dataset("V", layout)
    with pytest.raises(DataError, match="link to elsewhere"):
        open_blocks(tmp_path / "a.h5", dataset="X")
    with pytest.raises(DataError, match="points to other files"):
        open_blocks(tmp_path / "a.h5")


@pytest.mark.filterwarnings("default")
def test_damage_gives_values_or_an_error_that_names_the_file(path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refusals = []
    for _ in range(150):
        damaged = bytearray(content)
        if rng.random() < 0.5:
            damaged = damaged[: int(rng.integers(len(content)))]
        else:
            damaged[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert _stacked(open_blocks(path)).ndim == 2
        except DataError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert all(str(path) in refusal for refusal in refusals)
