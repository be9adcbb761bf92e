"""Figures that are not curves: critical differences, and where the time went."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from keepers.reporting.inline_svg import new_figure
from keepers.studies.cost import TimingRow
from keepers.studies.drawing import Picture, finish
from keepers.studies.formatting import seconds, short
from keepers.studies.palette import INK, MUTED, Look
from keepers.studies.rank_tests import RankTest

__all__ = ["critical_differences", "time_split"]

ROW = 21
SELECTION, KMEANS = "#2e93cc", "#d99000"


def critical_differences(tests: Mapping[str, RankTest], looks: Mapping[str, Look]) -> Picture:
    """Average ranks on a line; bars join methods that the test cannot tell apart."""
    n_rows = ceil(len(tests) / 2)
    most = max(ceil(len(test.average_ranks) / 2) for test in tests.values())
    bars = max(len(test.groups) for test in tests.values())
    height = 78 + ROW * most + 9 * bars
    figure = new_figure("critical-differences", 1080, height * n_rows)
    panels = figure.subplots(n_rows, min(2, len(tests)), squeeze=False).ravel()
    for panel in panels[len(tests) :]:
        panel.set_visible(False)
    for panel, (title, test) in zip(panels, tests.items(), strict=False):
        _diagram(panel, test, looks, height, bars)
        panel.set_title(title)
    return finish(
        figure, "critical-differences", "Average ranks of the methods and critical difference"
    )


def _diagram(
    panel: Any, test: RankTest, looks: Mapping[str, Look], height: float, bars: int
) -> None:
    """Coordinates: ranks across, points down from the axis of ranks at 0."""
    n_methods = len(test.average_ranks)
    panel.set_axis_off()
    margin = 0.42 * max(n_methods - 1, 1)
    panel.set_xlim(1 - margin, n_methods + margin)
    panel.set_ylim(-(height - 62), 34)
    panel.plot([1, n_methods], [0, 0], color=MUTED, linewidth=1.2)
    for rank in range(1, n_methods + 1):
        panel.plot([rank, rank], [0, 5], color=MUTED, linewidth=1)
        panel.text(rank, 8, str(rank), ha="center", va="bottom", color=MUTED, fontsize=10)
    width = test.critical_difference or 0.0
    panel.plot([1, 1 + width], [27, 27], color=INK, linewidth=1.6, marker="|", markersize=7)
    panel.text(1 + width + 0.1, 27, f"critical difference {width:.2f}", va="center", fontsize=10)
    for level, group in enumerate(test.groups):
        ends = [test.average_ranks[group[0]] - 0.06, test.average_ranks[group[-1]] + 0.06]
        panel.plot(ends, [-9 - 9 * level] * 2, color=INK, linewidth=3.2, solid_capstyle="round")
    _names(panel, test, looks, top=-(16 + 9 * bars))


def _names(panel: Any, test: RankTest, looks: Mapping[str, Look], top: float) -> None:
    """The better half on the left, the others on the right, the extremes highest."""
    ranked = list(test.average_ranks.items())
    half = ceil(len(ranked) / 2)
    low, high = 1 - 0.2, len(ranked) + 0.2
    for place, (method, rank) in enumerate(ranked):
        left = place < half
        y = top - ROW * (place if left else len(ranked) - 1 - place)
        edge = low if left else high
        colour = looks[method].colour
        panel.plot([rank, rank, edge], [0, y, y], color=colour, linewidth=1.1)
        panel.plot(rank, 0, "o", color=colour, markersize=5, zorder=4)
        panel.text(
            edge + (-0.1 if left else 0.1),
            y,
            f"{short(method)}  {rank:.2f}" if left else f"{rank:.2f}  {short(method)}",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontweight="bold" if looks[method].on_top else "normal",
            fontsize=10.5,
        )


def time_split(rows: Sequence[TimingRow], data: Sequence[str], methods: Sequence[str]) -> Picture:
    """For each data set and method the share of selection and of k-means, and the seconds."""
    shown = {(row.data, row.method): row for row in rows if row.role in ("grid", "draw")}
    present = [name for name in data if any(place[0] == name for place in shown)]
    n_columns = min(3, len(present))
    n_rows = ceil(len(present) / n_columns)
    width = 1080 if n_columns == 3 else 440 * n_columns + 60
    figure = new_figure("time-split", width, (ROW * len(methods) + 58) * n_rows + 34)
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
    for panel in panels[len(present) :]:
        panel.set_visible(False)
    for panel, name in zip(panels, present, strict=False):
        _bars(panel, [shown.get((name, method)) for method in methods])
        panel.set_title(short(name))
    names = [short(method) for method in methods]
    panels[0].set_yticks(range(len(methods)), names)
    panels[0].set_ylim(len(methods) - 0.4, -0.6)
    bars = [panels[0].barh(0, 0, color=colour) for colour in (SELECTION, KMEANS)]
    figure.legend(bars, ["selection", "k-means"], loc="outside lower center", ncols=2)
    return finish(figure, "time-split", "Time in selection and in k-means")


def _bars(panel: Any, rows: Sequence[TimingRow | None]) -> None:
    for place, row in enumerate(rows):
        text = _told(row)
        share = None if row is None else row.share_of_selection
        if share is not None:
            panel.barh(place, share, color=SELECTION, height=0.66)
            panel.barh(place, 1 - share, left=share, color=KMEANS, height=0.66)
        at = 0.0 if share is None else 1.03
        panel.text(at, place, text, va="center", color=MUTED, fontsize=10)
    panel.tick_params(axis="y", labelcolor=INK, length=0)
    panel.set_xlim(0, 1.32)
    panel.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    panel.grid(False)
    panel.spines[["left", "bottom"]].set_visible(False)


def _told(row: TimingRow | None) -> str:
    if row is None:
        return "not run"
    if row.share_of_selection is None:
        return f"{row.unsuccessful} of {row.fits} fits failed"
    total = seconds(row.fit_seconds + row.kmeans_seconds)
    return f"{total}*" if row.unsuccessful else total
