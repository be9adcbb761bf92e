"""A published claim, the rule that decides it, and the verdict of a study."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

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
