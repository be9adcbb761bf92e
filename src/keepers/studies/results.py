"""A study with every table that its report, its claims and its files need, each made once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from keepers.studies.cost import GrowthRow, TimingRow, growth_rows, timing_rows
from keepers.studies.rank_tests import RankTest, compare_ranks
from keepers.studies.runner import StudyRun
from keepers.studies.scores import (
    BASELINES,
    MEASURES,
    RANDOM,
    VARIANCE,
    Comparison,
    Measure,
    default_scores,
    tidy_rows,
    tuned_scores,
)


@dataclass(frozen=True)
class StudyResults:
    """The outcomes of a study and the tables made of them."""

    run: StudyRun
    subject: str = "SPCAFS"
    """Class of the method that the claims are about."""
    readings: Mapping[str, "StudyResults"] = field(default_factory=dict, hash=False)
    """The same study with the values read in other ways, by the name of each."""

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Every entry at every k."""
        return tidy_rows(self.run)

    @cached_property
    def tuned(self) -> Comparison:
        """The best grid points, chosen with labels."""
        return tuned_scores(self.run)

    @cached_property
    def default(self) -> Comparison:
        """The scores of default settings."""
        return default_scores(self.run)

    @property
    def by_tuning(self) -> tuple[tuple[str, Comparison], tuple[str, Comparison]]:
        """Both comparisons with their names."""
        return ("tuned", self.tuned), ("default", self.default)

    @cached_property
    def ranks(self) -> dict[tuple[str, Measure], RankTest]:
        """The four rank tests, by "tuned" or "default" and by measure."""
        return {
            (tuning, measure): compare_ranks(comparison, measure)
            for measure in MEASURES
            for tuning, comparison in self.by_tuning
        }

    @property
    def rank_tests(self) -> dict[str, RankTest]:
        """The four rank tests by title."""
        return {f"{m.upper()}, {tuning}": test for (tuning, m), test in self.ranks.items()}

    @cached_property
    def timing(self) -> list[TimingRow]:
        """Seconds by data set, method and role."""
        return timing_rows(self.run)

    @cached_property
    def growth(self) -> list[GrowthRow]:
        """Exponents of the time of a fit."""
        return growth_rows(self.run)

    @cached_property
    def own(self) -> str | None:
        """Title of the method that the claims are about."""
        return self.title_of(self.subject)

    @cached_property
    def baselines(self) -> tuple[str, ...]:
        """Titles of the baselines."""
        return tuple(m.title for m in self.run.spec.methods if m.name in BASELINES)

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """Every other method that is not a baseline."""
        methods = self.run.spec.methods
        return tuple(m.title for m in methods if m.name not in (self.subject, *BASELINES))

    def title_of(self, selector: str) -> str | None:
        """Title of the first method of a class."""
        return next((m.title for m in self.run.spec.methods if m.name == selector), None)

    def gain(self, data: str, over: str | None, measure: Measure) -> float | None:
        """Tuned mean over k of the subject minus that of another method, on the k of both."""
        if self.own is None or over is None or data not in self.tuned.data:
            return None
        means = self.tuned.paired_means(data, self.own, over, measure)
        return None if means is None else means[0] - means[1]


@dataclass(frozen=True)
class Standing:
    """How often a method does better than a baseline; not a claim of the paper."""

    method: str
    baseline: str
    tuning: str
    measure: Measure
    better: int
    data_sets: int
    """On how many data sets both have a score."""
    mean_gain: float
    """Mean over these data sets of the difference of the means over k."""


def standings(study: StudyResults) -> list[Standing]:
    """Each method against Random and Variance, tuned and not, where both have scores."""
    choices = study.run.spec.methods
    baselines = [m.title for m in choices if m.name in (RANDOM, VARIANCE)]
    methods = [m.title for m in choices if m.name not in BASELINES]
    found = []
    for (tuning, comparison), measure, method, baseline in product(
        study.by_tuning, MEASURES, methods, baselines
    ):
        pairs = [comparison.paired_means(d, method, baseline, measure) for d in comparison.data]
        gains = [pair[0] - pair[1] for pair in pairs if pair is not None]
        if gains:
            better, mean = sum(gain > 0 for gain in gains), sum(gains) / len(gains)
            found.append(Standing(method, baseline, tuning, measure, better, len(gains), mean))
    return found
