"""The cost of a study: seconds in selection and in k-means, and how the time of a fit grows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from keepers.studies.plan import Entry, GrowthTask, Outcome, with_version
from keepers.studies.runner import StudyRun
from keepers.studies.specification import COMPARISON, MethodChoice

PRINTED = {
    "LaplacianScore": "O(dn² + d log₂ d)",
    "MCFS": "O(d³ + n²m + d²n)",
    "UDFS": "O(d³ + n²c)",
    "EUFS": "O(dn² + nc²)",
    "DGUFS": "O(n³ + dn)",
    "SOGFS": "O(d³ + n²p + n²c)",
    "RNE": "O(dn² + d²n + d²h)",
    "SPCAFS": "O(d²n + d³)",
}
"""Cost of one iteration as the paper's Table 1 prints it."""

QUICK = 0.005
PAST = 3.0
"""A time counts from so many times the fixed time on: two thirds of it are then growth."""
GREW = 2.0
"""And from so many times the time of the smallest size on: what does not grow is in that one."""
LEAST_POINTS = 3


@dataclass(frozen=True)
class TimingRow:
    """Seconds that one method took on one data set for one role (grid, default, draw)."""

    data: str
    method: str
    role: str
    fits: int
    unsuccessful: int
    """Fits that failed or ran out of time; their seconds count as selection."""
    fit_seconds: float
    kmeans_seconds: float

    @property
    def share_of_selection(self) -> float | None:
        """Selection over selection and k-means together."""
        total = self.fit_seconds + self.kmeans_seconds
        return self.fit_seconds / total if total > 0 else None


@dataclass(frozen=True)
class Slope:
    """Exponent of the growth of a time with a size, or why there is none."""

    exponent: float | None
    remark: str = ""
    half_interval: float | None = None
    """Half the 95 % interval of the exponent, from the standard error of the line."""
    seconds: tuple[tuple[int, float | None], ...] = ()
    """Size and seconds; None where the fit failed or ran out of time."""


@dataclass(frozen=True)
class GrowthRow:
    """A row of Table 1: the printed cost and the measured growth."""

    method: str
    selector: str
    printed: str
    """Empty for a method that the paper does not list."""
    in_samples: Slope
    in_features: Slope


def timing_rows(run: StudyRun) -> list[TimingRow]:
    """Seconds of every data set, method and role of the comparison; a shared fit counts in each."""
    together: dict[tuple[str, str, str], dict[str, Entry]] = {}
    for entry in run.entries:
        if entry.section == COMPARISON and entry.task.key in run.outcomes:
            place = (entry.data, entry.method, entry.role)
            together.setdefault(place, {})[entry.task.key] = entry
    rows = []
    for place, entries in together.items():
        outcomes = [run.outcome(entry) for entry in entries.values()]
        rows.append(
            TimingRow(
                *place,
                fits=len(outcomes),
                unsuccessful=sum(o.status != "ok" for o in outcomes),
                fit_seconds=sum(o.fit_seconds for o in outcomes),
                kmeans_seconds=sum(o.kmeans_seconds for o in outcomes),
            )
        )
    return rows


def growth_rows(run: StudyRun) -> list[GrowthRow]:
    """Table 1: a row for each method that was timed, in the order of the study."""
    rows = []
    for method in run.spec.methods:
        timed = [task for task in run.growth if _is_of(task, method)]
        if not timed or run.spec.growth is None:
            continue
        at_features, at_samples = run.spec.growth.at_features, run.spec.growth.at_samples
        along_n = [t for t in timed if t.n_features == at_features]
        along_d = [t for t in timed if t.n_samples == at_samples]
        rows.append(
            GrowthRow(
                method.title,
                method.name,
                PRINTED.get(method.name, ""),
                _slope(run, [(t.n_samples, t) for t in along_n]),
                _slope(run, [(t.n_features, t) for t in along_d]),
            )
        )
    return rows


def _is_of(task: GrowthTask, method: MethodChoice) -> bool:
    return task.method == with_version(method.name) and task.params == method.fixed


def _slope(run: StudyRun, sized: Sequence[tuple[int, GrowthTask]]) -> Slope:
    sized = sorted(sized, key=lambda pair: pair[0])
    found = [(size, run.outcomes.get(task.key)) for size, task in sized]
    seconds = tuple(
        (size, o.fit_seconds if o is not None and o.status == "ok" else None) for size, o in found
    )
    gaps = _gaps(found)
    measured = [(size, t) for size, t in seconds if t is not None]
    fixed = max((o.fixed_seconds for _, o in found if o is not None), default=0.0)
    smallest = measured[0][1] if measured else 0.0
    usable = _past(measured, max(QUICK, PAST * fixed, GREW * smallest))
    if len(usable) < LEAST_POINTS:
        return Slope(None, _why_no_slope(measured, gaps), seconds=seconds)
    sizes, times = np.array(usable).T
    line = stats.linregress(np.log(sizes), np.log(times))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * line.stderr)
    left_out = len(measured) - len(usable)
    remarks = [f"{left_out} near the time that does not grow left out"] if left_out else []
    remark = "; ".join([*remarks, *([gaps] if gaps else [])])
    return Slope(float(line.slope), remark, half, seconds)


def _why_no_slope(measured: Sequence[tuple[int, float]], gaps: str) -> str:
    if len(measured) < LEAST_POINTS:
        return gaps or "too few sizes"
    longest = max(seconds for _, seconds in measured)
    if longest < LEAST_POINTS * QUICK:
        return f"too quick to tell (at most {1000 * longest:.1f} ms)"
    (first, short), (last, long) = measured[0], measured[-1]
    return f"grows too little to tell ({long / short:.1f} times from {first} to {last})"


def _past(measured: Sequence[tuple[int, float]], limit: float) -> list[tuple[int, float]]:
    """The largest sizes, down to the last whose time is at least the limit."""
    short = [place for place, (_, t) in enumerate(measured) if t < limit]
    return list(measured[short[-1] + 1 :] if short else measured)


def _gaps(found: Iterable[tuple[int, Outcome | None]]) -> str:
    """Which sizes have no time, and why."""
    gaps = [(size, "not run yet" if o is None else o.status) for size, o in found]
    bad = [f"{size}: {status}" for size, status in gaps if status != "ok"]
    return ", ".join(bad)
