"""Studies whose outcomes are made up, so that every expected value is known beforehand."""

from types import SimpleNamespace

from keepers_studies.plan import SYNTHETIC, Outcome, TableFacts, plan_tasks
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
RUNS = [{"started": "2026-01-01 00:00:00", "versions": {"numpy": "2.0.0"}, "commit": None}]


def study(
    content,
    judge,
    *,
    sizes=SIZES,
    objective=lambda entry: (),
    grown=lambda task: 0.1,
    done=lambda entry: True,
):
    """A study with two repeats, one a hundredth above the stated value and one below it.

    ``judge`` gives ACC and NMI of an entry at k, or None for a fit that fails; ``grown`` the
    seconds of a timed fit, or None where it runs past the limit.
    """
    spec = StudySpec.model_validate({"title": "A made-up study", "repeats": 2, **content})
    tables = {c.title: TableFacts(*sizes[c.title], f"fingerprint {c.title}") for c in spec.data}
    entries = plan_tasks(spec, tables)
    outcomes = {}
    for entry in entries:
        if entry.section == SYNTHETIC:
            n_samples, n_features = entry.params.values()
            timed = SimpleNamespace(
                method=entry.task.method, n_samples=n_samples, n_features=n_features
            )
            seconds = grown(timed)
            late = Outcome("timeout", "ran past the limit of 60 s")
            outcomes[entry.task.key] = (
                late if seconds is None else Outcome("ok", fit_seconds=seconds)
            )
        elif done(entry):
            outcomes[entry.task.key] = _outcome(entry, judge, objective(entry))
    return StudyRun(spec, tables, entries, outcomes, RUNS)


def _outcome(entry, judge, objective):
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
