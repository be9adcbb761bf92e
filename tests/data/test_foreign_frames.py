"""Tables of other libraries, lazy or not: fitted, read in blocks, refused in a sentence."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from keepers import SPCAFS
from keepers.data.foreign_frames import as_frame, frame_batches
from keepers.data.mixed import as_mixed_table
from keepers.exceptions import DataError

RNG = np.random.default_rng(0)
COLUMNS = {name: RNG.normal(size=40) * (at + 1) for at, name in enumerate("abcdef")}
TABLE = pa.table(COLUMNS)
VALUES = np.column_stack(list(COLUMNS.values()))


class Capsule:
    """A table that follows the protocol of Arrow, and has nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Exchanged:
    """A table that follows the interchange protocol, and has nothing else."""

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return TABLE.__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(TABLE, path, row_group_size=15)
    return path


SOURCES = {
    "polars LazyFrame": lambda path: pl.DataFrame(COLUMNS).lazy(),
    "polars scan_parquet": lambda path: pl.scan_parquet(path),
    "DuckDB relation": lambda path: duckdb.sql(f"select * from '{path}'"),
    "Arrow table": lambda path: TABLE,
    "Arrow batch": lambda path: TABLE.to_batches()[0],
    "Arrow reader": lambda path: TABLE.to_reader(max_chunksize=7),
    "Arrow dataset": lambda path: pa.dataset.dataset(path),
    "Arrow protocol": lambda path: Capsule(TABLE),
    "interchange protocol": lambda path: Exchanged(),
}
EVERY_SOURCE = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@EVERY_SOURCE
def test_a_fit_is_that_of_the_values_with_their_names(parquet, source):
    expected = SPCAFS(2).fit(VALUES)
    selector = SPCAFS(2).fit(source(parquet))
    assert selector.feature_names_in_.tolist() == list(COLUMNS)
    np.testing.assert_allclose(selector.scores_, expected.scores_)
    np.testing.assert_array_equal(selector.transform(source(parquet)), expected.transform(VALUES))


@EVERY_SOURCE
def test_fit_transform_reads_once_and_set_output_asks_for_frames(parquet, source):
    expected = SPCAFS(2).fit_transform(VALUES)
    np.testing.assert_array_equal(SPCAFS(2).fit_transform(source(parquet)), expected)
    framed = SPCAFS(2).set_output(transform="pandas").fit_transform(source(parquet))
    assert isinstance(framed, pd.DataFrame)
    assert set(framed.columns) <= set(COLUMNS)


@EVERY_SOURCE
def test_a_fit_in_blocks_is_that_of_the_values(parquet, source):
    expected = SPCAFS(2).fit(VALUES)
    selector = SPCAFS(2).fit_blocks(source(parquet))
    assert selector.feature_names_in_.tolist() == list(COLUMNS)
    assert selector.ranking_.tolist() == expected.ranking_.tolist()


def test_batches_are_read_anew_for_every_pass(parquet):
    for name in ("DuckDB relation", "polars scan_parquet", "Arrow dataset", "Arrow table"):
        ask = frame_batches(SOURCES[name](parquet))
        for _ in range(2):
            assert sum(len(batch) for batch in ask()) == 40, name
    assert len(list(frame_batches(SOURCES["Arrow dataset"](parquet))())) > 1
    assert frame_batches(TABLE.to_reader()) is None  # passes by once
    assert frame_batches(VALUES) is None


def test_what_has_values_already_stays_as_it_is():
    for X in (VALUES, TABLE, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), [[1, 2]], COLUMNS["a"]):
        assert as_frame(X) is X


def test_a_lazy_frame_of_several_kinds_is_taken_apart(parquet):
    lazy = pl.LazyFrame({"a": [1, 2], "t": ["x", "y"]})
    table = as_mixed_table(lazy)
    assert table.feature_names.tolist() == ["a"]
    assert [column.name for column in table.others] == ["t"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.LazyFrame({"a": [1, 2], "t": ["x", "y"]}),
        lambda: duckdb.sql("select 1 as a, 'x' as t union all select 2, 'y'"),
        lambda: pa.table({"a": [1, 2], "t": ["x", "y"]}).to_reader(),
    ],
    ids=["polars", "DuckDB", "Arrow"],
)
def test_columns_that_hold_no_numbers_are_named(make):
    X = make()
    with pytest.raises(DataError, match=r"must be numeric; these are not: 't' \([sS]tring\)"):
        SPCAFS(1).fit(X)


@pytest.mark.parametrize("fit", ["fit", "fit_blocks"])
def test_a_query_that_fails_is_told_in_a_sentence(tmp_path, fit):
    relation = duckdb.sql("select 'x' as a, 1 as b").project("a::double, b")
    for X in (pl.scan_parquet(tmp_path / "absent.parquet"), relation):
        with pytest.raises(DataError, match=r"gives none: .*Check the query") as refusal:
            getattr(SPCAFS(1), fit)(X)
        assert "\n" not in str(refusal.value)


GAPS = {
    "pandas Int64": pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2, 3]}),
    "pandas Float64": pd.DataFrame({"a": pd.array([1, None, 3], dtype="Float64"), "b": [1, 2, 3]}),
    "pandas boolean": pd.DataFrame(
        {"a": pd.array([True, None, False], dtype="boolean"), "b": [1.0, 2, 3]}
    ),
    "pandas Arrow": pd.DataFrame(
        {"a": pd.array([1, None, 3], dtype="int64[pyarrow]"), "b": [1.0, 2, 3]}
    ),
    "polars": pl.DataFrame({"a": [1, None, 3], "b": [1.0, 2, 3]}),
    "Arrow": pa.table({"a": [1, None, 3], "b": [1.0, 2, 3]}),
    "DuckDB": pa.table({"a": [1, None, 3], "b": [1.0, 2, 3]}),
}


@pytest.mark.parametrize("kind", GAPS)
@pytest.mark.parametrize("call", ["fit", "fit_blocks", "transform"])
def test_gaps_of_nullable_columns_are_named_without_advice_of_scikit_learn(kind, call):
    gaps = GAPS[kind]
    connection = duckdb.connect()  # the default one may still have an open result
    X = connection.sql("select * from gaps") if kind == "DuckDB" else gaps
    selector = SPCAFS(1)
    if call == "transform":
        selector.fit(pd.DataFrame({"a": [1.0, 2, 4], "b": [2.0, 5, 3]}))
    with pytest.raises(DataError, match=r"finite numbers; .*: 'a' \(1\)") as refusal:
        getattr(selector, call)(X)
    assert "HistGradientBoosting" not in str(refusal.value)


TWICE = {
    "pandas": pd.DataFrame(VALUES, columns=list("abcdea")),
    "Arrow": pa.table(list(COLUMNS.values()), names=list("abcdea")),
}


@pytest.mark.parametrize("X", TWICE.values(), ids=TWICE)
class TestNamesThatOccurTwice:
    """One sentence on every route."""

    @pytest.mark.parametrize("call", ["fit", "fit_transform", "fit_blocks"])
    def test_in_a_fit(self, X, call):
        with pytest.raises(DataError, match=r"\ACol.* must be unique; these are not: 'a'\. .*\Z"):
            getattr(SPCAFS(2), call)(X)

    @pytest.mark.parametrize("call", ["transform", "inverse_transform"])
    @pytest.mark.parametrize("output", ["default", "pandas", "polars"])
    @pytest.mark.parametrize("fitted", [VALUES, pd.DataFrame(COLUMNS)], ids=["array", "frame"])
    def test_after_a_fit(self, X, call, output, fitted):
        selector = SPCAFS(2).fit(fitted).set_output(transform=output)
        with pytest.raises(DataError, match=r"\ACol.* must be unique; these are not: 'a'\. .*\Z"):
            getattr(selector, call)(X)


def test_inverse_transform_puts_the_columns_of_a_frame_in_their_places():
    selector = SPCAFS(2).fit(pd.DataFrame(COLUMNS))
    kept = selector.transform(pd.DataFrame(COLUMNS))
    back = selector.inverse_transform(kept)
    np.testing.assert_array_equal(back[:, selector.support_], kept)
    assert not back[:, ~selector.support_].any()
