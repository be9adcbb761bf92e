"""Parquet and Feather as pandas and pyarrow write them."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def _write(frame, path):
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_feather(path)


@pytest.fixture(params=["a.parquet", "a.feather"])
def path(request, tmp_path):
    return tmp_path / request.param


def test_what_pandas_writes_is_read_back_exactly(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
    frame["small"] = rng.integers(0, 9, 50).astype("int8")
    frame["truth"] = rng.random(50) < 0.5
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 50))
    frame["who"] = [f"s{i}" for i in range(50)]
    _write(frame, path)
    table = open_table(path, labels="kind", identifier="who")
    assert list(table.feature_names) == [*"abcd", "small", "truth"]
    np.testing.assert_array_equal(table.X, frame.iloc[:, :6].to_numpy(dtype=float))
    assert list(table.labels) == list(frame["kind"])
    assert list(table.sample_names) == list(frame["who"])
    assert table.X.flags.c_contiguous


def test_single_precision_stays_single(path):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    _write(pd.DataFrame(X, columns=list("abc")), path)
    table = open_table(path)
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X)


def test_missing_values_are_nan_in_every_kind_of_column(path):
    frame = pd.DataFrame(
        {
            "a": [1.0, None, 3.0],
            "b": pd.array([1, None, 3], dtype="Int64"),
            "c": pd.array([True, None, False], dtype="boolean"),
        }
    )
    _write(frame, path)
    expected = [[1, 1, 1], [np.nan, np.nan, np.nan], [3, 3, 0]]
    np.testing.assert_array_equal(open_table(path).X, expected)


def test_the_row_names_of_pandas_name_the_samples(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["r1", "r2"])
    frame.to_parquet(tmp_path / "a.parquet")
    assert list(open_table(tmp_path / "a.parquet").sample_names) == ["r1", "r2"]


def test_many_batches_make_one_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 5))
    content = pa.table({f"x{j}": X[:, j] for j in range(5)})
    pq.write_table(content, tmp_path / "a.parquet", row_group_size=77)
    np.testing.assert_array_equal(open_table(tmp_path / "a.parquet").X, X)
    with pa.ipc.new_stream(tmp_path / "a.arrow", content.schema) as writer:
        writer.write_table(content, max_chunksize=77)
    np.testing.assert_array_equal(open_table(tmp_path / "a.arrow").X, X)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_compressed_and_plain_feather(tmp_path, compression):
    X = np.random.default_rng(0).normal(size=(100, 3))
    content = pa.table({f"x{j}": X[:, j] for j in range(3)})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(tmp_path / "a.feather", content.schema, options=options) as writer:
        writer.write_table(content)
    np.testing.assert_array_equal(open_table(tmp_path / "a.feather").X, X)


def test_decimals_are_numbers(tmp_path):
    values = [decimal.Decimal("1.25"), decimal.Decimal("-3.50")]
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    np.testing.assert_array_equal(open_table(tmp_path / "a.parquet").X, [[1.25], [-3.5]])


def test_whole_numbers_that_float64_cannot_hold_are_refused(path):
    _write(pd.DataFrame({"key": [2**60 + 1, 3], "a": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match=r"'key' .*identifier="):
        open_table(path)
    assert list(open_table(path, identifier="key").sample_names) == [str(2**60 + 1), "3"]


@pytest.mark.parametrize(
    "column",
    [["x", "y"], [[1.0], [2.0]], pd.to_datetime(["2020-01-01", "2020-01-02"]), [b"x", b"y"]],
)
def test_columns_that_are_no_numbers_are_named(path, column):
    _write(pd.DataFrame({"a": [1.0, 2.0], "other": column}), path)
    with pytest.raises(DataError, match="do not: 'other'"):
        open_table(path)
    assert open_table(path, drop=["other"]).n_features == 1


def test_repeated_names_are_refused(tmp_path):
    content = pa.table([[1.0], [2.0]], names=["a", "a"])
    pq.write_table(content, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="there are duplicates: 'a'"):
        open_table(tmp_path / "a.parquet")


def test_a_name_with_a_dot_is_no_path(tmp_path):
    content = pa.table({"a": [1.0], "a.b": [2.0], "c": ["x"]})
    pq.write_table(content, tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet", drop=["c"])
    np.testing.assert_array_equal(table.X, [[1, 2]])


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_table_that_would_expand_past_the_limit_is_refused_before_it_is_read(
    tmp_path, compression
):
    content = pa.table({"a": np.zeros(2_000_000), "b": np.zeros(2_000_000)})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    path = tmp_path / "bomb.feather"
    with pa.ipc.new_file(path, content.schema, options=options) as writer:
        writer.write_table(content)
    assert path.stat().st_size < 1_000_000
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"2000000 x 2\) needs 32\.0 MB.*--max-size"):
        open_table(path, max_bytes=20_000_000)
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert open_table(path, max_bytes=40_000_000).n_samples == 2_000_000


def test_text_that_would_expand_past_the_limit_is_refused_too(tmp_path):
    path = tmp_path / "bomb.feather"
    content = pa.table({"a": [1.0], "t": ["x" * 30_000_000]})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, content.schema, options=options) as writer:
        writer.write_table(content)
    with pytest.raises(DataError, match="expanded"):
        open_table(path, labels="t", max_bytes=20_000_000)


def test_a_parquet_bomb_is_refused_by_what_it_declares(tmp_path):
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"a": np.zeros(5_000_000)}), path)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match=r"5000000 x 1\) needs 40\.0 MB"):
        open_table(path, max_bytes=30_000_000)


def _stacked(table):
    return np.vstack([block.values for block in table.blocks()])


POLARS_KINDS = ["String", "Categorical", "Enum", "Binary"]


@pytest.mark.parametrize("kind", POLARS_KINDS)
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("write", ["write_ipc", "write_ipc_stream"])
@pytest.mark.parametrize("level", ["oldest", "newest"])
def test_what_polars_writes_is_read_back_exactly(tmp_path, kind, compression, write, level):
    """Its files are no streams behind a magic: the schema stands there without its length."""
    pl = pytest.importorskip("polars")
    path = tmp_path / "a.arrow"
    X = np.random.default_rng(0).normal(size=(30, 3))
    labels = [f"a class with a long name, {i % 3}" for i in range(30)]
    frame = pl.DataFrame({**{f"x{j}": X[:, j] for j in range(3)}, "n": range(30), "kind": labels})
    target = pl.Enum(sorted(set(labels))) if kind == "Enum" else getattr(pl, kind)
    frame = frame.with_columns(pl.col("kind").cast(target))
    compat = getattr(pl.CompatLevel, level)()
    getattr(frame, write)(path, compression=compression, compat_level=compat)
    table = open_table(path, labels="kind")
    np.testing.assert_array_equal(table.X, np.column_stack([X, np.arange(30)]))
    assert list(table.feature_names) == ["x0", "x1", "x2", "n"]
    if kind != "Binary":
        assert list(table.labels) == labels
    np.testing.assert_array_equal(_stacked(open_blocks(path, labels="kind")), table.X)


@pytest.mark.parametrize("opened", [open_table, open_blocks])
def test_a_file_that_was_not_written_to_its_end_is_refused(tmp_path, opened):
    path = tmp_path / "a.arrow"
    content = pa.table({"a": np.arange(100.0)})
    with pa.ipc.new_file(path, content.schema) as writer:
        writer.write_table(content)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="ends with a footer"):
        opened(path)


@pytest.mark.parametrize("names", [["g", "n"], [None, None], ["g", None]])
@pytest.mark.parametrize("keep_metadata", [True, False])
def test_levels_of_a_pandas_index_are_no_features(path, names, keep_metadata):
    X = np.random.default_rng(0).normal(size=(4, 3))
    index = pd.MultiIndex.from_product([[5, 6], [1.5, 2.5]], names=names)
    content = pa.Table.from_pandas(pd.DataFrame(X, columns=list("abc"), index=index))
    if not keep_metadata:  # as other programs write it; only names without meaning tell
        content = content.replace_schema_metadata(None)
    left_out = [] if keep_metadata else [name for name in names if name]
    _write_arrow(content, path)
    for opened in (open_table, open_blocks):
        assert list(opened(path, drop=left_out).feature_names) == list("abc")
    np.testing.assert_array_equal(open_table(path, drop=left_out).X, X)
    np.testing.assert_array_equal(_stacked(open_blocks(path, drop=left_out)), X)
    if keep_metadata and names[0]:
        assert open_table(path, labels="g").labels.tolist() == [5, 5, 6, 6]


def test_a_pandas_index_is_no_feature_where_another_column_names_the_samples(path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "who": ["r", "s"]}, index=[7, 9])
    _write_arrow(pa.Table.from_pandas(frame), path)
    table = open_table(path, identifier="who")
    assert list(table.feature_names) == ["a"]
    assert list(table.sample_names) == ["r", "s"]
    assert list(open_blocks(path, identifier="who").feature_names) == ["a"]


def test_columns_of_several_levels_have_names_of_several_parts(path):
    columns = pd.MultiIndex.from_product([["x", "y"], ["mean", "sd"]])
    frame = pd.DataFrame(np.eye(4), columns=columns)
    _write_arrow(pa.Table.from_pandas(frame), path)
    expected = ["('x', 'mean')", "('x', 'sd')", "('y', 'mean')", "('y', 'sd')"]
    assert list(open_table(path).feature_names) == expected
    assert list(open_blocks(path).feature_names) == expected


def _write_arrow(content, path):
    if path.suffix == ".parquet":
        pq.write_table(content, path)
    else:
        with pa.ipc.new_file(path, content.schema) as writer:
            writer.write_table(content)


DAY = datetime.datetime(2020, 1, 1)
NUMBERS = {
    "bool": (pa.array([True, None, False]), [1, np.nan, 0]),
    "half": (pa.array([np.float16(1.5), None, np.float16(2)], pa.float16()), [1.5, np.nan, 2]),
    "decimal": (pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2")]), [1.25, np.nan, 2]),
    "whole decimal": (pa.array([decimal.Decimal(5), None, decimal.Decimal(2)]), [5, np.nan, 2]),
    "dictionary": (pa.array([1.5, None, 2.5]).dictionary_encode(), [1.5, np.nan, 2.5]),
    "largest": (pa.array([2**53, -(2**53), None]), [2.0**53, -(2.0**53), np.nan]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_every_kind_of_number_is_read_as_it_is(path, kind):
    column, expected = NUMBERS[kind]
    for others in ({}, {"a": [1.0, 2.0, 3.0]}):
        _write_arrow(pa.table({kind: column, **others}), path)
        np.testing.assert_array_equal(open_table(path).X[:, 0], expected)
        np.testing.assert_array_equal(_stacked(open_blocks(path))[:, 0], expected)


NO_NUMBERS = {
    "date": pa.array([DAY.date()] * 2),
    "date in ms": pa.array([DAY] * 2, pa.date64()),
    "timestamp": pa.array([DAY] * 2),
    "time": pa.array([1, 2], pa.time32("s")),
    "duration": pa.array([1, 2], pa.duration("s")),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "words": pa.array(["a", "b"]).dictionary_encode(),
    "bytes": pa.array([b"a", b"b"]),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_dates_and_other_kinds_are_never_counted_as_numbers(path, kind):
    _write_arrow(pa.table({"a": [1.0, 2.0], kind: NO_NUMBERS[kind]}), path)
    for opened in (open_table, open_blocks):
        with pytest.raises(DataError, match=f"must hold numbers; these do not: '{kind}'"):
            opened(path)
        assert list(opened(path, drop=[kind]).feature_names) == ["a"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**53 + 1, 1]),
        pa.array([-(2**53) - 1, 1]),
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([decimal.Decimal(2**60 + 1), decimal.Decimal(1)]),
        pa.array([decimal.Decimal(10**30 + 1), decimal.Decimal(1)]),
        pa.array([2**53 + 1, 1]).dictionary_encode(),
    ],
)
def test_integers_that_float64_cannot_hold_are_refused_by_column(path, column):
    _write_arrow(pa.table({"a": [1.0, 2.0], "key": column}), path)
    with pytest.raises(DataError, match="'key' holds numbers that float64 cannot hold exactly"):
        open_table(path)
    with pytest.raises(DataError, match="'key' holds numbers that float64 cannot hold exactly"):
        _stacked(open_blocks(path))
    assert open_table(path, drop=["key"]).n_features == 1


def test_a_page_that_belies_its_checksum_is_not_read_as_a_table(tmp_path):
    path, value = tmp_path / "a.parquet", 1.2345678
    pq.write_table(
        pa.table({"a": [value] * 3, "b": [1.0, 2.0, 3.0]}),
        path,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    content = path.read_bytes()
    damaged = content.replace(np.float64(value).tobytes(), np.float64(-value).tobytes(), 1)
    assert damaged != content
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="CRC"):
        open_table(path)
