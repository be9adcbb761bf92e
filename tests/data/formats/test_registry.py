"""One list of formats, which everything that reads or writes tables agrees with."""

from pathlib import Path

import numpy as np
import pytest

from keepers.data.formats.registry import FORMATS, format_named, format_of
from keepers.data.table_files import check_writable
from keepers.datasets import open_blocks, open_table
from keepers.exceptions import DataError, KeepersError, ParameterError

SUFFIXES = [(known, suffix) for known in FORMATS for suffix in known.suffixes]


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.title)
def test_a_format_is_read_in_blocks_or_whole_never_by_two_readers(known):
    assert (known.open_blocks is None) != (known.read_whole is None)


def test_a_suffix_tells_one_format():
    assert len({suffix for _, suffix in SUFFIXES}) == len(SUFFIXES)
    for known, suffix in SUFFIXES:
        assert format_of(Path(f"A{suffix.upper()}")) is known
    assert format_of(Path("a.docx")) is None


@pytest.mark.parametrize(("known", "suffix"), SUFFIXES, ids=[suffix for _, suffix in SUFFIXES])
def test_a_suffix_opens_both_ways_or_is_refused_with_the_reason(tmp_path, known, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"")  # no table of any format
    with pytest.raises(KeepersError, match="a" + suffix):
        open_table(path)
    with pytest.raises(DataError) as refusal:
        open_blocks(path)
    assert ("cannot be read in blocks" in str(refusal.value)) == (known.open_blocks is None)
    assert ("told by its suffix" in str(refusal.value)) is False


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.title)
def test_a_format_is_writable_if_it_has_a_writer(tmp_path, known):
    path = tmp_path / f"a{known.suffixes[0]}"
    if known.write is None:
        with pytest.raises(ParameterError, match="suffix of a written table"):
            check_writable(path)
    else:
        check_writable(path)


def test_a_format_has_a_name_of_its_own_and_answers_to_its_suffixes():
    assert len({known.name for known in FORMATS}) == len(FORMATS)
    for known, suffix in SUFFIXES:
        for name in (known.name, known.title.upper(), suffix, suffix.removeprefix(".").upper()):
            assert format_named(name) is known


def test_an_unknown_format_is_met_with_the_known_ones(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    for read in (open_table, open_blocks):
        with pytest.raises(
            ParameterError, match=r"one of csv, tsv, parquet.*got 'parket'.*Did you"
        ):
            read(path, format="parket")


@pytest.mark.parametrize("name", ["csv", "CSV", ".csv", "csv.gz"])
def test_a_format_that_is_given_counts_more_than_the_suffix(tmp_path, name):
    path = tmp_path / "a.npy"
    path.write_text("a,b\n1,2\n")
    assert list(open_table(path, format=name).feature_names) == ["a", "b"]
    assert list(open_blocks(path, format=name).feature_names) == ["a", "b"]
    with pytest.raises(DataError, match=r"a\.npy"):
        open_table(path)


@pytest.mark.parametrize("option", ["sep", "decimal", "comment", "encoding", "dataset"])
def test_an_option_of_another_format_is_refused(tmp_path, option):
    path = tmp_path / "a.npy"
    np.save(path, np.eye(2))
    for read in (open_table, open_blocks):
        for name in (None, "npy"):
            with pytest.raises(ParameterError, match=f"{option}= .*is NumPy array. Leave it out"):
                read(path, format=name, **{option: ","})


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.npy", "a"), ("a.b.npy", "a.b"), ("A.NPY", "A"), ("t.v1.csv.gz", "t.v1")],
)
def test_a_table_is_called_by_its_file_without_the_suffix(tmp_path, name, expected):
    found = format_of(Path(name))
    assert found.name_of(Path(name)) == expected
    if name.endswith("npy"):
        np.save(tmp_path / name, np.eye(2))
        assert open_table(tmp_path / name).name == expected
