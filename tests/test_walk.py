"""The walk through a command: what it counts, and what it may cost."""

import importlib
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "walk.py"

# What the standard command may cost at most; lower these with the code, never raise them. (Raised
# four times. From 35 files: tables are now looked at and prepared before a selection. From 48: the
# proposals of the solver have a file of their own, and it limits the BLAS threads. From 50, and
# from four scatters: a selection that looks for variance is certified, in ten files, and the
# fit does not keep its scatter. From 60: the words that a report begins with and the values of the
# kept features have a file each. Moments and finiteness are those of the fit.
# docs/architecture.md says which files that takes, and why moments and finiteness are found of the
# table as it was read and again of what the selector gets.)
MOST_FILES = 62
MOST_TIMES = {
    "column moments of the whole table": 2,
    "correlations of the kept features": 1,
    "finiteness of the values": 2,
    "as_scatter": 5,
    "existence of one target": 3,
}


@pytest.fixture(scope="module")
def tool():
    return SimpleNamespace(**runpy.run_path(str(TOOL)))


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A package of five files, two of which only run at import."""
    package = tmp_path / "made_up_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "first.py").write_text(
        "from made_up_package import decorating\n"
        "@decorating.marked\n"
        "class Body:\n    value = 1\n"
        "def enter(n):\n"
        "    from made_up_package.inner import second\n"
        "    return [second.work(i) for i in (0, 0, n)]\n"
    )
    (package / "decorating.py").write_text("def marked(thing):\n    return thing\n")
    (package / "inner" / "second.py").write_text("def work(i):\n    return i\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [name for name in sys.modules if name.startswith("made_up_package")]:
        del sys.modules[name]


def test_files_are_listed_in_the_order_of_their_first_call_and_imports_do_not_count(tool, made_up):
    walk = tool.Walk(made_up)
    with walk.recording():
        importlib.import_module("made_up_package.first").enter(1)
    assert walk.files == ["first.py", "inner/second.py"]


def test_calls_about_different_things_are_counted_apart(tool, made_up):
    question = tool.Question(
        "work", ("made_up_package.inner.second:work",), lambda given: given["i"]
    )
    walk = tool.Walk(made_up, [question])
    with walk.recording():
        importlib.import_module("made_up_package.first").enter(7)
    assert walk.times == {"work": 2}  # twice about 0, once about 7


def test_a_question_about_a_function_that_is_gone_is_an_error(tool):
    with pytest.raises(SystemExit, match=r"keepers\.metrics:gone does not exist"):
        tool.Walk(tool.PACKAGE, [tool.Question("gone", ("keepers.metrics:gone",), tool.every_call)])


def test_neighbours_in_one_package_are_one_step(tool):
    files = ["cli/app.py", "cli/select.py", "data/table.py", "cli/output.py"]
    assert tool.steps_of(files) == [
        ("cli", ["app.py", "select.py"]),
        ("data", ["table.py"]),
        ("cli", ["output.py"]),
    ]


def test_the_standard_command_stays_within_its_limits(tool):
    walk = tool.walk_standard_command()
    assert len(walk.files) <= MOST_FILES, tool.as_text(walk)
    assert all(0 < walk.times[label] <= most for label, most in MOST_TIMES.items()), walk.times
    assert set(walk.times) == set(MOST_TIMES)
