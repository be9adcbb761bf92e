"""From a specification to tasks: which method is fitted where and how, and to which row it belongs.

A task is known by a key that depends on its content alone. Two places of a study that ask for the
same fit share one task, and a task whose key is in the store is never run again.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from keepers._wording import first_line
from keepers.catalogue import find_method
from keepers.exceptions import ParameterError, shorten
from keepers_studies.specification import COMPARISON, MethodChoice, StudySpec, Sweep

Params = dict[str, Any]

_CLASSES = re.compile(r"classes(?:\s*-\s*(\d+))?")


@dataclass(frozen=True)
class FitTask:
    """Fit one method with one setting on one table, then score its best k features for each k."""

    data: str
    """Name of the table in the study, which implies its scaling."""
    fingerprint: str
    """Checksum of its values and classes."""
    method: str
    params: Params = field(hash=False)
    ks: tuple[int, ...]
    repeats: int
    seed: int
    metrics: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """Further measures: name (twice, as in stored results) and the k at which it is computed."""
    halves: tuple[int, ...] = ()
    """The k at which the choices of two halves of the samples are compared."""

    @cached_property
    def key(self) -> str:
        """Identifies the task in the store; measures that are not computed do not change it."""
        content = asdict(self)
        optional = {name: content.pop(name) for name in ("metrics", "halves")}
        content |= {"kind": "judge", **{name: v for name, v in optional.items() if v}}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Outcome:
    """The result of a task; a failure and a timeout are results too."""

    status: str
    """"ok", "failed", "timeout", "killed" or, of timed fits of an earlier version, "skipped"."""
    reason: str = ""
    fit_seconds: float = 0.0
    """Processor time with one thread; elapsed time if the task has no result."""
    kmeans_seconds: float = 0.0
    fixed_seconds: float = 0.0
    """Time of a fit on a tiny table, in timed fits of an earlier version."""
    judgements: tuple[dict[str, Any], ...] = ()
    """For each k: n_features, acc and nmi (a number per repeat), forest and stability."""
    objective: tuple[float, ...] = ()
    """The method's objective after each step, where it has one."""
    n_iter: int | None = None
    top: tuple[int, ...] = ()
    """The best features, best first, up to the largest k."""
    warnings: tuple[str, ...] = ()


NOT_RUN = Outcome("missing", "not run yet")
SYNTHETIC = "synthetic"
"""Section of the timed fits, and fingerprint of their tables, whose name is their size."""


def resolve_params(params: Params, n_classes: int) -> Params:
    """Replace "classes" and "classes - 1" by numbers (at least 1)."""

    def resolve(value: Any) -> Any:
        match = _CLASSES.fullmatch(value) if isinstance(value, str) else None
        return max(1, n_classes - int(match[1] or 0)) if match else value

    return {name: resolve(value) for name, value in params.items()}


def mentions_classes(params: Params) -> bool:
    """True if a setting is derived from the number of classes."""
    return resolve_params(params, 2) != params


@dataclass(frozen=True)
class TableFacts:
    """Size and checksum of a table."""

    n_samples: int
    n_features: int
    n_classes: int
    fingerprint: str


@dataclass(frozen=True)
class Entry:
    """One task and its place in the study."""

    section: str
    data: str
    method: str
    role: str
    """"grid", "default", "draw" or, in a sweep, "sweep"; "growth" for timed fits."""
    params: dict[str, Any] = field(hash=False)
    """The settings that vary in this section, for display."""
    task: FitTask


def plan_tasks(spec: StudySpec, tables: Mapping[str, TableFacts]) -> list[Entry]:
    """Every fit of the study; entries may share a task."""
    entries: list[Entry] = []
    for sweep in spec.sweeps:  # first, because they are quick
        for name in sweep.data:
            if name in tables:
                entries += _sweep(spec, sweep, name, tables[name])
    for name, facts in tables.items():
        for method in spec.methods:
            entries += _comparison(spec, method, name, facts)
    return [*entries, *_growth(spec)]


def _growth(spec: StudySpec) -> Iterator[Entry]:
    """Timed fits on made-up tables, small ones first."""
    if spec.growth is None:
        return
    along_samples = [(n, spec.growth.at_features) for n in spec.growth.samples]
    along_features = [(spec.growth.at_samples, d) for d in spec.growth.features]
    for method in spec.methods:
        for n_samples, n_features in sorted({*along_samples, *along_features}):
            task = timed_task(
                with_version(method.name), dict(method.fixed), n_samples, n_features, spec.seed
            )
            size = {"samples": n_samples, "features": n_features}
            yield Entry(SYNTHETIC, task.data, method.title, "growth", size, task)


def timed_task(method: str, params: Params, n_samples: int, n_features: int, seed: int) -> FitTask:
    """One fit on clusters in noise, whose time is recorded."""
    return FitTask(f"{n_samples} x {n_features}", SYNTHETIC, method, params, (10,), 0, seed)


def _comparison(
    spec: StudySpec, method: MethodChoice, name: str, facts: TableFacts
) -> Iterator[Entry]:
    reduction = method.reduction_for(name)
    if reduction is not None and reduction.skip:
        return
    grid = method.grid if reduction is None else reduction.grid
    settings: list[tuple[str, dict[str, Any]]] = []
    if method.draws > 1:
        settings += [("draw", {"random_state": spec.seed + i}) for i in range(method.draws)]
    elif (
        grid
        or method.default is None
        or not (
            # A default that is scored in more ways than a grid point cannot share its fit.
            spec.tuned_ks or spec.metrics or spec.stability_ks
        )
    ):
        settings += [("grid", point) for point in _points(grid)]
    if method.default is not None and method.draws == 1:
        settings.append(("default", dict(method.default)))
    repeats, whole = method.repeats or spec.repeats, method.name == "AllFeatures"
    for number, (role, chosen) in enumerate(settings):
        ks = spec.ks_within(facts.n_features, tuned=role == "grid", among=method.ks)
        params = {**method.fixed, **chosen}
        for task in _tasks(spec, method.name, params, name, facts, repeats, ks):
            if role != "grid":
                task = _with_measures(
                    spec, task, facts, whole, None if role == "default" else number
                )
            if role == "draw" and method.repeats:  # clusterings of its own, where each has fewer
                task = replace(task, seed=spec.seed + number)
            yield Entry(COMPARISON, name, method.title, role, chosen, task)


def _with_measures(
    spec: StudySpec, task: FitTask, facts: TableFacts, whole: bool, draw: int | None
) -> FitTask:
    """The task with the measures that are computed of defaults and of the first random draws."""
    metrics = [
        (m.name, m.name, task.ks if whole else m.ks_of(task.ks, facts.n_features))
        for m in spec.metrics
        if draw is None or draw < m.draws
    ]
    compared = draw is None and not whole
    halves = tuple(k for k in task.ks if compared and k in spec.stability_ks)
    return replace(task, metrics=tuple(m for m in metrics if m[2]), halves=halves)


def _sweep(spec: StudySpec, sweep: Sweep, name: str, facts: TableFacts) -> Iterator[Entry]:
    for value in sweep.values:
        for point in _points(sweep.grid):
            chosen = {sweep.vary: value, **point}
            params = {**sweep.fixed, **chosen}
            repeats = spec.repeats if sweep.judge else 0
            ks = spec.ks_within(facts.n_features)
            for task in _tasks(spec, sweep.method, params, name, facts, repeats, ks):
                yield Entry(sweep.name, name, sweep.method, "sweep", chosen, task)


def _points(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _tasks(
    spec: StudySpec,
    method: str,
    params: dict[str, Any],
    name: str,
    facts: TableFacts,
    repeats: int,
    ks: tuple[int, ...],
) -> list[FitTask]:
    """One task for all k, or one for each k if each takes the time of a fit."""
    selector = find_method(method).load()
    groups: list[tuple[int, ...]]
    if method == "AllFeatures":
        groups = [(facts.n_features,)]
    elif ranks_anew(selector(**params)) and not selector.fits_each_together:
        groups = [(k,) for k in ks]
    else:
        groups = [ks]
    return [
        FitTask(name, facts.fingerprint, with_version(method), params, group, repeats, spec.seed)
        for group in groups
    ]


def ranks_anew(selector: Any) -> bool:
    """True if a fit for k can keep other features than the best k of a fit for more."""
    return selector.depends_on_k and not selector.picks_one_by_one


@lru_cache
def with_version(name: str) -> str:
    """The name under which fits are stored; for MODULE:CLASS it changes with the module's file."""
    if ":" not in name:
        return name
    try:
        content = Path(inspect.getfile(find_method(name).load())).read_bytes()
    except (OSError, TypeError) as error:
        raise ParameterError(
            f"A method of your own must come from a file; {shorten(name)} does not "
            f"({first_line(error)})."
        ) from error
    return f"{name}@{hashlib.sha256(content).hexdigest()[:12]}"


def without_version(name: str) -> str:
    """The name without its version."""
    return name.partition("@")[0]
