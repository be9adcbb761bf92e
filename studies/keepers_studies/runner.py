"""Run what is missing of a study: in parallel, each result stored as it comes, resumable."""

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from keepers._packages import package_versions
from keepers.exceptions import DataError
from keepers.tables.opening import open_table
from keepers_studies.catalogue import entry_named, find
from keepers_studies.plan import (
    NOT_RUN,
    SYNTHETIC,
    Entry,
    FitTask,
    Outcome,
    TableFacts,
    plan_tasks,
    without_version,
)
from keepers_studies.scaling import scale_data
from keepers_studies.specification import DataChoice, StudySpec
from keepers_studies.store import STORE, Store, claim_folder
from keepers_studies.worker import run_task

Prepared = dict[str, tuple[Any, Any]]
"""Values and classes of every table, by its name; joblib shares large ones between processes."""


@dataclass(frozen=True)
class StudyRun:
    """A study that has run: its plan and the outcomes."""

    spec: StudySpec
    tables: dict[str, TableFacts]
    entries: list[Entry]
    outcomes: dict[str, Outcome]
    runs: list[dict[str, Any]]

    def outcome(self, entry: Entry) -> Outcome:
        """The outcome of an entry; one with status "missing" if it has not run."""
        return self.outcomes.get(entry.task.key, NOT_RUN)


def run_study(
    spec: StudySpec,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: Callable[[int, int, str], None] = lambda done, total, last: None,
    retry_unsuccessful: bool = False,
    earlier: Path | None = None,
    run_missing: bool = True,
) -> StudyRun:
    """Run what is missing of the study in ``folder`` and return all of it.

    Results are kept in ``folder/results.sqlite``: an interrupted run resumes with the tasks that
    have no result yet. A task that failed or ran out of time has a result too, and runs again only
    with ``retry_unsuccessful``. Without ``run_missing`` nothing is run.
    """
    claim_folder(folder)
    with Store(folder / STORE) as store, store.only_one_run():
        prepared: Prepared = {}
        tables: dict[str, TableFacts] = {}
        for choice in spec.data:
            X, classes = _read(choice, spec)
            scaled = scale_data(transform_values(X, choice.transform), choice.scaling)
            prepared[choice.title] = scaled, classes
            # Logarithms differ between CPUs in the last digit: known by the values before.
            tables[choice.title] = _facts(X if choice.transform else scaled, classes)
        entries = plan_tasks(spec, tables)
        if earlier is not None:
            store.add_results_of(earlier)
        if retry_unsuccessful:
            store.delete_unsuccessful()
        known = store.outcomes()
        # Rows without a grid run first, so an interrupted run has them for every table.
        in_order = sorted(entries, key=lambda e: {"grid": 1, "growth": 2}.get(e.role, 0))
        wanted = {entry.task.key: entry.task for entry in in_order}
        missing = [task for key, task in wanted.items() if key not in known]
        total = len(wanted)
        done = total - len(missing)
        if not run_missing:
            missing = []
        if missing:
            store.add_run({**environment_facts(), "seed": spec.seed, "jobs": n_jobs})
        on_progress(done, total, "")
        for task, outcome in _run_all(missing, n_jobs, prepared, spec):
            store.add(task, outcome)
            done += 1
            on_progress(done, total, describe(task))
        return StudyRun(spec, tables, entries, store.outcomes(), store.runs())


def transform_values(X: Any, transform: str) -> Any:
    """Return X in the form in which such values are usually compared.

    "log2": the logarithm of raw microarray values, those below 16 (noise) set to 16. "log-counts":
    log(1 + x) of rows scaled to the same total; a sparse table stays sparse.
    """
    if transform == "log2":
        return np.log2(np.maximum(X, 16.0))
    if transform == "log-counts":
        totals = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        filled = totals > 0
        mean = totals[filled].mean() if filled.any() else 1.0
        factors = np.where(filled, mean / np.where(filled, totals, 1.0), 1.0).astype(X.dtype)
        return np.log1p(sp.diags(factors) @ X if sp.issparse(X) else X * factors[:, np.newaxis])
    return X


def describe(task: FitTask) -> str:
    """A task in a few words."""
    settings = ", ".join(f"{name}={value}" for name, value in task.params.items())
    return f"{without_version(task.method)}({settings}) on {task.data}"


def _run_all(
    tasks: Sequence[FitTask], n_jobs: int, prepared: Prepared, spec: StudySpec
) -> Iterator[tuple[FitTask, Outcome]]:
    """Yield (task, outcome) as they finish; a worker that dies loses no other task."""

    def submit(
        tasks: Sequence[FitTask], started: dict[str, FitTask]
    ) -> Iterator[tuple[FitTask, Outcome]]:
        def calls() -> Iterator[Any]:
            for task in tasks:
                started[task.key] = task
                is_timed = task.fingerprint == SYNTHETIC
                table = (None, None) if is_timed else prepared[task.data]
                limit = (is_timed and spec.growth and spec.growth.time_limit) or spec.time_limit
                yield joblib.delayed(run_task)(task, *table, limit, os.getpid())

        # At least two workers: with one, joblib would run the task in this process.
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            yield from joblib.Parallel(
                max(2, n_jobs), return_as="generator_unordered", pre_dispatch=n_jobs, batch_size=1
            )(calls())

    waiting = list(tasks)
    while waiting:
        returned: set[str] = set()
        started: dict[str, FitTask] = {}
        try:
            for task, outcome in submit(waiting, started):
                returned.add(task.key)
                yield task, outcome
        except BrokenProcessPool:
            for task in [t for key, t in started.items() if key not in returned]:
                returned.add(task.key)
                try:  # alone, to find out which of them it was
                    yield next(submit([task], {}))
                except BrokenProcessPool:
                    reason = "its process was killed, most likely because memory ran out"
                    yield task, Outcome("killed", reason)
        waiting = [task for task in waiting if task.key not in returned]


def _read(choice: DataChoice, spec: StudySpec) -> tuple[Any, Any]:
    """Values and classes of a table, cut to size."""
    entry = entry_named(choice.source)
    source = choice.source if entry is None else find(entry)
    table = open_table(source, labels=choice.labels)
    if table.labels is None:
        raise DataError(
            f"{choice.title} has no classes to judge a clustering against. Name the column that "
            "holds them (labels)."
        )
    X, labels = table.values, table.labels.astype(str)
    if spec.max_samples is not None and len(labels) > spec.max_samples:
        drawn = np.random.default_rng(spec.seed).permutation(len(labels))[: spec.max_samples]
        X, labels = X[np.sort(drawn)], labels[np.sort(drawn)]
    classes = np.unique(labels, return_inverse=True)[1]
    if classes.max() == 0:
        raise DataError(f"{choice.title} has one class only; a clustering needs two or more.")
    return X, classes


def _facts(X: Any, classes: Any) -> TableFacts:
    digest = hashlib.sha256(str(X.shape).encode())
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    for part in (*parts, classes):
        digest.update(np.ascontiguousarray(part).data)
    n_samples, n_features = X.shape
    n_classes = int(classes.max()) + 1
    return TableFacts(n_samples, n_features, n_classes, digest.hexdigest()[:24])


def environment_facts() -> dict[str, Any]:
    """Versions and hardware that results depend on; nothing that identifies a person."""
    versions = package_versions()
    return {
        "python": versions.pop("python"),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": joblib.cpu_count(),
        "versions": versions,
        "commit": _commit(),
    }


def _cpu() -> str:
    facts = Path("/proc/cpuinfo")
    text = facts.read_text(encoding="utf-8") if facts.is_file() else ""
    named = re.search(r"model name\s*: *(.*)", text)
    return named[1] if named else platform.processor() or "unknown"


def _commit() -> str | None:
    """The commit of the sources, if they are a checkout."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty= with changes"]
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
