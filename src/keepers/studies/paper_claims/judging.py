"""The claims of a paper, one by one, held against a study."""

from collections.abc import Callable
from dataclasses import dataclass

from keepers.studies.paper_claims.algorithm import algorithm_claims
from keepers.studies.paper_claims.clustering import clustering_claims
from keepers.studies.paper_claims.sensitivity import settings_claims
from keepers.studies.results import Claim, Evidence, Verdict
from keepers.studies.scores import FLOORS, Comparison, Measure, method_choices

__all__ = ["Claim", "Evidence", "Standing", "Verdict", "judge_claims", "standings"]


def _spcafs(evidence: Evidence) -> list[Claim]:
    return [
        *clustering_claims(evidence),
        *settings_claims(evidence),
        *algorithm_claims(evidence),
    ]


_LISTS: dict[str, Callable[[Evidence], list[Claim]]] = {"spcafs": _spcafs}


def judge_claims(evidence: Evidence) -> list[Claim]:
    """Every claim of the list that the specification names; none if it names none."""
    judge = _LISTS.get(evidence.run.spec.claims or "")
    return [] if judge is None else judge(evidence)


@dataclass(frozen=True)
class Standing:
    """How often a method does better than a floor: our own finding, not a claim of the paper."""

    method: str
    floor: str
    tuning: str
    measure: Measure
    better: int
    data_sets: int
    """On how many data sets both have a score."""
    mean_gain: float
    """Mean over these data sets of the difference of the means over k."""


def standings(evidence: Evidence) -> list[Standing]:
    """Each method against Random and Variance, tuned and not, where both have scores."""
    choices = method_choices(evidence.run)
    floors = [t for t, m in choices.items() if m.name in FLOORS[:2]]
    methods = [t for t, m in choices.items() if m.name not in FLOORS]
    found = [
        _standing(method, floor, tuning, measure, comparison)
        for tuning, comparison in (("tuned", evidence.tuned), ("default", evidence.default))
        for measure in ("acc", "nmi")
        for method in methods
        for floor in floors
    ]
    return [standing for standing in found if standing is not None]


def _standing(
    method: str, floor: str, tuning: str, measure: Measure, comparison: Comparison
) -> Standing | None:
    pairs = [comparison.paired_means(d, method, floor, measure) for d in comparison.data]
    gains = [pair[0] - pair[1] for pair in pairs if pair is not None]
    if not gains:
        return None
    better = sum(gain > 0 for gain in gains)
    return Standing(method, floor, tuning, measure, better, len(gains), sum(gains) / len(gains))
