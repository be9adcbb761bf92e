"""Run what is missing of a study: in parallel, each result kept as it comes, resumable."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from keepers.data.opening import open_table
from keepers.data.scaling import scale_samples
from keepers.exceptions import DataError
from keepers.studies.environment import environment_facts
from keepers.studies.method_versions import without_version
from keepers.studies.plan import Entry, TableFacts, plan_growth, plan_tasks
from keepers.studies.results_folder import STORE, claim_folder
from keepers.studies.specification import DataChoice, StudySpec
from keepers.studies.store import Store
from keepers.studies.tasks import Growth, Outcome, Task
from keepers.studies.time_left import TimeLeft
from keepers.studies.worker import do, remove_prepared, save_prepared

__all__ = ["Progress", "StudyRun", "run_study"]

AnyTask = Task | Growth


@dataclass(frozen=True)
class Progress:
    """How far a study is, after each result."""

    done: int
    total: int
    seconds_left: float | None
    last: str
    """The task that has just ended."""
    outcome: Outcome | None


@dataclass(frozen=True)
class StudyRun:
    """A study that has been carried out: its plan and what came of it."""

    spec: StudySpec
    tables: dict[str, TableFacts]
    entries: list[Entry]
    growth: list[Growth]
    outcomes: dict[str, Outcome]
    runs: list[dict[str, Any]]


def run_study(
    spec: StudySpec,
    folder: Path,
    *,
    n_jobs: int = 1,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    retry_unsuccessful: bool = False,
) -> StudyRun:
    """Carry out what is missing of the study in ``folder`` and return all of it.

    The folder must be new, empty, or one in which a study has run before. Results stay in
    ``folder/results.sqlite``. Interrupt it at any moment; the next call goes on
    with the tasks that have no result yet. A task that fails or runs out of time has a result
    that says so, and is tried again only with ``retry_unsuccessful``.
    """
    claim_folder(folder, [choice.source for choice in spec.data])
    with Store(folder / STORE) as store, store.only_one_run():
        prepared = folder / "prepared"
        tables = {choice.title: _prepare(choice, prepared) for choice in spec.data}
        entries = plan_tasks(spec, tables)
        growth = plan_growth(spec)
        if retry_unsuccessful:
            store.forget_unsuccessful()
        known = store.outcomes()
        wanted, timings = _unique(entry.task for entry in entries), _unique(growth)
        todo = [task for task in wanted if task.key not in known]
        timed = [task for task in timings if task.key not in known]
        if todo or timed:
            store.note_run({**environment_facts(), "seed": spec.seed, "jobs": n_jobs})
        n_done = len(wanted) + len(timings) - len(todo) - len(timed)
        keep = _Keeper(store, todo + timed, n_done, n_jobs, on_progress)
        work = _Work(prepared, spec.time_limit)
        for task, outcome in work.parallel(todo, n_jobs):
            keep(task, outcome)
        for task, outcome in work.parallel(timed, 1):  # alone, so that times mean something
            keep(task, outcome)
        remove_prepared(prepared)
        return StudyRun(spec, tables, entries, growth, store.outcomes(), store.runs())


class _Keeper:
    """Stores each outcome and tells how far the study is."""

    def __init__(
        self,
        store: Store,
        missing: list[AnyTask],
        known: int,
        n_jobs: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._store = store
        self._total = known + len(missing)
        self._done = known
        self._time_left = TimeLeft(map(_kind, missing), n_jobs)
        self._tell = on_progress
        self._tell(Progress(known, self._total, None, "", None))

    def __call__(self, task: AnyTask, outcome: Outcome) -> None:
        self._store.add(task, outcome)
        self._done += 1
        left = self._time_left.after(_kind(task), outcome.fit_seconds + outcome.kmeans_seconds)
        self._tell(Progress(self._done, self._total, left, describe(task), outcome))


def _kind(task: AnyTask) -> tuple[str | int, ...]:
    if isinstance(task, Task):
        return (task.method, task.data, max(task.ks))
    return ("growth", task.method, task.n_samples, task.n_features)


def describe(task: AnyTask) -> str:
    """A task in a few words."""
    where = task.data if isinstance(task, Task) else f"{task.n_samples} x {task.n_features}"
    settings = ", ".join(f"{name}={value}" for name, value in task.params.items())
    return f"{without_version(task.method)}({settings}) on {where}"


@dataclass(frozen=True)
class _Work:
    """Hands tasks to worker processes with one BLAS thread each."""

    prepared: Path
    time_limit: float

    def parallel(self, tasks: Sequence[AnyTask], n_jobs: int) -> Iterator[tuple[AnyTask, Outcome]]:
        """Yield (task, outcome) as they come; a worker that dies takes no other task with it."""
        waiting = list(tasks)
        while waiting:
            returned: set[str] = set()
            handed_out: dict[str, AnyTask] = {}
            try:
                for task, outcome in self._pool(waiting, n_jobs, handed_out):
                    returned.add(task.key)
                    yield task, outcome
            except BrokenProcessPool:
                for task in [t for key, t in handed_out.items() if key not in returned]:
                    returned.add(task.key)
                    yield task, self._alone(task)
            waiting = [task for task in waiting if task.key not in returned]

    def _pool(
        self, tasks: Iterable[AnyTask], n_jobs: int, handed_out: dict[str, AnyTask]
    ) -> Iterator[tuple[AnyTask, Outcome]]:
        def calls() -> Iterator[Any]:
            for task in tasks:
                handed_out[task.key] = task
                yield joblib.delayed(_do_and_tell)(
                    task, self.prepared, self.time_limit, os.getpid()
                )

        # Two workers at least: with one, joblib would work in this process.
        with joblib.parallel_config("loky", inner_max_num_threads=1):
            pool = joblib.Parallel(
                n_jobs=max(2, n_jobs),
                return_as="generator_unordered",
                pre_dispatch=n_jobs,
                batch_size=1,
            )
            yield from pool(calls())

    def _alone(self, task: AnyTask) -> Outcome:
        """A task that was in hand when a worker died, once more and by itself."""
        try:
            return next(self._pool([task], 1, {}))[1]
        except BrokenProcessPool:
            return Outcome("killed", "its process was killed, most likely for want of memory")


def _do_and_tell(
    task: AnyTask, prepared: Path, time_limit: float, runner: int
) -> tuple[AnyTask, Outcome]:
    return task, do(task, prepared, time_limit, runner)


def _unique(tasks: Iterable[Any]) -> list[Any]:
    return list({task.key: task for task in tasks}.values())


def _prepare(choice: DataChoice, folder: Path) -> TableFacts:
    """Read and scale a table, and put it where the workers find it."""
    table = open_table(
        choice.source, labels=choice.labels, identifier=choice.identifier, drop=choice.drop
    )
    if table.labels is None:
        raise DataError(
            f"{choice.title} has no classes to judge a clustering against. Name the column that "
            "holds them (labels)."
        )
    X = scale_samples(table.X, choice.scaling)
    classes = np.unique(table.labels.astype(str), return_inverse=True)[1]
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
