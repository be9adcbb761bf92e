"""Rows, tuned and untuned scores, growth, files: all from outcomes that are known beforehand."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keepers.studies.cost import growth_rows, timing
from keepers.studies.csv_tables import write_tables
from keepers.studies.paper_claims.judging import Evidence
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    best_per_data,
    default,
    failures,
    reduced_grids,
    sweep_scores,
    tidy_rows,
    tuned,
)
from studies.made_up_study import study

SIZES = {"one": (50, 100, 3), "two": (60, 25, 2)}
CONTENT: dict[str, Any] = {
    "ks": [10, 20, 30],
    "data": [{"source": "one"}, {"source": "two", "scaling": "unit-samples"}],
    "methods": [
        {
            "name": "SPCAFS",
            "fixed": {"p": 1.0},
            "grid": {"gamma": [1.0, 2.0, 3.0]},
            "default": {"gamma": "scale"},
        },
        {
            "name": "RNE",
            "grid": {"alpha": [1.0, 2.0]},
            "reduced": [{"data": ["two"], "skip": True, "reason": "too slow"}],
        },
        {"name": "RandomScore", "label": "Random", "draws": 3},
        {"name": "AllFeatures", "label": "All features", "default": {}},
    ],
    "sweeps": [
        {
            "name": "power",
            "method": "SPCAFS",
            "data": ["one"],
            "vary": "p",
            "values": [0.25, 0.5],
            "grid": {"gamma": [1.0, 2.0]},
        },
        {
            "name": "convergence",
            "method": "SPCAFS",
            "data": ["one"],
            "vary": "gamma",
            "values": [5.0],
            "judge": False,
        },
    ],
}


def judge(entry: Any, k: int) -> tuple[float, float] | None:
    """SPCAFS peaks at gamma = 2, where NMI is worst; RNE fails for alpha = 1."""
    if entry.method == "RNE" and entry.params["alpha"] == 1.0:
        return None
    if entry.role == "draw":
        return 0.3 + 0.1 * entry.params["random_state"], 0.2
    if entry.method == "All features":
        return 0.9, 0.8
    gamma = entry.params.get("gamma", 0)
    acc = {1.0: 0.5, 2.0: 0.6, 3.0: 0.55}.get(gamma, 0.4) + k / 1000
    if entry.section == "power":
        acc += 0.1 * entry.params["p"]
    return acc, {2.0: 0.3}.get(gamma, 0.7)


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
    assert [(f["method"], f["ks"]) for f in failures(tidy_rows(run))] == [("RNE", [10, 20, 30])]


def test_an_entry_that_has_not_run_is_a_row_that_says_so() -> None:
    unfinished = study(CONTENT, judge, sizes=SIZES, done=lambda entry: entry.data == "one")
    rows = [row for row in tidy_rows(unfinished) if row["data"] == "two"]
    assert {row["status"] for row in rows} == {"missing"}
    score = tuned(unfinished).score("two", "SPCAFS", 10)
    assert score is not None
    assert (score.status, score.acc_mean) == ("missing", None)


def test_tuned_takes_the_best_acc_with_the_nmi_of_the_same_point(run: StudyRun) -> None:
    score = tuned(run).score("one", "SPCAFS", 20)
    assert score is not None
    assert score.params == {"gamma": 2.0}
    assert score.acc_mean == pytest.approx(0.62)
    assert score.nmi_mean == pytest.approx(0.3)
    assert score.acc_std == pytest.approx(0.01)
    assert (score.settings_tried, score.settings_failed) == (3, 0)


def test_default_is_the_fixed_setting(run: StudyRun) -> None:
    score = default(run).score("one", "SPCAFS", 20)
    assert score is not None
    assert score.params == {"gamma": "scale"}
    assert score.acc_mean == pytest.approx(0.42)
    assert "RNE" not in default(run).methods


def test_random_is_the_mean_over_draws_with_the_spread_of_all_repeats(run: StudyRun) -> None:
    values = np.array([0.29, 0.31, 0.39, 0.41, 0.49, 0.51])
    for comparison in (tuned(run), default(run)):
        score = comparison.score("one", "Random", 10)
        assert score is not None
        assert score.acc_mean == pytest.approx(values.mean())
        assert score.acc_std == pytest.approx(values.std())
        assert score.repeats == 6


def test_all_features_stand_for_every_k(run: StudyRun) -> None:
    comparison = tuned(run)
    assert [comparison.at("one", "All features", k, "nmi") for k in (10, 30)] == [0.8, 0.8]
    assert comparison.mean_over_k("one", "All features", "acc") == pytest.approx(0.9)


def test_one_good_grid_point_is_enough(run: StudyRun) -> None:
    score = tuned(run).score("one", "RNE", 10)
    assert score is not None
    assert (score.status, score.settings_failed) == ("ok", 1)


def test_a_method_whose_every_point_failed_says_why() -> None:
    all_fail = study(CONTENT, lambda e, k: None if e.method == "RNE" else (0.5, 0.5), sizes=SIZES)
    score = tuned(all_fail).score("one", "RNE", 10)
    assert score is not None
    assert (score.status, score.reason) == ("failed", "DataError: made to fail")


def test_tables_over_k(run: StudyRun) -> None:
    comparison = tuned(run)
    assert best_per_data(comparison, "acc", 30)["SPCAFS"]["one"] == pytest.approx(0.63)
    assert best_per_data(comparison, "acc", "mean")["SPCAFS"]["one"] == pytest.approx(0.62)
    assert best_per_data(comparison, "acc", "max")["SPCAFS"]["one"] == pytest.approx(0.63)
    assert best_per_data(comparison, "acc", "mean")["RNE"]["two"] is None
    assert comparison.ks["two"] == (10, 20)


def test_a_mean_over_k_needs_every_k_unless_waived() -> None:
    gap = study(CONTENT, lambda e, k: None if e.task.ks == (20,) else (k / 100, 0.5), sizes=SIZES)
    comparison = tuned(gap)
    assert comparison.mean_over_k("one", "RNE", "acc") is None
    assert comparison.mean_over_k("one", "RNE", "acc", complete=False) == pytest.approx(0.2)


def test_paired_means_use_the_k_that_both_have() -> None:
    gap = study(CONTENT, lambda e, k: None if e.task.ks == (20,) else (k / 100, 0.5), sizes=SIZES)
    assert tuned(gap).paired_means("one", "SPCAFS", "RNE", "acc") == pytest.approx((0.2, 0.2))
    assert tuned(gap).paired_means("two", "SPCAFS", "RNE", "acc") is None


def test_a_sweep_is_best_over_its_grid_at_each_k(run: StudyRun) -> None:
    curves = sweep_scores(run, "power", "one", "acc")
    assert curves[0.5] == pytest.approx({10: 0.66, 20: 0.67, 30: 0.68})
    assert curves[0.25][30] == pytest.approx(0.655)


def test_a_fit_that_is_not_judged_is_one_row_without_k(run: StudyRun) -> None:
    rows = [row for row in tidy_rows(run) if row["section"] == "convergence"]
    assert [(row["k"], row["n_iter"], row["status"]) for row in rows] == [(None, 2, "ok")]


def test_reduced_grids_come_with_their_reasons(run: StudyRun) -> None:
    (reduced,) = reduced_grids(run)
    assert (reduced.method, reduced.data, reduced.skipped) == ("RNE", "two", True)
    assert reduced.reason == "too slow"


def test_seconds_are_summed_over_the_grid_and_shared(run: StudyRun) -> None:
    (row,) = [r for r in timing(run) if (r.data, r.method, r.role) == ("one", "SPCAFS", "grid")]
    assert (row.fits, row.fit_seconds, row.kmeans_seconds) == (3, 0.75, 2.25)
    assert row.share_of_selection == pytest.approx(0.25)
    (failed,) = [r for r in timing(run) if (r.data, r.method) == ("one", "RNE")]
    assert (failed.fits, failed.unsuccessful) == (6, 3)


GROWTH = {
    **CONTENT,
    "sweeps": [],
    "growth": {
        "samples": [100, 200, 400, 800],
        "at_features": 50,
        "features": [40, 80, 160],
        "at_samples": 60,
    },
}


def test_growth_exponents_are_those_of_a_power_law() -> None:
    def seconds(task: Any) -> float | None:
        if task.method == "RandomScore":
            return 0.001
        if task.method == "RNE" and task.n_features == 160:
            return None
        return 1e-4 * task.n_samples**1.5 * task.n_features**0.5

    rows = {
        row.method: row for row in growth_rows(study(GROWTH, judge, sizes=SIZES, grown=seconds))
    }
    assert rows["SPCAFS"].in_samples.exponent == pytest.approx(1.5)
    assert rows["SPCAFS"].in_features.exponent == pytest.approx(0.5)
    assert rows["SPCAFS"].printed == "O(d²n + d³)"
    assert rows["Random"].in_samples.exponent is None
    assert "too quick to tell" in rows["Random"].in_samples.remark
    assert rows["RNE"].in_features.exponent is None
    assert "160: timeout" in rows["RNE"].in_features.remark


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_tables_do_not_depend_on_times_nor_on_the_order_of_results(
    run: StudyRun, tmp_path: Path
) -> None:
    slower = {
        key: replace(outcome, fit_seconds=9.9, kmeans_seconds=7.7)
        for key, outcome in reversed(run.outcomes.items())
    }
    write_tables(Evidence(run), [], tmp_path / "a")
    write_tables(Evidence(replace(run, outcomes=slower, runs=run.runs * 2)), [], tmp_path / "b")
    for name in ("results", "tuned", "default", "overview", "ranks", "reduced", "table2"):
        first, second = (tmp_path / side / f"{name}.csv" for side in "ab")
        assert first.read_bytes() == second.read_bytes(), name
        assert "seconds" not in first.read_text(encoding="utf-8")
    assert (tmp_path / "a/timing.csv").read_bytes() != (tmp_path / "b/timing.csv").read_bytes()


def test_tables_can_be_read_back(run: StudyRun, tmp_path: Path) -> None:
    write_tables(Evidence(run), [], tmp_path)
    table2 = read(tmp_path / "table2.csv")
    assert table2[1] == {
        "data": "two", "features": "25", "instances": "60", "classes": "2",
        "scaling": "unit-samples",
    }  # fmt: skip
    row = next(r for r in read(tmp_path / "tuned.csv") if (r["method"], r["k"]) == ("SPCAFS", "20"))
    assert float(row["acc_mean"]) == pytest.approx(0.62)
    assert json.loads(row["params"]) == {"gamma": 2.0}
    facts = json.loads((tmp_path / "environment.json").read_text(encoding="utf-8"))
    assert facts["runs"][0]["commit"] == "0123456789ab"
    assert not list(tmp_path.glob("*.part"))


TAKEN = ("method", "k", "tuning", "measure", "data", "value")


def test_a_data_set_named_like_a_column_does_not_overwrite_that_column(tmp_path: Path) -> None:
    content = {
        "ks": [10],
        "data": [{"source": f"{name}.csv"} for name in TAKEN],
        "methods": [{"name": "MCFS", "default": {}}, {"name": "RNE", "default": {}}],
    }
    values = {(m, d): 0.1 * i + 0.05 * (m == "RNE") for m in ("MCFS", "RNE")
              for i, d in enumerate(TAKEN, 1)}  # fmt: skip
    sizes = dict.fromkeys(TAKEN, (50, 100, 3))
    run = study(content, lambda e, k: (values[e.method, e.data], 0.5), sizes=sizes)
    write_tables(Evidence(run), [], tmp_path)
    for path in tmp_path.glob("*.csv"):
        for row in read(path):
            assert row.get("method", "MCFS") in ("MCFS", "RNE"), path.name
            assert row.get("data", "k") in TAKEN, path.name
            assert row.get("k", "10") in ("10", "mean", "max"), path.name
    found = {
        (row["method"], row["data"]): float(row["value"])
        for row in read(tmp_path / "overview.csv")
        if (row["tuning"], row["measure"], row["k"]) == ("tuned", "acc", "mean")
    }
    assert found == pytest.approx(values)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_names_in_the_tables_of_a_study_are_no_formulas(tmp_path: Path, start: str) -> None:
    evil = f"{start}cmd|' /C calc'!A0"
    content = {
        "ks": [10],
        "data": [{"source": "x", "name": evil}],
        "methods": [
            {"name": "SPCAFS", "label": evil, "default": {}, "grid": {"gamma": ["-2+3"]}},
            {"name": "RNE", "default": {}},
        ],
    }
    run = study(content, lambda e, k: (-0.5, 0.5), sizes={evil: (50, 100, 3)})
    bad = {key: replace(o, status="failed", reason=evil) for key, o in run.outcomes.items()}
    write_tables(Evidence(replace(run, outcomes=bad)), [], tmp_path)
    seen = set()
    for path in tmp_path.glob("*.csv"):
        for row in read(path):
            for name, cell in row.items():
                seen |= {name} if cell == "'" + evil else set()
                assert not cell.startswith(("=", "+", "@", "\t", "\r")), (path.name, name)
                assert not cell.startswith("-") or float(cell) < 0, (path.name, name)
    assert {"data", "method", "reason"} <= seen
    assert float(read(tmp_path / "tuned.csv")[0]["acc_mean"]) == pytest.approx(-0.5)


def test_parquet_holds_the_rows_of_the_csv(run: StudyRun, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_tables(Evidence(run), [], tmp_path)
    rows = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(rows) == len(read(tmp_path / "results.csv"))
    assert rows[0]["k"] == 10
    assert isinstance(rows[0]["acc_mean"], float)
