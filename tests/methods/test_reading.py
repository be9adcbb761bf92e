"""Tables in memory, of every kind: the same features as from plain numbers, or a reason."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import keepers
from keepers import SPCAFS, VarianceScore, all_selectors
from keepers.exceptions import DataError, KeepersWarning

SELECTORS = all_selectors()
SPARSE = [name for name in SELECTORS if SELECTORS[name].why_not_sparse is None]
RNG = np.random.default_rng(0)
X = np.round(10 * RNG.standard_normal((40, 6)) * [1, 2, 3, 4, 5, 6])
HOLLOW = X * (RNG.random(X.shape) < 0.4)
DAYS = pd.date_range("2024-01-01", periods=len(X))
SMALL_SEARCH = {"n_components": [2], "gamma_shares": [0.1], "scaling": [0.0]}


def fit(name, table, **settings):
    if "random_state" in SELECTORS[name]().get_params():
        settings["random_state"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return SELECTORS[name](**settings).fit(table)


def scores(name, table):
    return fit(name, table).scores_


# Everything else that takes a table, each giving numbers.
ENTRY_POINTS = {
    "SPCAFSCV": lambda X: keepers.SPCAFSCV(3, random_state=0, **SMALL_SEARCH).fit(X).scores_,
    "select_settings": lambda X: (
        keepers.select_settings(X, 3, random_state=0, **SMALL_SEARCH).best.score
    ),
    "StabilitySelector": lambda X: (
        keepers.StabilitySelector(VarianceScore(3), n_resamples=4, random_state=0).fit(X).scores_
    ),
    "spcafs_path": lambda X: keepers.spcafs_path(X, n_components=2, n_gammas=3).gammas,
    "report": lambda X: (
        keepers.report(
            VarianceScore(3).fit(np.arange(240.0).reshape(40, 6) % 7), X
        ).selection.variances
    ),
    "fit_blocks": lambda X: SPCAFS(3, random_state=0).fit_blocks(X).scores_,
    "fit_blocks of a list": lambda X: SPCAFS(3, random_state=0).fit_blocks([X]).scores_,
}


def enter(name, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        return ENTRY_POINTS[name](table)


def with_duplicates(kind):
    """Every stored value as two halves, one behind the other, as `kind` ("csr" or "csc")."""
    once = sp.csr_array(HOLLOW).asformat(kind)
    made = getattr(sp, f"{kind}_array")
    halves = (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr)
    return made(halves, shape=once.shape)


def unsorted():
    backwards = sp.csr_array(HOLLOW)
    for start, stop in zip(backwards.indptr, backwards.indptr[1:], strict=False):
        backwards.indices[start:stop] = backwards.indices[start:stop][::-1].copy()
        backwards.data[start:stop] = backwards.data[start:stop][::-1].copy()
    return sp.csr_array((backwards.data, backwards.indices, backwards.indptr), HOLLOW.shape)


def with_stored_zeros():
    stored = sp.csr_array(np.where(HOLLOW == 0, 1000, HOLLOW))
    stored.data[stored.data == 1000] = 0
    return stored


def read_only(matrix):
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


STORAGES = {
    "duplicates in CSR": lambda: with_duplicates("csr"),
    "duplicates in CSC": lambda: with_duplicates("csc"),
    "duplicates that may not be written": lambda: read_only(with_duplicates("csr")),
    "unsorted": unsorted,
    "stored zeros": with_stored_zeros,
    "read-only": lambda: read_only(sp.csr_array(HOLLOW)),
    "integers": lambda: sp.csr_array(HOLLOW.astype(int)),
    "a frame of sparse columns": lambda: pd.DataFrame(HOLLOW).astype(pd.SparseDtype(float, 0)),
    **{
        kind: lambda kind=kind: sp.csr_matrix(HOLLOW).asformat(kind)
        for kind in ("coo", "lil", "dok", "bsr", "dia")
    },
}


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("storage", STORAGES)
def test_however_a_sparse_matrix_is_stored_the_scores_are_those_of_the_dense_table(name, storage):
    same(scores(name, STORAGES[storage]()), scores(name, HOLLOW))


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("storage", ["duplicates in CSR", "duplicates in CSC", "unsorted"])
def test_duplicate_entries_are_summed_wherever_a_table_is_taken(name, storage):
    same(enter(name, STORAGES[storage]()), enter(name, HOLLOW))


def damaged(part, at, value):
    matrix = sp.csr_array(HOLLOW)
    getattr(matrix, part)[at] = value
    return matrix


def damaged_coo():
    matrix = sp.coo_array(HOLLOW)
    matrix.col[3] = 10**6
    return matrix


DAMAGED = {
    "an index past the end": lambda: damaged("indices", 5, 10**6),
    "a negative index": lambda: damaged("indices", 5, -7),
    "a pointer that falls": lambda: damaged("indptr", 5, 0),
    "an index of COO past the end": damaged_coo,
}


@pytest.mark.parametrize("name", [*SPARSE, *ENTRY_POINTS])
@pytest.mark.parametrize("damage", DAMAGED)
def test_wild_indices_are_refused_before_native_code_follows_them(name, damage):
    with pytest.raises(DataError, match="indices of a sparse matrix must lie inside its shape"):
        (fit if name in SELECTORS else enter)(name, DAMAGED[damage]())


FRAME = pd.DataFrame(X, columns=list("abcdef"))
TIMES = {
    "pandas datetime": FRAME.assign(t=DAYS),
    "pandas timedelta": FRAME.assign(t=DAYS - DAYS[0]),
    "pandas dates only": pd.DataFrame({"t": DAYS, "u": DAYS[::-1]}),
    "pandas Timestamps as objects": FRAME.assign(t=pd.Series(list(DAYS), dtype=object)),
    "polars Date": pl.DataFrame({"a": X[:, 0], "t": [day.date() for day in DAYS]}),
    "Arrow date": pa.table({"a": X[:, 0], "t": pa.array([day.date() for day in DAYS])}),
    "Arrow duration": pa.table({"a": X[:, 0], "t": pa.array(range(40), pa.duration("s"))}),
}
TEXTS = {
    "pandas text": FRAME.assign(t="red"),
    "pandas text that spells numbers": FRAME.assign(t=[str(i) for i in range(40)]),
    "pandas objects that spell numbers": FRAME.assign(
        t=pd.Series([str(i) for i in range(40)], dtype=object)
    ),
    "pandas categories of numbers": FRAME.assign(t=pd.Categorical(list(range(8)) * 5)),
    "polars text": pl.DataFrame({"a": X[:, 0], "t": [str(i) for i in range(40)]}),
    "polars categories": pl.DataFrame(
        {"a": X[:, 0], "t": pl.Series(["x", "y"] * 20, dtype=pl.Categorical)}
    ),
    "Arrow text": pa.table({"a": X[:, 0], "t": [str(i) for i in range(40)]}),
    "Arrow categories": pa.table(
        {"a": X[:, 0], "t": pa.array(["x", "y"] * 20).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("name", sorted(set(SELECTORS) - {"AutoSelector"}))  # it prepares frames
@pytest.mark.parametrize("kind", [*TIMES, *TEXTS])
def test_columns_of_dates_and_text_are_refused_by_name(name, kind):
    with pytest.raises(DataError, match=r"numeric; these are not: 't' \(.*Drop them, or turn"):
        fit(name, {**TIMES, **TEXTS}[kind])


OBJECTS = X.astype(object)
ARRAYS = {
    "datetime64": (np.repeat(DAYS.values[:, None], 6, axis=1), "all of them \\(datetime64"),
    "text": (X.astype(str), "all of them \\(<U"),
    "text among objects": (np.where(np.arange(6) == 2, X.astype(str), OBJECTS), "2 \\(str"),
    "dates among objects": (np.column_stack([OBJECTS, list(DAYS)]), "6 \\(Timestamp"),
    "text in a list": ([[1.0, "2"], [3.0, "5"], [2.0, "2"]], "1 \\(str"),
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_dates_and_of_text_that_spells_numbers_are_refused(name, kind):
    table, named = ARRAYS[kind]
    with pytest.raises(DataError, match=f"must be numeric; these are not: {named}"):
        fit(name, table)


MASKED = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
MASKED[[3, 5], 1] = np.ma.masked
MASKED[7, 4] = np.ma.masked
GAPS = r"masked entries found in these columns \(how many\): 1 \(2\), 4 \(1\)\. Drop"


@pytest.mark.parametrize("name", [*SELECTORS, *ENTRY_POINTS])
def test_masked_entries_count_as_missing(name):
    with pytest.raises(DataError, match=GAPS):
        (fit if name in SELECTORS else enter)(name, MASKED)


@pytest.mark.parametrize(
    "frame",
    [
        FRAME.assign(t=pd.array([None, *range(39)], dtype="Int64")),
        FRAME.assign(t=pd.array([None, *[True, False, True] * 13], dtype="boolean")),
        FRAME.assign(t=pd.Series([pd.NA, *range(39)], dtype=object)),
        pl.DataFrame({"a": X[:, 0], "t": [None, *range(39)]}),
        pa.table({"a": X[:, 0], "t": pa.array([None, *range(39)])}),
    ],
    ids=["Int64", "boolean", "object", "polars", "Arrow"],
)
def test_what_a_frame_calls_missing_is_counted_by_column(frame):
    with pytest.raises(DataError, match=r"columns \(how many\): 't' \(1\)\. Drop the columns"):
        fit("SPCAFS", frame)


NUMBERS = {
    "read-only": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
    "a strided view": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "float16": lambda: X.astype(np.float16),
    "longdouble": lambda: X.astype(np.longdouble),
    "int16": lambda: X.astype(np.int16),
    "big-endian floats": lambda: X.astype(">f8"),
    "a list of lists": X.tolist,
    "objects": lambda: OBJECTS,
    "Decimals": lambda: pd.DataFrame([[Decimal(int(v)) for v in row] for row in X]),
    "pandas Float64": lambda: FRAME.astype("Float64"),
    "pandas Arrow": lambda: FRAME.astype("float64[pyarrow]"),
    "polars Decimal": lambda: pl.DataFrame(X).cast(pl.Decimal(12, 2)),
}


@pytest.mark.parametrize("name", ["SPCAFS", "UDFS", "LaplacianScore", "VarianceScore"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_kind_give_the_features_of_plain_ones(name, kind):
    found, expected = fit(name, NUMBERS[kind]()), fit(name, X)
    np.testing.assert_array_equal(found.top(3).indices, expected.top(3).indices)


@pytest.mark.parametrize("table", [X + 1j, (X + 1j).tolist(), sp.csr_array(X + 1j)])
def test_complex_numbers_are_refused_with_the_way_out(table):
    with pytest.raises(DataError, match=r"Complex data not supported.*X\.real"):
        fit("SPCAFS", table)


MANY_LEVELS = FRAME.set_axis(pd.MultiIndex.from_product([["u", "v"], [1, 2, 3]]), axis=1)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_frame_with_levels_of_column_names_is_fitted_and_its_index_is_no_feature(name):
    index = pd.MultiIndex.from_product([range(8), range(5)], names=["one", "two"])
    selector = fit(name, MANY_LEVELS.set_index(index), n_features_to_select=3)
    same(selector.scores_, fit(name, X, n_features_to_select=3).scores_)
    assert all(isinstance(label, str) for label in selector.top(3).names)
