"""Every figure that a study has the numbers for."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from keepers.reporting.report_parts import new_figure
from keepers.studies.cost import GrowthRow, Slope, TimingRow
from keepers.studies.drawing import (
    FAINT,
    INK,
    LINE,
    MUTED,
    PAPER,
    RAMP,
    Look,
    Picture,
    looks_of,
    render,
)
from keepers.studies.formatting import number, seconds, short, slug
from keepers.studies.paper_claims.algorithm import MOST_STEPS, Descent, descents
from keepers.studies.rank_tests import RankTest
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun
from keepers.studies.scores import MEASURES, Comparison, Measure, sweep_scores
from keepers.studies.specification import Sweep

WIDTH = 1080
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<")
_SIGNS = {"gamma": "γ", "n_components": "m", "alpha": "α", "beta": "β"}
ROW = 21
MOST_NUMBERS = 12  # on the axis of ranks, where more would touch
SELECTION, KMEANS = "#2e93cc", "#d99000"


def draw_figures(study: StudyResults) -> dict[str, Picture]:
    """The figures by name, without those that have nothing to show; call it inside `our_style`."""
    return {picture.name: picture for picture in _pictures(study)}


def _pictures(study: StudyResults) -> list[Picture]:
    run = study.run
    looks = looks_of(run.spec)
    pictures = []
    for tuning, comparison in study.by_tuning:
        for measure in MEASURES:
            if any(score.status == "ok" for score in comparison.scores.values()):
                label = f"{measure.upper()} against the number of features, {tuning}"
                name = f"{measure}-{tuning}"
                pictures.append(against_k(comparison, measure, looks, name, label))
    tests = {t: test for t, test in study.rank_tests.items() if not test.not_tested}
    if tests:
        pictures.append(critical_differences(tests, looks))
    pictures += _sweeps(run)
    runs = descents(run)
    if runs:
        pictures.append(descent_curves(runs))
    if any(seconds for row in study.growth for _, seconds in row.in_samples.seconds):
        pictures.append(growth_curves(study.growth, looks))
    if any(row.role in ("grid", "draw") for row in study.timing):
        pictures.append(time_split(study.timing, list(run.tables), list(looks)))
    return pictures


def _sweeps(run: StudyRun) -> list[Picture]:
    found = []
    for sweep in run.spec.sweeps:
        if not sweep.judge:
            continue
        scores = {
            data: {measure: sweep_scores(run, sweep.name, data, measure) for measure in MEASURES}
            for data in sweep.data
        }
        scores = {data: by_measure for data, by_measure in scores.items() if by_measure["acc"]}
        if scores:
            found.append(sweep_curves(sweep, scores))
    return found


def against_k(
    comparison: Comparison,
    measure: Measure,
    looks: Mapping[str, Look],
    name: str,
    label: str,
    faint: Collection[str] = (),
) -> Picture:
    """One panel a data set, all methods; those of ``faint`` thin and grey, under one name."""
    n_columns, n_rows = _grid(len(comparison.data), 3)
    width = WIDTH if n_columns == 3 else 420 * n_columns + 60
    n_named = len(comparison.methods) - len(faint) + bool(faint)
    n_lines = ceil(n_named / (6 if n_columns == 3 else 2 * n_columns + 1))
    looks = {**looks, **dict.fromkeys(faint, FAINT)}
    figure = new_figure(name, width, 255 * n_rows + 24 * n_lines + 20)
    panels = _panels(figure, len(comparison.data), n_columns)
    drawn: dict[str, Any] = {}
    for panel, data in zip(panels, comparison.data, strict=True):
        _draw_methods(panel, comparison, data, measure, looks, drawn)
    for panel in panels[::n_columns]:
        panel.set_ylabel(measure.upper())
    for panel in panels[-n_columns:]:
        panel.set_xlabel("features kept, k")
    named = [method for method in comparison.methods if method in drawn and method not in faint]
    lines, texts = [drawn[method] for method in named], [short(method) for method in named]
    if faint:
        lines.append(drawn[next(iter(faint))])
        texts.append("the others")
    _add_legend(figure, lines, texts, n_lines)
    return render(figure, name, label)


def _draw_methods(
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
        (line,) = panel.plot(list(curve), list(curve.values()), **_line_style(looks[method]))
        drawn.setdefault(method, line)
    if not panel.lines:
        _write_note(panel, "no results yet")
    panel.set_xticks(_ticks(ks))
    if len(ks) > 1:
        margin = 0.04 * (ks[-1] - ks[0])
        panel.set_xlim(ks[0] - margin, ks[-1] + margin)


def _line_style(look: Look) -> dict[str, Any]:
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
        "alpha": look.alpha,
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
            _draw_values(panel, by_measure[measure], sweep.values)
            panel.set_title(f"{short(data)}: {measure.upper()}")
        _draw_means(panels[2], by_measure, sweep.values, sign)
    lines = {line.get_label(): line for panel in rows[:, :2].ravel() for line in panel.lines}
    shown = [number(value) for value in sweep.values if number(value) in lines]
    _add_legend(figure, [lines[v] for v in shown], [f"{sign} = {v}" for v in shown], 1)
    return render(figure, name, f"ACC and NMI of {sweep.method} for each {sweep.vary}")


def _draw_values(
    panel: Any, curves: Mapping[Any, Mapping[int, float]], values: Sequence[Any]
) -> None:
    for place, value in enumerate(values):
        if value in curves:
            curve = curves[value]
            panel.plot(
                list(curve),
                list(curve.values()),
                **_ramp_style(place, len(values)),
                markersize=5,
                markeredgecolor=PAPER,
                markeredgewidth=0.6,
                linewidth=1.5,
                label=number(value),
            )
    panel.set_xlabel("features kept, k")
    ks = sorted({k for curve in curves.values() for k in curve})
    panel.set_xticks(_ticks(ks))


def _draw_means(
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
            style = _ramp_style(place, len(values))
            panel.plot(place, mean, **style, linestyle="none", markersize=7, zorder=3)
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
    n_columns, n_rows = _grid(len(data), 4)
    f = new_figure("convergence", WIDTH if n_columns > 2 else 430 * n_columns, 270 * n_rows + 50)
    panels = _panels(f, len(data), n_columns, sharey=True)
    drawn: dict[str, Any] = {}
    for run in runs:
        panel = panels[data.index(run.data)]
        place = gammas.index(run.gamma)
        left = _remaining_decrease(run.objective)
        (line,) = panel.plot(
            np.arange(1, len(left) + 1),
            left,
            **_ramp_style(place, len(gammas)),
            markersize=4,
            markevery=max(1, len(left) // 12),
            linewidth=1.6,
        )
        drawn.setdefault(number(run.gamma), line)
    for panel, name in zip(panels, data, strict=True):
        panel.set_title(short(name))
        panel.set_xlabel("step")
        panel.set_yscale("log")
        panel.set_ylim(1e-8, 2)
        panel.yaxis.set_major_formatter(_power_of_ten)
        panel.minorticks_off()
        panel.axvline(MOST_STEPS, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
    panels[0].set_ylabel("share of the decrease to come")
    _add_legend(f, list(drawn.values()), [f"γ = {gamma}" for gamma in drawn], 1)
    return render(f, "convergence", "Objective of Algorithm 1 step by step")


def _remaining_decrease(objective: Sequence[float]) -> Any:
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
            sizes, seconds = _known_times(slope)
            if sizes:
                (line,) = panel.plot(sizes, seconds, **_line_style(looks[row.method]))
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
    _add_legend(figure, list(drawn.values()), [short(m) for m in drawn], 2)
    return render(figure, "growth", "Time of one fit as the table grows")


def _power_of_ten(value: float, _: int) -> str:
    return number(float(value))


def _known_times(slope: Slope) -> tuple[list[int], list[float]]:
    known = [(size, seconds) for size, seconds in slope.seconds if seconds]
    return [size for size, _ in known], [seconds for _, seconds in known]


def _grid(n_panels: int, most_columns: int) -> tuple[int, int]:
    """Columns and rows of a figure."""
    n_columns = min(most_columns, n_panels)
    return n_columns, ceil(n_panels / n_columns)


def _panels(figure: Any, n_panels: int, n_columns: int, **shared: bool) -> list[Any]:
    """The panels of a figure, row by row; the rest of the last row stays empty."""
    n_rows = ceil(n_panels / n_columns)
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False, **shared).ravel())
    for panel in panels[n_panels:]:
        panel.set_visible(False)
    return panels[:n_panels]


def _ramp_style(place: int, count: int) -> dict[str, str]:
    """Colour and marker of a setting, from its small to its large values."""
    colour = RAMP[round(place * (len(RAMP) - 1) / max(1, count - 1))]
    return {"color": colour, "marker": _MARKS[place % len(_MARKS)]}


def _ticks(ks: Sequence[int]) -> list[int]:
    """At most five of the ks, the largest among them."""
    step = ceil(len(ks) / 5) if ks else 1
    return sorted(list(ks)[::-1][::step])


def _write_note(panel: Any, text: str) -> None:
    panel.text(0.5, 0.5, text, transform=panel.transAxes, ha="center", va="center", color=MUTED)
    panel.set_yticks([])
    panel.spines[:].set_color(LINE)


def _add_legend(figure: Any, lines: list[Any], texts: list[str], n_lines: int) -> None:
    if lines:
        figure.legend(
            lines,
            texts,
            loc="outside lower center",
            ncols=ceil(len(lines) / n_lines),
            handlelength=2.6,
            columnspacing=1.6,
        )


def critical_differences(tests: Mapping[str, RankTest], looks: Mapping[str, Look]) -> Picture:
    """Average ranks on a line; bars join methods that the test cannot tell apart."""
    n_columns, n_rows = _grid(len(tests), 2)
    most = max(ceil(len(test.average_ranks) / 2) for test in tests.values())
    bars = max(len(test.groups) for test in tests.values())
    height = 78 + ROW * most + 9 * bars
    figure = new_figure("critical-differences", 1080, height * n_rows)
    panels = _panels(figure, len(tests), n_columns)
    for panel, (title, test) in zip(panels, tests.items(), strict=True):
        _draw_ranks(panel, test, looks, height, bars)
        panel.set_title(title)
    return render(
        figure, "critical-differences", "Average ranks of the methods and critical difference"
    )


def _draw_ranks(
    panel: Any, test: RankTest, looks: Mapping[str, Look], height: float, bars: int
) -> None:
    """Coordinates: ranks across, points down from the axis of ranks at 0."""
    n_methods = len(test.average_ranks)
    panel.set_axis_off()
    margin = 0.42 * max(n_methods - 1, 1)
    panel.set_xlim(1 - margin, n_methods + margin)
    panel.set_ylim(-(height - 62), 34)
    panel.plot([1, n_methods], [0, 0], color=MUTED, linewidth=1.2)
    every = ceil(n_methods / MOST_NUMBERS)
    for rank in range(1, n_methods + 1):
        panel.plot([rank, rank], [0, 5], color=MUTED, linewidth=1)
        if (rank - 1) % every == 0:
            panel.text(rank, 8, str(rank), ha="center", va="bottom", color=MUTED, fontsize=10)
    width = test.critical_difference or 0.0
    panel.plot([1, 1 + width], [27, 27], color=INK, linewidth=1.6, marker="|", markersize=7)
    panel.text(1 + width + 0.1, 27, f"critical difference {width:.2f}", va="center", fontsize=10)
    for level, group in enumerate(test.groups):
        ends = [test.average_ranks[group[0]] - 0.06, test.average_ranks[group[-1]] + 0.06]
        panel.plot(ends, [-9 - 9 * level] * 2, color=INK, linewidth=3.2, solid_capstyle="round")
    _draw_names(panel, test, looks, top=-(16 + 9 * bars))


def _draw_names(panel: Any, test: RankTest, looks: Mapping[str, Look], top: float) -> None:
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
    n_columns, n_rows = _grid(len(present), 3)
    width = WIDTH if n_columns == 3 else 440 * n_columns + 60
    figure = new_figure("time-split", width, (ROW * len(methods) + 58) * n_rows + 34)
    panels = _panels(figure, len(present), n_columns, sharey=True)
    for panel, name in zip(panels, present, strict=True):
        _draw_bars(panel, [shown.get((name, method)) for method in methods])
        panel.set_title(short(name))
    names = [short(method) for method in methods]
    panels[0].set_yticks(range(len(methods)), names)
    panels[0].set_ylim(len(methods) - 0.4, -0.6)
    bars = [panels[0].barh(0, 0, color=colour) for colour in (SELECTION, KMEANS)]
    figure.legend(bars, ["selection", "k-means"], loc="outside lower center", ncols=2)
    return render(figure, "time-split", "Time in selection and in k-means")


def _draw_bars(panel: Any, rows: Sequence[TimingRow | None]) -> None:
    for place, row in enumerate(rows):
        text = _describe_time(row)
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


def _describe_time(row: TimingRow | None) -> str:
    if row is None:
        return "not run"
    if row.share_of_selection is None:
        return f"{row.unsuccessful} of {row.fits} fits failed"
    total = seconds(row.fit_seconds + row.kmeans_seconds)
    return f"{total}*" if row.unsuccessful else total
