"""The tables of a study as files.

Nothing in results.csv, tuned.csv, default.csv, overview.csv, ranks.csv, reduced.csv and table2.csv
depends on the clock: two runs of a study, interrupted or not, write the same bytes. Times are in
timing.csv and seconds.csv, and what is derived from times in table1.csv and claims.csv.
"""

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from keepers._packages import optional
from keepers.data.formats.text import text_line
from keepers.exceptions import MissingDependencyError
from keepers.studies.cost import Slope, TimingRow
from keepers.studies.paper_claims import ClaimReadings
from keepers.studies.paper_claims.algorithm import steps_to_the_end
from keepers.studies.paper_claims.claim import Claim
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    MEASURES,
    STATISTICS,
    Comparison,
    Over,
    as_text,
    round_numbers,
    statistics_of,
)
from keepers.studies.store import claim_folder, write_bytes, write_text

_TIMES = ("fit_seconds", "kmeans_seconds")
_TEST_NUMBERS = ("chi_squared", "p_value", "f_statistic", "f_p_value", "critical_difference")
_PLACE = ("section", "data", "method", "role", "params")
Row = dict[str, Any]


def write_tables(
    study: StudyResults,
    claims: Iterable[Claim],
    folder: Path,
    readings: Sequence[ClaimReadings] = (),
) -> None:
    """Write every table of the study into its results folder, each whole or not at all."""
    claim_folder(folder)
    run, rows = study.run, study.rows
    results = [{name: row[name] for name in row if name not in _TIMES} for row in rows]
    by_name: dict[str, list[Row]] = {
        "results.csv": results,
        "tuned.csv": _score_rows(study.tuned, STATISTICS),
        "default.csv": _score_rows(study.default, statistics_of(run.spec)),
        "overview.csv": _overview_rows(study),
        "reduced.csv": _reduced_rows(run),
        "ranks.csv": _rank_rows(study),
        "table1.csv": _table1_rows(study),
        "table2.csv": table2_rows(run),
        "timing.csv": _timing_rows(study.timing),
        "seconds.csv": _seconds_rows(rows),
        "claims.csv": [_claim_row(claim) for claim in map(asdict, claims)],
        "readings.csv": [row for claim in readings for row in _reading_rows(claim)],
        "steps.csv": [step._asdict() for step in steps_to_the_end(run)],
    }
    for name, content in by_name.items():
        if content:
            write_text(folder / name, as_csv(content))
    _write_parquet(results, folder / "results.parquet")
    facts = {"title": run.spec.title, "seed": run.spec.seed, "runs": run.runs}
    write_text(folder / "environment.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def table2_rows(run: StudyRun) -> list[Row]:
    """The data sets, as in the paper's Table 2, and how their samples were scaled."""
    choices = {choice.title: choice for choice in run.spec.data}
    return [
        {
            "data": name,
            "features": facts.n_features,
            "instances": facts.n_samples,
            "classes": facts.n_classes,
            "scaling": choices[name].scaling,
        }
        for name, facts in run.tables.items()
    ]


def as_csv(rows: Sequence[Row]) -> str:
    """Rows with the same names as CSV text; None is an empty cell, and no text is a formula."""
    names = list(rows[0])
    lines = [names, *([row[name] for name in names] for row in rows)]
    return "".join(text_line(cells, ",") + "\n" for cells in lines)


def _score_rows(comparison: Comparison, statistics: Sequence[str]) -> list[Row]:
    data, methods = comparison.data, comparison.methods
    scores = sorted(
        comparison.scores.values(),
        key=lambda s: (data.index(s.data), methods.index(s.method), s.k),
    )
    return [
        {
            "data": score.data,
            "method": score.method,
            "k": score.k,
            **round_numbers(score.numbers, statistics),
            "repeats": score.repeats,
            "params": as_text(score.params),
            "settings_tried": score.settings_tried,
            "settings_failed": score.settings_failed,
            "status": score.status,
            "reason": score.reason,
        }
        for score in scores
    ]


def _overview_rows(study: StudyResults) -> list[Row]:
    """Every method on every data set at each k, and its mean and maximum over k; a row a value."""
    rows = []
    overs: list[Over] = [*sorted(study.run.spec.ks), "mean", "max"]
    for tuning, comparison in study.by_tuning:
        for measure in MEASURES:
            for over in overs:
                table = comparison.table(measure, over)
                rows += [
                    {
                        "tuning": tuning,
                        "measure": measure,
                        "k": over,
                        "data": data,
                        "method": method,
                        "value": _round(value),
                    }
                    for method, cells in table.items()
                    for data, value in cells.items()
                ]
    return rows


def _reduced_rows(run: StudyRun) -> list[Row]:
    """Where the specification reduces the grid of a method, and why."""
    return [
        {
            "method": method.title,
            "data": data,
            "skipped": reduction.skip,
            "grid": as_text(reduction.grid),
            "reason": reduction.reason,
        }
        for method in run.spec.methods
        for reduction in method.reduced
        for data in reduction.data
    ]


def _rank_rows(study: StudyResults) -> list[Row]:
    rows = []
    for tuning, _ in study.by_tuning:
        for measure in MEASURES:
            test = study.ranks[tuning, measure]
            rows += [
                {
                    "tuning": tuning,
                    "measure": measure,
                    "method": method,
                    "average_rank": _round(rank),
                    "data_sets": len(test.data),
                    **{name: _round(getattr(test, name)) for name in _TEST_NUMBERS},
                }
                for method, rank in test.average_ranks.items()
            ]
    return rows


def _table1_rows(study: StudyResults) -> list[Row]:
    return [
        {
            "method": row.method,
            "printed": row.printed,
            **_slope_cells("samples", row.in_samples),
            **_slope_cells("features", row.in_features),
        }
        for row in study.growth
    ]


def _slope_cells(size: str, slope: Slope) -> Row:
    seconds = {str(at): None if t is None else round(t, 4) for at, t in slope.seconds}
    return {
        f"exponent_in_{size}": None if slope.exponent is None else round(slope.exponent, 2),
        f"half_interval_{size}": _round(slope.half_interval),
        f"remark_{size}": slope.remark,
        f"seconds_by_{size}": json.dumps(seconds),
    }


def _timing_rows(rows: Iterable[TimingRow]) -> list[Row]:
    return [
        {
            **asdict(row),
            "fit_seconds": round(row.fit_seconds, 3),
            "kmeans_seconds": round(row.kmeans_seconds, 3),
            "share_of_selection": _round(row.share_of_selection),
        }
        for row in rows
    ]


def _seconds_rows(rows: Iterable[Row]) -> list[Row]:
    """Seconds of each fit, once; its k-means seconds are those of all its k together."""
    together: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        seconds = {name: round(row[name], 4) for name in _TIMES}
        key = (*(row[name] for name in _PLACE), *seconds.values())
        first = {name: row[name] for name in _PLACE} | {"largest_k": row["k"]}
        together.setdefault(key, first | seconds)["largest_k"] = row["k"]
    return list(together.values())


def _claim_row(claim: Row) -> Row:
    return {**claim, "numbers": " | ".join(claim["numbers"])}


def _reading_rows(claim: ClaimReadings) -> list[Row]:
    return [
        {"id": claim.id, "reading": name, "verdict": c.verdict, "numbers": " | ".join(c.numbers)}
        for name, c in claim.by_reading.items()
    ]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _write_parquet(rows: list[Row], path: Path) -> None:
    """The tidy rows with types, if pyarrow is installed."""
    try:
        pa = optional("pyarrow", "Parquet tables")
        pq = optional("pyarrow.parquet", "Parquet tables")
    except MissingDependencyError:
        return
    if not rows:
        return
    counts = ("k", "repeats", "n_iter")
    numbers = [name for name in rows[0] if name.endswith(("_mean", "_std"))]
    types = {**dict.fromkeys(counts, pa.int64()), **dict.fromkeys(numbers, pa.float64())}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    write_bytes(path, sink.getvalue())
