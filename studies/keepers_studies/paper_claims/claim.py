"""Published claims, each with the rule that decides it and the verdict of a study."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from keepers_studies.scores import MEASURES, StudyResults
from keepers_studies.specification import COMPARISON

Verdict = Literal["holds", "does not hold here", "cannot be tested"]
Finding = tuple[bool, Sequence[str]]
"""True if the claim holds, and the numbers that decide, the deciding one first."""
Judge = Callable[[StudyResults], Finding]
TEXTS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
"""The claim, its place in the paper and the rule, by name, in the order of the paper."""
JUDGES: dict[str, Judge] = {}
"""The functions that apply the rules, by the name of the claim."""


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


def decides(id: str) -> Callable[[Judge], Judge]:
    """Decorator of the function that judges this claim of claims.toml."""

    def register(judge: Judge) -> Judge:
        JUDGES[id] = judge
        return judge

    return register


def judge_claim(id: str, study: StudyResults) -> Claim:
    """The claim with its verdict."""
    verdict: Verdict
    try:
        holds, numbers = JUDGES[id](study)
        verdict = "holds" if holds else "does not hold here"
    except UntestableError as error:
        verdict, numbers = "cannot be tested", (str(error),)
    return Claim(id, **TEXTS[id], verdict=verdict, numbers=tuple(numbers))


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
