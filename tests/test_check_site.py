"""The checker of the built site finds what is broken, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKER = Path(__file__).parent.parent / "tools" / "check_site.py"


@pytest.fixture
def check(tmp_path):
    """Put one line into a page, and check the site."""
    (tmp_path / "other.html").write_text('<h1 id="there">Other</h1>')
    (tmp_path / "picture.png").write_bytes(b"")

    def run(
        line: str, contents: str | None = "[a](other.html)"
    ) -> subprocess.CompletedProcess[str]:
        if contents is not None:
            (tmp_path / "llms.txt").write_text(contents)
        (tmp_path / "index.html").write_text(f"<html><body>{line}</body></html>")
        command = [sys.executable, str(CHECKER), str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    "line",
    [
        '<a href="other.html#there">to a heading</a>',
        '<a href="https://example.org/">to another site, not followed</a>',
        '<img src="picture.png?v=1">',
        '<a id="here"></a><a href="#here">on the page</a>',
    ],
)
def test_links_that_lead_somewhere_pass(check, line):
    done = check(line)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('<a href="absent.html">x</a>', "leads to no file"),
        ('<a href="other.html#absent">x</a>', "without that anchor"),
        ('<a href="#absent">x</a>', "without that anchor"),
        ('<img src="absent.png">', "leads to no file"),
        ('<a href="../outside.html">x</a>', "leaves the site"),
        ('<script src="https://example.org/x.js"></script>', "another host"),
    ],
)
def test_links_that_lead_nowhere_are_named_with_page_and_line(check, line, fault):
    done = check(line)
    assert done.returncode == 1
    assert done.stdout.startswith("index.html:1: ")
    assert fault in done.stdout


@pytest.mark.parametrize(
    ("contents", "fault"),
    [
        (None, "llms.txt is not there"),
        ("# A title without links", "llms.txt has no links"),
        ("- [b](absent.html): a page", "llms.txt: absent.html leads to no file"),
        ("- [b](other.html#absent): a page", "without that anchor"),
    ],
)
def test_contents_for_language_models_that_lead_nowhere_are_named(check, contents, fault):
    done = check("<p>A page</p>", contents)
    assert done.returncode == 1
    assert fault in done.stdout


def test_a_story_without_its_notebook_is_named(check, tmp_path):
    story = tmp_path / "auto_stories" / "story_1_genes.html"
    story.parent.mkdir()
    (tmp_path / "story_1_genes.ipynb").write_text("{}")
    story.write_text('<a href="../story_1_genes.ipynb">notebook</a>')
    assert check("").returncode == 0
    story.write_text('<a href="../other.html">no notebook</a>')
    done = check("")
    assert done.returncode == 1
    assert "auto_stories/story_1_genes.html: offers no notebook story_1_genes.ipynb" in done.stdout


def test_a_folder_that_is_no_site_is_refused(tmp_path):
    done = subprocess.run([sys.executable, str(CHECKER), str(tmp_path)], check=False)
    assert done.returncode == 2
