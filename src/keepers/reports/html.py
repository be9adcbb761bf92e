"""The report on a fitted selector: one HTML file that needs no network."""

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._packages import optional
from keepers._protocols import FloatArray
from keepers._wording import some_of
from keepers.methods.reading import named_table, table_values
from keepers.prepare.check import check_table
from keepers.reports.figures import (
    COLOURS,
    MOST_CURVE_POINTS,
    WARM,
    Figure,
    draw_curve,
    draw_heat,
    draw_map,
    draw_plane,
    evenly,
)
from keepers.reports.selection import (
    IN_WORDS,
    REASONS,
    Selection,
    describe_selection,
    fitted_to,
    preparer_of,
)
from keepers.reports.summary import FARTHEST, SelectionSummary, summarise
from keepers.reports.words import count, display_name
from keepers.tables.atomic import whole_file
from keepers.tables.objects import numeric_input
from keepers.tables.table import Table

__all__ = ["SelectionReport", "make_report"]

FIGURES = ("agreement", "map", "heat", "before", "after")
"""Those that are not always there."""
_DIGITS = 5
# What could end a script block, open a comment, or break a line of JavaScript.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_LETTERS = dict(zip(REASONS, "btsnfcx", strict=True))
"""The script of the report calls reasons by these letters."""


@dataclass(frozen=True)
class SelectionReport:
    """A report on one selection: save it, or let a notebook show it."""

    summary: SelectionSummary

    @classmethod
    def of(cls, selection: Selection, **shown: Any) -> "SelectionReport":
        """The report on a described selection; what else is shown is as for `keepers.report`."""
        optional("jinja2", "Reports")
        return cls(summarise(selection, **shown))

    @cached_property
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""
        return render(self.summary)

    def save(self, path: str | os.PathLike[str], force: bool = False) -> Path:
        """Write the report, all of it or nothing.

        Parameters
        ----------
        path : str or path
            Where to; its folder must exist.
        force : bool, default=False
            Replace a file that is already there.

        Returns
        -------
        Path
            Where it was written.
        """
        target = Path(path)
        with whole_file(target, force=force) as temporary:
            # A name may hold bytes that are no UTF-8; the report shows them as escapes.
            temporary.write_text(self.html, encoding="utf-8", errors="backslashreplace")
        return target

    def _repr_html_(self) -> str:
        """The report in a frame of its own, shut off from the notebook around it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Selection report"'
            ' style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 6px">'
            "</iframe>"
        )

    def __repr__(self) -> str:
        selection = self.summary.selection
        return (
            f"<SelectionReport: {selection.k} of {selection.n_features} features by "
            f"{selection.method}; .save('report.html') writes it>"
        )


def make_report(
    selector: Any,
    X: Any,
    *,
    feature_names: Any = None,
    sample_names: Any = None,
    labels: Any = None,
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    seconds: float | None = None,
    k: int | float | None = None,
    certify: bool | None = None,
) -> SelectionReport:
    """A report on what a selector found: one HTML file that opens offline.

    It begins with the answer, why, how sure and what to watch; then come all features with a
    histogram of the first ones and the reason for each that was dropped, the kept ones over the
    samples, and how to repeat it.

    Parameters
    ----------
    selector : fitted selector or pipeline
        Any selector of keepers after ``fit``, or a pipeline that ends with one.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table it was fitted on. A sparse one is not densified beyond the kept columns.
    feature_names : sequence of str, optional
        Names of the features; by default those the selector saw, else x0, x1, ...
    sample_names : sequence of str, optional
        Names of the samples, shown on hover.
    labels : sequence, optional
        A class per sample. Only colours the samples; nothing is computed from it.
    title : str, optional
        Heading of the report. Below it stand the source, the shape of the table and the date (that
        of the environment variable SOURCE_DATE_EPOCH, if it is set).
    source : str, optional
        Where the table came from: a file name, or a bundled name.
    command : str, optional
        The command line that repeats the selection.
    seconds : float, optional
        How long the selection took.
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: as many as the selector keeps. The
        report lets its reader try others.
    certify : bool, optional
        Whether to say, with proof, how near the kept features are to those that hold the most
        variance; by default where the method looks for variance (`SPCAFS`, `FSPCA`,
        `VarianceScore`).

    Returns
    -------
    SelectionReport
        ``save(path)`` writes it, ``html`` is the text, and a notebook shows it in place.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> report = make_report(SPCAFS(40, n_components=3).fit(X), X, feature_names=names, labels=y)
    >>> report
    <SelectionReport: 40 of 2308 features by SPCAFS; .save('report.html') writes it>
    """
    preparer = preparer_of(selector)
    selector, X, names = fitted_to(selector, X)
    names = names if feature_names is None else feature_names
    selection = describe_selection(
        selector, X, feature_names=names, k=k, source=source, seconds=seconds
    )
    if preparer is not None:
        selection = replace(selection, categories=preparer.categories())
    wanted = selection.seeks_variance if certify is None else certify
    table = Table(selection.X, selection.feature_names, name=source or "table")
    notes = check_table(table).to_say("" if selection.counts_columns_alike else selection.method)
    return SelectionReport.of(
        selection,
        sample_names=sample_names,
        labels=labels,
        title=title,
        command=command,
        notes=[
            *notes,
            *(
                note_gaps(selector, X, selection.feature_names)
                if preparer is None
                else preparer.notes_
            ),
        ],
        set_aside={} if preparer is None else preparer.set_aside_,
        certificate=selection.certificate if wanted else None,
    )


def note_gaps(selector: Any, X: Any, names: Iterable[str]) -> list[str]:
    """A sentence about gaps that the selector filled; AutoSelector counts those it leaves out."""
    if selector.missing in ("error", "observed"):
        return []
    values = numeric_input(table_values(named_table(X)))
    if sp.issparse(values):  # whose gaps are refused
        return []
    gaps = np.isnan(np.asarray(values, dtype=np.float64)).sum(axis=0)
    told = [f"{name!r} ({n})" for name, n in zip(names, gaps.tolist(), strict=True) if n]
    if not told:
        return []
    columns = "1 column" if len(told) == 1 else f"{len(told)} columns"
    return [f"Gaps filled ({selector.missing}) in {columns}: {some_of(told)}."]


def render(summary: SelectionSummary) -> str:
    """The report as text; the same for the same input, on the same day."""
    script, figures = template("selection.js"), draw(summary)
    return fill_template(
        "selection.html.jinja",
        summary=summary,
        selection=summary.selection,
        figures=figures,
        colours=COLOURS,
        warm=WARM,
        farthest=FARTHEST,
        in_words=IN_WORDS,
        style=template("selection.css"),
        script=script,
        script_hash=script_hash(script),
        data=script_safe_json(page_data(summary, figures)),
    )


def draw(summary: SelectionSummary) -> dict[str, Any]:
    """The figures by name; None where there is nothing to draw."""
    selection = summary.selection
    names = [str(name) for name in selection.feature_names[selection.order]]
    n_ranks = min(selection.n_by_score, max(30, 3 * selection.k))
    ranks = evenly(n_ranks, MOST_CURVE_POINTS) + 1
    scores = selection.scores[selection.order[ranks - 1]]
    curve = draw_curve("Scores of the ranked features", ("rank", "score"), ranks, scores)
    figures: dict[str, Any] = {"scores": curve} | dict.fromkeys(FIGURES)
    tried = selection.notes.tried
    if tried is not None and len(tried[0]) > 1:
        figures["agreement"] = _draw_agreement(summary, *tried)
    if len(summary.map_order):
        r = selection.correlation[np.ix_(summary.map_order, summary.map_order)]
        figures["map"] = draw_map(r, [names[at] for at in summary.map_order])
    if summary.heat is not None:
        ends = [
            f"{bars.low} … {bars.high}" if bars.low else ""
            for bars in summary.histograms[: len(summary.heat.z)]
        ]
        legend = () if summary.classes is None else summary.classes.legend
        strips = [(at, n, legend[at]) for at, n in summary.heat.classes]
        shown = names[: len(summary.heat.z)]
        figures["heat"] = draw_heat(summary.heat.z, FARTHEST, shown, ends, strips)
    if summary.planes is not None:
        colour_of = np.zeros(len(summary.planes.samples), dtype=np.intp)
        if summary.classes is not None:
            colour_of = summary.classes.colour_of[summary.planes.samples]
        for name, plane in (("before", summary.planes.before), ("after", summary.planes.after)):
            figures[name] = draw_plane(name, plane.points, plane.shares, colour_of)
    return figures


def _draw_agreement(summary: SelectionSummary, counts: Any, agreement: FloatArray) -> Figure:
    """The share of neighbours preserved by the first features, in per cent."""
    k, drawn = summary.selection.k, summary.selection.notes.by_chance
    kept = 100 * float(np.interp(k, counts, agreement))
    return draw_curve(
        "Neighbours preserved, by number of features",
        ("number of features", "neighbours preserved (%)"),
        counts,
        100 * agreement,
        from_zero=True,
        level=None if drawn is None or not len(drawn) else 100 * float(drawn.mean()),
        mark=(min(k, int(counts[-1])), kept, f"kept: {count(k)}"),
    )


def page_data(summary: SelectionSummary, figures: dict[str, Any]) -> dict[str, Any]:
    """What the script of the report works on: features best first, so that rank is position + 1."""
    selection = summary.selection
    names = [str(name) for name in selection.feature_names[selection.order]]
    ends = zip(min(names), max(names), strict=False)  # all names begin as these two do
    prefix = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    place = {name: at for at, name in enumerate(names)}
    letters = [_LETTERS[feature.reason] for feature in selection.dropped]  # "aab" -> "a2b1"
    data: dict[str, Any] = {
        "k": selection.k,
        "prefix": prefix,
        "names": [name[len(prefix) :] for name in names],
        "scores": _as_digits(selection.scores[selection.order]),
        "near": [
            [number for at, r in closer for number in (at, _hundredths(r))]
            for closer in summary.closest
        ],
        "sparks": [[bars.heights, bars.low, bars.high] for bars in summary.histograms],
        "reasons": "".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters)),
        "alike": {
            rank: [place[feature.neighbour], _hundredths(feature.correlation)]
            for rank, feature in enumerate(selection.dropped, selection.k)
            if feature.neighbour is not None
        },
        "categories": [place[name] for name in selection.categories if name in place],
        "halves": [_in_halves(feature, place) for feature in selection.kept],
        "curve": _place(figures["scores"]),
    }
    if figures["map"] is not None:
        r = selection.correlation[np.ix_(summary.map_order, summary.map_order)]
        data["map"] = {
            **_place(figures["map"]),
            "shown": summary.map_order.tolist(),
            "hundredths": np.rint(100 * r).astype(int).tolist(),
        }
    if summary.planes is not None:
        data["samples"] = _samples(summary, figures)
    return data


def _in_halves(feature: Any, place: dict[str, int]) -> list[int]:
    """Per cent of the half-samples that keep it; its stand-in and r in hundredths, if any."""
    if feature.share_of_halves is None:
        return []
    share = round(100 * feature.share_of_halves)
    if feature.stand_in is None:
        return [share]
    return [share, place[feature.stand_in], abs(_hundredths(feature.stand_in_correlation))]


def _hundredths(r: float) -> int:
    """A correlation as the terminal rounds it."""
    return round(100 * float(f"{r:.2f}"))


def _samples(summary: SelectionSummary, figures: dict[str, Any]) -> dict[str, Any]:
    """Numbers of the dots, and their names and labels if there are any."""
    assert summary.planes is not None
    shown = summary.planes.samples.tolist()
    data: dict[str, Any] = {"index": shown}
    for name in ("before", "after"):
        data[name] = [float(value) for value in figures[name].points.round(1).ravel()]
    if summary.sample_names is not None:
        data["names"] = [summary.sample_names[i] for i in shown]
    if summary.labels is not None:
        data["words"] = sorted(set(summary.labels))
        place = {word: position for position, word in enumerate(data["words"])}
        data["labels"] = [place[summary.labels[i]] for i in shown]
    return data


def _place(figure: Figure) -> dict[str, Any]:
    return {"frame": [round(side, 2) for side in figure.frame], "span": list(figure.span)}


def _as_digits(values: FloatArray) -> dict[str, Any]:
    """Five significant digits, as multiples of a power of ten that takes most leading zeros."""
    largest = float(np.max(np.abs(values), initial=0.0))
    exponent = int(np.floor(np.log10(largest))) - _DIGITS + 1 if largest > 0 else 0
    short = [float(f"{value:.{_DIGITS}g}") for value in values * 10.0**-exponent]
    return {
        "exponent": exponent,
        "values": [int(value) if value.is_integer() else value for value in short],
    }


def script_safe_json(data: Any) -> str:
    """JSON that means the same to a JavaScript parser and is inert to an HTML parser."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def script_hash(script: str) -> str:
    """What a Content-Security-Policy allows a script by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def fill_template(name: str, **content: Any) -> str:
    """A page from a template of the package; what is not marked as safe is escaped."""
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(template),
    )
    environment.filters.update(count=count, display_name=display_name)
    return str(environment.get_template(name).render(**content))


def template(name: str) -> str:
    """The text of a file in the folder of templates."""
    folder = files("keepers.reports") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
