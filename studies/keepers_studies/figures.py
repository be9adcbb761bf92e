"""Every figure that a study has the numbers for, drawn with Matplotlib."""

import io
import warnings
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from keepers.catalogue import METHODS
from keepers_studies.formatting import short
from keepers_studies.ranks import RankTest
from keepers_studies.scores import MEASURES, Comparison, StudyResults
from keepers_studies.specification import StudySpec, Sweep
from keepers_studies.store import make_folder, write_bytes

_BASELINES = {"RandomScore": ":", "VarianceScore": "--", "AllFeatures": "-"}
_MARKERS = "os^Dv<>pPXh*d8"
_CLASSES = [method.class_name for method in METHODS]
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "keepers",  # the same bytes on every run
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.alpha": 0.4,
    "legend.frameon": False,
}

Pictures = dict[str, bytes]  # SVG files by the name of the figure


def draw_study(study: StudyResults, folder: Path) -> Pictures:
    """Draw and write the figures of a study; those with nothing to show are left out."""
    looks = looks_of(study.spec)
    figures: dict[str, Figure] = {}
    with rc_context(STYLE):
        for tuning, comparison in study.by_tuning.items():
            for measure in MEASURES:
                if comparison.scores.acc_mean.notna().any():
                    figures[f"{measure}-{tuning}"] = against_k(comparison, measure, looks)
        tests = {f"{m.upper()}, {tuning}": test for (tuning, m), test in study.ranks.items()}
        tests = {title: test for title, test in tests.items() if not test.not_tested}
        if tests:
            figures["critical-differences"] = critical_differences(tests, looks)
        for place, sweep in enumerate(study.spec.sweeps, start=1):
            judged = sweep.data if sweep.judge else []
            if shown := [name for name in judged if len(study.sweep(sweep.name, name, "acc"))]:
                figures[f"sweep-{place}"] = sweep_curves(study, sweep, shown)
        return save(figures, folder)


def save(figures: Mapping[str, Figure], folder: Path) -> Pictures:
    """Write figures as SVG and PNG; returns the SVG files."""
    make_folder(folder)
    pictures: Pictures = {}
    for name, figure in figures.items():
        for suffix, facts in (("svg", "Date"), ("png", "Software")):
            content = io.BytesIO()
            with warnings.catch_warnings():  # browsers have letters that Matplotlib's font lacks
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
                figure.savefig(content, format=suffix, dpi=140, metadata={facts: None})
            write_bytes(folder / f"{name}.{suffix}", content.getvalue())
            pictures.setdefault(name, content.getvalue())
    return pictures


def looks_of(spec: StudySpec) -> dict[str, dict[str, Any]]:
    """Colour and marker of each method, the same in every study; the highlighted one on top."""
    looks: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for method in spec.methods:
        place = _CLASSES.index(method.name) if method.name in _CLASSES else len(_CLASSES)
        look: dict[str, Any] = {"color": colormaps["tab20"](place % 20), "linewidth": 1.3}
        if method.name in _BASELINES:
            look |= {"color": "#59626d", "linestyle": _BASELINES[method.name]}
        else:
            look |= {"marker": _MARKERS[place % len(_MARKERS)], "markersize": 5}
        if method.name in seen:  # a variant
            look |= {"linestyle": "--", "markerfacecolor": "white"}
        elif method.name == spec.highlight:
            look |= {"color": "#c8341b", "linewidth": 2.6, "zorder": 5}
        seen.add(method.name)
        looks[method.title] = look
    return looks


def _panels(n_panels: int, most_columns: int, height: float = 3.2, **shared: Any) -> Any:
    """A figure and its panels, row by row; the rest of the last row stays empty."""
    n_columns = min(most_columns, n_panels)
    n_rows = ceil(n_panels / n_columns)
    size = (max(6.4, 4.6 * n_columns), height * n_rows + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False, **shared).ravel())
    for panel in panels[n_panels:]:
        panel.set_visible(False)
    return figure, panels[:n_panels]


def _add_legend(figure: Figure, lines: Mapping[str, Any], per_row: int) -> None:
    names = [short(name) for name in lines]
    columns = min(per_row, max(1, len(names)))
    figure.legend([*lines.values()], names, loc="outside lower center", ncols=columns)


def against_k(
    comparison: Comparison, measure: str, looks: Mapping[str, Mapping[str, Any]]
) -> Figure:
    """A measure against the number of features: one panel a data set, all methods."""
    figure, panels = _panels(len(comparison.data), 3)
    drawn: dict[str, Any] = {}
    for panel, data in zip(panels, comparison.data, strict=True):
        panel.set_title(short(data))
        panel.set_xlabel("features kept, k")
        panel.set_ylabel(measure.upper())
        for method in comparison.methods:
            curve = comparison.curve(data, method, measure)
            if len(curve):
                (line,) = panel.plot(curve.index, curve, **looks[method])
                drawn.setdefault(method, line)
    _add_legend(figure, drawn, 6 if len(panels) > 2 else 4)
    return figure


def sweep_curves(study: StudyResults, sweep: Sweep, data: Sequence[str]) -> Figure:
    """ACC and NMI against k for each value of a setting, a row a data set."""
    figure, panels = _panels(2 * len(data), 2)
    colours = colormaps["viridis"](np.linspace(0, 0.9, len(sweep.values)))
    drawn: dict[str, Any] = {}
    for place, panel in enumerate(panels):
        name, measure = data[place // 2], MEASURES[place % 2]
        panel.set_title(f"{short(name)}: {measure.upper()}")
        panel.set_xlabel("features kept, k")
        for value, curve in study.sweep(sweep.name, name, measure).iterrows():
            at = sweep.values.index(value)
            style: Any = {"color": colours[at], "marker": _MARKERS[at % len(_MARKERS)]}
            (line,) = panel.plot(curve.index, curve, markersize=4, **style)
            drawn.setdefault(f"{sweep.vary} = {short(value)}", line)
    _add_legend(figure, drawn, 4)
    return figure


def critical_differences(
    tests: Mapping[str, RankTest], looks: Mapping[str, Mapping[str, Any]]
) -> Figure:
    """Average ranks, best on top; bars join methods that the test cannot tell apart."""
    most = max(len(test.average_ranks) for test in tests.values())
    figure, panels = _panels(len(tests), 2, height=0.24 * most + 0.9)
    for panel, (title, test) in zip(panels, tests.items(), strict=True):
        ranks = test.average_ranks
        places = {method: place for place, method in enumerate(ranks)}
        for method, rank in ranks.items():
            panel.plot(rank, places[method], "o", color=looks[method]["color"])
        for level, group in enumerate(test.groups):
            at = max(ranks.values()) + 0.4 + 0.25 * level
            panel.plot([at, at], [places[group[0]] - 0.2, places[group[-1]] + 0.2], color="#1f242a")
        panel.set_yticks(range(len(ranks)), [f"{short(m)}  {r:.2f}" for m, r in ranks.items()])
        panel.set_ylim(len(ranks) - 0.4, -0.6)
        panel.set_xlabel(f"average rank; critical difference {test.critical_difference:.2f}")
        panel.set_title(title)
    return figure
