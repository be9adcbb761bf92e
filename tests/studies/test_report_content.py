"""The first sentences of the report are true of every row that it shows."""

import re

import pytest

from keepers.studies.report_content import headline
from keepers.studies.results import StudyResults
from keepers.studies.scores import default_scores
from studies.made_up_study import study

METHODS = [
    {"name": "SPCAFS", "default": {}},
    {"name": "MCFS", "default": {}},
    {"name": "RandomScore", "label": "Random", "draws": 2},
    {"name": "VarianceScore", "label": "Variance", "default": {}},
    {"name": "AllFeatures", "label": "All features", "default": {}},
]
SIZES = {"one": (50, 100, 3), "two": (60, 90, 2), "three": (60, 90, 2)}


def made_up(values, data=("one",)):
    """A study in which each method has the stated ACC, on all data sets or by data set."""
    content = {"ks": [5, 10], "data": [{"source": name} for name in data], "methods": METHODS}

    def judge(entry, k):
        value = values[entry.method]
        value = value[entry.data] if isinstance(value, dict) else value
        return None if value is None else (value, 0.5)

    return study(content, judge, sizes=SIZES)


def sentences(run):
    return headline(StudyResults(run))


ORDINARY = {"SPCAFS": 0.6, "MCFS": 0.5, "Random": 0.2, "Variance": 0.4, "All features": 0.3}


def test_a_method_that_is_highest_of_all_is_named_alone():
    said = " ".join(sentences(made_up(ORDINARY)))
    assert "Tuned, SPCAFS has the highest ACC (mean over k)." in said
    assert "With default settings, SPCAFS has the highest ACC (mean over k)." in said


@pytest.mark.parametrize("baseline", ["Variance", "All features", "Random"])
def test_a_baseline_that_is_higher_than_every_method_is_called_the_highest(baseline):
    run = made_up({**ORDINARY, baseline: 0.9})
    said = sentences(run)
    for beginning in ("Tuned", "With default settings"):
        assert f"{beginning}, {baseline} (baseline) has the highest ACC (mean over k)." in said
    assert not any("SPCAFS" in sentence and "highest" in sentence for sentence in said)


def test_equal_rows_share_the_lead():
    said = sentences(made_up({**ORDINARY, "Variance": 0.6}))
    assert "Tuned, SPCAFS and Variance (baseline) share the highest ACC (mean over k)." in said


def test_over_several_data_sets_the_counts_are_those_of_the_overview():
    by_data = {"one": 0.9, "two": 0.1, "three": 0.6}
    run = made_up({**ORDINARY, "Variance": by_data}, data=("one", "two", "three"))
    table = default_scores(run).table("acc", "mean")
    wins = dict.fromkeys(table, 0)
    for data in run.tables:
        top = max(round(row[data], 6) for row in table.values())
        for method, row in table.items():
            wins[method] += round(row[data], 6) == top
    (said,) = [s for s in sentences(run) if s.startswith("With default settings, the highest")]
    told = dict(re.findall(r"to (\w+)[^,]*? on (\d)", said))
    assert {m: int(n) for m, n in told.items()} == {m: n for m, n in wins.items() if n}
    assert said.endswith("of 3 data sets (shared on 1).")


def test_without_results_nothing_is_claimed():
    assert len(sentences(made_up(dict.fromkeys(ORDINARY)))) == 1
