"""A comparison over many data sets as one table: who is ahead of chance, by how much, how often.

The score of a method on a data set is its mean over the numbers of features kept. Scaled, it is 0
where random columns are and 1 where the best method of that set is, so that sets on which all
clusterings are poor count as much as others. A set on which a method has no result counts as 0: a
method gains nothing by failing where it is hard. A loss counts at most -1. Sets on which nothing is
a point ahead of random columns have no scale and are counted apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from statistics import fmean, median
from typing import Any

from keepers.studies.cost import TimingRow
from keepers.studies.plan import mentions_classes
from keepers.studies.rank_tests import RankTest, rank_test
from keepers.studies.results import StudyResults
from keepers.studies.scores import RANDOM, STABILITY, Comparison, further_measures
from keepers.studies.specification import MethodChoice

Row = dict[str, Any]
CLEAR_GAIN = 0.01
"""A set has a scale from this gain of its best method on: below, the scale would be noise."""
LOWEST = -1.0
"""The least scaled score: a loss counts at most as much as the gain of the best method."""
EVERYTHING = "all"
"""The kind that holds every data set."""


@dataclass(frozen=True)
class BoardCell:
    """A method on a data set: means over k, or why there are none."""

    data: str
    method: str
    means: dict[str, float] = field(hash=False)
    """By measure: "acc", "nmi", further metrics, "stability"."""
    gain: float | None = None
    """ACC above random columns, over the k that both have."""
    scaled: float | None = None
    """That gain over the gain of the set's best method."""
    seconds: float | None = None
    """Mean time of one fit."""
    reason: str = ""
    """Why there is no score, or not at every k."""


@dataclass(frozen=True)
class BoardRow:
    """A method over the data sets of one kind."""

    method: str
    told: str
    """What it has to be told of the classes; empty if nothing."""
    is_baseline: bool
    scaled: float | None
    """Mean over the sets that have a scale."""
    means: dict[str, float] = field(hash=False)
    """Means over the sets on which it has a score, by measure."""
    above_random: dict[str, int] = field(hash=False)
    """On how many sets it is ahead of random columns, by measure."""
    n_sets: int
    """Sets on which it has a score."""
    worst: tuple[str, float] | None
    """The set on which it loses most to random columns (or gains least), and the difference."""
    average_rank: float | None
    seconds: float | None
    """Median over the sets of the time of one fit."""


@dataclass(frozen=True)
class Leaderboard:
    """One comparison (default settings, or tuned with labels) over all data sets of a study."""

    tuning: str
    """"default" or "tuned"."""
    study: StudyResults

    @property
    def comparison(self) -> Comparison:
        """The scores behind the board."""
        return self.study.default if self.tuning == "default" else self.study.tuned

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """ACC, NMI, and whatever else the study measures of default settings."""
        further = further_measures(self.study.run.spec) if self.tuning == "default" else ()
        return ("acc", "nmi", *further)

    @cached_property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """Data sets by kind, all of them first."""
        found: dict[str, list[str]] = {EVERYTHING: []}
        for choice in self.study.run.spec.data:
            for kind in dict.fromkeys((EVERYTHING, choice.kind)):
                if kind:
                    found.setdefault(kind, []).append(choice.title)
        return {kind: tuple(names) for kind, names in found.items()}

    @cached_property
    def cells(self) -> dict[tuple[str, str], BoardCell]:
        """Every method on every data set."""
        seconds = _seconds_of_fits(self.study.timing, self.tuning)
        found: dict[tuple[str, str], BoardCell] = {}
        for data in self.comparison.data:
            gains = self._gains(data)
            best = max((gain for gain in gains.values() if gain is not None), default=0.0)
            for method in self.comparison.methods:
                gain = gains[method]
                found[data, method] = BoardCell(
                    data,
                    method,
                    self._means(data, method),
                    gain,
                    max(gain / best, LOWEST) if gain is not None and best >= CLEAR_GAIN else None,
                    seconds.get((data, method)),
                    self._reason(data, method),
                )
        return found

    @cached_property
    def with_scale(self) -> tuple[str, ...]:
        """Data sets on which some method is clearly ahead of random columns."""
        scaled = {data for (data, _), cell in self.cells.items() if cell.scaled is not None}
        return tuple(data for data in self.comparison.data if data in scaled)

    @cached_property
    def without_scale(self) -> tuple[str, ...]:
        """Data sets on which no method is clearly ahead of random columns."""
        return tuple(data for data in self.judged() if data not in self.with_scale)

    def judged(self, kind: str = EVERYTHING, measure: str = "acc") -> tuple[str, ...]:
        """Data sets of a kind on which random columns have the measure."""
        curve = self.comparison.curve
        return tuple(data for data in self.kinds[kind] if curve(data, self.random, measure))

    def rows(self, kind: str = EVERYTHING) -> list[BoardRow]:
        """The methods over the data sets of a kind, best scaled score first."""
        ranks = self.ranks(kind).average_ranks
        rows = [self._row(choice, kind, ranks) for choice in self._choices]
        # Equal scores stay in the order of the specification.
        return sorted(rows, key=lambda row: (row.scaled is None, -round(row.scaled or 0.0, 6)))

    def ranks(self, kind: str = EVERYTHING) -> RankTest:
        """Friedman's test over the data sets of a kind; no result ranks as random columns do."""
        judged = self.judged(kind)
        table: dict[str, dict[str, float | None]] = {}
        for method in self.comparison.methods:
            cells = {data: self.cells[data, method] for data in self.kinds[kind]}
            table[method] = {
                data: (cell.gain or 0.0) if data in judged else None for data, cell in cells.items()
            }
        return rank_test(table)

    @property
    def _choices(self) -> list[MethodChoice]:
        methods = self.study.run.spec.methods_by_title
        return [methods[title] for title in self.comparison.methods]

    @property
    def random(self) -> str:
        """Title of the random columns that every method is compared with; empty if absent."""
        return self.study.title_of(RANDOM) or ""

    def _row(self, choice: MethodChoice, kind: str, ranks: Mapping[str, float]) -> BoardRow:
        cells = [self.cells[data, choice.title] for data in self.kinds[kind]]
        scored = [cell for cell in cells if cell.gain is not None]
        with_scale = [cell for cell in cells if cell.data in self.with_scale]
        worst = min(scored, key=lambda cell: cell.gain or 0.0, default=None)
        times = [cell.seconds for cell in cells if cell.seconds is not None]
        return BoardRow(
            method=choice.title,
            told=told(choice, self.tuning),
            is_baseline=choice.title in self.study.baselines,
            scaled=fmean(cell.scaled or 0.0 for cell in with_scale) if with_scale else None,
            means={
                measure: fmean(values)
                for measure in self.measures
                if (values := [c.means[measure] for c in cells if measure in c.means])
            },
            above_random={
                m: self._ahead(choice.title, kind, m) for m in self.measures if m != STABILITY
            },
            n_sets=len(scored),
            worst=None if worst is None else (worst.data, worst.gain or 0.0),
            average_rank=ranks.get(choice.title),
            seconds=median(times) if times else None,
        )

    def _gains(self, data: str) -> dict[str, float | None]:
        return {m: self._gain(data, m, "acc") for m in self.comparison.methods}

    def _gain(self, data: str, method: str, measure: str) -> float | None:
        pair = self.comparison.paired_means(data, method, self.random, measure)
        # With six decimals, so that means that differ by rounding alone are the same.
        return None if pair is None else round(pair[0] - pair[1], 6)

    def _ahead(self, method: str, kind: str, measure: str) -> int:
        gains = [self._gain(data, method, measure) for data in self.kinds[kind]]
        return sum(gain is not None and gain > 0 for gain in gains)

    def _means(self, data: str, method: str) -> dict[str, float]:
        taken = [m for m in self.measures if self._is_taken(data, m)]
        curves = {m: self.comparison.curve(data, method, m) for m in taken}
        return {m: fmean(curve.values()) for m, curve in curves.items() if curve}

    def _is_taken(self, data: str, measure: str) -> bool:
        """Whether a measure is taken at some k; all features have it everywhere."""
        metrics = {metric.name: metric.ks for metric in self.study.run.spec.metrics}
        return measure not in metrics or any(
            k in metrics[measure] for k in self.comparison.ks[data]
        )

    def _reason(self, data: str, method: str) -> str:
        scores = [self.comparison.score(data, method, k) for k in self.comparison.ks[data]]
        if not any(scores):
            reduction = self.study.run.spec.methods_by_title[method].reduction_for(data)
            return "" if reduction is None else reduction.reason
        bad = [score for score in scores if score is not None and score.status != "ok"]
        return f"{bad[0].status}: {bad[0].reason}" if bad else ""


def leaderboards(study: StudyResults) -> tuple[Leaderboard, ...]:
    """Default settings, and tuned with labels if any method has a grid."""
    has_grid = any(choice.grid for choice in study.run.spec.methods)
    return tuple(Leaderboard(t, study) for t in ("default", "tuned")[: 1 + has_grid])


def told(choice: MethodChoice, tuning: str) -> str:
    """What a method has to be told: nothing, the number of classes, or the classes themselves."""
    if tuning == "tuned" and choice.grid:
        return "the classes, to tune it"
    settings = {**choice.fixed, **(choice.default or {})}
    return "the number of classes" if mentions_classes(settings) else ""


def board_rows(boards: Sequence[Leaderboard]) -> list[Row]:
    """All boards as a table: a row for each tuning, kind and method."""
    rows = []
    for board, kind in ((b, k) for b in boards for k in b.kinds):
        for place, row in enumerate(board.rows(kind), start=1):
            rows.append(
                {
                    "tuning": board.tuning,
                    "kind": kind,
                    "place": place,
                    "method": row.method,
                    "told": row.told,
                    "scaled": _rounded(row.scaled),
                    **{m: _rounded(row.means.get(m)) for m in boards[0].measures},
                    "sets": row.n_sets,
                    "sets_of_kind": len(board.kinds[kind]),
                    **{
                        f"above_random_{m}": row.above_random.get(m)
                        for m in boards[0].measures
                        if m != STABILITY
                    },
                    "worst_set": None if row.worst is None else row.worst[0],
                    "worst_gain": None if row.worst is None else _rounded(row.worst[1]),
                    "average_rank": _rounded(row.average_rank),
                }
            )
    return rows


def set_rows(boards: Sequence[Leaderboard]) -> list[Row]:
    """Every method on every data set; times are in timing.csv."""
    return [
        {
            "tuning": board.tuning,
            "data": data,
            "method": method,
            **{m: _rounded(board.cells[data, method].means.get(m)) for m in boards[0].measures},
            "gain": _rounded(board.cells[data, method].gain),
            "scaled": _rounded(board.cells[data, method].scaled),
            "reason": board.cells[data, method].reason,
        }
        for board in boards
        for data, method in product(board.comparison.data, board.comparison.methods)
    ]


def _seconds_of_fits(timing: Sequence[TimingRow], tuning: str) -> dict[tuple[str, str], float]:
    # A method without a grid has one setting, which stands in both comparisons.
    roles = ("default", "draw") if tuning == "default" else ("default", "draw", "grid")
    found: dict[tuple[str, str], float] = {}
    for role in roles:
        for row in timing:
            if row.role == role and row.fits:
                found[row.data, row.method] = row.fit_seconds / row.fits
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
