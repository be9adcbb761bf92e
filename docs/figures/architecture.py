"""The map of the packages, drawn from the import contract in `pyproject.toml`."""

import tomllib
from pathlib import Path

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from figures.drawing import BLUE, GREEN, GREY, INK, ORANGE, board, keep_figure
from figures.kept_results import ROOT

__all__ = ["layers", "write"]

# One line on each package.
DESCRIPTIONS = {
    "__main__": "python -m keepers",
    "app": "the command and its subcommands",
    "cli": "check, select, apply, certify, compare",
    "reports": "a selection in words, figures, HTML",
    "tuning": "settings, stability",
    "extending": "for new methods",
    "anndata": "AnnData objects",
    "prepare": "column types, gaps, categories",
    "blocks": "tables larger than memory",
    "catalogue": "the methods by name",
    "proofs": "bounds, certificates, the best set",
    "methods": "scikit-learn estimators: check, read, solve, store",
    "linalg": "operators, graphs",
    "tables": "files in, files out",
    "metrics": "ACC, NMI",
    "_tables": "results as tables",
    "_protocols": "shared types",
    "_packages": "optional imports",
    "_wording": "lists in sentences",
    "exceptions": "every error, as a tree",
}
COLOURS = {
    "linalg": GREEN,
    "metrics": GREEN,
    "_tables": GREEN,
    "_protocols": GREEN,
    "_packages": GREEN,
    "_wording": GREEN,
    "exceptions": GREEN,
    "__main__": ORANGE,
    "app": ORANGE,
    "cli": ORANGE,
    "tables": ORANGE,
}
MEANINGS = {
    GREEN: "NumPy and SciPy only",
    BLUE: "and scikit-learn",
    ORANGE: "reads files, or prints",
}
FLOW = {
    "tuning": "6  uses the scores",
    "methods": "1  check, read X\n4  iterate\n5  store the ranking",
    "linalg": "2  column moments\n3  X as an operator",
}
WIDTH, HEIGHT, GAP = 8.0, 0.62, 0.3


def layers() -> list[list[str]]:
    """Packages from the top down, as the import contract lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    return [[package.strip() for package in layer.split("|")] for layer in contract["layers"]]


def write(folder: Path) -> list[Path]:
    """One figure."""
    return [keep_figure(draw_map(), folder / "architecture.svg")]


def draw_map():
    """One box per package; a package may import those below it, never the other way."""
    figure, axis = board(1, 1, (7.0, 0.56 * len(layers()) + 0.6))
    axis.set_axis_off()
    top = 0.0
    for packages in layers():
        width = (WIDTH - GAP * (len(packages) - 1)) / len(packages)
        for position, package in enumerate(packages):
            _draw_package(axis, package, position * (width + GAP), top, width)
        top -= HEIGHT + GAP
    _draw_arrow(axis, -0.45, HEIGHT, top + HEIGHT + GAP, "imports point down")
    for position, (colour, text) in enumerate(MEANINGS.items()):
        left = 3.2 * position
        axis.plot([left + 0.1], [top + 0.42], "s", color=colour, ms=7)
        axis.text(left + 0.3, top + 0.42, text, va="center", fontsize=8.6)
    _draw_flow(axis)
    axis.set_xlim(-0.85, WIDTH + 2.45)
    axis.set_ylim(top + 0.2, HEIGHT + 0.15)
    return figure


def _draw_package(axis, package: str, left: float, bottom: float, width: float) -> None:
    colour = COLOURS.get(package, BLUE)
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
    axis.text(
        middle, bottom + 0.42, package, ha="center", va="center", weight="bold", fontsize=10.5
    )
    axis.text(
        middle,
        bottom + 0.17,
        DESCRIPTIONS.get(package, ""),
        ha="center",
        va="center",
        fontsize=8.3,
        color=INK,
    )


def _draw_arrow(axis, x: float, start: float, end: float, text: str) -> None:
    axis.add_patch(
        FancyArrowPatch((x, start), (x, end), arrowstyle="-|>", mutation_scale=13, color=GREY)
    )
    axis.text(x - 0.2, (start + end) / 2, text, rotation=90, ha="center", va="center", color=GREY)


def _draw_flow(axis) -> None:
    """Draw the steps of one fit next to the packages it uses."""
    order = layers()
    middles = {
        r: -i * (HEIGHT + GAP) + HEIGHT / 2 for i, packages in enumerate(order) for r in packages
    }
    x = WIDTH + 0.3
    axis.plot([x, x], [middles["linalg"], middles["tuning"]], color=ORANGE, lw=1.4)
    top = middles["tuning"] + HEIGHT
    axis.text(x, top, "one call of fit", va="center", color=ORANGE, weight="bold")
    for package, text in FLOW.items():
        axis.plot([x], [middles[package]], "o", color=ORANGE, ms=6)
        axis.text(x + 0.2, middles[package], text, va="center", fontsize=8.6, linespacing=1.4)
