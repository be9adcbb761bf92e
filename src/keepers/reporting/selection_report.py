"""The report on a fitted selector: one HTML file that needs no network."""

import os
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.data.replacing import whole_file
from keepers.data.table import LabelledTable
from keepers.preparation.table_check import check_table
from keepers.reporting import report_parts
from keepers.reporting.selection_figures import COLOURS, Figure, Figures, draw
from keepers.reporting.selection_summary import Planes, SelectionSummary, summarise
from keepers.selection import Selection, describe_selection
from keepers.selectors.certificate import Certificate
from keepers.tuning.gamma_path import COLOURS as PATH_COLOURS

__all__ = ["SelectionReport", "make_report"]

_DIGITS = 5


@dataclass(frozen=True)
class SelectionReport:
    """A report on one selection: save it, or let a notebook show it."""

    summary: SelectionSummary

    @classmethod
    def of(cls, selection: Selection, **shown: Any) -> "SelectionReport":
        """The report on a described selection; what else is shown is as for `keepers.report`."""
        for module in ("matplotlib", "jinja2"):
            optional(module, "Reports")
        return cls(summarise(selection, **shown))

    @cached_property
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""
        return render(self.summary, draw(self.summary))

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

    def __repr__(self) -> str:
        selection = self.summary.selection
        return (
            f"<SelectionReport: {selection.k} of {selection.n_features} features by "
            f"{selection.method}; .save('report.html') writes it>"
        )

    def _repr_html_(self) -> str:
        """The report in a frame of its own, shut off from the notebook around it."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Selection report"'
            ' style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 6px">'
            "</iframe>"
        )


def make_report(
    selector: Any,
    X: Any,
    *,
    feature_names: Any = None,
    sample_names: Any = None,
    labels: Any = None,
    image_shape: tuple[int, int] | None = None,
    image_order: Literal["C", "F"] = "C",
    title: str | None = None,
    source: str | None = None,
    command: str | None = None,
    seconds: float | None = None,
    k: int | float | None = None,
    path: Any = None,
    certify: bool | None = None,
) -> SelectionReport:
    """A report on what a selector found: one HTML file that opens offline.

    Parameters
    ----------
    selector : fitted selector
        Any selector of keepers after ``fit``.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table it was fitted on. A sparse one is not densified beyond the kept columns.
    feature_names : sequence of str, optional
        Names of the features; by default those the selector saw, else x0, x1, ...
    sample_names : sequence of str, optional
        Names of the samples, shown on hover.
    labels : sequence, optional
        A class per sample. Only colours the samples; nothing is computed from it.
    image_shape : (rows, columns), optional
        For features that are pixels: the kept ones are drawn over the mean image.
    image_order : {"C", "F"}, default="C"
        Whether pixels are numbered row by row ("C") or column by column ("F", as in MATLAB).
    title : str, optional
        Heading of the report.
    source : str, optional
        Where the table came from: a file name, or a bundled name.
    command : str, optional
        The command line that repeats the selection.
    seconds : float, optional
        How long the selection took.
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: as many as the selector keeps. The
        report lets its reader try others.
    path : SPCAFSPath, optional
        What `keepers.spcafs_path` returns for the same X: drawn as a panel of its own.
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
    selection = describe_selection(
        selector, X, feature_names=feature_names, k=k, source=source, seconds=seconds
    )
    wanted = selection.seeks_variance if certify is None else certify
    table = LabelledTable(selection.X, selection.feature_names, name=source or "table")
    return SelectionReport.of(
        selection,
        sample_names=sample_names,
        labels=labels,
        image_shape=image_shape,
        image_order=image_order,
        title=title,
        command=command,
        path=path,
        notes=check_table(table).to_say(selection.method),
        certificate=selection.certificate if wanted else None,
    )


def render(summary: SelectionSummary, figures: Figures) -> str:
    """The report as text; the same for the same input."""
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        count=report_parts.count,
        display_name=report_parts.display_name,
        duration=report_parts.duration,
        few=report_parts.significant,
        percent=report_parts.percent,
    )
    script = _template("selection.js")
    return str(
        environment.from_string(_template("selection.html.jinja")).render(
            summary=summary,
            selection=summary.selection,
            figures=figures,
            colours=COLOURS,
            path_colours=PATH_COLOURS,
            style=_template("selection.css"),
            script=script,
            script_hash=report_parts.script_hash(script),
            data=report_parts.script_safe_json(page_data(summary, figures)),
        )
    )


def page_data(summary: SelectionSummary, figures: Figures) -> dict[str, Any]:
    """What the script of the report works on: features best first, so that rank is position + 1."""
    ranked = summary.ranked
    prefix = _common_prefix(ranked.names)
    data: dict[str, Any] = {
        "k": summary.selection.k,
        "prefix": prefix,
        "names": [name[len(prefix) :] for name in ranked.names],
        "scores": _as_digits(ranked.scores),
        "variances": _as_digits(ranked.variances),
        "total": float(ranked.variances.sum()),
        "neighbours": ranked.neighbour.tolist(),
        "r": [None if np.isnan(r) else round(float(r), 3) for r in ranked.neighbour_r],
        "curve": _place(figures.scores),
    }
    if summary.certificate is not None:
        data["proved"] = _proved(summary.certificate, ranked.columns)
    if summary.stability is not None:
        data["intervals"] = {
            "halves": summary.stability.n_halves,
            "ends": summary.stability.by_count.round(3).tolist(),
        }
    if summary.image is not None:
        image = summary.image
        data["image"] = {
            "height": image.height,
            "width": image.width,
            "grey": image.grey.tolist(),
            "place": image.place.tolist(),
            "columns": ranked.columns.tolist(),
        }
    if summary.redundancy is not None and figures.redundancy is not None:
        hundredths = np.rint(100 * summary.redundancy.correlation).astype(int)
        data["map"] = {
            **_place(figures.redundancy),
            "shown": summary.redundancy.shown.tolist(),
            "hundredths": hundredths.tolist(),
        }
    if summary.planes is not None:
        data["samples"] = _samples(summary, summary.planes, figures)
    return data


def _proved(certificate: Certificate, columns: IndexArray) -> str:
    """A letter a feature, best first: i: in every best set, o: in none, -: not known."""
    marks = np.full(len(columns), "-")
    marks[np.isin(columns, certificate.proved_in)] = "i"
    marks[np.isin(columns, certificate.proved_out)] = "o"
    return "".join(marks)


def _samples(summary: SelectionSummary, planes: Planes, figures: Figures) -> dict[str, Any]:
    """What to say of the dots: their numbers, and their names and labels if there are any."""
    data: dict[str, Any] = {
        "index": planes.samples.tolist(),
        "before": _dots(figures.before),
        "after": _dots(figures.after),
    }
    if summary.sample_names is not None:
        data["names"] = [summary.sample_names[i] for i in planes.samples]
    if summary.labels is not None:
        data["words"] = sorted(set(summary.labels))
        place = {word: position for position, word in enumerate(data["words"])}
        data["labels"] = [place[summary.labels[i]] for i in planes.samples]
    return data


def _dots(figure: Figure | None) -> list[float]:
    """x, y, x, y, ... in units of the figure."""
    if figure is None or figure.points is None:
        return []
    return [float(value) for value in figure.points.round(1).ravel()]


def _place(figure: Figure) -> dict[str, Any]:
    return {"frame": [round(side, 2) for side in figure.frame], "span": list(figure.span)}


def _common_prefix(names: tuple[str, ...]) -> str:
    """What all names begin with: the first and the last in the alphabet agree on no more."""
    first, last = min(names), max(names)
    length = 0
    while length < len(first) and first[length] == last[length]:
        length += 1
    return first[:length]


def _as_digits(values: FloatArray) -> dict[str, Any]:
    """Five significant digits, as multiples of a power of ten that takes most leading zeros."""
    largest = float(np.max(np.abs(values), initial=0.0))
    exponent = int(np.floor(np.log10(largest))) - _DIGITS + 1 if largest > 0 else 0
    scaled = values * 10.0**-exponent
    short = [float(f"{value:.{_DIGITS}g}") for value in scaled]
    return {
        "exponent": exponent,
        "values": [int(value) if value.is_integer() else value for value in short],
    }


def _template(name: str) -> str:
    folder = files("keepers.reporting") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
