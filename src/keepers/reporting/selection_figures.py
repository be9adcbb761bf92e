"""The figures of a selection report."""

from dataclasses import dataclass
from html import escape
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.reporting.kept_values import FARTHEST, HeatMap
from keepers.reporting.report_parts import (
    ACCENT,
    INK,
    LINE,
    MUTED,
    clean_style,
    count,
    display_name,
    inline_svg,
    new_figure,
    percent,
)
from keepers.reporting.selection_summary import (
    Classes,
    Convergence,
    NeighbourAgreement,
    Plane,
    Planes,
    Redundancy,
    ReportedPath,
    SelectionSummary,
)
from keepers.tuning.gamma_path import COLOURS as PATH_COLOURS
from keepers.tuning.gamma_path import draw_counts, draw_scores

# Ten hues that part on white and on near-black.
COLOURS = (
    "#3b82c4", "#e8853a", "#3fa66b", "#d4524e", "#8d6cc3",
    "#b08a3e", "#d873b0", "#2aa5b0", "#8fae2e", "#8a929c",
)  # fmt: skip
WARM = "#d9702b"
"""Above the mean, in the heat map; below it is the first of the colours."""
MOST_CURVE_POINTS = 800
LONGEST_LABEL = 24
LETTER = 11.0
"""Height of labels that stand at rows, in pixels: such figures are not scaled."""
NARROWEST_ROW, WIDEST_ROW = 13.0, 38.0
HEAT_WIDTH = 1040.0
_SHADES = 12
_MOST_OF_LETTER = 0.62


@dataclass(frozen=True)
class Figure:
    """An ``<svg>`` element, and where things stand in it (in units of its viewBox)."""

    svg: str
    frame: tuple[float, float, float, float]
    """Left, top, right, bottom of the axes."""
    span: tuple[float, float] = (0.0, 1.0)
    """Horizontal data values at the left and right of the frame."""
    points: FloatArray | None = None


@dataclass(frozen=True)
class Figures:
    """All figures of a report; None where there is nothing to draw."""

    scores: Figure
    convergence: Figure | None
    heat: str | None
    agreement: Figure | None
    redundancy: Figure | None
    before: Figure | None
    after: Figure | None
    path: str | None = None
    """An ``<svg>`` element; nothing in it follows the pointer."""


def draw(summary: SelectionSummary) -> Figures:
    """Draw everything that the summary has the numbers for."""
    with clean_style():
        before, after = None, None
        if summary.planes is not None:
            before, after = _both_planes(summary.planes, summary.classes)
        names, heat = summary.ranked.names, summary.heat
        return Figures(
            scores=_scores(summary),
            convergence=None if summary.convergence is None else _convergence(summary.convergence),
            heat=None if heat is None else _heat(heat, names, summary.classes),
            agreement=None if summary.agreement is None else _agreement(summary.agreement),
            redundancy=None if summary.redundancy is None else _map(summary.redundancy, names),
            before=before,
            after=after,
            path=None if summary.path is None else _path(summary.path),
        )


def ranks_shown(n_features: int, k: int, knee: int | None) -> int:
    """Ranks on the score curve: thrice what is kept or stands before the knee, 30 at least."""
    return max(1, min(n_features, max(30, 3 * k, 3 * (knee or 0))))


def _scores(summary: SelectionSummary) -> Figure:
    # What stands behind was skipped, whatever it scores: the curve would leap up there.
    shown = ranks_shown(summary.selection.n_by_score, summary.selection.k, summary.knee)
    scores = summary.ranked.scores[:shown]
    ranks = np.unique(np.linspace(1, shown, min(shown, MOST_CURVE_POINTS)).round().astype(int))
    board = new_figure("scores", 340, 225)
    axes = board.add_subplot()
    axes.plot(ranks, scores[ranks - 1], color=ACCENT, linewidth=1.8)
    if summary.stability is not None:
        _error_bars(axes, ranks, summary.stability.intervals[ranks - 1])
        _mark_threshold(axes, summary.stability.bound.threshold)
    if summary.knee is not None:
        _mark(axes, "knee", summary.knee, float(scores[summary.knee - 1]))
    axes.set_xlim(1, max(shown, 2))
    axes.set_xlabel("rank")
    axes.set_ylabel("score" if summary.stability is None else "selection frequency")
    axes.grid(axis="y")
    _few_ticks(axes)
    axes.xaxis.set_major_formatter(lambda value, _: count(round(value)))
    svg = inline_svg(board, "Scores of the ranked features")
    return Figure(svg, _frame(board, axes), axes.get_xlim())


def _error_bars(axes: Any, ranks: IndexArray, intervals: FloatArray) -> None:
    ends = np.stack([np.repeat(ranks, 2), intervals.ravel()], axis=1)
    width = float(np.clip(90 / len(ranks), 0.5, 3.0))
    axes.add_patch(_segments(ends, edgecolor=ACCENT, linewidth=width, alpha=0.35))
    axes.set_ylim(0.0, 1.04)


def _segments(ends: FloatArray, **look: Any) -> Any:
    """Lines between each two points as one path: a tenth of the bytes of a path each."""
    Path = optional("matplotlib.path", "Reports").Path
    path = Path(ends, np.tile([Path.MOVETO, Path.LINETO], len(ends) // 2))
    path.should_simplify = False
    return optional("matplotlib.patches", "Reports").PathPatch(path, fill=False, **look)


def _mark_threshold(axes: Any, threshold: float) -> None:
    axes.axhline(threshold, color=MUTED, linewidth=1.0, linestyle=":")
    axes.annotate(
        f"stable from {threshold:g}",
        (1.0, threshold),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        color=MUTED,
    )


def _mark(axes: Any, what: str, number: int, height: float, offset: int = 12) -> None:
    """A circle on a curve at a number of features, with its name and the number."""
    axes.plot([number], [height], "o", markersize=7, markerfacecolor="none", color=INK, zorder=5)
    axes.annotate(
        f"{what}: {count(number)}",
        (number, height),
        xytext=(10, offset),
        textcoords="offset points",
        color=INK,
    )


def _convergence(convergence: Convergence) -> Figure:
    """How far every step was from the last, as a share of the whole way; no unit, no offset."""
    objective = convergence.objective
    away = np.abs(objective - objective[-1]) / np.abs(objective[0] - objective[-1])
    steps = np.flatnonzero(away > 0)
    board = new_figure("convergence", 340, 200)
    axes = board.add_subplot()
    axes.plot(steps + 1, 100 * away[steps], color=ACCENT, linewidth=1.8)
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("way left (%)")
    axes.grid(axis="y")
    ticker = optional("matplotlib.ticker", "Reports")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(ticker.LogLocator(numticks=5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.tick_params(length=0)
    svg = inline_svg(board, "What was left of the way to the last objective, after every step")
    return Figure(svg, _frame(board, axes))


def _agreement(found: NeighbourAgreement) -> Figure:
    board = new_figure("agreement", 340, 200)
    axes = board.add_subplot()
    axes.plot(found.counts, found.agreement, color=ACCENT, linewidth=1.8)
    if len(found.drawn):
        axes.axhline(float(found.drawn.mean()), color=MUTED, linewidth=1.0, linestyle=":")
    _mark(axes, "enough", found.n_enough, found.enough, offset=-18)
    axes.set_xlim(0, float(found.counts[-1]) * 1.04)
    axes.set_ylim(0.0, max(1.0, float(found.agreement.max())) * 1.04)
    axes.set_xlabel("number of features")
    axes.set_ylabel("agreement of neighbours")
    axes.grid(axis="y")
    _few_ticks(axes)
    svg = inline_svg(board, "Agreement of neighbours by number of features")
    return Figure(svg, _frame(board, axes), axes.get_xlim())


def _map(redundancy: Redundancy, names: tuple[str, ...]) -> Figure:
    """The correlation map: the accent colour, as opaque as |r|, so that it reads on any ground."""
    size = len(redundancy.shown)
    labels = [display_name(names[position], LONGEST_LABEL) for position in redundancy.shown]
    side = size * float(np.clip(300 / size, NARROWEST_ROW, WIDEST_ROW))
    left, right = _label_width(labels), 62.0
    width, height = left + side + right, max(side, 120.0) + 8
    board = new_figure("redundancy", width, height)
    board.set_layout_engine("none")
    axes = board.add_axes((left / width, 1 - (side + 4) / height, side / width, side / height))
    axes.imshow(_tint(COLOURS[0], np.abs(redundancy.correlation)), interpolation="none")
    _bare(axes)
    legend = board.add_axes(((width - 50) / width, 1 - 110 / height, 10 / width, 80 / height))
    ramp = board.colorbar(_ramp(), cax=legend, ticks=[0, 0.5, 1])
    legend.set_title("|r|", color=MUTED)
    ramp.outline.set_edgecolor(LINE)
    ramp.outline.set_linewidth(0.6)
    legend.tick_params(length=0)
    label = "Correlations among the kept features, similar ones side by side"
    svg = inline_svg(board, label, f"--natural: {width:.0f}px")
    frame = _frame(board, axes)
    return Figure(svg.replace("</svg>", _row_labels(labels, frame) + "</svg>"), frame)


def _heat(heat: HeatMap, names: tuple[str, ...], classes: Classes | None) -> str:
    """Kept features over samples: orange above the mean of a feature, blue below."""
    n_rows = len(heat.z)
    labels = [display_name(name, LONGEST_LABEL) for name in names[:n_rows]]
    row = float(np.clip(260 / n_rows, NARROWEST_ROW, 22.0))
    left, top = _label_width(labels), 26.0 if classes is not None else 4.0
    width, height = HEAT_WIDTH, top + n_rows * row + 4
    board = new_figure("heat", width, height)
    board.set_layout_engine("none")
    size = ((width - left - 4) / width, n_rows * row / height)
    axes = board.add_axes((left / width, 4 / height, *size))
    # A few shades: the picture in the file is a third of the size.
    strength = np.rint(_SHADES * np.abs(heat.z) / FARTHEST) / _SHADES
    cells = np.where(heat.z[..., None] > 0, _tint(WARM, strength), _tint(COLOURS[0], strength))
    axes.imshow(cells, interpolation="none", aspect="auto")
    _bare(axes)
    svg = inline_svg(board, "Kept features over samples", f"--natural: {width:.0f}px")
    frame = _frame(board, axes)
    beside = _row_labels(labels, frame)
    if classes is not None:
        beside += _class_strip(heat, classes, frame)
    return svg.replace("</svg>", beside + "</svg>")


def _class_strip(heat: HeatMap, classes: Classes, frame: tuple[float, float, float, float]) -> str:
    """A bar in the colour of each class above its samples, with its name where that fits."""
    left, top, right, _ = frame
    step = (right - left) / len(heat.samples)
    parts, begin = [], left
    for at, n_columns in heat.classes:
        wide = n_columns * step
        parts.append(
            f'<rect x="{begin:.1f}" y="{top - 6:.1f}" width="{max(wide - 1, 0.5):.1f}" height="4" '
            f'fill="{COLOURS[at]}"/>\n'
        )
        label = display_name(classes.legend[at], LONGEST_LABEL)
        if _MOST_OF_LETTER * LETTER * _columns_wide(label) <= wide:
            middle = f'x="{begin + wide / 2:.1f}" y="{top - 11:.1f}"'
            parts.append(_svg_text(middle, "middle", label))
        begin += wide
    return "".join(parts)


def _label_width(labels: list[str]) -> float:
    return 8 + _MOST_OF_LETTER * LETTER * max(map(_columns_wide, labels))


def _bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _row_labels(labels: list[str], frame: tuple[float, float, float, float]) -> str:
    """Names beside rows, past Matplotlib: its fonts lack the letters of many languages."""
    left, top, _, bottom = frame
    step = (bottom - top) / len(labels)
    return "".join(
        _svg_text(f'x="{left - 4:.1f}" y="{top + (row + 0.5) * step + 4:.1f}"', "end", label)
        for row, label in enumerate(labels)
    )


def _svg_text(place: str, anchor: str, text: str) -> str:
    style = f"font-size: {LETTER:g}px; fill: var(--muted)"
    return f'<text {place} text-anchor="{anchor}" style="{style}">{escape(text)}</text>\n'


def _columns_wide(text: str) -> int:
    """Width of a text in letters: those of East Asia take two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _tint(colour: str, strength: FloatArray) -> FloatArray:
    rgb = optional("matplotlib.colors", "Reports").to_rgb(colour)
    return np.dstack([np.broadcast_to(rgb, (*strength.shape, 3)), strength])


def _ramp() -> Any:
    colors = optional("matplotlib.colors", "Reports")
    colour = colors.to_rgb(COLOURS[0])
    ends = [(*colour, 0.0), (*colour, 1.0)]
    tint = colors.LinearSegmentedColormap.from_list("strength", ends, N=64)
    return optional("matplotlib.cm", "Reports").ScalarMappable(colors.Normalize(0, 1), tint)


def _both_planes(planes: Planes, classes: Classes | None) -> tuple[Figure, Figure]:
    colour_of = np.zeros(len(planes.samples), dtype=np.intp)
    if classes is not None:
        colour_of = classes.colour_of[planes.samples]
    shared = classes is not None and classes.n_sharing > 0
    return (
        draw_plane("before", planes.before, colour_of, shared),
        draw_plane("after", planes.after, colour_of, shared),
    )


def draw_plane(name: str, plane: Plane, colour_of: Any, last_is_shared: bool) -> Figure:
    board = new_figure(name, 330, 280)
    axes = board.add_subplot()
    axes.update_datalim(plane.points)
    dot = 5.0 if len(plane.points) <= 500 else 3.4
    groups = sorted(set(colour_of.tolist()), reverse=last_is_shared)
    for group in groups:  # what shares a colour is drawn first, beneath the others
        _dots(axes, plane.points[colour_of == group], int(group), dot)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.06)
    axes.autoscale_view()
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"component 1 ({percent(plane.shares[0])})")
    axes.set_ylabel(f"component 2 ({percent(plane.shares[1])})")
    label = f"Samples on the first two components, {name} selection"
    svg = inline_svg(board, label)
    placed = axes.transData.transform(plane.points)
    placed[:, 1] = board.bbox.height - placed[:, 1]
    return Figure(svg, _frame(board, axes), points=placed)


def _dots(axes: Any, points: FloatArray, group: int, size: float) -> None:
    """Round-capped lines of no length: a tenth of the bytes of markers."""
    look = {"edgecolor": COLOURS[group], "linewidth": size, "capstyle": "round", "alpha": 0.8}
    patch = _segments(np.repeat(points, 2, axis=0), **look)
    patch.set_gid(f"class-{group}")
    axes.add_patch(patch)


def _few_ticks(axes: Any) -> None:
    MaxNLocator = optional("matplotlib.ticker", "Reports").MaxNLocator
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.tick_params(length=0)
    axes.yaxis.get_offset_text().set_color(MUTED)


def _frame(board: Any, axes: Any) -> tuple[float, float, float, float]:
    box = axes.get_window_extent()
    height = board.bbox.height
    return (float(box.x0), float(height - box.y1), float(box.x1), float(height - box.y0))


def _path(reported: ReportedPath) -> str:
    """Scores, active rows and variance along gamma; the names are set beside it as text."""
    path = reported.path
    board = new_figure("path", 560, 400)
    upper, lower = board.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    draw_scores(path, upper, reported.named, PATH_COLOURS, LINE)
    right = draw_counts(path, lower, (ACCENT, INK))
    upper.tick_params(labelbottom=False)
    for axes in (upper, lower, right):
        axes.tick_params(which="both", length=0)
    lower.tick_params(axis="y", labelcolor=ACCENT)
    if reported.gamma is not None:
        share = reported.gamma / path.largest_eigenvalue
        for axes in (upper, lower):
            axes.axvline(share, color=MUTED, linewidth=1.0, linestyle=":")
    return inline_svg(board, "Scores, active features and explained variance along gamma")
