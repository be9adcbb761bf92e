"""Names and numbers as figures and report show them."""

from keepers.studies.formatting import points, settings, short, slug, value


def test_names_that_differ_in_signs_only_have_slugs_of_their_own() -> None:
    names = ["Gamma", "gamma", "gamma?", "a b", "a-b", "伽马", "力量"]
    assert len({slug(name).lower() for name in names}) == len(names)


def test_differences_are_shown_in_points() -> None:
    assert [points(x) for x in (0.051, -0.2, 0.0001, -0.0001)] == ["+5.1", "−20.0", "0.0", "0.0"]


def test_what_is_missing_is_a_dash() -> None:
    assert (value(None), points(None)) == ("–", "–")
    assert value(0.25) == "0.250"


def test_settings_are_listed_with_powers_of_ten_and_safe_names() -> None:
    assert settings({"gamma": 1e-4, "p": 0.5}) == "gamma = 10⁻⁴, p = 0.5"
    assert settings({}) == ""
    assert "\u202e" not in settings({"a\u202eb": "\u202e"})
    assert short("x" * 50) == "x" * 25 + "…"
