"""Claims about ACC and NMI against the number of features."""

from itertools import pairwise

import numpy as np
import pandas as pd

from keepers_studies.formatting import points
from keepers_studies.paper_claims.claim import (
    Finding,
    UntestableError,
    decides,
    in_both_measures,
    require_finished,
)
from keepers_studies.scores import ALL_FEATURES, RANDOM, StudyResults

CLEAR = 0.02
BUMP = 0.01
PALM = "PalmData25"
IMM = "Imm40"


@decides("all-features")
def _beats_all_features(study: StudyResults) -> Finding:

    def judge(measure: str) -> tuple[bool, str]:
        gains = _gains(study, study.title_of(ALL_FEATURES), measure)
        if gains.isna().any():
            missing = ", ".join(gains.index[gains.isna()])
            raise UntestableError(f"No scores of SPCAFS and all features on {missing}.")
        clear = (gains >= CLEAR).sum()
        listed = ", ".join(f"{data} {points(gain)}" for data, gain in gains.items())
        text = f"{measure.upper()}: clear gain on {clear} of {len(gains)} ({listed})"
        return clear >= len(gains) - 1, text

    return in_both_measures(judge)


def _gains(study: StudyResults, over: str | None, measure: str) -> "pd.Series[float]":
    """Tuned mean over k of SPCAFS minus that of another method, by data set."""
    gains = study.tuned.gains(over, measure)
    if study.own not in gains.index:
        return pd.Series(np.nan, index=gains.columns)
    return gains.loc[study.own]


@decides("palm-below")
def _palm_below_baseline(study: StudyResults) -> Finding:
    def judge(measure: str) -> tuple[bool, str]:
        gain = _gains(study, study.title_of(ALL_FEATURES), measure).get(PALM, np.nan)
        if np.isnan(gain):
            raise UntestableError(f"No scores of SPCAFS and all features on {PALM}.")
        return gain < 0, f"{measure.upper()} {points(gain)} points"

    return in_both_measures(judge)


@decides("palm-above")
def _palm_above_rivals(study: StudyResults) -> Finding:
    return _above_rivals(study, (PALM,))


def _above_rivals(study: StudyResults, names: tuple[str, ...]) -> Finding:
    require_finished(study, names)

    def judge(measure: str) -> tuple[bool, str]:
        by_rival = pd.DataFrame({rival: _gains(study, rival, measure) for rival in study.rivals})
        by_rival = by_rival.reindex(names)
        losses = []
        for data, gains in by_rival.iterrows():
            if gains.isna().all():
                raise UntestableError(f"No scores of SPCAFS and another method on {data}.")
            if gains.min() <= 0:
                losses.append(f"{data}: {gains.idxmin()} leads by {-100 * gains.min():.1f}")
        compared, lost = by_rival.notna().sum().sum(), (by_rival <= 0).sum().sum()
        text = f"{measure.upper()}: ahead in {compared - lost} of {compared} comparisons"
        return not losses, text + (f" (behind on {'; '.join(losses)} points)" if losses else "")

    return in_both_measures(judge)


@decides("palm-approaches")
def _palm_approaches(study: StudyResults) -> Finding:

    def judge(measure: str) -> tuple[bool, str]:
        everything = study.title_of(ALL_FEATURES)
        levels = study.tuned.curve(PALM, everything, measure)  # the same at every k
        curve = study.tuned.curve(PALM, study.own, measure)
        if levels.empty or len(curve) < 2:
            raise UntestableError(f"No scores of SPCAFS and all features on {PALM}.")
        gaps = [abs(levels[k] - value) for k, value in curve.items()]
        steps = [after - before for before, after in pairwise(gaps)]
        return gaps[-1] < gaps[0] and max(steps) <= BUMP, (
            f"{measure.upper()}: {100 * gaps[0]:.1f} points away at k = {min(curve.index)}, "
            f"{100 * gaps[-1]:.1f} at k = {max(curve.index)}"
        )

    return in_both_measures(judge)


@decides("rise-and-fall")
def _curves_rise_and_fall(study: StudyResults) -> Finding:
    comparison, own = study.tuned, study.own
    require_finished(study, comparison.data)
    methods = [m for m in (own, *study.rivals) if m is not None]

    def judge(measure: str) -> tuple[bool, str]:
        shapes = {
            (data, method): list(curve)
            for data in comparison.data
            for method in methods
            if len(curve := comparison.curve(data, method, measure)) >= 3
        }
        lacking = [data for data in comparison.data if (data, own) not in shapes]
        if lacking:
            names = ", ".join(lacking)
            raise UntestableError(f"SPCAFS has no curve of three or more k on {names}.")
        bumps = [
            place
            for place, curve in shapes.items()
            if max(curve[1:-1]) - max(curve[0], curve[-1]) >= BUMP
        ]
        rising = sum(curve[-1] == max(curve) for curve in shapes.values())
        own_bumps = [data for data, method in bumps if method == own]
        return len(bumps) > len(shapes) / 2, (
            f"{measure.upper()}: {len(bumps)} of {len(shapes)} curves do, {rising} are highest at "
            f"the largest k; SPCAFS: {', '.join(own_bumps) or 'none'}"
        )

    return in_both_measures(judge)


@decides("exceeds-all")
def _exceeds_everywhere(study: StudyResults) -> Finding:
    return _above_rivals(study, study.tuned.data)


@decides("imm-second")
def _imm_second_best(study: StudyResults) -> Finding:
    require_finished(study, (IMM,))
    mcfs = study.title_of("MCFS")
    if IMM not in study.tuned.data:
        raise UntestableError(f"No scores of SPCAFS and MCFS on {IMM}.")
    means = study.tuned.means("acc")[IMM].reindex([study.own, *study.rivals]).dropna()
    if study.own not in means.index or mcfs not in means.index:
        raise UntestableError(f"No scores of SPCAFS and MCFS on {IMM}.")
    means = means.sort_values(ascending=False, kind="stable")
    order = list(means.index)
    listed = ", ".join(f"{method} {mean:.3f}" for method, mean in means[:4].items())
    place = f"MCFS is number {order.index(mcfs) + 1} of {len(order)}"
    return order[:2] == [study.own, mcfs], (listed, place)


@decides("imm-acc")
def _imm_acc_margin(study: StudyResults) -> Finding:
    return _imm_margin(study, "acc", 5)


@decides("imm-nmi")
def _imm_nmi_margin(study: StudyResults) -> Finding:
    return _imm_margin(study, "nmi", 3)


def _imm_margin(study: StudyResults, measure: str, claimed: int) -> Finding:
    gain = _gains(study, study.title_of("MCFS"), measure).get(IMM, np.nan)
    if np.isnan(gain):
        raise UntestableError(f"No scores of SPCAFS and MCFS on {IMM}.")
    means = study.tuned.means(measure)[IMM]
    own, other = means[study.own], means[study.title_of("MCFS")]
    share = points(gain / other)
    text = f"{points(gain)} points ({own:.3f} against {other:.3f}, {share} % of the latter)"
    return 100 * gain >= claimed - 0.5, (text,)


@decides("lapscore")
def _laplacian_score(study: StudyResults) -> Finding:
    laplacian, random = study.title_of("LaplacianScore"), study.title_of(RANDOM)
    if laplacian is None or random is None:
        raise UntestableError("The study lacks LapScore or Random.")
    require_finished(study, study.tuned.data)
    gains = study.tuned.gains(random, "acc").loc[laplacian].dropna().to_dict()
    n_classes = {data: study.run.tables[data].n_classes for data in gains}
    two = {data: gain for data, gain in gains.items() if n_classes[data] == 2}
    more = {data: gain for data, gain in gains.items() if n_classes[data] > 2}
    if not two or not more:
        raise UntestableError("It takes a set with two classes and one with more.")
    failed = sum(gain <= 0 for gain in more.values())
    holds = min(two.values()) >= CLEAR and failed > len(more) / 2
    listed = ", ".join(
        f"{data} ({n_classes[data]} classes) {points(gain)}" for data, gain in gains.items()
    )
    text = f"Not above Random on {failed} of {len(more)} sets with more than two classes"
    return holds, (text, f"Against Random: {listed}")


@decides("absolute")
def _absolute_figures(study: StudyResults) -> Finding:
    raise UntestableError(
        "The paper gives these numbers in plots only, and its text repeats none of them."
    )
