"""What the report of a study says, as plain values: the template only arranges them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepers.studies.csv_tables import table2_rows
from keepers.studies.formatting import short
from keepers.studies.paper_claims.claim import Claim
from keepers.studies.results import StudyResults, standings
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    BASELINES,
    MEASURES,
    RANDOM,
    Comparison,
    Measure,
    best_per_data,
    failures,
    method_choices,
)

_DIGITS = 6  # as in the tables: what is equal there shares the lead


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


def report_content(study: StudyResults, claims: Sequence[Claim]) -> dict[str, Any]:
    """Everything that the report says, by the names that its template uses."""
    run, best, default = study.run, study.tuned, study.default
    keys = {entry.task.key for entry in run.entries} | {task.key for task in run.growth}
    return {
        "spec": run.spec,
        "sentences": headline(study),
        "n_missing": len(keys - run.outcomes.keys()),
        "n_tasks": len(keys),
        "claims": claims,
        "verdicts": _count_verdicts(claims),
        "standings": standings(study),
        "data": table2_rows(run),
        "overview": {m: _overview(run, best, default, m) for m in MEASURES},
        "tables": {
            data: [_table(run, best, default, data, k) for k in shown_ks(best.ks[data])]
            for data in best.data
        },
        "tests": study.rank_tests,
        "growth": study.growth,
        "timing": study.timing,
        "reduced": [(m.title, r) for m in run.spec.methods for r in m.reduced],
        "failures": _failure_groups(study.rows),
        "warnings": _count_warnings(run),
        "runs": run.runs,
    }


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


def _count_verdicts(claims: Sequence[Claim]) -> dict[str, int]:
    counts = dict.fromkeys(("holds", "does not hold here", "cannot be tested"), 0)
    for claim in claims:
        counts[claim.verdict] += 1
    return counts


def _overview(
    run: StudyRun, best: Comparison, default: Comparison, measure: Measure
) -> tuple[OverviewRow, ...]:
    high, low = (best_per_data(c, measure, "mean") for c in (best, default))
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


def _table(run: StudyRun, best: Comparison, default: Comparison, data: str, k: int) -> DataTable:
    order = {m: best.at(data, m, k, "acc") for m in best.methods}
    known = {m: value for m, value in order.items() if value is not None}
    random = next((t for t, m in method_choices(run).items() if m.name == RANDOM), None)
    rows = [
        _method_row(best, default, (data, method, k), random, known)
        for method in method_choices(run)
        if best.score(data, method, k) or default.score(data, method, k)
    ]
    last = len(rows) + 1
    return DataTable(data, k, tuple(sorted(rows, key=lambda r: (r.rank or last, r.method))))


def _method_row(
    best: Comparison,
    default: Comparison,
    place: tuple[str, str, int],
    random: str | None,
    known: Mapping[str, float],
) -> MethodRow:
    method = place[1]
    high, low = best.score(*place), default.score(*place)
    baseline = None if random is None else known.get(random)
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
        against_random=Cell(_minus(acc.tuned, baseline), _minus(acc.default, baseline)),
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


def _count_warnings(run: StudyRun) -> tuple[tuple[str, int], ...]:
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


def headline(study: StudyResults) -> tuple[str, ...]:
    """What was done and what stands out, in plain sentences, the protocol first."""
    run = study.run
    choices = method_choices(run)
    methods = [title for title, method in choices.items() if method.name not in BASELINES]
    baselines = [title for title, method in choices.items() if method.name in BASELINES]
    sentences = [_protocol(run, len(methods))]
    random = next((t for t, m in choices.items() if m.name == RANDOM), None)
    for tuning, comparison in (("Tuned", study.tuned), ("With default settings", study.default)):
        sentences += _leaders(tuning, comparison, methods, baselines)
        if random is not None:
            sentences += _against_random(comparison, methods, random)
    return tuple(sentences)


def _protocol(run: StudyRun, n_methods: int) -> str:
    n_data, ks = len(run.tables), sorted(run.spec.ks)
    range_of_k = f"{ks[0]} to {ks[-1]}" if len(ks) > 1 else str(ks[0])
    return (
        f"{_count(n_methods, 'method')} and the baselines chose {range_of_k} features of "
        f"{_count(n_data, 'data set')}; k-means then clustered the samples by the chosen features "
        f"alone, {_count(run.spec.repeats, 'time')}, into as many clusters as there are classes, "
        "and the clusters were held against the classes (ACC, NMI)."
    )


def _leaders(
    tuning: str, comparison: Comparison, methods: Sequence[str], baselines: Sequence[str]
) -> list[str]:
    """Who has the highest mean ACC on how many data sets: of all, then of the methods alone."""
    of_all = _highest(comparison, [*methods, *baselines])
    if not of_all:
        return []
    sentences = [f"{tuning}, {_describe_leaders(of_all, baselines)}."]
    if any(winner in baselines for winners in of_all for winner in winners):
        alone = _highest(comparison, methods)
        sentences += [f"Without the baselines, {_describe_leaders(alone, ())}."] if alone else []
    return sentences


def _highest(comparison: Comparison, rows: Sequence[str]) -> list[tuple[str, ...]]:
    """The rows with the highest mean ACC, for each data set on which two or more have one."""
    found = []
    for data in comparison.data:
        means = {m: comparison.mean_over_k(data, m, "acc", complete=False) for m in rows}
        known = {m: round(mean, _DIGITS) for m, mean in means.items() if mean is not None}
        if len(known) >= 2:
            top = max(known.values())
            found.append(tuple(m for m, mean in known.items() if mean == top))
    return found


def _describe_leaders(found: Sequence[tuple[str, ...]], baselines: Sequence[str]) -> str:
    wins = Counter(winner for winners in found for winner in winners)
    names = {m: short(m) + " (baseline)" * (m in baselines) for m in wins}
    n_data, what = len(found), "the highest ACC (mean over k)"
    if len(wins) == 1:
        (name,) = names.values()
        return f"{name} has {what}" + (f" on all {n_data} data sets" if n_data > 1 else "")
    if n_data == 1:
        return f"{' and '.join(names.values())} share {what}"
    told = ", ".join(f"to {names[m]} on {count}" for m, count in wins.most_common())
    ties = sum(len(winners) > 1 for winners in found)
    return f"{what} goes {told} of {n_data} data sets" + (f" (shared on {ties})" if ties else "")


def _against_random(comparison: Comparison, methods: Sequence[str], random: str) -> list[str]:
    """How often random selection does better."""
    pairs = [
        pair
        for data in comparison.data
        for method in methods
        if (pair := comparison.paired_means(data, method, random, "acc")) is not None
    ]
    if not pairs:
        return []
    lost = sum(own <= other for own, other in pairs)
    return [f"Random selection does as well or better in {lost} of {len(pairs)} cases."]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
