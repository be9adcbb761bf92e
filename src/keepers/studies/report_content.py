"""What the report of a study says, as plain values: the template only arranges them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from keepers.studies.csv_tables import table2_rows
from keepers.studies.formatting import short
from keepers.studies.paper_claims import ClaimReadings, best_reading, holding_by_reading
from keepers.studies.paper_claims.algorithm import steps_to_the_end
from keepers.studies.paper_claims.claim import Claim, Verdict
from keepers.studies.results import StudyResults, standings
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    ALL_FEATURES,
    MEASURES,
    RANDOM,
    VARIANCE,
    Comparison,
    Measure,
    Score,
    failures,
)

Table = Mapping[str, Mapping[str, float | None]]
_DIGITS = 6  # as in the tables: what is equal there shares the lead


class MethodRow(NamedTuple):
    """A method on one data set at one k."""

    rank: int | None
    method: str
    tuned: Score
    default: Score
    gains: tuple[float | None, float | None]
    """ACC above that of random selection, tuned and default."""
    remark: str


def report_content(
    study: StudyResults, claims: Sequence[Claim], readings: Sequence[ClaimReadings] = ()
) -> dict[str, Any]:
    """Everything that the report says, by the names that its template uses."""
    run, best = study.run, study.tuned
    keys = {entry.task.key for entry in run.entries} | {task.key for task in run.growth}
    return {
        "spec": run.spec,
        "sentences": headline(study),
        "n_missing": len(keys - run.outcomes.keys()),
        "n_tasks": len(keys),
        "claims": claims,
        "verdicts": {v: sum(claim.verdict == v for claim in claims) for v in get_args(Verdict)},
        "readings": readings,
        "reading_scalings": {"": "", **{r.name: r.scaling for r in run.spec.readings}},
        "holding": holding_by_reading(readings),
        "best_reading": best_reading(readings),
        "steps": steps_to_the_end(run),
        "lines": _lines_of_baselines(study),
        "is_tuned": any(len(v) > 1 for m in run.spec.methods for v in m.grid.values()),
        "standings": standings(study),
        "data": table2_rows(run),
        "overview": {m: _overview(study, m) for m in MEASURES},
        "tables": {
            data: {k: _method_rows(study, data, k) for k in shown_ks(best.ks[data])}
            for data in best.data
        },
        "tests": study.rank_tests,
        "growth": study.growth,
        "timing": study.timing,
        "reduced": [(m.title, r) for m in run.spec.methods for r in m.reduced],
        "failures": failures(study.rows),
        "warnings": _count_warnings(run),
        "runs": run.runs,
    }


def _lines_of_baselines(study: StudyResults) -> str:
    """What the lines of the baselines look like, of those that are there."""
    looks = {ALL_FEATURES: "solid grey is {}", VARIANCE: "dashed {}", RANDOM: "dotted {}"}
    names = {
        ALL_FEATURES: "all features",
        VARIANCE: "the largest variances",
        RANDOM: "features at random",
    }
    there = [kind for kind in looks if study.title_of(kind) is not None]
    text = ", ".join(looks[kind].format(names[kind]) for kind in there)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


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


def _overview(
    study: StudyResults, measure: Measure
) -> dict[str, list[list[tuple[float | None, bool]]]]:
    """By method and data set: the tuned and the default mean, and whether each is the best."""
    tables = [comparison.table(measure, "mean") for _, comparison in study.by_tuning]

    def cell(table: Table, method: str, data: str) -> tuple[float | None, bool]:
        value = table.get(method, {}).get(data)
        best = max((v for row in table.values() if (v := row[data]) is not None), default=None)
        return value, value is not None and value == best

    return {
        method: [[cell(table, method, data) for table in tables] for data in study.tuned.data]
        for method in study.run.spec.methods_by_title
    }


def _method_rows(study: StudyResults, data: str, k: int) -> list[MethodRow]:
    """All methods on one data set at one k, best first."""
    means = {m: study.tuned.at(data, m, k, "acc") for m in study.tuned.methods}
    known = {method: mean for method, mean in means.items() if mean is not None}
    random = known.get(study.title_of(RANDOM) or "")
    no_score = Score(data, "", k, "ok")
    rows = []
    for method in study.run.spec.methods_by_title:
        found = [comparison.score(data, method, k) for _, comparison in study.by_tuning]
        if any(found):
            tuned, default = (score or no_score for score in found)
            own = known.get(method)
            rank = None if own is None else 1 + sum(mean > own for mean in known.values())
            remark = "" if tuned.status == "ok" else f"{tuned.status}: {tuned.reason}"
            gains = _gain(tuned, random), _gain(default, random)
            rows.append(MethodRow(rank, method, tuned, default, gains, remark))
    return sorted(rows, key=lambda row: (row.rank or len(rows) + 1, row.method))


def _gain(score: Score, random: float | None) -> float | None:
    mean = score.numbers.get("acc_mean")
    return None if mean is None or random is None else mean - random


def _count_warnings(run: StudyRun) -> list[tuple[str, int]]:
    """Warnings of all fits by method, with the number of fits that gave them."""
    methods: dict[str, str] = {}
    for entry in run.entries:
        if entry.task.key in run.outcomes:
            methods.setdefault(entry.task.key, entry.method)
    return Counter(
        f"{method}: {message}"
        for key, method in methods.items()
        for message in run.outcomes[key].warnings
    ).most_common()


def headline(study: StudyResults) -> tuple[str, ...]:
    """What was done and what stands out, in plain sentences, the protocol first."""
    baselines, random = study.baselines, study.title_of(RANDOM)
    methods = [title for title in study.run.spec.methods_by_title if title not in baselines]
    sentences = [_protocol(study.run, len(methods))]
    for tuning, comparison in (("Tuned", study.tuned), ("With default settings", study.default)):
        sentences += _leaders(tuning, comparison, [*methods, *baselines], baselines)
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
        "and the clusters were compared with the classes (ACC, NMI)."
    )


def _leaders(
    tuning: str, comparison: Comparison, rows: Sequence[str], baselines: Sequence[str]
) -> list[str]:
    """Who has the highest mean ACC on how many data sets, baselines included."""
    of_all = _highest(comparison, rows)
    if not of_all:
        return []
    return [f"{tuning}, {_describe_leaders(of_all, baselines)}."]


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
    wins_by_name = ", ".join(f"to {names[m]} on {count}" for m, count in wins.most_common())
    ties = sum(len(winners) > 1 for winners in found)
    return f"{what} goes {wins_by_name} of {n_data} data sets" + (
        f" (shared on {ties})" if ties else ""
    )


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
