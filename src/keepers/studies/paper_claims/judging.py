"""All claims of the paper, judged by one study."""

from keepers.studies.paper_claims.algorithm import ALGORITHM
from keepers.studies.paper_claims.claim import Claim
from keepers.studies.paper_claims.clustering import CLUSTERING
from keepers.studies.paper_claims.sensitivity import SENSITIVITY
from keepers.studies.results import StudyResults


def judge_claims(study: StudyResults) -> list[Claim]:
    """Every claim, in the order of the paper; none if the specification asks for none."""
    if study.run.spec.claims is None:
        return []
    return [claim for part in (CLUSTERING, SENSITIVITY, ALGORITHM) for claim in part.judge(study)]
