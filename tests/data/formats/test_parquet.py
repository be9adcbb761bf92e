"""Parquet in blocks, against pyarrow and open_table on the same file."""

import decimal
import io
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats import arrow
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(1000, 5)).astype(np.float32)
NAMES = [f"x{j}" for j in range(5)]


def _content(values=X):
    return pa.table({f"x{j}": values[:, j] for j in range(values.shape[1])})


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(_content(), path, row_group_size=77)
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(arrow, "rows_at_once", lambda *_: 90)
    monkeypatch.setattr(arrow, "rows_at_once", lambda *_: 90)


def test_the_file_tells_shape_kind_and_names_before_values_are_read(path, monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    table = open_blocks(path)
    assert (table.n_samples, table.n_features, table.n_stored) == (1000, 5, 5000)
    assert table.dtype == np.float32
    assert list(table.feature_names) == NAMES
    assert table.feature_names.dtype == object
    assert (table.name, table.is_sparse, table.rereadable) == ("a.parquet", False, True)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_column_major_follow_each_other_and_can_be_read_again(path):
    table = open_blocks(path)
    blocks = list(table.blocks())
    assert [len(block.values) for block in blocks] == [90] * 11 + [10]
    assert blocks[0].origin == "a.parquet, rows 1 to 90"
    assert blocks[-1].origin == "a.parquet, rows 991 to 1000"
    for block in blocks:
        assert block.values.flags.f_contiguous
        assert block.values.dtype == np.float32
    np.testing.assert_array_equal(np.vstack([block.values for block in blocks]), X)
    np.testing.assert_array_equal(_stacked(table), X)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_that_were_given_out_are_not_written_over(path):
    blocks = list(open_blocks(path).blocks())
    assert not any(np.shares_memory(one.values, other.values) for one, other in pairwise(blocks))


def test_only_the_wanted_columns_are_read_in_the_wanted_order(path, monkeypatch):
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spy(self, *args, **kwargs):
        asked.append(kwargs["columns"])
        return iter_batches(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    table = open_blocks(path)
    np.testing.assert_array_equal(_stacked(table, np.array([4, 1])), X[:, [4, 1]])
    assert asked == [["x4", "x1"]]


def test_other_columns_are_not_even_looked_at(tmp_path):
    """The bytes of one column are destroyed; the others are read all the same."""
    path = tmp_path / "a.parquet"
    pq.write_table(_content(), path, compression="snappy", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    table = open_blocks(path)
    kept = np.array([0, 1, 3, 4])
    np.testing.assert_array_equal(_stacked(table, kept), X[:, kept])
    with pytest.raises(DataError, match=r"a\.parquet is not a readable Parquet file"):
        _stacked(table)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 13, 100])
def test_parts_cover_all_rows_once_and_in_order(path, n_parts):
    parts = open_blocks(path).parts(n_parts)
    assert len(parts) <= min(n_parts, 13)
    assert len(parts) >= min(n_parts, 13) // 2
    assert sum(part.n_samples for part in parts) == 1000
    assert sum(part.n_stored for part in parts) == 5000
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)
    again = [piece for part in parts for piece in part.parts(2)]
    np.testing.assert_array_equal(np.vstack([_stacked(piece) for piece in again]), X)


def test_a_part_says_where_its_rows_stand_in_the_file(path):
    last = open_blocks(path).parts(13)[-1]
    assert [block.origin for block in last.blocks()] == ["a.parquet, rows 925 to 1000"]


def test_a_table_sent_elsewhere_reads_the_same(path):
    table = pickle.loads(pickle.dumps(open_blocks(path).parts(3)[1]))
    np.testing.assert_array_equal(_stacked(table), _stacked(open_blocks(path).parts(3)[1]))


def test_roles_are_those_of_open_table(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b.c", "d"])
    frame["small"] = rng.integers(0, 9, 50).astype("int8")
    frame["truth"] = rng.random(50) < 0.5
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 50))
    frame["who"] = [f"s{i}" for i in range(50)]
    frame["note"] = "n"
    frame.to_parquet(tmp_path / "a.parquet")
    roles = {"labels": "kind", "identifier": "who", "drop": ["note"]}
    expected = open_table(tmp_path / "a.parquet", **roles)
    table = open_blocks(tmp_path / "a.parquet", **roles)
    assert table.dtype == np.float64
    assert list(table.feature_names) == list(expected.feature_names)
    np.testing.assert_array_equal(_stacked(table), expected.X)
    np.testing.assert_array_equal(_stacked(table, np.array([4, 1])), expected.X[:, [4, 1]])
    with pytest.raises(DataError, match=r"a\.parquet: Feature columns must hold numbers.*'note'"):
        open_blocks(tmp_path / "a.parquet", labels="kind", identifier="who")
    with pytest.raises(DataError, match=r"There is no column 'kinds'\. Did you mean 'kind'"):
        open_blocks(tmp_path / "a.parquet", labels="kinds")


def test_the_row_names_of_pandas_are_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["r1", "r2"])
    frame.to_parquet(tmp_path / "a.parquet")
    assert list(open_blocks(tmp_path / "a.parquet").feature_names) == ["a"]


def test_every_kind_of_number_becomes_what_open_table_makes_of_it(tmp_path):
    path = tmp_path / "a.parquet"
    content = pa.table(
        {
            "whole": pa.array([1, None, -3], pa.int32()),
            "large": pa.array([2**53, 0, -(2**53)], pa.int64()),
            "truth": pa.array([True, None, False]),
            "money": [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None],
            "half": pa.array(np.array([0.5, 1.5, -2.0], np.float16)),
            "single": pa.array([0.1, None, 3], pa.float32()),
            "double": pa.array([0.1, None, 3], pa.float64()),
            "nothing": pa.nulls(3, pa.float64()),
        }
    )
    pq.write_table(content.slice(0, 3), path)
    table = open_blocks(path)
    nan = np.nan
    expected = [
        [1, 2**53, 1, 1.25, 0.5, np.float32(0.1), 0.1, nan],
        [nan, 0, nan, -3.5, 1.5, nan, nan, nan],
        [-3, -(2**53), 0, nan, -2, 3, 3, nan],
    ]
    np.testing.assert_array_equal(_stacked(table), expected)


def test_half_precision_becomes_single(tmp_path):
    content = pa.table({"a": np.array([0.5, 2], np.float16), "b": np.array([1, 0.1], np.float32)})
    pq.write_table(content, tmp_path / "a.parquet")
    (block,) = open_blocks(tmp_path / "a.parquet").blocks()
    assert block.values.dtype == np.float32
    np.testing.assert_array_equal(block.values, np.array([[0.5, 1], [2, 0.1]], np.float32))


def test_whole_numbers_that_float64_cannot_hold_are_refused_where_they_stand(tmp_path):
    path = tmp_path / "a.parquet"
    keys = np.zeros(100, np.int64)
    keys[70] = 2**60 + 1
    pq.write_table(pa.table({"key": keys, "a": np.ones(100)}), path, row_group_size=50)
    table = open_blocks(path)
    with pytest.raises(DataError, match="Column 'key' holds numbers that float64 cannot hold"):
        _stacked(table)
    assert _stacked(table, np.array([1])).shape == (100, 1)


def test_a_file_without_rows_is_refused(tmp_path):
    pq.write_table(_content(X[:0]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: It holds no rows\. Leave it out"):
        open_blocks(tmp_path / "a.parquet")


def test_a_file_that_changed_in_between_is_noticed(path):
    table = open_blocks(path)
    pq.write_table(_content(X[:500]), path, row_group_size=77)
    with pytest.raises(DataError, match=r"a\.parquet: It was changed"):
        _stacked(table)
    pq.write_table(_content(X[:999]), path, row_group_size=77)
    with pytest.raises(DataError, match="declares 1000 rows and gave 999"):
        _stacked(table)


def test_a_file_that_is_gone_is_named(path):
    table = open_blocks(path)
    path.unlink()
    with pytest.raises(DataError, match=r"a\.parquet is not a readable Parquet file"):
        _stacked(table)


def _bytes_of_a_file(**options):
    stream = io.BytesIO()
    pq.write_table(_content(X[:200]), stream, row_group_size=50, **options)
    return stream.getvalue()


def _values_or_error(path):
    """What was read, or None if the file was refused with an error of ours that names it."""
    try:
        return _stacked(open_blocks(path))
    except DataError as error:
        refusal = str(error)
    assert str(path) in refusal
    return None


@pytest.mark.filterwarnings("default")
def test_a_file_cut_anywhere_is_refused(tmp_path):
    content = _bytes_of_a_file()
    path = tmp_path / "a.parquet"
    for length in {*range(0, len(content), 97), *range(len(content) - 40, len(content))}:
        path.write_bytes(content[:length])
        assert _values_or_error(path) is None, length


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_damage_in_a_page_with_a_checksum_never_passes(tmp_path, compression):
    content = _bytes_of_a_file(compression=compression, write_page_checksum=True)
    rng = np.random.default_rng(0)
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    metadata = pq.ParquetFile(path).metadata
    first = 4
    last = min(
        metadata.row_group(3).column(4).data_page_offset, len(content) - metadata.serialized_size
    )
    refused = 0
    for place in rng.integers(first, last, size=150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        values = _values_or_error(path)
        refused += values is None
        if values is not None:
            np.testing.assert_array_equal(values, X[:200])
    assert refused > 100


@pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26,
    reason="pyarrow 16 itself crashes where the header of a page declares too many values",
)
@pytest.mark.filterwarnings("default")
def test_damage_anywhere_gives_values_or_an_error_of_ours(tmp_path):
    content = _bytes_of_a_file()
    rng = np.random.default_rng(1)
    path = tmp_path / "a.parquet"
    for _ in range(300):
        damaged = bytearray(content)
        # The metadata at the end is where a single byte does most harm.
        place = int(rng.integers(len(content) // 2, len(content)))
        damaged[place] = int(rng.integers(256))
        path.write_bytes(damaged)
        values = _values_or_error(path)
        assert values is None or values.ndim == 2


def test_damage_in_a_later_row_group_is_told_with_the_rows_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "rows_at_once", lambda *_: 50)
    monkeypatch.setattr(arrow, "_batch_rows", lambda *_: 50)
    path = tmp_path / "a.parquet"
    content = bytearray(_bytes_of_a_file(compression="snappy"))
    path.write_bytes(content)
    chunk = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content[chunk.data_page_offset : chunk.data_page_offset + 30] = b"\xff" * 30
    path.write_bytes(content)
    blocks = open_blocks(path).blocks()
    np.testing.assert_array_equal(next(blocks).values, X[:50])
    np.testing.assert_array_equal(next(blocks).values, X[50:100])
    with pytest.raises(DataError, match=r"a\.parquet is not a readable .* file, after row 100: "):
        next(blocks)


def test_a_large_row_group_is_read_through_small_buffers(path, monkeypatch):
    monkeypatch.setattr(arrow, "_LARGEST_WHOLE_GROUP", 100)
    np.testing.assert_array_equal(_stacked(open_blocks(path)), X)
    np.testing.assert_array_equal(_stacked(open_blocks(path), np.array([2])), X[:, [2]])
