"""Pieces of error messages."""

from keepers.data.wording import closest, first_line, some_of


def test_a_list_of_names_is_cut_in_number_and_in_length():
    assert some_of(["a", "b"]) == "a, b"
    assert some_of(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert len(some_of(["x" * 10**6] * 9)) < 800


def test_the_nearest_name_is_not_sought_among_very_long_ones():
    assert closest("gamm", ["gamma", "tol"]) == " Did you mean 'gamma'?"
    assert closest("x" * 10**6, ["x" * (10**6 - 1)]) == ""


def test_the_first_line_of_an_exception_is_cut():
    assert first_line(ValueError("one.\ntwo")) == "one"
    assert len(first_line(ValueError("x" * 10**6))) == 200
