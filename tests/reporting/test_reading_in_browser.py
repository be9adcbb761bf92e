"""What a reader meets on the page, in a real browser: legible, whole, and not misleading."""

import re
from itertools import pairwise

import numpy as np
import pytest

from keepers import SPCAFS, AutoSelector, VarianceScore, datasets, describe_selection
from keepers.cli.output import print_selection
from keepers.reporting.selection_report import make_report

WIDTHS = [1280, 390]


def cells(page, number):
    """The texts of a column of the table."""
    return page.locator(f"#rows td:nth-child({number})").all_inner_texts()


def row_of(page, name):
    exact = page.locator("td.name > bdi").get_by_text(name, exact=True)
    return page.locator("#rows tr").filter(has=exact)


def test_the_score_curve_ends_where_skipped_features_begin(skipping_report, open_page):
    page = open_page(skipping_report)
    scores = skipping_report.summary.ranked.scores
    assert scores[5] > scores[4]  # the first that was skipped
    curve = page.evaluate("JSON.parse(document.getElementById('data').textContent).curve")
    assert curve["span"] == [1, 5]
    assert "The curve ends at rank 5" in page.inner_text("#curve")
    page.fill("#k-number", "7")
    assert not page.locator("#curve .k-line").is_visible()


def test_every_dropped_feature_says_why(skipping_report, open_page):
    page = open_page(skipping_report)
    assert row_of(page, "cause 3").locator(".why").inner_text() == "ranked below 3"
    assert (
        row_of(page, "<i>copy</i> 0").locator(".why").inner_text() == "copy of cause 0, r = +1.00"
    )
    assert page.locator("#rows i").count() == 0
    assert row_of(page, "cause 0").locator(".why").count() == 0
    page.select_option("#which", "CTAu")
    assert page.locator("#rows tr").count() == 4  # that of the third scores below the third
    page.select_option("#which", "all")
    page.fill("#k-number", "2")
    assert row_of(page, "cause 2").locator(".why").inner_text() == "ranked below 2"
    assert (
        row_of(page, "<i>copy</i> 0").locator(".why").inner_text() == "copy of cause 0, r = +1.00"
    )


def test_after_an_automatic_choice_no_button_offers_another_number(auto_report, open_page):
    page = open_page(auto_report)
    assert page.locator("#to-knee").count() == 0
    assert "knee" not in page.inner_text("main").lower()
    assert "AutoSelector chose" in page.inner_text(".lead")


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
@pytest.mark.filterwarnings("ignore::keepers.exceptions.UnitsWarning")
def test_the_knee_button_keeps_no_inactive_feature(wine, open_page):
    page = open_page(make_report(SPCAFS(4).fit(wine), wine))
    assert page.locator("#to-knee").count() == 0
    assert page.inner_text("#kept-inactive") == "; 3 of them inactive"
    assert row_of(page, "magnesium").locator(".proof").all_inner_texts()[0] == "inactive"
    page.fill("#k-number", "1")
    assert page.inner_text("#kept-inactive") == ""


def test_with_columns_that_count_alike_no_column_takes_all_the_variance(wine, open_page):
    """In the units of the table 99.8 % of the variance is that of proline."""
    report = make_report(AutoSelector().fit(wine), wine)
    page = open_page(report)
    standardised = (wine - wine.mean()) / wine.std(ddof=0)
    values = np.linalg.eigvalsh(np.cov(standardised, rowvar=False, ddof=0))[::-1]
    labels = page.locator("#before svg text").all_text_contents()
    for part, value in enumerate(values[:2], 1):
        share = f"component {part} ({100 * value / 13:.1f} %)"
        assert share in [label.replace("\xa0", " ") for label in labels]
    assert "%" not in page.inner_text("#kept-summary")
    assert "divided by its standard deviation" in page.inner_text("main")


@pytest.mark.filterwarnings("ignore::keepers.exceptions.InactiveRowsWarning")
def test_shares_follow_the_slider_in_the_weights_of_the_method(wine, open_page):
    selector = SPCAFS(5, scaling=0.5).fit(wine)
    page = open_page(make_report(selector, wine))
    page.fill("#k-number", "2")
    weights = wine.std(ddof=0).to_numpy()  # variance, over the standard deviation
    share = weights[selector.top(2).indices].sum() / weights.sum()
    assert f"{100 * share:.1f}\xa0%" in page.inner_text("#kept-summary")


PLAIN = r"−?[\d,]+(\.\d+)?"
SCIENTIFIC = r"−?\d\.\d\de[+−]\d+"


@pytest.mark.parametrize("exponents", [(-2, 5), (-40, -38), (0, 12)])
def test_a_column_of_numbers_has_one_notation(exponents, open_page):
    X = np.random.default_rng(0).standard_normal((40, 9)) * np.logspace(*np.array(exponents) / 2, 9)
    page = open_page(make_report(VarianceScore(3).fit(X), X))
    for column in (4, 5):  # score and variance
        texts = cells(page, column)
        assert len(texts) == 9
        plain = [bool(re.fullmatch(r"<?" + PLAIN, text)) for text in texts]
        scientific = [bool(re.fullmatch(SCIENTIFIC, text)) for text in texts]
        assert all(plain) or all(scientific), texts
    if exponents == (-2, 5):
        assert [float(text.replace(",", "")) for text in cells(page, 5)] == pytest.approx(
            np.sort(X.var(axis=0))[::-1], rel=5e-3
        )


def test_what_is_too_small_to_show_is_said_to_be(open_page):
    X = np.random.default_rng(0).standard_normal((40, 5)) * [1.0, 1e-4, 1e-4, 1e-4, 1e-4]
    page = open_page(make_report(VarianceScore(3).fit(X), X))
    assert cells(page, 4)[1:] == ["<0.0001"] * 4 or cells(page, 4)[1:] == ["<0.001"] * 4


def test_convergence_is_folded_away_and_has_no_offset(srbct_report, open_page):
    page = open_page(srbct_report)
    assert not page.locator("#convergence").is_visible()
    page.click("#details > summary")
    assert page.locator("#convergence").is_visible()
    ticks = page.locator("#convergence svg text").all_text_contents()
    assert "way left (%)" in ticks
    # Which powers of ten are ticks is Matplotlib's choice, and differs between versions.
    assert len([tick for tick in ticks if re.fullmatch(r"0\.0*1|10*", tick)]) >= 3
    assert not [tick for tick in ticks if re.match(r"1e|[+−-]", tick)]


@pytest.mark.parametrize("width", WIDTHS)
def test_code_is_whole_and_has_a_button_to_copy_it(srbct_report, open_page, width):
    page = open_page(srbct_report, viewport={"width": width, "height": 800})
    for at, kind in enumerate(("python", "command")):
        cut = page.locator("pre").nth(at).evaluate("e => e.scrollWidth - e.clientWidth")
        assert cut <= 0
        page.click(f"[data-code=code-{kind}]")
        page.locator(".code [role=status]", has_text="Copied.").nth(at).wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == getattr(srbct_report.summary.method, kind)


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
    selection = describe_selection(selector, wine, seconds=0.0)
    print_selection(selection, {}, set_aside={}, json=False, quiet=True)
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split("\t")[4:] == ["neighbour", "correlation"]
    told = [line.split("\t")[4:] for line in lines]
    near = [text.replace("−", "-") for text in cells(page, 7)]
    k = selection.k
    assert [list(pair) for pair in zip(cells(page, 6), near, strict=True)][:k] == told


def test_the_nearest_kept_feature_is_kept_whatever_the_slider_says(wine, open_page):
    selector = AutoSelector().fit(wine)
    page = open_page(make_report(selector, wine))
    page.fill("#k-number", "3")
    kept = list(wine.columns[selector.top(3).indices])
    r = wine.corr()
    order = wine.columns[selector.top(13).indices]
    for name, near, shown in zip(order, cells(page, 6), cells(page, 7), strict=True):
        others = [other for other in kept if other != name]
        expected = r.loc[name, others].abs().idxmax()
        assert (near, shown.replace("−", "-")) == (expected, f"{r.loc[name, expected]:+.2f}")


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
    assert page.locator("#heat img, #heat b, #heat script, .why img, .closest b").count() == 0
    labels = page.locator("#heat svg text[text-anchor=end]").all_text_contents()
    assert len(labels) == 8
    assert "<img src=x onerror=aler…" in " ".join(labels)
    page.select_option("#which", "dropped")
    assert page.locator("#rows .why").count() == len(hostile_names) - 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_two_selections_stand_side_by_side(open_page, width, scheme):
    X, names, labels = datasets.load("srbct")
    pair = [VarianceScore(6).fit(X), AutoSelector(30).fit(X)]
    report = make_report(pair, X, feature_names=names, labels=labels)
    page = open_page(report, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    first, second = (set(names[each.top().indices]) for each in pair)
    assert set(page.locator("#only-first td > bdi").all_inner_texts()) == first - second
    assert set(page.locator("#only-second td > bdi").all_inner_texts()) == second - first
    boxes = [page.locator(part).bounding_box() for part in ("#only-first", "#only-second")]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width == 1280)
