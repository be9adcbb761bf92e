"""Arrays in files, in blocks of rows, against the arrays that were written."""

import pickle

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.exceptions import DataError
from keepers.tables import scans
from keepers.tables.opening import scan_table
from tables.both_ways import dense

X = np.random.default_rng(0).normal(size=(100, 6))
COUNTS = np.random.default_rng(0).poisson(0.7, size=(100, 6)).astype(np.float32)
COUNTS[50:60] = 0
NAMES = [f"x{j}" for j in range(6)]


def stacked(scan, columns=None):
    return np.vstack([dense(block.values) for block in scan.blocks(columns)])


def write(path, values, names=None):
    """A .npy, .h5 or (with names of the columns) .h5ad file; the last is sparse."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=values, chunks=(8, 6), compression="gzip")
    else:
        obs = pd.DataFrame(index=[f"s{at}" for at in range(len(values))])
        var = pd.DataFrame(index=names or NAMES)
        anndata.AnnData(sp.csr_matrix(values), obs, var).write_h5ad(path)
    return path


@pytest.fixture(params=[".npy", ".h5", ".h5ad"])
def suffix(request):
    return request.param


@pytest.fixture
def values(suffix):
    return COUNTS if suffix == ".h5ad" else X


@pytest.fixture
def path(tmp_path, suffix, values):
    return write(tmp_path / f"a{suffix}", values)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(scans, "rows_at_once", lambda *_: 30)
    monkeypatch.setattr(scans, "BLOCK_BYTES", 8 * 100)


def test_rows_come_in_blocks_as_often_as_asked(path, values):
    scan = scan_table(path)
    assert (scan.n_samples, scan.n_features, scan.dtype) == (100, 6, values.dtype)
    assert scan.is_sparse == (path.suffix == ".h5ad")
    assert scan.n_stored == (np.count_nonzero(values) if scan.is_sparse else 600)
    assert scan.feature_names.tolist() == scan.features == NAMES
    blocks = list(scan.blocks())
    assert len(blocks) > 2
    assert blocks[0].origin == f"{path.name}, rows 1 to {blocks[0].values.shape[0]}"
    for _ in range(2):
        np.testing.assert_array_equal(stacked(scan), values)
    dropped = scan_table(path, drop=["x1"])
    np.testing.assert_array_equal(stacked(dropped, np.array([4, 0])), values[:, [5, 0]])
    np.testing.assert_array_equal(
        np.vstack([dense(table.values) for table in dropped.tables(["x3", "x0"])]),
        values[:, [0, 3]],
    )
    with pytest.raises(DataError, match="no column 'x1'"):
        list(dropped.tables(["x1"]))


@pytest.mark.parametrize("n_parts", [3])
def test_parts_travel_and_cover_all_rows_once(path, values, n_parts):
    scan = scan_table(path)
    parts = pickle.loads(pickle.dumps(scan.parts(n_parts)))
    assert len(parts) == min(n_parts, 100)
    assert sum(part.n_stored for part in parts) == scan.n_stored
    np.testing.assert_array_equal(np.vstack([stacked(part) for part in parts]), values)


def test_a_file_that_changed_in_between_is_noticed(path, values):
    scan = scan_table(path)
    write(path, values[:-1])
    with pytest.raises(DataError, match=rf"{path.name}.*changed"):
        stacked(scan)
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(DataError, match=path.name):
        stacked(scan)


def test_files_may_differ_in_order_and_precision_but_not_in_columns(tmp_path):
    write(tmp_path / "a.h5ad", COUNTS, NAMES)
    write(tmp_path / "b.h5ad", COUNTS[:, ::-1].astype(np.float64), NAMES[::-1])
    scan = scan_table(tmp_path)
    assert scan.dtype == np.float64
    twice = np.vstack([COUNTS, COUNTS])
    np.testing.assert_array_equal(stacked(scan), twice)
    np.testing.assert_array_equal(np.vstack([dense(t.values) for t in scan.tables()]), twice)
    assert {block.values.dtype for block in scan.blocks()} == {np.dtype(np.float64)}
    assert sum(part.n_samples for part in scan.parts(4)) == 200
    write(tmp_path / "c.h5ad", COUNTS, [*NAMES[:5], "other"])
    with pytest.raises(DataError, match=r"a\.h5ad has 6, and c\.h5ad lacks 'x5' and adds 'other'"):
        scan_table(tmp_path)
