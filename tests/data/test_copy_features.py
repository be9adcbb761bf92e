"""A table in blocks is written as the whole table is, with one block in memory."""

import os
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from keepers.data.table_files import check_writable
from keepers.datasets import (
    copy_features,
    open_blocks,
    open_table,
    open_writer,
    write_features,
)
from keepers.exceptions import DataError, ParameterError

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS = 3000
KEPT = ["size", "flag", "count", "town", "when", "kind", "gap", "maybe", "single"]
ROLES = {"labels": "class", "identifier": "who"}
SUFFIXES = ["parquet", "feather", "csv", "tsv.gz"]


def frame():
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "who": [f"r{at}" for at in range(N_ROWS)],
            "count": rng.integers(0, 100, N_ROWS),
            "town": rng.choice(np.array(["Oslo", "=x", 'a,"b', None], dtype=object), N_ROWS),
            "flag": rng.random(N_ROWS) < 0.5,
            "when": pd.date_range("2020", periods=N_ROWS, freq="min", tz="Europe/Oslo"),
            "class": "1",
            "kind": pd.Categorical(np.repeat(["x", "y", "z"], N_ROWS // 3)),
            "size": pd.Categorical(rng.choice(["S", "L"], N_ROWS), ["S", "M", "L"], ordered=True),
            "gap": pd.array(rng.integers(0, 5, N_ROWS), dtype="Int16"),
            "maybe": pd.array(rng.random(N_ROWS) < 0.5, dtype="boolean"),
            "single": rng.normal(size=N_ROWS).astype(np.float32),
        }
    )
    made.loc[::7, ["gap", "maybe"]] = pd.NA
    made.loc[N_ROWS - 1, "class"] = "b"  # only the last row tells that classes are no numbers
    return made


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    table = frame()
    table.to_parquet(folder / "a.parquet", row_group_size=1000)
    table.to_feather(folder / "a.feather", chunksize=700)
    table.to_csv(folder / "a.csv", index=False)
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks and row groups of some hundred rows."""
    for module in ("arrow", "text"):
        monkeypatch.setattr(f"keepers.data.formats.{module}.rows_at_once", lambda *_: 500)
    monkeypatch.setattr("keepers.data.formats.text.BLOCK_BYTES", 2**14)
    monkeypatch.setattr("keepers.data.formats.text_cells._CHARACTERS_PER_BLOCK", 2**14)
    monkeypatch.setattr("keepers.data.formats.arrow_writing._GROUP_BYTES", 2**14)


def read(path):
    return pq.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)


def assert_same(found, expected):
    if found.suffix in (".parquet", ".feather"):
        tables = read(found), read(expected)
        assert tables[0].schema.equals(tables[1].schema)
        pd.testing.assert_frame_equal(*(table.to_pandas() for table in tables))
    else:
        assert found.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("source", ["parquet", "feather", "csv"])
def test_blocks_give_what_the_whole_table_gives(tmp_path, sources, small_blocks, source, suffix):
    path = sources / f"a.{source}"
    blocks = open_blocks(path, mixed=True, **ROLES)
    assert sum(1 for _ in blocks.blocks()) > 3
    copied = copy_features(blocks, tmp_path / f"b.{suffix}", KEPT, identifier_name="who")
    table = open_table(path, mixed=True, **ROLES)
    whole = write_features(tmp_path / f"c.{suffix}", table, KEPT, identifier_name="who")
    assert_same(copied, whole)


def test_a_folder_is_one_table_whose_types_are_those_that_all_files_have(tmp_path, small_blocks):
    (tmp_path / "parts").mkdir()
    whole = frame().drop(columns="class")
    parts = [whole[:1000], whole[1000:].assign(count=lambda table: table["count"] + 0.5)]
    for at, part in enumerate(parts):
        part[list(part.columns)[:: 1 if at else -1]].to_parquet(
            tmp_path / "parts" / f"{at}.parquet"
        )
    blocks = open_blocks(tmp_path / "parts", mixed=True, identifier="who")
    found = read(copy_features(blocks, tmp_path / "a.parquet", [*KEPT])).to_pandas()
    assert found["sample"].tolist() == whole["who"].tolist()
    expected = pd.concat(parts)
    for name in ("count", "flag", "when", "single"):
        np.testing.assert_array_equal(found[name].to_numpy(), expected[name].to_numpy())
    assert found["count"].dtype == np.float64
    assert found["flag"].dtype == np.bool_
    words = found["kind"].astype(str).tolist()
    assert words == expected["kind"].astype(str).tolist()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_filled_gaps_change_the_type_of_their_column_only(tmp_path, sources, small_blocks, suffix):
    blocks = open_blocks(sources / "a.parquet", mixed=True, **ROLES)
    seen = []

    def fill_later_blocks(table):
        seen.append(table.n_samples)
        filler = 1.0 if table.sample_names[0] == "r0" else 2.5
        return replace(table, X=np.where(np.isnan(table.X), filler, table.X))

    path = copy_features(blocks, tmp_path / f"b.{suffix}", KEPT, change=fill_later_blocks)
    assert sum(seen) > N_ROWS, "read again when the type was found not to fit"
    found = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    for name in ("gap", "maybe"):
        expected = frame()[name].astype("Float64")
        expected[:500] = expected[:500].fillna(1.0)
        assert found[name].tolist() == expected.fillna(2.5).tolist()
    assert found["count"].dtype == np.int64
    assert found["flag"].dtype == np.bool_


def test_rows_and_whole_blocks_may_be_left_out(tmp_path, sources, small_blocks):
    blocks = open_blocks(sources / "a.csv", mixed=True, identifier="who")

    def first_rows(table):
        rows = np.flatnonzero([int(name[1:]) < 700 for name in table.sample_names])
        if not len(rows):
            return None
        others = tuple(replace(each, values=each.values[rows]) for each in table.others)
        return replace(table, X=table.X[rows], sample_names=table.sample_names[rows], others=others)

    path = copy_features(blocks, tmp_path / "b.csv", ["town", "count"], change=first_rows)
    assert pd.read_csv(path)["sample"].tolist() == [f"r{at}" for at in range(700)]
    with pytest.raises(DataError, match=r"at least one row; none was written to c\.csv"):
        copy_features(blocks, tmp_path / "c.csv", ["count"], change=lambda table: None)
    assert os.listdir(tmp_path) == ["b.csv"]


@pytest.mark.parametrize("source", ["parquet", "feather", "csv"])
def test_columns_of_text_alone_are_copied(tmp_path, sources, small_blocks, source):
    blocks = open_blocks(sources / f"a.{source}", mixed=True)
    path = copy_features(blocks, tmp_path / "b.csv", ["town"])
    found = pd.read_csv(path, keep_default_na=False)["town"].str.removeprefix("'")
    assert found.tolist() == frame()["town"].fillna("").tolist()


def test_text_that_comes_late_makes_a_column_of_text(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr("keepers.data.formats.text._FIRST_BYTES", 2**10)
    (tmp_path / "parts").mkdir()
    for at in (1, 2):
        lines = [f"{row},{row % 3},r{row}" for row in range(2000)]
        lines[1800] = "1800,none of them,r" if at == 2 else lines[1800]
        (tmp_path / "parts" / f"{at}.csv").write_text("\n".join(["a,b,who", *lines, ""]))
    blocks = open_blocks(tmp_path / "parts", mixed=True, identifier="who")
    assert list(blocks.feature_names) == ["a", "b"]
    path = copy_features(blocks, tmp_path / "b.csv", ["a", "b"])
    found = pd.read_csv(path, dtype=str)
    assert found["b"][3800] == "none of them"
    assert found["b"][:3].tolist() == ["0", "1", "2"]
    numbers = open_blocks(tmp_path / "parts", identifier="who")
    with pytest.raises(DataError, match="Feature columns must hold numbers; these do not: 'b'"):
        copy_features(numbers, tmp_path / "c.csv", ["a", "b"])


def test_memory_does_not_grow_with_the_rows(tmp_path):
    peaks = []
    for n_rows in (100_000, 400_000):
        X = np.random.default_rng(0).normal(size=(n_rows, 20))
        np.save(tmp_path / "a.npy", X)
        del X
        blocks = open_blocks(tmp_path / "a.npy")
        tracemalloc.start()
        copy_features(blocks, tmp_path / "b.parquet", ["x3", "x7"], force=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("suffix", ["npy", "npz", "mtx", "svmlight", "h5ad", "gct"])
def test_other_formats_are_written_whole_only(tmp_path, suffix):
    with (
        pytest.raises(ParameterError, match=r"is written whole only .* another suffix"),
        open_writer(tmp_path / f"a.{suffix}"),
    ):
        pass
    with pytest.raises(ParameterError, match="is written whole only"):
        check_writable(tmp_path / f"a.{suffix}", in_blocks=True)
    check_writable(tmp_path / f"a.{suffix}")
    assert os.listdir(tmp_path) == []


def test_rows_with_other_columns_are_refused(tmp_path, sources):
    table = open_table(sources / "a.csv", mixed=True)

    def append_two():
        with open_writer(tmp_path / "a.csv") as writer:
            writer.append(table, ["count", "town"])
            writer.append(table, ["count"])

    with pytest.raises(DataError, match="same columns; the first have count, town, and"):
        append_two()
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_not_there_is_refused(tmp_path, sources):
    for source in ("csv", "parquet"):
        blocks = open_blocks(sources / f"a.{source}", mixed=True)
        with pytest.raises(DataError, match="no column 'cuont'"):
            copy_features(blocks, tmp_path / "a.csv", ["cuont"])
    assert os.listdir(tmp_path) == []


KILLED = """
import os, signal, sys
import numpy as np
from keepers.datasets import LabelledTable, open_writer
rows = LabelledTable(np.ones((1000, 3)), np.array(["a", "b", "c"], dtype=object))
with open_writer(sys.argv[1], force=True) as writer:
    for at in range(100):
        writer.append(rows, ["a", "c"])
        if at == 50:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_killed_process_leaves_what_was_there(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_text("mine")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "mine"
    np.save(tmp_path / "source.npy", np.ones((2, 2)))
    copy_features(open_blocks(tmp_path / "source.npy"), path, ["x1"], force=True)
    assert sorted(os.listdir(tmp_path)) == [path.name, "source.npy"], "nothing else is left"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interruption_leaves_nothing(tmp_path, sources, suffix):
    blocks = open_blocks(sources / "a.parquet", mixed=True)

    def interrupt(table):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_features(blocks, tmp_path / f"a.{suffix}", KEPT, change=interrupt)
    assert os.listdir(tmp_path) == []
