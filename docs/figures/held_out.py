"""AutoSelector on the tables that were not used to develop it, from the leaderboard's results."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from figures.drawing import BLUE, GREY, ORANGE, board, keep_figure, keep_text
from figures.kept_results import Results, mean

__all__ = ["draw_gains", "gain_sentence", "held_out_scores", "losses_sentence", "write"]

SHOWN = {"AutoSelector": BLUE, "All features": GREY, "Variance": ORANGE}


def write(folder: Path) -> list[Path]:
    """One figure and a paragraph."""
    scores = held_out_scores(Results())
    return [
        keep_figure(draw_gains(scores), folder / "held-out.svg"),
        keep_text(
            folder / "held-out-summary.md",
            f"{gain_sentence(Results())} {losses_sentence(Results())}\n",
        ),
    ]


def held_out_scores(results: Results, measure: str = "acc") -> dict[str, dict[str, float]]:
    """Data set -> method -> mean over the numbers of features, at default settings."""
    held_out = {r["data"] for r in results.autoselector("by_set") if r["half"] == "reporting"}
    scores: dict[str, dict[str, float]] = {name: {} for name in sorted(held_out)}
    for row in results.suite_sets():
        if row["tuning"] == "default" and row["data"] in held_out and row[measure]:
            scores[row["data"]][row["method"]] = float(row[measure])
    return scores


def gain_sentence(results: Results) -> str:
    """Compare AutoSelector with the three baselines."""
    scores = held_out_scores(results)
    auto, everything, variance, chance = (
        mean(row[name] for row in scores.values())
        for name in ("AutoSelector", "All features", "Variance", "Random")
    )
    return (
        f"On {len(scores)} held-out tables, k-means on the columns that AutoSelector keeps "
        f"recovers the known classes with a mean accuracy of **{auto:.3f}**: more than all columns "
        f"({everything:.3f}), the columns of largest variance ({variance:.3f}) or random columns "
        f"({chance:.3f})."
    )


def losses_sentence(results: Results) -> str:
    """Name the tables on which AutoSelector loses, and give its stability."""
    scores = held_out_scores(results)
    lost = {
        name: row["Random"] - row["AutoSelector"]
        for name, row in scores.items()
        if row["AutoSelector"] < row["Random"]
    }
    behind = sum(row["AutoSelector"] < row["All features"] for row in scores.values())
    stability = mean(
        float(row["stability"])
        for row in results.suite_sets()
        if row["data"] in scores and row["method"] == "AutoSelector" and row["stability"]
    )
    named = " and ".join(f"{name} ({loss:.3f} lower)" for name, loss in lost.items())
    return (
        f"AutoSelector loses to random columns on {named}, and to all columns on {behind} of the "
        f"{len(scores)} held-out tables. Its choice changes with the samples: between two halves, "
        f"the stability index is {stability:.2f} on average (1: the same 50 columns, 0: chance)."
    )


def draw_gains(scores: dict[str, dict[str, float]]) -> Any:
    """Gain over random columns, one row per table, largest first."""
    order = sorted(scores, key=lambda name: scores[name]["AutoSelector"] - scores[name]["Random"])
    figure, axis = board(1, 1, (7.2, 6.2))
    heights = np.arange(len(order))
    for name, colour in SHOWN.items():
        gains = [scores[data][name] - scores[data]["Random"] for data in order]
        if name == "AutoSelector":
            axis.barh(heights, gains, color=colour, height=0.62, label=name)
        else:
            label = "All columns" if name == "All features" else "Largest variance"
            axis.plot(gains, heights, "o", color=colour, markersize=4.5, label=label)
    axis.axvline(0, color=plt.rcParams["text.color"], linewidth=0.8)
    axis.set_yticks(heights, order)
    axis.set_xlabel("accuracy above that of random columns")
    axis.legend(loc="lower right", frameon=False)
    return figure
