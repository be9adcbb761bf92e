"""The study of the front door: every method on every data set, wins and losses alike."""

from pathlib import Path

import numpy as np

from figures.drawing import BLUE, GREY, INK, board, keep_figure, keep_text
from figures.kept_results import Results, markdown_table

__all__ = ["write"]

FRONT_DOOR, RANDOM = "Front door", "Random"
NOT_METHODS = ("data", "half")


def write(folder: Path) -> list[Path]:
    """One figure, three tables."""
    results = Results()
    by_set = results.front_door("by_set")
    return [
        keep_figure(draw_gains(by_set), folder / "front-door.svg"),
        keep_text(folder / "front-door-summary.md", summary(results.front_door("summary"))),
        keep_text(folder / "front-door-by-set.md", all_sets(by_set)),
        keep_text(folder / "front-door-planted.md", planted(results.front_door("planted"))),
    ]


def summary(rows: list[dict[str, str]]) -> str:
    """Per method, on the sets that were not used for choosing."""
    head = ("method", "mean ACC", "ahead of random", "worst loss", "mean NMI", "ahead in NMI")
    cells = [
        (
            row["method"],
            f"{float(row['acc']):.3f}",
            f"{row['ahead in acc']} of {row['sets']}" if row["method"] != RANDOM else "",
            f"{float(row['worst loss']):+.3f} ({row['worst set']})" if row["worst set"] else "",
            f"{float(row['nmi']):.3f}",
            row["ahead in nmi"] if row["method"] != RANDOM else "",
        )
        for row in rows
        if row["half"] == "reporting"
    ]
    return markdown_table(head, sorted(cells, key=lambda cell: -float(cell[1])))


def all_sets(rows: list[dict[str, str]]) -> str:
    """ACC of every method on every set; the best of a row in bold."""
    methods = [name for name in rows[0] if name not in NOT_METHODS]
    cells = []
    for row in rows:
        best = max(float(row[name]) for name in methods if row[name])
        marked = [
            "" if not row[name] else f"**{value:.3f}**" if value == best else f"{value:.3f}"
            for name, value in ((name, float(row[name] or "nan")) for name in methods)
        ]
        cells.append((row["data"], row["half"], *marked))
    return markdown_table(("data", "half", *methods), cells)


def planted(rows: list[dict[str, str]]) -> str:
    """Share of the planted columns that were found, mean of the draws."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        cell = ("yes" if row["rescaled"] == "True" else "no", row["samples"], row["spread"])
        found.setdefault(cell, {}).setdefault(row["method"], []).append(float(row["recall"]))
    cells = [
        (*cell, *(f"{np.mean(values[method]):.2f}" for method in methods))
        for cell, values in sorted(found.items())
    ]
    return markdown_table(("columns rescaled", "samples", "spread", *methods), cells)


def draw_gains(rows: list[dict[str, str]]) -> object:
    """For every set, ACC above or below random: the front door, and the range of other methods."""
    others = [
        name for name in rows[0] if name not in (*NOT_METHODS, FRONT_DOOR, RANDOM, "All features")
    ]
    rows = sorted(rows, key=lambda row: float(row[FRONT_DOOR]) - float(row[RANDOM]))
    figure, axes = board(1, 1, (8.0, 9.5))
    for place, row in enumerate(rows):
        floor = float(row[RANDOM])
        gains = [float(row[name]) - floor for name in others if row[name]]
        axes.plot([min(gains), max(gains)], [place, place], color=GREY, linewidth=1, zorder=1)
        axes.plot(gains, [place] * len(gains), "|", color=GREY, markersize=6, zorder=2)
        filled = BLUE if row["half"] == "reporting" else "white"
        axes.plot(
            float(row[FRONT_DOOR]) - floor, place, "o", color=BLUE, markerfacecolor=filled, zorder=3
        )
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row["data"] for row in rows], fontsize=7)
    axes.set_ylim(-1, len(rows))
    axes.set_xlabel("clustering accuracy above or below random columns")
    return figure
