"""How all figures look, and how they are kept: SVG, the same bytes for the same numbers."""

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

__all__ = [
    "BLUE",
    "DARK",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PINK",
    "board",
    "common_look",
    "keep_figure",
    "keep_text",
]

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
GREY, INK = "#8a8a8a", "#222222"

LOOK = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "path",  # reads the same where the font is missing
    "svg.hashsalt": "keepers",
    "figure.facecolor": "white",  # the site inverts it in dark mode
}


# The README's pictures have a second version for GitHub's dark mode.
PAPER, PEN = "#0d1117", "#e6edf3"
DARK = {
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": GREY,
    "axes.labelcolor": PEN,
    "axes.titlecolor": PEN,
    "text.color": PEN,
    "xtick.color": PEN,
    "ytick.color": PEN,
}


def common_look(dark: bool = False) -> AbstractContextManager[None]:
    """Return a context in which all figures look alike; it leaves no settings behind."""
    return plt.rc_context(LOOK | (DARK if dark else {}))


def board(rows: int, columns: int, size: tuple[float, float], **options: Any) -> Any:
    """A figure and its axes."""
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **options)


def keep_figure(figure: Any, path: Path) -> Path:
    """Write a figure as SVG; a file that would not change is left alone."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    plt.close(figure)
    return keep_text(path, stream.getvalue())


def keep_text(path: Path, text: str) -> Path:
    """Write a file unless it would not change, so Sphinx rebuilds only what is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path
