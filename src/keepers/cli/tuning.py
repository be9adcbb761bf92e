"""What `keepers tune` does: search, fit the winner, estimate its stability."""

import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any

from sklearn.base import clone

from keepers.cli.choosing import as_options, processes, search
from keepers.cli.console import counting, shell_command
from keepers.cli.selecting import Selection, ready_to_select, selected
from keepers.cli.settings import make_selector
from keepers.data.table import LabelledTable
from keepers.exceptions import KeepersError, KeepersWarning, ParameterError
from keepers.tuning import SettingsChoice, Stability, StabilitySelector, Trial

__all__ = ["Tuned", "as_json", "check_resamples", "command_for", "tuned"]

FEWEST_SAMPLES_FOR_HALVES = 4


@dataclass(frozen=True)
class Repeated:
    """The winner on halves of the samples."""

    stability: Stability | None
    why_not: str | None
    """The reason, where it could not be measured or was not wanted."""
    n_components: int | None
    """Columns of W on the halves, which allow fewer than the whole table."""
    seconds: float


@dataclass(frozen=True)
class Tuned:
    """The recommendation with everything that speaks for it."""

    table: LabelledTable
    scaling: str
    k_given: int | None
    choice: SettingsChoice
    selection: Selection | None
    """The winner fitted to the whole table; None if there is nothing to keep."""
    repeated: Repeated

    @property
    def seconds(self) -> float:
        """All of it, apart from reading the table."""
        fit = 0.0 if self.selection is None else self.selection.seconds
        return self.choice.seconds + fit + self.repeated.seconds

    @property
    def times_one_fit(self) -> float:
        """What the choice cost, in fits of the winner."""
        return float("nan") if self.selection is None else self.seconds / self.selection.seconds

    @property
    def distinct(self) -> list[Trial]:
        """The trials, best first, without those that keep the same features as a better one."""
        by_kept: dict[frozenset[int], Trial] = {}
        for trial in self.choice.trials:
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


def tuned(
    table: LabelledTable,
    scaling: str,
    k: int | None,
    *,
    n_resamples: int,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> Tuned:
    """Choose, fit the winner, and repeat it on halves of the samples."""
    X = ready_to_select(table, scaling)
    choice = search(X, k, seed=seed, threads=threads, quiet=quiet)
    if not choice.n_features_to_select:
        nothing = Repeated(None, "there is nothing to keep", None, 0.0)
        return Tuned(table, scaling, k, choice, None, nothing)
    winner = make_selector("spcafs", choice.n_features_to_select, choice.best.params, seed)
    selection = selected(table, X, scaling, winner, threads, quiet)
    repeated = _repeated(winner, X, n_resamples, seed=seed, threads=threads, quiet=quiet)
    return Tuned(table, scaling, k, choice, selection, repeated)


def _repeated(
    winner: Any, X: Any, n_resamples: int, *, seed: int, threads: int | None, quiet: bool
) -> Repeated:
    began = time.perf_counter()
    if not n_resamples:
        return Repeated(None, "--resamples 0 disables it", None, 0.0)
    n_samples = X.shape[0]
    if n_samples < FEWEST_SAMPLES_FOR_HALVES:
        return Repeated(None, f"{n_samples} samples are too few to halve", None, 0.0)
    selector = clone(winner)
    selector.set_params(n_components=min(winner.n_components_, n_samples // 2 - 1))
    stability, why_not = None, None
    with warnings.catch_warnings(), counting("fitting halves", quiet=quiet) as show:
        warnings.simplefilter("ignore", KeepersWarning)
        halves: Any = StabilitySelector(
            selector,
            n_resamples,
            random_state=seed,
            n_jobs=processes(X, threads),
            callback=show,
        )
        try:
            stability = halves.fit(X).stability_
        except KeepersError as error:
            why_not = str(error).rstrip(".")
    return Repeated(stability, why_not, selector.n_components, time.perf_counter() - began)


def command_for(
    done: Tuned,
    data: str,
    *,
    identifier: str | None,
    labels: str | None,
    drop: list[str],
    header: bool | None,
    seed: int,
    threads: int | None,
    max_size: str | None,
) -> str | None:
    """The shell command that keeps the recommended features; None if there are none."""
    if done.selection is None:
        return None
    choice = done.choice
    words = ["keepers", "select", data]
    words += as_options(choice.n_features_to_select, choice.best.params)
    options = {
        "--id": identifier,
        "--labels": labels,
        "--scale": None if done.scaling == "raw" else done.scaling,
        "--seed": seed or None,
        "--threads": threads,
        "--max-size": max_size,
    }
    words += [str(part) for pair in options.items() if pair[1] is not None for part in pair]
    words += [part for column in drop for part in ("--drop", column)]
    words += [] if header is None else ["--header" if header else "--no-header"]
    return shell_command([*words, "--out", "kept.csv"])


def as_json(done: Tuned, command: str | None) -> dict[str, Any]:
    """All of it for machines."""
    choice, structure, selection = done.choice, done.choice.structure, done.selection
    stability = done.repeated.stability
    kept = () if selection is None else selection.kept
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
        "features": [{"column": f.column, "name": f.name, "score": f.score} for f in kept],
        # Without a number to keep, ten features stood in for it; that is no evidence.
        "trials": [] if selection is None else choice.rows(),
        "lead": None if selection is None else done.lead,
        "stability": None
        if stability is None
        else {**asdict(stability), "verdict": stability.verdict},
        "why_no_stability": done.repeated.why_not,
        "n_components_on_halves": done.repeated.n_components,
        "seconds": {
            "search": choice.seconds,
            "fit": None if selection is None else selection.seconds,
            "halves": done.repeated.seconds,
            "all": done.seconds,
        },
        "times_one_fit": done.times_one_fit,
        "command": command,
    }
