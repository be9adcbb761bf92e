"""GCT agrees with pandas on the values, and holds what it declares."""

import gzip

import numpy as np
import pandas as pd
import pytest

from keepers.datasets import open_blocks, open_table, write_table
from keepers.exceptions import DataError

pytest.importorskip("pyarrow")

GENES, SAMPLES = [f"ENSG{j}.{j}" for j in range(6)], [f"GTEX-{i}" for i in range(4)]
X = np.random.default_rng(0).gamma(1, 50, size=(4, 6)).round(5)


def _gct_2(X=X, line_end="\n"):
    lines = ["#1.2", f"{X.shape[1]}\t{X.shape[0]}", "\t".join(["Name", "Description", *SAMPLES])]
    for j, gene in enumerate(GENES):
        lines.append("\t".join([gene, f"a 5' \"gene {j}", *map(repr, X[:, j].tolist())]))
    return line_end.join([*lines, ""])


def _gct_3():
    lines = ["#1.3", "6\t4\t2\t3", "\t".join(["id", "symbol", "length", *SAMPLES])]
    for name, cells in (
        ("tissue", ["lung", "lung", "skin", "skin"]),
        ("dose", ["1", "10", "2", "na"]),
        ("donor", ["d1", "d2", "d3", "d4"]),
    ):
        lines.append("\t".join([name, "na", "na", *cells]))
    for j, gene in enumerate(GENES):
        lines.append("\t".join([gene, f"G{j}", "7", *map(repr, X[:, j].tolist())]))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("name", ["a.gct", "a.GCT.gz", "a.txt", "a"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_version_1_2_is_read_as_pandas_reads_its_table(tmp_path, name, line_end):
    path = tmp_path / name
    text = _gct_2(line_end=line_end).replace('"', "").encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table = open_table(path)
    frame = pd.read_csv(
        path, sep="\t", skiprows=2, index_col=0, compression="gzip" if ".gz" in name else None
    ).drop(columns="Description")
    np.testing.assert_array_equal(table.X, frame.to_numpy().T)
    assert list(table.feature_names) == list(frame.index)
    assert list(table.sample_names) == list(frame.columns)
    assert table.name == "a"
    assert table.labels is None


def test_metadata_of_columns_may_be_labels_or_names_and_that_of_rows_is_left_out(tmp_path):
    path = tmp_path / "a.gct"
    path.write_text(_gct_3())
    table = open_table(path, labels="tissue", identifier="donor", drop=[GENES[0]])
    np.testing.assert_array_equal(table.X, X[:, 1:])
    assert list(table.feature_names) == GENES[1:]
    assert table.labels.tolist() == ["lung", "lung", "skin", "skin"]
    assert table.sample_names.tolist() == ["d1", "d2", "d3", "d4"]
    assert open_table(path).sample_names.tolist() == SAMPLES
    with pytest.raises(DataError, match="1 of 'dose' are missing"):
        open_table(path, labels="dose")
    with pytest.raises(DataError, match=r"'tissu' is not there\. Did you mean 'tissue'"):
        open_table(path, labels="tissu")
    assert open_table(path, labels=GENES[1]).n_features == 5


def test_rows_that_are_numbered_are_named_by_their_names(tmp_path):
    path = tmp_path / "a.gct"
    first, second, header, *rows = _gct_2().splitlines()
    numbered = [first, second, f"id\t{header}", *(f"{j}\t{row}" for j, row in enumerate(rows))]
    path.write_text("\n".join(numbered).replace('"', ""))
    table = open_table(path)
    assert list(table.feature_names) == GENES
    np.testing.assert_array_equal(table.X, X)


def test_a_missing_value_stays_a_gap(tmp_path):
    path = tmp_path / "a.gct"
    path.write_text(_gct_3().replace(repr(X[1, 2].item()), "NA"))
    np.testing.assert_array_equal(np.argwhere(np.isnan(open_table(path).X)), [[1, 2]])


def test_it_is_read_whole_only(tmp_path):
    path = tmp_path / "a.gct"
    path.write_text(_gct_3())
    with pytest.raises(DataError, match="GCT files are read whole only"):
        open_blocks(path)


@pytest.mark.parametrize("text", [_gct_2().replace('"', ""), _gct_3()])
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path, text):
    path = tmp_path / "a.gct"
    last = text.rstrip().rfind("\t")  # a number that was cut may still be one
    for end in range(last):
        path.write_text(text[:end])
        with pytest.raises(DataError, match=r"a\.gct"):
            open_table(path)


@pytest.mark.parametrize("labels", [None, ["x", "x", "y", "z"], [1, 1, 2, 3]])
@pytest.mark.parametrize("suffix", ["gct", "gct.gz"])
@pytest.mark.parametrize("samples", [SAMPLES, None])
def test_what_is_written_is_read_back(tmp_path, labels, suffix, samples):
    names = [*GENES[:4], "a,b", 'tab\t"and" quote']
    path = write_table(tmp_path / f"a.{suffix}", X, names, samples, labels, label_name="kind")
    table = open_table(path, labels=None if labels is None else "kind")
    np.testing.assert_array_equal(table.X, X)
    assert table.feature_names.tolist() == names
    assert table.sample_names.tolist() == (samples or [f"sample {i}" for i in range(1, 5)])
    assert (table.labels is None) == (labels is None)
    if labels is not None:
        assert table.labels.tolist() == labels
    frame = pd.read_csv(path, sep="\t", skiprows=2 if labels is None else [0, 1, 3], index_col=0)
    np.testing.assert_array_equal(frame.to_numpy()[:, -4:].T.astype(float), X)
