"""Text, Parquet and Arrow files as others write them, whole and in blocks of rows."""

import csv
import datetime
import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keepers.datasets import scan_table
from keepers.exceptions import DataError
from keepers.tables.table import stack_tables
from tables.both_ways import both_ways, in_blocks

each_suffix = pytest.mark.parametrize("suffix", ["parquet", "feather"])


def written(path, content):
    """A file of text, of bytes, of an Arrow table or of a pandas frame; by its suffix."""
    if isinstance(content, (bytes, str)):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif path.suffix == ".csv":
        content.to_csv(path, index=False)
    else:
        frame = isinstance(content, pd.DataFrame)
        table = pa.Table.from_pandas(content) if frame else content
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    return path


DAY = datetime.datetime(2020, 1, 1, 12)
NUMBERS = {
    "truth": (pa.array([True, None, False]), [1, np.nan, 0]),
    "half": (pa.array([np.float16(1.5), None, np.float16(2)], pa.float16()), [1.5, np.nan, 2]),
    "byte": (pa.array([1, None, -2], pa.int8()), [1, np.nan, -2]),
    "decimal": (pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2")]), [1.25, np.nan, 2]),
    "dictionary": (pa.array([1.5, None, 2.5]).dictionary_encode(), [1.5, np.nan, 2.5]),
    "largest": (pa.array([2**53, -(2**53), None]), [2.0**53, -(2.0**53), np.nan]),
    "nothing": (pa.nulls(3), [np.nan] * 3),
}


@both_ways
@each_suffix
@pytest.mark.parametrize("kind", NUMBERS)
def test_every_kind_of_number_is_read_as_it_is(tmp_path, suffix, kind, read):
    column, expected = NUMBERS[kind]
    for beside in ({}, {"a": [1.0, 2.0, 3.0]}):
        table = read(written(tmp_path / f"t.{suffix}", pa.table({kind: column, **beside})))
        assert table.columns == [kind, *beside]
        np.testing.assert_array_equal(table.values[:, 0], expected)


OTHERS = {
    "date": (pa.array([DAY.date(), None]), [DAY.date(), None]),
    "moment": (pa.array([DAY, None]), [DAY, None]),
    "time": (pa.array([3_661_000, None], pa.time32("ms")), [datetime.time(1, 1, 1), None]),
    "duration": (pa.array([90, None], pa.duration("s")), [datetime.timedelta(seconds=90), None]),
    "words": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "long text": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "large": (pa.array([2**53 + 1, None]), [str(2**53 + 1), None]),
    "very large": (pa.array([2**64 - 1, 1], pa.uint64()), [str(2**64 - 1), "1"]),
    "large words": (pa.array([2**53 + 1, 1]).dictionary_encode(), [str(2**53 + 1), "1"]),
}


@both_ways
@each_suffix
@pytest.mark.parametrize("kind", OTHERS)
def test_text_dates_and_identifiers_stay_beside_the_numbers(tmp_path, suffix, kind, read):
    column, expected = OTHERS[kind]
    path = written(tmp_path / f"t.{suffix}", pa.table({kind: column, "a": [1.5, 2.5]}))
    table = read(path)
    assert (table.columns, table.names.tolist(), table.others) == ([kind, "a"], ["a"], [kind])
    assert table.frame[kind].to_list() == expected
    np.testing.assert_array_equal(table.values, [[1.5], [2.5]])
    assert read(path, drop=[kind]).others == []


@both_ways
@each_suffix
def test_what_pandas_writes_is_read_back(tmp_path, suffix, read):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 4)), columns=["a", "a.b", "*", "^c$"])
    frame["small"] = rng.integers(0, 9, 50).astype("int8")
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 50))
    frame["size"] = pd.Categorical(["S", "L"] * 25, ["S", "M", "L"], ordered=True)
    frame.index = [f"s{at}" for at in range(50)]
    table = read(written(tmp_path / f"t.{suffix}", frame), labels="kind")
    assert table.names.tolist() == ["a", "a.b", "*", "^c$", "small"]
    np.testing.assert_array_equal(table.values, frame.iloc[:, :5].to_numpy(dtype=float))
    assert table.labels.tolist() == list(frame["kind"])
    assert table.ids.tolist() == list(frame.index)
    assert table.types["small"] == pl.Int8
    assert table.frame["size"].cast(pl.String).to_list() == list(frame["size"])


ROWS = 500
FRAME = pd.DataFrame(np.random.default_rng(1).normal(size=(ROWS, 4)), columns=list("abcd"))
FRAME.insert(0, "who", [f"s{at}" for at in range(ROWS)])
FRAME.insert(3, "kind", np.where(np.arange(ROWS) % 2, "x", "y"))
FRAME["word"] = [None if at % 7 == 0 else f"w {at}" for at in range(ROWS)]
ROLES = {"labels": "kind", "identifier": "who"}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("keepers.tables.columnar.rows_at_once", lambda *_, **__: 60)


@pytest.fixture(params=["csv", "tsv.gz", "parquet", "feather"])
def stored(request, tmp_path):
    path = tmp_path / f"t.{request.param}"
    if "sv" in request.param:
        FRAME.to_csv(path, index=False, sep="\t" if "tsv" in request.param else ",")
        return path
    return written(path, FRAME)


@pytest.mark.usefixtures("small_blocks")
def test_rows_come_in_blocks_as_often_as_asked(stored):
    scan = scan_table(stored, **ROLES)
    assert (scan.n_samples, scan.n_features, scan.n_stored) == (ROWS, 4, 4 * ROWS)
    assert (scan.features, scan.others) == ([*"abcd", "word"], ["word"])
    assert (scan.identifier, scan.labels) == ("who", "kind")
    X = FRAME[list("abcd")].to_numpy()
    for _ in range(2):
        blocks = list(scan.blocks())
        assert len(blocks) > 3
        assert blocks[0].origin == f"{stored.name}, rows 1 to {len(blocks[0].values)}"
        assert blocks[-1].origin.endswith(f"to {ROWS}")
        np.testing.assert_array_equal(np.vstack([block.values for block in blocks]), X)
    some = [block.values for block in scan.blocks(np.array([3, 1]))]
    np.testing.assert_array_equal(np.vstack(some), X[:, [3, 1]])
    table = stack_tables(list(scan.tables(["word", "b"])))
    assert (table.columns, table.names.tolist()) == (["b", "word"], ["b"])
    assert table.ids.tolist() == list(FRAME["who"])
    assert table.labels.tolist() == list(FRAME["kind"])
    words = [None if pd.isna(word) else word for word in FRAME["word"]]
    assert table.frame["word"].to_list() == words
    parts = pickle.loads(pickle.dumps(scan.parts(3)))
    assert len(parts) == 3
    tables = [table for part in parts for table in part.tables()]
    assert [name for table in tables for name in table.ids] == list(FRAME["who"])
    assert sum(part.n_samples for part in parts) == ROWS


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_several_files_are_one_table(tmp_path, suffix):
    written(tmp_path / f"p2.{suffix}", pd.DataFrame({"a": [1.5, 2.5], "k": [1, 2]}))
    written(tmp_path / f"p10.{suffix}", pd.DataFrame({"k": ["x", None], "a": [3, 4]}))
    table = in_blocks(tmp_path)
    assert (table.names.tolist(), table.others) == (["a"], ["k"])
    assert table.values.ravel().tolist() == [1.5, 2.5, 3, 4]
    assert table.frame["k"].to_list() == ["1", "2", "x", None], "text in one file, text in all"
    written(tmp_path / f"p11.{suffix}", pd.DataFrame({"a": [3], "b": [4]}))
    with pytest.raises(DataError, match=rf"p2\.{suffix} has 2, and p11.* lacks 'k' and adds 'b'"):
        scan_table(tmp_path)


@both_ways
@pytest.mark.parametrize(
    ("sep", "line_end", "quoting"),
    [
        (",", "\n", csv.QUOTE_MINIMAL),
        (";", "\r\n", csv.QUOTE_ALL),
        ("\t", "\r", csv.QUOTE_NONNUMERIC),
        ("|", "\n", csv.QUOTE_ALL),
    ],
)
def test_text_that_pandas_writes_is_read_back(tmp_path, quoting, line_end, sep, read):
    frame = FRAME.head(30).assign(note=["a, b", 'c "d"', "e;f"] * 10)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, quoting=quoting, lineterminator=line_end, sep=sep)
    table = read(path, **ROLES)
    assert table.columns == [*"abcd", "word", "note"]
    np.testing.assert_array_equal(table.values, frame[list("abcd")])
    assert table.frame["note"].to_list() == frame["note"].tolist()
    assert [table.ids.tolist(), table.labels.tolist()] == [list(frame["who"]), list(frame["kind"])]


PAIRS = ["1_0 10", "１２ 12", "1e5_0 1e50", f"{2**64} {2**64 + 1}", "0x10 16", "007 7"]


@both_ways
@pytest.mark.parametrize("pair", PAIRS)
def test_labels_and_names_that_differ_do_not_become_one_number(tmp_path, pair, read):
    one, other = pair.split()
    path = written(tmp_path / "t.csv", f"y,a\n{one},1\n{other},2\n")
    assert read(path, labels="y").labels.tolist() == [one, other]
    assert read(path, identifier="y").ids.tolist() == [one, other]
