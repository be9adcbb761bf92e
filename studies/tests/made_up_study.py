"""Studies whose outcomes are made up, so that every expected value is known beforehand."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from keepers_studies.plan import SYNTHETIC, Entry, Outcome, TableFacts, plan_tasks
from keepers_studies.runner import StudyRun
from keepers_studies.specification import StudySpec

SIZES = {
    "Imm40": (240, 1024, 40),
    "SRBCTML": (83, 2308, 4),
    "LEUML": (72, 3571, 2),
    "PalmData25": (2000, 256, 100),
    "PIE": (1166, 1024, 53),
    "AR": (2600, 2200, 100),
}

Judge = Callable[[Entry, int], tuple[float, float] | None]
"""ACC and NMI of an entry at k; None for a fit that fails."""


class Timed(NamedTuple):
    """A timed fit."""

    method: str
    n_samples: int
    n_features: int


RUNS = [
    {
        "started": "2026-01-01 00:00:00",
        "python": "3.11.0",
        "system": "Linux x86_64",
        "cpu": "A processor",
        "cores": 2,
        "versions": {"keepers": "0.1.0", "numpy": "2.0.0"},
        "commit": "0123456789ab",
        "seed": 0,
        "jobs": 2,
    }
]


def study(
    content: Mapping[str, Any],
    judge: Judge,
    *,
    sizes: Mapping[str, tuple[int, int, int]] = SIZES,
    objective: Callable[[Entry], tuple[float, ...]] = lambda entry: (),
    grown: Callable[[Timed], float | None] = lambda task: 0.1,
    done: Callable[[Entry], bool] = lambda entry: True,
) -> StudyRun:
    """A study with two repeats, one a hundredth above the stated value and one below it."""
    spec = StudySpec.model_validate({"title": "A made-up study", "repeats": 2, **content})
    tables = {c.title: TableFacts(*sizes[c.title], f"fingerprint {c.title}") for c in spec.data}
    entries = plan_tasks(spec, tables)
    outcomes = {}
    for entry in entries:
        if entry.section == SYNTHETIC:
            seconds = grown(Timed(entry.task.method, *entry.params.values()))
            outcomes[entry.task.key] = (
                Outcome("timeout", "ran past the limit of 60 s")
                if seconds is None
                else Outcome("ok", fit_seconds=seconds)
            )
        elif done(entry):
            outcomes[entry.task.key] = _outcome(entry, judge, objective(entry))
    return StudyRun(spec, tables, entries, outcomes, [dict(run) for run in RUNS])


def _outcome(entry: Entry, judge: Judge, objective: tuple[float, ...]) -> Outcome:
    judgements = []
    for k in entry.task.ks if entry.task.repeats else ():
        values = judge(entry, k)
        if values is None:
            return Outcome("failed", "DataError: made to fail")
        acc, nmi = ([value - 0.01, value + 0.01] for value in values)
        judgements.append({"n_features": k, "acc": acc, "nmi": nmi})
    return Outcome(
        "ok",
        fit_seconds=0.25,
        kmeans_seconds=0.75,
        judgements=tuple(judgements),
        objective=objective,
        n_iter=len(objective) or None,
    )
