"""The leaderboard: its numbers on made-up studies, and a page on which names are only text."""

import os
import re
import shutil

import pandas as pd
import pytest
from keepers_studies import write_report
from keepers_studies.leaderboard import leaderboards
from keepers_studies.scores import StudyResults
from made_up_study import study

KINDS = {"a": "genes", "b": "genes", "c": "images", "flat": "images"}
DATA = [{"source": source, "kind": kind} for source, kind in KINDS.items()]
SIZES = dict.fromkeys(KINDS, (50, 100, 3))
METHODS = [
    {"name": "SPCAFS", "label": "Good", "grid": {"gamma": [1.0, 2.0]}, "default": {}},
    {"name": "MCFS", "label": "Fails", "fixed": {"n_clusters": "classes"}, "default": {}},
    {"name": "LaplacianScore", "label": "Bad", "default": {}},
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "AllFeatures", "label": "All", "default": {}},
]
CONTENT = {"page": "leaderboard", "ks": [10, 20], "data": DATA, "methods": METHODS}
# ACC at both k. Random has 0.5 everywhere; on "flat" nothing is ahead of it.
ACC = {
    "Good": {"a": 0.9, "b": 0.7, "c": 0.6, "flat": 0.5},
    "Fails": {"a": 0.7, "b": None, "c": 0.7, "flat": 0.5},
    "Bad": {"a": 0.4, "b": 0.4, "c": 0.5, "flat": 0.3},
    "Random": dict.fromkeys(SIZES, 0.5),
    "All": {"a": 0.5, "b": 0.5, "c": 0.5, "flat": 0.4},
}


def judge(entry, k):
    acc = ACC[entry.method][entry.data]
    # The second grid point is the better one.
    better = 0.05 if entry.role == "grid" and entry.params.get("gamma") == 2.0 else 0.0
    return None if acc is None else (acc + better, acc / 2)


@pytest.fixture(scope="module")
def boards():
    return leaderboards(StudyResults(study(CONTENT, judge, sizes=SIZES)))


def row(board, method, kind="all"):
    return board.rows(kind).set_index("method").loc[method]


def test_the_scaled_score_is_the_gain_over_that_of_the_best(boards):
    scaled = boards[0].scaled
    assert list(scaled.max()) == [1.0, 1.0, 1.0]
    assert set(scaled.loc["Random"]) == {0.0}
    assert scaled.loc["Fails", "a"] == pytest.approx(0.2 / 0.4)
    assert scaled.loc["Bad", "a"] == pytest.approx(-0.1 / 0.4)
    assert row(boards[0], "Good").scaled == pytest.approx((1 + 1 + 0.5) / 3)
    assert list(scaled) == ["a", "b", "c"]  # on the last set nothing is ahead of random columns


def test_a_set_without_result_counts_as_0(boards):
    found = row(boards[0], "Fails")
    assert (found.sets, found.above_random_acc) == (3, 2)
    assert found.scaled == pytest.approx((0.5 + 0 + 1) / 3)
    sets = boards[0].sets().set_index(["data", "method"])
    assert sets.loc[("b", "Fails"), "reason"] == "failed: DataError: made to fail"
    assert pd.isna(sets.loc[("b", "Fails"), "gain"])


def test_rows_are_ordered_by_scaled_score_for_every_kind(boards):
    assert list(boards[0].rows().method) == ["Good", "Fails", "Random", "All", "Bad"]
    assert list(boards[0].kinds) == ["all", "genes", "images"]
    assert list(boards[0].rows("images").method)[:2] == ["Fails", "Good"]
    assert row(boards[0], "Good", "images").acc == pytest.approx((0.6 + 0.5) / 2)
    worst = row(boards[0], "Bad")  # also on sets without scale
    assert (worst.worst_set, worst.worst_gain) == ("flat", pytest.approx(-0.2))


def test_average_ranks_share_equal_places_and_take_no_result_for_random(boards):
    # a: Good 1, Fails 2, All and Random 3.5, Bad 5; b: Good 1, three at 3, Bad 5;
    # c: Fails 1, Good 2, three at 4; flat: three at 2, All 4, Bad 5.
    ranks = boards[0].ranks().average_ranks
    assert ranks["Good"] == pytest.approx((1 + 1 + 2 + 2) / 4)
    assert ranks["Fails"] == pytest.approx((2 + 3 + 1 + 2) / 4)
    assert ranks["Bad"] == pytest.approx((5 + 5 + 4 + 5) / 4)


def test_the_tuned_board_has_the_best_grid_points_and_methods_without_a_grid_as_they_are(boards):
    gains = boards[1].gains["acc"]
    assert gains.loc["Good", "a"] == pytest.approx(0.45)
    assert gains.loc["Bad", "a"] == pytest.approx(-0.1)
    assert set(boards[1].seconds()) == {0.25}


def test_a_study_without_grids_has_one_board_and_without_random_columns_no_score():
    methods = [{k: v for k, v in method.items() if k != "grid"} for method in METHODS[:3]]
    made = StudyResults(study({**CONTENT, "methods": methods}, judge, sizes=SIZES))
    (board,) = leaderboards(made)
    assert (board.tuning, board.random) == ("default", "")
    assert board.rows().scaled.isna().all()


def test_a_loss_counts_at_most_as_much_as_the_best_gain_and_a_tiny_gain_makes_no_scale():
    acc = {"Good": {"a": 0.52, "b": 0.505}, "Bad": {"a": 0.1, "b": 0.1}}
    made = study(
        {**CONTENT, "data": DATA[:2]},
        lambda entry, k: (acc.get(entry.method, {}).get(entry.data, 0.5), 0.5),
        sizes=SIZES,
    )
    scaled = leaderboards(StudyResults(made))[0].scaled
    assert list(scaled) == ["a"]
    assert scaled.loc["Bad", "a"] == -1.0


SCRIPT = '</script><script>window.hacked = 1</script>"><img src=x onerror="window.hacked = 1">'
NAMES = ["plain", SCRIPT, "x" * 400, "right \u202e to left"]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A board with names that would run, or break a page, if they were not text."""
    data = [{"source": name, "name": name, "kind": "<b>genes</b>"} for name in NAMES]
    methods = [{**METHODS[0], "label": "<i onclick=alert(1)>Mine</i>"}, *METHODS[1:]]
    content = {**CONTENT, "title": f"Compared {SCRIPT}", "data": data, "methods": methods}
    made = study(
        content,
        lambda entry, k: (0.5 + 0.003 * len(entry.method) + 0.01 * NAMES.index(entry.data), 0.5),
        sizes=dict.fromkeys(NAMES, (50, 1000, 3)),
    )
    return write_report(StudyResults(made), tmp_path_factory.mktemp("board"))


def test_hostile_names_are_text_and_the_page_asks_nobody_for_anything(page):
    html = page.read_text(encoding="utf-8")
    assert html.count("<script") == 1
    assert not re.search("<(b|i|iframe|link|form)[ >]", html)
    assert "\u202e" not in html
    for link in re.findall('(?:href|src)="([^"]*)"', html):
        assert re.match("#|data:|leaderboard.csv|sets.csv", link)
    assert "default-src 'none'" in html
    assert len(pd.read_csv(page.parent / "leaderboard.csv")) == 2 * 2 * 5  # boards, kinds, methods
    assert len(pd.read_csv(page.parent / "sets.csv")) == 2 * 4 * 5


@pytest.mark.slow
def test_headings_sort_in_a_browser_and_names_do_nothing(page):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chrome")
    if chromium is None:
        pytest.skip("chromium is not installed")
    # Chromium refuses to run its own sandbox as root, which is what containers are.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        opened = browser.new_page(viewport={"width": 390, "height": 800})
        errors = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda m: m.type == "error" and errors.append(m.text))
        opened.goto(page.as_uri())
        table = opened.locator("table.sortable").first
        button = table.locator("thead button", has_text="Mean scaled score")
        before = table.locator("tbody td:first-child").all_inner_texts()
        button.click()
        assert table.locator("tbody td:first-child").all_inner_texts() == before  # best first
        button.click()
        assert table.locator("tbody td:first-child").all_inner_texts() != before
        assert opened.evaluate("typeof window.hacked") == "undefined"
        assert opened.evaluate("document.documentElement.scrollWidth") == 390
        assert errors == []
        browser.close()
