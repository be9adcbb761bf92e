"""The page in a real browser: Debian's chromium, driven by playwright, where both are installed."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)


def names_shown(page):
    return page.locator("#rows td.name > bdi").all_inner_texts()


def kept_summary(page):
    return page.inner_text("#kept-summary").replace("\xa0", " ")


def expected_summary(report, k):
    return f"{k:,} of {report.selection.n_features:,} kept"


def ranked_names(report):
    selection = report.selection
    return [str(name) for name in selection.feature_names[selection.order]]


def test_the_slider_changes_what_is_kept(srbct_report, open_page):
    page = open_page(srbct_report)
    assert kept_summary(page) == expected_summary(srbct_report, 50)
    assert page.locator("tr.kept").count() == 25
    page.focus("#k-slider")
    page.keyboard.press("ArrowRight")
    assert kept_summary(page) == expected_summary(srbct_report, 51)
    page.keyboard.press("Home")
    assert kept_summary(page) == expected_summary(srbct_report, 1)
    assert page.locator("tr.kept").count() == 1
    page.keyboard.press("End")
    assert kept_summary(page) == expected_summary(srbct_report, 2308)
    box = page.locator("#k-slider").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    k = int(page.input_value("#k-number"))
    assert 40 < k < 60  # the middle of a logarithmic scale is the square root of 2308
    assert kept_summary(page) == expected_summary(srbct_report, k)


def test_the_number_field_and_the_buttons_set_k(srbct_report, open_page):
    page = open_page(srbct_report)
    page.fill("#k-number", "7")
    assert kept_summary(page) == expected_summary(srbct_report, 7)
    page.click("#as-asked")
    assert kept_summary(page) == expected_summary(srbct_report, 50)
    page.fill("#k-number", "999999")
    page.keyboard.press("Tab")
    assert page.input_value("#k-number") == "2308"


def test_the_search_filters_names(srbct_report, open_page):
    page = open_page(srbct_report)
    page.fill("#search", "GENE12")
    matching = [name for name in ranked_names(srbct_report) if "gene12" in name]
    assert names_shown(page) == matching[:25]
    assert page.inner_text("#page-status") == f"1–25 of {len(matching)}"
    page.click("#next")
    assert names_shown(page) == matching[25:50]
    page.fill("#search", "no such gene")
    assert page.inner_text("#rows") == "No name matches."
    page.fill("#search", "")
    page.select_option("#which", "kept")
    assert page.inner_text("#page-status") == "1–25 of 50"
    page.select_option("#which", "dropped")
    assert page.inner_text("#page-status") == "1–25 of 2,258"


def test_columns_sort_by_click_and_by_keyboard(srbct_report, open_page):
    page = open_page(srbct_report)
    page.click("[data-sort=score]")
    assert names_shown(page) == ranked_names(srbct_report)[:25]
    header = page.locator("th", has=page.locator("[data-sort=score]"))
    assert header.get_attribute("aria-sort") == "descending"
    page.focus("[data-sort=name]")
    page.keyboard.press("Enter")
    assert names_shown(page)[:3] == ["gene1", "gene2", "gene3"]
    page.keyboard.press("Space")
    assert names_shown(page)[:2] == ["gene2308", "gene2307"]
    assert page.locator("th[aria-sort=descending]").inner_text() == "Name"
    assert header.get_attribute("aria-sort") == "none"


def test_everything_can_be_reached_with_the_tab_key(srbct_report, open_page):
    page = open_page(srbct_report)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        reached.add(page.evaluate("(e => e.id || e.dataset.sort)(document.activeElement)"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    wanted = {"k-slider", "k-number", "copy", "search", "which", "next"}
    assert wanted | {"rank", "name", "score"} <= reached


def test_the_copy_button_fills_the_clipboard(srbct_report, open_page):
    page = open_page(srbct_report)
    page.fill("#k-number", "4")
    page.click("#copy")
    playwright.expect(page.locator("#copy-status")).to_have_text("Copied 4 names.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines() == ranked_names(srbct_report)[:4]


def test_without_a_clipboard_the_list_is_laid_out_to_copy(srbct_report, open_page):
    page = open_page(srbct_report)
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject('refused'); }")
    page.evaluate("() => { document.execCommand = () => false; }")
    page.click("#copy")
    playwright.expect(page.locator("#copy-text")).to_be_visible()
    listed = page.input_value("#copy-text").splitlines()
    assert listed == ranked_names(srbct_report)[:50]
    assert "Ctrl+C" in page.inner_text("#copy-status")


def test_hostile_names_are_inert(hostile_report, hostile_names, open_page):
    page = open_page(hostile_report)
    page.wait_for_timeout(200)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img, b, body iframe, a").count() == 0
    assert page.locator("script").count() == 2
    shown = names_shown(page)
    assert hostile_names[0] in shown
    assert hostile_names[1] in shown
    assert "right \ufffd to left \ufffd over" in shown
    assert "(unnamed)" in shown
    long_one = page.locator("#rows bdi[title^=xxxx]").first
    assert long_one.inner_text() == "x" * 59 + "…"
    assert long_one.get_attribute("title") == "x" * 10_000
    page.hover("#map svg")
    page.fill("#search", "<script>")
    assert names_shown(page) == [hostile_names[1]]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_twenty_thousand_features_open_at_once(long_report, open_page, record_property):
    page = open_page(long_report)
    milliseconds = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    record_property("load_milliseconds", milliseconds)
    assert page.locator("#rows tr").count() == 25
    assert milliseconds < 2000
    page.click("[data-sort=name]")
    assert names_shown(page)[0] == "ENSG00000000000"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_of_a_narrow_screen(srbct_report, open_page, scheme):
    page = open_page(srbct_report, viewport={"width": 360, "height": 740}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(srbct_report, open_page, scheme):
    page = open_page(srbct_report, color_scheme=scheme)
    ground = luminance(page, "html", "backgroundColor")
    for selector in ("h1", ".note", "td.name", "#kept-summary strong", "svg text"):
        text = luminance(page, selector, "fill" if "svg" in selector else "color")
        lighter, darker = max(text, ground), min(text, ground)
        assert (lighter + 0.05) / (darker + 0.05) > 4.5, selector  # WCAG 2, level AA


def luminance(page, selector, attribute):
    """Relative luminance of a colour of the first such element, by the definition of WCAG 2."""
    colour = page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{attribute}")
    parts = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_paper_gets_black_on_white_and_the_kept_list(srbct_report, open_page):
    page = open_page(srbct_report, color_scheme="dark")
    page.fill("#k-number", "6")
    page.emulate_media(media="print")
    listed = ", ".join(ranked_names(srbct_report)[:6])
    playwright.expect(page.locator("#printed-list")).to_have_text(listed)
    assert luminance(page, "html", "backgroundColor") == pytest.approx(1.0)
    for selector in ("h1", ".lead", "td.name", ".note", "dt"):
        assert luminance(page, selector, "color") == 0.0
    assert not page.locator("#k-slider").is_visible()


def test_a_notebook_frame_works_shut_off(srbct_report, browser, tmp_path):
    notebook = Path(tmp_path, "notebook.html")
    notebook.write_text(f"<!DOCTYPE html><body>{srbct_report._repr_html_()}", encoding="utf-8")
    page = browser.new_page()
    page.goto(notebook.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#k-number").fill("3")
    playwright.expect(frame.locator("#kept-summary strong").first).to_have_text("3")
    frame.locator("#copy").click()
    playwright.expect(frame.locator("#copy-status")).not_to_have_text("")
    page.close()
