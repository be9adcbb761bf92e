"""The tables of a study, made once, and how methods stand against the baselines."""

import pytest

from keepers.studies.results import StudyResults, standings
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


@pytest.fixture(scope="module")
def results() -> StudyResults:
    return StudyResults(study(CONTENT, judge, sizes=SIZES))


def test_standings_count_the_data_sets_on_which_both_have_scores(results: StudyResults) -> None:
    found = {(s.method, s.tuning): s for s in standings(results) if s.measure == "acc"}
    # SPCAFS: 0.62 and 0.615 against 0.4 at random. RNE ran on one data set: 0.42.
    spcafs, rne = found["SPCAFS", "tuned"], found["RNE", "tuned"]
    assert (spcafs.baseline, spcafs.better, spcafs.data_sets) == ("Random", 2, 2)
    assert spcafs.mean_gain == pytest.approx((0.22 + 0.215) / 2)
    assert (rne.better, rne.data_sets) == (1, 1)
    assert ("RNE", "default") not in found


def test_the_subject_and_its_rivals_are_told_apart_from_the_baselines(
    results: StudyResults,
) -> None:
    assert results.own == "SPCAFS"
    assert results.rivals == ("RNE",)
    assert results.title_of("RandomScore") == "Random"
    assert results.title_of("MCFS") is None
    assert results.gain("one", "Random", "acc") == pytest.approx(0.22)
    assert results.gain("nowhere", "Random", "acc") is None


def test_there_are_four_rank_tests_by_title(results: StudyResults) -> None:
    assert list(results.rank_tests) == ["ACC, tuned", "ACC, default", "NMI, tuned", "NMI, default"]
