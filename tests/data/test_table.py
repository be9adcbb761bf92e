"""A table whose parts do not fit together cannot be made."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.datasets import LabelledTable
from keepers.exceptions import DataError

NAMES = np.array(["a", "b", "c"], dtype=object)


def test_a_table_knows_its_size():
    table = LabelledTable(np.zeros((4, 3)), NAMES)
    assert (table.n_samples, table.n_features, table.is_sparse) == (4, 3, False)
    assert LabelledTable(sp.csr_matrix((4, 3)), NAMES).is_sparse


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"X": np.zeros((0, 3))}, "at least one row"),
        ({"X": np.zeros((4, 0)), "feature_names": NAMES[:0]}, "at least one row"),
        ({"X": np.zeros(3)}, "at least one row"),
        ({"X": np.zeros((4, 3), dtype=int)}, "float64 or float32"),
        ({"feature_names": NAMES[:2]}, "feature_names must have one entry each"),
        ({"sample_names": NAMES}, "sample_names must have one entry each"),
        ({"labels": np.zeros((4, 1))}, "labels must have one entry each"),
        ({"feature_names": np.array(["a", "b", "a"], dtype=object)}, "there are duplicates: 'a'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        LabelledTable(**({"X": np.zeros((4, 3)), "feature_names": NAMES} | parts))


def test_a_table_cannot_be_changed():
    table = LabelledTable(np.zeros((4, 3)), NAMES)
    with pytest.raises(AttributeError):
        table.name = "other"
