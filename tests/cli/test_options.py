"""What the commands share."""

import re

import pytest

from keepers.catalogue import find_method
from keepers.cli import console
from keepers.cli.console import ReadingOptions
from keepers.datasets import SCALINGS
from keepers.exceptions import ParameterError
from keepers.prepare.kinds import KINDS, MISSING


def test_the_names_in_the_help_exist(quick_keepers):
    shown = " ".join(quick_keepers("select", "--help").stdout.split())
    for title, known in {"Gaps": MISSING, "Column type": KINDS, "the values": SCALINGS}.items():
        words = re.search(rf"{title}: ([^.]*)", shown)[1].replace(" (auto)", "").split(", ")
        assert words
        assert set(filter(None, words)) <= set(known)
    assert all(find_method(name).load() for name in console.METHOD_NAMES)


def test_sizes_and_numbers_are_read_and_other_words_are_refused_with_an_example():
    with pytest.raises(ParameterError, match="like 500M or 4G; got 'big'"):
        ReadingOptions(max_size="big").request()
    assert [console.as_number(word, "-m") for word in (" 12 ", "0.8", "80%")] == [12, 0.8, 0.8]
    assert ReadingOptions(max_size="1.5 MB").request().max_bytes == 1572864


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"missing": "mode"},
            "--missing must be one of error, keep, mean, median, model",
        ),
        ({"kinds": ["age"]}, "--as takes COLUMN=KIND"),
        ({"kinds": ["age=years"]}, "--as takes COLUMN=KIND"),
        ({"kinds": ["=number"]}, "--as takes COLUMN=KIND"),
    ],
)
def test_what_is_wrong_with_any_table_is_refused_before_one_is_read(wrong, said):
    with pytest.raises(ParameterError, match=said):
        ReadingOptions(**wrong)


@pytest.mark.parametrize("command", ["check", "select", "apply", "certify", "compare"])
def test_every_command_has_the_options_and_shows_the_rare_ones_on_request(quick_keepers, command):
    usual, rare = (
        ("--missing", "--as", "--transpose", "--sample"),
        ("--sheet", "--layer", "--debug"),
    )
    shown = quick_keepers(command, "--help").stdout
    assert all(f"  {option} " in shown for option in usual)
    assert not any(option in shown for option in rare)
    assert f"keepers {command} --help-all shows the options for rare cases" in shown
    complete = quick_keepers(command, "--help-all")
    assert complete.returncode == 0
    assert all(f"  {option} " in complete.stdout for option in (*usual, *rare))
    assert "rare cases" not in complete.stdout
