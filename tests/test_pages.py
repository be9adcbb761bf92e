"""Code on the pages runs, and what the site includes is there."""

import doctest
import re
import sys
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# Their own tests run them: a clean folder for the first, what the examples show for the others.
ELSEWHERE = {"quick-start.md", "control.md", "stability.md"}
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if ">>> " in path.read_text(encoding="utf-8")
    and path.name not in ELSEWHERE
    and "auto_gallery" not in path.parts
    and "auto_stories" not in path.parts
    and "_build" not in path.parts
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_on_the_page_run_and_print_what_they_say(page):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Everything that the pages include, as the site's build makes it."""
    pytest.importorskip("matplotlib")
    sys.path.insert(0, str(DOCS))
    try:
        from figures.build import build_all
    finally:
        sys.path.remove(str(DOCS))
    folder = tmp_path_factory.mktemp("docs")
    build_all(folder)
    return folder


@pytest.mark.slow
def test_everything_that_a_page_includes_is_generated(generated):
    wanted = set()
    for page in [*DOCS.glob("*.md"), *DOCS.glob("*/*.md")]:
        if page.parent.name != "_generated":
            wanted |= set(re.findall(r"_generated/([\w.-]+\w)", page.read_text(encoding="utf-8")))
    made = {path.name for path in (generated / "_generated").iterdir()}
    assert wanted
    assert wanted <= made
    assert made <= wanted, f"no page shows {sorted(made - wanted)}"


@pytest.mark.slow
def test_the_landing_page_shows_a_plain_gain_and_no_column_of_noise(generated):
    caption = (generated / "_generated" / "landing.md").read_text(encoding="utf-8")
    after, before = re.search(r"puts (\d+)% of .*, (\d+)% before", caption).groups()
    assert int(after) > int(before) + 20
    assert "none of them is a shuffled one" in caption


@pytest.mark.slow
def test_a_figure_drawn_again_has_the_same_bytes_and_leaves_its_file_alone(generated):
    from figures.drawing import common_look, keep_figure
    from figures.method import draw_penalty

    path = generated / "_generated" / "penalty.svg"
    before = path.stat().st_mtime_ns
    with common_look():
        keep_figure(draw_penalty(), path)
    assert path.stat().st_mtime_ns == before


@pytest.mark.slow
def test_the_map_of_the_packages_has_every_package(generated):
    from figures.architecture import DESCRIPTIONS, layers

    packages = {package for layer in layers() for package in layer}
    source = DOCS.parent / "src" / "keepers"
    there = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(DESCRIPTIONS)
    assert there <= packages
