"""What a worker process does with one task: load, fit, cluster, and always return an outcome.

A selection is scored as in the paper: k-means on the kept columns, repeated with the same seeds for
every method, into as many clusters as there are classes, and compared with the classes. A failure
is an outcome, and so is running past the time limit: a timer interrupts the fit (on systems without
such timers the limit is not enforced).

Times and the limit are of the processor, with one BLAS thread: what else a machine does would
lengthen times by the clock.
"""

import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans

from keepers._protocols import FloatArray, IndexArray
from keepers.data.replacing import describe_os_error
from keepers.exceptions import KeepersError, KeepersWarning
from keepers.methods import find_method
from keepers.metrics import clustering_accuracy, normalized_mutual_information
from keepers.studies.plan import (
    FitTask,
    GrowthTask,
    Outcome,
    ranks_anew,
    resolve_params,
    without_version,
)
from keepers.studies.repeated_kmeans import repeated_kmeans
from keepers.studies.store import make_folder
from keepers.studies.study_metrics import find_metric
from keepers.tuning.stability_index import measure_stability

N_CLUSTERS = 5
LONG_FIT = 2.0
DENSE_BYTES = 1 << 30  # a sparse table that is not larger than this may be made dense
_PREPARED = re.compile(r"[0-9a-f]{24}(\.classes)?\.np[yz]")


class _TimeLimitError(BaseException):
    """Raised by the timer; not an Exception, so that no handler on the way swallows it."""


def run_task(
    task: FitTask | GrowthTask, data_folder: Path, time_limit: float, runner: int
) -> Outcome:
    """Run a task for the process ``runner``; every error becomes the outcome."""
    if os.getpid() != runner:
        _exit_with(runner)
    began = time.perf_counter()
    time_limit *= _n_fits(task)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with _limit(time_limit):
                outcome = (
                    _time_fit(task)
                    if isinstance(task, GrowthTask)
                    else _fit_and_score(task, data_folder)
                )
        except _TimeLimitError:
            outcome = Outcome("timeout", f"ran past the limit of {time_limit:g} s")
        except MemoryError:
            outcome = Outcome("failed", "not enough memory")
        except Exception as error:
            outcome = Outcome("failed", f"{type(error).__name__}: {error}")
    if outcome.status != "ok":
        outcome = replace(outcome, fit_seconds=time.perf_counter() - began)
    messages = tuple(sorted({f"{w.category.__name__}: {w.message}" for w in caught}))
    return replace(outcome, warnings=messages)


def _n_fits(task: FitTask | GrowthTask) -> int:
    """How many fits a task stands for; each would have had the time limit for itself."""
    if isinstance(task, GrowthTask):
        return 1
    method = find_method(without_version(task.method)).load()
    return len(task.ks) if method.fits_each_together else 1


def _fit_and_score(task: FitTask, data_folder: Path) -> Outcome:
    X, classes = load_prepared(data_folder, task.fingerprint)
    unfitted = _selector(task, max(task.ks), len(np.unique(classes)))
    X = _as_accepted(unfitted, X)
    began = time.thread_time()
    if ranks_anew(unfitted):
        fits = unfitted.fit_each(X, task.ks)
        tops = {k: fit.top(k).indices for k, fit in zip(task.ks, fits, strict=True)}
        selector = fits[-1]
    else:
        selector = unfitted.fit(X)
        order = selector.top(max(task.ks)).indices
        tops = {k: order[:k] for k in task.ks}
    fit_seconds = time.thread_time() - began
    kept = {k: np.sort(top).tobytes() for k, top in tops.items()}
    judgements = [
        _judged(data_folder, task.fingerprint, kept[k], task.repeats, task.seed)
        for k in (task.ks if task.repeats else ())
    ]
    further = _further_measures(task, data_folder, kept, X, unfitted)
    n_iter = getattr(selector, "n_iter_", None)
    return Outcome(
        "ok",
        fit_seconds=fit_seconds,
        kmeans_seconds=sum(judgement.seconds for judgement in judgements),
        judgements=tuple(
            {"n_features": j.n_features, "acc": j.acc, "nmi": j.nmi, **further[j.n_features]}
            for j in judgements
        ),
        objective=_history(selector),
        n_iter=None if n_iter is None else int(np.max(n_iter)),
        top=tuple(int(index) for index in tops[max(task.ks)]),
    )


def _as_accepted(selector: Any, X: Any) -> Any:
    """X, dense for a method that takes no sparse table, where memory allows it."""
    refuses = sp.issparse(X) and selector.why_not_sparse is not None
    return X.toarray() if refuses and 8 * X.shape[0] * X.shape[1] <= DENSE_BYTES else X


def _further_measures(
    task: FitTask, data_folder: Path, kept: Mapping[int, bytes], X: Any, selector: Any
) -> dict[int, dict[str, list[float]]]:
    """For each k the metrics that the task asks for at it, and the agreement of two halves."""
    found: dict[int, dict[str, list[float]]] = {k: {} for k in task.ks}
    for name, target, ks in task.metrics:
        for k in ks:
            found[k][name] = _measured(data_folder, task.fingerprint, target, kept[k], task.seed)
    try:
        for k, value in _agreement_of_halves(selector, X, task).items():
            found[k]["stability"] = [value]
    except KeepersError as error:  # half of the samples may be too few for a method
        warnings.warn(f"No stability: {error}", KeepersWarning, stacklevel=1)
    return found


# Settings and methods often keep the same columns: what was found of them is kept too.
@lru_cache(maxsize=10_000)
def _judged(
    data_folder: Path, fingerprint: str, columns: bytes, n_repeats: int, seed: int
) -> "Judgement":
    """ACC and NMI of columns, given by the bytes of their sorted indices."""
    X, classes = load_prepared(data_folder, fingerprint)
    indices = np.frombuffer(columns, dtype=np.intp)
    return judge_columns(X, classes, indices, n_repeats=n_repeats, seed=seed)


@lru_cache(maxsize=10_000)
def _measured(
    data_folder: Path, fingerprint: str, target: str, columns: bytes, seed: int
) -> list[float]:
    """A further metric of columns."""
    X, classes = load_prepared(data_folder, fingerprint)
    metric = find_metric(without_version(target))
    values = metric(_kept(X, np.frombuffer(columns, dtype=np.intp)), classes, seed)
    return [float(value) for value in np.atleast_1d(values)]


def _agreement_of_halves(selector: Any, X: Any, task: FitTask) -> dict[int, float]:
    """How much the sets kept of two halves of the samples agree beyond chance, for each k."""
    if not task.halves:
        return {}
    order = np.random.default_rng(task.seed).permutation(X.shape[0])
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    fits = [clone(selector).fit_each(X[rows], task.halves) for rows in halves]
    agreement = {}
    for k, pair in zip(task.halves, zip(*fits, strict=True), strict=True):
        kept = np.array([fit.get_support() for fit in pair])
        index = measure_stability(kept)
        if index.why_undefined is None:  # all features are kept, whatever the samples
            agreement[k] = float(index)
    return agreement


def _kept(X: Any, columns: IndexArray) -> Any:
    """Some columns, dense where they are few: their products are quicker, and metrics simpler."""
    kept = X[:, np.sort(columns)]
    return kept.toarray() if sp.issparse(kept) and len(columns) < X.shape[1] else kept


@dataclass(frozen=True)
class Judgement:
    """ACC and NMI of each repeat of k-means on one set of columns."""

    n_features: int
    acc: tuple[float, ...]
    nmi: tuple[float, ...]
    seconds: float


def judge_columns(
    X: Any, classes: NDArray[Any], columns: IndexArray, *, n_repeats: int, seed: int
) -> Judgement:
    """Cluster X[:, columns] ``n_repeats`` times, with seeds ``seed``, ``seed`` + 1, ..."""
    began = time.thread_time()
    kept = _kept(X, columns)
    n_clusters = len(np.unique(classes))
    clusterings = _cluster(kept, n_clusters, [seed + repeat for repeat in range(n_repeats)])
    return Judgement(
        n_features=len(columns),
        acc=tuple(clustering_accuracy(classes, found) for found in clusterings),
        nmi=tuple(normalized_mutual_information(classes, found) for found in clusterings),
        seconds=time.thread_time() - began,
    )


def _cluster(kept: Any, n_clusters: int, seeds: list[int]) -> Iterable[Any]:
    """Labels of one k-means clustering for each seed."""
    if sp.issparse(kept):  # all columns of a sparse table, which may not fit in memory otherwise
        return [KMeans(n_clusters, n_init=1, random_state=s).fit_predict(kept) for s in seeds]
    return repeated_kmeans(kept, n_clusters, seeds) if seeds else ()


def _selector(task: FitTask | GrowthTask, k: int, n_classes: int) -> Any:
    selector_class = find_method(without_version(task.method)).load()
    params = resolve_params(task.params, n_classes)
    if "random_state" in selector_class().get_params():
        params.setdefault("random_state", task.seed)
    return selector_class(k, **params)


def _history(selector: Any) -> tuple[float, ...]:
    values = np.atleast_1d(getattr(selector, "objective_", ()))
    return tuple(float(value) for value in values)


def _time_fit(task: GrowthTask) -> Outcome:
    """Time fits on clusters in noise: of a tiny table, and of the one asked for."""
    selector = _selector(task, 10, N_CLUSTERS)
    tiny = _synthetic(60, 30, task.seed)
    selector.fit(tiny)  # to warm up
    fixed = _median_seconds(selector, tiny)
    X = _synthetic(task.n_samples, task.n_features, task.seed)
    return Outcome("ok", fit_seconds=_median_seconds(selector, X), fixed_seconds=fixed)


def _median_seconds(selector: Any, X: FloatArray) -> float:
    """Median of three fits, or of as many as end within two seconds."""
    taken: list[float] = []
    while len(taken) < 3 and sum(taken) < LONG_FIT:
        began = time.thread_time()
        selector.fit(X)
        taken.append(time.thread_time() - began)
    return float(np.median(taken))


def _synthetic(n_samples: int, n_features: int, seed: int) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((N_CLUSTERS, n_features))
    members = random.integers(N_CLUSTERS, size=n_samples)
    return centres[members] + random.standard_normal((n_samples, n_features))


def save_prepared(folder: Path, fingerprint: str, X: Any, classes: NDArray[Any]) -> None:
    """Write a table where the workers read it."""
    make_folder(folder)
    try:
        if sp.issparse(X):
            sp.save_npz(folder / f"{fingerprint}.npz", sp.csr_matrix(X))
        else:
            np.save(folder / f"{fingerprint}.npy", X)
        np.save(folder / f"{fingerprint}.classes.npy", classes)
    except OSError as error:
        way_out = "Free some space or choose another folder, and run the same command again."
        raise KeepersError(describe_os_error(folder, error, way_out)) from error


def remove_prepared(folder: Path) -> None:
    """Remove what `save_prepared` wrote, in killed runs too, and nothing else."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _PREPARED.fullmatch(path.name):
                path.unlink(missing_ok=True)
        folder.rmdir()


@lru_cache(maxsize=2)
def load_prepared(folder: Path, fingerprint: str) -> tuple[Any, NDArray[Any]]:
    """The table and its classes; dense values are memory-mapped and shared between workers."""
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

    is_running = True

    def interrupt(*_: object) -> None:
        if is_running:
            raise _TimeLimitError

    # By the clock as well, for a fit that waits for something that never comes.
    timers = ((signal.ITIMER_PROF, signal.SIGPROF, 1), (signal.ITIMER_REAL, signal.SIGALRM, 20))
    before = {kind: signal.signal(kind, interrupt) for _, kind, _ in timers}
    for timer, _, times in timers:
        # Again and again: an exception raised inside a finalizer would be lost.
        signal.setitimer(timer, times * seconds, 1.0)
    try:
        yield
    finally:
        is_running = False
        for timer, kind, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(kind, before[kind])


@lru_cache(maxsize=1)
def _exit_with(runner: int) -> None:
    """End this worker when the process that started it is gone."""

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
