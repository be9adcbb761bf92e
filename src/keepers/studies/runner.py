"""Run what is missing of a study: in parallel, each result stored as it comes, resumable."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from keepers._packages import package_versions
from keepers.data.scaling import scale_samples, transform_values
from keepers.data.table_files import open_table
from keepers.exceptions import DataError
from keepers.studies.plan import (
    NOT_RUN,
    Entry,
    FitTask,
    GrowthTask,
    Outcome,
    TableFacts,
    plan_growth,
    plan_tasks,
    without_version,
)
from keepers.studies.specification import DataChoice, StudySpec
from keepers.studies.store import STORE, Store, claim_folder
from keepers.studies.worker import remove_prepared, run_task, save_prepared

AnyTask = FitTask | GrowthTask
ReportProgress = Callable[[int, int, str], None]
"""Called with the number of finished tasks, the number of all, and the last one in words."""


@dataclass(frozen=True)
class StudyRun:
    """A study that has run: its plan and the outcomes."""

    spec: StudySpec
    tables: dict[str, TableFacts]
    entries: list[Entry]
    growth: list[GrowthTask]
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
    on_progress: ReportProgress = lambda done, total, last: None,
    retry_unsuccessful: bool = False,
    earlier: Path | None = None,
    run_missing: bool = True,
) -> StudyRun:
    """Run what is missing of the study in ``folder`` and return all of it.

    The folder must be new, empty, or one in which a study has run before. Results are kept in
    ``folder/results.sqlite``, so a run that is interrupted resumes with the tasks that have no
    result yet. A task that fails or runs out of time has a result that says so, and runs again
    only with ``retry_unsuccessful``. Results of an ``earlier`` run, in another folder or file, are
    taken over. Without ``run_missing`` nothing is run.
    """
    claim_folder(folder, [choice.source for choice in spec.data])
    with Store(folder / STORE) as store, store.only_one_run():
        prepared = folder / "prepared"
        tables = {choice.title: _prepare(choice, prepared, spec) for choice in spec.data}
        entries = plan_tasks(spec, tables)
        growth = plan_growth(spec)
        if earlier is not None:
            store.add_results_of(earlier)
        if retry_unsuccessful:
            store.delete_unsuccessful()
        known = store.outcomes()
        # Of a run that is cut short, the rows that need no grid are there first, on every table.
        in_order = sorted(entries, key=lambda entry: entry.role == "grid")
        wanted = _unique(entry.task for entry in in_order), _unique(growth)
        fits, timings = ([task for task in tasks if task.key not in known] for tasks in wanted)
        total = sum(map(len, wanted))
        done = total - len(fits) - len(timings)
        if not run_missing:
            fits, timings = [], []
        if fits or timings:
            store.add_run({**environment_facts(), "seed": spec.seed, "jobs": n_jobs})
        on_progress(done, total, "")
        pool = _Pool(prepared, spec.time_limit)
        for task, outcome in chain(pool.run(fits, n_jobs), _time_fits(spec, timings, known)):
            store.add(task, outcome)
            done += 1
            on_progress(done, total, describe(task))
        remove_prepared(prepared)
        return StudyRun(spec, tables, entries, growth, store.outcomes(), store.runs())


def _time_fits(
    spec: StudySpec, tasks: Sequence[GrowthTask], known: Mapping[str, Outcome]
) -> Iterator[tuple[AnyTask, Outcome]]:
    """Timed fits one at a time, so that nothing else slows them; none past the limit of a method.

    A method that ran past the limit, or out of memory, is not tried on tables with more samples
    and features.
    """
    limit = (spec.growth and spec.growth.time_limit) or spec.time_limit
    pool = _Pool(Path(), limit)
    outcomes = dict(known)
    ended = [task for task in plan_growth(spec) if outcomes.get(task.key, NOT_RUN).ended_growth]
    for task in tasks:
        smaller = next((before for before in ended if _is_within(before, task)), None)
        if smaller is not None:
            size = f"{smaller.n_samples} x {smaller.n_features}"
            yield task, Outcome("skipped", f"not tried: {size} was past the limit")
            continue
        for timed, outcome in pool.run([task], 1):
            if outcome.ended_growth:
                ended.append(task)
            yield timed, outcome


def _is_within(smaller: GrowthTask, task: GrowthTask) -> bool:
    same = (smaller.method, smaller.params) == (task.method, task.params)
    return same and smaller.n_samples <= task.n_samples and smaller.n_features <= task.n_features


def describe(task: AnyTask) -> str:
    """A task in a few words."""
    where = task.data if isinstance(task, FitTask) else f"{task.n_samples} x {task.n_features}"
    settings = ", ".join(f"{name}={value}" for name, value in task.params.items())
    return f"{without_version(task.method)}({settings}) on {where}"


@dataclass(frozen=True)
class _Pool:
    """Worker processes with one BLAS thread each."""

    prepared: Path
    time_limit: float

    def run(self, tasks: Sequence[AnyTask], n_jobs: int) -> Iterator[tuple[AnyTask, Outcome]]:
        """Yield (task, outcome) as they finish; a worker that dies loses no other task."""
        waiting = list(tasks)
        while waiting:
            returned: set[str] = set()
            started: dict[str, AnyTask] = {}
            try:
                for task, outcome in self._submit(waiting, n_jobs, started):
                    returned.add(task.key)
                    yield task, outcome
            except BrokenProcessPool:
                for task in [t for key, t in started.items() if key not in returned]:
                    returned.add(task.key)
                    yield task, self._run_alone(task)
            waiting = [task for task in waiting if task.key not in returned]

    def _submit(
        self, tasks: Iterable[AnyTask], n_jobs: int, started: dict[str, AnyTask]
    ) -> Iterator[tuple[AnyTask, Outcome]]:
        def calls() -> Iterator[Any]:
            for task in tasks:
                started[task.key] = task
                yield joblib.delayed(_run_task)(task, self.prepared, self.time_limit, os.getpid())

        # At least two workers: with one, joblib would run the task in this process.
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            pool = joblib.Parallel(
                n_jobs=max(2, n_jobs),
                return_as="generator_unordered",
                pre_dispatch=n_jobs,
                batch_size=1,
            )
            yield from pool(calls())

    def _run_alone(self, task: AnyTask) -> Outcome:
        """Run a task again that was in progress when a worker died."""
        try:
            return next(self._submit([task], 1, {}))[1]
        except BrokenProcessPool:
            return Outcome("killed", "its process was killed, most likely because memory ran out")


def _run_task(
    task: AnyTask, prepared: Path, time_limit: float, runner: int
) -> tuple[AnyTask, Outcome]:
    return task, run_task(task, prepared, time_limit, runner)


def _unique(tasks: Iterable[Any]) -> list[Any]:
    return list({task.key: task for task in tasks}.values())


def _prepare(choice: DataChoice, folder: Path, spec: StudySpec) -> TableFacts:
    """Read, cut to size and scale a table, and write it where the workers find it."""
    table = open_table(
        choice.source, labels=choice.labels, identifier=choice.identifier, drop=choice.drop
    )
    if table.labels is None:
        raise DataError(
            f"{choice.title} has no classes to judge a clustering against. Name the column that "
            "holds them (labels)."
        )
    X, labels = table.X, table.labels.astype(str)
    if spec.max_samples is not None and len(labels) > spec.max_samples:
        drawn = np.random.default_rng(spec.seed).permutation(len(labels))[: spec.max_samples]
        X, labels = X[np.sort(drawn)], labels[np.sort(drawn)]
    X = scale_samples(transform_values(X, choice.transform), choice.scaling)
    classes = np.unique(labels, return_inverse=True)[1]
    if classes.max() == 0:
        raise DataError(f"{choice.title} has one class only; a clustering needs two or more.")
    fingerprint = _fingerprint(X, classes)
    save_prepared(folder, fingerprint, X, classes)
    n_samples, n_features = X.shape
    return TableFacts(n_samples, n_features, int(classes.max()) + 1, fingerprint)


def _fingerprint(X: Any, classes: Any) -> str:
    digest = hashlib.sha256(str(X.shape).encode())
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    for part in (*parts, classes):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()[:24]


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
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else "unknown"


def _commit() -> str | None:
    """The commit of the sources, if they are a checkout."""
    here = Path(__file__).resolve().parent
    if not (here.parents[2] / ".git").exists():
        return None
    try:
        changed = _git("status", "--porcelain", cwd=here)
        return _git("rev-parse", "--short=12", "HEAD", cwd=here) + (" with changes" * bool(changed))
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str, cwd: Path) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
