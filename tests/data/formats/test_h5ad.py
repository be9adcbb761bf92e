"""AnnData files: the layout written by hand with h5py, and by anndata where it is installed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data import open_table, write_table
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")

RNG = np.random.default_rng(0)
X = RNG.poisson(0.7, size=(10, 6)).astype(np.float32)
CELLS = [f"cell{i}" for i in range(10)]
GENES = [f"gene{j}" for j in range(6)]
KINDS = ["b", "t", "b", "b", "t", "t", "b", "t", "b", "b"]


def _frame(file, name, index, index_name="_index", compression=None):
    group = file.create_group(name)
    group.attrs["encoding-type"] = "dataframe"
    group.attrs["_index"] = index_name
    text = h5py.string_dtype()
    group.create_dataset(index_name, data=index, dtype=text, compression=compression)
    return group


@pytest.fixture(params=["_index", "barcode"])
def index_name(request):
    return request.param


@pytest.fixture(params=[None, "gzip", "lzf"])
def compression(request):
    return request.param


@pytest.fixture(params=["array", "csr_matrix", "csc_matrix"])
def layout(request):
    return request.param


@pytest.fixture
def path(tmp_path, layout, compression, index_name):
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        if layout == "array":
            file.create_dataset("X", data=X, compression=compression)
        else:
            sparse = sp.csr_matrix(X) if layout == "csr_matrix" else sp.csc_matrix(X)
            group = file.create_group("X")
            group.attrs["encoding-type"] = layout
            group.attrs["shape"] = X.shape
            for part in ("data", "indices", "indptr"):
                values = getattr(sparse, part)
                group.create_dataset(part, data=values, compression=compression)
        obs = _frame(file, "obs", CELLS, index_name, compression)
        obs["batch"] = np.arange(10) % 2
        kind = obs.create_group("kind")
        kind["categories"], kind["codes"] = ["b", "t"], np.array([k == "t" for k in KINDS], "i1")
        for name, missing in (("holes", KINDS[0]), ("whole", None)):
            group = obs.create_group(name)
            group["values"], group["mask"] = np.arange(10), np.array([missing is not None] * 10)
        _frame(file, "var", GENES)
    return path


def test_values_names_and_labels_are_found(path, layout):
    table = open_table(path, labels="kind")
    assert table.is_sparse == (layout != "array")
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X.toarray() if table.is_sparse else table.X, X)
    assert list(table.feature_names) == GENES
    assert list(table.sample_names) == CELLS
    assert list(table.labels) == KINDS


def test_other_columns_of_obs_can_be_labels_or_names(path):
    table = open_table(path, labels="whole", identifier="batch", drop=["gene0"])
    np.testing.assert_array_equal(table.labels, np.arange(10))
    assert list(table.sample_names) == ["0", "1"] * 5
    assert list(table.feature_names) == GENES[1:]


def test_missing_labels_and_columns_are_reported(path):
    with pytest.raises(DataError, match="10 of 'holes' are missing"):
        open_table(path, labels="holes")
    with pytest.raises(DataError, match=r"no column 'kinds' in '/obs'\. Did you mean 'kind'"):
        open_table(path, labels="kinds")


def test_a_square_sparse_matrix_is_not_transposed(tmp_path):
    square = sp.csc_matrix(np.triu(np.arange(1.0, 10).reshape(3, 3)))
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csc_matrix", (3, 3)
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(square, part)
        _frame(file, "obs", list("abc"))
        _frame(file, "var", list("def"))
    np.testing.assert_array_equal(open_table(tmp_path / "a.h5ad").X.toarray(), square.toarray())


def test_repeated_gene_names_are_refused_by_name(tmp_path):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = X[:, :3]
        _frame(file, "obs", CELLS)
        _frame(file, "var", ["p", "q", "p"])
    with pytest.raises(DataError, match="more than once: 'p'"):
        open_table(tmp_path / "a.h5ad")


@pytest.mark.parametrize("absent", ["X", "obs", "var"])
def test_an_incomplete_file_is_refused(tmp_path, absent):
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = X
        _frame(file, "obs", CELLS)
        _frame(file, "var", GENES)
        del file[absent]
    with pytest.raises(DataError, match=f"has no '{absent}'"):
        open_table(tmp_path / "a.h5ad")


def test_a_damaged_store_of_text_is_refused_instead_of_read_for_ever(tmp_path):
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = X
        _frame(file, "obs", CELLS)
        _frame(file, "var", GENES)
    content = bytearray(path.read_bytes())
    heap = content.find(b"GCOL")
    # Behind the last object stands the free space: index 0 and how much is left.
    at = heap + 16
    while (index := int.from_bytes(content[at : at + 2], "little")) != 0:
        at += 16 + -(-int.from_bytes(content[at + 8 : at + 16], "little") // 8) * 8
    assert index == 0
    content[at + 8 : at + 16] = bytes(8)
    path.write_bytes(content)
    with pytest.raises(DataError, match="store of text is damaged"):
        open_table(path)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_text_that_claims_to_be_longer_than_the_file_is_refused(tmp_path, compression):
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = X
        obs = _frame(file, "obs", CELLS, compression=compression)
        _frame(file, "var", GENES)
        names = obs["_index"]
        if compression:
            import zlib

            _, chunk = names.id.read_direct_chunk((0,))
            records = bytearray(zlib.decompress(chunk))
            records[32:36] = b"\xff\xff\xff\xff"
            names.id.write_direct_chunk((0,), zlib.compress(bytes(records)))
        else:
            offset = names.id.get_offset()
    if not compression:
        content = bytearray(path.read_bytes())
        content[offset + 32 : offset + 36] = b"\xff\xff\xff\xff"
        path.write_bytes(content)
    with pytest.raises(DataError, match="the file can hold"):
        open_table(path)


@pytest.mark.parametrize("sparse", [True, False])
def test_anndata_agrees_in_both_directions(tmp_path, sparse):
    anndata = pytest.importorskip("anndata")
    values = sp.csr_matrix(X) if sparse else X
    obs = pd.DataFrame({"kind": pd.Categorical(KINDS)}, index=CELLS)
    written = anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=GENES))
    written.write_h5ad(tmp_path / "theirs.h5ad")
    table = open_table(tmp_path / "theirs.h5ad", labels="kind")
    np.testing.assert_array_equal(table.X.toarray() if sparse else table.X, X)
    assert list(table.labels) == KINDS
    write_table(tmp_path / "ours.h5ad", values, GENES, CELLS, KINDS, label_name="kind")
    read = anndata.read_h5ad(tmp_path / "ours.h5ad")
    np.testing.assert_array_equal(read.X.toarray() if sparse else read.X, X)
    assert list(read.obs_names) == CELLS
    assert list(read.obs["kind"]) == KINDS
