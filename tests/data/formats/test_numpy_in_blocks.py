"""Arrays in .npy files, against numpy.load."""

import pickle

import numpy as np
import pytest

from keepers.data.formats import numpy_files
from keepers.data.table_files import open_blocks
from keepers.datasets import open_table
from keepers.exceptions import DataError

X = np.random.default_rng(0).normal(size=(100, 6))


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture(params=["C", "F"])
def order(request):
    return request.param


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(numpy_files, "rows_at_once", lambda *_: 30)


@pytest.fixture
def path(tmp_path, order):
    np.save(tmp_path / "a.npy", np.asarray(X, order=order))
    return tmp_path / "a.npy"


def test_rows_come_in_blocks(path, order):
    table = open_blocks(path)
    assert (table.n_samples, table.n_features, table.n_stored) == (100, 6, 600)
    assert list(table.feature_names) == [f"x{j}" for j in range(6)]
    blocks = list(table.blocks())
    assert [block.origin for block in blocks] == [
        "a.npy, rows 1 to 30",
        "a.npy, rows 31 to 60",
        "a.npy, rows 61 to 90",
        "a.npy, rows 91 to 100",
    ]
    assert all(block.values.flags[f"{order}_CONTIGUOUS"] for block in blocks)
    assert all(type(block.values) is np.ndarray for block in blocks)
    np.testing.assert_array_equal(_stacked(table), X)
    np.testing.assert_array_equal(_stacked(table), X)


def test_columns_can_be_chosen_and_dropped(path):
    table = open_blocks(path, drop=["x1"], labels="x4")
    expected = open_table(path, drop=["x1"], labels="x4").X
    np.testing.assert_array_equal(_stacked(table), expected)
    np.testing.assert_array_equal(_stacked(table, np.array([3, 0])), expected[:, [3, 0]])
    with pytest.raises(DataError, match=r"a\.npy: There is no column 'x9'"):
        open_blocks(path, drop=["x9"])


@pytest.mark.parametrize("n_parts", [1, 3, 100, 1000])
def test_parts_cover_all_rows_once(path, n_parts):
    parts = pickle.loads(pickle.dumps(open_blocks(path).parts(n_parts)))
    assert len(parts) == min(n_parts, 100)
    assert sum(part.n_stored for part in parts) == 600
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)
    again = parts[-1].parts(2)
    np.testing.assert_array_equal(np.vstack([_stacked(p) for p in again]), _stacked(parts[-1]))


def test_a_part_says_where_its_rows_stand(path):
    assert [block.origin for block in open_blocks(path).parts(4)[2].blocks()] == [
        "a.npy, rows 51 to 75"
    ]


@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f4", "<f8", ">f8", "i1", "<u4", ">i8", "?"])
def test_every_kind_of_number_becomes_what_open_table_makes_of_it(tmp_path, kind, order):
    values = np.asarray((X * 3).astype(kind), order=order)
    np.save(tmp_path / "a.npy", values)
    table = open_blocks(tmp_path / "a.npy")
    assert table.dtype == (np.float32 if kind[1:] in ("f2", "f4") else np.float64)
    assert all(block.values.dtype == table.dtype for block in table.blocks())
    np.testing.assert_array_equal(_stacked(table), values)


def test_whole_numbers_that_float64_cannot_hold_are_refused_with_the_rows_before(tmp_path):
    values = np.zeros((100, 2), dtype=np.int64)
    values[70, 1] = 2**53 + 1
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(DataError, match=r"a\.npy, after row 60: Integers must be at most"):
        _stacked(open_blocks(tmp_path / "a.npy"))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.empty((0, 3)), "It holds no rows. Leave it out"),
        (np.empty((3, 0)), "at least one feature column"),
        (np.zeros(3), "this array has 1"),
        (np.zeros((2, 2, 2)), "this array has 3"),
        (np.zeros((2, 2), dtype=complex), "must be real"),
        (np.zeros((2, 2), dtype="U3"), "must be numbers"),
        (np.zeros((2, 2), dtype="M8[s]"), "must be numbers"),
        (np.zeros((2, 2), dtype=[("a", "f8")]), "must be numbers"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, values, told):
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(DataError, match=told) as refusal:
        open_blocks(tmp_path / "a.npy")
    assert str(tmp_path / "a.npy") in str(refusal.value)


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="never loaded"):
        open_blocks(tmp_path / "a.npy")


def test_a_file_cut_anywhere_is_refused(path):
    content = path.read_bytes()
    for length in [*range(0, 140, 3), *range(140, len(content), 501), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(DataError) as refusal:
            open_blocks(path)
        assert str(path) in str(refusal.value)


def test_a_file_that_changed_in_between_is_noticed(path):
    table = open_blocks(path)
    content = path.read_bytes()
    path.write_bytes(content[:-8])
    with pytest.raises(DataError, match="truncated"):
        _stacked(table)
    np.save(path, X[:, :5])
    with pytest.raises(DataError, match="It was changed"):
        _stacked(table)


def test_a_file_cut_while_it_is_read_is_noticed(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, X)
    blocks = open_blocks(path).blocks()
    next(blocks)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"a\.npy, after row 30: It ends before its last row"):
        list(blocks)


def test_a_column_of_an_array_can_be_labels_or_sample_names(tmp_path, monkeypatch, order):
    monkeypatch.setattr(numpy_files, "rows_at_once", lambda *_: 3)
    X = np.arange(40.0).reshape(10, 4)
    X[:, 1] = np.arange(10) % 2
    np.save(tmp_path / "a.npy", np.asarray(X, order=order))
    table = open_blocks(tmp_path / "a.npy", labels="x1", identifier="x0")
    blocks = list(table.blocks(annotated=True))
    assert len(blocks) == 4
    np.testing.assert_array_equal(np.vstack([block.values for block in blocks]), X[:, 2:])
    np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), X[:, 1])
    np.testing.assert_array_equal(np.concatenate([b.sample_names for b in blocks]), X[:, 0])
    whole = open_table(tmp_path / "a.npy", labels="x1", identifier="x0")
    np.testing.assert_array_equal(whole.X, X[:, 2:])
    assert whole.labels.tolist() == [0, 1] * 5
    assert whole.sample_names.tolist() == [str(4 * at) for at in range(10)]
