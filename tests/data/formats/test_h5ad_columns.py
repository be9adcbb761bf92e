"""Some variables of an AnnData file: the same as anndata's own subset, in the same types."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.formats import h5ad_columns
from keepers.data.formats.h5ad_columns import copy_h5ad_columns
from keepers.data.table_files import open_table, write_selected
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")

N_CELLS, N_GENES = 30, 12
KEPT = [1, 4, 5, 11]
NAMES = [f"gene{at}" for at in KEPT]


def _full(layout, dtype):
    """An object with something in every place."""
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.8, size=(N_CELLS, N_GENES)).astype(dtype)

    def stored(values):
        return values if layout == "array" else sp.csr_matrix(values).asformat(layout)

    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["t", "b", "t"] * 10, categories=["b", "t", "unused"]),
            "order": pd.Categorical([3, 1, 2] * 10, ordered=True),
            "n": pd.array([1, None, 3] * 10, dtype="Int64"),
            "word": [f"w{at}" for at in range(N_CELLS)],
            "flag": np.arange(N_CELLS) % 2 == 0,
        },
        index=[f"cell{at}" for at in range(N_CELLS)],
    )
    var = pd.DataFrame(
        {
            "chromosome": pd.Categorical(["x", "y", "z"] * 4),
            "length": np.arange(N_GENES, dtype=np.int64) * 1000,
            "mito": pd.array([True, False, None] * 4, dtype="boolean"),
            "symbol": [f"s{at}" for at in range(N_GENES)],
        },
        index=[f"gene{at}" for at in range(N_GENES)],
    )
    full = anndata.AnnData(stored(counts + 1), obs=obs, var=var)
    full.raw = full.copy()
    full.X = stored(counts)
    full.layers["doubled"] = stored(2 * counts)
    full.layers["dense"] = counts.astype(np.float32)
    full.obsm["X_pca"] = rng.standard_normal((N_CELLS, 3))
    full.obsm["frame"] = pd.DataFrame({"a": np.arange(N_CELLS)}, index=obs.index)
    full.obsp["distances"] = sp.csr_matrix(np.eye(N_CELLS))
    full.varm["PCs"] = rng.standard_normal((N_GENES, 3))
    full.varm["sparse"] = sp.csr_matrix(rng.poisson(1.0, size=(N_GENES, 5)))
    full.varm["columns"] = sp.csc_matrix(rng.poisson(1.0, size=(N_GENES, 5)))
    full.varm["frame"] = pd.DataFrame({"b": np.arange(N_GENES)}, index=var.index)
    full.varp["dense"] = rng.standard_normal((N_GENES, N_GENES))
    full.varp["sparse"] = sp.csr_matrix(rng.poisson(0.5, size=(N_GENES, N_GENES)))
    full.varp["columns"] = sp.csc_matrix(rng.poisson(0.5, size=(N_GENES, N_GENES)))
    full.uns["note"] = {"text": "kept", "number": 3, "list": np.arange(4)}
    return full


def _subset(full, names):
    """As anndata takes it, but categories that do not occur stay."""
    with pytest.importorskip("anndata").settings.override(remove_unused_categories=False):
        return full[:, names].copy()


def _assert_same(found, expected):
    """Values, types and names of all parts."""
    pd.testing.assert_frame_equal(found.obs, expected.obs)
    pd.testing.assert_frame_equal(found.var, expected.var)
    for holder in ("layers", "obsm", "obsp", "varm", "varp"):
        ours, theirs = getattr(found, holder), getattr(expected, holder)
        assert set(ours) == set(theirs)
        for name in theirs:
            _assert_values(ours[name], theirs[name])
    _assert_values(found.X, expected.X)
    assert (found.raw is None) == (expected.raw is None)
    if expected.raw is not None:
        _assert_values(found.raw.X, expected.raw.X)
        pd.testing.assert_frame_equal(found.raw.var, expected.raw.var)
    assert set(found.uns) == set(expected.uns)


def _assert_values(ours, theirs):
    if isinstance(theirs, pd.DataFrame):
        pd.testing.assert_frame_equal(ours, theirs)
        return
    assert ours.dtype == theirs.dtype
    assert sp.issparse(ours) == sp.issparse(theirs)
    if sp.issparse(theirs):
        assert ours.format == theirs.format
        assert ours.has_sorted_indices or not theirs.has_sorted_indices
        ours, theirs = ours.toarray(), theirs.toarray()
    np.testing.assert_array_equal(ours, theirs)  # copied


@pytest.fixture(params=["array", "csr", "csc"])
def layout(request):
    return request.param


@pytest.mark.parametrize(
    ("dtype", "compression"), [("int64", None), ("float32", "gzip"), ("int64", "lzf")]
)
@pytest.mark.parametrize("kept", [KEPT, KEPT[::-1], [3]])
def test_all_of_it_is_that_of_anndata(tmp_path, layout, dtype, compression, kept):
    anndata = pytest.importorskip("anndata")
    full = _full(layout, dtype)
    full.write_h5ad(tmp_path / "full.h5ad", compression=compression)
    names = [f"gene{at}" for at in kept]
    copy_h5ad_columns(tmp_path / "full.h5ad", tmp_path / "kept.h5ad", names)
    found = anndata.read_h5ad(tmp_path / "kept.h5ad")
    _assert_same(found, _subset(anndata.read_h5ad(tmp_path / "full.h5ad"), names))
    assert found.uns["note"]["list"].tolist() == [0, 1, 2, 3]
    with h5py.File(tmp_path / "kept.h5ad") as file:
        node = file["X"] if layout == "array" else file["X/data"]
        assert node.compression == compression
        assert file.attrs["encoding-type"] == "anndata"


def test_blocks_of_any_size_give_the_same(tmp_path, layout, monkeypatch):
    anndata = pytest.importorskip("anndata")
    _full(layout, "int64").write_h5ad(tmp_path / "full.h5ad")
    copy_h5ad_columns(tmp_path / "full.h5ad", tmp_path / "once.h5ad", NAMES)
    monkeypatch.setattr(h5ad_columns, "BLOCK_BYTES", 64)
    monkeypatch.setattr(h5ad_columns, "STARTS_AT_ONCE", 7)
    monkeypatch.setattr(h5ad_columns, "bands", lambda rows, node: [(0, 7), (7, 8), (8, N_CELLS)])
    copy_h5ad_columns(tmp_path / "full.h5ad", tmp_path / "many.h5ad", NAMES)
    once, many = (anndata.read_h5ad(tmp_path / f"{name}.h5ad") for name in ("once", "many"))
    _assert_same(many, once)


def test_a_file_of_anndata_before_07_keeps_everything(tmp_path):
    """The one that scanpy carries: frames, obsm and varm as records, categories in uns."""
    scanpy = pytest.importorskip("scanpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scanpy, about the age of the file
        expected = scanpy.datasets.pbmc68k_reduced()
        source = next(Path(scanpy.datasets.__file__).parent.glob("*pbmc68k*.h5ad"))
        names = list(expected.var_names[10:40])
        copy_h5ad_columns(source, tmp_path / "kept.h5ad", names)
        found = scanpy.read_h5ad(tmp_path / "kept.h5ad")
    _assert_same(found, _subset(expected, names))
    assert list(found.obs["bulk_labels"].cat.categories) == list(
        expected.obs["bulk_labels"].cat.categories
    )


def _plain(path, **arrays):
    """A file without anndata: X, obs and var, and what else is given."""
    with h5py.File(path, "w") as file:
        file["X"] = np.arange(12.0).reshape(3, 4)
        for name, index in (("obs", list("abc")), ("var", list("wxyz"))):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = index
        for name, values in arrays.items():
            file[name.replace("__", "/")] = values
    return path


def test_categories_of_anndata_07_are_found_by_their_references(tmp_path):
    path = _plain(tmp_path / "a.h5ad")
    with h5py.File(path, "r+") as file:
        for frame, n in (("obs", 3), ("var", 4)):
            file[f"{frame}/kind"] = np.arange(n, dtype=np.int8) % 2
            file[f"{frame}/__categories/kind"] = ["p", "q"]
            reference = file[f"{frame}/__categories/kind"].ref
            file[f"{frame}/kind"].attrs["categories"] = reference
    copy_h5ad_columns(path, tmp_path / "b.h5ad", ["z", "w"])
    with h5py.File(tmp_path / "b.h5ad") as file:
        assert file["var/kind"][()].tolist() == [1, 0]
        for frame in ("obs", "var"):
            target = file[file[frame]["kind"].attrs["categories"]]
            assert target.name == f"/{frame}/__categories/kind"
            assert target.asstr()[()].tolist() == ["p", "q"]
        np.testing.assert_array_equal(file["X"], [[3, 0], [7, 4], [11, 8]])


def test_links_to_other_files_are_not_followed(tmp_path):
    other = _plain(tmp_path / "other.h5ad")
    path = _plain(tmp_path / "a.h5ad")
    with h5py.File(path, "r+") as file:
        file["uns/elsewhere"] = h5py.ExternalLink(other.name, "/X")
    copy_h5ad_columns(path, tmp_path / "b.h5ad", ["x"])
    with h5py.File(tmp_path / "b.h5ad") as file:
        assert isinstance(file["uns"].get("elsewhere", getlink=True), h5py.ExternalLink)
    with h5py.File(path, "r+") as file:
        file["layers/elsewhere"] = h5py.ExternalLink(other.name, "/X")
    with pytest.raises(DataError, match="must lie in the file itself"):
        copy_h5ad_columns(path, tmp_path / "c.h5ad", ["x"])


def test_what_cannot_be_cut_is_refused_by_name(tmp_path):
    path = _plain(tmp_path / "a.h5ad", varm__list__node0=np.arange(4))
    with h5py.File(path, "r+") as file:
        file["varm/list"].attrs["encoding-type"] = "awkward-array"
    with pytest.raises(DataError, match="'/varm/list' is stored as 'awkward-array'"):
        copy_h5ad_columns(path, tmp_path / "b.h5ad", ["x"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"layers__short": np.zeros((3, 3))}, r"each of the 4 variables; its shape is \(3, 3\)"),
        ({"layers__flat": np.zeros(4)}, r"'/layers/flat' must have an entry"),
        ({"varm__short": np.zeros((3, 2))}, r"its shape is \(3, 2\)"),
    ],
)
def test_arrays_of_another_length_are_refused(tmp_path, arrays, message):
    path = _plain(tmp_path / "a.h5ad", **arrays)
    table = open_table(path)
    with pytest.raises(DataError, match=rf"a\.h5ad: .*{message}"):
        write_selected(tmp_path / "b.h5ad", path, table, table.feature_names[[1]])
    assert not (tmp_path / "b.h5ad").exists()


def _with_sparse_layer(path, indices, indptr=(0, 2, 3, 4)):
    with h5py.File(path, "r+") as file:
        group = file.create_group("layers/held")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (3, 4)
        group["data"], group["indices"] = np.ones(4), np.array(indices)
        group["indptr"] = np.array(indptr)
    return path


@pytest.mark.parametrize("indices", [[0, 4, 1, 2], [0, -1, 1, 2]])
def test_indices_outside_are_refused(tmp_path, indices):
    path = _with_sparse_layer(_plain(tmp_path / "a.h5ad"), indices)
    with pytest.raises(DataError, match="must lie from 0 to 3"):
        copy_h5ad_columns(path, tmp_path / "b.h5ad", ["x"])


def test_falling_pointers_are_refused(tmp_path):
    path = _with_sparse_layer(_plain(tmp_path / "a.h5ad"), [0, 1, 1, 2], (0, 3, 2, 4))
    with pytest.raises(DataError, match="must rise"):
        copy_h5ad_columns(path, tmp_path / "b.h5ad", ["x"])


def test_false_text_lengths_anywhere_are_refused_before_anything_is_copied(tmp_path):
    path = _plain(tmp_path / "a.h5ad", uns__words=["one", "two"])
    with h5py.File(path) as file:
        offset = file["uns/words"].id.get_offset()
    content = bytearray(path.read_bytes())
    content[offset : offset + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    with pytest.raises(DataError, match="the file can hold"):
        copy_h5ad_columns(path, tmp_path / "b.h5ad", ["x"])


def test_a_damaged_group_ends_in_a_sentence(tmp_path):
    path = _plain(tmp_path / "a.h5ad")
    table = open_table(path)
    with h5py.File(path, "r+") as file:
        values = np.arange(12.0).reshape(3, 4)
        node = file.create_dataset("layers/packed", data=values, compression="gzip")
        node.id.write_direct_chunk((0, 0), b"no such stream")
    with pytest.raises(DataError, match=r"a\.h5ad"):
        write_selected(tmp_path / "b.h5ad", path, table, table.feature_names[[1]])
    assert not (tmp_path / "b.h5ad").exists()


def test_a_file_that_changed_is_refused(tmp_path):
    path = _plain(tmp_path / "a.h5ad")
    with pytest.raises(DataError, match="no variable 'gone'; it was changed"):
        copy_h5ad_columns(path, tmp_path / "b.h5ad", ["gone"])


def test_other_formats_get_the_table_as_before(tmp_path):
    path = _plain(tmp_path / "a.h5ad", layers__held=np.zeros((3, 4)))
    table = open_table(path, drop=["w"])
    write_selected(tmp_path / "b.csv", path, table, table.feature_names[[1]])
    assert open_table(tmp_path / "b.csv", identifier="sample").X.ravel().tolist() == [2, 6, 10]
    write_selected(tmp_path / "b.h5ad", path, table, table.feature_names[[1]])
    kept = open_table(tmp_path / "b.h5ad")
    assert list(kept.feature_names) == ["y"]
    assert kept.X.ravel().tolist() == [2, 6, 10]
    with h5py.File(tmp_path / "b.h5ad") as file:
        assert file["layers/held"].shape == (3, 1)
