"""Parquet and Arrow files hold columns in the types that their source had."""

import datetime
import decimal
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from keepers.data.columns import OtherColumn
from keepers.datasets import LabelledTable, open_table, open_writer, write_features, write_table
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

READERS = {"parquet": pq.read_table, "feather": feather.read_table}
WRITERS = {"parquet": pq.write_table, "feather": feather.write_feather}
DAYS = pa.array([0, 1, None, 20_000], pa.int32()).cast(pa.date32())
MOMENTS = [1, -5, None, 1_700_000_000_123]
COLUMNS = {
    "int64": pa.array([1, 2, None, 2**53 - 1]),
    "town": pa.array(["Oslo", None, "=1+1", 'a,"b']),
    "uint8": pa.array([0, 1, 254, 255], pa.uint8()),
    "bool": pa.array([True, None, False, True]),
    "float32": pa.array([0.1, None, 2, 3], pa.float32()),
    "float16": pa.array(np.array([0.1, 2, 3, 65504], dtype=np.float16)),
    "float64": pa.array([0.1, None, 1e300, -0.5]),
    "s": pa.array(MOMENTS, pa.timestamp("s")),
    "us": pa.array(MOMENTS, pa.timestamp("us")),
    "ns": pa.array(MOMENTS, pa.timestamp("ns")),
    "zone": pa.array(MOMENTS, pa.timestamp("ms", "Europe/Oslo")),
    "day": DAYS,
    "day64": DAYS.cast(pa.date64()),
    "category": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    "ordered": pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None, 2], pa.int8()), pa.array(["low", "never", "high"]), ordered=True
    ),
    "numbered": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 0], pa.int8()), pa.array([30, 10])
    ),
    "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.25"), None]),
    "nothing": pa.nulls(4),
    "large": pa.array(["a", "b", None, "c"], pa.large_string()),
}
SOURCE = pa.table(COLUMNS)
ONLY_ARROW = ("s", "day64", "numbered")
"""What Parquet itself stores otherwise: seconds, milliseconds of days, categories of numbers."""


def of_number(values, kind):
    return LabelledTable(
        np.array(values, dtype=float)[:, None],
        np.array(["a"], dtype=object),
        types={"a": kind},
    )


@pytest.mark.parametrize("target", READERS)
@pytest.mark.parametrize("source", READERS)
def test_every_type_survives(tmp_path, source, target):
    WRITERS[source](SOURCE, tmp_path / f"a.{source}")
    before = READERS[source](tmp_path / f"a.{source}")
    table = open_table(tmp_path / f"a.{source}", mixed=True)
    write_features(tmp_path / f"b.{target}", table, SOURCE.column_names)
    after = READERS[target](tmp_path / f"b.{target}")
    assert after.column_names == SOURCE.column_names
    names = [name for name in COLUMNS if target == "feather" or name not in ONLY_ARROW]
    for name in names:
        found, expected = after[name].type, before[name].type
        if pa.types.is_dictionary(expected):  # Parquet does not keep the size of the codes
            assert (found.value_type, found.ordered) == (expected.value_type, expected.ordered)
            assert after[name].to_pylist() == before[name].to_pylist()
            continue
        assert found == expected, name
        assert after[name].combine_chunks().equals(before[name].combine_chunks()), name


@pytest.mark.parametrize("suffix", READERS)
def test_a_frame_of_pandas_has_the_same_dtypes_again(tmp_path, suffix):
    frame = pd.DataFrame(
        {
            "count": [1, 2, 3],
            "flag": [True, False, True],
            "single": np.array([0.5, 1.5, np.nan], dtype=np.float32),
            "when": pd.date_range("2024-03-30", periods=3, tz="Europe/Oslo"),
            "word": ["a", None, "c"],
            "size": pd.Categorical(["S", "L", "S"], categories=["S", "M", "L"], ordered=True),
            "kind": pd.Categorical(["q", "p", "q"]),
            "short": pd.array([1, None, 3], dtype="Int16"),
        }
    )
    getattr(frame, f"to_{suffix}")(tmp_path / f"a.{suffix}")
    table = open_table(tmp_path / f"a.{suffix}", mixed=True)
    write_features(tmp_path / f"b.{suffix}", table, list(frame.columns))
    # Without the notes that pandas leaves for itself, a gap among integers makes floats of them.
    expected = READERS[suffix](tmp_path / f"a.{suffix}").replace_schema_metadata(None).to_pandas()
    found = getattr(pd, f"read_{suffix}")(tmp_path / f"b.{suffix}")
    pd.testing.assert_frame_equal(found, expected, check_categorical=False)
    assert list(found["size"].cat.categories) == ["S", "M", "L"]
    assert found["size"].cat.ordered
    assert found["when"].dtype == frame["when"].dtype


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, 3], pa.int64()),
        ([1, np.nan, 300], pa.uint8()),
        ([1, 0, 0.5], pa.bool_()),
        ([1, 0, 2], pa.bool_()),
        ([0.1, 0.2, 0.3], pa.float32()),
        ([0.1, 1e6, 0.3], pa.float16()),
        ([1, 2, np.inf], pa.int32()),
        ([0.125, 1, 2], pa.decimal128(5, 2)),
        ([1, np.nan, np.nan], pa.null()),
        ([1, 2.5, 1], pa.dictionary(pa.int8(), pa.int64())),
    ],
)
def test_numbers_that_no_longer_fit_their_type_are_written_as_they_are(tmp_path, values, kind):
    write_features(tmp_path / "a.parquet", of_number(values, kind), ["a"])
    column = pq.read_table(tmp_path / "a.parquet")["a"]
    assert column.type == pa.float64()
    np.testing.assert_array_equal(column.to_numpy(), values)
    assert column.null_count == np.isnan(values).sum()


def test_gaps_are_null_as_pandas_writes_them(tmp_path):
    write_table(tmp_path / "a.feather", np.array([[1.0], [np.nan]]), ["a"])
    assert feather.read_table(tmp_path / "a.feather")["a"].to_pylist() == [1.0, None]


def test_columns_of_a_source_without_types_get_the_nearest(tmp_path):
    moments = np.array(["2024-01-02T03:04:05.000006", "NaT"], dtype="datetime64[us]")
    sizes = np.array(["L", None], dtype=object)
    table = LabelledTable(
        np.array([[1.0], [2.0]]),
        np.array(["a"], dtype=object),
        others=(
            OtherColumn("when", "date", moments, 0),
            OtherColumn("size", "ordered", sizes, 2, ("S", "L")),
        ),
    )
    write_features(tmp_path / "a.parquet", table, ["a", "size", "when"])
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.column_names == ["when", "a", "size"]
    assert found["when"].to_pylist() == [datetime.datetime(2024, 1, 2, 3, 4, 5, 6), None]
    assert list(found["size"].to_pandas().cat.categories) == ["S", "L"]


def test_values_that_have_no_type_here_are_written_as_text(tmp_path):
    source = pa.table({"a": [1.0, 2.0], "time": [datetime.time(1, 2), None]})
    pq.write_table(source, tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet", mixed=True)
    write_features(tmp_path / "b.parquet", table, ["time"])
    assert pq.read_table(tmp_path / "b.parquet")["time"].to_pylist() == ["01:02:00", None]


@pytest.mark.parametrize("suffix", READERS)
def test_dictionaries_grow_with_the_rows(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("keepers.data.formats.arrow_writing._GROUP_BYTES", 1)
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [["b", "a"], [None, "b"], ["c", "a"]]
    with open_writer(tmp_path / f"a.{suffix}") as writer:
        for some in words:
            column = OtherColumn("word", "text", np.array(some, dtype=object), 0)
            none = np.empty((2, 0))
            names = np.array([], dtype=object)
            writer.append(
                LabelledTable(none, names, others=(column,), types={"word": kind}), ["word"]
            )
    found = READERS[suffix](tmp_path / f"a.{suffix}")["word"]
    assert found.to_pylist() == list(chain.from_iterable(words))
    assert pa.types.is_dictionary(found.type)


def test_further_rows_are_held_to_the_types_of_the_first(tmp_path):
    first = of_number([1, 2], pa.int64())
    later = replace(first, X=first.X + 0.5)

    def append_both():
        with open_writer(tmp_path / "a.parquet") as writer:
            writer.append(first, ["a"])
            writer.append(later, ["a"])

    with pytest.raises(DataError, match=r"rows of a column are of one type; .*'a'"):
        append_both()
    assert list(tmp_path.iterdir()) == []
