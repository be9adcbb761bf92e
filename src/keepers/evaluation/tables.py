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

from keepers.data.formats.text import text_line
from keepers.evaluation.atomic import write_bytes, write_text
from keepers.evaluation.claims import Claim, Evidence
from keepers.evaluation.cost import Slope, TimingRow
from keepers.evaluation.results_folder import claim_folder
from keepers.evaluation.runner import StudyRun
from keepers.evaluation.summary import (
    MEASURES,
    Comparison,
    Over,
    as_text,
    best_per_data,
    reduced_grids,
)

__all__ = ["table2_rows", "write_tables"]

_TIMES = ("fit_seconds", "kmeans_seconds")
_PLACE = ("section", "data", "method", "role", "params")
Row = dict[str, Any]


def write_tables(evidence: Evidence, claims: Iterable[Claim], folder: Path) -> list[Path]:
    """Write every table of the study into its results folder, each whole or not at all."""
    claim_folder(folder)
    run, rows = evidence.run, evidence.rows
    results = [{name: row[name] for name in row if name not in _TIMES} for row in rows]
    by_name: dict[str, list[Row]] = {
        "results.csv": results,
        "tuned.csv": _score_rows(evidence.tuned),
        "default.csv": _score_rows(evidence.default),
        "overview.csv": _overview_rows(evidence),
        "reduced.csv": _reduced_rows(run),
        "ranks.csv": _rank_rows(evidence),
        "table1.csv": _table1_rows(evidence),
        "table2.csv": table2_rows(run),
        "timing.csv": _timing_rows(evidence.timing),
        "seconds.csv": _seconds_rows(rows),
        "claims.csv": [_claim_row(claim) for claim in map(asdict, claims)],
    }
    written = []
    for name, content in by_name.items():
        if content:
            write_text(folder / name, as_csv(content))
            written.append(folder / name)
    written += _write_parquet(results, folder / "results.parquet")
    facts = {"title": run.spec.title, "seed": run.spec.seed, "runs": run.runs}
    write_text(folder / "environment.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
    return [*written, folder / "environment.json"]


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


def _score_rows(comparison: Comparison) -> list[Row]:
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
            "acc_mean": _short(score.acc_mean),
            "acc_std": _short(score.acc_std),
            "nmi_mean": _short(score.nmi_mean),
            "nmi_std": _short(score.nmi_std),
            "repeats": score.repeats,
            "params": as_text(score.params),
            "settings_tried": score.settings_tried,
            "settings_failed": score.settings_failed,
            "status": score.status,
            "reason": score.reason,
        }
        for score in scores
    ]


def _overview_rows(evidence: Evidence) -> list[Row]:
    """Every method on every data set: at each k, and mean and maximum over k.

    One row a value: names of data sets are cells, so that none can take the place of a column.
    """
    rows = []
    overs: list[Over] = [*sorted(evidence.run.spec.ks), "mean", "max"]
    for tuning, comparison in (("tuned", evidence.tuned), ("default", evidence.default)):
        for measure in MEASURES:
            for over in overs:
                table = best_per_data(comparison, measure, over)
                rows += [
                    {
                        "tuning": tuning,
                        "measure": measure,
                        "k": over,
                        "data": data,
                        "method": method,
                        "value": _short(value),
                    }
                    for method, cells in table.items()
                    for data, value in cells.items()
                ]
    return rows


def _reduced_rows(run: StudyRun) -> list[Row]:
    return [{**asdict(row), "grid": as_text(row.grid)} for row in reduced_grids(run)]


def _rank_rows(evidence: Evidence) -> list[Row]:
    rows = []
    for tuning in ("tuned", "default"):
        for measure in MEASURES:
            test = evidence.ranks[tuning, measure]
            rows += [
                {
                    "tuning": tuning,
                    "measure": measure,
                    "method": method,
                    "average_rank": _short(rank),
                    "data_sets": len(test.data),
                    "chi_squared": _short(test.chi_squared),
                    "p_value": _short(test.p_value),
                    "f_statistic": _short(test.f_statistic),
                    "f_p_value": _short(test.f_p_value),
                    "critical_difference": _short(test.critical_difference),
                }
                for method, rank in test.average_ranks.items()
            ]
    return rows


def _table1_rows(evidence: Evidence) -> list[Row]:
    return [
        {
            "method": row.method,
            "printed": row.printed,
            **_slope_cells("samples", row.in_samples),
            **_slope_cells("features", row.in_features),
        }
        for row in evidence.growth
    ]


def _slope_cells(size: str, slope: Slope) -> Row:
    seconds = {str(at): None if t is None else round(t, 4) for at, t in slope.seconds}
    return {
        f"exponent_in_{size}": None if slope.exponent is None else round(slope.exponent, 2),
        f"remark_{size}": slope.remark,
        f"seconds_by_{size}": json.dumps(seconds),
    }


def _timing_rows(rows: Iterable[TimingRow]) -> list[Row]:
    return [
        {
            **asdict(row),
            "fit_seconds": round(row.fit_seconds, 3),
            "kmeans_seconds": round(row.kmeans_seconds, 3),
            "share_of_selection": _short(row.share_of_selection),
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


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _write_parquet(rows: list[Row], path: Path) -> list[Path]:
    """The tidy rows once more, with types, if pyarrow is installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return []
    if not rows:
        return []
    whole, number = {"k", "repeats", "n_iter"}, {"acc_mean", "acc_std", "nmi_mean", "nmi_std"}
    types = {**dict.fromkeys(whole, pa.int64()), **dict.fromkeys(number, pa.float64())}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in rows[0]])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    write_bytes(path, sink.getvalue())
    return [path]
