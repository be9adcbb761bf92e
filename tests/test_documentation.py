"""What the pages promise: every public name is in the reference, examples print what they say."""

import doctest
import importlib
import inspect
import re
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
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
# Words of our own, and the field's word for each.
PRIVATE_WORDS = {
    r"floors?": "baseline",
    r"pass(?:es|ed|ing)? (?:\w+ )?over (?!the )": "skip",
    r"settles?|settled": "converge, or choose",
    r"live|lives|alive|dying|die|dies|died|dead|doomed|buried": "active, or zero",
    r"go on|goes on|went on": "resume, or continue",
    r"rooms?|house|stairs": "package",
    r"as it comes": "with default settings",
    r"whole number": "integer",
    r"next to (?:no|nothing)": "almost no",
    r"set aside": "not used, or removed",
    r"issue \d+|first version|no longer|earlier (?:study|version)s?": "(history: docs/decisions)",
    r"(?:was|were) changed|aim was \d+": "(history: docs/decisions)",
}
# Redrawn with the code; project history belongs there.
WITH_HISTORY = ("add-a-method.md", "architecture.md", "changelog.md", "contributing.md")


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


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *(`{3,})[^\n]*\n.*?^ *\1 *$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What `#...` can stand for on a page: its headings, as GitHub and MyST name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = [re.sub(r"\]\([^)]*\)|[`*\[\]]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize(
    "module", ["keepers", "keepers.anndata", "keepers.datasets", "keepers.metrics"]
)
def test_every_public_name_is_in_the_reference_once(module):
    home = importlib.import_module(module)
    # A public module has a section of its own.
    names = [name for name in home.__all__ if not inspect.ismodule(getattr(home, name))]
    assert sorted(reference()[module]) == sorted(names)


def test_every_error_and_warning_is_in_the_reference():
    errors = importlib.import_module("keepers.exceptions")
    classes = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert sorted(reference()["keepers.exceptions"]) == sorted(classes)


@named([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES])
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\(<?([^()\s>]+)>?\)", prose(page)):
        target, _, anchor = link.partition("#")
        if ":" in target or set(target.split("/")) & set(MADE_BY_THE_BUILD):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {link}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name}: {link}"


@named([page for page in PAGES if page.parent.name != "decisions"])  # those are history
def test_files_that_a_page_names_exist(page):
    places = (ROOT, ROOT / "src", ROOT / "src" / "keepers")
    for name in FILE.findall(prose(page)):
        assert any((place / name).exists() for place in places), f"{page.name}: {name}"


@named(
    [
        ROOT / "README.md",
        *GALLERY,
        *(p for p in PAGES if p.parent.name != "decisions" and p.name not in WITH_HISTORY),
    ]
)
def test_pages_use_the_words_of_the_field(page):
    text = re.sub(r"`[^`]*`|\{[^{}]*\}", "", prose(page))
    for word, instead in PRIVATE_WORDS.items():
        found = re.search(rf"\b(?:{word})\b", text, re.IGNORECASE)
        assert found is None, f"{found[0]!r}: write {instead}"


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
