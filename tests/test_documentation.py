"""Pages agree with the package: names in the reference, files, numbers, printed examples."""

import doctest
import importlib
import inspect
import re
import runpy
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE_BY_THE_BUILD = ("_build", "_generated", "auto_gallery", "auto_stories", "reference")
PAGES = sorted(
    path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in MADE_BY_THE_BUILD
)
FILE = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|toml|json|csv))`")


def named(paths):
    return pytest.mark.parametrize("page", paths, ids=lambda page: str(page.relative_to(ROOT)))


def reference() -> dict[str, list[str]]:
    """Names in the summaries of docs/api*.md, by module."""
    listed: dict[str, list[str]] = {}
    for page in sorted(DOCS.glob("api*.md")):
        text = page.read_text(encoding="utf-8")
        pattern = r"^\.\. currentmodule:: (\S+)\n\.\. autosummary::\n(?: +:.*\n)*\n((?: +\w+\n)+)"
        for module, names in re.findall(pattern, text, re.MULTILINE):
            listed.setdefault(module, []).extend(names.split())
    return listed


@pytest.mark.parametrize(
    "module", ["keepers", "keepers.anndata", "keepers.datasets", "keepers.metrics"]
)
def test_every_public_name_is_in_the_reference_once(module):
    home = importlib.import_module(module)
    # A public module has a section of its own.
    public = getattr(home, "__all__", [name for name in vars(home) if not name.startswith("_")])
    names = [name for name in public if not inspect.ismodule(getattr(home, name))]
    assert sorted(reference()[module]) == sorted(names)


def test_every_error_and_warning_is_in_the_reference():
    errors = importlib.import_module("keepers.exceptions")
    classes = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert sorted(reference()["keepers.exceptions"]) == sorted(classes)


@named([ROOT / "SECURITY.md", *(page for page in PAGES if page.parent.name != "decisions")])
def test_files_that_a_page_names_exist(page):
    places = (ROOT, ROOT / "src", ROOT / "src" / "keepers")
    text = page.read_text(encoding="utf-8")
    for name in FILE.findall(re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        assert any((place / name).exists() for place in places), name


def test_the_readme_shows_the_numbers_of_the_result_files_and_what_its_example_prints():
    tool = runpy.run_path(str(ROOT / "tools" / "readme_numbers.py"), run_name="tool")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- begin ") == len(tool["PARTS"])
    assert tool["with_numbers"](text) == text


@named([page for page in PAGES if ">>>" in page.read_text(encoding="utf-8")])
def test_the_examples_on_a_page_print_what_it_says(page):
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried
    assert not failed


def test_the_code_on_the_page_about_genes_runs(capsys):
    pytest.importorskip("scanpy")
    page = (DOCS / "genes-without-labels.md").read_text(encoding="utf-8")
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scanpy and its dependencies
        for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            exec(compile(block, "genes-without-labels.md", "exec"), names)
    assert re.search(r"Keep \d+ of 765 features", capsys.readouterr().out)
    assert names["kept"].shape == (700, 50)
