"""What the commands share."""

import subprocess
import sys

import pytest

from keepers.cli import options
from keepers.cli.console import in_words, printable
from keepers.cli.fitting import StepsLeft
from keepers.cli.settings import METHODS
from keepers.data.scaling import SCALINGS
from keepers.exceptions import ParameterError
from keepers.studies import comparison


def test_the_names_in_the_help_are_the_names_that_exist():
    assert options.SCALINGS == SCALINGS
    assert set(options.METHOD_NAMES) == set(METHODS)
    assert set(comparison.METHODS) == {*options.METHOD_NAMES, "all-features"}


def test_help_and_completion_do_not_wait_for_scikit_learn():
    code = "import sys, keepers.cli.app; print({'sklearn', 'scipy', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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


def test_the_end_of_an_iteration_is_guessed_from_how_its_steps_shrink(monkeypatch):
    """One step a second, each a tenth of the one before: from 9e-9 to 9e-14 it takes five more."""
    clock = iter(range(100))
    monkeypatch.setattr("keepers.cli.fitting.time.monotonic", lambda: next(clock))
    steps = StepsLeft(tol=9e-14)
    left = [steps.after(1 + 10.0**-power) for power in range(10)]
    assert left[:8] == [None] * 8  # too few steps to tell
    assert left[9] == pytest.approx(5, abs=0.1)
