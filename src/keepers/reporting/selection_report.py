"""The report of a fitted selector, from Python."""

import os
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal

from keepers._optional import optional
from keepers.data.replacing import whole_file
from keepers.reporting.selection_figures import draw
from keepers.reporting.selection_page import render
from keepers.reporting.selection_summary import SelectionSummary, summarise
from keepers.selection import Selection, describe_selection

__all__ = ["SelectionReport", "make_report"]


@dataclass(frozen=True)
class SelectionReport:
    """A report on one selection: save it, or let a notebook show it."""

    summary: SelectionSummary

    @classmethod
    def of(cls, selection: Selection, **shown: Any) -> "SelectionReport":
        """The report on a described selection; what else is shown is as for `make_report`."""
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
    return SelectionReport.of(
        selection,
        sample_names=sample_names,
        labels=labels,
        image_shape=image_shape,
        image_order=image_order,
        title=title,
        command=command,
        path=path,
    )
