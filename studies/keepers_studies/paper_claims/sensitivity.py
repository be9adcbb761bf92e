"""Claims about gamma, the number of components m, and p."""

from collections.abc import Callable

import pandas as pd

from keepers.exceptions import shorten
from keepers_studies.formatting import points
from keepers_studies.paper_claims.claim import (
    Finding,
    UntestableError,
    decides,
    in_both_measures,
    require_finished,
)
from keepers_studies.scores import MEASURES, StudyResults
from keepers_studies.specification import COMPARISON

SMALL = 0.05
CHANGE = 0.01
IMM = "Imm40"
SRBCT = "SRBCTML"


@decides("gamma")
def _gamma_on_imm(study: StudyResults) -> Finding:
    return _insensitive(study, "gamma", IMM)


@decides("gamma-elsewhere")
def _gamma_elsewhere(study: StudyResults) -> Finding:
    if study.own is None:
        raise UntestableError("The study lacks SPCAFS.")
    require_finished(study, study.tuned.data)
    ranges: dict[str, list[float]] = {}
    for data in study.tuned.data:
        curves = [_grid_curves(study, data, measure) for measure in MEASURES]
        if data != IMM and all(len(curve) >= 2 for curve in curves):
            ranges[data] = [_ranges(curve).mean() for curve in curves]
    if not ranges:
        raise UntestableError("No other data set has SPCAFS at two or more gammas.")
    numbers = tuple(
        f"{data}: range of ACC {100 * acc:.1f}, of NMI {100 * nmi:.1f} points on average"
        for data, (acc, nmi) in ranges.items()
    )
    small = all(max(pair) <= SMALL for pair in ranges.values())
    return small, numbers


@decides("components")
def _components(study: StudyResults) -> Finding:
    holds, numbers = _insensitive(study, "components", IMM)
    other = "components at the default gamma"
    curves = [_sweep(study, other, IMM, measure) for measure in MEASURES]
    if any(curve is None for curve in curves):
        return holds, numbers
    acc, nmi = (100 * _ranges(curve).mean() for curve in curves if curve is not None)
    more = f"At the default gamma instead: ACC {acc:.1f}, NMI {nmi:.1f} points on average"
    return holds, (*numbers, more)


def _insensitive(study: StudyResults, sweep: str, data: str) -> Finding:
    def judge(measure: str) -> tuple[bool, str]:
        curves = _sweep(study, sweep, data, measure)
        if curves is None:
            raise UntestableError(f"The sweep {shorten(sweep)} on {data} is not there in full.")
        ranges = _ranges(curves)
        return ranges.mean() <= SMALL, (
            f"{measure.upper()}: range {100 * ranges.mean():.1f} points on "
            f"average, {100 * ranges.max():.1f} at worst (k = {ranges.idxmax()})"
        )

    return in_both_measures(judge)


@decides("power-imm")
def _power_on_imm(study: StudyResults) -> Finding:

    def worse(by_power: dict[float, float]) -> bool:
        between = [value for p, value in by_power.items() if 0.1 < p < 1]
        highest = max(between, default=by_power[1.0])
        return by_power[1.0] - by_power[0.1] >= CHANGE and highest - by_power[1.0] <= CHANGE

    return _power(study, IMM, 0.1, worse)


@decides("power-srbct")
def _power_on_srbct(study: StudyResults) -> Finding:

    def bump(by_power: dict[float, float]) -> bool:
        between = [value for p, value in by_power.items() if 0.01 < p < 1]
        ends = max(by_power[0.01], by_power[1.0])
        return max(between, default=ends) - ends >= CHANGE

    return _power(study, SRBCT, 0.01, bump)


def _power(
    study: StudyResults, data: str, lowest: float, test: Callable[[dict[float, float]], bool]
) -> Finding:
    def judge(measure: str) -> tuple[bool, str]:
        curves = _sweep(study, "power", data, measure)
        if curves is None or not {lowest, 1.0} <= {float(p) for p in curves.index}:
            raise UntestableError(f"The sweep 'power' on {data} is not there in full.")
        means = curves.mean(axis=1)
        by_power = {float(p): mean for p, mean in means.items() if float(p) >= lowest}
        best = max(by_power, key=lambda p: by_power[p])
        return test(by_power), (
            f"{measure.upper()}: {by_power[1.0]:.3f} at p = 1, {by_power[lowest]:.3f} at "
            f"p = {lowest:g} ({points(by_power[lowest] - by_power[1.0])} points); best "
            f"{by_power[best]:.3f} at p = {best:g}"
        )

    return in_both_measures(judge)


def _sweep(study: StudyResults, name: str, data: str, measure: str) -> pd.DataFrame | None:
    """Curves of a sweep, values x k; None unless all its values were judged at every k."""
    sweep = next((s for s in study.spec.sweeps if s.name == name), None)
    if sweep is None or data not in sweep.data or not sweep.judge:
        return None
    mine = study.fits[(study.fits.section == name) & (study.fits.data == data)]
    curves = study.sweep(name, data, measure)
    whole = len(curves) == len(sweep.values) >= 2 and curves.notna().all(axis=None)
    return curves if whole and (mine.status != "missing").all() else None


def _grid_curves(study: StudyResults, data: str, measure: str) -> pd.DataFrame:
    """Grid points of SPCAFS in the comparison x k."""
    fits = study.fits[study.fits.section == COMPARISON]
    mine = fits[(fits.data == data) & (fits.method == study.own) & (fits.role == "grid")]
    found = mine.assign(point=mine.params.map(str)).pivot(
        index="point", columns="k", values=f"{measure}_mean"
    )
    return found.dropna(how="all")


def _ranges(curves: pd.DataFrame) -> "pd.Series[float]":
    """At each k that every curve has: largest minus smallest value."""
    shared = curves.dropna(axis=1)
    return shared.max() - shared.min()
