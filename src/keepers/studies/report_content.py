"""What the page says, as plain values: the template only lays it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keepers.studies.cost import GrowthRow, TimingRow
from keepers.studies.csv_tables import table2_rows
from keepers.studies.headline import headline
from keepers.studies.paper_claims.judging import Claim, Evidence, Standing, standings
from keepers.studies.pictures import rank_tests
from keepers.studies.rank_tests import RankTest
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    MEASURES,
    Comparison,
    Measure,
    best_per_data,
    failures,
    method_choices,
)
from keepers.studies.specification import Reduction

__all__ = ["DataTable", "OverviewRow", "StudyView", "look_at", "shown_ks"]


@dataclass(frozen=True)
class Cell:
    """Tuned and default value of a method, side by side."""

    tuned: float | None
    default: float | None
    best: bool = False
    """Whether no other method's tuned value is higher."""
    best_default: bool = False


@dataclass(frozen=True)
class OverviewRow:
    """A method over all data sets."""

    method: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class MethodRow:
    """A method on one data set at one k."""

    rank: int | None
    method: str
    values: dict[Measure, Cell]
    deviations: dict[Measure, Cell]
    against_random: Cell
    """Differences of ACC to random selection."""
    params: dict[str, Any]
    remark: str


@dataclass(frozen=True)
class DataTable:
    """All methods on one data set at one k, best first."""

    data: str
    k: int
    rows: tuple[MethodRow, ...]


@dataclass(frozen=True)
class FailureGroup:
    """Fits of one method on one data set that ended for the same reason."""

    section: str
    data: str
    method: str
    status: str
    reason: str
    n_settings: int
    ks: tuple[int, ...]


@dataclass(frozen=True)
class StudyView:
    """Everything that the page shows besides its figures."""

    title: str
    sentences: tuple[str, ...]
    n_missing: int
    n_tasks: int
    claims: tuple[Claim, ...]
    verdicts: dict[str, int]
    standings: tuple[Standing, ...]
    data: tuple[dict[str, Any], ...]
    overview: dict[Measure, tuple[OverviewRow, ...]]
    tables: dict[str, tuple[DataTable, ...]]
    """By data set."""
    tests: dict[str, RankTest]
    growth: tuple[GrowthRow, ...]
    growth_at: dict[str, Any]
    timing: tuple[TimingRow, ...]
    reduced: tuple[tuple[str, Reduction], ...]
    """Method and what is reduced."""
    failures: tuple[FailureGroup, ...]
    warnings: tuple[tuple[str, int], ...]
    runs: tuple[dict[str, Any], ...]
    protocol: dict[str, Any]


def look_at(evidence: Evidence, claims: Sequence[Claim]) -> StudyView:
    """Everything the page says about a study."""
    run, best, untuned = evidence.run, evidence.tuned, evidence.default
    keys = {entry.task.key for entry in run.entries} | {task.key for task in run.growth}
    return StudyView(
        title=run.spec.title,
        sentences=headline(run, best, untuned),
        n_missing=len(keys - run.outcomes.keys()),
        n_tasks=len(keys),
        claims=tuple(claims),
        verdicts=_verdicts(claims),
        standings=tuple(standings(evidence)),
        data=tuple(table2_rows(run)),
        overview={m: _overview(run, best, untuned, m) for m in MEASURES},
        tables={
            data: tuple(_table(run, best, untuned, data, k) for k in shown_ks(best.ks[data]))
            for data in best.data
        },
        tests=rank_tests(evidence),
        growth=tuple(evidence.growth),
        growth_at=run.spec.growth.model_dump() if run.spec.growth else {},
        timing=tuple(evidence.timing),
        reduced=tuple((m.title, r) for m in run.spec.methods for r in m.reduced),
        failures=_failure_groups(evidence.rows),
        warnings=_warnings(run),
        runs=tuple(run.runs),
        protocol={
            "ks": run.spec.ks,
            "repeats": run.spec.repeats,
            "seed": run.spec.seed,
            "time_limit": run.spec.time_limit,
        },
    )


def shown_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """The two k that get a table of their own: 50 and 100, else the middle and the largest.

    Examples
    --------
    >>> shown_ks([10, 50, 90, 100]), shown_ks([10, 20, 40, 60]), shown_ks([7])
    ((50, 100), (40, 60), (7,))
    """
    if 50 in ks and 100 in ks:
        return 50, 100
    return tuple(sorted({ks[len(ks) // 2], ks[-1]}))


def _verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    counts = dict.fromkeys(("holds", "does not hold here", "cannot be tested"), 0)
    for claim in claims:
        counts[claim.verdict] += 1
    return counts


def _overview(
    run: StudyRun, best: Comparison, untuned: Comparison, measure: Measure
) -> tuple[OverviewRow, ...]:
    over: Literal["mean"] = "mean"
    high, low = (best_per_data(c, measure, over) for c in (best, untuned))
    top_high, top_low = _tops(high, best.data), _tops(low, best.data)
    return tuple(
        OverviewRow(
            method,
            tuple(
                Cell(
                    one := high.get(method, {}).get(data),
                    two := low.get(method, {}).get(data),
                    best=one is not None and one == top_high[data],
                    best_default=two is not None and two == top_low[data],
                )
                for data in best.data
            ),
        )
        for method in method_choices(run)
    )


def _tops(
    table: Mapping[str, Mapping[str, float | None]], data: Sequence[str]
) -> dict[str, float | None]:
    """Best value of each data set."""
    return {
        name: max((v for row in table.values() if (v := row[name]) is not None), default=None)
        for name in data
    }


def _table(run: StudyRun, best: Comparison, untuned: Comparison, data: str, k: int) -> DataTable:
    order = {m: best.at(data, m, k, "acc") for m in best.methods}
    known = {m: value for m, value in order.items() if value is not None}
    random = next((t for t, m in method_choices(run).items() if m.name == "RandomScore"), None)
    rows = [
        _method_row(best, untuned, (data, method, k), random, known)
        for method in method_choices(run)
        if best.score(data, method, k) or untuned.score(data, method, k)
    ]
    last = len(rows) + 1
    return DataTable(data, k, tuple(sorted(rows, key=lambda r: (r.rank or last, r.method))))


def _method_row(
    best: Comparison,
    untuned: Comparison,
    place: tuple[str, str, int],
    random: str | None,
    known: Mapping[str, float],
) -> MethodRow:
    method = place[1]
    high, low = best.score(*place), untuned.score(*place)
    floor = None if random is None else known.get(random)
    acc = Cell(high.acc_mean if high else None, low.acc_mean if low else None)
    nmi = Cell(high.nmi_mean if high else None, low.nmi_mean if low else None)
    rank = None
    if method in known:
        rank = 1 + sum(value > known[method] for value in known.values())
    return MethodRow(
        rank=rank,
        method=method,
        values={"acc": acc, "nmi": nmi},
        deviations={
            "acc": Cell(high.acc_std if high else None, low.acc_std if low else None),
            "nmi": Cell(high.nmi_std if high else None, low.nmi_std if low else None),
        },
        against_random=Cell(_minus(acc.tuned, floor), _minus(acc.default, floor)),
        params=high.params if high else {},
        remark="" if high is None or high.status == "ok" else f"{high.status}: {high.reason}",
    )


def _minus(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def _failure_groups(all_rows: Sequence[Mapping[str, Any]]) -> tuple[FailureGroup, ...]:
    together: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    names = ("section", "data", "method", "status", "reason")
    for row in failures(all_rows):
        together.setdefault(tuple(row[name] for name in names), []).append(row)
    return tuple(
        FailureGroup(
            **dict(zip(names, key, strict=True)),
            n_settings=len({(row["role"], row["params"]) for row in rows}),
            ks=tuple(sorted({k for row in rows for k in row["ks"]})),
        )
        for key, rows in together.items()
    )


def _warnings(run: StudyRun) -> tuple[tuple[str, int], ...]:
    """Warnings of all fits by method, with how many fits gave them."""
    counts: dict[str, int] = {}
    seen: set[str] = set()
    for entry in run.entries:
        outcome = run.outcomes.get(entry.task.key)
        if outcome is None or entry.task.key in seen:
            continue
        seen.add(entry.task.key)
        for message in outcome.warnings:
            text = f"{entry.method}: {message}"
            counts[text] = counts.get(text, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: -pair[1]))
