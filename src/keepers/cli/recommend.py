"""What `keepers tune` does: search, fit the winner, estimate its stability, and print why."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sklearn.base import clone

from keepers.cli.choose import (
    as_options,
    count_features,
    count_processes,
    no_structure,
    search,
    why_so_many,
)
from keepers.cli.console import printable, progress_line, shell_command
from keepers.cli.fit import explain_missing, fit_and_describe, make_selector, scale_table
from keepers.cli.output import note_inactive_rows
from keepers.data.table import LabelledTable
from keepers.exceptions import KeepersError, KeepersWarning, ParameterError
from keepers.selection import Selection
from keepers.tuning import SettingsChoice, Stability, StabilitySelector, Trial

FEWEST_SAMPLES_FOR_HALVES = 4
SHOWN_TRIALS = 6
SMALLEST_LEAD = 0.0005
HEADINGS = (
    "n_components",
    "gamma/lambda1",
    "scaling",
    "max_corr",
    "active",
    "fidelity",
    "clumpiness",
    "score",
)
TERMS = """\
(To carry structure: to be predicted by the other features better than chance. Leverage: the share
of a feature in the leading components.)"""
LEGEND = """\
gamma/lambda1: penalty over the leading eigenvalue. active: features with non-zero rows of W.
fidelity: share of the nearest samples in the whole table that stay so in the kept features.
clumpiness: how much nearer those are than without clusters. score: fidelity * sqrt(clumpiness)."""


@dataclass(frozen=True)
class HalfSamples:
    """The winner on halves of the samples."""

    stability: Stability | None
    why_not: str | None
    """The reason, where it could not be measured or was not wanted."""
    n_components: int | None
    """Columns of W on the halves, which allow fewer than the whole table."""
    seconds: float


@dataclass(frozen=True)
class Recommendation:
    """The recommendation with everything that speaks for it."""

    table: LabelledTable
    scaling: str
    k_given: int | None
    choice: SettingsChoice
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
    def distinct(self) -> list[Trial]:
        """The candidates, best first, without those that keep the same features as a better one."""
        by_kept: dict[frozenset[int], Trial] = {}
        for trial in self.choice.candidates:
            by_kept.setdefault(frozenset(trial.columns.tolist()), trial)
        return list(by_kept.values())

    @property
    def lead(self) -> float | None:
        """By which share the winner's score exceeds that of the best that keeps other features."""
        scores = [trial.evidence.score for trial in self.distinct[:2]]
        return scores[0] / scores[1] - 1.0 if len(scores) == 2 and scores[1] > 0.0 else None


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
    with explain_missing(table):
        choice = search(scaled.X, k, seed=seed, threads=threads, quiet=quiet)
    if not choice.n_features_to_select:
        nothing = HalfSamples(None, "there is nothing to keep", None, 0.0)
        return Recommendation(table, scaling, k, choice, None, nothing)
    winner = make_selector("spcafs", choice.n_features_to_select, choice.best.params, seed)
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
    selector.set_params(n_components=min(winner.n_components_, n_samples // 2 - 1))
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
    return HalfSamples(stability, why_not, selector.n_components, time.perf_counter() - began)


def command_for(
    done: Recommendation,
    data: str,
    options: dict[str, Any],
    drop: Sequence[str],
    header: bool | None,
) -> str | None:
    """The shell command that keeps the recommended features; None if there are none."""
    if done.selection is None:
        return None
    choice = done.choice
    words = ["keepers", "select", data, "--method", "spcafs"]
    words += as_options(choice.n_features_to_select, choice.best.params)
    words += [str(part) for pair in options.items() if pair[1] is not None for part in pair]
    words += [part for column in drop for part in ("--drop", column)]
    words += [] if header is None else ["--header" if header else "--no-header"]
    return shell_command([*words, "--out", "kept.csv"])


def as_json(done: Recommendation, command: str | None) -> dict[str, Any]:
    """The recommendation for machines."""
    choice, structure, selection = done.choice, done.choice.structure, done.selection
    stability = done.halves.stability
    return {
        "data": done.table.name,
        "n_samples": done.table.n_samples,
        "n_features": done.table.n_features,
        "scaling": done.scaling,
        "structure_found": choice.structure_found,
        "n_carrying_structure": structure.n_carrying,
        "knee": structure.knee,
        "k": choice.n_features_to_select,
        "k_was_given": done.k_given is not None,
        "params": None if selection is None else choice.best.params,
        "features": [
            {
                "column": at,
                "name": selection.feature_names[at],
                "score": float(selection.scores[at]),
            }
            for at in selection.order[: selection.k].tolist()
        ]
        if selection is not None
        else [],
        # Without a number to keep, ten features stood in for it; that is no evidence.
        "trials": [] if selection is None else choice.rows(),
        "lead": None if selection is None else done.lead,
        "stability": None
        if stability is None
        else {**asdict(stability), "verdict": stability.verdict},
        "why_no_stability": done.halves.why_not,
        "n_components_on_halves": done.halves.n_components,
        "seconds": {
            "search": choice.seconds,
            "fit": None if selection is None else done.seconds_fitting,
            "halves": done.halves.seconds,
            "all": done.seconds,
        },
        "times_one_fit": done.times_one_fit,
        "command": command,
    }


def print_recommendation(done: Recommendation, command: str | None) -> None:
    """Print it all, the command last."""
    table = done.table
    name = printable(table.name)
    if command is None:
        print(no_structure(name))
        return
    print(f"{name}: {table.n_samples} samples, {count_features(table.n_features)}\n")
    print(_how_many(done))
    print("\nSettings of SPCAFS")
    print(_align(_settings_in_words(done), left=3))
    print(f"\nWhy: the strongest evidence of {_which(done)}, weighed without labels")
    best = done.distinct[:SHOWN_TRIALS]
    print(_align([HEADINGS, *(_trial_cells(trial) for trial in best)], left=0))
    print(LEGEND)
    print(_ahead(done))
    print(f"\n{_how_sure(done)}")
    print(_cost(done))
    print(f"\nTo keep these features:\n{printable(command)}")


def _which(done: Recommendation) -> str:
    """The combinations that were compared; the rest would keep features with inactive rows."""
    n_candidates, n_trials = len(done.choice.candidates), len(done.choice.trials)
    if n_candidates == n_trials:
        return f"{n_trials} combinations"
    active = count_features(done.choice.n_features_to_select)
    return f"the {n_candidates} of {n_trials} combinations that keep {active} with active rows"


def _how_many(done: Recommendation) -> str:
    choice = done.choice
    k = count_features(choice.n_features_to_select)
    if not choice.structure_found:
        return (
            f"Keep {k}, as asked, but expect little: no structure found. No feature is predicted "
            "by the others better than chance."
        )
    why = why_so_many(choice.structure, done.table.n_features)
    return f"Keep {k}{': ' if done.k_given is None else ', as asked. '}{why}.\n{TERMS}"


def _settings_in_words(done: Recommendation) -> list[tuple[str, str, str]]:
    best = done.choice.best
    words = {
        "n_components": "directions that the features span together",
        "gamma": f"penalty, {best.gamma_share:g} times the leading eigenvalue; leaves "
        f"{count_features(best.n_active)} active",
        "p": "exponent of the penalty",
        "scaling": _scaling_in_words(best.params["scaling"]),
        "max_correlation": _limit_in_words(best.params["max_correlation"]),
    }
    return [(f"  {name}", _short(best.params[name]), text) for name, text in words.items()]


def _scaling_in_words(power: float) -> str:
    if power == 0:
        return "features count with the variances they have"
    if power == 1:
        return "all features are given the same variance"
    return f"features are divided by their standard deviation to the power {power:g}"


def _limit_in_words(limit: float | None) -> str:
    if limit is None:
        return "skips no feature"
    return "skips features more correlated than this with a better one"


def _trial_cells(trial: Trial) -> tuple[str, ...]:
    return (
        _short(trial.params["n_components"]),
        f"{trial.gamma_share:g}",
        _short(trial.params["scaling"]),
        _short(trial.params["max_correlation"]),
        str(trial.n_active),
        f"{trial.evidence.fidelity:.3f}",
        f"{trial.evidence.clumpiness:.3f}",
        f"{trial.evidence.score:.4f}",
    )


def _ahead(done: Recommendation) -> str:
    trials, distinct = done.choice.candidates, done.distinct
    kept = set(distinct[0].columns.tolist())
    if len(distinct) == 1:
        return f"All {len(trials)} combinations keep the same features."
    alike = sum(set(trial.columns.tolist()) == kept for trial in trials[1:])
    words = f"{alike} other combinations keep the same features. " if alike else ""
    shared = len(kept & set(distinct[1].columns.tolist()))
    same = f"keeps {shared} of the same {len(kept)} features."
    if done.lead is None or done.lead < SMALLEST_LEAD:
        return f"{words}The evidence is as strong for the runner-up, which {same}"
    return f"{words}The winner is {done.lead:.1%} ahead of the runner-up, which {same}"


def _how_sure(done: Recommendation) -> str:
    halves = done.halves
    if halves.stability is None:
        return f"Stability: not measured; {halves.why_not}."
    found = str(halves.stability).rstrip(".")
    sure = f"On halves of the samples, {found}."
    if halves.n_components != done.choice.best.params["n_components"]:
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
