"""NumPy, MATLAB, Matrix Market and HDF5 files, as their own libraries write them."""

import zipfile

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import open_table, scan_table
from keepers.exceptions import DataError
from tables.both_ways import dense

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 6)) * (RNG.random((20, 6)) < 0.6)
Y = np.arange(20) % 3
NAMES = [f"x{j}" for j in range(6)]


def refused_when_cut(path):
    """Open a file cut off at several places: each time a single sentence names the file."""
    content = path.read_bytes()
    # The last bytes may be digits of a number, or of no use.
    for length in range(0, len(content) - 40, len(content) // 12):
        path.write_bytes(content[:length])
        with pytest.raises(DataError) as refusal:
            open_table(path)
        assert path.name in str(refusal.value)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("dtype", [">f8", "<f2", "<i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_real_kind_of_array_is_read(tmp_path, dtype, order):
    stored = np.array(np.abs(10 * X), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", stored)
    table = open_table(tmp_path / "a.npy")
    assert table.values.dtype == (np.float32 if dtype in ("<f4", "<f2") else np.float64)
    assert table.values.flags.writeable
    np.testing.assert_array_equal(table.values, stored.astype(np.float64))
    assert table.names.tolist() == NAMES


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_gives_values_labels_and_names(tmp_path, save):
    path = tmp_path / "a.npz"
    samples = np.array([f"s{i}" for i in range(20)])
    save(path, X=X, y=Y, feature_names=list("abcdef"), sample_names=samples, junk=X)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../readme.txt", "not an array")
    table = open_table(path)
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.labels, Y)
    assert table.names.tolist() == list("abcdef")
    assert table.ids.tolist() == samples.tolist()
    save(path, values=X, kinds=np.array(["u", "v"] * 10))
    assert open_table(path, labels="kinds").labels.tolist() == ["u", "v"] * 10
    save(path, first=X, second=X)
    with pytest.raises(DataError, match=r"holds 'first' \(20 x 6\), 'second'"):
        open_table(path)


@pytest.mark.parametrize("opened", [open_table, scan_table])
def test_pickled_objects_are_never_loaded(tmp_path, opened, monkeypatch):
    monkeypatch.setattr("pickle.load", lambda *_: pytest.fail("unpickled"))
    np.save(tmp_path / "a.npy", X.astype(object))
    with pytest.raises(DataError, match="never loaded"):
        opened(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=X, y=Y.astype(object))
    with pytest.raises(DataError, match="never loaded"):
        open_table(tmp_path / "a.npz")


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    zeros = np.zeros((1000, 1000), dtype=np.uint8)
    np.save(tmp_path / "a.npy", zeros)
    np.savez_compressed(tmp_path / "a.npz", X=zeros)
    scipy.io.savemat(tmp_path / "a.mat", {"X": zeros}, do_compression=True)
    scipy.io.mmwrite(tmp_path / "a.mtx", zeros)
    WRITE["a.h5"](tmp_path / "a.h5", zeros)
    sizes = {"b.mtx": "coordinate real general\n9 9 1000000\n1 1 1\n"}
    sizes["c.mtx"] = "array real general\n1000000000 10\n"
    for name, text in sizes.items():
        (tmp_path / name).write_text(f"%%MatrixMarket matrix {text}")
    for path in tmp_path.iterdir():
        with pytest.raises(DataError, match=r"needs .*--max-size"):
            open_table(path, max_bytes=2_000_000)


WRITE = {
    "a.npy": np.save,
    "a.npz": lambda path, values: np.savez(path, X=values),
    "a.mat": lambda path, values: scipy.io.savemat(path, {"X": values}),
    "a.mtx": scipy.io.mmwrite,
    "s.mtx": lambda path, values: scipy.io.mmwrite(path, sp.coo_matrix(values)),
    "s.npz": lambda path, values: sp.save_npz(path, sp.csr_matrix(values)),
    "a.h5": lambda path, values: h5py.File(path, "w").create_dataset("X", data=values).file.close(),
}


@pytest.mark.parametrize("name", WRITE)
def test_large_integers_and_files_that_are_cut_off_are_refused(tmp_path, name):
    path, big = tmp_path / name, 2**53 + 1
    WRITE[name](path, np.array([[1, 2, 2**53], [1, big, 2]]))
    with pytest.raises(DataError, match=r"2\*\*53 .* larger ones in 'x1'"):
        open_table(path)
    left = open_table(path, drop=["x1"]).values
    np.testing.assert_array_equal(dense(left), [[1, 2.0**53], [1, 2]])
    assert open_table(path, labels="x1").labels.tolist() == [2, big]
    WRITE[name](path, X)
    np.testing.assert_array_equal(dense(open_table(path).values), X)
    refused_when_cut(path)


@pytest.mark.parametrize(
    "values",
    [X, X.astype(np.float32), (10 * X).astype(np.int16), X > 0, sp.csc_matrix(X)],
    ids=["double", "single", "int16", "logical", "sparse"],
)
def test_what_scipy_writes_for_matlab_is_read_back(tmp_path, values):
    path = tmp_path / "a.mat"
    content = {"note": "text", "fea": values, "s": {"a": 1}, "gnd": Y[:, np.newaxis]}
    scipy.io.savemat(path, content, do_compression=not sp.issparse(values))
    table = open_table(path)
    np.testing.assert_array_equal(dense(table.values), dense(values))
    assert table.is_sparse == sp.issparse(values)
    np.testing.assert_array_equal(table.labels, Y)
    assert table.labels.dtype == np.int64


@pytest.mark.parametrize(
    "labels",
    [
        np.array([f"kind{at % 3}ü" for at in range(20)], dtype=object),
        np.array([f"k{at}" for at in range(20)]),
    ],
    ids=["cells", "characters"],
)
def test_classes_of_matlab_may_be_text(tmp_path, labels):
    scipy.io.savemat(tmp_path / "a.mat", {"fea": X, "gnd": labels})
    assert open_table(tmp_path / "a.mat").labels.tolist() == labels.tolist()


def test_version_73_of_matlab_is_refused_with_the_way_out(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        file["X"] = X.T
    with (tmp_path / "a.mat").open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(DataError, match=r"version 7\.3.*'-v7'"):
        open_table(tmp_path / "a.mat")


SYMMETRIES = {
    "general": lambda A: A,
    "symmetric": lambda A: A + A.T,
    "skew-symmetric": lambda A: A - A.T,
}


@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("field", ["real", "integer"])
@pytest.mark.parametrize("sparse", [True, False])
def test_matrix_market_is_read_as_scipy_wrote_it(tmp_path, symmetry, field, sparse):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 9)) if field == "real" else rng.integers(-5, 6, size=(9, 9))
    A = SYMMETRIES[symmetry](A * (rng.random((9, 9)) < 0.5))
    stored = sp.coo_matrix(A) if sparse else A
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, stored, comment="1\n2", field=field, symmetry=symmetry, precision=17)
    table = open_table(path)
    assert table.is_sparse == sparse
    np.testing.assert_array_equal(dense(table.values), A)
    path.write_text("%%MatrixMarket matrix coordinate real general\n\n2 2\t2\n1 1 2.5\n\n1 1 1")
    np.testing.assert_array_equal(dense(open_table(path).values), [[3.5, 0], [0, 0]])
    scipy.io.mmwrite(path, sp.coo_matrix(np.eye(3)), field="pattern")
    np.testing.assert_array_equal(dense(open_table(path).values), np.eye(3))


@pytest.fixture
def h5(tmp_path):
    """A file with the given arrays."""

    def make(arrays, **layout):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for place, values in arrays.items():
                file.create_dataset(place, data=values, **(layout if np.ndim(values) == 2 else {}))
        return tmp_path / "a.h5"

    return make


def test_labels_and_sample_names_may_be_arrays_of_their_own(h5):
    kinds, ids = [f"kind{i % 3}" for i in range(20)], [f"s{i}" for i in range(20)]
    path = h5({"values": X, "y": Y[:, np.newaxis], "kinds": kinds, "who": ids})
    np.testing.assert_array_equal(open_table(path).labels, Y)
    roles = {"labels": "kinds", "identifier": "who", "drop": ["x0"]}
    whole, [block] = open_table(path, **roles), scan_table(path, **roles).tables()
    for table in (whole, block):
        assert table.labels.tolist() == kinds
        assert table.ids.tolist() == ids
        np.testing.assert_array_equal(table.values, X[:, 1:])
    np.testing.assert_array_equal(open_table(path, labels="x1").values, X[:, [0, 2, 3, 4, 5]])
    path = h5({"X": X, "y": np.arange(25)})
    for read in (open_table, lambda path: list(scan_table(path).tables())):
        with pytest.raises(DataError, match="20 entries"):
            read(path)


@pytest.mark.parametrize("opened", [open_table, scan_table])
def test_values_in_other_files_are_not_followed(h5, opened, tmp_path):
    path = h5({"X": X})
    path.rename(other := tmp_path / "other.h5")
    layout = h5py.VirtualLayout(shape=X.shape, dtype="f8")
    layout[:] = h5py.VirtualSource(other, "X", shape=X.shape)
    external = [(str(other), 0, X.nbytes)]
    for write in (
        lambda file: file.update({"group/Y": h5py.ExternalLink("other.h5", "/X")}),
        lambda file: file.create_virtual_dataset("group/Y", layout),
        lambda file: file.create_dataset("group/Y", X.shape, "f8", external=external),
    ):
        for name in ("a.h5", "a.h5ad"):
            with h5py.File(tmp_path / name, "w") as file:
                file["X"] = X
                write(file)
            with pytest.raises(DataError, match=r"'group/Y' points to another file"):
                opened(tmp_path / name)
