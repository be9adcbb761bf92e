"""What the paper says about ACC and NMI against the number of features."""

from itertools import pairwise

from keepers.studies.formatting import points
from keepers.studies.paper_claims.claim import (
    ClaimList,
    Finding,
    UntestableError,
    in_both_measures,
    require_finished,
)
from keepers.studies.results import StudyResults
from keepers.studies.scores import ALL_FEATURES, RANDOM, Measure

CLEAR = 0.02
BUMP = 0.01
PALM = "PalmData25"
IMM = "Imm40"
_WHERE = "Clustering results, "
_MARGIN_RULE = (
    "The difference of the means over k (tuned), in percentage points, rounds to {} or more."
)

CLUSTERING = ClaimList()


@CLUSTERING.add(
    "all-features",
    "Features chosen by SPCAFS cluster clearly better than all features, in ACC and NMI, on "
    "almost all data sets.",
    _WHERE + "1",
    f"A clear gain is a mean over k (tuned) at least {100 * CLEAR:.0f} points above all "
    "features; almost all is all but one at most. ACC and NMI must both pass.",
)
def _beats_all_features(study: StudyResults) -> Finding:
    baseline = study.title_of(ALL_FEATURES)

    def judge(measure: Measure) -> tuple[bool, str]:
        gains = {d: study.gain(d, baseline, measure) for d in study.tuned.data}
        known = {data: gain for data, gain in gains.items() if gain is not None}
        if len(known) < len(gains) or not known:
            missing = ", ".join(data for data in gains if data not in known) or "any data set"
            raise UntestableError(f"No scores of SPCAFS and all features on {missing}.")
        clear = sum(gain >= CLEAR for gain in known.values())
        listed = ", ".join(f"{data} {points(gain)}" for data, gain in known.items())
        text = f"{measure.upper()}: clear gain on {clear} of {len(known)} ({listed})"
        return clear >= len(known) - 1, text

    return in_both_measures(judge)


@CLUSTERING.add(
    "palm-below",
    "On PalmData25 SPCAFS stays below all features in ACC and NMI.",
    _WHERE + "1",
    "The mean over k (tuned) is below that of all features, in both measures.",
)
def _palm_below_baseline(study: StudyResults) -> Finding:
    def judge(measure: Measure) -> tuple[bool, str]:
        gain = study.gain(PALM, study.title_of(ALL_FEATURES), measure)
        if gain is None:
            raise UntestableError(f"No scores of SPCAFS and all features on {PALM}.")
        return gain < 0, f"{measure.upper()} {points(gain)} points"

    return in_both_measures(judge)


@CLUSTERING.add(
    "palm-above",
    "On PalmData25 SPCAFS is nevertheless above every other method.",
    _WHERE + "1",
    "Its mean over k (tuned) exceeds that of every other method, in both measures.",
)
def _palm_above_rivals(study: StudyResults) -> Finding:
    return _above_rivals(study, (PALM,))


def _above_rivals(study: StudyResults, names: tuple[str, ...]) -> Finding:
    require_finished(study, names)

    def judge(measure: Measure) -> tuple[bool, str]:
        losses, lost, compared = [], 0, 0
        for data in names:
            gains = {rival: study.gain(data, rival, measure) for rival in study.rivals}
            known = {rival: gain for rival, gain in gains.items() if gain is not None}
            if not known:
                raise UntestableError(f"No scores of SPCAFS and another method on {data}.")
            compared += len(known)
            lost += sum(gain <= 0 for gain in known.values())
            best = min(known, key=lambda rival: known[rival])
            if known[best] <= 0:
                losses.append(f"{data}: {best} leads by {-100 * known[best]:.1f}")
        text = f"{measure.upper()}: ahead in {compared - lost} of {compared} comparisons"
        return not losses, text + (f" (behind on {'; '.join(losses)} points)" if losses else "")

    return in_both_measures(judge)


@CLUSTERING.add(
    "palm-approaches",
    "On PalmData25 SPCAFS approaches the baseline as the number of features grows.",
    _WHERE + "1",
    "The distance to all features (tuned) is smaller at the largest k than at the smallest, "
    "and grows by at most a point from any k to the next, in both measures.",
)
def _palm_approaches(study: StudyResults) -> Finding:
    baseline, own = study.title_of(ALL_FEATURES), study.own
    if PALM not in study.tuned.data or baseline is None or own is None:
        raise UntestableError(f"The study lacks {PALM}, SPCAFS or all features.")

    def judge(measure: Measure) -> tuple[bool, str]:
        levels = study.tuned.curve(PALM, baseline, measure)  # the same at every k
        curve = study.tuned.curve(PALM, own, measure)
        if not levels or len(curve) < 2:
            raise UntestableError(f"No scores of SPCAFS and all features on {PALM}.")
        gaps = [abs(levels[k] - value) for k, value in curve.items()]
        steps = [after - before for before, after in pairwise(gaps)]
        return gaps[-1] < gaps[0] and max(steps) <= BUMP, (
            f"{measure.upper()}: {100 * gaps[0]:.1f} points away at k = {min(curve)}, "
            f"{100 * gaps[-1]:.1f} at k = {max(curve)}"
        )

    return in_both_measures(judge)


@CLUSTERING.add(
    "rise-and-fall",
    "With more features the curves of ACC and NMI in general rise first and then fall.",
    _WHERE + "2",
    "A curve (tuned) rises and falls if its highest value is at neither end and at least a "
    "point above both ends; in general is more than half of all curves, in both measures.",
)
def _curves_rise_and_fall(study: StudyResults) -> Finding:
    comparison, own = study.tuned, study.own
    require_finished(study, comparison.data)
    methods = [m for m in (own, *study.rivals) if m is not None]

    def judge(measure: Measure) -> tuple[bool, str]:
        shapes = {
            (data, method): list(curve.values())
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


@CLUSTERING.add(
    "exceeds-all",
    "SPCAFS exceeds every other method on all data sets.",
    _WHERE + "3",
    "On every data set its mean over k (tuned) exceeds that of every other method that ran "
    "there, in ACC and NMI.",
)
def _exceeds_everywhere(study: StudyResults) -> Finding:
    return _above_rivals(study, study.tuned.data)


@CLUSTERING.add(
    "imm-second",
    "On Imm40 MCFS is the second best method after SPCAFS.",
    _WHERE + "3",
    "Ordered by mean over k of ACC (tuned), SPCAFS is first and MCFS second among the methods.",
)
def _imm_second_best(study: StudyResults) -> Finding:
    require_finished(study, (IMM,))
    means = {
        method: study.tuned.mean_over_k(IMM, method, "acc", complete=False)
        for method in (study.own, *study.rivals)
        if method is not None and IMM in study.tuned.data
    }
    known = {method: mean for method, mean in means.items() if mean is not None}
    mcfs = study.title_of("MCFS")
    if study.own not in known or mcfs not in known:
        raise UntestableError(f"No scores of SPCAFS and MCFS on {IMM}.")
    order = sorted(known, key=lambda method: -known[method])
    listed = ", ".join(f"{method} {known[method]:.3f}" for method in order[:4])
    place = f"MCFS is number {order.index(mcfs) + 1} of {len(order)}"
    return order[:2] == [study.own, mcfs], (listed, place)


@CLUSTERING.add(
    "imm-acc",
    "On Imm40 SPCAFS is on average 5 percent better in ACC than MCFS.",
    _WHERE + "3",
    _MARGIN_RULE.format(5),
)
def _imm_acc_margin(study: StudyResults) -> Finding:
    return _imm_margin(study, "acc", 5)


@CLUSTERING.add(
    "imm-nmi",
    "On Imm40 SPCAFS is on average 3 percent better in NMI than MCFS.",
    _WHERE + "3",
    _MARGIN_RULE.format(3),
)
def _imm_nmi_margin(study: StudyResults) -> Finding:
    return _imm_margin(study, "nmi", 3)


def _imm_margin(study: StudyResults, measure: Measure, claimed: int) -> Finding:
    own, mcfs = study.own, study.title_of("MCFS")
    means = None
    if IMM in study.tuned.data and own is not None and mcfs is not None:
        means = study.tuned.paired_means(IMM, own, mcfs, measure)
    if means is None:
        raise UntestableError(f"No scores of SPCAFS and MCFS on {IMM}.")
    gain = means[0] - means[1]
    text = (
        f"{points(gain)} points ({means[0]:.3f} against {means[1]:.3f}, "
        f"{points(gain / means[1])} % of the latter)"
    )
    return 100 * gain >= claimed - 0.5, (text,)


@CLUSTERING.add(
    "lapscore",
    "LapScore may work well with two clusters but is likely to fail with more.",
    "Related work",
    f"With two classes its mean over k of ACC is at least {100 * CLEAR:.0f} points above "
    "Random on every such set; with more classes it is not above Random on more than half of "
    "the sets. One two-class set is weak evidence either way.",
)
def _laplacian_score(study: StudyResults) -> Finding:
    laplacian, random = study.title_of("LaplacianScore"), study.title_of(RANDOM)
    if laplacian is None or random is None:
        raise UntestableError("The study lacks LapScore or Random.")
    require_finished(study, study.tuned.data)
    gains = {
        data: pair[0] - pair[1]
        for data in study.tuned.data
        if (pair := study.tuned.paired_means(data, laplacian, random, "acc")) is not None
    }
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


@CLUSTERING.add(
    "absolute",
    "ACC and NMI have the heights shown in the paper's figures.",
    "Figures of ACC and NMI",
    "A curve would have to lie within two points of the printed one.",
)
def _absolute_figures(study: StudyResults) -> Finding:
    raise UntestableError(
        "The paper gives these numbers in plots only, and its text repeats none of them."
    )
