"""The report on a fitted selector: one HTML file that needs no network."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from keepers._packages import optional
from keepers.prepare.check import check_table
from keepers.proofs.certify import Certificate
from keepers.reports.figures import COLOURS, FARTHEST, WARM, draw
from keepers.reports.selection import (
    IN_WORDS,
    REASONS,
    Feature,
    Selection,
    as_texts,
    describe_selection,
)
from keepers.reports.words import count, display_name, put_into_words
from keepers.tables.atomic import whole_file
from keepers.tables.objects import is_frame, table_of_object
from keepers.tables.opening import BUNDLED
from keepers.tables.table import Table

__all__ = ["SelectionReport", "report"]

# What could end a script block, open a comment, or break a line of JavaScript.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_LETTERS = dict(zip(REASONS, "btsnfcx", strict=True))
"""The script of the report calls reasons by these letters."""


@dataclass(frozen=True)
class SelectionReport:
    """A report on one selection: save it, or let a notebook show it."""

    selection: Selection
    title: str = "Features worth keeping"
    command: str | None = None
    """The command line that repeats the selection."""
    labels: Iterable[Any] | None = None
    """A class per sample."""
    notes: Sequence[str] = ()
    """What was found in the table and done to it."""
    certificate: Certificate | None = None
    table: Any = None
    """The table as people wrote it, for histograms."""

    def __post_init__(self) -> None:
        optional("jinja2", "Reports")

    @cached_property
    def html(self) -> str:
        """The whole report, one HTML file that needs no other."""
        return render(self)

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
            # A name may hold bytes that are not UTF-8; the report shows them as escapes.
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
        k, d, method = self.selection.k, self.selection.n_features, self.selection.method
        return f"<SelectionReport: {k} of {d} features by {method}; .save('report.html') writes it>"


def report(
    selector: Any,
    X: Any,
    *,
    feature_names: Any = None,
    labels: Any = None,
    title: str | None = None,
    source: str | None = None,
    k: int | float | None = None,
    certify: bool | None = None,
) -> SelectionReport:
    """A report on what a selector found: one HTML file that opens offline.

    It begins with the answer, why, how sure and what to watch. Then come all features with the
    reason for each, histograms of the first ones, the kept ones over the samples, their
    correlations, and how to repeat it.

    Parameters
    ----------
    selector : fitted selector or pipeline
        Any selector of keepers after ``fit``, or a pipeline that ends with one.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table it was fitted on.
    feature_names : sequence of str, optional
        Names of the features; by default those the selector saw, else x0, x1, ...
    labels : sequence, optional
        A class per sample. It only groups the samples of the heat map.
    title : str, optional
        Heading of the report. Below it stand the source, the shape of the table and the date (that
        of the environment variable SOURCE_DATE_EPOCH, if it is set).
    source : str, optional
        Where the table came from: a file name, or a bundled name.
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: as many as the selector keeps. The
        report lets its reader try others.
    certify : bool, optional
        Whether to prove how near the kept features are to those that hold the most variance; by
        default where the method looks for variance (`SPCAFS`, `FSPCA`, `VarianceScore`).

    Returns
    -------
    SelectionReport
        ``save(path)`` writes it, ``html`` is the text, and a notebook shows it in place.

    Examples
    --------
    >>> from keepers import SPCAFS, datasets, report
    >>> X, names, y = datasets.load("srbct")
    >>> report(SPCAFS(40, n_components=3).fit(X), X, feature_names=names, labels=y)
    <SelectionReport: 40 of 2308 features by SPCAFS; .save('report.html') writes it>
    """
    selection = describe_selection(selector, X, feature_names=feature_names, k=k, source=source)
    wanted = selection.selector.seeks_variance if certify is None else certify
    checked = check_table(Table(selection.X, selection.feature_names, name=source or "table"))
    if labels is not None:
        labels = as_texts("labels", labels, selection.n_samples, "sample")
    return SelectionReport(
        selection,
        title=title or SelectionReport.title,
        labels=labels,
        notes=checked.to_say("" if selection.counts_columns_alike else selection.method),
        certificate=selection.certificate if wanted else None,
        table=table_of_object(X) if selection.preparer is not None and is_frame(X) else None,
    )


def render(report: SelectionReport) -> str:
    """The report as text; the same for the same input, on the same day."""
    selection, drawn = report.selection, draw(report.selection, report.labels, report.table)
    script, preparer = template("selection.js"), selection.preparer
    digest = hashlib.sha256(script.encode("utf-8")).digest()  # the policy of the page allows it
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(template),
    )
    environment.filters.update(count=count, display_name=display_name)
    page = environment.get_template("selection.html.jinja").render(
        report=report,
        words=put_into_words(selection, report.certificate, report.notes),
        selection=selection,
        made_on=today(),
        score=selection.selector.score_means or f"as {selection.method} defines it",
        set_aside={} if preparer is None else preparer.set_aside_,
        settings={name: readable(value) for name, value in selection.settings.items()},
        python=python_recipe(selection),
        drawn=drawn,
        colours=COLOURS,
        warm=WARM,
        farthest=FARTHEST,
        in_words=IN_WORDS,
        style=template("selection.css"),
        script=script,
        script_hash=f"sha256-{base64.b64encode(digest).decode('ascii')}",
        data=script_safe_json(page_data(selection, drawn)),
    )
    return str(page)


def page_data(selection: Selection, drawn: Mapping[str, Any]) -> dict[str, Any]:
    """What the script of the report works on: features best first, so that rank is position + 1."""
    names = [feature.name for feature in selection.features]
    place = {name: at for at, name in enumerate(names)}
    letters = [_LETTERS[str(each.reason)] for each in selection.dropped]  # "aab" -> "a2b1"
    data: dict[str, Any] = {
        "k": selection.k,
        "names": names,
        "scores": [float(f"{feature.score:.5g}") for feature in selection.features],
        "near": {
            rank: [place[feature.neighbour], _hundredths(feature.correlation)]
            for rank, feature in enumerate(selection.features)
            if feature.neighbour is not None
        },
        "sparks": drawn["histograms"],
        "reasons": "".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters)),
        "categories": [place[name] for name in selection.categories if name in place],
        "halves": [_in_halves(feature, place) for feature in selection.kept],
    }
    if drawn["map"] is not None:
        shown, hundredths = drawn["in_the_map"], np.rint(100 * drawn["r"]).astype(int)
        frame = drawn["map_frame"]
        data["map"] = {"frame": frame, "shown": shown.tolist(), "hundredths": hundredths.tolist()}
    return data


def _in_halves(feature: Feature, place: Mapping[str, int]) -> list[int]:
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


def readable(value: Any) -> str:
    """A setting or a selector as it is typed in Python; objects never by their address."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))


def python_recipe(selection: Selection) -> str:
    """Lines of Python that repeat the selection."""
    selector, source = selection.selector, selection.source
    parts = [selector, *selector.get_params(deep=True).values()]
    classes = {type(part) for part in parts if isinstance(part, BaseEstimator)}
    homes = {each.__name__: re.sub(r"^keepers\..*", "keepers", each.__module__) for each in classes}
    imports = [f"from {homes[name]} import {name}" for name in sorted(homes)]
    shape = f"{selection.n_samples} samples x {selection.n_features} features"
    read = f"X = ...  # the table of the fit: {shape}"
    names = ""
    if source in BUNDLED:
        read = f"X, names, labels = keepers.datasets.load({source!r})"
        names = ", feature_names=names, labels=labels"
    lines = [
        "import keepers",
        *imports,
        "",
        read,
        f"selector = {readable(selector)}.fit(X)",
        f"print(selector.top({selection.k}).names)",
        f"report = keepers.report(selector, X{names})",
        "report.save('report.html')",
    ]
    return "\n".join(lines)


def today() -> date:
    """The date, or that of SOURCE_DATE_EPOCH, where a report has to be the same every day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.fromtimestamp(int(epoch), tz=UTC).date()
    return datetime.now().astimezone().date()


def script_safe_json(data: Any) -> str:
    """JSON that means the same to a JavaScript parser and is inert to an HTML parser."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def template(name: str) -> str:
    """The text of a file in the folder of templates."""
    folder = files("keepers.reports") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")
