"""What the paper says about gamma, the number of components m, and p."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keepers.exceptions import shorten
from keepers.studies.formatting import points
from keepers.studies.paper_claims.claim import (
    ClaimList,
    Finding,
    UntestableError,
    in_both_measures,
    require_finished,
)
from keepers.studies.results import StudyResults
from keepers.studies.scores import MEASURES, Measure, as_text, entry_curve, sweep_scores
from keepers.studies.specification import COMPARISON

SMALL = 0.05
CHANGE = 0.01
IMM = "Imm40"
SRBCT = "SRBCTML"
_SENSITIVITY = "Parameter sensitivity"
_POWER = "Effect of p"
_SMALL_RULE = (
    f"At each k the range (largest minus smallest) over the values; small is a mean over k of at "
    f"most {100 * SMALL:.0f} points, in both measures."
)

Curves = Mapping[Any, Mapping[int, float]]

SENSITIVITY = ClaimList()


@SENSITIVITY.add(
    "gamma",
    "On Imm40 SPCAFS is not sensitive to gamma: small fluctuations from 10⁻⁶ to 10⁶.",
    _SENSITIVITY,
    _SMALL_RULE,
)
def _gamma_on_imm(study: StudyResults) -> Finding:
    return _insensitive(study, "gamma", IMM)


@SENSITIVITY.add(
    "gamma-elsewhere",
    "The other data sets show the same insensitivity to gamma.",
    _SENSITIVITY,
    _SMALL_RULE + " It must hold on every data set but Imm40.",
)
def _gamma_elsewhere(study: StudyResults) -> Finding:
    if study.own is None:
        raise UntestableError("The study lacks SPCAFS.")
    require_finished(study, study.tuned.data)
    ranges: dict[str, list[float]] = {}
    for data in study.tuned.data:
        curves = [_grid_curves(study, study.own, data, measure) for measure in MEASURES]
        if data != IMM and all(len(curve) >= 2 for curve in curves):
            ranges[data] = [_mean_range(curve) for curve in curves]
    if not ranges:
        raise UntestableError("No other data set has SPCAFS at two or more gammas.")
    numbers = tuple(
        f"{data}: range of ACC {100 * acc:.1f}, of NMI {100 * nmi:.1f} points on average"
        for data, (acc, nmi) in ranges.items()
    )
    small = all(max(pair) <= SMALL for pair in ranges.values())
    return small, numbers


@SENSITIVITY.add(
    "components",
    "On Imm40, at gamma = 10⁴, the number of components from 10 to 70 makes no large difference.",
    _SENSITIVITY,
    _SMALL_RULE,
)
def _components(study: StudyResults) -> Finding:
    holds, numbers = _insensitive(study, "components", IMM)
    other = "components at the default gamma"
    curves = [_sweep(study, other, IMM, measure) for measure in MEASURES]
    if any(curve is None for curve in curves):
        return holds, numbers
    acc, nmi = (100 * _mean_range(curve) for curve in curves if curve)
    more = f"At the default gamma instead: ACC {acc:.1f}, NMI {nmi:.1f} points on average"
    return holds, (*numbers, more)


def _insensitive(study: StudyResults, sweep: str, data: str) -> Finding:
    def judge(measure: Measure) -> tuple[bool, str]:
        curves = _sweep(study, sweep, data, measure)
        if curves is None:
            raise UntestableError(f"The sweep {shorten(sweep)} on {data} is not there in full.")
        ranges = _ranges(curves)
        mean = float(np.mean(list(ranges.values())))
        widest = max(ranges, key=lambda k: ranges[k])
        return mean <= SMALL, (
            f"{measure.upper()}: range {100 * mean:.1f} points on "
            f"average, {100 * ranges[widest]:.1f} at worst (k = {widest})"
        )

    return in_both_measures(judge)


@SENSITIVITY.add(
    "power-imm",
    "On Imm40 the selection gets worse as p falls from 1 to 0.1.",
    _POWER,
    "Mean over k, gamma tuned for each p and k: at least a point lower at p = 0.1 than at "
    "p = 1, and no p between them more than a point above p = 1, in both measures.",
)
def _power_on_imm(study: StudyResults) -> Finding:

    def worse(by_power: dict[float, float]) -> bool:
        between = [value for p, value in by_power.items() if 0.1 < p < 1]
        highest = max(between, default=by_power[1.0])
        return by_power[1.0] - by_power[0.1] >= CHANGE and highest - by_power[1.0] <= CHANGE

    return _power(study, IMM, 0.1, worse)


@SENSITIVITY.add(
    "power-srbct",
    "On SRBCTML the selection first gets better and then worse as p falls from 1 to 0.01.",
    _POWER,
    "Mean over k, gamma tuned for each p and k: some p between is at least a point above both "
    "p = 1 and p = 0.01, in both measures.",
)
def _power_on_srbct(study: StudyResults) -> Finding:

    def bump(by_power: dict[float, float]) -> bool:
        between = [value for p, value in by_power.items() if 0.01 < p < 1]
        ends = max(by_power[0.01], by_power[1.0])
        return max(between, default=ends) - ends >= CHANGE

    return _power(study, SRBCT, 0.01, bump)


def _power(
    study: StudyResults, data: str, lowest: float, test: Callable[[dict[float, float]], bool]
) -> Finding:
    def judge(measure: Measure) -> tuple[bool, str]:
        curves = _sweep(study, "power", data, measure)
        if curves is None or not {lowest, 1.0} <= {float(p) for p in curves}:
            raise UntestableError(f"The sweep 'power' on {data} is not there in full.")
        by_power = {
            float(p): float(np.mean(list(curve.values())))
            for p, curve in curves.items()
            if float(p) >= lowest
        }
        best = max(by_power, key=lambda p: by_power[p])
        return test(by_power), (
            f"{measure.upper()}: {by_power[1.0]:.3f} at p = 1, {by_power[lowest]:.3f} at "
            f"p = {lowest:g} ({points(by_power[lowest] - by_power[1.0])} points); best "
            f"{by_power[best]:.3f} at p = {best:g}"
        )

    return in_both_measures(judge)


def _sweep(study: StudyResults, name: str, data: str, measure: Measure) -> Curves | None:
    """Curves of a sweep; None unless all its values were judged at every k."""
    sweep = next((s for s in study.run.spec.sweeps if s.name == name), None)
    if sweep is None or data not in sweep.data or not sweep.judge:
        return None
    mine = [e for e in study.run.entries if (e.section, e.data) == (name, data)]
    if any(study.run.outcome(entry).status == "missing" for entry in mine):
        return None
    curves = sweep_scores(study.run, name, data, measure)
    whole = len(curves) == len(sweep.values) and len(curves) >= 2
    same_ks = len({tuple(curve) for curve in curves.values()}) == 1
    return curves if whole and same_ks else None


def _grid_curves(
    study: StudyResults, method: str, data: str, measure: Measure
) -> dict[str, dict[int, float]]:
    """The measure against k at every grid point of the comparison."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for entry in study.run.entries:
        place = (entry.section, entry.data, entry.method, entry.role)
        if place == (COMPARISON, data, method, "grid"):
            found[as_text(entry.params)] |= entry_curve(study.run, entry, measure)
    return dict(found)


def _ranges(curves: Curves) -> dict[int, float]:
    """At each k that every curve has: largest minus smallest value."""
    shared = set.intersection(*(set(curve) for curve in curves.values()))
    return {k: float(np.ptp([curve[k] for curve in curves.values()])) for k in sorted(shared)}


def _mean_range(curves: Curves) -> float:
    return float(np.mean(list(_ranges(curves).values())))
