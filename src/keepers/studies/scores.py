"""From outcomes to scores: every fit, the best of each grid, the default, means over k.

"Tuned" is what the paper does: for every data set, method and k the grid point with the best mean
ACC, which uses the classes. "Default" never uses them.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from keepers.methods import METHODS
from keepers.studies.plan import NOT_RUN, Entry
from keepers.studies.runner import StudyRun
from keepers.studies.specification import COMPARISON, StudySpec

Measure = Literal["acc", "nmi"]
Over = int | Literal["mean", "max"]
MEASURES: tuple[Measure, Measure] = ("acc", "nmi")
STATISTICS = ("acc_mean", "acc_std", "nmi_mean", "nmi_std")
"""Names of the numbers of every score; deviations are divided by the number of repeats."""
STABILITY = "stability"
"""The measure of how much the sets that two halves of the samples keep agree."""

ALL_FEATURES, RANDOM, VARIANCE = "AllFeatures", "RandomScore", "VarianceScore"
BASELINES = tuple(method.class_name for method in METHODS if method.is_baseline)
"""Classes of the baselines, which every method should beat."""

Place = tuple[str, str, int]
"""Data set, method and k."""


@dataclass(frozen=True)
class Score:
    """ACC and NMI of one method on one data set at one k, or why there is none."""

    data: str
    method: str
    k: int
    status: str
    """"ok", "failed", "timeout", "killed" or "missing"; of several, that of the first failure."""
    reason: str = ""
    numbers: dict[str, float] = field(default_factory=dict, hash=False)
    """By the names in `STATISTICS`; empty without a result."""
    repeats: int = 0
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    """The chosen settings."""
    settings_tried: int = 1
    settings_failed: int = 0


@dataclass(frozen=True)
class Comparison:
    """Scores by data set, method and k; names in the order of the specification."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    ks: dict[str, tuple[int, ...]] = field(hash=False)
    """The numbers of features that are scored on each data set."""
    scores: dict[Place, Score] = field(hash=False)
    whole: frozenset[str] = frozenset()
    """Methods that keep all features: their one score is that of every k."""

    def score(self, data: str, method: str, k: int) -> Score | None:
        """The score at k; None if the study has no such row."""
        if method in self.whole:
            return self._scores_of_all.get((data, method))
        return self.scores.get((data, method, k))

    @cached_property
    def _scores_of_all(self) -> dict[tuple[str, str], Score]:
        return {(d, m): score for (d, m, _), score in self.scores.items() if m in self.whole}

    def at(self, data: str, method: str, k: int, measure: str) -> float | None:
        """A mean over repeats, or None if there is none."""
        found = self.score(data, method, k)
        return None if found is None else found.numbers.get(f"{measure}_mean")

    def curve(self, data: str, method: str, measure: str) -> dict[int, float]:
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

    def table(
        self, measure: Measure, over: Over, *, complete: bool = False
    ) -> dict[str, dict[str, float | None]]:
        """Method x data set: the measure at one k, or its mean or maximum over k."""

        def cell(data: str, method: str) -> float | None:
            if over == "mean":
                return self.mean_over_k(data, method, measure, complete=complete)
            if over == "max":
                return max(self.curve(data, method, measure).values(), default=None)
            return self.at(data, method, over, measure)

        return {method: {data: cell(data, method) for data in self.data} for method in self.methods}

    def paired_means(
        self, data: str, first: str, second: str, measure: str
    ) -> tuple[float, float] | None:
        """Means of two methods over the k that both have; None if there is no such k."""
        one, two = (self.curve(data, method, measure) for method in (first, second))
        shared = [k for k in self.ks[data] if k in one and k in two]
        if not shared:
            return None
        return float(np.mean([one[k] for k in shared])), float(np.mean([two[k] for k in shared]))


@dataclass(frozen=True)
class FailureGroup:
    """Fits of one method on one data set that have no result for the same reason."""

    section: str
    data: str
    method: str
    status: str
    reason: str
    n_settings: int
    ks: tuple[int, ...]


def tidy_rows(run: StudyRun) -> list[dict[str, Any]]:
    """One row for each entry and k; a fit that failed or has not run has a row without numbers."""
    sections = [COMPARISON, *(sweep.name for sweep in run.spec.sweeps)]
    data = list(run.tables)
    methods = [m.title for m in run.spec.methods] + [sweep.method for sweep in run.spec.sweeps]

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        where = sections.index(row["section"]), data.index(row["data"])
        k = -1 if row["k"] is None else row["k"]
        return (*where, methods.index(row["method"]), row["role"], row["params"], k)

    return sorted((row for entry in run.entries for row in _rows_of(run, entry)), key=place)


def tuned_scores(run: StudyRun) -> Comparison:
    """For every data set, method and k the grid point with the best mean ACC.

    Of equal grid points the first counts. Methods without a grid, and baselines, have one point.
    With ``tune_from_default`` the default is a further point.
    """
    return _compare(run, "grid")


def default_scores(run: StudyRun) -> Comparison:
    """The scores of default settings; methods without such a row are absent."""
    return _compare(run, "default")


def sweep_scores(
    run: StudyRun, sweep: str, data: str, measure: Measure
) -> dict[Any, dict[int, float]]:
    """For each value of a sweep the measure against k, best over the sweep's grid at each k."""
    chosen = next(s for s in run.spec.sweeps if s.name == sweep)
    found: dict[Any, dict[int, float]] = {value: {} for value in chosen.values}
    for entry in run.entries:
        if (entry.section, entry.data) == (sweep, data):
            curve = found[entry.params[chosen.vary]]
            for k, value in entry_curve(run, entry, measure).items():
                curve[k] = max(value, curve.get(k, value))
    return {value: dict(sorted(curve.items())) for value, curve in found.items() if curve}


def entry_curve(run: StudyRun, entry: Entry, measure: Measure) -> dict[int, float]:
    """The measure by k of one fit."""
    judged = run.outcome(entry).judgements
    return {int(j["n_features"]): float(np.mean(j[measure])) for j in judged}


def failures(rows: Iterable[Mapping[str, Any]]) -> list[FailureGroup]:
    """Those of `tidy_rows` that failed or ran out of time, by reason."""
    names = ("section", "data", "method", "status", "reason")
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["status"] not in ("ok", "missing"):
            groups[tuple(row[name] for name in names)].append(row)
    return [
        FailureGroup(
            **dict(zip(names, key, strict=True)),
            n_settings=len({(row["role"], row["params"]) for row in group}),
            ks=tuple(sorted({row["k"] for row in group if row["k"] is not None})),
        )
        for key, group in groups.items()
    ]


def as_text(params: Mapping[str, Any]) -> str:
    """Settings as JSON, in the given order."""
    return json.dumps(dict(params), ensure_ascii=False)


def further_measures(spec: StudySpec) -> tuple[str, ...]:
    """Names of the measures that a study takes beside the clustering."""
    return (*(metric.name for metric in spec.metrics), *([STABILITY] if spec.stability_ks else []))


def statistics_of(spec: StudySpec) -> tuple[str, ...]:
    """Names of the numbers of a score in a study."""
    return (*STATISTICS, *(f"{measure}_mean" for measure in further_measures(spec)))


def round_numbers(
    numbers: Mapping[str, float], names: Sequence[str] = STATISTICS
) -> dict[str, float | None]:
    """The numbers of a score with six decimals; None for those it lacks."""
    return {name: round(numbers[name], 6) if name in numbers else None for name in names}


def _rows_of(run: StudyRun, entry: Entry) -> Iterator[dict[str, Any]]:
    outcome = run.outcome(entry)
    # A fit that is not scored (a sweep that records the objective) has no k.
    for k in entry.task.ks if entry.task.repeats else (None,):
        judged = [j for j in outcome.judgements if int(j["n_features"]) == k]
        yield {
            "section": entry.section,
            "data": entry.data,
            "method": entry.method,
            "role": entry.role,
            "params": as_text(entry.params),
            "k": k,
            **round_numbers(_statistics(judged), statistics_of(run.spec)),
            "repeats": entry.task.repeats,
            "n_iter": outcome.n_iter,
            "status": outcome.status,
            "reason": outcome.reason,
            "fit_seconds": outcome.fit_seconds,
            "kmeans_seconds": outcome.kmeans_seconds,
        }


def _statistics(judged: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean and deviation of every measure over all repeats; empty if there are none."""
    found: dict[str, float] = {}
    measures = dict.fromkeys(name for j in judged for name in j if name != "n_features")
    for measure in measures:
        lists = [j[measure] for j in judged if measure in j]
        values = np.concatenate([np.asarray(values, dtype=np.float64) for values in lists])
        found |= {f"{measure}_mean": float(values.mean()), f"{measure}_std": float(values.std())}
    return found


def _compare(run: StudyRun, role: str) -> Comparison:
    mine = [entry for entry in run.entries if entry.section == COMPARISON]
    with_role = {(entry.data, entry.method) for entry in mine if entry.role == role}
    tried: dict[Place, list[Entry]] = defaultdict(list)
    for entry in mine:
        # A method without a grid is planned once: its default is what tuning would find.
        stands_in = role == "grid" and (
            run.spec.tune_from_default or (entry.data, entry.method) not in with_role
        )
        if entry.role in (role, "draw") or (stands_in and entry.role == "default"):
            for k in entry.task.ks:
                tried[entry.data, entry.method, k].append(entry)
    methods = run.spec.methods_by_title
    present = {method for _, method, _ in tried}
    ks_of = run.spec.tuned_ks_within if role == "grid" else run.spec.ks_within
    return Comparison(
        data=tuple(run.tables),
        methods=tuple(title for title in methods if title in present),
        ks={data: ks_of(facts.n_features) for data, facts in run.tables.items()},
        scores={place: _best_score(run, place, entries) for place, entries in tried.items()},
        whole=frozenset(title for title in present if methods[title].name == ALL_FEATURES),
    )


def _best_score(run: StudyRun, place: Place, tried: list[Entry]) -> Score:
    """The grid point with the best mean ACC, else the first failure; random draws are pooled."""
    if tried[0].role == "draw":
        best = _score(run, place, tried, {})
        failed = sum(run.outcome(entry).status != "ok" for entry in tried)
    else:
        scores = [_score(run, place, [entry], entry.params) for entry in tried]
        good = [score for score in scores if score.numbers]
        best = max(good, key=lambda score: score.numbers["acc_mean"]) if good else scores[0]
        failed = len(scores) - len(good)
    return replace(best, settings_tried=len(tried), settings_failed=failed)


def _score(run: StudyRun, place: Place, entries: list[Entry], params: dict[str, Any]) -> Score:
    outcomes = [run.outcome(entry) for entry in entries]
    judged = [j for o in outcomes for j in o.judgements if int(j["n_features"]) == place[2]]
    if not judged:
        bad = next((o for o in outcomes if o.status != "ok"), NOT_RUN)
        return Score(*place, bad.status, bad.reason, params=params)
    repeats = sum(len(j["acc"]) for j in judged)
    return Score(*place, "ok", numbers=_statistics(judged), repeats=repeats, params=params)
