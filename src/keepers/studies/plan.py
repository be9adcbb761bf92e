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

from keepers.data.wording import first_line
from keepers.exceptions import ParameterError, shorten
from keepers.methods import find_method
from keepers.selectors import AllFeatures
from keepers.studies.specification import COMPARISON, MethodChoice, StudySpec, Sweep
from keepers.studies.study_metrics import find_metric

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
    """Further measures: name, function (with its version) and the k at which each is taken."""
    halves: tuple[int, ...] = ()
    """The k at which what two halves of the samples keep is compared."""

    @cached_property
    def key(self) -> str:
        """Identifies the task in the store; what a task does not ask for leaves its key alone."""
        content = asdict(self)
        optional = {name: content.pop(name) for name in ("metrics", "halves")}
        return _digest({"kind": "judge", **content, **{n: v for n, v in optional.items() if v}})


@dataclass(frozen=True)
class GrowthTask:
    """Time one fit on synthetic data of a given size, to measure how the cost of a method grows."""

    method: str
    params: Params = field(hash=False)
    n_samples: int
    n_features: int
    seed: int

    @cached_property
    def key(self) -> str:
        """Identifies the task in the store."""
        return _digest({"kind": "growth", **asdict(self)})


@dataclass(frozen=True)
class Outcome:
    """The result of a task; a failure and a timeout are results too."""

    status: str
    """"ok", "failed", "timeout" or "killed"; of timed fits also "skipped"."""
    reason: str = ""
    fit_seconds: float = 0.0
    """Of the processor, with one thread; of a task without a result, by the clock."""
    kmeans_seconds: float = 0.0
    fixed_seconds: float = 0.0
    """Of a timed fit: what a fit takes whatever its size, measured on a tiny table."""
    judgements: tuple[dict[str, Any], ...] = ()
    """For each k: n_features, acc and nmi (a number per repeat), and further metrics where asked;
    "stability" is the agreement of the sets that two halves of the samples keep."""
    objective: tuple[float, ...] = ()
    """The method's objective after each step, where it has one."""
    n_iter: int | None = None
    top: tuple[int, ...] = ()
    """The best features, best first, up to the largest k."""
    warnings: tuple[str, ...] = ()

    @property
    def ended_growth(self) -> bool:
        """Of a timed fit: whether a larger one would fail as well."""
        return self.status not in ("ok", "missing", "skipped")


NOT_RUN = Outcome("missing", "not run yet")


def resolve_params(params: Params, n_classes: int) -> Params:
    """Replace "classes" and "classes - 1" by numbers (at least 1)."""
    return {name: _resolve(value, n_classes) for name, value in params.items()}


def mentions_classes(params: Params) -> bool:
    """Whether a setting is derived from the number of classes."""
    return any(isinstance(v, str) and _CLASSES.fullmatch(v) for v in params.values())


def _resolve(value: Any, n_classes: int) -> Any:
    match = _CLASSES.fullmatch(value) if isinstance(value, str) else None
    return max(1, n_classes - int(match[1] or 0)) if match else value


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class TableFacts:
    """What planning needs to know about a table."""

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
    """"grid", "default", "draw" or, in a sweep, "sweep"."""
    params: dict[str, Any] = field(hash=False)
    """The settings that vary in this section, for display."""
    task: FitTask


def plan_tasks(spec: StudySpec, tables: Mapping[str, TableFacts]) -> list[Entry]:
    """Every fit the study asks for; entries may share a task."""
    entries: list[Entry] = []
    for sweep in spec.sweeps:  # first, because they are quick
        for name in sweep.data:
            entries += _sweep(spec, sweep, name, tables[name])
    for name, facts in tables.items():
        for method in spec.methods:
            entries += _comparison(spec, method, name, facts)
    return entries


def plan_growth(spec: StudySpec) -> list[GrowthTask]:
    """The timed fits, in growing order."""
    if spec.growth is None:
        return []
    along_samples = [(n, spec.growth.at_features) for n in spec.growth.samples]
    along_features = [(spec.growth.at_samples, d) for d in spec.growth.features]
    sizes = sorted({*along_samples, *along_features})
    # Methods that only differ in their grid are the same here.
    methods = {(m.name, tuple(sorted(m.fixed.items()))): m for m in spec.methods}
    return [
        GrowthTask(with_version(method.name), dict(method.fixed), n_samples, n_features, spec.seed)
        for method in methods.values()
        for n_samples, n_features in sizes
    ]


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
    elif grid or method.default is None or not _measures_more(spec):
        settings += [("grid", point) for point in _points(grid)]
    if method.default is not None and method.draws == 1:
        settings.append(("default", dict(method.default)))
    for number, (role, chosen) in enumerate(settings):
        for task in _tasks(
            spec,
            method.name,
            {**method.fixed, **chosen},
            name,
            facts,
            repeats=method.repeats or spec.repeats,
            ks=spec.ks_of(method, facts.n_features, tuned=role == "grid"),
        ):
            extended = _with_metrics(spec, method, task, facts, role, number)
            yield Entry(COMPARISON, name, method.title, role, chosen, extended)


def _measures_more(spec: StudySpec) -> bool:
    """Whether a default is scored in more ways than a grid point, and so cannot share its fit."""
    return bool(spec.tuned_ks or spec.metrics or spec.stability_ks)


def _with_metrics(
    spec: StudySpec,
    method: MethodChoice,
    task: FitTask,
    facts: TableFacts,
    role: str,
    number: int,
) -> FitTask:
    """The task with the measures that are taken of defaults and of the first random draws."""
    if role == "grid":
        return task
    wanted = [metric for metric in spec.metrics if role != "draw" or number < metric.draws]
    whole = find_method(method.name).load() is AllFeatures
    metrics = tuple(
        (
            m.name,
            versioned_function(m.metric),
            task.ks if whole else m.ks_of(task.ks, facts.n_features),
        )
        for m in wanted
    )
    # Every draw of a random ranking has clusterings of its own, where each has fewer of them.
    seed = spec.seed + number if role == "draw" and method.repeats else task.seed
    may_compare = not whole and role == "default"
    halves = tuple(k for k in task.ks if k in spec.stability_ks) if may_compare else ()
    return replace(task, metrics=tuple(m for m in metrics if m[2]), halves=halves, seed=seed)


def _sweep(spec: StudySpec, sweep: Sweep, name: str, facts: TableFacts) -> Iterator[Entry]:
    for value in sweep.values:
        for point in _points(sweep.grid):
            chosen = {sweep.vary: value, **point}
            params = {**sweep.fixed, **chosen}
            repeats = spec.repeats if sweep.judge else 0
            ks = spec.ks_within(facts.n_features)
            for task in _tasks(spec, sweep.method, params, name, facts, repeats=repeats, ks=ks):
                yield Entry(sweep.name, name, sweep.method, "sweep", chosen, task)


def _points(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _tasks(
    spec: StudySpec,
    method: str,
    params: dict[str, Any],
    name: str,
    facts: TableFacts,
    *,
    repeats: int,
    ks: tuple[int, ...],
) -> list[FitTask]:
    """One task for all k, or one for each k if each takes the time of a fit."""
    selector = find_method(method).load()
    groups: list[tuple[int, ...]]
    if selector is AllFeatures:
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
    """Whether the best k features of a fit for more are not those of a fit for k."""
    return selector.depends_on_k and not selector.picks_one_by_one


@lru_cache
def with_version(name: str) -> str:
    """The name under which fits are stored; for MODULE:CLASS it changes with the module's file."""
    return name if ":" not in name else _versioned(name, "method", find_method(name).load())


@lru_cache
def versioned_function(name: str) -> str:
    """The name of a metric; for MODULE:FUNCTION it changes with the module's file."""
    return name if ":" not in name else _versioned(name, "metric", find_metric(name))


def _versioned(name: str, what: str, defined: Any) -> str:
    try:
        content = Path(inspect.getfile(defined)).read_bytes()
    except (OSError, TypeError) as error:
        raise ParameterError(
            f"A {what} of your own must come from a file; {shorten(name)} does not "
            f"({first_line(error)})."
        ) from error
    return f"{name}@{hashlib.sha256(content).hexdigest()[:12]}"


def without_version(name: str) -> str:
    """The name without its version."""
    return name.partition("@")[0]
