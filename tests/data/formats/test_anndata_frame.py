"""Columns of a stored data frame, held in plain objects that stand for groups and arrays."""

import numpy as np
import pytest

from keepers.data.formats.anndata_frame import StoredFrame, is_stored_sparse, sparse_layout
from keepers.exceptions import DataError


class Group(dict):
    """Members and attributes, as h5py and zarr have them."""

    name = "/obs"

    def __init__(self, members, **attributes):
        super().__init__(members)
        self.attrs = attributes


def frame(node):
    return StoredFrame(node, lambda group, name: group[name], lambda array: array)


def test_the_index_is_the_column_that_the_frame_names():
    assert frame(Group({"_index": [], "a": []}, _index="a")).index_name == "_index"
    assert frame(Group({"a": []}, _index=b"a")).index_name == "a"
    with pytest.raises(DataError, match="names no column as its index"):
        _ = frame(Group({"a": []})).index_name


def test_plain_categorical_and_nullable_columns():
    categories = {"codes": np.array([1, -1, 0]), "categories": np.array(["u", "v"])}
    nullable = {"values": np.array([1, 2, 3]), "mask": np.array([False, True, False])}
    stored = frame(
        Group({"plain": np.array([1.5, 2]), "kind": Group(categories), "n": Group(nullable)})
    )
    assert stored.column("plain").tolist() == [1.5, 2]
    assert stored.column("kind").tolist() == ["v", None, "u"]
    assert stored.column("n").tolist() == [1, None, 3]


@pytest.mark.parametrize("codes", [[2, 0], [0.5, 1.0]])
def test_codes_without_a_category_are_refused(codes):
    column = Group({"codes": np.array(codes), "categories": np.array(["u", "v"])})
    with pytest.raises(DataError, match="below its 2 categories"):
        frame(Group({"kind": column})).column("kind")


def test_an_absent_column_is_met_with_the_known_ones():
    with pytest.raises(DataError, match=r"no column 'knd' in '/obs'\. Did you mean 'kind'"):
        frame(Group({"kind": np.arange(2)})).column("knd")


@pytest.mark.parametrize(
    ("shape", "n_pointers", "by_rows"), [((3, 5), 4, True), ((3, 5), 6, False)]
)
def test_the_number_of_pointers_tells_rows_from_columns(shape, n_pointers, by_rows):
    node = Group({"indptr": np.zeros(n_pointers)}, shape=np.array(shape))
    assert is_stored_sparse(node)
    assert sparse_layout(node, node["indptr"]) == (shape, by_rows)


def test_a_square_matrix_must_say_how_it_is_stored():
    node = Group({"indptr": np.zeros(4)}, shape=[3, 3])
    with pytest.raises(DataError, match="must say whether"):
        sparse_layout(node, node["indptr"])
    node.attrs["encoding-type"] = "csc_matrix"
    assert sparse_layout(node, node["indptr"]) == ((3, 3), False)
