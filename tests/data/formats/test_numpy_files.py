"""NumPy arrays and archives."""

import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError

X = np.random.default_rng(0).normal(size=(12, 5))
Y = np.arange(12) % 3


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "i1", "<u4", "<i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_real_kind_of_array_is_read(tmp_path, dtype, order):
    stored = np.array(np.abs(10 * X), dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", stored)
    table = open_table(tmp_path / "a.npy")
    assert table.X.dtype == (np.float32 if dtype in ("<f4", "<f2") else np.float64)
    assert table.X.flags.writeable
    np.testing.assert_array_equal(table.X, stored.astype(np.float64))
    assert list(table.feature_names) == ["x0", "x1", "x2", "x3", "x4"]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_header_is_read(tmp_path, version):
    with (tmp_path / "a.npy").open("wb") as stream:
        np.lib.format.write_array(stream, X, version=version)
    np.testing.assert_array_equal(open_table(tmp_path / "a.npy").X, X)
    blocks = open_blocks(tmp_path / "a.npy").blocks()
    np.testing.assert_array_equal(np.vstack([block.values for block in blocks]), X)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_gives_values_labels_and_names(tmp_path, save):
    names = np.array(list("abcde"))
    samples = np.array([f"s{i}" for i in range(12)])
    save(tmp_path / "a.npz", X=X, y=Y, feature_names=names, sample_names=samples, junk=X)
    table = open_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.labels, Y)
    assert list(table.feature_names) == list("abcde")
    assert list(table.sample_names) == list(samples)


def test_the_only_matrix_of_an_archive_will_do(tmp_path):
    np.savez(tmp_path / "a.npz", values=X, kinds=np.array(["u", "v"] * 6))
    table = open_table(tmp_path / "a.npz", labels="kinds")
    np.testing.assert_array_equal(table.X, X)
    assert list(table.labels) == ["u", "v"] * 6


def test_a_column_of_a_bare_matrix_can_be_the_labels(tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([X, Y]))
    table = open_table(tmp_path / "a.npy", labels="x5", drop=["x0"])
    np.testing.assert_array_equal(table.X, X[:, 1:])
    np.testing.assert_array_equal(table.labels, Y)
    assert table.labels.dtype == np.int64


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dia", "bsr"])
def test_every_format_that_scipy_saves_is_read_as_the_matrix_it_is(
    tmp_path, layout, kind, compressed
):
    M = np.diag(np.arange(1.0, 7)) + np.diag(np.ones(4), 2) + np.diag(np.ones(5), -1)
    for dense in (M, M[:4], M[:, :4]):
        stored = getattr(sp, f"{layout}_{kind}")(dense)
        sp.save_npz(tmp_path / "a.npz", stored, compressed=compressed)
        table = open_table(tmp_path / "a.npz")
        assert table.X.format == "csr"
        np.testing.assert_array_equal(table.X.toarray(), dense)


def test_a_sparse_format_that_scipy_does_not_save_is_refused_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", format=b"lil", shape=[2, 2], data=np.ones((2, 2)))
    with pytest.raises(DataError, match="'lil'"):
        open_table(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", format=b"dia", shape=[2, 2], data=np.ones((2, 2)))
    with pytest.raises(DataError, match="with all its parts"):
        open_table(tmp_path / "a.npz")


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_a_sparse_matrix_stored_by_scipy_stays_sparse(tmp_path, container):
    sparse = container(np.where(X > 0.5, X, 0))
    sp.save_npz(tmp_path / "a.npz", sparse)
    table = open_table(tmp_path / "a.npz")
    assert table.is_sparse
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), sparse.toarray())


def test_indices_that_point_outside_are_refused(tmp_path):
    sparse = sp.csr_matrix(np.eye(3))
    parts = {"data": sparse.data, "indptr": sparse.indptr, "shape": [3, 3], "format": b"csr"}
    np.savez(tmp_path / "a.npz", indices=np.array([0, 1, 10**6], dtype=np.int32), **parts)
    with pytest.raises(DataError, match=r"must make a matrix of 3 x 3; they do not .*must be < 3"):
        open_table(tmp_path / "a.npz")


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_wild_row_pointers_before_a_last_one_of_zero_are_refused(tmp_path, layout):
    """SciPy takes them for a matrix without entries, and follows them later."""
    for wild in (10**9, -5, 2):
        pointers = np.array([0, wild, 0, 0], dtype=np.int32)
        data = np.ones((3, 1, 1)) if layout == "bsr" else np.ones(3)
        parts = {"data": data, "indices": np.arange(3, dtype=np.int32), "indptr": pointers}
        np.savez(tmp_path / "a.npz", shape=[3, 3], format=layout.encode(), **parts)
        with pytest.raises(DataError, match="must make a matrix of"):
            open_table(tmp_path / "a.npz")


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=Y.astype(object))
    with pytest.raises(DataError, match="never loaded"):
        open_table(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", X.astype(object))
    with pytest.raises(DataError, match="never loaded"):
        open_table(tmp_path / "a.npy")


def test_an_archive_with_two_matrices_is_ambiguous(tmp_path):
    np.savez(tmp_path / "a.npz", first=X, second=X)
    with pytest.raises(DataError, match=r"holds 'first', 'second'\."):
        open_table(tmp_path / "a.npz")


@pytest.mark.parametrize("big", [2**53 + 1, -(2**53) - 1, -(2**63)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_whole_numbers_that_float64_cannot_hold_are_refused_by_column(tmp_path, big, order):
    values = np.array([[1, 2, 2**53], [1, big, 2]], order=order)
    told = r"2\*\*53 .* larger ones in 'x1'"
    np.savez(tmp_path / "a.npz", X=values)
    np.save(tmp_path / "a.npy", values)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataError, match=told):
            open_table(tmp_path / name)
        np.testing.assert_array_equal(
            open_table(tmp_path / name, drop=["x1"]).X, [[1, 2.0**53], [1, 2]]
        )
        assert open_table(tmp_path / name, labels="x1").labels.tolist() == [2, big]
    with pytest.raises(DataError, match=told):
        list(open_blocks(tmp_path / "a.npy").blocks())
    blocks = list(open_blocks(tmp_path / "a.npy", drop=["x1"]).blocks())
    np.testing.assert_array_equal(blocks[0].values, [[1, 2.0**53], [1, 2]])


def test_large_integers_of_a_sparse_matrix_are_refused(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_matrix(np.array([[2**53 + 1, 0], [0, 1]])))
    with pytest.raises(DataError, match=r"2\*\*53"):
        open_table(tmp_path / "a.npz")


def test_a_declared_size_is_believed_only_within_file_and_limit(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((1000, 1000)))
    with pytest.raises(DataError, match=r"1000 x 1000\) needs 8\.0 MB.*--max-size"):
        open_table(tmp_path / "a.npy", max_bytes=1_000_000)
    stored = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "b.npy").write_bytes(stored[:-8])
    with pytest.raises(DataError, match="truncated or damaged"):
        open_table(tmp_path / "b.npy")


def test_small_integers_are_judged_by_the_size_they_will_have(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000), dtype=np.uint8))
    with pytest.raises(DataError, match=r"needs 8\.0 MB"):
        open_table(tmp_path / "a.npz", max_bytes=2_000_000)


def test_members_that_are_no_arrays_are_passed_over(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("../evil.txt", "hello")
    np.testing.assert_array_equal(open_table(tmp_path / "a.npz").X, X)


@pytest.mark.parametrize("version", [(2, 0), (3, 0)])
@pytest.mark.parametrize("read", [open_table, open_blocks])
def test_a_header_that_declares_gigabytes_is_not_taken_for_a_large_table(tmp_path, version, read):
    path = tmp_path / "a.npy"
    with path.open("wb") as stream:
        np.lib.format.write_array(stream, np.ones((2, 3)), version=version)
    read(path)
    content = bytearray(path.read_bytes())
    content[8:12] = b"\xff" * 4
    path.write_bytes(content)
    with pytest.raises(DataError, match="must have at most 10000 bytes; it declares 4294967295"):
        read(path)
