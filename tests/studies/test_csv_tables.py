"""The tables of a study as files."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from keepers.studies.csv_tables import write_tables
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


@pytest.fixture(scope="module")
def run() -> StudyRun:
    return study(CONTENT, judge, sizes=SIZES, objective=lambda entry: (3.0, 2.0))


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
    write_tables(StudyResults(run), [], tmp_path / "a")
    write_tables(StudyResults(replace(run, outcomes=slower, runs=run.runs * 2)), [], tmp_path / "b")
    for name in ("results", "tuned", "default", "overview", "ranks", "reduced", "table2"):
        first, second = (tmp_path / side / f"{name}.csv" for side in "ab")
        assert first.read_bytes() == second.read_bytes(), name
        assert "seconds" not in first.read_text(encoding="utf-8")
    assert (tmp_path / "a/timing.csv").read_bytes() != (tmp_path / "b/timing.csv").read_bytes()


def test_tables_can_be_read_back(run: StudyRun, tmp_path: Path) -> None:
    write_tables(StudyResults(run), [], tmp_path)
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
    write_tables(StudyResults(run), [], tmp_path)
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
    write_tables(StudyResults(replace(run, outcomes=bad)), [], tmp_path)
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
    write_tables(StudyResults(run), [], tmp_path)
    rows = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(rows) == len(read(tmp_path / "results.csv"))
    assert rows[0]["k"] == 10
    assert isinstance(rows[0]["acc_mean"], float)


def test_reduced_grids_come_with_their_reasons(run: StudyRun, tmp_path: Path) -> None:
    write_tables(StudyResults(run), [], tmp_path)
    (reduced,) = read(tmp_path / "reduced.csv")
    assert (reduced["method"], reduced["data"], reduced["skipped"]) == ("RNE", "two", "True")
    assert reduced["reason"] == "too slow"
