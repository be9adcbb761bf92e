"""From a specification to tasks: who is fitted where, with what, and to which row it belongs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from keepers.selectors import AllFeatures
from keepers.studies.method_versions import find_selector, versioned
from keepers.studies.specification import COMPARISON, MethodChoice, StudySpec, Sweep
from keepers.studies.tasks import Growth, Task

__all__ = ["COMPARISON", "Entry", "TableFacts", "plan_growth", "plan_tasks"]


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
    """The settings that were chosen in this place, for display."""
    task: Task


def plan_tasks(spec: StudySpec, tables: Mapping[str, TableFacts]) -> list[Entry]:
    """Every fit the study asks for; entries may share a task."""
    entries: list[Entry] = []
    for sweep in spec.sweeps:  # first, because they are soon done
        for name in sweep.data:
            entries += _sweep(spec, sweep, name, tables[name])
    for name, facts in tables.items():
        for method in spec.methods:
            entries += _comparison(spec, method, name, facts)
    return entries


def plan_growth(spec: StudySpec) -> list[Growth]:
    """The timed fits, in growing order."""
    if spec.growth is None:
        return []
    along_samples = [(n, spec.growth.at_features) for n in spec.growth.samples]
    along_features = [(spec.growth.at_samples, d) for d in spec.growth.features]
    sizes = sorted({*along_samples, *along_features})
    # Methods that only differ in their grid are the same here.
    methods = {(m.name, tuple(sorted(m.fixed.items()))): m for m in spec.methods}
    return [
        Growth(versioned(method.name), dict(method.fixed), n_samples, n_features, spec.seed)
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
    else:
        settings += [("grid", point) for point in _points(grid)]
        if method.default is not None:
            settings.append(("default", dict(method.default)))
    for role, chosen in settings:
        for task in _tasks(spec, method.name, {**method.fixed, **chosen}, name, facts):
            yield Entry(COMPARISON, name, method.title, role, chosen, task)


def _sweep(spec: StudySpec, sweep: Sweep, name: str, facts: TableFacts) -> Iterator[Entry]:
    for value in sweep.values:
        for point in _points(sweep.grid):
            chosen = {sweep.vary: value, **point}
            params = {**sweep.fixed, **chosen}
            for task in _tasks(spec, sweep.method, params, name, facts, judge=sweep.judge):
                yield Entry(sweep.name, name, sweep.method, "sweep", chosen, task)


def _points(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _tasks(
    spec: StudySpec,
    method: str,
    params: dict[str, Any],
    name: str,
    facts: TableFacts,
    judge: bool = True,
) -> list[Task]:
    """One task for all k, or one for each k if the ranking depends on k."""
    selector = find_selector(method)
    ks = tuple(sorted({k for k in spec.ks if k < facts.n_features})) or (facts.n_features,)
    groups: list[tuple[int, ...]]
    if selector is AllFeatures:
        groups = [(facts.n_features,)]
    elif selector(**params).depends_on_k:
        groups = [(k,) for k in ks]
    else:
        groups = [ks]
    repeats = spec.repeats if judge else 0
    return [
        Task(name, facts.fingerprint, versioned(method), params, group, repeats, spec.seed)
        for group in groups
    ]
