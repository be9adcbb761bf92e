"""AnnData files in blocks, against the matrix that was written; laid out by hand with h5py."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.data.formats import h5ad, hdf5
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

h5py = pytest.importorskip("h5py")

X = np.random.default_rng(0).poisson(0.7, size=(200, 6)).astype(np.float32)
X[50:60] = 0
GENES = [f"gene{j}" for j in range(6)]


def _stacked(table, columns=None):
    blocks = [block.values for block in table.blocks(columns)]
    assert all(sp.issparse(block) == table.is_sparse for block in blocks)
    return np.vstack([block.toarray() if table.is_sparse else block for block in blocks])


def _write(path, layout, values=X, compression=None, genes=GENES):
    with h5py.File(path, "w") as file:
        if layout == "array":
            file.create_dataset("X", data=values, compression=compression)
        else:
            sparse = sp.csr_matrix(values) if layout == "csr_matrix" else sp.csc_matrix(values)
            group = file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = layout, values.shape
            for part in ("data", "indices", "indptr"):
                group.create_dataset(part, data=getattr(sparse, part), compression=compression)
        cells = [f"cell{i}" for i in range(len(values))]
        for name, index in (("obs", cells), ("var", genes)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group.create_dataset("_index", data=index, dtype=h5py.string_dtype())
        file["obs"]["batch"] = np.arange(len(values)) % 2


@pytest.fixture(params=["array", "csr_matrix"])
def layout(request):
    return request.param


@pytest.fixture(params=[None, "gzip"])
def path(request, tmp_path, layout):
    _write(tmp_path / "a.h5ad", layout, compression=request.param)
    return tmp_path / "a.h5ad"


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(hdf5, "rows_at_once", lambda *_: 30)
    monkeypatch.setattr(h5ad, "BLOCK_BYTES", 8 * 100)
    monkeypatch.setattr(h5ad, "STARTS_AT_ONCE", 64)


@pytest.mark.usefixtures("small_blocks")
def test_rows_come_in_blocks_with_the_names_of_var(path, layout):
    table = open_blocks(path, labels="batch")
    assert (table.n_samples, table.n_features) == (200, 6)
    assert table.n_stored == (1200 if layout == "array" else np.count_nonzero(X))
    assert table.is_sparse == (layout != "array")
    assert table.dtype == np.float32
    assert list(table.feature_names) == GENES
    blocks = list(table.blocks())
    assert len(blocks) > 3
    assert blocks[0].origin == f"a.h5ad, rows 1 to {blocks[0].values.shape[0]}"
    assert blocks[-1].origin.endswith("to 200")
    assert all(block.values.dtype == np.float32 for block in blocks)
    np.testing.assert_array_equal(_stacked(table), X)


@pytest.mark.usefixtures("small_blocks")
def test_columns_can_be_chosen_and_dropped(path):
    table = open_blocks(path, drop=["gene1"])
    expected = open_table(path, drop=["gene1"]).X
    expected = expected.toarray() if sp.issparse(expected) else expected
    np.testing.assert_array_equal(_stacked(table), expected)
    np.testing.assert_array_equal(_stacked(table, np.array([4, 0])), expected[:, [4, 0]])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_parts", [1, 3, 200, 1000])
def test_parts_cover_all_rows_and_entries_once(path, n_parts):
    table = open_blocks(path)
    parts = pickle.loads(pickle.dumps(table.parts(n_parts)))
    assert len(parts) == min(n_parts, 200)
    assert sum(part.n_stored for part in parts) == table.n_stored
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)


def test_names_that_are_not_there_are_refused(path):
    for roles in ({"labels": "batches"}, {"identifier": "batches"}):
        with pytest.raises(DataError, match=r"no column 'batches' in '/obs'\. Did you mean"):
            open_blocks(path, **roles)
    with pytest.raises(DataError, match=r"a\.h5ad: There is no column 'gene9'"):
        open_blocks(path, drop=["gene9"])


def test_values_stored_by_columns_are_refused_with_the_way_to_convert_them(tmp_path):
    for values in (X, X[:6]):  # the latter is square
        _write(tmp_path / "a.h5ad", "csc_matrix", values)
        with pytest.raises(DataError, match=r"a\.h5ad: X must be stored by rows.*tocsr\(\)"):
            open_blocks(tmp_path / "a.h5ad")
    _write(tmp_path / "a.h5ad", "csr_matrix", X[:6])
    np.testing.assert_array_equal(_stacked(open_blocks(tmp_path / "a.h5ad")), X[:6])


def test_a_file_without_rows_is_refused(tmp_path, layout):
    _write(tmp_path / "a.h5ad", layout, X[:0])
    with pytest.raises(DataError, match=r"a\.h5ad: "):
        open_blocks(tmp_path / "a.h5ad")


def test_another_number_of_names_is_refused(tmp_path, layout):
    _write(tmp_path / "a.h5ad", layout, genes=GENES[:5])
    with pytest.raises(DataError, match="it has 5 names and X has 6 columns"):
        open_blocks(tmp_path / "a.h5ad")


@pytest.mark.parametrize(
    ("part", "at", "value"),
    [("indices", 7, 6), ("indices", 7, -1), ("indptr", 9, 10_000), ("indptr", 9, -5)],
)
def test_damaged_parts_are_refused(tmp_path, part, at, value):
    path = tmp_path / "a.h5ad"
    _write(path, "csr_matrix")
    with h5py.File(path, "r+") as file:
        file["X"][part][at] = value
    with pytest.raises(DataError, match=r"a\.h5ad"):
        _stacked(open_blocks(path))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("wild", [10**9, -5, 2])
def test_wild_row_pointers_before_a_last_one_of_zero_are_refused(tmp_path, wild):
    path = tmp_path / "a.h5ad"
    _write(path, "csr_matrix")
    with h5py.File(path, "r+") as file:
        pointers = np.zeros(201, dtype=np.int32)
        pointers[100] = wild
        file["X"]["indptr"][...] = pointers
    table = open_blocks(path)
    with pytest.raises(DataError, match="must rise from 0"):
        _stacked(table)
    with pytest.raises(DataError, match="must rise from 0"):
        table.parts(2)


@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_parts_that_are_no_integers_are_refused(tmp_path, part):
    path = tmp_path / "a.h5ad"
    _write(path, "csr_matrix")
    with h5py.File(path, "r+") as file:
        values = file["X"][part][()].astype(float)
        del file["X"][part]
        file["X"][part] = values
    with pytest.raises(DataError, match=f"The {part} of X must be integers"):
        open_blocks(path)


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    path = tmp_path / "a.h5ad"
    _write(path, "csr_matrix")
    with h5py.File(path, "r+") as file:
        del file["X"]["data"]
        file["X"]["data"] = np.ones(5)
    with pytest.raises(DataError, match="must fit together"):
        open_blocks(path)


def test_an_entry_given_twice_is_summed_as_open_table_sums_it(tmp_path):
    path = tmp_path / "a.h5ad"
    _write(path, "csr_matrix", np.eye(6))
    with h5py.File(path, "r+") as file:
        group = file["X"]
        for name in ("data", "indices", "indptr"):
            del group[name]
        group["data"], group["indices"] = np.arange(1.0, 8), [0, 0, 1, 2, 3, 4, 5]
        group["indptr"] = [0, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(_stacked(open_blocks(path)), np.diag([3.0, 3, 4, 5, 6, 7]))
