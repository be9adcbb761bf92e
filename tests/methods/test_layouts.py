"""One table, one answer: however it is laid out in memory, on any number of threads and kernels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits
from threadpoolctl import threadpool_limits

from keepers import SPCAFS, SPCAFSCV, StabilitySelector, all_selectors
from keepers.exceptions import KeepersWarning

N_KEPT = 4


def tables():
    """Tables in which much is equal but for rounding: ties are what layouts could tell apart."""
    rng = np.random.default_rng(0)
    digits = load_digits().data[:120, 8:32]
    noise = rng.standard_normal((60, 8))
    return {
        # Whole numbers: exact in float32, many equal distances, a constant column.
        "digits": digits[:, digits.std(axis=0) > 0.3],
        # Every column of the same variance.
        "diabetes": load_diabetes().data[:150],
        # Copies of columns, some with the sign turned.
        "copies": np.hstack([noise, noise[:, :3], -noise[:, 2:4]]),
        # Tenths are not exact in binary: equal distances differ in the last digit.
        "tenths": rng.integers(0, 10, (80, 9)) / 10,
    }


TABLES = tables()


def strided(X):
    room = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    room[::2, ::3] = X
    return room[::2, ::3]


def read_only(X):
    copy = X.copy()
    copy.setflags(write=False)
    return copy


def named(X):
    return {f"x{j}": column for j, column in enumerate(X.T)}


def mapped(X, folder):
    path = folder / "table.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def layouts(X, folder):
    """The same values, stored in every way that `fit` takes."""
    found = {
        "Fortran order": np.asfortranarray(X),
        "strided": strided(X),
        "read-only": read_only(X),
        "pandas": pd.DataFrame(named(X)),
        "polars": pl.DataFrame(named(X)),
        "Arrow": pa.table(named(X)),
        "memory map": mapped(X, folder),
        "CSR": sp.csr_array(X),
        "CSC": sp.csc_array(X),
    }
    if np.array_equal(X.astype(np.float32), X):
        found["float32"] = X.astype(np.float32)
    return found


def selectors():
    made = {}
    for name, cls in all_selectors().items():
        settings = {"random_state": 0} if "random_state" in cls().get_params() else {}
        made[name] = cls(N_KEPT, **settings)
    made["SPCAFS, as many rows as components"] = SPCAFS(N_KEPT, n_components=3, gamma=1e3)
    made["SPCAFSCV"] = SPCAFSCV(N_KEPT, random_state=0)
    made["StabilitySelector"] = StabilitySelector(
        SPCAFS(N_KEPT, random_state=0), n_resamples=6, random_state=0
    )
    return made


SELECTORS = selectors()


def kept(name, X):
    selector = SELECTORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return np.flatnonzero(selector.fit(X).support_).tolist()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", SELECTORS)
def test_every_layout_keeps_the_same_features(name, table, tmp_path):
    X = np.ascontiguousarray(TABLES[table])
    expected = kept(name, X)
    takes_sparse = SELECTORS[name].__sklearn_tags__().input_tags.sparse
    found = {
        layout: kept(name, given)
        for layout, given in layouts(X, tmp_path).items()
        if takes_sparse or not sp.issparse(given)
    }
    assert found == dict.fromkeys(found, expected)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", SELECTORS)
def test_one_and_two_threads_keep_the_same_features(name, table):
    with threadpool_limits(1):
        alone = kept(name, TABLES[table])
    with threadpool_limits(2):
        assert kept(name, TABLES[table]) == alone


@pytest.mark.parametrize("name", ["SPCAFS", "FSPCA"])
def test_scores_of_single_precision_are_those_of_the_same_values_in_double(name):
    mixing = np.random.default_rng(1).standard_normal((12, 12))
    X = (np.random.default_rng(0).standard_normal((80, 12)) @ mixing).astype(np.float32)
    selector = SELECTORS[name]
    expected = selector.fit(X.astype(np.float64)).scores_.astype(np.float32)
    np.testing.assert_array_equal(selector.fit(X).scores_, expected)


# Without EUFS, which amplifies rounding from step to step.
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", [name for name in SELECTORS if name != "EUFS"])
def test_the_last_digit_of_the_values_does_not_decide(name, table):
    """What kernels that cannot be run here would do to sums, done to the values themselves."""
    X = TABLES[table]
    signs = np.random.default_rng(1).choice([-1, 1], X.shape)
    assert kept(name, X * (1 + 2e-16 * signs)) == kept(name, X)


@pytest.mark.parametrize("table", TABLES)
def test_blocks_of_rows_and_dask_keep_the_same_features(table, tmp_path, monkeypatch):
    import dask.array as da

    X = TABLES[table]
    selector = SPCAFS(N_KEPT, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        expected = selector.fit(X).support_.copy()
        sources = {
            "blocks": lambda: selector.fit_blocks([X[:20], X[20:]]),
            "file": lambda: selector.fit_blocks(mapped(X, tmp_path)),
            "Dask": lambda: selector.fit(da.from_array(X, chunks=(25, -1))),
        }
        found = {name: fit().support_.tolist() for name, fit in sources.items()}
        monkeypatch.setattr("keepers.methods.reading.choose_route", lambda *_: "stream")
        found["stream"] = selector.fit_blocks([X[:20], X[20:]]).support_.tolist()
    assert found == dict.fromkeys(found, expected.tolist())
