"""The claims of the SPCAFS paper, each checked against a study by a rule of its own."""

from keepers.studies.paper_claims.judging import judge_claims
from keepers.studies.paper_claims.readings import (
    ClaimReadings,
    best_reading,
    claims_by_reading,
    holding_by_reading,
)

__all__ = [
    "ClaimReadings",
    "best_reading",
    "claims_by_reading",
    "holding_by_reading",
    "judge_claims",
]
