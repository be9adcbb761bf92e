"""Names and numbers as safe text, Matplotlib figures as small, inert SVG."""

import re

import pytest

from keepers.reporting.report_parts import (
    ACCENT,
    clean_style,
    display_name,
    duration,
    inline_svg,
    new_figure,
    tidy_svg,
)

REFERENCE = r'(?:url\(#|href="#)([^)"]+)'
matplotlib = pytest.importorskip("matplotlib")


def a_figure(name="one"):
    figure = new_figure(name, 200, 100)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=ACCENT, label="$x$ <b>", clip_on=True)
    axes.set_title("a <title> & #010206", fontweight="bold")
    return figure


def test_the_element_is_bare_and_takes_the_colours_of_the_report():
    with clean_style():
        svg = inline_svg(a_figure(), 'A "label" & more')
    assert svg.startswith('<svg viewBox="0 0 200 100" role="img" aria-label="A &quot;label')
    assert "var(--accent)" in svg
    assert "<metadata" not in svg
    assert "<style" not in svg
    assert "font-weight: 650" in svg


def test_text_between_tags_stays_as_it_is():
    with clean_style():
        svg = inline_svg(a_figure(), "label")
    assert "a &lt;title&gt; &amp; #010206" in svg


def test_ids_are_kept_where_they_are_used_and_made_distinct():
    with clean_style():
        svg = inline_svg(a_figure(), "x")
    used = set(re.findall(REFERENCE, svg))
    assert set(re.findall(r' id="([^"]+)"', svg)) == used
    again = tidy_svg(svg, "x", {}, prefix="mine-")
    assert set(re.findall(r' id="([^"]+)"', again)) == {f"mine-{name}" for name in used}
    assert set(re.findall(REFERENCE, again)) == {f"mine-{name}" for name in used}


def test_coordinates_have_two_decimals_and_dots_are_short():
    raw = '<svg viewBox="0 0 1 1"><path d="M 1.23456 2 \nL 1.23456 2 \nM 3.10 4 \nL 5 6"/></svg>'
    assert ' d="M1.23 2h0 M3.1 4 L5 6"' in tidy_svg(raw, "x", {})


def test_the_user_s_settings_come_back():
    before = dict(matplotlib.rcParams)
    with clean_style({"font.size": 3}):
        assert matplotlib.rcParams["font.size"] == 3
    assert dict(matplotlib.rcParams) == before


def test_the_same_figure_gives_the_same_bytes():
    with clean_style():
        assert inline_svg(a_figure(), "x") == inline_svg(a_figure(), "x")


def test_shown_names_are_short_and_cannot_turn_their_surroundings():
    assert display_name("x" * 10_000) == "x" * 59 + "…"
    assert display_name("a\x00b\u202ec") == "a\ufffdb\ufffdc"
    assert display_name("שלום") == "שלום"
    assert display_name(" ") == "(unnamed)"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.00123, "1.2 ms"), (0.456, "0.46 s"), (12.3, "12 s"), (61.2, "1 min 1 s")],
)
def test_times_are_written_as_one_would_say_them(seconds, words):
    assert duration(seconds).replace("\xa0", " ") == words
