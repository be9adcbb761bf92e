"""Figures with curves: ACC and NMI against k, settings, descent of the objective, growth."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from keepers.reporting.inline_svg import new_figure
from keepers.studies.cost import GrowthRow, Slope
from keepers.studies.drawing import Picture, finish
from keepers.studies.formatting import number, short
from keepers.studies.palette import LINE, MUTED, PAPER, RAMP, Look
from keepers.studies.paper_claims.algorithm import MOST_STEPS, Descent
from keepers.studies.scores import MEASURES, Comparison, Measure
from keepers.studies.specification import Sweep

__all__ = ["against_k", "descent_curves", "growth_curves", "sweep_curves"]

WIDTH = 1080
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<")
_SIGNS = {"gamma": "γ", "n_components": "m", "alpha": "α", "beta": "β"}


def against_k(
    comparison: Comparison, measure: Measure, looks: Mapping[str, Look], name: str, label: str
) -> Picture:
    """One panel a data set, all methods."""
    n_columns = min(3, len(comparison.data))
    n_rows = ceil(len(comparison.data) / n_columns)
    width = WIDTH if n_columns == 3 else 420 * n_columns + 60
    n_lines = ceil(len(comparison.methods) / (6 if n_columns == 3 else 2 * n_columns + 1))
    figure = new_figure(name, width, 255 * n_rows + 24 * n_lines + 20)
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    drawn: dict[str, Any] = {}
    for panel, data in zip(panels, comparison.data, strict=False):
        _panel_of_methods(panel, comparison, data, measure, looks, drawn)
    for panel in panels[len(comparison.data) :]:
        panel.set_visible(False)
    for panel in panels[::n_columns]:
        panel.set_ylabel(measure.upper())
    for panel in panels[: len(comparison.data)][-n_columns:]:
        panel.set_xlabel("features kept, k")
    ordered = [method for method in comparison.methods if method in drawn]
    _legend(figure, [drawn[m] for m in ordered], [short(m) for m in ordered], n_lines)
    return finish(figure, name, label)


def _panel_of_methods(
    panel: Any,
    comparison: Comparison,
    data: str,
    measure: Measure,
    looks: Mapping[str, Look],
    drawn: dict[str, Any],
) -> None:
    ks = comparison.ks[data]
    panel.set_title(short(data))
    for method in comparison.methods:
        curve = comparison.curve(data, method, measure)
        if not curve:
            continue
        (line,) = panel.plot(list(curve), list(curve.values()), **_drawn_as(looks[method]))
        drawn.setdefault(method, line)
    if not panel.lines:
        _say(panel, "no results yet")
    panel.set_xticks(_few(ks))
    if len(ks) > 1:
        room = 0.04 * (ks[-1] - ks[0])
        panel.set_xlim(ks[0] - room, ks[-1] + room)


def _drawn_as(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": look.width,
        "marker": look.marker or None,
        "markersize": 6.5 if look.on_top else 6.5 if look.marker in "PX" else 5,
        "markerfacecolor": PAPER if look.hollow else look.colour,
        "markeredgecolor": look.colour if look.hollow else PAPER,
        "markeredgewidth": 1.0 if look.hollow else 0.4,
        "zorder": 5 if look.on_top else 3 if look.marker else 2.5,
    }


def sweep_curves(
    sweep: Sweep, scores: Mapping[str, Mapping[Measure, Mapping[Any, Mapping[int, float]]]]
) -> Picture:
    """A row a data set: ACC and NMI against k for each value, and their means against the value."""
    name = f"sweep-{slug(sweep.name)}"
    sign = _SIGNS.get(sweep.vary, sweep.vary)
    figure = new_figure(name, WIDTH, 270 * len(scores) + 50)
    rows = figure.subplots(len(scores), 3, squeeze=False)
    for panels, (data, by_measure) in zip(rows, scores.items(), strict=True):
        for panel, measure in zip(panels, MEASURES, strict=False):
            _panel_of_values(panel, by_measure[measure], sweep.values)
            panel.set_title(f"{short(data)}: {measure.upper()}")
        _panel_of_means(panels[2], by_measure, sweep.values, sign)
    lines = {line.get_label(): line for panel in rows[:, :2].ravel() for line in panel.lines}
    shown = [number(value) for value in sweep.values if number(value) in lines]
    _legend(figure, [lines[v] for v in shown], [f"{sign} = {v}" for v in shown], 1)
    return finish(figure, name, f"ACC and NMI of {sweep.method} for each {sweep.vary}")


def _panel_of_values(
    panel: Any, curves: Mapping[Any, Mapping[int, float]], values: Sequence[Any]
) -> None:
    for place, value in enumerate(values):
        if value in curves:
            curve = curves[value]
            panel.plot(
                list(curve),
                list(curve.values()),
                color=_on_ramp(place, len(values)),
                marker=_MARKS[place % len(_MARKS)],
                markersize=5,
                markeredgecolor=PAPER,
                markeredgewidth=0.6,
                linewidth=1.5,
                label=number(value),
            )
    panel.set_xlabel("features kept, k")
    ks = sorted({k for curve in curves.values() for k in curve})
    panel.set_xticks(_few(ks))


def _panel_of_means(
    panel: Any,
    by_measure: Mapping[Measure, Mapping[Any, Mapping[int, float]]],
    values: Sequence[Any],
    sign: str,
) -> None:
    for measure, dash in zip(MEASURES, ("solid", (0, (4, 2))), strict=True):
        curves = by_measure[measure]
        means = [
            float(np.mean(list(curves[v].values()))) if v in curves else np.nan for v in values
        ]
        panel.plot(means, color=MUTED, linestyle=dash, linewidth=1.6, zorder=2)
        for place, mean in enumerate(means):
            panel.plot(
                place,
                mean,
                _MARKS[place % len(_MARKS)],
                color=_on_ramp(place, len(values)),
                markersize=7,
                zorder=3,
            )
        last = max((i for i, mean in enumerate(means) if mean == mean), default=None)
        if last is not None:
            panel.annotate(
                measure.upper(),
                (last, means[last]),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                color=MUTED,
            )
    panel.set_title("mean over k")
    panel.set_xlabel(sign)
    panel.set_xticks(range(len(values)), [number(value) for value in values])
    panel.set_xlim(-0.4, len(values) - 0.2)


def descent_curves(runs: Sequence[Descent]) -> Picture:
    """How much of the decrease of the objective is still to come, step by step."""
    data = list(dict.fromkeys(run.data for run in runs))
    gammas = list(dict.fromkeys(run.gamma for run in runs))
    n_columns = min(4, len(data))
    n_rows = ceil(len(data) / n_columns)
    f = new_figure("convergence", WIDTH if n_columns > 2 else 430 * n_columns, 270 * n_rows + 50)
    panels = f.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
    drawn: dict[str, Any] = {}
    for run in runs:
        panel = panels[data.index(run.data)]
        place = gammas.index(run.gamma)
        left = _still_to_come(run.objective)
        (line,) = panel.plot(
            np.arange(1, len(left) + 1),
            left,
            color=_on_ramp(place, len(gammas)),
            marker=_MARKS[place % len(_MARKS)],
            markersize=4,
            markevery=max(1, len(left) // 12),
            linewidth=1.6,
        )
        drawn.setdefault(number(run.gamma), line)
    for panel, name in zip(panels, data, strict=False):
        panel.set_title(short(name))
        panel.set_xlabel("step")
        panel.set_yscale("log")
        panel.set_ylim(1e-8, 2)
        panel.yaxis.set_major_formatter(_power_of_ten)
        panel.minorticks_off()
        panel.axvline(MOST_STEPS, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
    for panel in panels[len(data) :]:
        panel.set_visible(False)
    panels[0].set_ylabel("share of the decrease to come")
    _legend(f, list(drawn.values()), [f"γ = {gamma}" for gamma in drawn], 1)
    return finish(f, "convergence", "Objective of Algorithm 1 step by step")


def _still_to_come(objective: Sequence[float]) -> Any:
    values = np.asarray(objective)
    whole = values[0] - values[-1]
    if whole <= 0:
        return np.ones(1)
    left = (values - values[-1]) / whole
    return left[: int(np.flatnonzero(left > 0)[-1]) + 1]


def growth_curves(rows: Sequence[GrowthRow], looks: Mapping[str, Look]) -> Picture:
    """Seconds of one fit against the number of samples and of features."""
    figure = new_figure("growth", 860, 400)
    by_samples, by_features = figure.subplots(1, 2, sharey=True)
    drawn: dict[str, Any] = {}
    for row in rows:
        for panel, slope in ((by_samples, row.in_samples), (by_features, row.in_features)):
            sizes, seconds = _timed(slope)
            if sizes:
                (line,) = panel.plot(sizes, seconds, **_drawn_as(looks[row.method]))
                drawn.setdefault(row.method, line)
    by_samples.set_xlabel("samples, n")
    by_features.set_xlabel("features, d")
    by_samples.set_ylabel("seconds of one fit")
    for panel, name in ((by_samples, "in_samples"), (by_features, "in_features")):
        panel.set_xscale("log")
        panel.set_yscale("log")
        sizes = sorted({size for row in rows for size, _ in getattr(row, name).seconds})
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.yaxis.set_major_formatter(_power_of_ten)
        panel.minorticks_off()
    _legend(figure, list(drawn.values()), [short(m) for m in drawn], 2)
    return finish(figure, "growth", "Time of one fit as the table grows")


def _power_of_ten(value: float, _: int) -> str:
    return number(float(value))


def _timed(slope: Slope) -> tuple[list[int], list[float]]:
    known = [(size, seconds) for size, seconds in slope.seconds if seconds]
    return [size for size, _ in known], [seconds for _, seconds in known]


def slug(text: str) -> str:
    """A name that is safe in files and in HTML, and different for every text.

    Examples
    --------
    >>> slug("default gamma"), slug("Gamma!")
    ('default-gamma', 'gamma-5bdab3')
    """
    if re.fullmatch(r"[a-z0-9]+( [a-z0-9]+)*", text):
        return text.replace(" ", "-")
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join([*words, hashlib.sha256(text.encode()).hexdigest()[:6]])


def _on_ramp(place: int, count: int) -> str:
    return RAMP[round(place * (len(RAMP) - 1) / max(1, count - 1))]


def _few(ks: Sequence[int]) -> list[int]:
    """At most five of the ks, the largest among them."""
    step = ceil(len(ks) / 5) if ks else 1
    return sorted(list(ks)[::-1][::step])


def _say(panel: Any, text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color=MUTED)
    panel.set_yticks([])
    panel.spines[:].set_color(LINE)


def _legend(figure: Any, lines: list[Any], texts: list[str], n_lines: int) -> None:
    if lines:
        figure.legend(
            lines,
            texts,
            loc="outside lower center",
            ncols=ceil(len(lines) / n_lines),
            handlelength=2.6,
            columnspacing=1.6,
        )
