"""Claims about the algorithm: speed of convergence, descent, cost."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from keepers_studies.growth import PRINTED
from keepers_studies.paper_claims.claim import Finding, UntestableError, decides
from keepers_studies.runner import StudyRun
from keepers_studies.scores import StudyResults

CONVERGENCE = "convergence"
MOST_STEPS = 30
FAST_STEPS = 10
FAST_SHARE = 0.99
ROUNDING = 1e-9
LINEAR = 1.2
CUBIC = 2.5
_TOLERANCES = {1e-4: "10⁻⁴", 1e-6: "10⁻⁶"}


class Descent(NamedTuple):
    """The objective of one run of Algorithm 1."""

    data: str
    gamma: float | str
    objective: tuple[float, ...]

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
    """Histories with a gamma of the paper's grid (at least one), and the other histories."""
    runs = descents(study.run)
    of_paper = [run for run in runs if not isinstance(run.gamma, str)]  # a name: from the data
    if not of_paper:
        raise UntestableError("The sweep 'convergence' is not there.")
    return of_paper, [run for run in runs if run not in of_paper]


def converged_at(objective: tuple[float, ...], tolerance: float) -> int | None:
    """Step after which every relative change stays below ``tolerance``; None if none does."""
    values = np.asarray(objective)
    scale = np.maximum(np.abs(values[1:]), np.finfo(float).tiny)
    large = np.flatnonzero(np.abs(np.diff(values)) >= tolerance * scale)
    if len(large) == 0:
        return 1
    return None if large[-1] == len(values) - 2 else int(large[-1]) + 2


@decides("converges-fast")
def _converges_fast(study: StudyResults) -> Finding:
    of_paper, others = _descents_by_gamma(study)
    slowest = max(of_paper, key=_most_of_the_way)
    steps = _most_of_the_way(slowest)
    numbers = [f"At most {steps} steps ({slowest.title}); {len(of_paper)} runs"]
    if others:
        worst = max(others, key=_most_of_the_way)
        most = _most_of_the_way(worst)
        numbers.append(f"With gamma relative to the data: at most {most} ({worst.title})")
    return steps <= FAST_STEPS, numbers


def _most_of_the_way(run: Descent) -> int:
    values = np.asarray(run.objective)
    goal = values[0] - FAST_SHARE * (values[0] - values[-1])
    return int(np.flatnonzero(values <= goal)[0]) + 1


@decides("thirty-steps")
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


@decides("descent")
def _never_rises(study: StudyResults) -> Finding:
    runs = descents(study.run)
    if not runs:
        raise UntestableError("The sweep 'convergence' is not there.")
    worst = max(runs, key=lambda run: _largest_rise(run.objective))
    largest = _largest_rise(worst.objective)
    n_steps = sum(len(run.objective) - 1 for run in runs)
    numbers = [f"It fell or stayed in each of {n_steps} steps of {len(runs)} runs"]
    if largest > 0:
        numbers = [f"Largest rise {largest:.1e} of its size in {n_steps} steps ({worst.title})"]
    return largest <= ROUNDING, numbers


def _largest_rise(objective: tuple[float, ...]) -> float:
    values = np.asarray(objective)
    scale = np.maximum(np.abs(values[:-1]), np.finfo(float).tiny)
    return float(np.max(np.diff(values) / scale))


@decides("linear-in-n")
def _only_linear(study: StudyResults) -> Finding:
    if study.growth.empty or study.subject not in set(study.growth.selector):
        raise UntestableError("SPCAFS: no times were measured.")
    listed = study.growth[study.growth.printed != ""]
    is_own = listed.selector == study.subject
    own, rivals = listed[is_own].iloc[0], listed[~is_own]
    if pd.isna(own.exponent_in_samples):
        raise UntestableError(f"SPCAFS: {own.remark_samples}.")
    if rivals.exponent_in_samples.isna().all():
        raise UntestableError("No other method has a measured exponent.")
    linear = rivals.method[rivals.exponent_in_samples <= LINEAR]
    unknown = rivals.method[rivals.exponent_in_samples.isna()]
    numbers = [_exponents(listed, "samples")]
    if len(linear):
        numbers.append(f"Also linear: {', '.join(linear)}")
    if len(unknown):
        numbers.append(f"Not measurable: {', '.join(unknown)}")
    return bool(own.exponent_in_samples <= LINEAR) and linear.empty, tuple(numbers)


@decides("cubic-in-d")
def _cubic_in_features(study: StudyResults) -> Finding:
    cubic = [selector for selector, printed in PRINTED.items() if "d³" in printed]
    timed = study.growth
    listed = timed if timed.empty else timed[timed.selector.isin(cubic)]
    exponents = [] if listed.empty else listed.exponent_in_features.dropna()
    if not len(exponents):
        raise UntestableError("No such method has a measured exponent in d.")
    steep = sum(exponent >= CUBIC for exponent in exponents)
    text = f"{steep} of {len(exponents)} reach {CUBIC}"
    numbers = (text, _exponents(listed, "features"))
    return steep > len(exponents) / 2, numbers


def _exponents(rows: pd.DataFrame, size: str) -> str:
    pairs = zip(
        rows.method, rows[f"exponent_in_{size}"], rows[f"half_interval_{size}"], strict=True
    )
    return "Exponents: " + ", ".join(
        f"{method} " + ("not measurable" if pd.isna(e) else f"{e:.2f} ± {half:.2f}")
        for method, e, half in pairs
    )
