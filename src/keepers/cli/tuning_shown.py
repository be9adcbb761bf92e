"""A recommendation for people: how many, which settings, why, how stable, and how to apply it."""

from collections.abc import Sequence
from typing import Any

from keepers.cli.choosing import counted, why_so_many, without_structure
from keepers.cli.output import printable
from keepers.cli.tuning import Tuned
from keepers.tuning import Trial

__all__ = ["print_tuned"]

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


def print_tuned(done: Tuned, command: str | None) -> None:
    """Print it all, the command last."""
    table = done.table
    name = printable(table.name)
    if command is None:
        print(without_structure(name))
        return
    print(f"{name}: {table.n_samples} samples, {counted(table.n_features)}\n")
    print(_how_many(done))
    print("\nSettings of SPCAFS")
    print(_aligned(_settings_in_words(done), left=3))
    n_trials = len(done.choice.trials)
    print(f"\nWhy: the strongest evidence of {n_trials} combinations, weighed without labels")
    best = done.distinct[:SHOWN_TRIALS]
    print(_aligned([HEADINGS, *(_trial_cells(trial) for trial in best)], left=0))
    print(LEGEND)
    print(_ahead(done))
    print(f"\n{_how_sure(done)}")
    print(_cost(done))
    print(f"\nTo keep these features:\n{printable(command)}")


def _how_many(done: Tuned) -> str:
    choice = done.choice
    k = counted(choice.n_features_to_select)
    if not choice.structure_found:
        return (
            f"Keep {k}, as asked, but expect little: no structure found. No feature is predicted "
            "by the others better than chance."
        )
    why = why_so_many(choice.structure, done.table.n_features)
    return f"Keep {k}{': ' if done.k_given is None else ', as asked. '}{why}.\n{TERMS}"


def _settings_in_words(done: Tuned) -> list[tuple[str, str, str]]:
    best = done.choice.best
    words = {
        "n_components": "directions that the features span together",
        "gamma": f"penalty, {best.gamma_share:g} times the leading eigenvalue; leaves "
        f"{counted(best.n_active)} active",
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


def _ahead(done: Tuned) -> str:
    trials, distinct = done.choice.trials, done.distinct
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


def _how_sure(done: Tuned) -> str:
    repeated = done.repeated
    if repeated.stability is None:
        return f"Stability: not measured; {repeated.why_not}."
    found = str(repeated.stability).rstrip(".")
    sure = f"On halves of the samples, {found}."
    if repeated.n_components != done.choice.best.params["n_components"]:
        sure += f" (Halves allow n_components={repeated.n_components} only.)"
    return sure


def _cost(done: Tuned) -> str:
    fit = 0.0 if done.selection is None else done.selection.seconds
    return (
        f"Cost: {done.seconds:.1f} s, {done.times_one_fit:.0f} times one fit of the winner "
        f"({done.choice.seconds:.1f} s to choose, {fit:.2f} s to fit it, "
        f"{done.repeated.seconds:.1f} s on halves)."
    )


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _aligned(rows: Sequence[Sequence[str]], left: int) -> str:
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
