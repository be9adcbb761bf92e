"""The claims of the SPCAFS paper, each checked against a study by a rule of its own.

The paper's grid of gamma is absolute, so grey levels from 0 to 1 and from 0 to 255 are two studies,
and the paper does not say which one it made. We judge every claim under every scaling.
"""

import pandas as pd

from keepers_studies.paper_claims import algorithm, clustering, sensitivity  # noqa: F401
from keepers_studies.paper_claims.claim import TEXTS, Claim, judge_claim
from keepers_studies.scores import StudyResults


def judge_claims(study: StudyResults) -> list[Claim]:
    """Every claim, in the order of the paper; empty unless the specification has claims."""
    return [judge_claim(id, study) for id in TEXTS] if study.spec.claims else []


def claims_by_reading(study: StudyResults) -> pd.DataFrame:
    """Every claim under every reading: id, reading, verdict, numbers; empty without readings."""
    studies = {"this study": study, **study.readings} if study.readings else {}
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
