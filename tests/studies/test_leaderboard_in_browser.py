"""The leaderboard in a real browser: Debian's chromium, driven by playwright, where installed."""

import os
import shutil
from pathlib import Path

import pytest

from keepers.studies.leaderboard_page import write_leaderboard
from studies.hostile_leaderboard import METHOD, hostile_results

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "chrome"])), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"
)
# Chromium refuses to run its own sandbox as root, which is what containers are.
ARGUMENTS = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
MINE = METHOD[:25] + "…"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("leaderboard")
    write_leaderboard(hostile_results(), where)
    return where


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open a page; afterwards no console error, dialog or request may have been seen."""
    seen, contexts = [], []

    def open_file(path: Path, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and seen.append(f"console: {m.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (seen.append("dialog"), dialog.dismiss()))
        page.on(
            "request",
            lambda r: r.url.startswith(("file:", "data:")) or seen.append(f"request: {r.url}"),
        )
        page.goto(path.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert seen == []


def methods_shown(page, board="default"):
    names = page.locator(f"#board-{board} tbody th").all_inner_texts()
    return [name.replace("baseline", "").strip() for name in names]


def column(page, number, board="default"):
    return page.locator(f"#board-{board} tbody tr > :nth-child({number})").all_inner_texts()


def test_a_heading_sorts_and_sorts_back(folder, open_page):
    page = open_page(folder / "index.html")
    best_first = methods_shown(page)
    assert best_first[0] == MINE
    heading = page.locator("#board-default thead th", has_text="Mean ACC")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert methods_shown(page) == ["MCFS", "SPCAFS", MINE, "Random", "All features"]
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert methods_shown(page)[-1] == "MCFS"
    page.locator("#board-default thead button", has_text="Place").click()
    assert methods_shown(page) == best_first
    assert page.locator("#board-default th[aria-sort=ascending]").count() == 1


def test_headings_sort_by_keyboard_alone(folder, open_page):
    page = open_page(folder / "index.html")
    page.locator("#board-default thead button", has_text="Method").focus()
    page.keyboard.press("Enter")
    assert methods_shown(page)[1] == "All features"  # after "<"
    page.keyboard.press("Space")
    assert methods_shown(page)[0] == "SPCAFS"


def test_cells_without_a_value_stay_last(folder, open_page):
    page = open_page(folder / "index.html")
    button = page.locator("#board-default thead button", has_text="Worst set")
    for _ in range(2):
        button.click()
        assert methods_shown(page)[-1] == "Random"


def test_a_kind_of_data_swaps_the_numbers_and_keeps_the_other_table(folder, open_page):
    page = open_page(folder / "index.html")
    above, tuned = column(page, 4), column(page, 3, "tuned")
    assert above[0] == "4 of 4"
    page.select_option("#kind-default", label="images (2)")
    # The first and the third set: (0.16/0.3, 0.5), (no result, 1), (1, -0.9), 0, (1/3, -1).
    assert methods_shown(page) == [MINE, "MCFS", "SPCAFS", "Random", "All features"]
    assert column(page, 3) == ["0.52", "0.50", "0.05", "0.00", "−0.33"]
    assert column(page, 4) == ["2 of 2", "1 of 2", "1 of 2", "–", "1 of 2"]
    assert column(page, 3, "tuned") == tuned
    assert "images" in page.locator("[role=status]").first.inner_text()
    page.select_option("#kind-default", index=0)
    assert column(page, 4) == above


def test_the_worst_set_leads_to_its_page_and_back(folder, open_page):
    page = open_page(folder / "index.html")
    page.locator("#sets ~ .scroll a", has_text="plain").click()
    assert page.locator("h1").inner_text() == "plain"
    page.locator("a", has_text="All data sets").first.click()
    assert page.locator("#board-default").count() == 1


def test_hostile_names_do_nothing(folder, open_page):
    page = open_page(folder / "index.html")
    for number in (1, 2, 0):
        page.select_option("#kind-default", index=number)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img, b, i, body iframe").count() == 0
    for path in (folder / "sets").glob("*.html"):
        page.goto(path.as_uri())
        assert page.evaluate("typeof window.hacked") == "undefined"
        assert page.locator("img, b, i, script").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_of_the_screen(folder, open_page, scheme, width):
    for path in (folder / "index.html", *sorted((folder / "sets").glob("*.html"))):
        page = open_page(path, viewport={"width": width, "height": 800}, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") == width, path.name


def test_without_a_script_there_are_no_controls_and_the_table_is_there(folder, open_page):
    page = open_page(folder / "index.html", java_script_enabled=False)
    assert not page.locator("#kind-default").is_visible()
    assert page.locator("thead button").count() == 0
    assert methods_shown(page)[0] == MINE
    assert column(page, 4)[0] == "4 of 4"
