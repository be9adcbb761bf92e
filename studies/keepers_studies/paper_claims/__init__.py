"""The claims of the SPCAFS paper, each checked against a study by a rule of its own.

The paper's grid of gamma is absolute, so grey levels from 0 to 1 and from 0 to 255 are two studies,
and the paper does not say which one it made. Every claim is therefore judged under every reading.
"""

import pandas as pd

from keepers_studies.paper_claims.algorithm import ALGORITHM
from keepers_studies.paper_claims.claim import Claim
from keepers_studies.paper_claims.clustering import CLUSTERING
from keepers_studies.paper_claims.sensitivity import SENSITIVITY
from keepers_studies.scores import StudyResults

THIS_STUDY = "this study"


def judge_claims(study: StudyResults) -> list[Claim]:
    """Every claim, in the order of the paper; none if the specification asks for none."""
    if study.spec.claims is None:
        return []
    return [claim for part in (CLUSTERING, SENSITIVITY, ALGORITHM) for claim in part.judge(study)]


def claims_by_reading(study: StudyResults) -> pd.DataFrame:
    """Every claim under every reading: id, reading, verdict, numbers; empty without readings."""
    studies = {THIS_STUDY: study, **study.readings} if study.readings else {}
    judged = zip(*(judge_claims(each) for each in studies.values()), strict=True)
    rows = [
        (claim.id, name, claim.verdict, " | ".join(claim.numbers))
        for claims in judged
        for name, claim in zip(studies, claims, strict=True)
    ]
    return pd.DataFrame(rows, columns=["id", "reading", "verdict", "numbers"])


def best_reading(claims: pd.DataFrame) -> str:
    """A sentence: the reading under which most of the claims hold; empty without readings."""
    if claims.empty:
        return ""
    counts = claims.verdict.eq("holds").groupby(claims.reading, sort=False).sum()
    names = " and ".join(f"“{name}”" for name in counts.index[counts == counts.max()])
    total = claims.id.nunique()
    return f"Most of the paper holds under {names}: {counts.max()} of {total} claims."
