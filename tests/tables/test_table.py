"""A table whose parts do not fit together cannot be made; roles and names of columns."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from keepers.datasets import Table
from keepers.exceptions import DataError
from keepers.tables.table import GAP_WORDS, stack_tables

NAMES = np.array(["a", "b", "c"], dtype=object)
IDS = np.array(["r", "s", "t", "u"], dtype=object)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"values": np.zeros((0, 3))}, "at least one row"),
        ({"values": np.zeros((4, 3), dtype=int)}, "float64 or float32"),
        ({"names": NAMES[:2]}, "names must have 3 entries"),
        ({"ids": NAMES}, "ids must have 4 entries"),
        ({"labels": np.zeros((4, 1))}, "labels must have 4 entries"),
        ({"names": np.array(["a", "b", "a"], dtype=object)}, "there are duplicates: 'a'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        Table(**({"values": np.zeros((4, 3)), "names": NAMES} | parts))


def mixed(values):
    frame = pl.DataFrame({"w": ["x", None, "y", "z"]})
    features, types = ["a", "w", "b", "c"], {"b": pl.Int8}
    return Table(values, NAMES, IDS, np.arange(4), "t", frame, features, types)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_rows_and_features_are_taken_with_everything_beside_them(container):
    X = np.arange(12.0).reshape(4, 3)
    table = mixed(container(X))
    assert (table.n_samples, table.n_features, table.others) == (4, 3, ["w"])
    for rows in ([3, 1], np.array([False, True, False, True])):
        part = table.take(rows)
        kept = np.arange(4)[rows]
        np.testing.assert_array_equal(
            part.values.toarray() if part.is_sparse else part.values, X[kept]
        )
        assert (part.ids.tolist(), part.labels.tolist()) == (IDS[kept].tolist(), kept.tolist())
        assert part.frame["w"].to_list() == [["x", None, "y", "z"][at] for at in kept]
    fewer = table.select(["w", "c", "b"])
    assert (fewer.columns, fewer.names.tolist(), fewer.types) == (
        ["w", "b", "c"],
        ["b", "c"],
        {"b": pl.Int8},
    )
    assert table.select(["c"]).others == []
    with pytest.raises(DataError, match="no column 'v'"):
        table.select(["v"])
    again = stack_tables([table.take([0]), table.take([1, 2]), table.take([3])])
    assert again.frame.equals(table.frame)
    assert (again.ids.tolist(), again.labels.tolist()) == (IDS.tolist(), [0, 1, 2, 3])
    with pytest.raises(AttributeError):
        table.name = "other"


def test_words_for_nothing_are_those_of_pandas():
    words = [*GAP_WORDS, "?", "x", "-"]
    read = pd.read_csv(io.StringIO("word,n\n" + "".join(f"{word},1\n" for word in words)))
    assert read["word"].isna().tolist() == [word in GAP_WORDS for word in words]
