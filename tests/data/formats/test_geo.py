"""Series matrices agree with pandas on the values, and tell what their samples are."""

import gzip

import numpy as np
import pandas as pd
import pytest

from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError

pytest.importorskip("pyarrow")

PROBES, SAMPLES = [f"{j}_s_at" for j in range(20)], [f"GSM{i}" for i in range(4)]
X = np.random.default_rng(0).gamma(1, 5, size=(4, 20)).round(6)
HEAD = [
    '!Series_title\t"A title with "inner" marks and a ; semicolon, and "one open"',
    '!Series_summary\t"An open mark',
    "",
    '!Sample_title\t"a, 1"\t"a, 2"\t"b, 1"\t"b, 2"',
    '!Sample_source_name_ch1\t"lung"\t"lung"\t"skin"\t"skin"',
    '!Sample_characteristics_ch1\t"tissue: lung"\t"tissue: lung"\t"age: 7"\t"tissue: skin"',
    '!Sample_characteristics_ch1\t"age: 5"\t"age: 6"\t"tissue: skin"\t"age: 8"',
    '!Sample_characteristics_ch1\t"sex: f"\t"sex: m"\t""\t"sex: f"',
    '!Sample_taxid_ch1\t"9606"\t"9606"\t"9606"\t"9606"',
    "!series_matrix_table_begin",
]


def _text(X=X, line_end="\n", head=HEAD):
    cells = [["", *(repr(value) for value in row)] for row in X.T.tolist()]
    lines = ["\t".join(['"ID_REF"', *(f'"{name}"' for name in SAMPLES)])]
    lines += [f'"{probe}"' + "\t".join(row) for probe, row in zip(PROBES, cells, strict=True)]
    return line_end.join([*head, *lines, "!series_matrix_table_end", ""])


@pytest.mark.parametrize(
    "name", ["GSE1_series_matrix.txt", "GSE1_series_matrix.txt.gz", "GSE1.txt", "GSE1"]
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_values_are_those_that_pandas_reads(tmp_path, name, line_end):
    path = tmp_path / name
    text = _text(line_end=line_end).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    packing = "gzip" if name.endswith(".gz") else None
    table = open_table(path)
    frame = pd.read_csv(path, sep="\t", comment="!", index_col=0, compression=packing)
    np.testing.assert_array_equal(table.X, frame.to_numpy().T)
    assert list(table.feature_names) == list(frame.index)
    assert list(table.sample_names) == list(frame.columns)
    assert table.name == "GSE1"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("!Sample_source_name_ch1", ["lung", "lung", "skin", "skin"]),
        ("source_name_ch1", ["lung", "lung", "skin", "skin"]),
        ("tissue", ["lung", "lung", "skin", "skin"]),
        ("age", [5, 6, 7, 8]),
        ("characteristics_ch1.1", ["age: 5", "age: 6", "tissue: skin", "age: 8"]),
        ("taxid_ch1", [9606] * 4),
    ],
)
def test_what_is_told_of_samples_may_be_labels(tmp_path, labels, expected):
    path = tmp_path / "GSE1_series_matrix.txt"
    path.write_text(_text())
    table = open_table(path, labels=labels, identifier="!Sample_title")
    assert table.labels.tolist() == expected
    assert table.sample_names.tolist() == ["a, 1", "a, 2", "b, 1", "b, 2"]
    assert table.n_features == 20


def test_labels_that_are_missing_or_unknown_are_refused(tmp_path):
    path = tmp_path / "GSE1_series_matrix.txt"
    path.write_text(_text())
    with pytest.raises(DataError, match="1 of 'sex' are missing"):
        open_table(path, labels="sex")
    with pytest.raises(DataError, match=r"'tisue' is not there\. Did you mean 'tissue'"):
        open_table(path, labels="tisue")
    with pytest.raises(DataError, match="GEO files are read whole only"):
        open_blocks(path)


def test_gaps_and_quoted_numbers_are_read(tmp_path):
    path = tmp_path / "GSE1_series_matrix.txt"
    first, second = (repr(X[1, j].item()) for j in (2, 3))
    text = _text().replace(first, "null").replace(second, "")
    path.write_text(text)
    np.testing.assert_array_equal(np.argwhere(np.isnan(open_table(path).X)), [[1, 2], [1, 3]])
    third = repr(X[0, 4].item())
    path.write_text(_text().replace(third, f'"{third}"'))
    np.testing.assert_array_equal(open_table(path).X, X)


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    path = tmp_path / "GSE1_series_matrix.txt"
    text = _text()
    for end in range(0, len(text) - 2, 7):
        path.write_text(text[:end])
        with pytest.raises(DataError, match="GSE1"):
            open_table(path)


def test_a_table_without_values_is_said_to_be_elsewhere(tmp_path):
    path = tmp_path / "GSE1_series_matrix.txt"
    head = '"ID_REF"\t"GSM0"\n'
    path.write_text("\n".join(HEAD) + f"\n{head}!series_matrix_table_end\n")
    with pytest.raises(DataError, match="supplementary files"):
        open_table(path)
