"""Arrow files and streams in blocks, against pyarrow and open_table on the same file."""

import pickle

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats import arrow
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")

X = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32)


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


def _write(path, content, kind="file", compression=None, rows=77):
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(path, content.schema, options=options) as writer:
        writer.write_table(content, max_chunksize=rows)


@pytest.fixture
def content():
    return pa.table({f"x{j}": X[:, j] for j in range(5)})


@pytest.fixture(params=[("file", None), ("file", "lz4"), ("stream", "zstd"), ("stream", None)])
def path(request, tmp_path, content):
    kind, compression = request.param
    _write(tmp_path / "a.arrow", content, kind, compression)
    return tmp_path / "a.arrow"


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(arrow, "rows_at_once", lambda *_: 60)


@pytest.mark.usefixtures("small_blocks")
def test_rows_come_in_blocks(path):
    table = open_blocks(path)
    assert (table.n_samples, table.n_features, table.n_stored) == (500, 5, 2500)
    assert table.dtype == np.float32
    assert list(table.feature_names) == [f"x{j}" for j in range(5)]
    blocks = list(table.blocks())
    assert [len(block.values) for block in blocks] == [60] * 8 + [20]
    assert blocks[1].origin == "a.arrow, rows 61 to 120"
    assert all(block.values.flags.f_contiguous for block in blocks)
    np.testing.assert_array_equal(_stacked(table), X)
    np.testing.assert_array_equal(_stacked(table, np.array([4, 1])), X[:, [4, 1]])


def test_only_the_wanted_columns_are_loaded(path, monkeypatch):
    seen = []

    def spy(batch):
        seen.append(batch.schema.names)
        return batch

    table = open_blocks(path)
    record_batches = arrow._record_batches
    monkeypatch.setattr(arrow, "_record_batches", lambda reader: map(spy, record_batches(reader)))
    np.testing.assert_array_equal(_stacked(table, np.array([3, 0])), X[:, [3, 0]])
    assert {tuple(names) for names in seen} == {("x0", "x3")}


def test_one_large_batch_is_cut_into_blocks(tmp_path, content, small_blocks):
    _write(tmp_path / "a.ipc", content, rows=500)
    blocks = list(open_blocks(tmp_path / "a.ipc").blocks())
    assert [len(block.values) for block in blocks] == [60] * 8 + [20]


def test_what_pandas_writes_is_read_with_the_roles_of_open_table(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    frame["small"] = pd.array(rng.integers(0, 9, 50), dtype="Int8")
    frame.loc[3, "small"] = pd.NA
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], 50))
    frame["who"] = [f"s{i}" for i in range(50)]
    frame.to_feather(tmp_path / "a.feather")
    roles = {"labels": "kind", "drop": ["who"]}
    expected = open_table(tmp_path / "a.feather", **roles)
    table = open_blocks(tmp_path / "a.feather", **roles)
    assert table.dtype == np.float64
    assert list(table.feature_names) == list(expected.feature_names)
    np.testing.assert_array_equal(_stacked(table), expected.X)


def test_parts_are_pickled_and_cover_all_rows(path):
    parts = pickle.loads(pickle.dumps(open_blocks(path).parts(3)))
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)


def test_a_file_without_rows_is_refused(tmp_path, content):
    for rows in (content.slice(0, 0), pa.table({"a": pa.array([], pa.float32())})):
        _write(tmp_path / "a.arrow", rows)
        with pytest.raises(DataError, match="holds no rows"):
            open_blocks(tmp_path / "a.arrow")


def test_text_is_refused_by_name(tmp_path):
    _write(tmp_path / "a.arrow", pa.table({"a": [1.0], "b": ["x"]}))
    with pytest.raises(DataError, match=r"a\.arrow: Feature columns must hold numbers.*'b'"):
        open_blocks(tmp_path / "a.arrow")


def test_the_first_version_of_feather_is_refused(tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(40))
    with pytest.raises(DataError, match=r"a\.feather: Feather is read from version 2 on"):
        open_blocks(tmp_path / "a.feather")


@pytest.mark.filterwarnings("default")
def test_damage_gives_values_or_an_error_that_names_the_file(path):
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refusals = []
    for _ in range(200):
        damaged = bytearray(content)
        if rng.random() < 0.5:
            damaged = damaged[: int(rng.integers(len(content)))]
        else:
            damaged[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert _stacked(open_blocks(path)).shape[1] == 5
        except DataError as error:
            refusals.append(str(error))
    assert len(refusals) > 20
    assert all(str(path) in refusal for refusal in refusals)
