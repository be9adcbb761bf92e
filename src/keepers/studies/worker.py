"""What a worker process does with one task: load, fit, judge, and always come back with an outcome.

A failure is a result. Running past the time limit is a result too: a timer interrupts the fit (on
systems without such timers the limit is not enforced).
"""

import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers.data.replacing import describe_os_error
from keepers.exceptions import KeepersError
from keepers.studies.atomic import make_folder
from keepers.studies.method_versions import find_selector
from keepers.studies.protocol import judge_columns
from keepers.studies.tasks import Growth, Outcome, Task, resolve_params

__all__ = ["do"]


class _OutOfTimeError(BaseException):
    """Raised by the timer; not an Exception, so that no handler on the way swallows it."""


def do(task: Task | Growth, data_folder: Path, time_limit: float, runner: int) -> Outcome:
    """Carry out a task for the process ``runner``. Whatever happens inside becomes the outcome."""
    if os.getpid() != runner:
        _leave_with(runner)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _limit(time_limit):
                outcome = _time(task) if isinstance(task, Growth) else _judge(task, data_folder)
        except _OutOfTimeError:
            outcome = Outcome("timeout", f"ran past the limit of {time_limit:g} s")
        except MemoryError:
            outcome = Outcome("failed", "not enough memory")
        except Exception as error:
            outcome = Outcome("failed", f"{type(error).__name__}: {error}")
    if outcome.status != "ok":
        outcome = replace(outcome, fit_seconds=time.perf_counter() - began)
    messages = tuple(sorted({f"{w.category.__name__}: {w.message}" for w in caught}))
    return replace(outcome, warnings=messages)


def _judge(task: Task, data_folder: Path) -> Outcome:
    X, classes = load_prepared(data_folder, task.fingerprint)
    unfitted = _selector(task, max(task.ks), len(np.unique(classes)))
    began = time.perf_counter()
    selector = unfitted.fit(X)
    fit_seconds = time.perf_counter() - began
    top = selector.top(max(task.ks)).indices
    judgements = [
        judge_columns(X, classes, top[:k], n_repeats=task.repeats, seed=task.seed)
        for k in (task.ks if task.repeats else ())
    ]
    n_iter = getattr(selector, "n_iter_", None)
    return Outcome(
        "ok",
        fit_seconds=fit_seconds,
        kmeans_seconds=sum(judgement.seconds for judgement in judgements),
        judgements=tuple(
            {"n_features": j.n_features, "acc": j.acc, "nmi": j.nmi} for j in judgements
        ),
        objective=_history(selector),
        n_iter=None if n_iter is None else int(np.max(n_iter)),
        top=tuple(int(index) for index in top),
    )


def _selector(task: Task | Growth, k: int, n_classes: int) -> Any:
    selector_class = find_selector(task.method)
    params = resolve_params(task.params, n_classes)
    if "random_state" in selector_class().get_params():
        params.setdefault("random_state", task.seed)
    return selector_class(k, **params)


def _history(selector: Any) -> tuple[float, ...]:
    values = np.atleast_1d(getattr(selector, "objective_", ()))
    return tuple(float(value) for value in values)


def _time(task: Growth) -> Outcome:
    """One fit on clusters in noise; the first, small fit is off the clock."""
    selector = _selector(task, 10, N_CLUSTERS)
    selector.fit(_made_up(60, 30, task.seed))
    X = _made_up(task.n_samples, task.n_features, task.seed)
    began = time.perf_counter()
    selector.fit(X)
    return Outcome("ok", fit_seconds=time.perf_counter() - began)


N_CLUSTERS = 5


def _made_up(n_samples: int, n_features: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((N_CLUSTERS, n_features))
    members = random.integers(N_CLUSTERS, size=n_samples)
    return centres[members] + random.standard_normal((n_samples, n_features))


def save_prepared(folder: Path, fingerprint: str, X: Any, classes: NDArray[Any]) -> None:
    """Put a table where workers read it; done once a run, before the first task."""
    make_folder(folder)
    try:
        if sp.issparse(X):
            sp.save_npz(folder / f"{fingerprint}.npz", sp.csr_matrix(X))
        else:
            np.save(folder / f"{fingerprint}.npy", X)
        np.save(folder / f"{fingerprint}.classes.npy", classes)
    except OSError as error:
        way_out = "Make room or choose another folder, and run the same command again."
        raise KeepersError(describe_os_error(folder, error, way_out)) from error


_PREPARED = re.compile(r"[0-9a-f]{24}(\.classes)?\.np[yz]")


def remove_prepared(folder: Path) -> None:
    """Remove what `save_prepared` wrote, also in runs that were killed, and nothing else."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _PREPARED.fullmatch(path.name):
                path.unlink(missing_ok=True)
        folder.rmdir()


@lru_cache(maxsize=2)
def load_prepared(folder: Path, fingerprint: str) -> tuple[Any, NDArray[Any]]:
    """The table and its classes; dense values stay on disk and are shared between workers."""
    classes = np.load(folder / f"{fingerprint}.classes.npy", allow_pickle=False)
    dense = folder / f"{fingerprint}.npy"
    if dense.exists():
        return np.load(dense, mmap_mode="r", allow_pickle=False), classes
    return sp.load_npz(folder / f"{fingerprint}.npz"), classes


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    can_limit = hasattr(signal, "setitimer") and (
        threading.current_thread() is threading.main_thread()
    )
    if not can_limit or seconds <= 0:
        yield
        return

    def out_of_time(*_: object) -> None:
        raise _OutOfTimeError

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@lru_cache(maxsize=1)
def _leave_with(runner: int) -> None:
    """End this worker when the process that started it is gone; nobody would read its result."""

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
