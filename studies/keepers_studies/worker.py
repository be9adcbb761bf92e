"""Run one task in a worker process: fit, cluster, and always return an outcome.

A selection is scored as in the paper: k-means on the kept columns, repeated with the same seeds for
every method, into as many clusters as there are classes, and compared with the classes. A failure
is an outcome, and so is running past the time limit: a timer interrupts the fit (on systems without
such timers the limit is not enforced). Times and the limit are of the processor, with one BLAS
thread: other work of the machine does not lengthen them.
"""

import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans

from keepers.catalogue import find_method
from keepers.exceptions import KeepersError, KeepersWarning
from keepers.metrics import clustering_accuracy, normalized_mutual_information
from keepers.tuning.stability import measure_stability
from keepers_studies.plan import (
    SYNTHETIC,
    FitTask,
    Outcome,
    ranks_anew,
    resolve_params,
    without_version,
)

N_CLUSTERS = 5  # in the tables on which fits are timed
N_FOLDS = 5
DENSE_BYTES = 1 << 30  # a sparse table that is not larger than this may be made dense

_FOUND: dict[tuple[Any, ...], Any] = {}
"""Scores of columns: settings and methods often keep the same ones."""


class _TimeLimitError(BaseException):
    """Raised by the timer; a BaseException, which no handler on the way swallows."""


def run_task(
    task: FitTask, X: Any, classes: Any, time_limit: float, runner: int
) -> tuple[FitTask, Outcome]:
    """Run a task for the process ``runner``; every error becomes the outcome."""
    if os.getpid() != runner:
        _exit_with(runner)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if task.fingerprint == SYNTHETIC:
                X, classes = _made_up(task.data, task.seed)
            method = find_method(without_version(task.method)).load()
            # Fits that are made together would each have had the limit for itself.
            time_limit *= len(task.ks) if method.fits_each_together else 1
            with _limit(time_limit):
                outcome = _fit_and_score(task, X, classes)
        except _TimeLimitError:
            outcome = Outcome("timeout", f"ran past the limit of {time_limit:g} s")
        except Exception as error:
            outcome = Outcome("failed", f"{type(error).__name__}: {error}")
    if outcome.status != "ok":
        outcome = replace(outcome, fit_seconds=time.perf_counter() - began)
    messages = tuple(sorted({f"{w.category.__name__}: {w.message}" for w in caught}))
    return task, replace(outcome, warnings=messages)


def _fit_and_score(task: FitTask, X: Any, classes: NDArray[Any]) -> Outcome:
    unfitted = _selector(task, max(task.ks), len(np.unique(classes)))
    refuses = sp.issparse(X) and unfitted.why_not_sparse is not None
    table = X.toarray() if refuses and 8 * X.shape[0] * X.shape[1] <= DENSE_BYTES else X
    began = time.thread_time()
    if ranks_anew(unfitted):
        fits = _fit_each(unfitted, table, task.ks)
        tops = {k: fit.top(k).indices for k, fit in zip(task.ks, fits, strict=True)}
        selector = fits[-1]
    else:
        selector = unfitted.fit(table)
        order = selector.top(max(task.ks)).indices
        tops = {k: order[:k] for k in task.ks}
    fit_seconds = time.thread_time() - began
    stability = _agreement_of_halves(unfitted, table, task)
    judgements: list[dict[str, Any]] = []
    kmeans_seconds = 0.0
    for k in task.ks if task.repeats else ():
        columns = np.sort(tops[k])
        place = (task.fingerprint, columns.tobytes(), task.repeats, task.seed)
        if place not in _FOUND:
            repeated = {"n_repeats": task.repeats, "seed": task.seed}
            _FOUND[place] = judge_columns(X, classes, columns, **repeated)
        judged = _FOUND[place]
        kmeans_seconds += judged.seconds
        judgements.append({"n_features": k, "acc": judged.acc, "nmi": judged.nmi})
        if any(k in ks for _, _, ks in task.metrics):
            judgements[-1]["forest"] = [forest_accuracy(_kept(X, columns), classes, task.seed)]
        if k in stability:
            judgements[-1]["stability"] = [stability[k]]
    n_iter = getattr(selector, "n_iter_", None)
    return Outcome(
        "ok",
        fit_seconds=fit_seconds,
        kmeans_seconds=kmeans_seconds,
        judgements=tuple(judgements),
        objective=tuple(float(v) for v in np.atleast_1d(getattr(selector, "objective_", ()))),
        n_iter=None if n_iter is None else int(np.max(n_iter)),
        top=tuple(int(index) for index in tops[max(task.ks)]),
    )


def _fit_each(selector: Any, X: Any, ks: Sequence[int]) -> list[Any]:
    """Copies of a selector, one fitted for each number of features."""
    if selector.fits_each_together:
        return list(selector.fit_each(X, ks))
    return [clone(selector).set_params(n_features_to_select=k).fit(X) for k in ks]


def _agreement_of_halves(selector: Any, X: Any, task: FitTask) -> dict[int, float]:
    """Agreement beyond chance of the choices on two halves of the samples, for each k."""
    if not task.halves:
        return {}
    order = np.random.default_rng(task.seed).permutation(X.shape[0])
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    try:
        fits = [_fit_each(selector, X[rows], task.halves) for rows in halves]
    except KeepersError as error:  # half of the samples may be too few for a method
        warnings.warn(f"No stability: {error}", KeepersWarning, stacklevel=1)
        return {}
    pairs = zip(task.halves, zip(*fits, strict=True), strict=True)
    found = {k: measure_stability(np.array([f.get_support() for f in pair])) for k, pair in pairs}
    # Undefined where all features are kept, whatever the samples.
    return {k: float(index) for k, index in found.items() if index.why_undefined is None}


def forest_accuracy(X: Any, classes: NDArray[Any], seed: int) -> float:
    """Accuracy of a random forest of 100 trees, mean over five stratified folds."""
    from sklearn.ensemble import RandomForestClassifier  # slow to import, and only needed here
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    n_folds = max(2, min(N_FOLDS, int(np.bincount(classes).max())))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    forest = RandomForestClassifier(100, random_state=seed)
    with warnings.catch_warnings():  # a class with fewer samples than folds is missing from some
        warnings.filterwarnings("ignore", message="The least populated class")
        return float(cross_val_score(forest, X, classes, cv=folds).mean())


def _kept(X: Any, columns: NDArray[Any]) -> Any:
    """Some columns in the order of the table, dense where they are few: k-means is quicker."""
    kept = X[:, np.sort(columns)]
    return kept.toarray() if sp.issparse(kept) and len(columns) < X.shape[1] else kept


class Judgement(NamedTuple):
    """ACC and NMI of each repeat of k-means on one set of columns."""

    acc: tuple[float, ...]
    nmi: tuple[float, ...]
    seconds: float


def judge_columns(
    X: Any, classes: NDArray[Any], columns: NDArray[Any], *, n_repeats: int, seed: int
) -> Judgement:
    """Cluster X[:, columns] ``n_repeats`` times, with seeds ``seed``, ``seed`` + 1, ..."""
    began = time.thread_time()
    kept, n_clusters = _kept(X, columns), len(np.unique(classes))
    with warnings.catch_warnings():  # fewer distinct samples than clusters
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        clusterings = [
            KMeans(n_clusters, n_init=1, random_state=seed + repeat).fit_predict(kept)
            for repeat in range(n_repeats)
        ]
    return Judgement(
        acc=tuple(clustering_accuracy(classes, found) for found in clusterings),
        nmi=tuple(normalized_mutual_information(classes, found) for found in clusterings),
        seconds=time.thread_time() - began,
    )


def _selector(task: FitTask, k: int, n_classes: int) -> Any:
    selector_class = find_method(without_version(task.method)).load()
    params = resolve_params(task.params, n_classes)
    if "random_state" in selector_class().get_params():
        params.setdefault("random_state", task.seed)
    return selector_class(k, **params)


def _made_up(size: str, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Clusters in noise, of a size given as "samples x features"."""
    n_samples, n_features = map(int, size.split(" x "))
    random = np.random.default_rng(seed)
    members = random.integers(N_CLUSTERS, size=n_samples)
    centres = random.standard_normal((N_CLUSTERS, n_features))
    return centres[members] + random.standard_normal((n_samples, n_features)), members


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    is_main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not is_main or seconds <= 0:
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
