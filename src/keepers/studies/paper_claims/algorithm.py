"""What the paper says about its algorithm: speed of convergence, descent, cost."""

from typing import NamedTuple

import numpy as np

from keepers.studies.cost import PRINTED, GrowthRow, Slope
from keepers.studies.paper_claims.claim import ClaimList, Finding, UntestableError
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun

CONVERGENCE = "convergence"
DEFAULT_SOLVER = "steps of the default solver"
AUTHORS_CAP, AUTHORS_TOLERANCE = 50, 1e-6
"""When the authors' own program ends: after so many steps, or at so small a change."""
MOST_STEPS = 30
FAST_STEPS = 10
FAST_SHARE = 0.99
ROUNDING = 1e-9
LINEAR = 1.2
CUBIC = 2.5
_TOLERANCES = {1e-4: "10⁻⁴", 1e-6: "10⁻⁶"}
ALGORITHM = ClaimList()


class Descent(NamedTuple):
    """The objective of one run of Algorithm 1."""

    data: str
    gamma: float | str
    objective: tuple[float, ...]

    @property
    def in_paper(self) -> bool:
        """Whether gamma is a number, as in the paper's grid, and not chosen from the data."""
        return not isinstance(self.gamma, str)

    @property
    def title(self) -> str:
        """Data set and gamma."""
        gamma = self.gamma if isinstance(self.gamma, str) else f"{self.gamma:g}"
        return f"{self.data}, gamma = {gamma}"


def descents(run: StudyRun) -> list[Descent]:
    """Histories of the sweep "convergence", in its order; runs without one are left out."""
    return [
        Descent(entry.data, entry.params.get("gamma", ""), tuple(outcome.objective))
        for entry in run.entries
        if entry.section == CONVERGENCE and len((outcome := run.outcome(entry)).objective) >= 2
    ]


def _descents_by_gamma(study: StudyResults) -> tuple[list[Descent], list[Descent]]:
    """Histories with a gamma of the paper's grid, of which there must be one, and the others."""
    runs = descents(study.run)
    of_paper = [run for run in runs if run.in_paper]
    if not of_paper:
        raise UntestableError("The sweep 'convergence' is not there.")
    return of_paper, [run for run in runs if not run.in_paper]


def converged_at(objective: tuple[float, ...], tolerance: float) -> int | None:
    """Step after which every relative change stays below ``tolerance``; None if none does.

    Examples
    --------
    >>> converged_at((100.0, 90.0, 89.0, 88.9999, 88.9999), 1e-4)
    3
    """
    values = np.asarray(objective)
    scale = np.maximum(np.abs(values[1:]), np.finfo(float).tiny)
    large = np.flatnonzero(np.abs(np.diff(values)) >= tolerance * scale)
    if len(large) == 0:
        return 1
    return None if large[-1] == len(values) - 2 else int(large[-1]) + 2


class Steps(NamedTuple):
    """Steps to the end of one fit: by the rule of the authors' program, and of our solver."""

    data: str
    gamma: float | str
    authors: int
    """Steps of Algorithm 1 until the objective changes by less than 1e-6; at most 50."""
    at_cap: bool
    """Whether the program would end at its 50th step without having converged."""
    ours: int | None


def steps_to_the_end(run: StudyRun) -> list[Steps]:
    """Both numbers of steps, for every data set and gamma of the sweep "convergence"."""
    ours = {
        (entry.data, entry.params.get("gamma")): run.outcome(entry).n_iter
        for entry in run.entries
        if entry.section == DEFAULT_SOLVER
    }
    found = []
    for descent in descents(run):
        changes = np.abs(np.diff(descent.objective[:AUTHORS_CAP]))
        small = np.flatnonzero(changes < AUTHORS_TOLERANCE)
        at_cap = not len(small) and len(descent.objective) >= AUTHORS_CAP
        steps = int(small[0]) + 2 if len(small) else min(len(descent.objective), AUTHORS_CAP)
        mine = ours.get((descent.data, descent.gamma))
        found.append(Steps(descent.data, descent.gamma, steps, at_cap, mine))
    return found


@ALGORITHM.add(
    "converges-fast",
    "Algorithm 1 converges very fast.",
    "Convergence study",
    f"In every run with a gamma of the paper's grid {FAST_SHARE:.0%} of the whole decrease of "
    f"the objective is made within {FAST_STEPS} steps.",
)
def _converges_fast(study: StudyResults) -> Finding:
    of_paper, others = _descents_by_gamma(study)
    steps = {run.title: _most_of_the_way(run.objective) for run in of_paper}
    slowest = max(steps, key=lambda title: steps[title])
    numbers = [f"At most {steps[slowest]} steps ({slowest}); {len(steps)} runs"]
    relative = {run.title: _most_of_the_way(run.objective) for run in others}
    if relative:
        worst = max(relative, key=lambda title: relative[title])
        numbers.append(f"With gamma relative to the data: at most {relative[worst]} ({worst})")
    return steps[slowest] <= FAST_STEPS, tuple(numbers)


def _most_of_the_way(objective: tuple[float, ...]) -> int:
    values = np.asarray(objective)
    goal = values[0] - FAST_SHARE * (values[0] - values[-1])
    return int(np.flatnonzero(values <= goal)[0]) + 1


@ALGORITHM.add(
    "thirty-steps",
    f"Algorithm 1 always converges within {MOST_STEPS} iterations.",
    "Computational complexity analysis",
    "In every run with a gamma of the paper's grid the relative change of the objective stays "
    f"below 10⁻⁴ from step {MOST_STEPS} or earlier. The paper names no threshold; 10⁻⁶ is "
    "reported beside it.",
)
def _within_thirty(study: StudyResults) -> Finding:
    of_paper, others = _descents_by_gamma(study)
    numbers = [f"Change {_slowest(of_paper, 1e-4)}; {_slowest(of_paper, 1e-6)}"]
    if others:
        relative = f"{_slowest(others, 1e-4)}; {_slowest(others, 1e-6)}"
        numbers.append(f"With gamma relative to the data: {relative}")
    steps = [converged_at(run.objective, 1e-4) for run in of_paper]
    holds = all(step is not None and step <= MOST_STEPS for step in steps)
    return holds, tuple(numbers)


def _slowest(runs: list[Descent], tolerance: float) -> str:
    found = {run: converged_at(run.objective, tolerance) for run in runs}
    limit = f"below {_TOLERANCES[tolerance]}"
    open_ends = [run for run, step in found.items() if step is None]
    if open_ends:
        run = max(open_ends, key=lambda run: len(run.objective))
        return f"{limit} not even after {len(run.objective)} steps ({run.title})"
    slowest = max(found, key=lambda run: found[run] or 0)
    return f"{limit} after at most {found[slowest]} steps ({slowest.title})"


@ALGORITHM.add(
    "descent",
    "The objective never rises from one step to the next (Theorem 2).",
    "Convergence analysis",
    "No step of Algorithm 1 as printed raises the objective by more than 10⁻⁹ of its "
    "size, which is rounding.",
)
def _never_rises(study: StudyResults) -> Finding:
    runs = descents(study.run)
    if not runs:
        raise UntestableError("The sweep 'convergence' is not there.")
    rises = {run.title: _largest_rise(run.objective) for run in runs}
    worst = max(rises, key=lambda title: rises[title])
    n_steps = sum(len(run.objective) - 1 for run in runs)
    rise = rises[worst]
    numbers = [
        f"Largest rise {rise:.1e} of its size in {n_steps} steps ({worst})"
        if rise > 0
        else f"It fell or stayed in each of {n_steps} steps of {len(runs)} runs"
    ]
    faster = _other_histories(study)
    if faster:
        rise = max(max(_largest_rise(history) for history in faster), 0.0)
        numbers.append(f"The default solver in {len(faster)} further fits: at most {rise:.1e}")
    return rises[worst] <= ROUNDING, tuple(numbers)


def _largest_rise(objective: tuple[float, ...]) -> float:
    values = np.asarray(objective)
    scale = np.maximum(np.abs(values[:-1]), np.finfo(float).tiny)
    return float(np.max(np.diff(values) / scale))


def _other_histories(study: StudyResults) -> list[tuple[float, ...]]:
    """Objectives of all other fits of the subject, each fit once."""
    found = {
        entry.task.key: study.run.outcome(entry).objective
        for entry in study.run.entries
        if entry.task.method == study.subject and entry.section != CONVERGENCE
    }
    return [history for history in found.values() if len(history) >= 2]


@ALGORITHM.add(
    "linear-in-n",
    "Of all methods only SPCAFS has a cost that is linear in the number of samples n.",
    "Table of complexities",
    f"The measured exponent in n of SPCAFS is at most {LINEAR} and that of every other method "
    "of the paper is larger, by a line through at least three sizes past the time that every fit "
    "takes. It is about these implementations, and may differ from the printed cost.",
)
def _only_linear(study: StudyResults) -> Finding:
    listed = [row for row in study.growth if row.printed]
    own = next((row for row in listed if row.selector == study.subject), None)
    rivals = [row for row in listed if row.selector != study.subject]
    known = {row.method: row.in_samples.exponent for row in rivals}
    if own is None or own.in_samples.exponent is None:
        remark = "no times were measured" if own is None else own.in_samples.remark
        raise UntestableError(f"SPCAFS: {remark}.")
    if all(exponent is None for exponent in known.values()):
        raise UntestableError("No other method has a measured exponent.")
    linear = [method for method, e in known.items() if e is not None and e <= LINEAR]
    unknown = [method for method, e in known.items() if e is None]
    numbers = [_exponents(listed, "in_samples")]
    if linear:
        numbers.append(f"Also linear: {', '.join(linear)}")
    if unknown:
        numbers.append(f"Not measurable: {', '.join(unknown)}")
    return own.in_samples.exponent <= LINEAR and not linear, tuple(numbers)


@ALGORITHM.add(
    "cubic-in-d",
    "The cost of embedded methods usually contains d³, from an inverse or an eigendecomposition.",
    "Table of complexities",
    f"The measured exponent in d is at least {CUBIC} for more than half of the methods whose "
    "printed cost contains d³. It is about these implementations: a cost that they avoid does "
    "not show.",
)
def _cubic_in_features(study: StudyResults) -> Finding:
    cubic = [selector for selector, printed in PRINTED.items() if "d³" in printed]
    listed = [row for row in study.growth if row.selector in cubic]
    exponents = [e for row in listed if (e := row.in_features.exponent) is not None]
    if not exponents:
        raise UntestableError("No such method has a measured exponent in d.")
    steep = sum(exponent >= CUBIC for exponent in exponents)
    text = f"{steep} of {len(exponents)} reach {CUBIC}"
    numbers = (text, _exponents(listed, "in_features"))
    return steep > len(exponents) / 2, numbers


def _exponents(rows: list[GrowthRow], name: str) -> str:
    return "Exponents: " + ", ".join(
        f"{row.method} {_exponent(getattr(row, name))}" for row in rows
    )


def _exponent(slope: Slope) -> str:
    if slope.exponent is None:
        return "not measurable"
    return f"{slope.exponent:.2f} ± {slope.half_interval or 0.0:.2f}"
