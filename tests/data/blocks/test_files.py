"""Many files as one table."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from keepers.data.blocks.files import FileSequence
from keepers.data.table_files import files_below, in_natural_order, open_blocks
from keepers.exceptions import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(600, 4))


def _write(path, values, names="abcd", row_group_size=40):
    path.parent.mkdir(exist_ok=True, parents=True)
    content = pa.table({name: values[:, j] for j, name in enumerate(names)})
    pq.write_table(content, path, row_group_size=row_group_size)


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture
def folder(tmp_path):
    """Twelve files of 50 rows, numbered without leading zeros."""
    for number in range(12):
        _write(tmp_path / "parts" / f"part-{number}.parquet", X[50 * number : 50 * number + 50])
    return tmp_path / "parts"


def test_files_are_read_in_the_order_of_their_numbers(folder):
    table = open_blocks(folder)
    assert (table.name, table.n_samples, table.n_features) == ("parts", 600, 4)
    assert table.n_stored == 2400
    np.testing.assert_array_equal(_stacked(table), X)
    origins = [block.origin for block in table.blocks()]
    assert origins[2] == "part-2.parquet, rows 1 to 50"
    assert origins[-1] == "part-11.parquet, rows 1 to 50"


def test_numbers_in_names_count_by_value_and_case_does_not():
    names = ["b1", "a10", "A2", "a2b", "a02", "a", "7", "x/2", "x/10"]
    expected = ["7", "a", "A2", "a02", "a2b", "a10", "b1", "x/2", "x/10"]
    assert [path.as_posix() for path in in_natural_order([Path(n) for n in names])] == expected


def test_hidden_files_and_marks_of_other_programs_are_left_out(folder):
    (folder / "_SUCCESS").write_text("")
    (folder / "_metadata.parquet").write_text("no table")
    (folder / ".part-0.parquet.crc").write_text("1")
    (folder / ".hidden.parquet").write_text("no table")
    (folder / "README.txt").write_text("about")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-0.parquet").write_text("no table")
    np.testing.assert_array_equal(_stacked(open_blocks(folder)), X)
    assert len(files_below(folder)) == 13


def test_a_folder_whose_own_name_is_hidden_can_be_read(folder):
    hidden = folder.rename(folder.parent / ".parts")
    assert open_blocks(hidden).n_samples == 600


def test_folders_inside_are_searched_and_named_in_origins(tmp_path):
    for year in (9, 10):
        _write(tmp_path / f"year={year}" / "part.parquet", X[year * 10 : year * 10 + 10])
    table = open_blocks(tmp_path)
    assert list(table.feature_names) == list("abcd")
    assert [block.origin for block in table.blocks()] == [
        "year=9/part.parquet, rows 1 to 10",
        "year=10/part.parquet, rows 1 to 10",
    ]
    np.testing.assert_array_equal(_stacked(table), X[90:110])


def test_columns_in_another_order_are_put_in_order(tmp_path):
    _write(tmp_path / "1.parquet", X[:50])
    _write(tmp_path / "2.parquet", X[50:100][:, [2, 0, 3, 1]], "cadb")
    table = open_blocks(tmp_path)
    np.testing.assert_array_equal(_stacked(table), X[:100])
    some = np.array([3, 0])
    np.testing.assert_array_equal(_stacked(table, some), X[:100, some])
    for n_parts in (1, 2, 5):
        pieces = pickle.loads(pickle.dumps(table.parts(n_parts)))
        np.testing.assert_array_equal(
            np.vstack([_stacked(piece, some) for piece in pieces]), X[:100, some]
        )


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("abc", r"has 3 and lacks 'd'"),
        ("abcde", r"has 5 and adds 'e'"),
        ("abcx", r"has 4 and lacks 'd' and adds 'x'"),
    ],
)
def test_a_file_with_other_columns_is_named(tmp_path, names, told):
    _write(tmp_path / "1.parquet", X[:50])
    _write(tmp_path / "2.parquet", np.ones((5, len(names))), names)
    with pytest.raises(DataError, match=told) as refusal:
        open_blocks(tmp_path)
    assert str(tmp_path / "2.parquet") in str(refusal.value)


def test_one_file_in_double_precision_makes_all_blocks_double(tmp_path):
    single = X[:50].astype(np.float32)
    _write(tmp_path / "1.parquet", single)
    _write(tmp_path / "2.parquet", X[50:100])
    table = open_blocks(tmp_path)
    assert table.dtype == np.float64
    blocks = [block.values for block in table.blocks()]
    assert {values.dtype for values in blocks} == {np.dtype(np.float64)}
    np.testing.assert_array_equal(np.vstack(blocks), np.vstack([single, X[50:100]]))


def test_an_empty_file_among_others_is_named(folder):
    _write(folder / "part-12.parquet", X[:0])
    with pytest.raises(DataError, match=r"part-12\.parquet: It holds no rows\. Leave it out"):
        open_blocks(folder)


def test_a_damaged_file_among_others_is_named(folder):
    path = folder / "part-7.parquet"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"part-7\.parquet is not a readable Parquet file"):
        open_blocks(folder)


@pytest.mark.parametrize("n_parts", [1, 2, 5, 12, 20, 24, 100])
def test_parts_cover_all_rows_once_and_in_order(folder, n_parts):
    parts = open_blocks(folder).parts(n_parts)
    assert len(parts) <= 24
    assert len(parts) >= min(n_parts, 12) // 2
    assert sum(part.n_samples for part in parts) == 600
    assert sum(part.n_stored for part in parts) == 2400
    np.testing.assert_array_equal(np.vstack([_stacked(part) for part in parts]), X)


def test_parts_are_of_about_the_same_size(tmp_path):
    sizes = [300, 10, 10, 10, 10, 10, 250]
    for number, size in enumerate(sizes):
        _write(tmp_path / f"{number}.parquet", X[:size])
    assert [part.n_samples for part in open_blocks(tmp_path).parts(2)] == [300, 300]


def test_parts_of_text_files_are_files(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{number},1\n")
    parts = open_blocks(tmp_path).parts(8)
    assert len(parts) == 3
    assert parts[0].n_samples is None
    assert np.vstack([_stacked(part) for part in parts])[:, 0].tolist() == [0, 1, 2]


def test_thousands_of_files_are_sent_with_their_names_once(tmp_path):
    names = [f"a rather long name of a column {j}" for j in range(200)]
    _write(tmp_path / "1.parquet", np.ones((2, 200)), names)
    one = open_blocks(tmp_path / "1.parquet")
    members = [open_blocks(tmp_path / "1.parquet") for _ in range(20)]
    assert len(pickle.dumps(FileSequence("many", members))) < 2.5 * len(pickle.dumps(one))


def test_sparse_and_dense_files_do_not_mix(tmp_path):
    h5py = pytest.importorskip("h5py")
    for name in ("1.h5ad", "2.h5ad"):
        with h5py.File(tmp_path / name, "w") as file:
            if name == "1.h5ad":
                file["X"] = np.eye(2)
            else:
                group = file.create_group("X")
                group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (2, 2)
                group["data"], group["indices"], group["indptr"] = [1.0, 1.0], [0, 1], [0, 1, 2]
            for frame in ("obs", "var"):
                file.create_group(frame).attrs["_index"] = "_index"
                file[frame]["_index"] = ["p", "q"]
    with pytest.raises(DataError, match=r"2\.h5ad is sparse and .*1\.h5ad is dense"):
        open_blocks(tmp_path)


# From the middle on


def _rest(table, n_rows, columns=None):
    """The blocks after the first rows; None if no block ends there."""
    blocks = table.blocks_after(n_rows, columns)
    return None if blocks is None else [block.values for block in blocks]


@pytest.mark.parametrize("columns", [None, np.array([2, 0])], ids=["all", "some"])
def test_blocks_after_some_rows_are_the_others(folder, tmp_path, columns):
    _write(folder / "part-3.parquet", X[150:200, ::-1], names="dcba")
    np.save(tmp_path / "X.npy", X)
    np.savetxt(tmp_path / "X.csv", X, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    expected = X if columns is None else X[:, columns]
    for source in (folder, [folder / "part-3.parquet", folder / "part-1.parquet"]):
        table = open_blocks(source)
        everything = _stacked(table, columns)
        for n_rows in range(0, table.n_samples, 50):
            rest = _rest(table, n_rows, columns)
            np.testing.assert_array_equal(np.vstack(rest), everything[n_rows:])
    matrix = open_blocks(tmp_path / "X.npy")
    for n_rows in (0, 1, 599):  # begins anywhere
        np.testing.assert_array_equal(np.vstack(_rest(matrix, n_rows, columns)), expected[n_rows:])
    assert _rest(matrix, 600) == []
    assert _rest(matrix, 601) is None
    text = open_blocks(tmp_path / "X.csv")
    assert _rest(text, 600, columns) == []
    assert _rest(text, 601, columns) is None
    assert _rest(text, 17, columns) is None  # all rows are one block


def test_files_before_the_rows_are_not_opened(folder):
    table = open_blocks(folder)
    for number in range(8):
        (folder / f"part-{number}.parquet").unlink()
    np.testing.assert_array_equal(np.vstack(_rest(table, 400)), X[400:])


def test_files_of_unknown_length_are_read_up_to_the_rows(tmp_path):
    for number in range(3):
        rows = X[5 * number : 5 * number + 5]
        path = tmp_path / f"part-{number}.csv"
        np.savetxt(path, rows, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    table = open_blocks(tmp_path)
    assert table.n_samples is None
    np.testing.assert_array_equal(np.vstack(_rest(table, 10)), X[10:15])
    assert _rest(table, 7) is None
    assert _rest(table, 20) is None
