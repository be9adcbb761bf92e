"""Seconds and how they grow, from outcomes that are known beforehand."""

from typing import Any

import pytest

from keepers.studies.cost import growth_rows, timing_rows
from keepers.studies.runner import StudyRun
from studies.made_up_study import study
from studies.two_tables import CONTENT, SIZES, judge


@pytest.fixture(scope="module")
def run() -> StudyRun:
    return study(CONTENT, judge, sizes=SIZES, objective=lambda entry: (3.0, 2.0))


def test_seconds_are_summed_over_the_grid_and_shared(run: StudyRun) -> None:
    rows = timing_rows(run)
    (row,) = [r for r in rows if (r.data, r.method, r.role) == ("one", "SPCAFS", "grid")]
    assert (row.fits, row.fit_seconds, row.kmeans_seconds) == (3, 0.75, 2.25)
    assert row.share_of_selection == pytest.approx(0.25)
    (failed,) = [r for r in rows if (r.data, r.method) == ("one", "RNE")]
    assert (failed.fits, failed.unsuccessful) == (6, 3)


GROWTH = {
    **CONTENT,
    "sweeps": [],
    "growth": {
        "samples": [100, 200, 400, 800],
        "at_features": 50,
        "features": [10, 60, 100, 200, 400],
        "at_samples": 60,
    },
}


def test_growth_exponents_are_those_of_a_power_law() -> None:
    def seconds(task: Any) -> float | None:
        if task.method == "RandomScore":
            return 0.001
        if task.method == "RNE" and task.n_features >= 100:
            return None
        return 1e-4 * task.n_samples**1.5 * task.n_features**0.5

    rows = {
        row.method: row for row in growth_rows(study(GROWTH, judge, sizes=SIZES, grown=seconds))
    }
    assert rows["SPCAFS"].in_samples.exponent == pytest.approx(1.5)
    assert rows["SPCAFS"].in_features.exponent == pytest.approx(0.5)
    assert rows["SPCAFS"].printed == "O(d²n + d³)"
    assert rows["Random"].in_samples.exponent is None
    assert "too quick to tell" in rows["Random"].in_samples.remark
    assert rows["RNE"].in_features.exponent is None
    assert "100: timeout" in rows["RNE"].in_features.remark


def test_what_does_not_grow_is_no_part_of_an_exponent() -> None:
    def seconds(task: Any) -> float | None:
        grows = 1e-3 * task.n_samples if task.method == "SPCAFS" else 1e-5 * task.n_samples
        return 0.3 + grows

    longer = {**GROWTH["growth"], "samples": [100, 300, 6400, 12800, 25600]}
    spec = {**GROWTH, "growth": longer}
    run = study(spec, judge, sizes=SIZES, grown=seconds)
    rows = {row.method: row for row in growth_rows(run)}
    own = rows["SPCAFS"].in_samples
    assert own.exponent == pytest.approx(1.0, abs=0.05)  # 0.8 with all five
    assert own.remark == "2 near the time that does not grow left out"
    assert rows["RNE"].in_samples.exponent is None
    assert rows["RNE"].in_samples.remark == (
        "grows too little to tell (1.8 times from 100 to 25600)"
    )
