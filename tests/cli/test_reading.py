"""Options about reading and preparation, shared by the commands."""

import pytest

from keepers.cli import reading
from keepers.cli.reading import ReadingOptions
from keepers.exceptions import ParameterError
from keepers.preparation.column_kinds import KINDS
from keepers.preparation.table_preparer import MISSING


def test_the_names_in_the_help_are_the_names_that_exist():
    assert reading.MISSING == MISSING
    assert reading.KINDS == KINDS


def test_options_are_written_back_as_they_were_given():
    given = ReadingOptions(
        id="name", drop=["a,b", "meta_*"], kinds=["x=1=category"], header=False, log=True, sample=9
    )
    assert given.words() == [
        *("--id", "name", "--drop", "a,b", "--drop", "meta_*", "--as", "x=1=category"),
        *("--log", "--sample", "9", "--no-header"),
    ]
    assert given.asked_kinds == {"x=1": "category"}
    assert ReadingOptions().words() == []
    assert ReadingOptions(header=True).words() == ["--header"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"missing": "mode"}, "--missing must be one of error, mean, median, model, drop-rows"),
        ({"kinds": ["age"]}, "--as takes COLUMN=KIND"),
        ({"kinds": ["age=years"]}, "--as takes COLUMN=KIND"),
        ({"kinds": ["=number"]}, "--as takes COLUMN=KIND"),
    ],
)
def test_what_is_wrong_with_any_table_is_refused_before_one_is_read(wrong, said):
    with pytest.raises(ParameterError, match=said):
        ReadingOptions(**wrong)


@pytest.mark.parametrize("command", ["check", "select", "tune", "apply"])
def test_every_command_has_the_options(quick_keepers, command):
    shown = quick_keepers(command, "--help").stdout
    for option in ("--missing", "--as", "--transpose", "--sheet", "--make-unique", "--sample"):
        assert option in shown


def test_options_are_written_as_python():
    given = ReadingOptions(labels="kind", header=False, missing="median", kinds=["x=number"])
    assert given.in_python("a b.csv", "raw") == [
        "table = keepers.datasets.open_table('a b.csv', labels='kind', header=False, mixed=True)",
        "preparer = keepers.TablePreparer(missing='median', kinds={'x': 'number'})",
        "table = preparer.fit(table).prepare(table, first_row=0)",
    ]
    assert ReadingOptions(sample=9).in_python("a.csv", "raw") is None
