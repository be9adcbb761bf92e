"""Tables in memory, of every kind: the same features as from plain numbers, or a reason."""

import datetime
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
from keepers.exceptions import DataError, KeepersError, KeepersWarning

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
        keepers.select_settings(X, 3, random_state=0, **SMALL_SEARCH).best.evidence.score
    ),
    "StabilitySelector": lambda X: (
        keepers.StabilitySelector(VarianceScore(3), n_resamples=4, random_state=0).fit(X).scores_
    ),
    "spcafs_path": lambda X: keepers.spcafs_path(X, n_components=2, n_gammas=3).gammas,
    "prune_redundant": lambda X: keepers.prune_redundant(X, [1, 2, 3, 4, 5, 6], 0.3),
    "report": lambda X: (
        keepers.report(
            VarianceScore(3).fit(np.arange(240.0).reshape(40, 6) % 7), X
        ).summary.ranked.variances
    ),
    "fit_blocks": lambda X: SPCAFS(3, random_state=0).fit_blocks(X).scores_,
    "fit_blocks of a list": lambda X: SPCAFS(3, random_state=0).fit_blocks([X]).scores_,
    "partial_fit": lambda X: SPCAFS(3, random_state=0).partial_fit(X).scores_,
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


def with_long_indices():
    long = sp.csr_array(HOLLOW)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    return long


def read_only(matrix):
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def stale():
    """Duplicates that the matrix has been told it has not."""
    matrix = with_duplicates("csr")
    matrix.has_canonical_format = True
    return matrix


STORAGES = {
    "duplicates in CSR": lambda: with_duplicates("csr"),
    "duplicates in CSC": lambda: with_duplicates("csc"),
    "duplicates in COO": lambda: with_duplicates("csr").tocoo(),
    "duplicates that may not be written": lambda: read_only(with_duplicates("csr")),
    "duplicates denied by a flag": stale,
    "unsorted": unsorted,
    "stored zeros": with_stored_zeros,
    "int64 indices": with_long_indices,
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


@pytest.mark.parametrize("take", [lambda X: scores("SPCAFS", X), ENTRY_POINTS["fit_blocks"]])
def test_summing_duplicates_leaves_the_matrix_of_the_user_as_it_was(take):
    matrix = with_duplicates("csr")
    before = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    take(matrix)
    for part, old in zip((matrix.data, matrix.indices, matrix.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


@pytest.mark.parametrize("name", [n for n in SELECTORS if n not in SPARSE])
def test_a_frame_of_sparse_columns_is_refused_where_a_sparse_matrix_is(name):
    with pytest.raises(DataError, match=r"does not accept sparse columns: .*to_dense"):
        fit(name, pd.DataFrame(HOLLOW).astype(pd.SparseDtype(float, 0)))


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
    "a pointer past the end": lambda: damaged("indptr", 5, 10**6),
    "an index of COO past the end": damaged_coo,
}


@pytest.mark.parametrize("name", [*SPARSE, *ENTRY_POINTS])
@pytest.mark.parametrize("damage", DAMAGED)
def test_wild_indices_are_refused_before_native_code_follows_them(name, damage):
    with pytest.raises(DataError, match="indices of a sparse matrix must lie inside its shape"):
        (fit if name in SELECTORS else enter)(name, DAMAGED[damage]())


@pytest.mark.parametrize("name", ["SPCAFS", "VarianceScore"])  # one that has its own, one not
@pytest.mark.parametrize("damage", DAMAGED)
def test_wild_indices_are_refused_by_transform_too(name, damage):
    selector = fit(name, X)
    with pytest.raises(DataError, match="indices of a sparse matrix must lie inside its shape"):
        selector.transform(DAMAGED[damage]())


FRAME = pd.DataFrame(X, columns=list("abcdef"))
TIMES = {
    "pandas datetime": FRAME.assign(t=DAYS),
    "pandas datetime with a zone": FRAME.assign(t=DAYS.tz_localize("UTC")),
    "pandas timedelta": FRAME.assign(t=DAYS - DAYS[0]),
    "pandas period": FRAME.assign(t=DAYS.to_period("D")),
    "pandas dates only": pd.DataFrame({"t": DAYS, "u": DAYS[::-1]}),
    "pandas Timestamps as objects": FRAME.assign(t=pd.Series(list(DAYS), dtype=object)),
    "pandas dates as objects": FRAME.assign(t=pd.Series([d.date() for d in DAYS], dtype=object)),
    "pandas Arrow date": FRAME.assign(t=pd.Series(DAYS).astype("date32[pyarrow]")),
    "polars Date": pl.DataFrame({"a": X[:, 0], "t": [day.date() for day in DAYS]}),
    "polars Date only": pl.DataFrame({"t": [day.date() for day in DAYS]}),
    "polars Datetime": pl.DataFrame({"a": X[:, 0], "t": list(DAYS.to_pydatetime())}),
    "polars Time": pl.DataFrame({"a": X[:, 0], "t": [datetime.time(i % 24) for i in range(40)]}),
    "polars Duration": pl.DataFrame({"a": X[:, 0], "t": list((DAYS - DAYS[0]).to_pytimedelta())}),
    "Arrow date": pa.table({"a": X[:, 0], "t": pa.array([day.date() for day in DAYS])}),
    "Arrow timestamp": pa.table({"a": X[:, 0], "t": pa.array(list(DAYS.to_pydatetime()))}),
    "Arrow duration": pa.table({"a": X[:, 0], "t": pa.array(range(40), pa.duration("s"))}),
}
TEXTS = {
    "pandas text": FRAME.assign(t="red"),
    "pandas text that spells numbers": FRAME.assign(t=[str(i) for i in range(40)]),
    "pandas objects that spell numbers": FRAME.assign(
        t=pd.Series([str(i) for i in range(40)], dtype=object)
    ),
    "pandas categories of numbers": FRAME.assign(t=pd.Categorical(list(range(8)) * 5)),
    "pandas intervals": FRAME.assign(t=pd.interval_range(0, 40)),
    "pandas lists": FRAME.assign(t=[[1]] * 40),
    "polars text": pl.DataFrame({"a": X[:, 0], "t": [str(i) for i in range(40)]}),
    "polars categories": pl.DataFrame(
        {"a": X[:, 0], "t": pl.Series(["x", "y"] * 20, dtype=pl.Categorical)}
    ),
    "Arrow text": pa.table({"a": X[:, 0], "t": [str(i) for i in range(40)]}),
    "Arrow categories": pa.table(
        {"a": X[:, 0], "t": pa.array(["x", "y"] * 20).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("kind", [*TIMES, *TEXTS])
def test_columns_of_dates_and_text_are_refused_by_name(name, kind):
    with pytest.raises(DataError, match=r"Every column must be numeric; these are not: 't' \("):
        fit(name, {**TIMES, **TEXTS}[kind])


OBJECTS = X.astype(object)
ARRAYS = {
    "datetime64": (np.repeat(DAYS.values[:, None], 6, axis=1), "all of them \\(datetime64"),
    "timedelta64": (X.astype("m8[s]"), "all of them \\(timedelta64"),
    "text": (X.astype(str), "all of them \\(<U"),
    "bytes": (X.astype("S8"), "all of them \\(.S8"),
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


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("kind", ["pandas datetime", "polars Date", "pandas categories of numbers"])
def test_columns_of_dates_and_text_are_refused_wherever_a_table_is_taken(name, kind):
    with pytest.raises(DataError, match=r"Every column must be numeric; these are not: 't' \("):
        enter(name, {**TIMES, **TEXTS}[kind])


MASKED = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
MASKED[[3, 5], 1] = np.ma.masked
MASKED[7, 4] = np.ma.masked
GAPS = r"masked entries found in these columns \(how many\): 1 \(2\), 4 \(1\)\. Drop"


@pytest.mark.parametrize("name", [*SELECTORS, *ENTRY_POINTS])
def test_masked_entries_count_as_missing(name):
    with pytest.raises(DataError, match=GAPS):
        (fit if name in SELECTORS else enter)(name, MASKED)


def test_masked_rows_in_a_list_count_as_missing():
    with pytest.raises(DataError, match=GAPS):
        fit("SPCAFS", list(MASKED))


def test_a_masked_array_of_which_nothing_is_masked_is_an_array():
    same(scores("SPCAFS", np.ma.array(X)), scores("SPCAFS", X))


@pytest.mark.parametrize(
    "frame",
    [
        FRAME.assign(t=pd.array([None, *range(39)], dtype="Int64")),
        FRAME.assign(t=pd.array([None, *[True, False, True] * 13], dtype="boolean")),
        FRAME.assign(t=pd.Series([pd.NA, *range(39)], dtype=object)),
        FRAME.assign(t=pd.Series([None, *range(39)], dtype="float64[pyarrow]")),
        pl.DataFrame({"a": X[:, 0], "t": [None, *range(39)]}),
        pa.table({"a": X[:, 0], "t": pa.array([None, *range(39)])}),
    ],
    ids=["Int64", "boolean", "object", "Arrow in pandas", "polars", "Arrow"],
)
def test_what_a_frame_calls_missing_is_counted_by_column(frame):
    with pytest.raises(DataError, match=r"columns \(how many\): 't' \(1\)\. Drop the columns"):
        fit("SPCAFS", frame)


NUMBERS = {
    "read-only": lambda: np.frombuffer(X.tobytes()).reshape(X.shape),
    "a strided view": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "a reversed view": lambda: X[::-1].copy()[::-1],
    "Fortran order": lambda: np.asfortranarray(X),
    "float32": lambda: X.astype(np.float32),
    "float16": lambda: X.astype(np.float16),
    "longdouble": lambda: X.astype(np.longdouble),
    "int16": lambda: X.astype(np.int16),
    "int64": lambda: X.astype(np.int64),
    "big-endian floats": lambda: X.astype(">f8"),
    "big-endian integers": lambda: X.astype(">i4"),
    "a list of lists": X.tolist,
    "objects": lambda: OBJECTS,
    "Decimals": lambda: pd.DataFrame([[Decimal(int(v)) for v in row] for row in X]),
    "pandas Float64": lambda: FRAME.astype("Float64"),
    "pandas Arrow": lambda: FRAME.astype("float64[pyarrow]"),
    "polars Decimal": lambda: pl.DataFrame(X).cast(pl.Decimal(12, 2)),
    "an Arrow table": lambda: pa.Table.from_pandas(FRAME),
}


@pytest.mark.parametrize("name", ["SPCAFS", "UDFS", "LaplacianScore", "VarianceScore"])
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_kind_give_the_features_of_plain_ones(name, kind):
    found, expected = fit(name, NUMBERS[kind]()), fit(name, X)
    np.testing.assert_array_equal(found.top(3).indices, expected.top(3).indices)


def test_booleans_are_numbers():
    flags = X > 0
    same(scores("SPCAFS", flags), scores("SPCAFS", flags.astype(float)))
    same(scores("SPCAFS", pd.DataFrame(flags)), scores("SPCAFS", flags.astype(float)))


@pytest.mark.parametrize("table", [X + 1j, (X + 1j).tolist(), sp.csr_array(X + 1j)])
def test_complex_numbers_are_refused_with_the_way_out(table):
    with pytest.raises(DataError, match=r"Complex data not supported.*X\.real"):
        fit("SPCAFS", table)


def test_whole_numbers_too_large_to_be_exact_are_refused_in_a_frame_by_name():
    with pytest.raises(DataError, match=r"at most 2\*\*53 .* \(column 'id'\)"):
        fit("SPCAFS", FRAME.assign(id=2**60 + np.arange(40)))


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        (pd.DataFrame(X, columns=list("aabcde")), "names must be unique; these are not: 'a'"),
        (np.zeros(5, dtype=[("a", float), ("b", float)]), "structured_to_unstructured"),
    ],
    ids=["duplicate names", "structured array"],
)
def test_objects_that_are_no_table_yet_are_refused_with_the_way_out(table, rule):
    with pytest.raises(DataError, match=rule):
        fit("SPCAFS", table)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_numpy_matrix_is_refused_as_scikit_learn_does():
    with pytest.raises(TypeError, match=r"np\.matrix is not supported"):
        fit("SPCAFS", np.asmatrix(X))


MANY_LEVELS = FRAME.set_axis(pd.MultiIndex.from_product([["u", "v"], [1, 2, 3]]), axis=1)


@pytest.mark.parametrize("name", SELECTORS)
def test_a_frame_with_levels_of_column_names_is_fitted_and_its_index_is_no_feature(name):
    index = pd.MultiIndex.from_product([range(8), range(5)], names=["one", "two"])
    selector = fit(name, MANY_LEVELS.set_index(index), n_features_to_select=3)
    same(selector.scores_, fit(name, X, n_features_to_select=3).scores_)
    assert all(isinstance(label, str) for label in selector.top(3).names)


def test_levels_of_column_names_are_joined_in_messages_and_reports():
    with pytest.raises(DataError, match=r"\(how many\): 'u/2' \(2\)\."):
        fit("SPCAFS", MANY_LEVELS.mask(np.ma.getmaskarray(MASKED) & (np.arange(6) == 1)))
    with pytest.raises(DataError, match=r"these are not: 'v/3' \("):
        fit("SPCAFS", MANY_LEVELS.astype({("v", 3): str}))
    report = keepers.report(fit("SPCAFS", MANY_LEVELS), MANY_LEVELS)
    assert set(report.summary.ranked.names) == {"u/1", "u/2", "u/3", "v/1", "v/2", "v/3"}


def test_every_refusal_is_an_error_of_keepers_and_a_value_error():
    with pytest.raises(KeepersError) as caught:
        fit("SPCAFS", MASKED)
    assert isinstance(caught.value, ValueError)
