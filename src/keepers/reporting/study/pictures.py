"""Every figure that a study has the numbers for."""

from keepers.evaluation.claims import Evidence
from keepers.evaluation.claims_algorithm import descents
from keepers.evaluation.cost import timing
from keepers.evaluation.ranks import RankTest, compare_ranks
from keepers.evaluation.runner import StudyRun
from keepers.evaluation.summary import (
    MEASURES,
    Comparison,
    sweep_scores,
)
from keepers.reporting.study.curves import against_k, descent_curves, growth_curves, sweep_curves
from keepers.reporting.study.diagrams import critical_differences, time_split
from keepers.reporting.study.drawing import Picture
from keepers.reporting.study.palette import looks_of

__all__ = ["draw_all", "rank_tests"]


def draw_all(evidence: Evidence) -> dict[str, Picture]:
    """The figures by name; one that has nothing to show is not there."""
    run, best, untuned = evidence.run, evidence.tuned, evidence.default
    looks = looks_of(run.spec.methods)
    pictures = []
    for tuning, comparison in (("tuned", best), ("default", untuned)):
        for measure in MEASURES:
            if any(score.status == "ok" for score in comparison.scores.values()):
                label = f"{measure.upper()} against the number of features, {tuning}"
                name = f"{measure}-{tuning}"
                pictures.append(against_k(comparison, measure, looks, name, label))
    tests = {t: test for t, test in rank_tests(best, untuned).items() if not test.not_tested}
    if tests:
        pictures.append(critical_differences(tests, looks))
    pictures += _sweeps(run)
    runs = descents(run)
    if runs:
        pictures.append(descent_curves(runs))
    if any(seconds for row in evidence.growth for _, seconds in row.in_samples.seconds):
        pictures.append(growth_curves(evidence.growth, looks))
    timed = timing(run)
    if any(row.role in ("grid", "draw") for row in timed):
        pictures.append(time_split(timed, list(run.tables), list(looks)))
    return {picture.name: picture for picture in pictures}


def rank_tests(best: Comparison, untuned: Comparison) -> dict[str, RankTest]:
    """The four tests of a study by title."""
    return {
        f"{measure.upper()}, {tuning}": compare_ranks(comparison, measure)
        for measure in MEASURES
        for tuning, comparison in (("tuned", best), ("default", untuned))
    }


def _sweeps(run: StudyRun) -> list[Picture]:
    found = []
    for sweep in run.spec.sweeps:
        if not sweep.judge:
            continue
        scores = {
            data: {measure: sweep_scores(run, sweep.name, data, measure) for measure in MEASURES}
            for data in sweep.data
        }
        scores = {data: by_measure for data, by_measure in scores.items() if by_measure["acc"]}
        if scores:
            found.append(sweep_curves(sweep, scores))
    return found
