"""Sums over Dask collections are NumPy's sums, on every scheduler, whatever the chunks are."""

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers._protocols import RowBlock
from keepers.blocks.dask import DaskBlocks, selected_columns
from keepers.exceptions import DataError
from keepers.tables.scans import LocalBlocks

# Dask before 2025 says so whenever a test runs here while the cluster of the file is up.
pytestmark = pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning")

N_ROWS, N_COLUMNS = 103, 7
COLUMNS = np.array([5, 0, 3])


class Sums:
    """Number of rows, sums of the columns, X'X, and the rows' origins in the order of merging."""

    def __init__(self):
        self.n_rows, self.sums, self.gram = 0, 0.0, 0.0
        self.origins, self.kinds = [], set()

    def add(self, block):
        X = block.values
        self.n_rows += X.shape[0]
        self.sums = self.sums + np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        gram = X.T @ X
        self.gram = self.gram + (gram.toarray() if sp.issparse(X) else gram)
        self.origins.append(block.origin)
        self.kinds.add((type(X).__name__, X.dtype.name))

    def merge(self, other):
        self.n_rows += other.n_rows
        self.sums = self.sums + other.sums
        self.gram = self.gram + other.gram
        self.origins += other.origins
        self.kinds |= other.kinds


class Refusing(Sums):
    """A sum that finds fault with some rows."""

    def add(self, block):
        if np.isnan(block.values).any():
            raise DataError(f"Values must be finite numbers; {block.origin} holds NaN.")
        super().add(block)


@pytest.fixture(scope="module")
def cluster():
    """Of threads of this process, which speak as over a network: sums and tables are pickled."""
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    where = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**workers, **where) as cluster, cluster.get_client():
        yield


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    """Three places where tasks can run."""
    if request.param == "cluster":
        request.getfixturevalue("cluster")
        yield request.param
    else:
        with dask.config.set(scheduler=request.param):
            yield request.param


@pytest.fixture(autouse=True)
def _here_unless_asked_otherwise(request):
    """Keeps the cluster of the module from being the default of every later test."""
    if {"scheduler", "cluster"} & set(request.fixturenames):
        yield
    else:
        with dask.config.set(scheduler="synchronous"):
            yield


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(N_ROWS, N_COLUMNS)) + np.arange(N_COLUMNS)


def assert_sums_of(found, X):
    assert found.n_rows == len(X)
    np.testing.assert_allclose(found.sums, X.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.gram, X.T @ X, rtol=1e-12)


def sparse_rows(X):
    return np.where(X > 3, X, 0.0)


@pytest.mark.parametrize("chunks", [(4, -1), (20, 3)])
@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_sums_over_a_dense_array_are_those_of_numpy(scheduler, X, columns, chunks):
    table = DaskBlocks.of(da.from_array(X, chunks=chunks))
    assert (table.n_features, table.n_samples, table.n_stored) == (N_COLUMNS, N_ROWS, X.size)
    assert (table.dtype, table.is_sparse) == (np.float64, False)
    assert (table.is_local, table.feature_names) == (False, None)
    assert_sums_of(table.total(Sums, columns), X if columns is None else X[:, columns])


@pytest.mark.parametrize("kind", [sp.csc_matrix, sp.csr_array])
@pytest.mark.parametrize(("columns", "chunks"), [(None, (20, 3)), (COLUMNS, (20, -1))])
def test_sparse_chunks_become_csr(scheduler, X, kind, columns, chunks):
    S = sparse_rows(X)
    table = DaskBlocks.of(da.from_array(S, chunks=chunks).map_blocks(kind))
    assert (table.is_sparse, table.n_stored) == (True, None)
    found = table.total(Sums, columns)
    assert_sums_of(found, S if columns is None else S[:, columns])
    assert found.kinds == {("csr_matrix", "float64")}


def test_collections_that_are_no_tables_are_refused(X):
    with pytest.raises(DataError, match=r"two dimensions.*has 3"):
        DaskBlocks.of(da.ones((2, 2, 2)))
    with pytest.raises(DataError, match="got Delayed"):
        DaskBlocks.of(dask.delayed(X))
    with pytest.raises(DataError, match="got Series"):
        DaskBlocks.of(dd.from_pandas(pd.Series([1.0, 2.0]), npartitions=1))
    with pytest.raises(DataError, match="number of columns must be known"):
        DaskBlocks.of(da.from_delayed(dask.delayed(X), shape=(np.nan, np.nan), dtype=float))
    with pytest.raises(DataError, match="at least one column"):
        DaskBlocks.of(da.ones((5, 0)))
    for dtype in ("complex128", "object", "U3"):
        with pytest.raises(DataError, match="holds real numbers"):
            DaskBlocks.of(da.from_array(np.ones((3, 2)).astype(dtype), chunks=(3, 2)))


def test_an_error_in_a_sum_arrives_as_it_was_raised(scheduler, X):
    holed = X.copy()
    holed[71, 2] = np.nan
    with pytest.raises(DataError) as caught:
        DaskBlocks.of(da.from_array(holed, chunks=(10, -1))).total(Refusing)
    assert type(caught.value) is DataError
    assert str(caught.value) == "Values must be finite numbers; chunk 7 holds NaN."


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_a_dataframe_has_names_and_the_same_sums(scheduler, X, columns):
    names = [f"gene{j}" for j in range(N_COLUMNS)]
    frame = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=5)
    table = DaskBlocks.of(frame)
    assert list(table.feature_names) == names
    assert (table.n_features, table.n_samples, table.dtype) == (N_COLUMNS, None, np.float64)
    found = table.total(Sums, columns)
    assert_sums_of(found, X if columns is None else X[:, columns])
    assert found.origins == [f"partition {at}" for at in range(5)]


def test_a_partition_with_its_columns_in_another_order_is_matched_by_name(X):
    first, second = frames_of(X)
    turned = frame_of([first, second[second.columns[::-1]]], meta=first)
    assert_sums_of(DaskBlocks.of(turned).total(Sums, COLUMNS), X[:, COLUMNS])


def frames_of(X):
    """The halves of X as data frames with columns a to g."""
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    return frame[:40], frame[40:]


def frame_of(parts, meta):
    """A dataframe that declares ``meta``, whatever its partitions are."""
    pieces = [dask.delayed(part) for part in parts]
    return dd.from_delayed(pieces, meta=meta.iloc[:0], verify_meta=False)


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_parts_are_read_by_workers(scheduler, X, columns):
    pieces = [X[:40], X[40:41], X[41:]]
    parts = [Part(f"part-{at}", piece) for at, piece in enumerate(pieces)]
    table = DaskBlocks.of_parts(parts, "X")
    assert (table.n_features, table.n_samples, table.n_stored) == (N_COLUMNS, N_ROWS, X.size)
    assert (table.name, table.is_local) == ("X", False)
    found = table.total(Sums, columns)
    assert_sums_of(found, X if columns is None else X[:, columns])
    assert found.origins[:3] == ["part-0, row 1", "part-0, row 17", "part-0, row 33"]


class Part(LocalBlocks):
    """Rows in memory, 16 at a time."""

    def __init__(self, name, X):
        self.name, self.X = name, X
        self.n_samples, self.n_features = X.shape
        self.n_stored, self.dtype = X.size, X.dtype

    def blocks(self, columns=None):
        for start in range(0, self.X.shape[0], 16):
            rows = self.X[start : start + 16]
            values = rows if columns is None else rows[:, columns]
            yield RowBlock(values, f"{self.name}, row {start + 1}")


def test_chosen_columns_stay_lazy_and_of_the_same_kind(X):
    S = sparse_rows(X)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdefg")), npartitions=2)
    chosen = selected_columns(frame, COLUMNS)
    assert list(chosen.columns) == ["f", "a", "d"]
    np.testing.assert_array_equal(chosen.compute().to_numpy(), X[:, COLUMNS])
    for chunks in ((10, -1), (10, 2)):
        chosen = selected_columns(da.from_array(X, chunks=chunks), COLUMNS)
        assert (type(chosen), chosen.shape, chosen.dtype) == (da.Array, (N_ROWS, 3), np.float64)
        np.testing.assert_array_equal(chosen.compute(), X[:, COLUMNS])
    for kind in (sp.csr_matrix, sp.csc_matrix):
        array = da.from_array(S, chunks=(40, -1)).map_blocks(kind)
        found = selected_columns(array, COLUMNS).compute()
        assert sp.issparse(found)
        np.testing.assert_array_equal(found.toarray(), S[:, COLUMNS])


class Starts:
    """Where blocks start, and how long they are."""

    def __init__(self):
        self.found = []

    def add(self, block):
        self.found.append((block.start, block.values.shape[0]))

    def merge(self, other):
        self.found += other.found


def test_blocks_know_where_they_start_those_of_unknown_chunks_once_they_are_counted():
    known = da.zeros((N_ROWS, N_COLUMNS), chunks=((50, 0, 53), (4, 3)))
    assert DaskBlocks.of(known).total(Starts).found == [(0, 50), (50, 53)]
    frame = pd.DataFrame(np.zeros((N_ROWS, 3)), columns=["a", "b", "c"])
    table = DaskBlocks.of(dd.from_pandas(frame, npartitions=2))
    assert [start for start, _ in table.total(Starts).found] == [None, None]
    counted = table.count_rows()
    assert counted.n_samples == N_ROWS
    first, second = counted.total(Starts).found
    assert first[0] == 0
    assert second == (first[1], N_ROWS - first[1])
    assert counted.count_rows() is counted
