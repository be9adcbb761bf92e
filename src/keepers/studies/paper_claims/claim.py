"""Published claims, each with the rule that decides it and the verdict of a study."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from keepers.studies.results import StudyResults
from keepers.studies.scores import MEASURES, Measure
from keepers.studies.specification import COMPARISON

Verdict = Literal["holds", "does not hold here", "cannot be tested"]
Finding = tuple[bool, Sequence[str]]
"""Whether a claim holds, and the numbers that decide, the deciding one first."""
Judge = Callable[[StudyResults], Finding]


class UntestableError(Exception):
    """The study lacks what a claim needs; the message says what."""


@dataclass(frozen=True)
class Claim:
    """What was claimed, where, how it is decided here, and the verdict."""

    id: str
    claim: str
    where: str
    rule: str
    """How the verdict follows from the numbers."""
    verdict: Verdict
    numbers: tuple[str, ...]
    """The numbers that decide, the deciding one first."""


class ClaimList:
    """Claims and the functions that judge them, in the order of the paper."""

    def __init__(self) -> None:
        self._claims: list[tuple[tuple[str, str, str, str], Judge]] = []

    def add(self, id: str, claim: str, where: str, rule: str) -> Callable[[Judge], Judge]:
        """Decorator of the function that judges this claim."""

        def register(judge: Judge) -> Judge:
            self._claims.append(((id, claim, where, rule), judge))
            return judge

        return register

    def judge(self, study: StudyResults) -> list[Claim]:
        """Every claim with its verdict."""
        return [Claim(*statement, *_decide(judge, study)) for statement, judge in self._claims]


def _decide(judge: Judge, study: StudyResults) -> tuple[Verdict, tuple[str, ...]]:
    try:
        holds, numbers = judge(study)
    except UntestableError as error:
        return "cannot be tested", (str(error),)
    return "holds" if holds else "does not hold here", tuple(numbers)


def in_both_measures(judge: Callable[[Measure], tuple[bool, str]]) -> Finding:
    """A claim about ACC and NMI, which both must pass."""
    findings = [judge(measure) for measure in MEASURES]
    return all(holds for holds, _ in findings), [text for _, text in findings]


def require_finished(study: StudyResults, data: Sequence[str]) -> None:
    """Refuse a verdict while a fit of the comparison on one of these data sets has not run."""
    run = study.run
    fits = [entry for entry in run.entries if entry.section == COMPARISON]
    missing = {entry.data for entry in fits if entry.task.key not in run.outcomes}
    names = ", ".join(name for name in data if name in missing)
    if names:
        raise UntestableError(f"The comparison is not finished on {names}.")
