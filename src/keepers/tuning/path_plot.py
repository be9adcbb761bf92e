"""A picture of the regularisation path."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import MissingDependencyError, ParameterError, shortened

if TYPE_CHECKING:
    from keepers.tuning.path import SPCAFSPath


MOST_LINES = 200
LONGEST_NAME = 24
# Ten hues that part on white and on near-black.
COLOURS = (
    "#3b82c4", "#e8853a", "#3fa66b", "#d4524e", "#8d6cc3",
    "#b08a3e", "#d873b0", "#2aa5b0", "#8fae2e", "#6b7280",
)  # fmt: skip
GREY, LIVE, HELD = "#c9cdd3", "#1f6f8b", "#b4531a"


def draw_path(path: "SPCAFSPath", axes: Any, n_named: int, feature_names: Any = None) -> Any:
    """Scores above, live rows and explained variance below; the first to enter are named."""
    names = path.feature_names if feature_names is None else feature_names
    if len(names) != path.scores.shape[1]:
        raise ParameterError(
            f"feature_names must have one entry per feature, {path.scores.shape[1]} in all; got "
            f"{len(names)}. None takes those of the data frame."
        )
    upper, lower = _new_axes() if axes is None else _pair(axes)
    named = path.entry[:n_named]
    lines = draw_scores(path, upper, named, COLOURS, GREY)
    if lines:
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)}
        legend = upper.legend(
            lines,
            [_shortened(str(names[feature])) for feature in named],
            title="first to enter",
            fontsize=8.5,
            title_fontsize=8.5,
            frameon=axes is not None,
            **(outside if axes is None else {"loc": "best"}),
        )
        legend.set_zorder(3)
        for text in legend.get_texts():
            text.set_parse_math(False)
    upper.set_title("SPCAFS from PCA to sparse", loc="left", fontsize=11)
    upper.tick_params(labelbottom=False)
    draw_counts(path, lower, (LIVE, HELD))
    return upper, lower


def draw_scores(
    path: "SPCAFSPath", axes: Any, named: IndexArray, colours: Sequence[str], grey: str
) -> list[Any]:
    """A line for each feature that matters somewhere; returns the lines of the named ones."""
    share = path.gammas / path.largest_eigenvalue
    others = np.setdiff1d(_worth_a_line(path), named)
    axes.plot(share, path.scores[:, others], color=grey, linewidth=0.7, zorder=1)
    lines = [
        axes.plot(share, path.scores[:, feature], color=colours[i % len(colours)], linewidth=1.6)[0]
        for i, feature in enumerate(named)
    ]
    axes.set(xscale="log", ylabel="score (row norm)", xlim=_span(share))
    axes.set_ylim(0.0, 1.04 * max(float(path.scores.max()), 1e-12))
    plain_decades(axes.xaxis)
    _spare(axes)
    return lines


def draw_counts(path: "SPCAFSPath", axes: Any, colours: tuple[str, str]) -> Any:
    """Live rows on the left, variance on the right; returns the axes of the right side."""
    share = path.gammas / path.largest_eigenvalue
    axes.plot(share, path.n_live, color=colours[0], marker="o", markersize=3.5, linewidth=1.3)
    axes.set(xscale="log", yscale="log", xlabel="penalty weight gamma / largest eigenvalue")
    axes.set_ylim(min(0.8 * path.n_live.min(), path.n_components), 1.25 * path.n_live.max())
    axes.set_ylabel("features alive", color=colours[0])
    axes.set_xlim(_span(share))
    for axis in (axes.xaxis, axes.yaxis):
        plain_decades(axis)
    right = axes.twinx()
    right.plot(
        share,
        100 * path.explained_variance,
        color=colours[1],
        marker="s",
        markersize=3.5,
        linewidth=1.3,
        linestyle="--",
    )
    right.set_ylabel("variance explained, %", color=colours[1])
    right.set_ylim(0.0, 1.08 * max(100 * float(path.explained_variance.max()), 1e-12))
    for side in (axes, right):
        _spare(side)
    right.spines["right"].set_visible(True)
    return right


def plain_decades(axis: Any) -> None:
    """Ticks at 1, 2 and 5 times the powers of ten, written out."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)


def _worth_a_line(path: "SPCAFSPath") -> IndexArray:
    """The first to enter, and those that are large at PCA: together at most MOST_LINES."""
    at_pca = np.argsort(-path.scores[0], kind="stable")[: MOST_LINES // 2]
    return np.union1d(at_pca, path.entry[: MOST_LINES // 2])


def _span(share: FloatArray) -> tuple[float, float]:
    """The limits of the horizontal axis; a single point gets some room."""
    room = 1.03 if len(share) > 1 else 2.0
    return float(share[0]) / room, float(share[-1]) * room


def _spare(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _pair(axes: Any) -> tuple[Any, Any]:
    try:
        upper, lower = axes
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"axes must be two matplotlib axes, one above the other; got {shortened(axes)}. None "
            "makes them."
        ) from error
    return upper, lower


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            'A plot needs matplotlib, which is not installed. Run: pip install "keepers[plot]"'
        ) from error
    _, axes = plt.subplots(
        2, 1, sharex=True, figsize=(8, 6), height_ratios=(3, 2), layout="constrained"
    )
    return axes
