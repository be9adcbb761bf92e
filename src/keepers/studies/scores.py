"""From outcomes to scores: every fit, the best of each grid, the default, means over k.

"Tuned" is what the paper does: for every data set, method and k the grid point with the best mean
ACC, which uses the classes. "Default" never uses them.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from keepers.methods import METHODS
from keepers.studies.plan import Entry, Outcome
from keepers.studies.runner import StudyRun
from keepers.studies.specification import COMPARISON, MethodChoice

Measure = Literal["acc", "nmi"]
Over = int | Literal["mean", "max"]
MEASURES: tuple[Measure, Measure] = ("acc", "nmi")

ALL_FEATURES, RANDOM, VARIANCE = "AllFeatures", "RandomScore", "VarianceScore"
BASELINES = tuple(method.class_name for method in METHODS if method.is_baseline)
"""Classes of the baselines, which every method should beat."""

NOT_RUN = Outcome("missing", "not run yet")
_DIGITS = 6


@dataclass(frozen=True)
class Score:
    """ACC and NMI of one method on one data set at one k, or why there is none."""

    data: str
    method: str
    k: int
    status: str
    """"ok", "failed", "timeout", "killed" or "missing"; of several, that of the first failure."""
    reason: str = ""
    acc_mean: float | None = None
    acc_std: float | None = None
    nmi_mean: float | None = None
    nmi_std: float | None = None
    repeats: int = 0
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    """The chosen settings."""
    n_iter: int | None = None
    settings_tried: int = 1
    settings_failed: int = 0

    def mean(self, measure: Measure) -> float | None:
        """Mean of a measure over the repeats."""
        return self.acc_mean if measure == "acc" else self.nmi_mean

    def std(self, measure: Measure) -> float | None:
        """Standard deviation of a measure over the repeats (divided by their number)."""
        return self.acc_std if measure == "acc" else self.nmi_std


@dataclass(frozen=True)
class Comparison:
    """Scores by data set, method and k; names in the order of the specification."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    ks: dict[str, tuple[int, ...]] = field(hash=False)
    """The numbers of features that are scored on each data set."""
    scores: dict[tuple[str, str, int], Score] = field(hash=False)
    whole: frozenset[str] = frozenset()
    """Methods that keep all features: their one score is that of every k."""

    def score(self, data: str, method: str, k: int) -> Score | None:
        """The score at k; None if the study has no such row."""
        if method in self.whole:
            own = [s for (d, m, _), s in self.scores.items() if (d, m) == (data, method)]
            return own[0] if own else None
        return self.scores.get((data, method, k))

    def at(self, data: str, method: str, k: int, measure: Measure) -> float | None:
        """A mean over repeats, or None if there is none."""
        found = self.score(data, method, k)
        return None if found is None else found.mean(measure)

    def curve(self, data: str, method: str, measure: Measure) -> dict[int, float]:
        """The measure by k, without the k that have no score."""
        values = {k: self.at(data, method, k, measure) for k in self.ks[data]}
        return {k: value for k, value in values.items() if value is not None}

    def mean_over_k(
        self, data: str, method: str, measure: Measure, *, complete: bool = True
    ) -> float | None:
        """Mean over k; None if a k is missing and ``complete`` is set."""
        curve = self.curve(data, method, measure)
        if not curve or (complete and len(curve) < len(self.ks[data])):
            return None
        return float(np.mean(list(curve.values())))

    def max_over_k(self, data: str, method: str, measure: Measure) -> float | None:
        """Highest value over k."""
        return max(self.curve(data, method, measure).values(), default=None)

    def paired_means(
        self, data: str, first: str, second: str, measure: Measure
    ) -> tuple[float, float] | None:
        """Means of two methods over the k that both have; None if there is no such k."""
        one, two = (self.curve(data, method, measure) for method in (first, second))
        shared = [k for k in self.ks[data] if k in one and k in two]
        if not shared:
            return None
        return float(np.mean([one[k] for k in shared])), float(np.mean([two[k] for k in shared]))


@dataclass(frozen=True)
class Reduced:
    """A data set on which a method has a smaller grid or is skipped."""

    method: str
    data: str
    skipped: bool
    grid: dict[str, list[Any]] = field(hash=False)
    reason: str


def method_choices(run: StudyRun) -> dict[str, MethodChoice]:
    """The methods of the study by title."""
    return {method.title: method for method in run.spec.methods}


def tidy_rows(run: StudyRun) -> list[dict[str, Any]]:
    """One row for each entry and k; a fit that failed or has not run has a row without numbers."""
    rows = [row for entry in run.entries for row in _rows_of(entry, outcome_of(run, entry))]
    place = _order_of(run)
    return sorted(
        rows, key=lambda r: (*place(r), r["role"], r["params"], -1 if r["k"] is None else r["k"])
    )


def tuned_scores(run: StudyRun) -> Comparison:
    """For every data set, method and k the grid point with the best mean ACC.

    Of equal grid points the first counts. Methods without a grid, and baselines, have one point.
    """
    return _compare(run, "grid")


def default_scores(run: StudyRun) -> Comparison:
    """The scores of default settings; methods without such a row are absent."""
    return _compare(run, "default")


def best_per_data(
    comparison: Comparison, measure: Measure, over: Over
) -> dict[str, dict[str, float | None]]:
    """Method x data set: the measure at one k, or its mean or maximum over the k."""

    def cell(data: str, method: str) -> float | None:
        if over == "mean":
            return comparison.mean_over_k(data, method, measure, complete=False)
        if over == "max":
            return comparison.max_over_k(data, method, measure)
        return comparison.at(data, method, over, measure)

    return {
        method: {data: cell(data, method) for data in comparison.data}
        for method in comparison.methods
    }


def sweep_scores(
    run: StudyRun, sweep: str, data: str, measure: Measure
) -> dict[Any, dict[int, float]]:
    """For each value of a sweep the measure against k, best over the sweep's grid at each k."""
    chosen = next(s for s in run.spec.sweeps if s.name == sweep)
    found: dict[Any, dict[int, float]] = {value: {} for value in chosen.values}
    for entry in run.entries:
        if (entry.section, entry.data) != (sweep, data):
            continue
        curve = found[entry.params[chosen.vary]]
        for judged in outcome_of(run, entry).judgements:
            value = float(np.mean(judged[measure]))
            k = int(judged["n_features"])
            curve[k] = max(value, curve.get(k, value))
    return {value: dict(sorted(curve.items())) for value, curve in found.items() if curve}


def reduced_grids(run: StudyRun) -> list[Reduced]:
    """Where the specification reduces the grid of a method, and why."""
    return [
        Reduced(method.title, data, reduction.skip, dict(reduction.grid), reduction.reason)
        for method in run.spec.methods
        for reduction in method.reduced
        for data in reduction.data
    ]


def failures(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those of `tidy_rows` that failed or ran out of time, with all their k in one row."""
    names = ("section", "data", "method", "role", "params", "status", "reason")
    together: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in rows:
        if row["status"] not in ("ok", "missing"):
            together[tuple(row[name] for name in names)] += [] if row["k"] is None else [row["k"]]
    return [dict(zip(names, key, strict=True)) | {"ks": ks} for key, ks in together.items()]


def outcome_of(run: StudyRun, entry: Entry) -> Outcome:
    """The outcome of an entry; one with status "missing" if it has not run."""
    return run.outcomes.get(entry.task.key, NOT_RUN)


def _rows_of(entry: Entry, outcome: Outcome) -> Iterator[dict[str, Any]]:
    judged = {int(j["n_features"]): j for j in outcome.judgements}
    # A fit that is not scored (a sweep that records the objective) has no k.
    for k in entry.task.ks if entry.task.repeats else (None,):
        found = judged.get(k) if k is not None else None
        yield {
            "section": entry.section,
            "data": entry.data,
            "method": entry.method,
            "role": entry.role,
            "params": as_text(entry.params),
            "k": k,
            "acc_mean": _round_statistic(found, "acc", np.mean),
            "acc_std": _round_statistic(found, "acc", np.std),
            "nmi_mean": _round_statistic(found, "nmi", np.mean),
            "nmi_std": _round_statistic(found, "nmi", np.std),
            "repeats": entry.task.repeats,
            "n_iter": outcome.n_iter,
            "status": outcome.status,
            "reason": outcome.reason,
            "fit_seconds": outcome.fit_seconds,
            "kmeans_seconds": outcome.kmeans_seconds,
        }


def as_text(params: Mapping[str, Any]) -> str:
    """Settings as JSON, in the given order."""
    return json.dumps(dict(params), ensure_ascii=False)


def _round_statistic(
    judged: Mapping[str, Any] | None, measure: str, statistic: Callable[[Any], Any]
) -> float | None:
    return None if judged is None else round(float(statistic(judged[measure])), _DIGITS)


def _order_of(run: StudyRun) -> Callable[[dict[str, Any]], tuple[int, int, int]]:
    sections = [COMPARISON, *(sweep.name for sweep in run.spec.sweeps)]
    data = list(run.tables)
    methods = [m.title for m in run.spec.methods] + [sweep.method for sweep in run.spec.sweeps]
    return lambda row: (
        sections.index(row["section"]),
        data.index(row["data"]),
        methods.index(row["method"]),
    )


def _compare(run: StudyRun, role: str) -> Comparison:
    candidates: dict[tuple[str, str, int], list[tuple[Entry, Outcome]]] = defaultdict(list)
    draws: dict[tuple[str, str, int], list[tuple[Entry, Outcome]]] = defaultdict(list)
    for entry in run.entries:
        if entry.section != COMPARISON or entry.role not in (role, "draw"):
            continue
        into = draws if entry.role == "draw" else candidates
        for k in entry.task.ks:
            into[entry.data, entry.method, k].append((entry, outcome_of(run, entry)))
    scores = {place: _best_setting(place, tried) for place, tried in candidates.items()}
    scores |= {place: _pool_draws(place, drawn) for place, drawn in draws.items()}
    choices = method_choices(run)
    present = {method for _, method, _ in scores}
    whole = frozenset(m for m in present if choices[m].name == ALL_FEATURES)
    return Comparison(
        data=tuple(run.tables),
        methods=tuple(title for title in choices if title in present),
        ks={data: _ks_of(run, data) for data in run.tables},
        scores=scores,
        whole=whole,
    )


def _ks_of(run: StudyRun, data: str) -> tuple[int, ...]:
    n_features = run.tables[data].n_features
    return tuple(sorted({k for k in run.spec.ks if k < n_features})) or (n_features,)


def _best_setting(place: tuple[str, str, int], tried: list[tuple[Entry, Outcome]]) -> Score:
    """The grid point with the best mean ACC; the first failure if there is no such point."""
    scores = [_score(place, entry.params, [outcome]) for entry, outcome in tried]
    good = [score for score in scores if score.acc_mean is not None]
    best = max(good, key=lambda score: score.acc_mean or 0.0) if good else scores[0]
    counts = {"settings_tried": len(scores), "settings_failed": len(scores) - len(good)}
    return Score(**{**vars(best), **counts})


def _pool_draws(place: tuple[str, str, int], drawn: list[tuple[Entry, Outcome]]) -> Score:
    """Random rankings: mean and deviation over all draws and repeats."""
    score = _score(place, {}, [outcome for _, outcome in drawn])
    failed = sum(outcome.status != "ok" for _, outcome in drawn)
    return Score(**{**vars(score), "settings_tried": len(drawn), "settings_failed": failed})


def _score(place: tuple[str, str, int], params: dict[str, Any], outcomes: list[Outcome]) -> Score:
    judged = [j for o in outcomes for j in o.judgements if int(j["n_features"]) == place[2]]
    if not judged:
        bad = next((o for o in outcomes if o.status != "ok"), NOT_RUN)
        return Score(*place, bad.status, bad.reason, params=params)
    acc, nmi = (_concatenate(j[measure] for j in judged) for measure in MEASURES)
    return Score(
        *place,
        "ok",
        acc_mean=float(acc.mean()),
        acc_std=float(acc.std()),
        nmi_mean=float(nmi.mean()),
        nmi_std=float(nmi.std()),
        repeats=len(acc),
        params=params,
        n_iter=outcomes[0].n_iter if len(outcomes) == 1 else None,
    )


def _concatenate(parts: Iterable[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
