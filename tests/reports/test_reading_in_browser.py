"""What a reader meets on the page, in a real browser: legible, whole, and not misleading."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from keepers import AutoSelector, VarianceScore, describe_selection
from keepers import report as make_report
from keepers.cli.selections import print_selection
from keepers.reports.html import python_recipe

pytestmark = pytest.mark.slow

WIDTHS = [1280, 390]
PHONE = {"width": 390, "height": 844}


def cells(page, number):
    """The texts of a column of the table."""
    return page.locator(f"#rows td:nth-child({number})").all_inner_texts()


def whys(page):
    return page.locator("#rows .why").all_inner_texts()


def row_of(page, name):
    exact = page.locator("td.name > bdi").get_by_text(name, exact=True)
    return page.locator("#rows tr").filter(has=exact)


def test_every_dropped_feature_says_why(skipping_report, open_page):
    page = open_page(skipping_report)
    assert row_of(page, "cause 3").locator(".why").inner_text().startswith("ranked lower; closest")
    copy = row_of(page, "<i>copy</i> 0").locator(".why")
    assert copy.inner_text() == "too similar to cause 0, r = +1.00"
    assert page.locator("#rows i").count() == 0
    assert row_of(page, "cause 0").locator(".why").inner_text().startswith("closest kept: ")
    page.select_option("#which", "st")
    assert page.locator("#rows tr").count() == 4  # that of the third scores below the third
    page.select_option("#which", "all")
    page.fill("#k-number", "2")
    assert row_of(page, "cause 2").locator(".why").inner_text().startswith("ranked lower")
    assert copy.inner_text() == "too similar to cause 0, r = +1.00"


PLAIN = r"−?[\d,]+(\.\d+)?"
SCIENTIFIC = r"−?\d\.\d\de[+−]\d+"


@pytest.mark.parametrize("exponents", [(-2, 5), (-40, -38), (0, 12)])
def test_a_column_of_numbers_has_one_notation(exponents, open_page):
    X = np.random.default_rng(0).standard_normal((40, 9)) * np.logspace(*np.array(exponents) / 2, 9)
    page = open_page(make_report(VarianceScore(3).fit(X), X))
    texts = cells(page, 4)
    assert len(texts) == 9
    plain = [bool(re.fullmatch(r"<?" + PLAIN, text)) for text in texts]
    scientific = [bool(re.fullmatch(SCIENTIFIC, text)) for text in texts]
    assert all(plain) or all(scientific), texts


def test_what_is_too_small_to_show_is_said_to_be(open_page):
    X = np.random.default_rng(0).standard_normal((40, 5)) * [1.0, 1e-4, 1e-4, 1e-4, 1e-4]
    page = open_page(make_report(VarianceScore(3).fit(X), X))
    assert cells(page, 4)[1:] == ["<0.0001"] * 4 or cells(page, 4)[1:] == ["<0.001"] * 4


@pytest.mark.parametrize("width", WIDTHS)
def test_code_is_whole_and_has_a_button_to_copy_it(srbct_report, open_page, width):
    page = open_page(srbct_report, viewport={"width": width, "height": 800})
    shown = {"python": python_recipe(srbct_report.selection), "command": srbct_report.command}
    for at, kind in enumerate(shown):
        cut = page.locator("pre").nth(at).evaluate("e => e.scrollWidth - e.clientWidth")
        assert cut <= 0
        page.click(f"[data-code=code-{kind}]")
        page.locator(".code [role=status]", has_text="Copied.").nth(at).wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == shown[kind]


@pytest.fixture(scope="module")
def sixty_report():
    """As many kept features as a map shows, with names of twenty letters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 70)) * np.linspace(2, 1, 70)
    names = [f"measured quantity {j:02d}" for j in range(70)]
    return make_report(VarianceScore(60).fit(X), X, feature_names=names, labels=np.arange(80) % 3)


@pytest.mark.parametrize("figure", ["#map", "#heat"])
@pytest.mark.parametrize("width", WIDTHS)
def test_labels_of_sixty_rows_are_legible_and_whole(sixty_report, open_page, width, figure):
    page = open_page(sixty_report, viewport={"width": width, "height": 800})
    box = page.locator(figure).bounding_box()
    labels = page.locator(f"{figure} svg text[text-anchor=end]")
    assert labels.count() == 60
    for at in (0, 30, 59):
        label = labels.nth(at).bounding_box()
        assert label["height"] >= 10  # pixels, as seen
        assert label["x"] >= box["x"]
        assert label["x"] + label["width"] <= box["x"] + box["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", WIDTHS)
def test_the_slider_has_a_scale(srbct_report, open_page, width):
    page = open_page(srbct_report, viewport={"width": width, "height": 800})
    page.locator("#k-scale").scroll_into_view_if_needed()
    marks = page.locator("#k-scale span")
    texts = marks.all_inner_texts()
    assert {"1", "10", "100", "2,308"} <= set(texts)
    boxes = [marks.nth(at).bounding_box() for at in range(len(texts))]
    for left, right in pairwise(boxes):
        assert left["x"] + left["width"] < right["x"]
    slider = page.locator("#k-slider").bounding_box()
    ten = boxes[texts.index("10")]
    page.mouse.click(ten["x"] + ten["width"] / 2, slider["y"] + slider["height"] / 2)
    assert 9 <= int(page.input_value("#k-number")) <= 11


def test_no_column_of_the_page_stands_empty(srbct_report, auto_report, open_page):
    for report in (srbct_report, auto_report):
        page = open_page(report, viewport={"width": 1280, "height": 900})
        main = page.locator("main").bounding_box()
        table = page.locator("#features").bounding_box()
        assert table["width"] > 0.9 * main["width"]


def test_the_terminal_and_the_page_name_the_same_neighbour(wine, open_page, capsys):
    selector = AutoSelector().fit(wine)
    page = open_page(make_report(selector, wine))
    selection = replace(describe_selection(selector, wine), seconds=0.0)
    print_selection(selection, {}, {})
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split("\t")[4:] == ["neighbour", "correlation"]
    told = ["closest kept: {}, r = {}".format(*line.split("\t")[4:]) for line in lines]
    near = [why.replace("−", "-").split(" · ")[0] for why in whys(page)]
    assert near[: selection.k] == told


@pytest.mark.parametrize("k", [3, 13])
def test_the_nearest_kept_feature_is_kept_and_right_whatever_the_slider_says(wine, open_page, k):
    selector = AutoSelector(6).fit(wine)
    page = open_page(make_report(selector, wine), viewport={"width": 390, "height": 800})
    page.fill("#k-number", str(k))
    kept = list(wine.columns[selector.top(k).indices])
    r = wine.corr()
    order = wine.columns[selector.top(13).indices]
    named = 0
    for name, why in zip(order, cells(page, 2), strict=True):
        others = [other for other in kept if other != name]
        expected = r.loc[name, others].abs().idxmax()
        named += "r = " in why
        if "r = " in why:
            assert f"{expected}, r = {r.loc[name, expected]:+.2f}" in why.replace("−", "-")
    assert bool(named) == (k == 3)


def test_the_nearest_kept_feature_and_r_are_whole_on_a_phone(wine, open_page):
    page = open_page(make_report(AutoSelector().fit(wine), wine), viewport=PHONE)
    for at in range(13):
        row = page.locator("#rows .why").nth(at)
        assert "r = " in row.inner_text()
        box = row.bounding_box()
        assert box["x"] + box["width"] <= 390


def test_every_kept_feature_has_a_histogram(long_report, open_page):
    page = open_page(long_report)
    page.select_option("#which", "kept")
    for last in (25, 50, 75, 100):
        assert page.inner_text("#page-status") == f"{last - 24}–{last} of 100"
        assert page.locator("#rows td.spark svg path").count() == 25
        if last < 100:
            page.click("#next")


def test_bars_are_as_high_as_the_counts(open_page):
    X = np.repeat([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]], [9, 3, 1], axis=0)
    page = open_page(make_report(VarianceScore(1).fit(X), X, feature_names=["a", "b"]))
    drawn = page.locator("#rows td.spark path").first.get_attribute("d")
    assert drawn == "M0 18v-18h3v18zM24 18v-6h3v6zM44 18v-2h3v2z"
    assert (
        page.locator("#rows td.spark svg").first.get_attribute("aria-label") == "values from 1 to 5"
    )


def test_hostile_names_are_inert_in_the_new_parts(hostile_report, hostile_names, open_page):
    page = open_page(hostile_report)
    assert page.locator("#heat img, #heat b, #heat script, .why img").count() == 0
    labels = page.locator("#heat svg text[text-anchor=end]").all_text_contents()
    assert len(labels) == 8
    assert "<img src=x on…or=alert(1)>" in " ".join(labels)
    page.select_option("#which", "dropped")
    assert page.locator("#rows .why").count() == len(hostile_names) - 8
