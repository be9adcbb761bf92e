"""Rows of features become columns."""

import io

import numpy as np
import pytest

from keepers.data.formats.genes_in_rows import GeneRows, read_cells
from keepers.data.limits import SizeLimit
from keepers.data.table import ReadRequest
from keepers.exceptions import DataError

pytest.importorskip("pyarrow")

ROWS = GeneRows(["gene", "chromosome", "s1", "s2", "s3"], 2, 5, {"kind": ["x", "y", "x"]})
BODY = b"g1\t7\t1\t2\t3\ng2\tX\t4\t5\t6\n"


def _read(body, request):
    counts = []
    return ROWS.read(io.BytesIO(body), request, "a", counts.append), counts


def test_samples_become_rows_and_what_is_told_of_features_is_left_out():
    table, counts = _read(BODY, ReadRequest(labels="kind"))
    np.testing.assert_array_equal(table.X, [[1, 4], [2, 5], [3, 6]])
    assert table.feature_names.tolist() == ["g1", "g2"]
    assert table.sample_names.tolist() == ["s1", "s2", "s3"]
    assert table.labels.tolist() == ["x", "y", "x"]
    assert counts == [2]


def test_lines_are_counted_from_the_top_of_the_file():
    with pytest.raises(DataError, match="in line 6 there are 2"):
        _read(b"g1\t7\t1\t2\t3\ng2\tX\n", ReadRequest())


def test_a_table_past_the_limit_is_refused():
    with pytest.raises(DataError, match=r"The table \(3 x 2\) needs 48 bytes"):
        _read(BODY, ReadRequest(limit=SizeLimit.of(40)))


def test_marks_in_a_description_need_not_come_in_pairs():
    stream = io.BytesIO(b'"a"\t"b ""c"""\n!x\t"an "inner" mark"\t5\' end\n')
    assert read_cells(stream, 1) == ["a", 'b "c"']
    assert read_cells(stream, 2) == ["!x", 'an "inner" mark', "5' end"]
    with pytest.raises(DataError, match="ends before line 3"):
        read_cells(stream, 3)
