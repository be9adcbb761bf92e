"""What the site takes from the leaderboard: numbers from its file alone, and all of its pages."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[1]
CSV = """\
tuning,kind,place,method,told,scaled,acc,nmi,sets,sets_of_kind,above_random_acc,worst_set,worst_gain,average_rank
default,all,1,Mine|x,,0.523456,0.61,0.4,3,3,2,colon,-0.0312,1.5
default,all,2,Random,,0.0,0.5,0.3,3,3,0,colon,0.0,2.5
default,genes,1,Mine,,0.9,0.61,0.4,1,1,1,colon,0.1,1.0
tuned,all,1,Mine,the classes,0.8,0.7,0.5,3,3,3,colon,0.1,1.0
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Kept results in a folder of their own, and the module that reads them."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    kept = importlib.import_module("figures.kept_results").Results(tmp_path)
    return kept, importlib.import_module("figures.leaderboard")


def test_before_there_are_results_the_page_says_so_and_nothing_is_copied(results):
    kept, made = results
    assert "being made" in made.leaderboard(kept)
    assert made.pages_of_leaderboard(kept) == []


def test_the_table_has_the_default_settings_over_all_sets(results):
    kept, made = results
    kept.suite.mkdir(parents=True)
    (kept.suite / "leaderboard.csv").write_text(CSV, encoding="utf-8")
    head, _, *rows = made.leaderboard(kept).splitlines()
    assert "above random, of 3" in head
    assert rows == [
        "| 1 | Mine\\|x | 0.52 | 2 | 0.610 | 0.400 | 1.5 | colon \N{MINUS SIGN}3.1 | nothing |",
        "| 2 | Random | 0.00 |  | 0.500 | 0.300 | 2.5 |  | nothing |",
    ]


def test_the_pages_are_copied_with_what_they_link_to(results):
    kept, made = results
    (kept.suite / "sets").mkdir(parents=True)
    names = ["index.html", "leaderboard.csv", "sets.csv", "sets/a.html", "sets/b.html"]
    for name in [*names, "results.parquet"]:
        (kept.suite / name).write_text(CSV, encoding="utf-8")
    copied = made.pages_of_leaderboard(kept)
    assert [inside.as_posix() for _, inside in copied] == names
    assert 'href="leaderboard/index.html"' in made.leaderboard(kept)
