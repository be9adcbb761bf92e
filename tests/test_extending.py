"""What people who write a method may rely on."""

import ast
import re
from pathlib import Path

import keepers
from keepers import extending

ROOT = Path(__file__).parents[1]


def test_every_name_exists_and_is_in_the_table_of_the_docstring():
    told = set(re.findall(r"`(\w+)`", extending.__doc__.replace("``", "`")))
    assert told - {"keepers"} == set(extending.__all__)
    assert all(hasattr(extending, name) for name in extending.__all__)
    assert keepers.extending is extending


def test_every_class_and_function_is_documented():
    for name in extending.__all__:
        if callable(getattr(extending, name)):
            assert getattr(extending, name).__doc__, name


def test_the_example_of_the_guide_imports_nothing_private():
    tree = ast.parse((ROOT / "examples" / "add_a_method.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name.startswith("keepers")} == {
        "keepers",
        "keepers.extending",
    }
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {name for name in attributes if name.startswith("_")}


def test_the_guide_names_nothing_private_and_only_what_there_is():
    guide = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    assert not re.findall(r"`(?:self\.)?_[a-z]\w*", guide)
    for name in re.findall(r"`(check_\w+|cap_\w+|refuse_\w+)`", guide):
        assert hasattr(extending, name) or hasattr(extending.RankingSelector, name), name
