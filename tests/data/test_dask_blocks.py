"""Sums over Dask collections are NumPy's sums, on every scheduler, whatever the chunks are."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from keepers._protocols import RowBlock
from keepers.data.blocks.local import LocalBlocks
from keepers.data.dask_blocks import DaskBlocks, selected_columns
from keepers.data.dask_cluster import dask_client
from keepers.data.in_memory import is_dask
from keepers.exceptions import DataError

dask = pytest.importorskip("dask", reason='Dask is not installed: pip install "keepers[dask]"')
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed")

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


class Slow(Sums):
    """A sum that takes its time."""

    def add(self, block):
        time.sleep(0.1)
        super().add(block)


class Heavy:
    """Begins a sum, and carries something large to the workers."""

    def __init__(self, n_bytes):
        self.ballast = np.random.default_rng(0).bytes(n_bytes)

    def __call__(self):
        return Sums()


@pytest.fixture(scope="module", autouse=True)
def _importable_by_workers():
    """Worker processes take over the search path, and find the sums of this file by it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
        yield


@pytest.fixture(scope="module")
def cluster(_importable_by_workers):
    with dask_client(workers=2) as client:
        yield client


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    """Three places where tasks can run; the third is a cluster of processes."""
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


def array_of(pieces, width=N_COLUMNS, **settings):
    """An array of delayed pieces, whose lengths Dask is not told."""
    chunks = [
        da.from_delayed(dask.delayed(piece), shape=(np.nan, width), **settings) for piece in pieces
    ]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def test_a_dask_collection_is_told_without_importing_dask(X):
    assert is_dask(da.from_array(X))
    assert is_dask(dd.from_pandas(pd.DataFrame(X), npartitions=2))
    for other in (X, sp.csr_matrix(X), pd.DataFrame(X), [[1.0]], None, np.ndarray):
        assert not is_dask(other)


def test_an_object_that_only_might_hold_dask_is_not_dask():
    class Container:
        def __dask_graph__(self):
            return None

    assert not is_dask(Container())


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_sums_over_a_dense_array_are_those_of_numpy(scheduler, X, columns):
    table = DaskBlocks.of(da.from_array(X, chunks=(4, -1)))
    assert (table.n_features, table.n_samples, table.n_stored) == (N_COLUMNS, N_ROWS, X.size)
    assert (table.dtype, table.is_sparse, table.rereadable) == (np.float64, False, True)
    assert not table.is_local
    assert table.feature_names is None
    assert_sums_of(table.total(Sums, columns), X if columns is None else X[:, columns])


def test_blocks_are_merged_in_the_order_of_the_rows(scheduler, X):
    found = DaskBlocks.of(da.from_array(X, chunks=(1, -1))).total(Sums)
    assert found.origins == [f"chunk {at}" for at in range(N_ROWS)]


def test_schedulers_agree_to_the_last_bit(cluster, X):
    table = DaskBlocks.of(da.from_array(X * np.pi, chunks=(3, -1)))
    there = table.total(Sums)
    with dask.config.set(scheduler="threads"):
        here = table.total(Sums)
    np.testing.assert_array_equal(here.gram, there.gram)


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_an_array_cut_along_columns_is_put_together(scheduler, X, columns):
    table = DaskBlocks.of(da.from_array(X, chunks=(20, 3)))
    assert_sums_of(table.total(Sums, columns), X if columns is None else X[:, columns])


def test_lengths_of_chunks_need_not_be_known_and_empty_ones_are_passed_over(scheduler, X):
    array = da.from_array(X, chunks=(10, -1))
    ordered = array[da.from_array(np.arange(N_ROWS) >= 25, chunks=10)]
    table = DaskBlocks.of(ordered)
    assert table.n_samples is None
    assert table.n_stored is None
    found = table.total(Sums)
    assert_sums_of(found, X[25:])
    assert found.origins[0] == "chunk 2"


def test_a_table_without_any_row_is_refused(X):
    array = da.from_array(X, chunks=(10, -1))
    with pytest.raises(DataError, match="at least one row; the Dask array has none"):
        DaskBlocks.of(array[array[:, 0] > 1e9]).total(Sums)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array])
@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_sparse_chunks_become_csr(scheduler, X, kind, columns):
    S = sparse_rows(X)
    table = DaskBlocks.of(da.from_array(S, chunks=(20, -1)).map_blocks(kind))
    assert table.is_sparse
    assert table.n_stored is None
    found = table.total(Sums, columns)
    assert_sums_of(found, S if columns is None else S[:, columns])
    assert found.kinds == {("csr_matrix", "float64")}


def test_sparse_chunks_are_noticed_where_the_array_takes_them_for_dense(X):
    S = sparse_rows(X)
    array = array_of([sp.csr_matrix(S[:50]), S[50:60], sp.coo_matrix(S[60:])], dtype=float)
    assert isinstance(array._meta, np.ndarray)
    table = DaskBlocks.of(array)
    assert table.is_sparse
    found = table.total(Sums)
    assert_sums_of(found, S)
    assert found.kinds == {("csr_matrix", "float64")}


def test_a_sparse_chunk_among_dense_ones_becomes_dense(X):
    array = array_of([X[:50], sp.csr_matrix(X[50:])], dtype=float)
    found = DaskBlocks.of(array).total(Sums)
    assert_sums_of(found, X)
    assert found.kinds == {("ndarray", "float64")}


def test_sparse_chunks_cut_along_columns_are_put_together(X):
    S = sparse_rows(X)
    array = da.from_array(S, chunks=(20, 3)).map_blocks(sp.csr_matrix)
    assert_sums_of(DaskBlocks.of(array).total(Sums), S)
    assert_sums_of(DaskBlocks.of(array).total(Sums, COLUMNS), S[:, COLUMNS])


def test_an_entry_that_stands_twice_is_added_up_and_the_chunk_is_left_as_it_was():
    twice = sp.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    found = DaskBlocks.of(array_of([twice], width=2, dtype=float)).total(Sums)
    np.testing.assert_array_equal(found.gram, [[9.0, 0.0], [0.0, 0.0]])
    assert twice.nnz == 2


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", "float32"), ("float64", "float64"), ("int16", "float64"), ("bool", "float64")],
)
def test_values_are_float32_if_they_were_and_float64_otherwise(X, dtype, expected):
    table = DaskBlocks.of(da.from_array(X.astype(dtype), chunks=(30, -1)))
    assert table.dtype == expected
    assert table.total(Sums).kinds == {("ndarray", expected)}


def test_a_masked_value_is_a_missing_one(X):
    masked = np.ma.masked_less(X, 0)
    with pytest.raises(DataError, match="chunk 0 holds NaN"):
        DaskBlocks.of(da.from_array(masked, chunks=(N_ROWS, -1), asarray=False)).total(Refusing)


@pytest.mark.parametrize("dtype", ["complex128", "object", "U3"])
def test_values_that_are_no_real_numbers_are_refused(dtype):
    with pytest.raises(DataError, match="holds real numbers"):
        DaskBlocks.of(da.from_array(np.ones((3, 2)).astype(dtype), chunks=(3, 2)))


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


def test_a_chunk_of_another_width_is_named(scheduler, X):
    array = array_of([X, X, X[:, :5], X], dtype=float)
    with pytest.raises(
        DataError, match="chunk 2 has 103 rows x 5 columns instead of 103 x 7"
    ) as caught:
        DaskBlocks.of(array).total(Sums)
    assert type(caught.value) is DataError


def test_a_chunk_of_another_kind_is_named(X):
    array = array_of([X, X.tolist()], dtype=float)
    with pytest.raises(DataError, match="chunk 1 is a list of shape unknown"):
        DaskBlocks.of(array).total(Sums)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "U8", "object", "complex128"])
def test_a_chunk_that_holds_something_else_than_its_array_declares_is_named(X, dtype):
    other = np.ones((3, N_COLUMNS), dtype=int).astype(dtype)
    with pytest.raises(DataError, match=r"float64 represents.*chunk 1 holds"):
        DaskBlocks.of(array_of([X, other], dtype=float)).total(Sums)


@pytest.mark.parametrize(
    ("left", "right", "fault"),
    [
        ((5, 3), (5, 2), "column chunk 0, has 5 rows x 3 columns instead of 5 x 2"),
        ((5, 2), (4, 3), "column chunk 1, has 4 rows x 3 columns instead of 5 x 3"),
        ((0, 2), (4, 3), "column chunk 1, has 4 rows x 3 columns instead of 0 x 3"),
    ],
)
def test_a_chunk_that_does_not_fit_beside_its_neighbour_is_named(left, right, fault):
    declared = [
        array_of([np.ones(left)], 2, dtype=float),
        array_of([np.ones(right)], 3, dtype=float),
    ]
    array = da.concatenate(declared, axis=1, allow_unknown_chunksizes=True)
    with pytest.raises(DataError, match=f"chunk 0, {fault}"):
        DaskBlocks.of(array).total(Sums)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64"])
def test_the_smallest_whole_number_that_float64_cannot_hold_is_refused(dtype):
    def sums_of(value):
        column = pd.array([1, value], dtype=dtype)
        frame = dd.from_pandas(pd.DataFrame({"x": column, "y": [0.5, 0.5]}), npartitions=1)
        return DaskBlocks.of(frame).total(Sums).sums

    assert sums_of(2**53 - 1)[0] == 2.0**53
    with pytest.raises(DataError, match=r"at most 2\*\*53.*partition 0"):
        sums_of(2**53 + 1)
    whole = da.from_array(np.array([[1], [2**53 + 1]]))
    with pytest.raises(DataError, match=r"at most 2\*\*53.*chunk 0"):
        DaskBlocks.of(whole).total(Sums)


def test_whole_numbers_that_float64_cannot_hold_are_refused(X):
    identifiers = np.full((4, 2), 2**60)
    with pytest.raises(DataError, match=r"at most 2\*\*53.*chunk 0"):
        DaskBlocks.of(da.from_array(identifiers)).total(Sums)
    frame = dd.from_pandas(pd.DataFrame({"x": [0.5], "id": [2**60]}), npartitions=1)
    with pytest.raises(DataError, match=r"at most 2\*\*53.*partition 0"):
        DaskBlocks.of(frame).total(Sums)


def test_an_error_in_a_sum_arrives_as_it_was_raised_and_nothing_is_tried_again(scheduler, X):
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


def test_partitions_that_a_filter_left_empty_are_passed_over(X):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdefg")), npartitions=5)
    kept = frame.map_partitions(lambda rows: rows[rows.index >= 60])
    assert_sums_of(DaskBlocks.of(kept).total(Sums), X[60:])


def test_columns_of_several_numeric_kinds_make_one_table():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, 2, None], dtype="Int64"),
            "yes": [True, False, True],
            "single": np.array([0.5, 1.5, 2.5], dtype=np.float32),
        }
    )
    table = DaskBlocks.of(dd.from_pandas(frame, npartitions=1))
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table.total(Sums).sums, [np.nan, 2.0, 4.5])
    single = DaskBlocks.of(dd.from_pandas(frame[["single"]], npartitions=1))
    assert single.dtype == np.float32
    assert single.total(Sums).kinds == {("ndarray", "float32")}


def test_columns_that_are_not_numeric_are_named():
    frame = pd.DataFrame({"x": [1.0, 2.0], "town": ["Bern", "Basel"], "z": [1 + 1j, 2.0]})
    with pytest.raises(DataError, match=r"numeric; these are not: 'town' \(.+\), 'z' \(complex"):
        DaskBlocks.of(dd.from_pandas(frame, npartitions=1))


KINDS = {
    "category": pd.Categorical(["a", "b"]),
    "text": pd.array(["a", "b"], dtype="string"),
    "date": pd.to_datetime(["2020-01-01", "2021-01-01"]),
    "date with zone": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("UTC"),
    "duration": pd.to_timedelta([1, 2], unit="s"),
    "period": pd.period_range("2020-01", periods=2, freq="M"),
    "object": np.array([1.0, 2.0], dtype=object),
    "complex": np.array([1 + 1j, 2.0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_declared_as_no_number_is_named_before_anything_is_computed(kind):
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0], "other": KINDS[kind]}), npartitions=1)

    def refuse(*_, **settings):
        raise AssertionError("something was computed")

    with (
        dask.config.set(scheduler=refuse),
        pytest.raises(DataError, match=r"numeric; these are not: 'other' \("),
    ):
        DaskBlocks.of(frame)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "Int64", "UInt8", "Float32", "int8"])
def test_a_column_of_truth_values_or_of_a_nullable_type_counts_as_numbers(dtype):
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "other": pd.array([1, 0, 1], dtype=dtype)})
    found = DaskBlocks.of(dd.from_pandas(frame, npartitions=2)).total(Sums)
    np.testing.assert_array_equal(found.sums, [4.5, 2.0])


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_a_partition_with_its_columns_in_another_order_is_matched_by_name(X, columns):
    first, second = parts = frames_of(X)
    turned = frame_of([first, second[second.columns[::-1]]], meta=first)
    expected = pd.concat(parts).to_numpy()
    found = DaskBlocks.of(turned).total(Sums, columns)
    assert_sums_of(found, expected if columns is None else expected[:, columns])


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda frame: frame.drop(columns=["b", "g"]), "lacks 'b', 'g'"),
        (lambda frame: frame.assign(z=1.0), "also has 'z'"),
        (lambda frame: frame.rename(columns={"b": "B"}), "lacks 'b' and also has 'B'"),
        (lambda frame: frame.rename(columns={"b": "a"}), "lacks 'b' and also has 'a'"),
    ],
)
def test_a_partition_with_columns_missing_or_added_is_named(X, spoil, fault):
    first, second = frames_of(X)
    with pytest.raises(DataError, match=rf"dataframe declares; partition 1 {fault}\. Leave"):
        DaskBlocks.of(frame_of([first, spoil(second)], meta=first)).total(Sums)


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_that_holds_something_else_than_its_dataframe_declares_is_named(kind):
    declared = pd.DataFrame({"x": [1.0, 2.0], "other": [1.0, 2.0]})
    frame = frame_of([declared, declared.assign(other=KINDS[kind])], meta=declared)
    with pytest.raises(DataError, match=r"float64 represents.*in partition 1.*: 'other' \("):
        DaskBlocks.of(frame).total(Sums)


def test_numbers_finer_than_declared_are_not_made_coarser():
    single = pd.DataFrame({"x": np.float32([1.0, 2.0])})
    frame = frame_of([single, single.astype(float) * 1e300], meta=single)
    with pytest.raises(DataError, match=r"float32 represents.*partition 1.*'x' \(float64\)"):
        DaskBlocks.of(frame).total(Sums)
    chunks = [single.to_numpy(), single.to_numpy(dtype=float) * 1e300]
    with pytest.raises(DataError, match=r"float32 represents.*chunk 1 holds float64"):
        DaskBlocks.of(array_of(chunks, width=1, dtype=np.float32)).total(Sums)


def test_whole_numbers_in_a_partition_declared_as_floats_are_numbers():
    declared = pd.DataFrame({"x": [1.0, 2.0]})
    frame = frame_of([declared, declared.astype("Int64"), declared > 1], meta=declared)
    np.testing.assert_array_equal(DaskBlocks.of(frame).total(Sums).sums, [7.0])


def frames_of(X):
    """The halves of X as data frames with columns a to g."""
    frame = pd.DataFrame(X, columns=list("abcdefg"))
    return frame[:40], frame[40:]


def frame_of(parts, meta):
    """A dataframe that declares ``meta``, whatever its partitions are."""
    pieces = [dask.delayed(part) for part in parts]
    return dd.from_delayed(pieces, meta=meta.iloc[:0], verify_meta=False)


def test_columns_of_the_same_name_are_refused():
    frame = pd.DataFrame(np.ones((3, 3)), columns=["a", "b", "a"])
    with pytest.raises(DataError, match="must differ; there are duplicates: 'a'"):
        DaskBlocks.of(dd.from_pandas(frame, npartitions=1))


def test_columns_named_by_numbers_have_no_names(X):
    assert DaskBlocks.of(dd.from_pandas(pd.DataFrame(X), npartitions=2)).feature_names is None


def test_tasks_on_a_parquet_file_are_handed_the_wanted_columns_only(tmp_path, X):
    pytest.importorskip("pyarrow")
    names = list("abcdefg")
    for at in range(3):
        part = pd.DataFrame(X[at::3], columns=names)
        part.to_parquet(tmp_path / f"{at}.parquet")
    table = DaskBlocks.of(dd.read_parquet(tmp_path))
    assert_sums_of(table.total(Sums, COLUMNS), X[:, COLUMNS])
    readers = [task.sources[0].compute() for task in table.tasks(COLUMNS)]
    assert all(list(frame.columns) == ["f", "a", "d"] for frame in readers)


def test_what_begins_a_sum_is_in_the_graph_once(X, monkeypatch):
    graphs = []
    compute = dask.compute

    def watched(node, **settings):
        graphs.append(dict(node.__dask_graph__()))
        return compute(node, **settings)

    table = DaskBlocks.of(da.from_array(X, chunks=(1, -1)))
    monkeypatch.setattr(dask, "compute", watched)
    begin = Heavy(1_000_000)
    table.total(begin, COLUMNS)
    (graph,) = graphs
    cloudpickle = pytest.importorskip("cloudpickle")
    sizes = [len(cloudpickle.dumps(task)) for task in graph.values()]
    assert sum(size > 1_000_000 for size in sizes) == 1
    assert sum(sizes) < 2_000_000


def test_a_large_begin_reaches_the_workers_without_a_warning(cluster, X):
    table = DaskBlocks.of(da.from_array(X, chunks=(10, -1)))
    assert_sums_of(table.total(Heavy(20_000_000)), X)


def test_sums_that_are_merged_stay_as_they_were(X):
    """A task may have to run again, on inputs that are still there."""
    made = []

    class Remembered(Sums):
        def __init__(self):
            super().__init__()
            made.append(self)

        def add(self, block):
            super().add(block)
            self.rows_at_first = self.n_rows

    DaskBlocks.of(da.from_array(X, chunks=(10, -1))).total(Remembered)
    of_chunks = [found for found in made if hasattr(found, "rows_at_first")]
    assert sorted(found.n_rows for found in of_chunks) == [3] + [10] * 10


@pytest.mark.parametrize("columns", [None, COLUMNS])
def test_parts_are_read_by_workers(scheduler, X, columns):
    pieces = [X[:40], X[40:41], X[41:]]
    table = DaskBlocks.of_parts([Part(f"part-{at}", piece) for at, piece in enumerate(pieces)])
    assert (table.n_features, table.n_samples, table.n_stored) == (N_COLUMNS, N_ROWS, X.size)
    assert table.name == "part-0 and 2 more"
    assert table.rereadable
    assert not table.is_local
    found = table.total(Sums, columns)
    assert_sums_of(found, X if columns is None else X[:, columns])
    assert found.origins[:3] == ["part-0, row 1", "part-0, row 17", "part-0, row 33"]


class Part(LocalBlocks):
    """Rows in memory, 16 at a time."""

    def __init__(self, name, X, names=None):
        self.name, self.X = name, X
        self.n_samples, self.n_features = X.shape
        self.n_stored = X.size
        self.dtype, self.is_sparse = X.dtype, sp.issparse(X)
        self.feature_names = None if names is None else np.array(names, dtype=object)

    def blocks(self, columns=None):
        for start in range(0, self.X.shape[0], 16):
            rows = self.X[start : start + 16]
            values = rows if columns is None else rows[:, columns]
            yield RowBlock(values, f"{self.name}, row {start + 1}")


class LyingPart(Part):
    """A part that has fewer columns than it said."""

    def blocks(self, columns=None):
        for block in super().blocks(columns):
            yield RowBlock(block.values[:, 1:], block.origin)


def test_parts_of_several_kinds_become_one(X):
    S = sparse_rows(X)
    parts = [Part("a", S[:50].astype(np.float32)), Part("b", sp.csr_matrix(S[50:]))]
    table = DaskBlocks.of_parts(parts)
    assert table.is_sparse
    assert table.dtype == np.float64
    found = table.total(Sums)
    assert found.kinds == {("csr_matrix", "float64")}
    np.testing.assert_allclose(found.gram, S.T @ S, rtol=1e-6)


def test_parts_that_do_not_fit_together_are_named(scheduler, X):
    with pytest.raises(DataError, match=r"b \(5 columns\) differs from a \(7\)"):
        DaskBlocks.of_parts([Part("a", X), Part("b", X[:, :5])])
    with pytest.raises(DataError, match="same columns in the same order; b"):
        DaskBlocks.of_parts([Part("a", X, list("abcdefg")), Part("b", X, list("abcdegf"))])
    with pytest.raises(DataError, match="at least one part"):
        DaskBlocks.of_parts([])
    with pytest.raises(DataError, match="the same 7 columns; b, row 1 has 6"):
        DaskBlocks.of_parts([Part("a", X), LyingPart("b", X)]).total(Sums)


def test_how_many_rows_there_are_is_unknown_if_one_part_does_not_know(X):
    unsure = Part("b", X)
    unsure.n_samples = unsure.n_stored = None
    table = DaskBlocks.of_parts([Part("a", X), unsure])
    assert table.n_samples is None
    assert table.n_stored is None


def test_chosen_columns_stay_lazy_and_of_the_same_kind(X):
    S = sparse_rows(X)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdefg")), npartitions=2)
    chosen = selected_columns(frame, COLUMNS)
    assert list(chosen.columns) == ["f", "a", "d"]
    np.testing.assert_array_equal(chosen.compute().to_numpy(), X[:, COLUMNS])
    for chunks in ((10, -1), (10, 2)):
        chosen = selected_columns(da.from_array(X, chunks=chunks), COLUMNS)
        assert isinstance(chosen, da.Array)
        assert (chosen.shape, chosen.dtype) == ((N_ROWS, 3), np.float64)
        np.testing.assert_array_equal(chosen.compute(), X[:, COLUMNS])
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
        array = da.from_array(S, chunks=(N_ROWS, -1)).map_blocks(kind)
        found = selected_columns(array, COLUMNS).compute()
        assert sp.issparse(found)
        np.testing.assert_array_equal(found.toarray(), S[:, COLUMNS])


def test_chosen_columns_of_unknown_chunks_stay_unknown(X):
    array = da.from_array(X, chunks=(10, -1))
    chosen = selected_columns(array[array[:, 0] > 0], COLUMNS)
    np.testing.assert_array_equal(chosen.compute(), X[X[:, 0] > 0][:, COLUMNS])


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_that_is_killed_costs_time_only(X):
    with dask_client(workers=2) as client:
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2
        victim = next(iter(pids.values()))
        killer = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
        killer.start()
        found = DaskBlocks.of(da.from_array(X, chunks=(5, -1))).total(Slow)
        killer.join()
        survivors = client.run(os.getpid).values()
    assert victim not in survivors
    assert_sums_of(found, X)


class Starts:
    """Where blocks start, and how long they are."""

    def __init__(self):
        self.found = []

    def add(self, block):
        self.found.append((block.start, block.values.shape[0]))

    def merge(self, other):
        self.found += other.found


def test_blocks_of_known_chunks_know_where_they_start():
    X = da.zeros((N_ROWS, N_COLUMNS), chunks=((50, 0, 53), (4, 3)))
    assert DaskBlocks.of(X).total(Starts).found == [(0, 50), (50, 53)]


def test_blocks_of_unknown_chunks_know_where_they_start_once_they_are_counted():
    frame = pd.DataFrame(np.zeros((N_ROWS, 3)), columns=["a", "b", "c"])
    table = DaskBlocks.of(dd.from_pandas(frame, npartitions=2))
    assert [start for start, _ in table.total(Starts).found] == [0, None]
    counted = table.count_rows()
    assert counted.n_samples == N_ROWS
    first, second = counted.total(Starts).found
    assert first[0] == 0
    assert second == (first[1], N_ROWS - first[1])
    assert counted.count_rows() is counted
