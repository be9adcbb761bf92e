"""A fit on a Dask collection gives the scores of a fit on the same numbers in memory."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import keepers
from keepers import SPCAFS
from keepers.exceptions import DataError

dask = pytest.importorskip("dask", reason='Dask is not installed: pip install "keepers[dask]"')
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")

# Dask before 2025 says so whenever a test runs here while the cluster of the file is up.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning"),
    pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning"),
]

# Little enough that neither a scatter nor the rows of the wide table are held.
STREAMING = 120 * 2**20


@pytest.fixture(scope="module")
def cluster():
    """Of threads of this process, which speak as over a network."""
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    where = {"host": "127.0.0.1", "protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**workers, **where) as started, started.get_client() as client:
        yield client


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request):
    """Where the chunks are summed."""
    if request.param == "cluster":
        request.getfixturevalue("cluster")
        yield request.param
    else:
        with dask.config.set(scheduler="threads"):
            yield request.param


def blobs(n_samples, n_features, seed=0):
    """Three groups that differ in the first columns, off zero, with columns of unlike spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(0.5, 1.5, n_features)
    X[:, :6] += 6.0 * rng.normal(size=(3, 6))[rng.integers(3, size=n_samples)]
    return X + rng.normal(size=n_features) * 3


@pytest.fixture(scope="module")
def X():
    return blobs(240, 40)


def assert_same_fit(found, expected, atol=1e-6):
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=0, atol=atol)
    assert found.n_components_ == expected.n_components_
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(found.support_, expected.support_)


@pytest.mark.parametrize("chunks", [(30, -1), (50, 11)])
def test_a_dense_array_gives_the_scores_of_numpy(scheduler, X, chunks):
    assert_same_fit(SPCAFS(8).fit(da.from_array(X, chunks=chunks)), SPCAFS(8).fit(X))


def test_float32_stays_float32(scheduler, X):
    single = X.astype(np.float32)
    found = SPCAFS(8, n_components=3).fit(da.from_array(single, chunks=(30, -1)))
    assert found.components_.dtype == np.float32
    assert_same_fit(found, SPCAFS(8, n_components=3).fit(single))


def test_sparse_chunks_give_the_scores_of_the_sparse_matrix(scheduler, X):
    S = np.where(np.abs(X) > 1.5, X, 0.0)
    array = da.from_array(S, chunks=(30, -1)).map_blocks(sp.csr_matrix)
    found = SPCAFS(8, n_components=3).fit(array)
    assert_same_fit(found, SPCAFS(8, n_components=3).fit(sp.csr_matrix(S)))


def test_a_dataframe_gives_names_too(scheduler, X):
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(X.shape[1])])
    found = SPCAFS(8).fit(dd.from_pandas(frame, npartitions=7))
    expected = SPCAFS(8).fit(frame)
    assert_same_fit(found, expected)
    np.testing.assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    np.testing.assert_array_equal(found.get_feature_names_out(), expected.get_feature_names_out())


def test_chunks_of_unknown_length_some_of_them_empty(scheduler, X):
    array = da.from_array(X, chunks=(30, -1))
    rest = array[da.from_array(np.arange(len(X)) >= 65, chunks=30)]
    assert_same_fit(SPCAFS(8).fit(rest), SPCAFS(8).fit(X[65:]))


def test_a_wide_table_is_multiplied_where_its_chunks_are(scheduler):
    wide = blobs(60, 5000)
    settings = {"n_components": 2, "gamma": "scale", "random_state": 0}
    found = SPCAFS(8, memory_limit=STREAMING, **settings).fit(da.from_array(wide, chunks=(20, -1)))
    assert found.n_passes_ > 2
    assert_same_fit(found, SPCAFS(8, **settings).fit(wide))


def test_transform_of_a_dask_collection_is_lazy_and_keeps_the_kind(X):
    selector = SPCAFS(8).fit(X)
    with dask.config.set(scheduler="synchronous"):
        kept = selector.transform(da.from_array(X, chunks=(30, -1)))
        assert isinstance(kept, da.Array)
        np.testing.assert_array_equal(kept.compute(), X[:, selector.support_])
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        kept = selector.transform(frame)
        np.testing.assert_array_equal(kept.compute().to_numpy(), X[:, selector.support_])


def test_a_gap_in_a_dataframe_is_refused_with_its_partition_and_column(scheduler, X):
    frame = pd.DataFrame(X.copy(), columns=[f"gene{j}" for j in range(X.shape[1])])
    frame.loc[100, "gene3"] = np.nan
    with pytest.raises(DataError, match=r"partition 1 holds NaN.*'gene3' \(1\)"):
        SPCAFS(8).fit(dd.from_pandas(frame, npartitions=3))


@pytest.mark.posix
@pytest.mark.slow
def test_a_worker_killed_during_a_fit_costs_time_only():
    wide = blobs(60, 5000)
    settings = {"n_components": 2, "random_state": 0, "memory_limit": STREAMING}

    def slowly(chunk):  # defined here, so that it is sent to the workers with its code
        time.sleep(0.02)
        return chunk

    array = da.from_array(wide, chunks=(6, -1)).map_blocks(slowly, dtype=float)
    with dask.config.set(scheduler="threads"):
        expected = SPCAFS(8, **settings).fit(array)
    where = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**where) as started, started.get_client() as client:
        victim, _ = client.run(os.getpid).values()
        killer = threading.Timer(0.7, os.kill, (victim, signal.SIGKILL))
        killer.start()
        found = SPCAFS(8, **settings).fit(array)
        assert not killer.is_alive(), "the fit was over before the worker was killed"
        assert victim not in client.run(os.getpid).values()
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=0, atol=1e-12)


IN_BLOCKS = {"SPCAFS", "FSPCA", "AutoSelector"}


@pytest.mark.parametrize("name", sorted(set(keepers.all_selectors()) - IN_BLOCKS))
def test_other_selectors_say_why_they_refuse_a_dask_array(name, X):
    selector = keepers.all_selectors()[name](8)
    with pytest.raises(DataError, match=r"does not accept a Dask collection: .{20,}SPCAFS"):
        selector.fit(da.from_array(X, chunks=(30, -1)))


def test_transform_refuses_a_dataframe_with_its_columns_in_another_order(X):
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])])
    selector = SPCAFS(4, random_state=0).fit(frame)
    turned = dd.from_pandas(frame[frame.columns[::-1]], npartitions=2)
    with pytest.raises(DataError, match=r"column 0 is 'g\d+', and 'g0' in the fit"):
        selector.transform(turned)
    found = selector.transform(dd.from_pandas(frame, npartitions=2)).compute()
    np.testing.assert_array_equal(found, selector.transform(frame))
