"""AnnData in Zarr: as anndata writes it, and as the layout says, in both versions of Zarr."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.formats.zarr_anndata import _CODECS, _codec_names
from keepers.data.table_files import is_table_folder
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

zarr = pytest.importorskip("zarr")

X = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0], [0, 0, 6]], dtype=np.float32)
GENES, CELLS = ["g1", "g2", "g3"], ["c1", "c2", "c3", "c4"]
KINDS = {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_matrix}
FORMATS = pytest.mark.parametrize("version", [2, 3])


def array(group, name, values, **settings):
    values = np.asarray(values)
    group.create_array(name, shape=values.shape, dtype=values.dtype, **settings)[...] = values


def frame(store, name, index, columns):
    group = store.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "_index": "_index", "column-order": []})
    for key, values in {"_index": index, **columns}.items():
        array(group, key, values)


@pytest.fixture
def stored(tmp_path):
    """A folder with the layout of anndata, made with zarr alone."""

    def make(kind="csr", version=3, name="a.zarr"):
        store = zarr.create_group(str(tmp_path / name), zarr_format=version)
        matrix = KINDS[kind](X)
        if kind == "dense":
            array(store, "X", matrix, chunks=(2, 2))
        else:
            group = store.create_group("X")
            group.attrs.update({"encoding-type": f"{kind}_matrix", "shape": list(X.shape)})
            for part in ("data", "indices", "indptr"):
                array(group, part, getattr(matrix, part))
        # Text of fixed length, which every version of zarr stores.
        frame(store, "obs", np.array(CELLS, "S2"), {"y": np.array([0, 1, 0, 1])})
        frame(store, "var", np.array(GENES, "S2"), {})
        return tmp_path / name

    return make


@FORMATS
@pytest.mark.filterwarnings("ignore")  # zarr's, of fixed-length text
@pytest.mark.parametrize("kind", KINDS)
def test_values_names_and_labels_are_read(stored, kind, version):
    path = stored(kind, version)
    assert is_table_folder(path)
    table = open_table(path, labels="y")
    assert table.is_sparse == (kind != "dense")
    np.testing.assert_array_equal(table.X.toarray() if table.is_sparse else table.X, X)
    assert table.X.dtype == np.float32
    assert table.feature_names.tolist() == GENES
    assert table.sample_names.tolist() == CELLS
    assert table.labels.tolist() == [0, 1, 0, 1]
    assert table.name == "a"


@FORMATS
@pytest.mark.filterwarnings("ignore")  # anndata's, of its own versions
@pytest.mark.parametrize("kind", KINDS)
def test_what_anndata_wrote_is_read(tmp_path, kind, version):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["u", "v", None, "u"]),
            "text": ["p", "q", "r", "s"],
            "nullable": pd.array([1, None, 3, 4], dtype="Int64"),
        },
        index=CELLS,
    )
    adata = anndata.AnnData(KINDS[kind](X), obs, pd.DataFrame(index=GENES))
    anndata.settings.zarr_write_format = version
    adata.write_zarr(tmp_path / "a.zarr")
    table = open_table(tmp_path / "a.zarr", labels="text")
    np.testing.assert_array_equal(table.X.toarray() if table.is_sparse else table.X, X)
    assert table.feature_names.tolist() == GENES
    assert table.sample_names.tolist() == CELLS
    assert table.labels.tolist() == ["p", "q", "r", "s"]
    assert open_table(tmp_path / "a.zarr", identifier="text").sample_names[0] == "p"
    for column in ("kind", "nullable"):
        with pytest.raises(DataError, match=r"1 of .* are missing"):
            open_table(tmp_path / "a.zarr", labels=column)


@pytest.mark.filterwarnings("ignore")
def test_a_column_that_is_not_there_is_met_with_those_that_are(stored):
    with pytest.raises(DataError, match=r"no column 'z' in '/obs'.*It holds '_index', 'y'"):
        open_table(stored(), labels="z")


@pytest.mark.filterwarnings("ignore")
def test_genes_are_left_out_by_name_and_the_size_is_limited(stored):
    np.testing.assert_array_equal(open_table(stored("dense"), drop=["g2"]).X, X[:, [0, 2]])
    with pytest.raises(DataError, match="more than the limit"):
        open_table(stored("dense", name="b.zarr"), max_bytes=10)


@FORMATS
@pytest.mark.filterwarnings("ignore")
def test_damaged_folders_are_refused(stored, version):
    path = stored("csr", version)
    store = zarr.open_group(str(path), mode="a")
    store["X"].attrs["shape"] = [4, 9]
    with pytest.raises(DataError, match="var must name every column"):
        open_table(path)
    store["X"].attrs["shape"] = [5, 3]
    with pytest.raises(DataError, match=r"a\.zarr"):
        open_table(path)
    for chunk in (path / "X").rglob("0"):
        if chunk.is_file():
            chunk.write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"a\.zarr"):
        open_table(path)
    del store["var"]
    with pytest.raises(DataError, match="has no 'var'"):
        open_table(path)


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense"])
def test_a_folder_without_a_store_is_refused(tmp_path, content):
    (tmp_path / "a.zarr").mkdir()
    for name in (".zgroup", "zarr.json"):
        (tmp_path / "a.zarr" / name).write_bytes(content)
    with pytest.raises(DataError, match=r"a\.zarr"):
        open_table(tmp_path / "a.zarr")


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_unpickled(stored, monkeypatch):
    numcodecs = pytest.importorskip("numcodecs")
    path = stored("dense", 2)
    store = zarr.open_group(str(path), mode="a")
    del store["X"]
    store.create_array("X", shape=X.shape, dtype="f4", filters=[numcodecs.Pickle()])
    monkeypatch.setattr("pickle.loads", lambda *_: pytest.fail("unpickled"))
    with pytest.raises(DataError, match=r"a\.zarr.*pickle"):  # zarr's words, or keepers'
        open_table(path)


def test_the_codecs_of_both_versions_are_found_nested_or_not():
    second = {"compressor": {"id": "blosc"}, "filters": [{"id": "pickle"}]}
    inner = {"codecs": [{"name": "numcodecs.pickle"}], "index_codecs": [{"name": "bytes"}]}
    third = {"codecs": ({"name": "sharding_indexed", "configuration": inner},)}
    assert set(_codec_names(second)) == {"blosc", "pickle"}
    assert set(_codec_names(third)) == {"sharding_indexed", "pickle", "bytes"}
    assert not any("pickle" in name or "json" in name for name in _CODECS)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_is_read_whole_only(stored):
    with pytest.raises(DataError, match="read whole only"):
        open_blocks(stored())
