"""The map of the rooms, drawn from the order in which `pyproject.toml` holds imports to."""

import tomllib
from pathlib import Path

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from figures.drawing import BLUE, GREEN, GREY, INK, ORANGE, board, keep_figure
from figures.kept_results import ROOT

__all__ = ["layers", "write"]

SAYS = {
    "cli": "the command; the only room that prints",
    "reporting": "a selection or a study as one HTML page",
    "evaluation": "the paper's protocol; studies that resume",
    "tuning": "path, stability, choices without labels",
    "selectors": "scikit-learn estimators: check, read, solve, store",
    "solvers": "the mathematics of each method",
    "linalg": "operators, graphs",
    "data": "files, names, blocks",
    "metrics": "ACC, NMI",
    "_protocols": "types that cross rooms",
    "exceptions": "every error, as a tree",
}
COLOURS = {
    "solvers": GREEN,
    "linalg": GREEN,
    "metrics": GREEN,
    "_protocols": GREEN,
    "exceptions": GREEN,
    "cli": ORANGE,
    "data": ORANGE,
}
MEANINGS = {
    GREEN: "knows NumPy and SciPy only",
    BLUE: "knows scikit-learn too",
    ORANGE: "reads files, or prints",
}
FLOW = {
    "tuning": "6  score, rank, support\n    go on from here",
    "selectors": "1  parameters checked, X read\n5  ranking stored",
    "solvers": "4  iterate; one frozen result",
    "linalg": "2  moments of the columns\n3  X as an operator for S",
}
WIDTH, HEIGHT, GAP = 8.0, 0.62, 0.3


def layers() -> list[list[str]]:
    """Rooms from the top down, as the import contract lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def write(folder: Path) -> list[Path]:
    """One figure."""
    return [keep_figure(draw_map(), folder / "architecture.svg")]


def draw_map():
    """A box a room; whoever stands above may import from below, never the other way."""
    figure, axis = board(1, 1, (8.0, 6.3))
    axis.set_axis_off()
    top = 0.0
    for rooms in layers():
        width = (WIDTH - GAP * (len(rooms) - 1)) / len(rooms)
        for position, room in enumerate(rooms):
            _draw_room(axis, room, position * (width + GAP), top, width)
        top -= HEIGHT + GAP
    _draw_arrow(axis, -0.45, HEIGHT, top + HEIGHT + GAP, "imports point down")
    for position, (colour, says) in enumerate(MEANINGS.items()):
        left = 3.2 * position
        axis.plot([left + 0.1], [top + 0.42], "s", color=colour, ms=7)
        axis.text(left + 0.3, top + 0.42, says, va="center", fontsize=8.6)
    _draw_flow(axis)
    axis.text(WIDTH + 0.3, HEIGHT / 2, "one call of fit", va="center", color=ORANGE, weight="bold")
    axis.set_xlim(-0.85, WIDTH + 2.45)
    axis.set_ylim(top + 0.2, HEIGHT + 0.15)
    return figure


def _draw_room(axis, room: str, left: float, bottom: float, width: float) -> None:
    colour = COLOURS.get(room, BLUE)
    axis.add_patch(
        FancyBboxPatch(
            (left, bottom),
            width,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.09",
            facecolor=colour + "1f",
            edgecolor=colour,
            linewidth=1.3,
        )
    )
    middle = left + width / 2
    axis.text(middle, bottom + 0.42, room, ha="center", va="center", weight="bold", fontsize=10.5)
    axis.text(middle, bottom + 0.17, SAYS[room], ha="center", va="center", fontsize=8.3, color=INK)


def _draw_arrow(axis, x: float, start: float, end: float, says: str) -> None:
    axis.add_patch(
        FancyArrowPatch((x, start), (x, end), arrowstyle="-|>", mutation_scale=13, color=GREY)
    )
    axis.text(x - 0.2, (start + end) / 2, says, rotation=90, ha="center", va="center", color=GREY)


def _draw_flow(axis) -> None:
    """One fit beside the rooms it goes through."""
    order = layers()
    middles = {r: -i * (HEIGHT + GAP) + HEIGHT / 2 for i, rooms in enumerate(order) for r in rooms}
    x = WIDTH + 0.3
    axis.plot([x, x], [middles["linalg"], middles["tuning"]], color=ORANGE, lw=1.4)
    for room, says in FLOW.items():
        axis.plot([x], [middles[room]], "o", color=ORANGE, ms=6)
        axis.text(x + 0.2, middles[room], says, va="center", fontsize=8.6, linespacing=1.4)
