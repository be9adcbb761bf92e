"""Every figure that a study has the numbers for."""

from keepers.reporting.inline_svg import clean_style
from keepers.studies.diagrams import critical_differences, time_split
from keepers.studies.drawing import STYLE, Picture
from keepers.studies.palette import looks_of
from keepers.studies.paper_claims.algorithm import descents
from keepers.studies.paper_claims.judging import Evidence
from keepers.studies.rank_tests import RankTest
from keepers.studies.runner import StudyRun
from keepers.studies.scores import MEASURES, sweep_scores
from keepers.studies.study_figures import against_k, descent_curves, growth_curves, sweep_curves

__all__ = ["draw_all", "rank_tests"]


def draw_all(evidence: Evidence) -> dict[str, Picture]:
    """The figures by name; one that has nothing to show is not there."""
    with clean_style(STYLE):
        return {picture.name: picture for picture in _pictures(evidence)}


def _pictures(evidence: Evidence) -> list[Picture]:
    run, best, untuned = evidence.run, evidence.tuned, evidence.default
    looks = looks_of(run.spec.methods)
    pictures = []
    for tuning, comparison in (("tuned", best), ("default", untuned)):
        for measure in MEASURES:
            if any(score.status == "ok" for score in comparison.scores.values()):
                label = f"{measure.upper()} against the number of features, {tuning}"
                name = f"{measure}-{tuning}"
                pictures.append(against_k(comparison, measure, looks, name, label))
    tests = {t: test for t, test in rank_tests(evidence).items() if not test.not_tested}
    if tests:
        pictures.append(critical_differences(tests, looks))
    pictures += _sweeps(run)
    runs = descents(run)
    if runs:
        pictures.append(descent_curves(runs))
    if any(seconds for row in evidence.growth for _, seconds in row.in_samples.seconds):
        pictures.append(growth_curves(evidence.growth, looks))
    if any(row.role in ("grid", "draw") for row in evidence.timing):
        pictures.append(time_split(evidence.timing, list(run.tables), list(looks)))
    return pictures


def rank_tests(evidence: Evidence) -> dict[str, RankTest]:
    """The four tests of a study by title."""
    return {f"{m.upper()}, {tuning}": test for (tuning, m), test in evidence.ranks.items()}


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
