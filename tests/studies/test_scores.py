"""Rows, tuned and default scores, from outcomes that are known beforehand."""

import numpy as np
import pytest

from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    default_scores,
    failures,
    sweep_scores,
    tidy_rows,
    tuned_scores,
)
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


@pytest.fixture(scope="module")
def run() -> StudyRun:
    return study(CONTENT, judge, sizes=SIZES, objective=lambda entry: (3.0, 2.0))


def test_every_entry_and_k_has_a_row(run: StudyRun) -> None:
    rows = [row for row in tidy_rows(run) if row["section"] == "comparison"]
    of_spcafs = [r for r in rows if (r["data"], r["method"]) == ("one", "SPCAFS")]
    assert len(of_spcafs) == (3 + 1) * 3
    assert {row["role"] for row in rows} == {"grid", "default", "draw"}
    assert [r["k"] for r in rows if (r["data"], r["method"]) == ("two", "All features")] == [25, 25]


def test_a_failure_is_a_row_with_its_k_and_its_reason_but_no_numbers(run: StudyRun) -> None:
    bad = [row for row in tidy_rows(run) if row["status"] == "failed"]
    assert [row["k"] for row in bad] == [10, 20, 30]
    assert {row["reason"] for row in bad} == {"DataError: made to fail"}
    assert {row["acc_mean"] for row in bad} == {None}
    assert [(f.method, f.n_settings, f.ks) for f in failures(tidy_rows(run))] == [
        ("RNE", 1, (10, 20, 30))
    ]


def test_an_entry_that_has_not_run_is_a_row_that_says_so() -> None:
    unfinished = study(CONTENT, judge, sizes=SIZES, done=lambda entry: entry.data == "one")
    rows = [row for row in tidy_rows(unfinished) if row["data"] == "two"]
    assert {row["status"] for row in rows} == {"missing"}
    score = tuned_scores(unfinished).score("two", "SPCAFS", 10)
    assert score is not None
    assert (score.status, score.numbers) == ("missing", {})


def test_tuned_takes_the_best_acc_with_the_nmi_of_the_same_point(run: StudyRun) -> None:
    score = tuned_scores(run).score("one", "SPCAFS", 20)
    assert score is not None
    assert score.params == {"gamma": 2.0}
    assert score.numbers["acc_mean"] == pytest.approx(0.62)
    assert score.numbers["nmi_mean"] == pytest.approx(0.3)
    assert score.numbers["acc_std"] == pytest.approx(0.01)
    assert (score.settings_tried, score.settings_failed) == (3, 0)


def test_default_is_the_fixed_setting(run: StudyRun) -> None:
    score = default_scores(run).score("one", "SPCAFS", 20)
    assert score is not None
    assert score.params == {"gamma": "scale"}
    assert score.numbers["acc_mean"] == pytest.approx(0.42)
    assert "RNE" not in default_scores(run).methods


def test_random_is_the_mean_over_draws_with_the_spread_of_all_repeats(run: StudyRun) -> None:
    values = np.array([0.29, 0.31, 0.39, 0.41, 0.49, 0.51])
    for comparison in (tuned_scores(run), default_scores(run)):
        score = comparison.score("one", "Random", 10)
        assert score is not None
        assert score.numbers["acc_mean"] == pytest.approx(values.mean())
        assert score.numbers["acc_std"] == pytest.approx(values.std())
        assert score.repeats == 6


def test_all_features_stand_for_every_k(run: StudyRun) -> None:
    comparison = tuned_scores(run)
    assert [comparison.at("one", "All features", k, "nmi") for k in (10, 30)] == [0.8, 0.8]
    assert comparison.mean_over_k("one", "All features", "acc") == pytest.approx(0.9)


def test_one_good_grid_point_is_enough(run: StudyRun) -> None:
    score = tuned_scores(run).score("one", "RNE", 10)
    assert score is not None
    assert (score.status, score.settings_failed) == ("ok", 1)


def test_a_method_whose_every_point_failed_says_why() -> None:
    all_fail = study(CONTENT, lambda e, k: None if e.method == "RNE" else (0.5, 0.5), sizes=SIZES)
    score = tuned_scores(all_fail).score("one", "RNE", 10)
    assert score is not None
    assert (score.status, score.reason) == ("failed", "DataError: made to fail")


def test_tables_over_k(run: StudyRun) -> None:
    comparison = tuned_scores(run)
    assert comparison.table("acc", 30)["SPCAFS"]["one"] == pytest.approx(0.63)
    assert comparison.table("acc", "mean")["SPCAFS"]["one"] == pytest.approx(0.62)
    assert comparison.table("acc", "max")["SPCAFS"]["one"] == pytest.approx(0.63)
    assert comparison.table("acc", "mean")["RNE"]["two"] is None
    assert comparison.ks["two"] == (10, 20)


def test_a_mean_over_k_needs_every_k_unless_waived() -> None:
    gap = study(CONTENT, lambda e, k: None if e.task.ks == (20,) else (k / 100, 0.5), sizes=SIZES)
    comparison = tuned_scores(gap)
    assert comparison.mean_over_k("one", "RNE", "acc") is None
    assert comparison.mean_over_k("one", "RNE", "acc", complete=False) == pytest.approx(0.2)


def test_paired_means_use_the_k_that_both_have() -> None:
    gap = study(CONTENT, lambda e, k: None if e.task.ks == (20,) else (k / 100, 0.5), sizes=SIZES)
    assert tuned_scores(gap).paired_means("one", "SPCAFS", "RNE", "acc") == pytest.approx(
        (0.2, 0.2)
    )
    assert tuned_scores(gap).paired_means("two", "SPCAFS", "RNE", "acc") is None


def test_a_sweep_is_best_over_its_grid_at_each_k(run: StudyRun) -> None:
    curves = sweep_scores(run, "power", "one", "acc")
    assert curves[0.5] == pytest.approx({10: 0.66, 20: 0.67, 30: 0.68})
    assert curves[0.25][30] == pytest.approx(0.655)


def test_a_fit_that_is_not_judged_is_one_row_without_k(run: StudyRun) -> None:
    rows = [row for row in tidy_rows(run) if row["section"] == "convergence"]
    assert [(row["k"], row["n_iter"], row["status"]) for row in rows] == [(None, 2, "ok")]
