"""Tables handed over as objects: numbers apart from text and dates, whatever the library."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from keepers.data.mixed import as_mixed_table
from keepers.data.table import LabelledTable
from keepers.exceptions import DataError

NUMBERS = [1.5, float("nan"), 3.0]
WORDS = ["x", None, "z"]
DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2021, 6, 1)]
MOMENTS = [datetime.datetime(2020, 1, 1, 5, 30), None, datetime.datetime(2021, 6, 1)]


def frames():
    pandas = pd.DataFrame({"t": WORDS, "n": NUMBERS, "d": DAYS, "m": pd.to_datetime(MOMENTS)})
    polars = pl.DataFrame({"t": WORDS, "n": NUMBERS, "d": DAYS, "m": MOMENTS}, strict=False)
    arrow = pa.table({"t": WORDS, "n": NUMBERS, "d": DAYS, "m": MOMENTS})
    return {"pandas": pandas, "polars": polars, "lazy": polars.lazy(), "arrow": arrow}


@pytest.mark.parametrize("library", frames())
def test_every_library_gives_the_same_table(library):
    table = as_mixed_table(frames()[library], name="it")
    assert table.name == "it"
    assert table.feature_names.tolist() == ["n"]
    np.testing.assert_array_equal(table.X, np.array(NUMBERS)[:, None])
    assert [(c.name, c.kind, c.position) for c in table.others] == [
        ("t", "text", 0),
        ("d", "date", 2),
        ("m", "date", 3),
    ]
    text, day, moment = table.others
    assert text.values.tolist() == WORDS
    expected = np.array([np.datetime64(d) if d else np.datetime64("NaT") for d in DAYS])
    np.testing.assert_array_equal(day.values, expected.astype("M8[us]"))
    assert moment.values.tolist() == MOMENTS


def test_moments_with_a_zone_are_in_universal_time():
    times = pd.to_datetime(["2020-01-01 12:00", None, "2020-07-01 12:00"]).tz_localize(
        "Europe/Rome"
    )
    expected = ["2020-01-01T11:00:00", None, "2020-07-01T10:00:00"]
    wanted = np.array(expected, dtype="datetime64[us]")
    as_objects = pd.Series(times).astype(object)
    for column in (pd.Series(times), as_objects):
        (found,) = as_mixed_table(pd.DataFrame({"t": column, "x": [1.0, 2, 3]})).others
        np.testing.assert_array_equal(found.values, wanted)
    from_polars = pl.DataFrame(
        {"t": [None if pd.isna(t) else t.to_pydatetime() for t in times], "x": [1.0, 2, 3]}
    )
    (found,) = as_mixed_table(from_polars).others
    np.testing.assert_array_equal(found.values, wanted)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3],
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([True, None, False], dtype="boolean"),
        [True, False, True],
        [True, None, False],
        [Decimal("1.5"), None, Decimal("2")],
        pd.array([1.5, None, 2], dtype="float64[pyarrow]"),
        np.array([1, 2, 3], dtype=np.float16),
    ],
)
def test_what_counts_as_numbers(values):
    frame = pd.DataFrame({"x": values})
    table = as_mixed_table(frame)
    assert table.others == ()
    expected = [np.nan if pd.isna(value) else float(value) for value in values]
    np.testing.assert_array_equal(table.X[:, 0], expected)


def test_ordered_categories_keep_their_order():
    sizes = pd.Categorical(["L", None, "S"], ["S", "M", "L"], ordered=True)
    (column,) = as_mixed_table(pd.DataFrame({"size": sizes})).others
    assert (column.kind, column.levels) == ("ordered", ("S", "M", "L"))
    assert column.values.tolist() == ["L", None, "S"]
    plain = pd.Categorical(["L", None, "S"])
    (column,) = as_mixed_table(pd.DataFrame({"size": plain})).others
    assert (column.kind, column.levels) == ("text", ())


LONG = [2**53 + 1, 2**62, -(2**60)]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": LONG, "x": [1, 2, 3]}),
        pd.DataFrame({"id": pd.array(LONG, dtype="Int64"), "x": [1, 2, 3]}),
        pl.DataFrame({"id": LONG, "x": [1, 2, 3]}),
        pa.table({"id": LONG, "x": [1, 2, 3]}),
        np.column_stack([np.array(LONG), [1, 2, 3]]),
    ],
)
def test_integers_that_would_be_rounded_are_text(table):
    found = as_mixed_table(table)
    assert found.n_features == 1
    assert found.others[0].values.tolist() == [str(value) for value in LONG]


def test_long_integers_with_gaps_are_text_as_well():
    with_gap = [2**53 + 1, None, 7]
    for table in (
        pd.DataFrame({"id": pd.array(with_gap, dtype="Int64")}),
        pl.DataFrame({"id": with_gap}),
        pa.table({"id": with_gap}),
    ):
        assert as_mixed_table(table).others[0].values.tolist() == [str(2**53 + 1), None, "7"]


def test_arrays_of_objects_are_looked_at_by_column():
    rows = [["a", 1, None], ["b", 2.5, 3], ["c", None, 4]]
    for given in (rows, np.array(rows, dtype=object)):
        table = as_mixed_table(given)
        assert table.feature_names.tolist() == ["x1", "x2"]
        np.testing.assert_array_equal(table.X, [[1, np.nan], [2.5, 3], [np.nan, 4]])
        assert (table.others[0].name, table.others[0].position) == ("x0", 0)


def test_masked_entries_are_gaps():
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_mixed_table(masked).X, [[1, np.nan], [3, 4]])


def test_an_index_of_text_names_the_samples():
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["s1", "s2"])
    assert as_mixed_table(frame).sample_names.tolist() == ["s1", "s2"]
    assert as_mixed_table(frame.reset_index(drop=True)).sample_names is None


def test_numbers_are_not_copied_into_another_precision():
    X = np.ones((3, 2), dtype=np.float32)
    assert as_mixed_table(X).X.dtype == np.float32
    assert as_mixed_table(sp.csc_matrix(X)).X.format == "csr"
    assert as_mixed_table(X.astype(np.int32)).X.dtype == np.float64


def test_a_labelled_table_is_what_it_is():
    table = LabelledTable(np.ones((2, 1)), np.array(["a"], dtype=object))
    assert as_mixed_table(table) is table


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(3), "two dimensions .* has 1"),
        (np.ones((3, 0)), "minimum of 1 is required"),
        (np.ones((0, 3)), "at least one row"),
        (pd.DataFrame({"a": []}), "at least one row"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (sp.csr_matrix(np.ones((2, 2), dtype=complex)), "Complex data not supported"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "duplicates: 'a'"),
    ],
)
def test_what_is_no_table_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        as_mixed_table(given)
