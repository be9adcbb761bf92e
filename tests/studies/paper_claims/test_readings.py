"""The matrix of claims: verdicts by reading, what depends on it, and where most holds."""

from keepers.studies.paper_claims import best_reading, claims_by_reading, holding_by_reading
from keepers.studies.results import StudyResults
from studies.made_up_study import study

CONTENT = {
    "ks": [10, 50],
    "claims": "spcafs",
    "data": [{"source": "Imm40"}],
    "methods": [
        {"name": "SPCAFS", "grid": {"gamma": [1.0, 2.0]}, "default": {}},
        {"name": "MCFS", "default": {}},
    ],
    "sweeps": [
        {
            "name": "gamma",
            "method": "SPCAFS",
            "data": ["Imm40"],
            "vary": "gamma",
            "values": [1.0, 2.0],
        }
    ],
}


def results(spread, readings=None):
    """SPCAFS whose ACC and NMI differ by ``spread`` between two values of gamma."""

    def judge(entry, k):
        value = 0.5 + (spread if entry.params.get("gamma") == 2.0 else 0.0)
        value = 0.9 if entry.method == "MCFS" else value
        return value, value

    return StudyResults(study(CONTENT, judge), readings=readings or {})


def test_a_claim_that_changes_with_the_reading_is_named():
    whole = results(0.2, {"small values": results(0.01)})
    by_id = {claim.id: claim for claim in claims_by_reading(whole)}
    assert by_id["gamma"].verdicts == {
        "this study": "does not hold here",
        "small values": "holds",
    }
    assert by_id["gamma"].depends
    assert by_id["absolute"].verdicts["small values"] == "cannot be tested"
    assert not by_id["absolute"].depends


def test_the_reading_under_which_most_holds_is_said():
    claims = claims_by_reading(results(0.2, {"small values": results(0.01)}))
    counts = holding_by_reading(claims)
    assert counts["small values"] == counts["this study"] + 1
    assert best_reading(claims) == (
        f"Most of the paper holds under “small values”: {counts['small values']} of "
        f"{len(claims)} claims."
    )


def test_without_readings_there_is_no_matrix():
    assert claims_by_reading(results(0.1)) == []
    assert best_reading([]) == ""
