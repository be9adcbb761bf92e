"""What `keepers tune` does: compare, fit the winner, estimate its stability, and print why."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from keepers.cli.choose import (
    as_options,
    as_settings,
    count_features,
    count_processes,
    search_methods,
)
from keepers.cli.console import printable, progress_line, shell_command
from keepers.cli.fit import fit_and_describe, make_selector, scale_table
from keepers.cli.output import note_inactive_rows
from keepers.data.table import LabelledTable
from keepers.exceptions import KeepersError, KeepersWarning, ParameterError
from keepers.selection import Selection
from keepers.tuning import MethodChoice, MethodTrial, Stability, StabilitySelector

FEWEST_SAMPLES_FOR_HALVES = 4
SHOWN_TRIALS = 4
WIDEST_NAME = 40
HEADINGS = ("method", "settings", "fidelity", "clumpiness", "score")
LEGEND = """\
fidelity: share of the nearest samples in the whole table that stay so in the kept features.
clumpiness: how much nearer those are than without clusters. score: fidelity * sqrt(clumpiness).
random: mean of the random sets."""


@dataclass(frozen=True)
class HalfSamples:
    """The winner on halves of the samples."""

    stability: Stability | None
    why_not: str | None
    """The reason, where it could not be measured or was not wanted."""
    n_components: int | None
    """Of SPCAFS: columns of W on the halves, which allow fewer than the whole table."""
    seconds: float


@dataclass(frozen=True)
class Recommendation:
    """The recommendation with everything that speaks for it."""

    table: LabelledTable
    scaling: str
    k_given: int | None
    choice: MethodChoice
    selection: Selection | None
    """The winner fitted to the whole table; None if there is nothing to keep."""
    halves: HalfSamples

    @property
    def seconds(self) -> float:
        """All of it, apart from reading the table."""
        return self.choice.seconds + self.seconds_fitting + self.halves.seconds

    @property
    def seconds_fitting(self) -> float:
        """The fit of the winner."""
        return 0.0 if self.selection is None else self.selection.seconds or 0.0

    @property
    def times_one_fit(self) -> float:
        """What the choice cost, in fits of the winner."""
        return float("nan") if self.selection is None else self.seconds / self.seconds_fitting

    @property
    def shown(self) -> list[MethodTrial]:
        """The strongest trials, the best of every method, and the recommendation."""
        trials = self.choice.trials
        methods = [trial.method for trial in trials]
        shown = [
            trial
            for at, trial in enumerate(trials)
            if at < SHOWN_TRIALS or trial.method not in methods[:at]
        ]
        return (
            shown
            if any(trial is self.choice.best for trial in shown)
            else [*shown, self.choice.best]
        )


def check_resamples(n_resamples: int) -> None:
    """Halves come in pairs; 0 means none."""
    if n_resamples % 2:
        raise ParameterError(
            f"--resamples must be an even integer >= 0, as halves come in pairs; got {n_resamples}."
        )


def recommend(
    table: LabelledTable,
    scaling: str,
    k: int | None,
    *,
    n_resamples: int,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> Recommendation:
    """Choose, fit the winner, and repeat it on halves of the samples."""
    scaled = scale_table(table, scaling)
    choice = search_methods(scaled.X, k, seed=seed, threads=threads, quiet=quiet)
    if not choice.n_features_to_select:
        nothing = HalfSamples(None, "there is nothing to keep", None, 0.0)
        return Recommendation(table, scaling, k, choice, None, nothing)
    best = choice.best
    winner = make_selector(best.method, choice.n_features_to_select, best.params, seed)
    selection = fit_and_describe(winner, scaled, scaling=scaling, threads=threads, quiet=quiet)
    note_inactive_rows(selection, quiet=quiet, set_gamma="gamma=")
    halves = _fit_halves(winner, scaled.X, n_resamples, seed=seed, threads=threads, quiet=quiet)
    return Recommendation(table, scaling, k, choice, selection, halves)


def _fit_halves(
    winner: Any, X: Any, n_resamples: int, *, seed: int, threads: int | None, quiet: bool
) -> HalfSamples:
    began = time.perf_counter()
    if not n_resamples:
        return HalfSamples(None, "--resamples 0 disables it", None, 0.0)
    n_samples = X.shape[0]
    if n_samples < FEWEST_SAMPLES_FOR_HALVES:
        return HalfSamples(None, f"{n_samples} samples are too few to halve", None, 0.0)
    selector = clone(winner)
    n_components = None
    if hasattr(winner, "n_components_"):
        n_components = min(winner.n_components_, n_samples // 2 - 1)
        selector.set_params(n_components=n_components)
    stability, why_not = None, None
    with progress_line("fitting half-samples", quiet=quiet) as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        halves: Any = StabilitySelector(
            selector,
            n_resamples,
            random_state=seed,
            n_jobs=count_processes(X, threads),
            callback=lambda done, total: show(None, done, total),
        )
        try:
            stability = halves.fit(X).stability_
        except KeepersError as error:
            why_not = str(error).rstrip(".")
    return HalfSamples(stability, why_not, n_components, time.perf_counter() - began)


def command_for(
    done: Recommendation,
    data: str,
    options: dict[str, Any],
    reading: Sequence[str],
) -> str | None:
    """The shell command that keeps the recommended features; None if there are none."""
    if done.selection is None:
        return None
    choice = done.choice
    words = ["keepers", "select", data, "--method", choice.best.method]
    words += as_options(choice.n_features_to_select, choice.best.params)
    words += [str(part) for pair in options.items() if pair[1] is not None for part in pair]
    words += reading
    return shell_command([*words, "--out", "kept.csv"])


def as_json(done: Recommendation, command: str | None) -> dict[str, Any]:
    """The recommendation for machines."""
    choice, front, selection = done.choice, done.choice.front_door, done.selection
    stability, fitted = done.halves.stability, selection is not None
    return {
        "data": done.table.name,
        "n_samples": done.table.n_samples,
        "n_features": done.table.n_features,
        "scaling": done.scaling,
        "structure_found": choice.structure_found,
        "n_carrying_structure": int(front.carries_structure_.sum()),
        "n_enough": front.n_enough_,
        "summary": front.summary_,
        "doubts": front.doubts_,
        "k": choice.n_features_to_select,
        "k_was_given": done.k_given is not None,
        "method": choice.best.method if fitted else None,
        "params": choice.best.params if fitted else None,
        "why": choice.why,
        "interchangeable": choice.interchangeable if fitted else None,
        "level_with_the_strongest": choice.level if fitted else None,
        "standard_error": choice.standard_error if fitted else None,
        "features": [] if selection is None else _kept_features(selection),
        "trials": [
            {**row, "columns": trial.columns.tolist()}
            for row, trial in zip(choice.rows(), choice.trials, strict=False)
        ],
        "random": choice.rows()[len(choice.trials) :],
        "left_out": choice.left_out,
        "stability": None
        if stability is None
        else {**asdict(stability), "verdict": stability.verdict},
        "why_no_stability": done.halves.why_not,
        "n_components_on_halves": done.halves.n_components,
        "seconds": {
            "search": choice.seconds,
            "fit": done.seconds_fitting if fitted else None,
            "halves": done.halves.seconds,
            "all": done.seconds,
        },
        "times_one_fit": done.times_one_fit,
        "command": command,
    }


def _kept_features(selection: Selection) -> list[dict[str, Any]]:
    return [
        {"column": at, "name": selection.feature_names[at], "score": float(selection.scores[at])}
        for at in selection.order[: selection.k].tolist()
    ]


def print_recommendation(done: Recommendation, command: str | None) -> None:
    """Print it all, the command last."""
    table, choice = done.table, done.choice
    name = printable(table.name)
    if command is None or done.selection is None:
        nothing = choice.front_door.summary_.replace("found:", f"found in {name}:", 1)
        print(f"{nothing} Say with -k how many to keep nevertheless.")
        return
    print(f"{name}: {table.n_samples} samples, {count_features(table.n_features)}\n")
    print(_how_many(done))
    print(f"\nMethod: {_in_words(choice.best)}\n{choice.why}")
    print("\nEvidence, weighed without labels")
    print(_align([HEADINGS, *map(_trial_cells, done.shown), _random_cells(choice)], left=2))
    print(LEGEND)
    for method, reason in choice.left_out.items():
        print(f"{method} was not tried. {printable(reason)}")
    print(f"\nFeatures, best first\n{_names(done.selection)}")
    print(f"\n{_how_sure(done)}")
    print(_cost(done))
    print(f"\nTo keep these features:\n{printable(command)}")


def _how_many(done: Recommendation) -> str:
    choice, front = done.choice, done.choice.front_door
    k = count_features(choice.n_features_to_select)
    if not choice.structure_found:
        return f"Keep {k}, as asked, but expect little. {front.summary_}"
    asked = "" if done.k_given is None else ", as asked"
    return "\n".join([f"Keep {k}{asked}. {front.summary_}", *front.doubts_])


def _in_words(trial: MethodTrial) -> str:
    settings = ", ".join(as_settings(trial.params))
    return f"{trial.class_name} with {settings}" if settings else trial.class_name


def _trial_cells(trial: MethodTrial) -> tuple[str, ...]:
    settings = ", ".join(f"{name}={_short(value)}" for name, value in trial.params.items())
    found = trial.evidence
    return (trial.method, settings, *_cells(found.fidelity, found.clumpiness, found.score))


def _random_cells(choice: MethodChoice) -> tuple[str, ...]:
    rows = choice.rows()[len(choice.trials) :]
    means = [float(np.mean([row[name] for row in rows])) for name in HEADINGS[2:]]
    return ("random", f"{len(rows)} sets", *_cells(*means))


def _cells(fidelity: float, clumpiness: float, score: float) -> tuple[str, str, str]:
    return f"{fidelity:.3f}", f"{clumpiness:.3f}", f"{score:.4f}"


def _names(selection: Selection) -> str:
    kept = selection.order[: selection.k].tolist()
    return ", ".join(printable(str(selection.feature_names[at]), WIDEST_NAME) for at in kept)


def _how_sure(done: Recommendation) -> str:
    halves = done.halves
    if halves.stability is None:
        return f"Stability: not measured; {halves.why_not}."
    found = str(halves.stability).rstrip(".")
    sure = f"On halves of the samples, {found}."
    if halves.n_components != done.choice.best.params.get("n_components"):
        sure += f" (Halves allow n_components={halves.n_components} only.)"
    return sure


def _cost(done: Recommendation) -> str:
    return (
        f"Cost: {done.seconds:.1f} s, {done.times_one_fit:.0f} times one fit of the winner "
        f"({done.choice.seconds:.1f} s to choose, {done.seconds_fitting:.2f} s to fit it, "
        f"{done.halves.seconds:.1f} s on halves)."
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _align(rows: Sequence[Sequence[str]], left: int) -> str:
    """Rows as columns of equal width; the first ``left`` of them begin on the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
