"""Numbers, names and settings as text."""

import numpy as np
import pytest

from keepers.reporting.report_text import displayed, duration, readable


def test_shown_names_are_short_and_cannot_turn_their_surroundings():
    assert displayed("x" * 10_000) == "x" * 59 + "…"
    assert displayed("a\x00b\u202ec") == "a\ufffdb\ufffdc"
    assert displayed("שלום") == "שלום"
    assert displayed(" ") == "(unnamed)"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.00123, "1.2 ms"), (0.456, "0.46 s"), (12.3, "12 s"), (61.2, "1 min 1 s")],
)
def test_times_are_written_as_one_would_say_them(seconds, words):
    assert duration(seconds).replace("\xa0", " ") == words


def test_settings_are_never_shown_by_address():
    assert readable(np.random.RandomState(0)) == "<RandomState>"
    assert readable(np.float64(0.5)) == "0.5"
    assert readable(("a", 1)) == "('a', 1)"
