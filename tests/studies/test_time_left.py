"""Guessing how long the rest takes."""

from keepers.studies.time_left import TimeLeft


def test_tasks_are_expected_to_take_as_long_as_their_kind():
    left = TimeLeft([("slow", "a"), ("slow", "a"), ("fast", "a"), ("fast", "a")], n_jobs=2)
    assert left.after(("slow", "a"), 10) == (10 + 2 * 10) / 2
    assert left.after(("fast", "a"), 1) == (10 + 1) / 2


def test_an_unseen_kind_borrows_from_its_relatives():
    left = TimeLeft([("slow", "a"), ("slow", "b"), ("fast", "a")], n_jobs=1)
    left.after(("slow", "a"), 10)
    assert left.after(("fast", "a"), 2) == 10


def test_nothing_is_left_in_the_end():
    left = TimeLeft([("x",)], n_jobs=3)
    assert left.after(("x",), 5) == 0
