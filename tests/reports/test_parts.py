"""Names as safe text."""

from keepers.reports.selection import display_name


def test_shown_names_are_short_and_cannot_turn_their_surroundings():
    assert display_name("x" * 10_000) == "x" * 59 + "…"
    assert display_name("a\x00b\u202ec") == "a\ufffdb\ufffdc"
    assert display_name("שלום") == "שלום"
    assert display_name(" ") == "(unnamed)"
