"""The claims of the SPCAFS paper, each checked against a study by a rule of its own."""

from keepers.studies.paper_claims.algorithm import algorithm_claims
from keepers.studies.paper_claims.claim import Claim
from keepers.studies.paper_claims.clustering import clustering_claims
from keepers.studies.paper_claims.sensitivity import sensitivity_claims
from keepers.studies.results import StudyResults

__all__ = ["judge_claims"]


def judge_claims(results: StudyResults) -> list[Claim]:
    """Every claim of the list that the specification names; none if it names none."""
    if results.run.spec.claims is None:
        return []
    return [
        *clustering_claims(results),
        *sensitivity_claims(results),
        *algorithm_claims(results),
    ]
