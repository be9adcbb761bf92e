"""`explain`: a verdict on every column."""

import numpy as np
import pandas as pd
import pytest

from keepers import AutoSelector, check_table, datasets, explain
from people_tables import gene_counts
from reports.conftest import Outline


@pytest.fixture(scope="module")
def houses():
    """Sizes, a copy in another unit, categories, an identifier, a date, gaps, noise, a constant."""
    rng = np.random.default_rng(0)
    size, age = rng.standard_normal((2, 150))
    frame = pd.DataFrame(
        {
            "id": np.arange(150),
            "area": 100 + 30 * size,
            "rooms": np.round(5 + 1.5 * size + 0.7 * rng.standard_normal(150)),
            "area_sqft": 10.76 * (100 + 30 * size),
            "age": 40 + 10 * age,
            "state": np.where(age + 0.3 * rng.standard_normal(150) > 0, "worn", "new"),
            "heating": np.array(["gas", "oil", "wood"])[np.digitize(age, [-0.5, 0.5])],
            "noise": rng.standard_normal(150),
            "pool": [np.nan] * 145 + [1.0, 2.0, 3.0, 1.0, 2.0],
            "country": "NL",
            "sold": pd.date_range("2020-01-01", periods=150).astype(str),
        }
    )
    frame.loc[::5, "rooms"] = np.nan
    return frame


@pytest.fixture(scope="module")
def found(houses):
    return explain(houses, name="houses")


def test_every_column_has_one_verdict(found, houses):
    table = found.table
    assert sorted(table["column"]) == sorted(houses.columns)
    verdicts = dict(zip(table["column"], table["verdict"], strict=True))
    assert {verdicts["area"], verdicts["area_sqft"]} in (
        {"keep", "same as area"},
        {"keep", "same as area_sqft"},
    )
    assert verdicts["noise"] == "unrelated to the rest"
    assert {verdicts[name] for name in ("id", "sold", "pool", "country")} == {"unusable"}
    assert {verdicts[name] for name in ("age", "heating", "state", "rooms")} == {"keep"}
    assert set(found.kept) == {name for name, verdict in verdicts.items() if verdict == "keep"}


def test_reasons_have_their_numbers(found, houses):
    table = found.table.set_index("column")
    (copy,) = {"area", "area_sqft"} - set(found.kept)
    assert table.loc[copy, "r"] == pytest.approx(1.0)
    assert table.loc[copy, "nearest"] in ("area", "area_sqft")
    r = houses[["age", "noise", "area"]].corr()
    if table.loc["noise", "nearest"] in r:
        near = table.loc["noise", "nearest"]
        assert table.loc["noise", "r"] == pytest.approx(r.loc["noise", near])
    assert "5 observed" in table.loc["pool", "why"]
    assert table.loc["heating", "r"] >= 0.0  # a category has no sign
    assert table.loc[found.kept, "share_of_halves"].between(0.0, 1.0).all()
    assert table.drop(index=found.kept)["share_of_halves"].isna().all()


def test_it_prints_as_text_and_shows_in_a_notebook(found):
    text = str(found)
    assert f"Keep {len(found.kept)} of 11 columns" in text
    assert "unrelated to the rest" in text
    assert "Missing values" in text
    shown = found._repr_html_()
    assert shown.count("<tr") == 12
    assert "<svg" in shown
    assert "<script" not in shown
    assert "The default method scores observed values only.</li>" in shown
    assert repr(found) == f"<Explanation: keep {len(found.kept)} of 11 columns>"


def test_names_are_escaped(hostile_names):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, len(hostile_names)))
    X[:, :8] += 4 * rng.standard_normal((3, 8))[np.arange(80) % 3]
    X[:, 8] = X[:, 0]
    names = [name.replace("\ud800", "?") for name in hostile_names]
    names[names.index("")] = "unnamed"
    frame = pd.DataFrame(X, columns=names)
    for shown in (explain(frame)._repr_html_(), check_table(frame)._repr_html_()):
        assert not {"img", "script", "a", "iframe"} & set(Outline(shown).tags)


def test_no_structure_keeps_nothing():
    X = np.random.default_rng(0).standard_normal((60, 8))
    found = explain(X)
    assert found.kept == []
    assert "No structure found" in str(found)
    assert "are kept" not in str(found)
    assert set(found.table["verdict"]) == {"unrelated to the rest"}


def test_too_few_samples_are_no_evidence_against_a_column():
    rng = np.random.default_rng(0)
    found = explain(rng.standard_normal((8, 4)) + 3 * rng.standard_normal((8, 1)))
    assert found.summary == "Keep 0 of 4 columns. The others: 4 unusable."
    assert "8 are different, and at least 10 are needed." in str(found)
    assert "by chance" not in str(found)


def test_a_wide_table_keeps_what_the_selector_keeps():
    X, names, _ = datasets.load("srbct")
    found = explain(pd.DataFrame(X[:, :400], columns=names[:400]))
    selector = AutoSelector().fit(X[:, :400])
    assert found.kept == list(names[selector.top().indices])
    assert "not needed" in set(found.table["verdict"])


def test_a_narrow_table_needs_no_column_less_for_other_reasons_than_that_it_repeats_one():
    """Over the 1,000 rows of a fit, correlations of counts are not those over all rows."""
    found = explain(pd.DataFrame(gene_counts(12, 3000).T).add_prefix("S"))
    copies = found.table[found.table["verdict"].str.startswith("same as")]
    assert len(copies)
    assert copies["r"].min() >= 0.95
    assert set(found.table["verdict"]) == {"keep", *copies["verdict"]}
    assert f"{len(copies)} of them" in found.selector.summary_


def test_without_options_a_sentence_ends():
    frame = pd.DataFrame(gene_counts(12, 300).T, columns=[f"S{at}" for at in range(12)])
    frame.insert(0, "gene", [f"G{at}" for at in range(300)])
    check = check_table(frame)
    assert check.findings[0].about == "orientation"
    assert all(each.sentence.endswith(".") for each in check.findings)


def test_kinds_can_be_overruled(houses):
    found = explain(houses, kinds={"id": "number", "sold": "drop"})
    verdicts = found.table.set_index("column")["verdict"]
    assert verdicts["id"] != "unusable"
    assert verdicts["sold"] == "unusable"


def test_the_check_of_a_table_is_shown_as_a_table(houses):
    check = check_table(houses, name="houses")
    assert "ColumnKind(" not in repr(check)
    assert repr(check) == str(check)
    frame = check.to_frame()
    assert list(frame["column"]) == list(houses.columns)
    assert frame.set_index("column").loc["id", ["kind", "used"]].tolist() == ["identifier", "no"]
    assert check._repr_html_().count("<tr>") == 12
    assert "For other methods:" not in check._repr_html_()
