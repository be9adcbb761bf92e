"""The report on a fitted selector: one HTML file that needs no network."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.data.in_memory import numeric_input
from keepers.data.table import LabelledTable
from keepers.data.wording import some_of
from keepers.preparation.table_check import check_table
from keepers.reporting import report_parts
from keepers.reporting.comparison import ComparisonReport, compare, refuse_more_than_two
from keepers.reporting.kept_values import FARTHEST
from keepers.reporting.selection_figures import COLOURS, WARM, Figure, Figures, draw
from keepers.reporting.selection_summary import Planes, SelectionSummary, summarise
from keepers.selection import Reason, Selection, describe_selection
from keepers.selectors.certificate import Certificate
from keepers.selectors.fitted_table import named_table, table_values
from keepers.tuning.gamma_path import COLOURS as PATH_COLOURS

__all__ = ["SelectionReport", "make_report"]

_DIGITS = 5
_LETTERS: dict[Reason, str] = {
    "ranked below k": "b",
    "max_correlation": "u",
    "redundant": "u",
    "no structure": "n",
    "constant": "c",
    "never_keep": "x",
}
_LIKE = {"copy of": "C", "too similar to": "T", "adds little to better features; nearest is": "A"}


@dataclass(frozen=True)
class SelectionReport(report_parts.HtmlReport):
    """A report on one selection: save it, or let a notebook show it."""

    summary: SelectionSummary

    @classmethod
    def of(cls, selection: Selection, **shown: Any) -> "SelectionReport":
        """The report on a described selection; what else is shown is as for `keepers.report`."""
        _require_packages()
        return cls(summarise(selection, **shown))

    @cached_property
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""
        return render(self.summary, draw(self.summary))

    def __repr__(self) -> str:
        selection = self.summary.selection
        return (
            f"<SelectionReport: {selection.k} of {selection.n_features} features by "
            f"{selection.method}; .save('report.html') writes it>"
        )


def _require_packages() -> None:
    for module in ("matplotlib", "jinja2"):
        optional(module, "Reports")


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
) -> SelectionReport | ComparisonReport:
    """A report on what a selector found, or on two side by side: one HTML file, opens offline.

    It begins with the answer, why, how sure and what to watch; then come all features with a
    histogram of the first ones and the reason for each that was dropped, the kept ones over the
    samples, and how to repeat it.

    Parameters
    ----------
    selector : fitted selector, or a list of two
        Any selector of keepers after ``fit``. Of two, fitted to the same table, the report shows
        what both keep and what only one does.
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
    path : SPCAFSPath, optional
        What `keepers.spcafs_path` returns for the same X: drawn as a panel of its own.
    certify : bool, optional
        Whether to say, with proof, how near the kept features are to those that hold the most
        variance; by default where the method looks for variance (`SPCAFS`, `FSPCA`,
        `VarianceScore`).

    Returns
    -------
    SelectionReport, or ComparisonReport of two
        ``save(path)`` writes it, ``html`` is the text, and a notebook shows it in place.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> report = make_report(SPCAFS(40, n_components=3).fit(X), X, feature_names=names, labels=y)
    >>> report
    <SelectionReport: 40 of 2308 features by SPCAFS; .save('report.html') writes it>
    """
    if isinstance(selector, (list, tuple)):
        of_one = {
            "sample_names": sample_names,
            "image_shape": image_shape,
            "command": command,
            "seconds": seconds,
            "path": path,
            "certify": certify,
        }
        refuse_more_than_two(selector, of_one)
        _require_packages()
        described = [
            describe_selection(each, X, feature_names=feature_names, k=k, source=source)
            for each in selector
        ]
        return ComparisonReport(compare(described, labels, title))
    selection = describe_selection(
        selector, X, feature_names=feature_names, k=k, source=source, seconds=seconds
    )
    wanted = selection.seeks_variance if certify is None else certify
    table = LabelledTable(selection.X, selection.feature_names, name=source or "table")
    notes = check_table(table).to_say("" if selection.counts_columns_alike else selection.method)
    return SelectionReport.of(
        selection,
        sample_names=sample_names,
        labels=labels,
        image_shape=image_shape,
        image_order=image_order,
        title=title,
        command=command,
        path=path,
        notes=[*notes, *note_gaps(selector, X, selection.feature_names)],
        certificate=selection.certificate if wanted else None,
    )


def note_gaps(selector: Any, X: Any, names: Iterable[str]) -> list[str]:
    """What to say of gaps that the selector filled."""
    if getattr(selector, "missing", "error") == "error":
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


def render(summary: SelectionSummary, figures: Figures) -> str:
    """The report as text; the same for the same input, on the same day."""
    script = report_parts.template("selection.js")
    return report_parts.fill_template(
        "selection.html.jinja",
        summary=summary,
        selection=summary.selection,
        figures=figures,
        colours=COLOURS,
        warm=WARM,
        farthest=FARTHEST,
        path_colours=PATH_COLOURS,
        style=report_parts.template("selection.css"),
        script=script,
        script_hash=report_parts.script_hash(script),
        data=report_parts.script_safe_json(page_data(summary, figures)),
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
        "near": [
            [number for at, r in closer for number in (at, _hundredths(r))]
            for closer in ranked.closest
        ],
        "sparks": [
            [bars.heights, *(report_parts.significant(end, 3) for end in (bars.low, bars.high))]
            for bars in ranked.histograms
        ],
        **_reasons(summary.selection),
        "curve": _place(figures.scores),
    }
    if summary.selection.column_power not in (0.0, 1.0):
        data["weighed"] = _as_digits(summary.selection.weighed_variances[ranked.columns])
    if summary.selection.active is not None:
        data["inactive"] = _runs(np.where(summary.selection.active[ranked.columns], "-", "i"))
    if summary.certificate is not None:
        data["proved"] = _runs(_proved(summary.certificate, ranked.columns))
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


def _proved(certificate: Certificate, columns: IndexArray) -> np.ndarray:
    """A letter a feature, best first: i: in every best set, o: in none, -: not known."""
    marks = np.full(len(columns), "-")
    marks[np.isin(columns, certificate.proved_in)] = "i"
    marks[np.isin(columns, certificate.proved_out)] = "o"
    return marks


def _reasons(selection: Selection) -> dict[str, Any]:
    """A letter for each feature that was not kept, best first; which kept one it is like, and r."""
    rank_of = {str(selection.feature_names[at]): i for i, at in enumerate(selection.order.tolist())}
    letters, alike = [], {}
    for rank, feature in enumerate(selection.dropped, selection.k):
        letter = _LETTERS[feature.reason]
        if feature.neighbour is not None:
            letter = _LIKE[feature.why_of]
            alike[rank] = [rank_of[feature.neighbour], _hundredths(feature.correlation)]
        letters.append(letter)
    return {"reasons": _runs(letters), "alike": alike}


def _hundredths(r: float) -> int:
    """A correlation as the terminal rounds it."""
    return round(100 * float(f"{r:.2f}"))


def _runs(letters: Iterable[str]) -> str:
    """Letters with how often each stands: "aab" -> "a2b1"."""
    return "".join(f"{letter}{len(list(group))}" for letter, group in groupby(letters))


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
