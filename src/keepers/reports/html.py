"""The report on a fitted selector: one HTML file that needs no network, and its figures.

The figures are small SVG that follows the light or dark theme of the page. They are written without
a plotting library: a few lines and pictures need none, and a report takes a tenth of the time.
"""

import base64
import hashlib
import json
import os
import re
import struct
import zlib
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
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers.prepare.check import check_table
from keepers.proofs.certify import Certificate
from keepers.reports.selection import (
    IN_WORDS,
    REASONS,
    Feature,
    Selection,
    as_texts,
    correlation_matrix,
    count,
    describe_selection,
    display_name,
    put_into_words,
)
from keepers.tables.atomic import whole_file
from keepers.tables.objects import is_frame, table_of_object
from keepers.tables.opening import BUNDLED
from keepers.tables.table import Table

__all__ = ["SelectionReport", "report"]

# Characters that could end a script block, open a comment, or break a line of JavaScript.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_LETTERS = dict(zip(REASONS, "btsnfcx", strict=True))
"""The script of the report calls reasons by these letters."""

# Ten hues that part on white and on near-black.
COLOURS = (
    "#3b82c4", "#e8853a", "#3fa66b", "#d4524e", "#8d6cc3",
    "#b08a3e", "#d873b0", "#2aa5b0", "#8fae2e", "#8a929c",
)  # fmt: skip
WARM = "#d9702b"
"""Above the mean, in the heat map; below it is the first of the colours."""
MOST_HISTOGRAMS, MOST_IN_THE_MAP = 200, 60
MOST_IN_THE_HEAT_MAP, MOST_SAMPLES = 60, 400
"""Rows and columns."""
FARTHEST = 2.5
"""Standard deviations from the mean at which the colours of the heat map are full."""
MOST_ROWS, N_BARS, MOST_WORDS = 5000, 12, 30
"""Samples and bars of a histogram, and different words that have a bar each."""
LONGEST_LABEL = 26
LETTER_WIDTH = 6.8
NARROWEST_ROW, WIDEST_ROW = 13.0, 38.0
HEAT_WIDTH = 1040.0
_SHADES = 12
Frame = tuple[float, float, float, float]


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
    """The findings about the table, and the changes to it."""
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
        """Write the report, all of it or nothing; ``force`` replaces a file that is there."""
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
        Heading of the report.
    source : str, optional
        Where the table came from: a file name, or a bundled name.
    k : int, float in (0, 1] or None
        How many features, or which share, count as kept; None: the number that the selector keeps.
    certify : bool, optional
        Whether to prove how close the kept features are to those that hold the most variance; by
        default for methods that look for variance (`SPCAFS`, `FSPCA`, `VarianceScore`).

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
    selection, drawn = report.selection, draw(report.selection, report.labels, report.table)
    script, preparer = template("selection.js"), selection.preparer
    digest = hashlib.sha256(script.encode("utf-8")).digest()  # the policy of the page allows it
    jinja2 = optional("jinja2", "Reports")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(count=count, display_name=display_name)
    page = environment.from_string(template("selection.html.jinja")).render(
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
    """Data for the script of the report: features best first, so rank is position + 1."""
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
    """Per cent of the half-samples that keep it; its replacement and r in hundredths, if any."""
    if feature.share_of_halves is None:
        return []
    share = round(100 * feature.share_of_halves)
    if feature.stand_in is None:
        return [share]
    return [share, place[feature.stand_in], abs(_hundredths(feature.stand_in_correlation))]


def _hundredths(r: float) -> int:
    return round(100 * float(f"{r:.2f}"))  # as the terminal rounds it


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
    fit = f"selector = {readable(selector)}.fit(X)"
    top = f"print(selector.top({selection.k}).names)"
    made = f"keepers.report(selector, X{names}).save('report.html')"
    return "\n".join(["import keepers", *imports, "", read, fit, top, made])


def today() -> date:
    """The date, or that of SOURCE_DATE_EPOCH, where a report has to be the same every day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), tz=UTC).date() if epoch.isdigit() else date.today()


def script_safe_json(data: Any) -> str:
    """JSON that means the same to a JavaScript parser and is inert to an HTML parser."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def template(name: str) -> str:
    folder = files("keepers.reports") / "templates"
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def draw(selection: Selection, labels: Iterable[Any] | None, table: Any) -> dict[str, Any]:
    """The figures of a report, and what they show; None where there is nothing to draw.

    ``table`` has the values as people wrote them.
    """
    X, k, tried = selection.X, selection.k, selection.notes.tried
    kept = selection.order[:k]
    drawn: dict[str, Any] = {"agreement": None, "map": None, "heat": None}
    drawn |= {"classes": [], "histograms": []}
    if tried is not None and len(tried[0]) > 1:
        drawn["agreement"] = draw_agreement(*tried, k, selection.notes.by_chance)
    if X is None:
        return drawn
    names = [str(name) for name in selection.feature_names[selection.order]]
    r = correlation_matrix(X, selection.moments, kept[:MOST_IN_THE_MAP])
    shown = map_order(r)
    if len(shown):
        r = r[np.ix_(shown, shown)]
        svg, frame = draw_map(r, [names[at] for at in shown])
        drawn |= {"map": svg, "map_frame": frame, "in_the_map": shown, "r": r}
    classes = None
    if labels is not None:
        drawn["classes"], classes = classes_of([str(label) for label in labels])
    if X.shape[0] > 1:
        z, samples = heat_map(X, kept[:MOST_IN_THE_HEAT_MAP], classes)
        above = None if classes is None else classes[samples]
        drawn |= {"heat": draw_heat(z, names[: len(z)], above), "heat_size": z.shape}
    first, written = selection.order[:MOST_HISTOGRAMS], {}
    if isinstance(table, Table) and table.frame is not None and table.n_samples == X.shape[0]:
        ticks = [] if selection.preparer is None else selection.preparer.columns_
        plain = {column.name for column in ticks if column.kind == "tick"}
        words = {name for name in table.frame.columns if name not in plain}
        ranked = zip(first.tolist(), names, strict=False)
        written = {column: table.frame[name] for column, name in ranked if name in words}
    return drawn | {"histograms": histograms(X, first, written)}


def svg_element(width: float, height: float, label: str, body: str, natural: bool = False) -> str:
    """An ``<svg>`` element; a ``natural`` one keeps its size, others fill their place."""
    style = f' style="--natural: {width:.0f}px"' if natural else ""
    box = f'viewBox="0 0 {width:.1f} {height:.1f}" role="img" aria-label="{escape(label)}"'
    return f"<svg {box}{style}>{body}</svg>"


def svg_text(x: float, y: float, anchor: str, text: str, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="label" {place}{more}>{escape(text)}</text>'


def draw_agreement(
    counts: IndexArray, agreement: FloatArray, k: int, by_chance: FloatArray | None
) -> str:
    """The share of neighbours preserved by numbers of features, with k marked.

    A dotted line shows the mean of random sets.
    """
    width, height = 340.0, 215.0
    left, top, right, bottom = 46.0, 10.0, width - 8, height - 38
    most, shares = float(counts[-1]), 100 * agreement
    ticks = _ticks(100.0 * float(agreement.max()), 4)
    highest = max(ticks[-1], float(shares.max())) or 1.0

    def at(number: float, share: float) -> tuple[float, float]:
        return left + number / most * (right - left), bottom - share / highest * (bottom - top)

    def across(kind: str, share: float) -> str:
        return f'<path class="{kind}" d="M{left:.1f} {at(0, share)[1]:.1f}H{right:.1f}"/>'

    body = ""
    for tick in ticks:
        body += across("grid", tick) + svg_text(left - 6, at(0, tick)[1] + 4, "end", f"{tick:g}")
    for tick in _ticks(most, 5):
        body += svg_text(at(tick, 0)[0], bottom + 15, "middle", f"{tick:,.0f}")
    if by_chance is not None and len(by_chance):
        body += across("level", 100 * float(by_chance.mean()))
    places = [at(a, b) for a, b in zip(counts.tolist(), shares.tolist(), strict=True)]
    body += f'<path class="curve" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in places)}"/>'
    x, y = at(min(k, most), float(np.interp(k, counts, shares)))
    anchor, aside = ("end", -8) if x > (left + right) / 2 else ("start", 8)
    body += f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    body += svg_text(x + aside, y + 16, anchor, f"kept: {count(k)}")
    body += svg_text((left + right) / 2, height - 6, "middle", "number of features")
    middle = (top + bottom) / 2
    turned = f' transform="rotate(-90 12 {middle:.1f})"'
    body += svg_text(12, middle, "middle", "neighbours preserved (%)", turned)
    return svg_element(width, height, "Neighbours preserved, by number of features", body)


def _ticks(high: float, most: int) -> list[float]:
    """About ``most`` round numbers from 0 to ``high``, 1 or more apart."""
    rough = max(high / most, 1.0)
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(power * next(size for size in (1, 2, 5, 10) if size * power >= rough * 0.999))
    return [step * at for at in range(int(high / step + 1e-9) + 1)]


def evenly(n: int, most: int) -> IndexArray:
    """At most ``most`` of the integers below n, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def draw_map(correlation: FloatArray, names: list[str]) -> tuple[str, Frame]:
    """Correlations as squares: the accent colour, as opaque as |r|, so it reads on any ground."""
    size = len(correlation)
    labels = [_row_label(name) for name in names]
    side = size * float(np.clip(300 / size, NARROWEST_ROW, WIDEST_ROW))
    left = _label_width(labels)
    frame = (left, 4.0, left + side, 4.0 + side)
    strength = np.nan_to_num(np.abs(correlation))
    picture = _picture(_tint(COLOURS[0], strength), frame)
    body = picture + _row_labels(labels, frame)
    label = "Correlations, similar features side by side"
    return svg_element(left + side + 4, side + 8, label, body, natural=True), frame


def map_order(correlation: FloatArray) -> IndexArray:
    """The first features that vary, in the order of the leaves of average linkage on 1 - |r|."""
    varies = np.flatnonzero(~np.isnan(correlation.diagonal()))[:MOST_IN_THE_MAP]
    if len(varies) < 2:
        return varies[:0]
    distance = 1.0 - np.abs(correlation[np.ix_(varies, varies)])
    distance = np.maximum((distance + distance.T) / 2, 0.0)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(distance, checks=False)
    return varies[leaves_list(linkage(condensed, "average", optimal_ordering=True))]


def heat_map(X: Any, columns: IndexArray, classes: IndexArray | None) -> tuple[FloatArray, Any]:
    """Some columns over at most 400 samples, and the samples shown.

    A row for each column, in standard deviations from its mean; NaN in gaps. Samples are in the
    order of their classes, then of their first principal component.
    """
    samples = evenly(X.shape[0], MOST_SAMPLES)
    z = StandardScaler().fit_transform(_dense(X, samples, columns))
    left = np.linalg.svd(np.nan_to_num(z), full_matrices=False)[0][:, 0]
    left = left * np.sign(left[np.argmax(np.abs(left))])  # the sign of an SVD is arbitrary
    order = np.lexsort((left, np.zeros(len(z)) if classes is None else classes[samples]))
    return np.clip(z[order].T, -FARTHEST, FARTHEST), samples[order]


def draw_heat(z: FloatArray, names: list[str], classes: IndexArray | None = None) -> str:
    """Features over samples: orange above the mean of a feature, blue below.

    The classes of the samples, equal ones side by side, are coloured above them.
    """
    labels = [_row_label(name) for name in names]
    row = float(np.clip(260 / len(z), NARROWEST_ROW, 22.0))
    left, top = _label_width(labels), 4.0 if classes is None else 12.0
    frame = (left, top, HEAT_WIDTH - 4, top + len(z) * row)
    # A few shades: the picture in the file is a third of the size.
    strength = np.nan_to_num(np.rint(_SHADES * np.abs(z) / FARTHEST) / _SHADES)
    cells = np.where(z[..., None] > 0, _tint(WARM, strength), _tint(COLOURS[0], strength))
    body = _picture(cells, frame) + _row_labels(labels, frame)
    step = (frame[2] - left) / z.shape[1]
    for group in [] if classes is None else np.unique(classes):
        at = np.flatnonzero(classes == group)
        place = f'x="{left + at[0] * step:.1f}" width="{max(len(at) * step - 1, 0.5):.1f}"'
        body += f'<rect {place} y="4" height="4" fill="{COLOURS[group]}"/>'
    label = "Kept features over samples"
    return svg_element(HEAT_WIDTH, frame[3] + 4, label, body, natural=True)


def classes_of(labels: list[str]) -> tuple[list[tuple[str, int]], IndexArray]:
    """Names and sizes of the classes, the largest first, and the class of each sample.

    Of more than ten classes, the small ones become one.
    """
    words, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    legend = [(str(words[at]), int(counts[at])) for at in order]
    place = np.argsort(order)
    if len(legend) > len(COLOURS):
        rest = legend[len(COLOURS) - 1 :]
        legend[len(COLOURS) - 1 :] = [(f"{len(rest)} other classes", sum(n for _, n in rest))]
        place = np.minimum(place, len(COLOURS) - 1)
    return legend, place[index]


def histograms(
    X: Any, columns: IndexArray, written: Mapping[int, Any]
) -> list[tuple[str, str, str]]:
    """For each column a digit per bar, 9 for the tallest, and its smallest and largest value.

    ``written`` has the values of some columns as people wrote them.
    """
    rows = evenly(X.shape[0], MOST_ROWS)
    found = []
    for column, values in zip(columns.tolist(), _dense(X, rows, columns).T, strict=True):
        there, texts = ~np.isnan(values), None
        if column in written:
            texts = np.array(written[column][rows].to_list(), dtype=object)
            there &= texts != None  # noqa: E711
            texts = texts[there].astype(str)
        found.append(_histogram(values[there], texts))
    return found


def _histogram(values: FloatArray, texts: np.ndarray | None) -> tuple[str, str, str]:
    if not len(values):
        return "", "", ""
    ends = [int(values.argmin()), int(values.argmax())]
    if texts is None:
        low, high = (f"{v:,.0f}" if 1e3 <= abs(v) < 1e7 else f"{v:.3g}" for v in values[ends])
        if low == high:
            low, high = (f"{v:,.6g}" for v in values[ends])
    else:
        shown = [str(text).removesuffix(" 00:00:00") for text in texts[ends]]
        low, high = (display_name(text, LONGEST_LABEL) for text in shown)
        levels, at, counts = np.unique(texts, return_inverse=True, return_counts=True)
        if len(levels) <= MOST_WORDS:  # a bar each, in the order of their numbers
            return _bars(counts[np.argsort(np.bincount(at, values) / counts)]), low, high
    if values.min() == values.max():
        return "9", low, high
    # A power of 2 brings the largest numbers into range and rounds nothing.
    values = np.ldexp(values, -int(np.frexp(np.abs(values).max())[1]))
    return _bars(np.histogram(values, N_BARS)[0]), low, high


def _bars(counts: IndexArray) -> str:
    return "".join(map(str, np.ceil(9 * counts / counts.max()).astype(int)))


def _dense(X: Any, rows: IndexArray, columns: IndexArray) -> FloatArray:
    some = X[rows][:, columns].toarray() if sp.issparse(X) else X[np.ix_(rows, columns)]
    return np.asarray(some, dtype=np.float64)


def _row_label(name: str) -> str:
    """A name, long ones cut in the middle: questions of a survey often differ at the end."""
    shown = display_name(name, 1000)
    half = LONGEST_LABEL // 2
    return shown if len(shown) <= LONGEST_LABEL else f"{shown[:half]}…{shown[1 - half :]}"


def _label_width(labels: list[str]) -> float:
    longest = max(sum(2 if letter > "\u1100" else 1 for letter in label) for label in labels)
    return 8 + LETTER_WIDTH * longest


def _row_labels(labels: list[str], frame: Frame) -> str:
    left, top, _, bottom = frame
    step = (bottom - top) / len(labels)
    return "".join(
        svg_text(left - 4, top + (row + 0.5) * step + 4, "end", label)
        for row, label in enumerate(labels)
    )


def _tint(colour: str, strength: FloatArray) -> FloatArray:
    rgb = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return np.dstack([np.broadcast_to(rgb, (*strength.shape, 3)), strength])


def _picture(rgba: FloatArray, frame: Frame) -> str:
    """Cells as an image in the frame; each stays a sharp rectangle."""
    left, top, right, bottom = frame
    place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
    source = f"data:image/png;base64,{base64.b64encode(as_png(rgba)).decode('ascii')}"
    return f'<image class="cells" {place} preserveAspectRatio="none" href="{source}"/>'


def as_png(rgba: FloatArray) -> bytes:
    """A picture as a PNG file: rows of red, green, blue and opacity from 0 to 1."""
    height, width, _ = rgba.shape
    pixels = np.rint(255 * rgba).astype(np.uint8).reshape(height, -1)
    rows = np.hstack([np.zeros((height, 1), np.uint8), pixels])  # each row without a filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")
