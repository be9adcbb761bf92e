"""Claims are judged in their order, and a claim that cannot be tested says what is missing."""

import pytest

from keepers.studies.paper_claims.claim import ClaimList, UntestableError, require_finished
from keepers.studies.results import StudyResults
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


def test_each_claim_has_the_verdict_of_its_function() -> None:
    claims = ClaimList()

    @claims.add("first", "It is so.", "Section 1", "By looking.")
    def first(study: StudyResults) -> tuple[bool, list[str]]:
        return True, ["1 of 1"]

    @claims.add("second", "It is not so.", "Section 2", "By looking.")
    def second(study: StudyResults) -> tuple[bool, list[str]]:
        return False, ["0 of 1"]

    @claims.add("third", "Who knows.", "Section 3", "By looking.")
    def third(study: StudyResults) -> tuple[bool, list[str]]:
        raise UntestableError("No data.")

    found = claims.judge(StudyResults(study(CONTENT, judge, sizes=SIZES)))
    assert [(claim.id, claim.verdict, claim.numbers) for claim in found] == [
        ("first", "holds", ("1 of 1",)),
        ("second", "does not hold here", ("0 of 1",)),
        ("third", "cannot be tested", ("No data.",)),
    ]


def test_a_comparison_that_has_not_finished_names_its_data_sets() -> None:
    require_finished(StudyResults(study(CONTENT, judge, sizes=SIZES)), ["one", "two"])
    part = StudyResults(study(CONTENT, judge, sizes=SIZES, done=lambda e: e.data == "one"))
    with pytest.raises(UntestableError, match=r"The comparison is not finished on two\."):
        require_finished(part, ["one", "two"])
