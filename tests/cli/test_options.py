"""What the commands share."""

import pytest

from keepers.cli import options
from keepers.cli.console import in_words, printable
from keepers.data.scaling import SCALINGS
from keepers.exceptions import ParameterError
from keepers.methods import find_method


def test_the_names_in_the_help_are_the_names_that_exist():
    assert options.SCALINGS == SCALINGS
    assert all(find_method(name).load() for name in options.METHOD_NAMES)


@pytest.mark.parametrize(
    ("text", "size"), [("10", 10), ("4G", 4 * 2**30), ("1.5 MB", 1572864), ("2KiB", 2048)]
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert options.as_bytes(text) == size


def test_what_is_no_size_shape_or_list_is_refused_with_an_example():
    with pytest.raises(ParameterError, match="like 500M or 4G; got 'big'"):
        options.as_bytes("big")
    with pytest.raises(ParameterError, match="like 32x32; got '32'"):
        options.as_image_shape("32")
    with pytest.raises(ParameterError, match="as in 10,20; got '0'"):
        options.as_numbers("0", "--ks")
    assert options.as_image_shape("4x3") == (4, 3)
    assert options.as_numbers("3, 5", "--ks") == [3, 5]


def test_names_are_shown_without_what_steers_a_terminal():
    assert printable("a\x1b[2J\n\u202eb") == "a\\x1b[2J\\n\\u202eb"
    assert printable("x" * 50, width=10) == "x" * 9 + "…"
    assert printable("naïve Größe 基因") == "naïve Größe 基因"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "about 1 s"), (600, "about 10 min"), (9000, "about 2.5 h")]
)
def test_time_left_is_told_without_false_precision(seconds, words):
    assert in_words(seconds) == f"{words} left"


def test_a_folder_is_read_in_blocks_unless_it_is_one_table(tmp_path):
    assert options.reads_in_blocks(str(tmp_path), ())
    for name in ("matrix.mtx", "genes.tsv", "barcodes.tsv"):
        (tmp_path / name).write_bytes(b"")
    assert not options.reads_in_blocks(str(tmp_path), ())
    (tmp_path / "a.zarr").mkdir()
    assert not options.reads_in_blocks(str(tmp_path / "a.zarr"), (None,))
    assert options.reads_in_blocks(str(tmp_path / "a.zarr"), (None, "4G"))
