"""AnnData files: the layout written by hand with h5py, and by anndata where it is installed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.table_files import open_blocks
from keepers.datasets import open_table, write_table
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
    with pytest.raises(DataError, match="there are duplicates: 'p'"):
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


@pytest.mark.parametrize("size", [2**64 - 16, 2**64 - 32, 2**64 - 23, 2**63, 10**6])
@pytest.mark.parametrize("opened", [open_table, open_blocks])
def test_text_objects_whose_size_overflows_end_with_an_error_at_once(tmp_path, size, opened):
    """2**64 - 16 and a header of 16 add up to no step at all: libhdf5 never ended."""
    path = tmp_path / "a.h5ad"
    _plain_file(path, KINDS)
    content = bytearray(path.read_bytes())
    first = content.find(b"GCOL") + 16
    content[first + 8 : first + 16] = size.to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match="store of text is damaged"):
        opened(path)


def _plain_file(path, kinds):
    with h5py.File(path, "w") as file:
        file["X"] = X
        _frame(file, "obs", CELLS)["kind"] = kinds
        _frame(file, "var", GENES)


CODES = np.array([k == "t" for k in KINDS], "i1")


def _records(path, codes, compression=None, text="S8"):
    """As anndata before 0.7: frames are records, categories stand in uns."""
    with h5py.File(path, "w") as file:
        file["X"] = X
        text = h5py.string_dtype() if text == "varying" else text
        obs = np.zeros(10, dtype=[("index", text), ("n", "f4"), ("kind", "i1"), ("word", text)])
        obs["index"], obs["kind"], obs["word"] = CELLS, codes, KINDS
        obs["n"] = np.arange(10)
        var = np.zeros(6, dtype=[("index", "S8"), ("kind", "i8")])
        var["index"], var["kind"] = GENES, 5
        file.create_dataset("obs", data=obs, compression=compression)
        file["var"] = var
        file.create_group("uns")["kind_categories"] = np.array([b"b cell", b"t cell"])
        file["uns"]["n_categories"] = np.array([b"no", b"codes"])


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("text", ["S8", "varying"])
def test_categories_of_anndata_before_07_come_as_their_text(tmp_path, compression, text):
    path = tmp_path / "old.h5ad"
    _records(path, CODES, compression, text)
    table = open_table(path, labels="kind")
    assert list(table.labels) == [f"{kind} cell" for kind in KINDS]
    assert list(table.sample_names) == CELLS
    assert list(table.feature_names) == GENES
    np.testing.assert_array_equal(table.X, X)
    assert list(open_table(path, labels="word").labels) == KINDS
    assert open_table(path, labels="n").labels.tolist() == list(range(10))
    with pytest.raises(DataError, match="'index', 'n', 'kind', 'word'"):
        open_table(path, labels="kinds")
    assert list(open_blocks(path, labels="kind").feature_names) == GENES


def test_missing_categories_of_anndata_before_07_are_missing_labels(tmp_path):
    codes = CODES.copy()
    codes[[2, 5]] = -1
    _records(tmp_path / "old.h5ad", codes)
    with pytest.raises(DataError, match="2 of 'kind' are missing"):
        open_table(tmp_path / "old.h5ad", labels="kind")


def test_codes_that_have_no_category_in_uns_stay_numbers(tmp_path):
    """Frames shared one list by name; anndata leaves those alone that it does not fit."""
    codes = CODES.copy()
    codes[0] = 7
    _records(tmp_path / "old.h5ad", codes)
    np.testing.assert_array_equal(open_table(tmp_path / "old.h5ad", labels="kind").labels, codes)


def test_false_text_lengths_in_records_are_refused(tmp_path):
    path = tmp_path / "old.h5ad"
    _records(path, CODES, text="varying")
    with h5py.File(path) as file:
        record = file["obs"].id.get_storage_size() // 10
        at = file["obs"].id.get_offset() + 3 * record
    content = bytearray(path.read_bytes())
    content[at : at + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    with pytest.raises(DataError, match="the file can hold"):
        open_table(path)


@pytest.mark.parametrize("missing", [0, 3])
def test_categories_of_anndata_07_come_as_their_text(tmp_path, missing):
    """Codes in the column, a reference to /obs/__categories/<name> in its attribute."""
    path = tmp_path / "old.h5ad"
    codes = CODES.copy()
    codes[:missing] = -1
    _plain_file(path, codes)
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        obs["__categories/kind"] = ["b cell", "t cell"]
        obs["kind"].attrs["categories"] = obs["__categories/kind"].ref
    if missing:
        with pytest.raises(DataError, match="3 of 'kind' are missing"):
            open_table(path, labels="kind")
    else:
        labels = open_table(path, labels="kind").labels
        assert list(labels) == [f"{kind} cell" for kind in KINDS]
    with pytest.raises(DataError, match=r"It holds '_index', 'kind'\."):
        open_table(path, labels="genus")


@pytest.mark.parametrize("values", [np.arange(10), np.arange(10) % 2 == 0, KINDS])
@pytest.mark.parametrize("missing", [False, True])
def test_nullable_columns_give_their_values_or_missing_labels(tmp_path, values, missing):
    """As nullable-integer, nullable-boolean and nullable-string-array are laid out."""
    path = tmp_path / "a.h5ad"
    _plain_file(path, KINDS)
    with h5py.File(path, "r+") as file:
        column = file["obs"].create_group("held")
        column["values"], column["mask"] = values, np.arange(10) == (4 if missing else -1)
    if missing:
        with pytest.raises(DataError, match="1 of 'held' are missing"):
            open_table(path, labels="held")
    else:
        labels = open_table(path, labels="held").labels
        assert list(labels) == list(values)


@pytest.mark.parametrize("code", [2, 100])
def test_codes_beyond_the_categories_are_refused(tmp_path, code):
    path = tmp_path / "a.h5ad"
    _plain_file(path, KINDS)
    with h5py.File(path, "r+") as file:
        column = file["obs"].create_group("held")
        column["categories"], column["codes"] = ["b", "t"], np.full(10, code)
    with pytest.raises(DataError, match="must be integers below its 2 categories"):
        open_table(path, labels="held")


@pytest.mark.parametrize("opened", [open_table, open_blocks])
def test_a_square_sparse_matrix_that_names_no_order_is_refused(tmp_path, opened):
    _square(tmp_path / "a.h5ad", kind=None)
    with pytest.raises(DataError, match="must say whether it is stored by rows"):
        opened(tmp_path / "a.h5ad")


def _square(path, kind, pointers=(0, 1, 2, 3)):
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["shape"] = (3, 3)
        if kind is not None:
            group.attrs["encoding-type"] = kind
        group["data"], group["indices"] = np.ones(3), np.arange(3)
        group["indptr"] = np.array(pointers)
        _frame(file, "obs", list("abc"))
        _frame(file, "var", list("def"))


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("wild", [10**9, -5, 2])
def test_wild_pointers_before_a_last_one_of_zero_are_refused(tmp_path, kind, wild):
    """SciPy takes them for a matrix without entries, and follows them later."""
    _square(tmp_path / "a.h5ad", kind, (0, wild, 0, 0))
    with pytest.raises(DataError, match="must make a matrix of"):
        open_table(tmp_path / "a.h5ad")


@pytest.mark.parametrize("sparse", [True, False])
def test_integers_that_float64_cannot_hold_are_refused(tmp_path, sparse):
    path = tmp_path / "a.h5ad"
    values = np.array([[0, 2], [1, 2**53 + 1]])
    with h5py.File(path, "w") as file:
        if sparse:
            stored, group = sp.csr_matrix(values), file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (2, 2)
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(stored, part)
        else:
            file["X"] = values
        _frame(file, "obs", ["a", "b"])
        _frame(file, "var", ["p", "q"])
    told = r"2\*\*53" if sparse else r"2\*\*53 .*in 'q'"
    with pytest.raises(DataError, match=told):
        open_table(path)
    with pytest.raises(DataError, match=told):
        list(open_blocks(path).blocks())


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
