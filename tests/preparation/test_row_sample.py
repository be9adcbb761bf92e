"""Rows are drawn in one pass: the same ones from a table in memory and from blocks."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from keepers.data.columns import OtherColumn
from keepers.data.table_files import open_blocks
from keepers.linalg.reservoir import drawn_rows
from keepers.preparation.row_sample import RowSample, draw_table

N = 5000
SIZES = [1, 300, N, 2 * N]
X = np.arange(3.0 * N).reshape(N, 3)
WORDS = OtherColumn("t", "text", np.array([f"w{at}" for at in range(N)], dtype=object), 0)


def sample_in_blocks(values, n_rows, step):
    sample = RowSample(n_rows)
    for at in range(0, N, step):
        rows = slice(at, at + step)
        words = OtherColumn("t", "text", WORDS.values[rows], 0)
        sample.add(values[rows], [words], np.arange(N)[rows], None)
    return sample


@pytest.mark.parametrize(("step", "n_rows"), [(1, 1), (1, 300), *product([97, 1300, N], SIZES)])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_the_rows_are_those_with_the_smallest_keys(step, n_rows, storage):
    sample = sample_in_blocks(storage(X), n_rows, step)
    values = sample.values
    expected = drawn_rows(N, n_rows, 0)
    np.testing.assert_array_equal(sample.numbers, expected)
    np.testing.assert_array_equal(values.toarray() if sp.issparse(values) else values, X[expected])
    assert sample.others[0].values.tolist() == [f"w{at}" for at in expected]


def test_every_row_is_as_likely():
    counts = np.zeros(50)
    for seed in range(2000):
        sample = RowSample(10, seed)
        for at in range(0, 50, 20):
            sample.add(X[at : min(at + 20, 50)])
        sample.sort_out()
        counts[sample.numbers] += 1
    # Five standard errors of a binomial count.
    assert np.abs(counts - 400).max() < 5 * np.sqrt(2000 * 0.2 * 0.8)


def test_rows_are_drawn_from_files_with_names_and_labels(tmp_path):
    frame = pd.DataFrame(X[:900], columns=list("abc"))
    frame.insert(0, "who", [f"s{at}" for at in range(900)])
    frame["kind"] = np.arange(900) % 3
    frame["town"] = np.array(["Rome", "Oslo"])[np.arange(900) % 2]
    for part in range(3):
        frame.iloc[300 * part : 300 * part + 300].to_csv(tmp_path / f"p{part}.csv", index=False)
    source = open_blocks(tmp_path, identifier="who", labels="kind", mixed=True)
    table = draw_table(source, 100)
    expected = frame.iloc[drawn_rows(900, 100, 0)]
    np.testing.assert_array_equal(table.X, expected[list("abc")])
    assert table.sample_names.tolist() == expected["who"].tolist()
    assert table.labels.tolist() == expected["kind"].tolist()
    assert table.others[0].values.tolist() == expected["town"].tolist()
    assert draw_table(source, 5000).n_samples == 900


def test_text_that_comes_late_in_a_column_is_drawn_as_text(tmp_path):
    lines = [f"{at},{at % 7}" for at in range(200_000)]
    lines[-3] = "199997,many"
    (tmp_path / "late.csv").write_text("\n".join(["a,b", *lines, ""]))
    drawn = draw_table(open_blocks(tmp_path / "late.csv", mixed=True), 50)
    assert list(drawn.feature_names) == ["a"]
    assert [column.name for column in drawn.others] == ["b"]
    assert drawn.n_samples == 50
