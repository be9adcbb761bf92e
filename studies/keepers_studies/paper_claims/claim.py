"""Published claims, each with the rule that decides it and the verdict of a study."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from keepers_studies.scores import MEASURES, StudyResults
from keepers_studies.specification import COMPARISON

Verdict = Literal["holds", "does not hold here", "cannot be tested"]
Finding = tuple[bool, Sequence[str]]
"""Whether a claim holds, and the numbers that decide, the deciding one first."""
Judge = Callable[[StudyResults], Finding]
TEXTS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
"""What is claimed, where, and the rule, by the name of the claim."""


class UntestableError(Exception):
    """The study lacks what a claim needs; the message names it."""


@dataclass(frozen=True)
class Claim:
    """A claim, its place in the paper, the rule that decides it, and the verdict."""

    id: str
    claim: str
    where: str
    rule: str
    verdict: Verdict
    numbers: tuple[str, ...]
    """The numbers that decide, the deciding one first."""


class ClaimList:
    """Functions that judge the claims in claims.toml, in the order of the paper."""

    def __init__(self) -> None:
        self._judges: dict[str, Judge] = {}

    def add(self, id: str) -> Callable[[Judge], Judge]:
        """Decorator of the function that judges this claim."""

        def register(judge: Judge) -> Judge:
            self._judges[id] = judge
            return judge

        return register

    def judge(self, study: StudyResults) -> list[Claim]:
        """Every claim with its verdict."""
        return [
            Claim(id, **TEXTS[id], **_decide(judge, study)) for id, judge in self._judges.items()
        ]


def _decide(judge: Judge, study: StudyResults) -> dict[str, Any]:
    try:
        holds, numbers = judge(study)
    except UntestableError as error:
        return {"verdict": "cannot be tested", "numbers": (str(error),)}
    return {"verdict": "holds" if holds else "does not hold here", "numbers": tuple(numbers)}


def in_both_measures(judge: Callable[[str], tuple[bool, str]]) -> Finding:
    """A claim about ACC and NMI, which both must pass."""
    findings = [judge(measure) for measure in MEASURES]
    return all(holds for holds, _ in findings), [text for _, text in findings]


def require_finished(study: StudyResults, data: Sequence[str]) -> None:
    """Raise while a fit of the comparison on one of these data sets has not run."""
    fits = study.fits[study.fits.section == COMPARISON]
    missing = set(fits.data[fits.status == "missing"])
    names = ", ".join(name for name in data if name in missing)
    if names:
        raise UntestableError(f"The comparison is not finished on {names}.")
