"""Text tables in blocks, against pandas and open_table."""

import bz2
import gzip
import lzma
import pickle

import numpy as np
import pandas as pd
import pytest

from keepers.data.formats import text
from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError

pytest.importorskip("pyarrow")

X = np.round(np.random.default_rng(0).normal(size=(500, 4)), 6)


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture
def frame():
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.insert(0, "who", [f"s{i}" for i in range(500)])
    frame.insert(3, "kind", np.where(np.arange(500) % 2, "x", "y"))
    return frame


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(text, "rows_at_once", lambda *_: 60)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "csv.bz2", "tsv.xz", "csv.zst"])
def test_what_pandas_writes_is_read_in_blocks(tmp_path, frame, suffix):
    path = tmp_path / f"a.{suffix}"
    content = frame.to_csv(sep="\t" if "tsv" in suffix else ",", index=False).encode()
    if suffix.endswith("zst"):
        import pyarrow as pa

        with pa.OSFile(str(path), "wb") as sink, pa.CompressedOutputStream(sink, "zstd") as out:
            out.write(content)
    else:
        packed = {"gz": gzip, "bz2": bz2, "xz": lzma}.get(suffix.split(".")[-1])
        path.write_bytes(packed.compress(content) if packed else content)
    table = open_blocks(path, labels="kind", identifier="who")
    assert (table.n_samples, table.n_features, table.n_stored) == (None, 4, None)
    assert table.dtype == np.float64
    assert list(table.feature_names) == list("abcd")
    blocks = list(table.blocks())
    assert len(blocks) > 3
    assert blocks[0].origin == f"a.{suffix}, rows 1 to {len(blocks[0].values)}"
    assert blocks[-1].origin.endswith("to 500")
    np.testing.assert_array_equal(_stacked(table), X)
    np.testing.assert_array_equal(_stacked(table, np.array([3, 1])), X[:, [3, 1]])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "content",
    [
        "a;b\n1,5;2\n;4\n",
        "1,2\n3,4\n",
        '"a","b, c"\n"1",2\nNA,true\n',
        "\ufeffa,b\r\n1,2\r\n\r\n3,4",
        "a b\tc\n1\t2\n",
        ",a,b\nr1,1,2\nr2,3,4\n",
    ],
)
def test_every_dialect_is_read_as_open_table_reads_it(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    expected = open_table(path)
    table = open_blocks(path)
    assert list(table.feature_names) == list(expected.feature_names)
    np.testing.assert_array_equal(_stacked(table), expected.X)


def test_blocks_are_about_as_large_as_asked(tmp_path):
    values = np.random.default_rng(0).integers(0, 9, size=(800_000, 3))
    pd.DataFrame(values).to_csv(tmp_path / "a.csv", index=False, header=list("abc"))
    sizes = [block.values.nbytes for block in open_blocks(tmp_path / "a.csv").blocks()]
    assert sum(sizes) == 800_000 * 3 * 8
    assert all(2**24 <= size < 2**25 for size in sizes[:-1])


def test_a_text_table_is_one_part_and_can_be_sent(tmp_path, frame):
    frame.to_csv(tmp_path / "a.csv", index=False)
    table = open_blocks(tmp_path / "a.csv", drop=["who", "kind"])
    (part,) = pickle.loads(pickle.dumps(table.parts(4)))
    np.testing.assert_array_equal(_stacked(part), X)


@pytest.mark.usefixtures("small_blocks")
def test_text_far_below_is_refused_with_the_rows_before_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 3000 + "1,x\n")
    told = r"a\.csv, after row [0-9]+: Feature columns must hold numbers; these do not: 'b'"
    with pytest.raises(DataError, match=told):
        _stacked(open_blocks(path))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "starts with its column names"),
        ("a,b\n1,2\n3\n", "as many cells as there are columns"),
        ("a,a\n1,2\n", "must differ"),
        ("a,b\n", "holds no rows. Leave it out"),
        ("a,b\n\n\n", "holds no rows. Leave it out"),
        ("a,b\n1,x\n", "must hold numbers"),
    ],
)
def test_what_is_no_table_is_refused_with_its_path(tmp_path, content, told):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=told) as refusal:
        _stacked(open_blocks(path))
    assert str(path) in str(refusal.value)


def test_a_compressed_file_cut_anywhere_is_refused(tmp_path, frame):
    content = gzip.compress(frame.to_csv(index=False).encode())
    path = tmp_path / "a.csv.gz"
    for length in [*range(1, len(content), 211), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(DataError) as refusal:
            _stacked(open_blocks(path, drop=["who", "kind"]))
        assert str(path) in str(refusal.value)


def test_a_file_that_changed_in_between_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    table = open_blocks(path)
    path.write_text("b,a\n1,2\n")
    with pytest.raises(DataError, match="It was changed"):
        _stacked(table)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_carry_labels_and_sample_names_if_asked(tmp_path, frame):
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    table = open_blocks(path, labels="kind", identifier="who")
    blocks = list(table.blocks(annotated=True))
    assert len(blocks) > 3
    assert [label for block in blocks for label in block.labels] == list(frame["kind"])
    assert [name for block in blocks for name in block.sample_names] == list(frame["who"])
    assert all(len(block.labels) == len(block.values) for block in blocks)
    assert {block.labels for block in table.blocks()} == {None}
