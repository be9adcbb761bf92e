"""Every claim under every reading of the values: what holds may depend on their scale alone.

The paper's grid of gamma is absolute, so that grey levels from 0 to 1 and from 0 to 255 are two
studies, and the paper does not say which one it made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from keepers.studies.paper_claims.claim import Claim, Verdict
from keepers.studies.paper_claims.judging import judge_claims
from keepers.studies.results import StudyResults

THIS_STUDY = "this study"


@dataclass(frozen=True)
class ClaimReadings:
    """One claim, judged under each reading."""

    id: str
    claim: str
    by_reading: dict[str, Claim] = field(hash=False)
    """By the name of the reading, that of the study itself first."""

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of each reading."""
        return {name: claim.verdict for name, claim in self.by_reading.items()}

    @property
    def depends(self) -> bool:
        """Whether it holds under one reading and not under another."""
        return {"holds", "does not hold here"} <= set(self.verdicts.values())


def claims_by_reading(study: StudyResults) -> list[ClaimReadings]:
    """All claims under all readings; none if the study has no readings or no claims."""
    if not study.readings:
        return []
    judged = {THIS_STUDY: judge_claims(study)}
    judged |= {name: judge_claims(reading) for name, reading in study.readings.items()}
    rows = zip(*judged.values(), strict=True)
    return [
        ClaimReadings(row[0].id, row[0].claim, dict(zip(judged, row, strict=True))) for row in rows
    ]


def holding_by_reading(claims: Sequence[ClaimReadings]) -> dict[str, int]:
    """How many claims hold under each reading."""
    names = list(claims[0].by_reading) if claims else []
    return {name: sum(c.verdicts[name] == "holds" for c in claims) for name in names}


def best_reading(claims: Sequence[ClaimReadings]) -> str:
    """A sentence: under which reading most of the claims hold; empty without readings."""
    counts = holding_by_reading(claims)
    if not counts:
        return ""
    most = max(counts.values())
    names = [f"“{name}”" for name, count in counts.items() if count == most]
    listed = ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
    return f"Most of the paper holds under {listed}: {most} of {len(claims)} claims."
