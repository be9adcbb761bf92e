"""MATLAB files: what scipy writes (5 to 7), and the layout of 7.3."""

import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from keepers.datasets import open_table
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 6)) * (RNG.random((20, 6)) < 0.6)


def _dense(values):
    return values.toarray() if sp.issparse(values) else np.asarray(values, dtype=float)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        X,
        X.astype(np.float32),
        (10 * X).astype(np.int16),
        np.abs(10 * X).astype(np.uint8),
        X > 0,
        (1e6 * X).astype(np.int64),
        sp.csc_matrix(X),
    ],
    ids=lambda values: f"{type(values).__name__}-{values.dtype}",
)
def test_what_scipy_writes_is_read_back_exactly(tmp_path, compressed, values):
    path = tmp_path / "a.mat"
    content = {"note": "text", "fea": values, "s": {"a": 1}, "gnd": np.arange(20.0)[:, None]}
    scipy.io.savemat(path, content, do_compression=compressed)
    table = open_table(path)
    np.testing.assert_array_equal(_dense(table.X), _dense(values))
    assert table.is_sparse == sp.issparse(values)
    np.testing.assert_array_equal(table.labels, np.arange(20))
    assert table.labels.dtype == np.int64


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(20)[:, None],
        np.arange(20, dtype=np.uint8)[None],
        np.array([f"kind{i % 3}ü" for i in range(20)], dtype=object),
        np.array([f"k{i}" for i in range(20)]),
        sp.csc_matrix(np.arange(20.0)[:, None]),
    ],
    ids=["column", "row", "cells", "chars", "sparse"],
)
@pytest.mark.parametrize("name", ["y", "Y", "gnd", "label", "labels"])
def test_labels_in_the_usual_shapes_and_names(tmp_path, labels, name):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": X, name: labels})
    expected = labels.toarray() if sp.issparse(labels) else np.asarray(labels)
    assert open_table(path).labels.tolist() == expected.ravel().tolist()


def test_a_variable_can_be_named_as_labels(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": X, "y": np.zeros(20), "classes": np.arange(20)})
    np.testing.assert_array_equal(open_table(path, labels="classes").labels, np.arange(20))


def test_the_only_matrix_will_do_and_two_are_ambiguous(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"M": X, "v": np.arange(3)})
    np.testing.assert_array_equal(open_table(path).X, X)
    scipy.io.savemat(path, {"M": X, "N": X})
    with pytest.raises(DataError, match="this one holds 'M', 'N'"):
        open_table(path)


def test_complex_values_are_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"X": X + 1j})
    with pytest.raises(DataError, match="complex"):
        open_table(tmp_path / "a.mat")


def test_a_large_variable_is_refused_before_it_is_expanded(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": np.zeros((2000, 500))}, do_compression=True)
    assert path.stat().st_size < 50_000
    with pytest.raises(DataError, match=r"2000 x 500\) needs 8\.0 MB.*--max-size"):
        open_table(path, max_bytes=5_000_000)
    many = sp.csc_matrix(np.ones((2000, 500)))
    scipy.io.savemat(path, {"X": many}, do_compression=True)
    with pytest.raises(DataError, match="expanded, needs"):
        open_table(path, max_bytes=5_000_000)


def test_bytes_in_the_other_order_are_understood(tmp_path):
    """One variable X = [1 3; 2 4] written by hand as a big-endian machine would."""
    flags = struct.pack(">IIII", 6, 8, 6, 0)
    dimensions = struct.pack(">IIii", 5, 8, 2, 2)
    name = struct.pack(">HH4s", 1, 1, b"X\0\0\0")
    values = struct.pack(">II4d", 9, 32, 1, 2, 3, 4)
    body = flags + dimensions + name + values
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(header + struct.pack(">II", 14, len(body)) + body)
    np.testing.assert_array_equal(open_table(tmp_path / "a.mat").X, [[1, 3], [2, 4]])


def _save_73(path, **variables):
    """As MATLAB's save -v7.3: columns as rows, classes as attributes, 512 bytes before all."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in variables.items():
            if sp.issparse(values):
                group = file.create_group(name)
                group.attrs["MATLAB_sparse"] = np.uint64(values.shape[0])
                group["data"], group["ir"] = values.data, values.indices.astype(np.uint64)
                group["jc"] = values.indptr.astype(np.uint64)
            elif values.dtype == object:
                held = file.require_group("#refs#")
                cells = []
                for at, text in enumerate(values):
                    codes = np.array([[ord(c)] for c in text], dtype=np.uint16)
                    held[f"c{at}"] = codes
                    cells.append(held[f"c{at}"].ref)
                file.create_dataset(name, data=np.array([cells], dtype=h5py.ref_dtype))
                file[name].attrs["MATLAB_class"] = np.bytes_(b"cell")
            else:
                file.create_dataset(name, data=values.T, chunks=True, compression="gzip")
                file[name].attrs["MATLAB_class"] = np.bytes_(b"double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


@pytest.mark.parametrize("values", [X, sp.csc_matrix(X)], ids=["dense", "sparse"])
def test_version_73_is_read_the_right_way_round(tmp_path, values):
    _save_73(tmp_path / "a.mat", fea=values, gnd=np.arange(20.0)[:, None])
    table = open_table(tmp_path / "a.mat")
    np.testing.assert_array_equal(_dense(table.X), X)
    np.testing.assert_array_equal(table.labels, np.arange(20))


def test_version_73_with_a_cell_array_of_labels(tmp_path):
    kinds = np.array([f"kind{i % 3}ü" for i in range(20)], dtype=object)
    _save_73(tmp_path / "a.mat", X=X, labels=kinds)
    assert list(open_table(tmp_path / "a.mat").labels) == list(kinds)


def test_values_that_lie_in_another_file_are_not_read(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["X"] = h5py.ExternalLink("other.h5", "X")
    with pytest.raises(DataError, match="link to elsewhere"):
        open_table(tmp_path / "a.mat")
    X.astype("<f8").tofile(tmp_path / "raw")
    with h5py.File(tmp_path / "a.mat", "w") as file:
        place = [(str(tmp_path / "raw"), 0, X.nbytes)]
        file.create_dataset("X", X.shape, "<f8", external=place)
    with pytest.raises(DataError, match="points to other files"):
        open_table(tmp_path / "a.mat")


def test_a_declared_size_in_version_73_is_checked_first(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file.create_dataset("X", (10**6, 10**6), "<f8", chunks=(10, 10))
    with pytest.raises(DataError, match="more than the"):
        open_table(tmp_path / "a.mat")


def _damaged_pointers(values, wild):
    unsound = sp.csc_matrix(values)
    unsound.indptr = unsound.indptr.copy()
    unsound.indptr[1:] = 0
    unsound.indptr[1] = wild
    return unsound


@pytest.mark.parametrize("wild", [10**9, -5, 3])
@pytest.mark.parametrize("save", ["5", "7.3"])
@pytest.mark.parametrize("variable", ["X", "y"])
def test_wild_column_pointers_before_a_last_one_of_zero_are_refused(tmp_path, save, wild, variable):
    """SciPy takes them for a matrix without entries, and follows them later."""
    path = tmp_path / "a.mat"
    sound = {"X": X, "y": sp.csc_matrix(np.arange(20.0)[:, None])}
    values = np.arange(20.0).reshape(10, 2) if variable == "y" else X
    if save == "7.3":
        _save_73(path, **(sound | {variable: _damaged_pointers(values, wild)}))
    else:
        stored = sp.csc_matrix(values)
        scipy.io.savemat(path, sound | {variable: stored})
        content = path.read_bytes()
        before = stored.indptr.astype("<i4").tobytes()
        after = _damaged_pointers(values, wild).indptr.astype("<i4").tobytes()
        assert content.count(before) == 1
        path.write_bytes(content.replace(before, after))
    with pytest.raises(DataError, match="must make a matrix of"):
        open_table(path)


@pytest.mark.parametrize("save", ["5", "7.3"])
def test_sparse_labels_are_held_against_the_limit_before_they_are_filled(tmp_path, save):
    path = tmp_path / "a.mat"
    labels = sp.csc_matrix((np.ones(1), (np.zeros(1, int), np.zeros(1, int))), shape=(10**8, 1))
    content = {"X": X, "y": labels}
    if save == "7.3":
        _save_73(path, **content)
    else:
        scipy.io.savemat(path, content)
    with pytest.raises(DataError, match=r"100000000 x 1\) needs 800\.0 MB"):
        open_table(path, max_bytes=10**7)


def test_space_that_matlab_reserved_for_more_entries_is_left_out(tmp_path):
    sparse = sp.csc_matrix(X)
    data, indices = np.append(sparse.data, [9, 9]), np.append(sparse.indices, [0, 0])
    with h5py.File(tmp_path / "a.mat", "w") as file:
        group = file.create_group("X")
        group.attrs["MATLAB_sparse"] = np.uint64(20)
        group["data"], group["ir"], group["jc"] = data, indices, sparse.indptr
    np.testing.assert_array_equal(open_table(tmp_path / "a.mat").X.toarray(), X)


def test_a_sparse_matrix_of_zeros_has_no_values_in_version_73(tmp_path):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["X"] = X.T
        group = file.create_group("y")
        group.attrs["MATLAB_sparse"] = np.uint64(20)
        group["jc"] = np.zeros(2, dtype=np.uint64)
    np.testing.assert_array_equal(open_table(tmp_path / "a.mat").labels, np.zeros(20))


def test_text_is_not_taken_for_the_values_in_version_73(tmp_path):
    path = tmp_path / "a.mat"
    _save_73(path, fea=X, X=np.full((20, 3), 65, dtype=np.uint16))
    with h5py.File(path, "r+") as file:
        file["X"].attrs["MATLAB_class"] = np.bytes_(b"char")
    np.testing.assert_array_equal(open_table(path).X, X)


def test_empty_cells_and_empty_labels_are_missing_labels(tmp_path):
    path = tmp_path / "a.mat"
    kinds = np.array([f"k{i % 3}" for i in range(20)], dtype=object)
    _save_73(path, X=X, y=kinds)
    with h5py.File(path, "r+") as file:
        cell = file[file["y"][0, 4]]
        del file["#refs#/c4"]
        file["#refs#/c4"] = np.zeros(2, dtype=np.uint64)
        file["#refs#/c4"].attrs["MATLAB_empty"] = np.uint8(1)
        references = file["y"][()]
        references[0, 4] = file["#refs#/c4"].ref
        file["y"][...] = references
        del cell
    with pytest.raises(DataError, match="1 of 'labels' are missing"):
        open_table(path)
    kinds[4] = ""
    scipy.io.savemat(path, {"X": X, "y": kinds})
    with pytest.raises(DataError, match="1 of 'labels' are missing"):
        open_table(path)
    with h5py.File(path, "w") as file:
        file["X"] = X[:2].T
        file["y"] = np.zeros(2, dtype=np.uint64)
        file["y"].attrs["MATLAB_empty"] = np.uint8(1)
    with pytest.raises(DataError, match="'/y' are empty"):
        open_table(path)


def test_cells_of_numbers_are_labels_and_cells_of_vectors_are_refused(tmp_path):
    path = tmp_path / "a.mat"
    numbers = np.empty(20, dtype=object)
    numbers[:] = [float(i % 3) for i in range(20)]
    scipy.io.savemat(path, {"X": X, "y": numbers})
    assert list(open_table(path).labels) == [str(i % 3) for i in range(20)]
    numbers[3] = np.array([1.0, 2.0])
    scipy.io.savemat(path, {"X": X, "y": numbers})
    with pytest.raises(DataError, match="one text or one number"):
        open_table(path)


@pytest.mark.parametrize("save", ["5", "7.3"])
def test_integers_that_float64_cannot_hold_are_refused_by_column(tmp_path, save):
    path = tmp_path / "a.mat"
    values = np.array([[1, 2], [1, 2**53 + 1], [3, 4]])
    _save_73(path, X=values) if save == "7.3" else scipy.io.savemat(path, {"X": values})
    with pytest.raises(DataError, match=r"2\*\*53 .*in 'x1'"):
        open_table(path)
    assert open_table(path, drop=["x1"]).n_features == 1


@pytest.mark.parametrize("n_lines", [2**31 - 1, 21 * 3])
def test_text_that_declares_more_lines_than_characters_is_refused_at_once(tmp_path, n_lines):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": X, "y": np.array([f"k{i:02}" for i in range(20)])})
    content = path.read_bytes()
    dimensions = struct.pack("<ii", 20, 3)
    assert content.count(dimensions) == 1
    path.write_bytes(content.replace(dimensions, struct.pack("<ii", n_lines, 0)))
    with pytest.raises(DataError, match=r"needs|declares \d+ lines|one entry each"):
        open_table(path, max_bytes=10**9)
    kinds = np.array([f"k{i:02}" for i in range(20)], dtype=object)
    scipy.io.savemat(path, {"X": X, "y": kinds})
    content = path.read_bytes()
    cell = struct.pack("<ii", 1, 3)
    assert content.count(cell) == 20
    path.write_bytes(content.replace(cell, struct.pack("<ii", n_lines, 0), 1))
    with pytest.raises(DataError, match=f"declares {n_lines} lines and has 3 characters"):
        open_table(path)
