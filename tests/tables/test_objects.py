"""Tables handed over as objects: numbers apart from text and dates, whatever the library."""

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from keepers import SPCAFS
from keepers.exceptions import DataError
from keepers.tables.objects import table_of_object

NUMBERS = [1.5, float("nan"), 3.0]
WORDS = ["x", None, "z"]
DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2021, 6, 1)]
MOMENTS = [datetime.datetime(2020, 1, 1, 5, 30), None, datetime.datetime(2021, 6, 1)]
SPANS = [datetime.timedelta(days=1), None, datetime.timedelta(hours=2)]
MIXED = {"t": WORDS, "n": NUMBERS, "d": DAYS, "m": MOMENTS, "s": SPANS}


def mixed_frames():
    arrow = pa.table(MIXED)
    polars = pl.DataFrame(MIXED, strict=False)
    return {
        "pandas": pd.DataFrame({**MIXED, "m": pd.to_datetime(MOMENTS), "s": pd.Series(SPANS)}),
        "pandas objects": pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in MIXED.items()}),
        "pandas in seconds": pd.DataFrame(
            {
                **MIXED,
                "m": np.array(MOMENTS, dtype="M8[s]"),
                "s": np.array(SPANS, dtype="m8[s]"),
            }
        ),
        "pandas of Arrow": arrow.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": polars,
        "lazy": polars.lazy(),
        "Arrow": arrow,
    }


@pytest.mark.parametrize("library", mixed_frames())
def test_every_library_gives_the_same_table(library):
    table = table_of_object(mixed_frames()[library], name="it")
    assert table.name == "it"
    assert table.columns == list(MIXED)
    assert table.names.tolist() == ["n"]
    np.testing.assert_array_equal(table.values, np.array(NUMBERS)[:, None])
    assert table.others == ["t", "d", "m", "s"]
    assert table.frame["t"].to_list() == WORDS
    assert table.frame["d"].cast(pl.Date).to_list() == DAYS
    assert table.frame["m"].to_list() == MOMENTS
    assert table.frame["s"].to_list() == SPANS
    assert [dtype.base_type() for dtype in table.frame.dtypes[2:]] == [pl.Datetime, pl.Duration]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([True, None, False], dtype="boolean"),
        [True, False, True],
        [True, None, False],
        [None, None, None],
        [Decimal("1.5"), None, Decimal("2")],
        pd.array([1.5, None, 2], dtype="float64[pyarrow]"),
        pd.array([1, None, 2], dtype="int64[pyarrow]"),
        pd.array([True, None, False], dtype="bool[pyarrow]"),
        pd.arrays.SparseArray([0.0, 1.5, 0.0]),
        *(np.array([1, 2, 3], dtype=dtype) for dtype in (np.float16, np.longdouble, ">f8", ">i8")),
        pd.Series([1, pd.NA, 2.5], dtype=object),
    ],
    ids=lambda values: f"{type(values).__name__} {getattr(values, 'dtype', '')}",
)
def test_what_counts_as_numbers(values):
    table = table_of_object(pd.DataFrame({"x": values}))
    assert table.others == []
    expected = [np.nan if pd.isna(value) else float(value) for value in values]
    np.testing.assert_array_equal(table.values[:, 0], expected)


LONG, WITH_GAP = [2**53 + 1, 2**62, -(2**60)], [2**53 + 1, None, 7]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": LONG, "x": [1, 2, 3]}),
        pd.DataFrame({"id": pd.array(WITH_GAP, dtype="Int64"), "x": [1, 2, 3]}),
        pd.DataFrame({"id": pd.array(LONG, dtype="int64[pyarrow]"), "x": [1, 2, 3]}),
        pl.DataFrame({"id": WITH_GAP, "x": [1, 2, 3]}),
        pa.table({"id": WITH_GAP, "x": [1, 2, 3]}),
        np.column_stack([np.array(LONG), [1, 2, 3]]),
    ],
    ids=["pandas", "Int64", "pandas of Arrow", "polars", "Arrow", "array"],
)
def test_integers_that_would_be_rounded_are_text(table):
    found = table_of_object(table)
    assert found.n_features == 1
    words = [f"{2**53 + 1}", None, "7"] if None in found.frame.to_series() else [*map(str, LONG)]
    assert found.frame.to_series().to_list() == words


def test_ordered_categories_keep_their_order_and_other_objects_are_text():
    levels, values = ["S", "M", "L"], ["L", None, "S"]
    ordered = pd.DataFrame({"size": pd.Categorical(values, levels, ordered=True)})
    enum = pl.DataFrame({"size": pl.Series(values, dtype=pl.Enum(levels))})
    for frame in (ordered, enum):
        (column,) = table_of_object(frame).frame
        assert (column.dtype, column.to_list()) == (pl.Enum(levels), values)
    plain = pd.DataFrame({"size": pd.Categorical(values)})
    arrow = pa.Table.from_pandas(ordered)
    for frame in (plain, arrow, pa.Table.from_pandas(plain), enum.cast(pl.Categorical)):
        (column,) = table_of_object(frame).frame
        assert (column.dtype, column.to_list()) == (pl.String, values)
    frame = pd.DataFrame({"p": pd.period_range("2020-01", periods=2, freq="M"), "l": [[1], [2]]})
    rows = table_of_object(frame.assign(m=["a", 1])).frame.rows()
    assert rows == [("2020-01", "[1]", "a"), ("2020-02", "[2]", "1")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(3), "two dimensions.* has 1"),
        (np.ones((3, 0)), "minimum of 1 is required"),
        (np.ones((0, 3)), "at least one row"),
        (pd.DataFrame({"a": []}), "at least one row"),
        (np.ones((2, 2), dtype=complex), "Complex"),
        (sp.csr_matrix(np.ones((2, 2), dtype=complex)), "Complex"),
        (pd.DataFrame({"a": [1j, 2]}), "Complex"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "duplicates: 'a'"),
    ],
)
def test_what_is_not_a_table_raises(given, message):
    with pytest.raises(DataError, match=message):
        table_of_object(given)


COLUMNS = {name: np.random.default_rng(0).normal(size=40) for name in "abc"}
TABLE = pa.table(COLUMNS)


@pytest.fixture
def parquet(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "table.parquet", row_group_size=15)
    return tmp_path / "table.parquet"


SOURCES = {
    "polars LazyFrame": lambda path: pl.DataFrame(COLUMNS).lazy(),
    "polars scan_parquet": lambda path: pl.scan_parquet(path),
    "DuckDB relation": lambda path: duckdb.connect().sql(f"select * from '{path}'"),
    "Arrow table": lambda path: TABLE,
    "Arrow batch": lambda path: TABLE.to_batches()[0],
    "Arrow reader": lambda path: TABLE.to_reader(max_chunksize=7),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_foreign_and_lazy_tables_become_frames(parquet, source):
    table = table_of_object(source(parquet))
    assert table.columns == list(COLUMNS)
    np.testing.assert_array_equal(table.values, np.column_stack(list(COLUMNS.values())))


def test_a_frame_without_columns_is_refused_in_our_words():
    for frame in (pd.DataFrame(), pd.DataFrame(index=range(4)), pl.DataFrame()):
        with pytest.raises(DataError, match=r"0 feature\(s\) .* at least one column"):
            SPCAFS(1).fit(frame)
