"""Stored parts of sparse matrices: sound ones against SciPy, unsound ones refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from keepers.data.formats.stored_sparse import build_compressed, build_stored
from keepers.exceptions import DataError

DENSE = np.random.default_rng(0).poisson(0.6, size=(7, 5)).astype(float)


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("kind", ["i1", "u2", "<i4", ">i4", "i8", "u8"])
def test_indices_of_any_integer_kind_are_understood(by_rows, kind):
    stored = sp.csr_matrix(DENSE) if by_rows else sp.csc_matrix(DENSE)
    parts = (stored.data, stored.indices.astype(kind), stored.indptr.astype(kind))
    built = build_compressed(*parts, DENSE.shape, by_rows=by_rows, what="X")
    np.testing.assert_array_equal(built.toarray(), DENSE)


def _damage(part, at, value):
    stored = sp.csr_matrix(DENSE)
    parts = {name: getattr(stored, name).copy() for name in ("data", "indices", "indptr")}
    parts[part][at] = value
    return parts


UNSOUND = {
    "first pointer": _damage("indptr", 0, 1),
    "pointer not rising": _damage("indptr", 3, 0),
    "negative pointer": _damage("indptr", 3, -1),
    "huge pointer": _damage("indptr", 3, 2**30),
    "last pointer small": _damage("indptr", -1, 2),
    "last pointer large": _damage("indptr", -1, 2**30),
    "negative index": _damage("indices", 2, -1),
    "index outside": _damage("indices", 2, 5),
    "pointers all zero": _damage("indptr", slice(None), 0),
    "float pointers": _damage("data", 0, 1.0) | {"indptr": np.zeros(8)},
    "float indices": _damage("data", 0, 1.0) | {"indices": sp.csr_matrix(DENSE).data},
    "short data": _damage("data", 0, 1.0) | {"data": np.ones(2)},
    "square data": _damage("data", 0, 1.0) | {"data": np.ones((2, 2))},
    "short pointers": _damage("data", 0, 1.0) | {"indptr": np.array([0])},
    "no pointers": _damage("data", 0, 1.0) | {"indptr": np.array([], dtype=int)},
}


@pytest.mark.parametrize("case", UNSOUND)
def test_parts_that_do_not_make_a_matrix_are_refused(case):
    with pytest.raises(
        DataError, match=r"of X must (make a matrix of 7 x 5|be a vector of integers)"
    ):
        build_stored("csr", UNSOUND[case], DENSE.shape, "X")


@pytest.mark.parametrize("shape", [(7, -5), (7,), (7, 5, 1), ()])
def test_shapes_that_are_no_table_are_refused(shape):
    with pytest.raises(DataError, match="two dimensions"):
        build_stored("csr", _damage("data", 0, 1.0), shape, "X")


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("coo", {"data": np.ones(2), "row": np.array([0, 9]), "col": np.array([0, 1])}),
        ("coo", {"data": np.ones(2), "row": np.array([0, 1]), "col": np.array([0, -1])}),
        ("coo", {"data": np.ones(2), "row": np.array([0]), "col": np.array([0])}),
        ("coo", {"data": np.ones(1), "row": np.array([0.0]), "col": np.array([0])}),
        ("dia", {"data": np.ones((2, 5)), "offsets": np.array([0])}),
        ("dia", {"data": np.ones((2, 5)), "offsets": np.array([1, 1])}),
        ("dia", {"data": np.ones(5), "offsets": np.array([1])}),
        ("bsr", {"data": np.ones((1, 2, 2)), "indices": np.array([0]), "indptr": np.array([0, 1])}),
        ("bsr", {"data": np.ones((1, 4, 5)), "indices": np.array([0]), "indptr": np.array([0, 1])}),
        ("bsr", {"data": np.ones((1, 7, 0)), "indices": np.array([0]), "indptr": np.array([0, 1])}),
        ("bsr", {"data": np.ones((1, 7, 5)), "indices": np.array([1]), "indptr": np.array([0, 1])}),
    ],
)
def test_unsound_parts_of_other_formats_are_refused(kind, parts):
    with pytest.raises(DataError):
        build_stored(kind, parts, DENSE.shape, "X")


def test_diagonals_may_be_longer_than_the_matrix_and_lie_outside():
    data = np.arange(1.0, 28).reshape(3, 9)
    offsets = np.array([-6, 2, 2**40])
    expected = sp.dia_matrix((data[:2], offsets[:2]), shape=(7, 5)).toarray()
    built = build_stored("dia", {"data": data, "offsets": offsets}, (7, 5), "X")
    np.testing.assert_array_equal(built.toarray(), expected)
