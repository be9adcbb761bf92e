"""Modules: one name for one thing, a test for each, functions of a readable length."""

import ast
import runpy
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "keepers"
COVER = SimpleNamespace(**runpy.run_path(str(TESTS.parent / "tools" / "module_cover.py")))
LONGEST_FUNCTION = 60
FOLDERS = [".", *sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))]


def test_a_file_name_stands_for_one_thing():
    folders = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        folders[path.name].add(path.relative_to(SOURCE).parent.as_posix())
    twice = {
        name: sorted(places)
        for name, places in folders.items()
        if len(places) > 1 and name != "__init__.py" and places != {"selectors", "solvers"}
    }
    assert not twice


def test_every_module_has_a_test_of_its_own_or_a_line_in_the_list():
    listed = COVER.covered_elsewhere()
    missing = [module for module in COVER.without_own_test() if module not in listed]
    assert not missing, "python tools/module_cover.py --missing proposes lines for them"


def test_the_list_names_modules_without_a_test_of_their_own():
    assert set(COVER.covered_elsewhere()) <= set(COVER.without_own_test())


def test_the_list_names_tests_that_exist_and_says_why():
    for module, entry in COVER.covered_elsewhere().items():
        assert set(entry) == {"test", "why"}, module
        assert entry["why"].strip(), module
        assert (TESTS / entry["test"]).is_file(), f"{module}: {entry['test']}"


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, source: list[str]) -> int:
    """Lines with code in the body of a function: no signature, docstring, comment, empty line."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    lines = source[body[0].lineno - 1 : function.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def test_code_lines_are_counted_without_signature_docstring_and_comments():
    text = 'def f(\n  a,\n):\n  """Doc.\n\n  More.\n  """\n  # why\n\n  c = a\n  return c\n'
    assert code_lines(ast.parse(text).body[0], text.splitlines()) == 2


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_is_longer_than_sixty_code_lines(folder):
    files = SOURCE.glob("*.py") if folder == "." else (SOURCE / folder).rglob("*.py")
    long = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = code_lines(node, text.splitlines())
                if lines > LONGEST_FUNCTION:
                    long[f"{path.relative_to(SOURCE)}:{node.name}"] = lines
    assert not long
