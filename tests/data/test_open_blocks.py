"""From files, folders, patterns and lists to tables in blocks, and from slips to hints."""

import sys

import numpy as np
import pytest

from keepers.data.table_files import open_blocks
from keepers.exceptions import DataError, MissingDependencyError, ParameterError

X = np.arange(24.0).reshape(8, 3)


def _stacked(table, columns=None):
    return np.vstack([block.values for block in table.blocks(columns)])


@pytest.fixture
def folder(tmp_path):
    for number in range(4):
        np.save(tmp_path / f"part-{number + 8}.npy", X[2 * number : 2 * number + 2])
    return tmp_path


def test_a_pattern_finds_files_in_natural_order(folder):
    np.save(folder / "other.npy", np.ones((5, 7)))
    np.save(folder / "_part-0.npy", np.ones((5, 7)))
    for pattern in (str(folder / "part-*.npy"), folder / "part-*.npy"):
        np.testing.assert_array_equal(_stacked(open_blocks(pattern)), X)


def test_a_pattern_is_seen_from_the_folder_at_hand(folder, monkeypatch):
    monkeypatch.chdir(folder)
    table = open_blocks("part-*.npy")
    monkeypatch.chdir("/")
    assert table.name == "part-*.npy"
    np.testing.assert_array_equal(_stacked(table), X)


def test_a_pattern_may_match_folders_and_go_below_them(tmp_path):
    for number in (2, 10):
        (tmp_path / f"day-{number}").mkdir()
        np.save(tmp_path / f"day-{number}" / "a.npy", X[:, :1] + number)
    expected = np.vstack([X[:, :1] + 2, X[:, :1] + 10])
    for pattern in ("day-*", "**/*.npy", "day-[12]*/a.npy"):
        np.testing.assert_array_equal(_stacked(open_blocks(str(tmp_path / pattern))), expected)


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    np.save(tmp_path / "a[1].npy", X)
    np.testing.assert_array_equal(_stacked(open_blocks(str(tmp_path / "a[1].npy"))), X)


def test_a_list_is_read_in_its_own_order(folder):
    paths = [folder / "part-11.npy", str(folder / "part-8.npy")]
    np.testing.assert_array_equal(_stacked(open_blocks(paths)), X[[6, 7, 0, 1]])


def test_suffixes_may_be_written_large(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.npy").rename(tmp_path / "a.NPY")
    assert open_blocks(tmp_path / "a.NPY").n_samples == 8


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path} holds nothing"):
        open_blocks(tmp_path)


def test_a_folder_of_other_files_is_refused_with_their_names(tmp_path):
    (tmp_path / "notes.md").write_text("")
    with pytest.raises(DataError, match=r"holds notes\.md"):
        open_blocks(tmp_path)


def test_plain_text_beside_files_of_another_format_is_taken_for_notes(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "notes.txt").write_text("a\tb\n1\t2\n")
    assert open_blocks(tmp_path).n_features == X.shape[1]
    (tmp_path / "a.npy").unlink()
    assert list(open_blocks(tmp_path).feature_names) == ["a", "b"]


def test_a_format_that_is_given_counts_for_every_file_of_a_folder(tmp_path):
    for name in ("part-00000", "part-00001"):
        (tmp_path / name).write_text("a;b\n1,5;2\n")
    for source in (tmp_path, str(tmp_path / "part*"), sorted(tmp_path.iterdir())):
        blocks = open_blocks(source, format="csv", decimal=",")
        rows = np.concatenate([block.values for block in blocks.blocks()])
        np.testing.assert_array_equal(rows, [[1.5, 2], [1.5, 2]])


def test_a_pattern_that_matches_nothing_is_refused(tmp_path):
    pattern = str(tmp_path / "*.parquet")
    with pytest.raises(DataError, match="matches none") as refusal:
        open_blocks(pattern)
    assert pattern in str(refusal.value)


def test_an_empty_list_is_refused():
    with pytest.raises(DataError, match="list of files is empty"):
        open_blocks([])


def test_two_formats_are_refused_with_an_example_of_each(folder):
    (folder / "a.csv").write_text("a,b,c\n1,2,3\n")
    told = r"holds CSV \(a\.csv\) and NumPy array \(part-8\.npy\)"
    for source in (folder, str(folder / "*")):
        with pytest.raises(DataError, match=told):
            open_blocks(source)
    with pytest.raises(DataError, match="must have one format"):
        open_blocks([folder / "a.csv", folder / "part-8.npy"])


def test_an_unknown_suffix_is_refused(tmp_path):
    (tmp_path / "a.docx").write_text("")
    for source in (tmp_path / "a.docx", [tmp_path / "a.docx"]):
        with pytest.raises(DataError, match=r"told by its suffix, one of \.csv.*'a\.docx'"):
            open_blocks(source)


def test_a_format_that_is_read_as_a_whole_only_is_pointed_to_open_table(tmp_path):
    np.savez(tmp_path / "a.npz", X=X)
    with pytest.raises(DataError, match="cannot be read in blocks: NumPy archive files"):
        open_blocks(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["part-8.nyp", "a\0b", "x" * 5000, "no/such/place.npy"])
def test_what_is_not_there_is_refused(folder, name):
    for source in (str(folder / name), [str(folder / name)]):
        with pytest.raises(DataError, match="is not there"):
            open_blocks(source)


def test_a_slip_in_a_name_gets_a_hint(folder):
    with pytest.raises(DataError, match=r"Did you mean 'part-8\.npy'"):
        open_blocks(folder / "part-8.nyp")


def test_a_folder_in_a_list_is_refused(folder):
    with pytest.raises(DataError, match="is a folder"):
        open_blocks([folder])


def test_dataset_is_for_hdf5_only(folder):
    with pytest.raises(ParameterError, match=r"dataset= names an array in an HDF5 file"):
        open_blocks(folder / "part-8.npy", dataset="X")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.zst", "a.parquet", "a.feather", "a.h5ad", "a.h5"]
)
def test_without_the_optional_packages_the_command_is_named(tmp_path, monkeypatch, name):
    for package in ("pyarrow", "pyarrow.csv", "pyarrow.parquet", "h5py"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(MissingDependencyError, match=r'pip install "keepers\[io\]"') as refusal:
        open_blocks(tmp_path / name)
    assert str(tmp_path / name) in str(refusal.value)


def test_the_core_install_reads_arrays(folder, monkeypatch):
    for package in ("pyarrow", "h5py", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    np.testing.assert_array_equal(_stacked(open_blocks(folder)), X)
