"""The tables of a study as files.

Nothing in tuned.csv, default.csv, ranks.csv, reduced.csv and table2.csv depends on the clock: two
runs of a study, interrupted or not, write the same bytes. Times are in timing.csv, and what follows
from times in table1.csv and claims.csv. results.parquet holds every fit at every k.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from keepers_studies.paper_claims.claim import Claim
from keepers_studies.plan import SYNTHETIC
from keepers_studies.scores import StudyResults
from keepers_studies.store import claim_folder, write_bytes, write_text

_TEST_NUMBERS = ("chi_squared", "p_value", "critical_difference")


def write_tables(
    study: StudyResults, claims: Sequence[Claim], readings: pd.DataFrame, folder: Path
) -> None:
    """Write every table of the study into its results folder, each whole or not at all."""
    claim_folder(folder)
    listed = pd.DataFrame([{**asdict(c), "numbers": " | ".join(c.numbers)} for c in claims])
    frames = {
        "tuned": study.tuned.scores,
        "default": study.default.scores,
        "ranks": _ranks(study),
        "reduced": reduced_grids(study),
        "table1": study.growth.drop(columns="selector", errors="ignore"),
        "table2": data_sets(study),
        "timing": study.timing,
        "claims": listed,
        "readings": readings,
    }
    for name, frame in frames.items():
        write_csv(frame, folder / f"{name}.csv")
    fits = study.fits[study.fits.section != SYNTHETIC]
    fits = fits.drop(columns=["task", "fit_seconds", "kmeans_seconds"])
    sink = io.BytesIO()
    fits.assign(params=fits.params.map(json.dumps)).round(6).to_parquet(sink, index=False)
    write_bytes(folder / "results.parquet", sink.getvalue())
    facts = {"title": study.spec.title, "seed": study.spec.seed, "runs": study.run.runs}
    write_text(folder / "environment.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame with six decimals; an empty frame has no file."""
    if not frame.empty:
        rounded = frame.map(lambda cell: round(cell, 6) if isinstance(cell, float) else cell)
        write_text(path, rounded.to_csv(index=False, lineterminator="\n"))


def data_sets(study: StudyResults) -> pd.DataFrame:
    """The data sets, as in the paper's Table 2, and how their samples were scaled."""
    scalings = {choice.title: choice.scaling for choice in study.spec.data}
    rows = [
        (name, facts.n_features, facts.n_samples, facts.n_classes, scalings[name])
        for name, facts in study.run.tables.items()
    ]
    return pd.DataFrame(rows, columns=["data", "features", "instances", "classes", "scaling"])


def _ranks(study: StudyResults) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "tuning": tuning,
            "measure": measure,
            "method": method,
            "average_rank": rank,
            "data_sets": test.n_data,
            **{name: getattr(test, name) for name in _TEST_NUMBERS},
        }
        for (tuning, measure), test in study.ranks.items()
        for method, rank in test.average_ranks.items()
    )


def reduced_grids(study: StudyResults) -> pd.DataFrame:
    """Methods and data sets with a reduced grid, and the reason."""
    return pd.DataFrame(
        {
            "method": method.title,
            "data": data,
            "skipped": reduction.skip,
            "grid": reduction.grid,
            "reason": reduction.reason,
        }
        for method in study.spec.methods
        for reduction in method.reduced
        for data in reduction.data
    )
