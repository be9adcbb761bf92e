"""A published claim held against a study, and what a judge of claims may look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from keepers.studies.cost import GrowthRow, TimingRow, growth_rows, timing
from keepers.studies.plan import COMPARISON
from keepers.studies.rank_tests import RankTest, compare_ranks
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    FLOORS,
    MEASURES,
    Comparison,
    Measure,
    default,
    method_choices,
    tidy_rows,
    tuned,
)

__all__ = ["Claim", "Evidence", "Statement", "Verdict", "points", "untestable", "verdict_of"]

Verdict = Literal["holds", "does not hold here", "cannot be tested"]


class Statement(NamedTuple):
    """The part of a claim that no number changes."""

    id: str
    claim: str
    where: str
    rule: str


@dataclass(frozen=True)
class Claim:
    """What was claimed, where, how it is decided here, and what came out."""

    id: str
    claim: str
    where: str
    rule: str
    """How the verdict follows from the numbers."""
    verdict: Verdict
    numbers: tuple[str, ...]
    """The numbers that decide, the deciding one first."""


@dataclass(frozen=True)
class Evidence:
    """A study with the tables that claims are decided on, each made once."""

    run: StudyRun
    subject: str = "SPCAFS"
    """Selector that the claims are about."""

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Every entry at every k."""
        return tidy_rows(self.run)

    @cached_property
    def tuned(self) -> Comparison:
        """Best grid points, chosen with labels."""
        return tuned(self.run)

    @cached_property
    def default(self) -> Comparison:
        """Rows that nobody tuned."""
        return default(self.run)

    @cached_property
    def ranks(self) -> dict[tuple[str, Measure], RankTest]:
        """The four rank tests, by "tuned" or "default" and by measure."""
        return {
            (tuning, measure): compare_ranks(comparison, measure)
            for measure in MEASURES
            for tuning, comparison in (("tuned", self.tuned), ("default", self.default))
        }

    @cached_property
    def timing(self) -> list[TimingRow]:
        """Seconds by data set, method and role."""
        return timing(self.run)

    @cached_property
    def growth(self) -> list[GrowthRow]:
        """Exponents of the time of a fit."""
        return growth_rows(self.run)

    @cached_property
    def own(self) -> str | None:
        """Name in the study of the method that the claims are about."""
        return self.named(self.subject)

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """Every other method that is not a floor."""
        choices = method_choices(self.run)
        return tuple(t for t, m in choices.items() if m.name not in (self.subject, *FLOORS))

    def named(self, selector: str) -> str | None:
        """Name in the study of the first use of a selector."""
        choices = method_choices(self.run)
        return next((title for title, m in choices.items() if m.name == selector), None)

    def unfinished(self, data: Sequence[str]) -> str:
        """Those data sets on which a fit of the comparison has not run yet, in one sentence."""
        waiting = {
            entry.data
            for entry in self.run.entries
            if entry.section == COMPARISON and entry.task.key not in self.run.outcomes
        }
        names = ", ".join(name for name in data if name in waiting)
        return f"The comparison is not finished on {names}." if names else ""

    def gain(
        self, data: str, over: str | None, measure: Measure, comparison: Comparison | None = None
    ) -> float | None:
        """Mean over k of the subject minus that of another method, on the k that both have."""
        comparison = self.tuned if comparison is None else comparison
        if self.own is None or over is None or data not in comparison.data:
            return None
        means = comparison.paired_means(data, self.own, over, measure)
        return None if means is None else means[0] - means[1]


def points(difference: float) -> str:
    """A difference of shares as percentage points, with its sign.

    Examples
    --------
    >>> points(0.0512), points(-0.2)
    ('+5.1', '−20.0')
    """
    text = f"{100 * difference:+.1f}"
    return text.replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def verdict_of(holds: bool) -> Verdict:
    """One of the two verdicts of a claim that can be tested."""
    return "holds" if holds else "does not hold here"


def untestable(said: Statement, missing: str) -> Claim:
    """A claim for which this study lacks something."""
    return Claim(*said, "cannot be tested", (missing,))
