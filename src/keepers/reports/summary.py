"""What the report shows beside the selection itself, as plain numbers and strings."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.storage import as_array, scale_columns
from keepers.prepare.preparer import TablePreparer
from keepers.proofs.certify import Certificate
from keepers.reports.figures import evenly
from keepers.reports.selection import Selection, as_texts
from keepers.reports.words import Words, display_name, put_into_words, significant
from keepers.tables.opening import BUNDLED
from keepers.tables.table import Table

LARGEST_EXACT = 500
MOST_POINTS = 2000
MOST_COLOURS = 10
MOST_IN_THE_MAP = 60
MOST_HISTOGRAMS = 200
Settings = tuple[tuple[str, str], ...]
N_BARS = 12
MOST_ROWS = 5000
"""Samples that histograms are made of."""
MOST_SAMPLES, MOST_FEATURES = 400, 60
"""Columns and rows of the heat map."""
FARTHEST = 2.5
"""Standard deviations from the mean at which the colours of the heat map are full."""
LONGEST_WORD, MOST_WORDS = 24, 30


@dataclass(frozen=True)
class Histogram:
    """The values of one feature."""

    heights: str
    """A digit a bar, from 0 (no value) to 9 (the tallest bar)."""
    low: str
    """The smallest value, as people wrote it."""
    high: str


@dataclass(frozen=True)
class HeatMap:
    """Kept features over samples."""

    z: FloatArray
    """A row for each feature, best first: standard deviations from its mean; NaN in gaps."""
    samples: IndexArray
    """The samples of its columns, those of a class side by side."""
    classes: tuple[tuple[int, int], ...]
    """Place in the legend and number of columns of each class, from the left; empty without."""
    n_samples: int


def written_values(preparer: TablePreparer, table: Any, n_samples: int) -> dict[str, Any]:
    """The columns of a table that are not numbers, as people wrote them: polars series by name.

    None where rows were left out, or the table is in blocks.
    """
    if not isinstance(table, Table) or table.frame is None or table.n_samples != n_samples:
        return {}
    columns = {column.name for column in preparer.columns_}
    return {name: table.frame[name] for name in table.frame.columns if name in columns}


def histograms(
    selection: Selection, columns: IndexArray, written: Mapping[str, Any]
) -> tuple[Histogram, ...]:
    """The histograms of some columns; none if the table is not there."""
    X = selection.X
    if X is None:
        return ()
    rows = evenly(X.shape[0], MOST_ROWS)
    names = selection.feature_names[columns]
    values = _dense(X, rows, columns)
    return tuple(
        _of_words(column, written[name], rows) if name in written else _of_numbers(column)
        for name, column in zip(names, values.T, strict=True)
    )


def _of_numbers(values: FloatArray) -> Histogram:
    values = values[~np.isnan(values)]
    if not len(values):
        return Histogram("", "", "")
    low, high = float(values.min()), float(values.max())
    ends = [significant(end, 3) if abs(end) < 1e3 else f"{end:,.0f}" for end in (low, high)]
    if low == high:
        return Histogram("9", *ends)
    # Measured in the range of the values, so that no range is too small or too large.
    place = ((values / 2 - low / 2) / (high / 2 - low / 2) * N_BARS).astype(np.intp)
    counts = np.bincount(np.clip(place, 0, N_BARS - 1), minlength=N_BARS)
    return Histogram(_bars(counts), *ends)


def _of_words(numbers: FloatArray, series: Any, rows: IndexArray) -> Histogram:
    """Words and dates in the order of their numbers; a bar a word unless there are many."""
    words = series[rows].to_list()
    there = ~np.isnan(numbers) & np.array([word is not None for word in words])  # not filled
    texts = np.array([str(word) for word in words], dtype=object)
    numbers, texts = numbers[there], texts[there]
    if not len(texts):
        return Histogram("", "", "")
    ends = [str(texts[at]).removesuffix(" 00:00:00") for at in (numbers.argmin(), numbers.argmax())]
    low, high = (display_name(end, LONGEST_WORD) for end in ends)
    levels, at, counts = np.unique(texts, return_inverse=True, return_counts=True)
    if len(levels) > MOST_WORDS:
        return Histogram(_of_numbers(numbers).heights, low, high)
    by_number = np.argsort(np.bincount(at, numbers) / counts, kind="stable")
    return Histogram(_bars(counts[by_number]), low, high)


def _bars(counts: IndexArray) -> str:
    return "".join(map(str, np.ceil(9 * counts / counts.max()).astype(int)))


def heat_map(
    selection: Selection, colour_of: IndexArray | None, along: FloatArray | None
) -> HeatMap | None:
    """Kept features over samples, grouped by class, else in the order of ``along``."""
    X = selection.X
    if X is None or X.shape[0] < 2:
        return None
    n_samples = X.shape[0]
    key = along if colour_of is None else colour_of
    order = np.arange(n_samples) if key is None else np.argsort(key, kind="stable")
    samples = order[evenly(n_samples, MOST_SAMPLES)]
    columns = selection.order[: min(selection.k, MOST_FEATURES)]
    values = _dense(X, np.sort(samples), columns)[np.argsort(np.argsort(samples))]
    there = ~np.isnan(values)
    n_there = np.maximum(there.sum(axis=0), 1)
    centred = values - np.where(there, values, 0.0).sum(axis=0) / n_there
    spread = np.sqrt((np.where(there, centred, 0.0) ** 2).sum(axis=0) / n_there)
    z = np.clip(centred / np.where(spread > 0, spread, 1.0), -FARTHEST, FARTHEST)
    classes: tuple[tuple[int, int], ...] = ()
    if colour_of is not None:
        shown = colour_of[samples]
        classes = tuple((int(at), int((shown == at).sum())) for at in np.unique(shown))
    return HeatMap(np.ascontiguousarray(z.T), samples, classes, n_samples)


def _dense(X: Any, rows: IndexArray, columns: IndexArray) -> FloatArray:
    if sp.issparse(X):
        return np.asarray(X[rows][:, columns].toarray(), dtype=np.float64)
    return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)


@dataclass(frozen=True)
class Plane:
    """Coordinates on the first two principal components, and the share of variance of each."""

    points: FloatArray
    shares: tuple[float, float]


@dataclass(frozen=True)
class Planes:
    """The same samples by all features and by the kept ones."""

    before: Plane
    after: Plane
    samples: IndexArray
    """Which samples are shown."""


@dataclass(frozen=True)
class Classes:
    """Labels as colours: the largest classes have one each, the others share the last."""

    legend: tuple[str, ...]
    sizes: tuple[int, ...]
    colour_of: IndexArray
    """Per sample its place in the legend."""


@dataclass(frozen=True)
class SelectionSummary:
    """Everything that the report shows."""

    selection: Selection
    title: str
    made_on: date
    words: Words
    score: str
    """What a score means."""
    closest: tuple[tuple[tuple[int, float], ...], ...]
    """For the first features, the most correlated other one among the best 1, 2, ...: rank - 1 and
    r of each that is closer than those before it."""
    histograms: tuple[Histogram, ...]
    """Of the first features, or none."""
    map_order: IndexArray
    """Ranks - 1 of the kept features in the correlation map, similar ones side by side."""
    set_aside: Mapping[str, str]
    """Columns that are not features, and why."""
    settings: Settings
    """Parameters that differ from their defaults, and what the fit found."""
    defaults: Settings
    python: str
    command: str | None
    heat: HeatMap | None
    planes: Planes | None
    classes: Classes | None
    labels: tuple[str, ...] | None
    sample_names: tuple[str, ...] | None


def summarise(
    selection: Selection,
    *,
    sample_names: Any = None,
    labels: Any = None,
    title: str | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
    set_aside: Mapping[str, str] | None = None,
    certificate: Certificate | None = None,
    written: Mapping[str, Any] | None = None,
) -> SelectionSummary:
    """Measure what `make_report` shows; its parameters are explained there.

    ``notes`` are what was found in the table and done to it; ``written`` the columns that are not
    numbers, as people wrote them.
    """
    n_samples = selection.n_samples if selection.X is None else selection.X.shape[0]
    tagged = None if labels is None else tuple(as_texts("labels", labels, n_samples, "sample"))
    called = None
    if sample_names is not None:
        called = tuple(as_texts("sample_names", sample_names, n_samples, "sample"))
    classes = None if tagged is None else classes_of(list(tagged))
    planes = planes_of(selection)
    along = None
    if planes is not None and len(planes.samples) == n_samples:
        along = planes.after.points[:, 0]
    changed, usual = settings_of(selection.selector)
    return SelectionSummary(
        selection=selection,
        title=title or "Features worth keeping",
        made_on=today(),
        words=put_into_words(selection, certificate, notes),
        score=selection.selector.score_means or f"as {selection.method} defines it",
        closest=closest_so_far(selection.correlation),
        histograms=histograms(selection, selection.order[:MOST_HISTOGRAMS], written or {}),
        map_order=map_order(selection.correlation[: selection.k, : selection.k]),
        set_aside=dict(set_aside or {}),
        settings=(*changed, *found_by(selection.selector)),
        defaults=usual,
        python=python_recipe(selection),
        command=command,
        heat=heat_map(selection, None if classes is None else classes.colour_of, along),
        planes=planes,
        classes=classes,
        labels=tagged,
        sample_names=called,
    )


def closest_so_far(correlation: FloatArray) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Per row the columns, from the left, with a larger |r| than all before; itself aside.

    The last of them within the first k columns is what `nearest_kept` gives for k.
    """
    strength = np.where(np.isnan(correlation), -1.0, np.abs(correlation))
    np.fill_diagonal(strength, -1.0)
    strength = np.round(strength, 12)
    before = np.full_like(strength, -1.0)
    before[:, 1:] = np.maximum.accumulate(strength, axis=1)[:, :-1]
    return tuple(
        tuple((int(at), float(row[at])) for at in np.flatnonzero(closer))
        for row, closer in zip(correlation, strength > before, strict=True)
    )


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


def planes_of(selection: Selection) -> Planes | None:
    """Both planes, of the values as the method weighs columns; None if there is none to draw."""
    if selection.X is None:
        return None
    n_samples, samples = selection.X.shape[0], np.arange(selection.X.shape[0])
    if n_samples > MOST_POINTS:
        rng = np.random.default_rng(0)
        samples = np.sort(rng.choice(n_samples, MOST_POINTS, replace=False))
    X = scale_columns(selection.filled[samples], selection.column_factors)
    before, after = plane_of(X), plane_of(X[:, selection.order[: selection.k]])
    if before is None or after is None:
        return None
    # Samples stay on the side where they were.
    agreement = np.einsum("ij,ij->j", before.points, after.points)
    turned = after.points * np.where(agreement < 0, -1.0, 1.0)
    return Planes(before, Plane(turned, after.shares), samples)


def plane_of(X: Any) -> Plane | None:
    """The first two principal components of X; the second is 0 where X has only one."""
    n_samples, n_features = X.shape
    width = min(2, n_samples - 1, n_features)
    if n_samples < 3 or width < 1:
        return None
    if min(X.shape) <= LARGEST_EXACT:
        X = as_array(X)
        left, sizes, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        found, ratios = left * sizes, sizes**2 / (sizes @ sizes or 1.0)
    else:
        from sklearn.decomposition import PCA

        model = PCA(width, svd_solver="arpack", tol=1e-3, random_state=0)
        found = model.fit_transform(X)
        ratios, axes = model.explained_variance_ratio_, model.components_
    if not found.any():
        return None
    # Eigenvectors have no sign of their own: the largest entry is positive.
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=1)[:, None], axis=1)[:, 0]
    points, shares = np.zeros((n_samples, 2)), np.zeros(2)
    points[:, :width] = (found * np.where(largest < 0, -1.0, 1.0))[:, :width]
    shares[:width] = ratios[:width]
    return Plane(points, (float(shares[0]), float(shares[1])))


def classes_of(labels: list[str]) -> Classes:
    """At most ten colours: of more classes the nine largest keep theirs, the rest share one."""
    words, index, counts = np.unique(
        np.array(labels, dtype=object), return_inverse=True, return_counts=True
    )
    by_size = np.argsort(-counts, kind="stable")
    n_own = len(words) if len(words) <= MOST_COLOURS else MOST_COLOURS - 1
    own = sorted(by_size[:n_own], key=lambda j: _reading_order(str(words[j])))
    place = np.full(len(words), n_own, dtype=np.intp)
    place[own] = np.arange(n_own)
    legend = tuple(str(words[j]) for j in own)
    sizes = tuple(int(counts[j]) for j in own)
    if n_own < len(words):
        legend += (f"{len(words) - n_own} other classes",)
        sizes += (int(counts.sum()) - sum(sizes),)
    return Classes(legend, sizes, place[index])


def _reading_order(label: str) -> tuple[bool, float, str]:
    """Numbers first and by value, so that class 10 does not stand before class 2."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def settings_of(selector: Any) -> tuple[Settings, Settings]:
    """The parameters that differ from their defaults, and the others, as typed in Python."""
    given, accepted = selector.get_params(deep=False), signature(type(selector)).parameters
    texts = [(n, readable(given[n]), readable(accepted[n].default)) for n in accepted if n in given]
    changed = tuple((name, value) for name, value, usual in texts if value != usual)
    return changed, tuple((name, value) for name, value, usual in texts if value == usual)


def found_by(selector: Any) -> Settings:
    """Single numbers and words that the fit stored, such as ``n_components_``."""
    rows = []
    for name, value in vars(selector).items():
        plain = isinstance(value, (bool, int, float, str, np.generic)) and not name.startswith(
            "n_f"
        )
        if name.endswith("_") and plain and len(str(value)) <= 30:
            text = significant(float(value), 6) if isinstance(value, float) else str(value)
            rows.append((name, text))
    return tuple(rows)


def readable(value: Any) -> str:
    """A setting as it is typed in Python; objects by the name of their type, never by address."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)) and len(value) <= 10:
        inside = ", ".join(readable(entry) for entry in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _constructor_call(value)
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def _constructor_call(selector: Any) -> str:
    """The call that makes a selector, with the settings that are not the defaults."""
    changed = ", ".join(f"{name}={value}" for name, value in settings_of(selector)[0])
    return f"{_home(selector)}.{type(selector).__name__}({changed})"


def _home(selector: Any) -> str:
    module = type(selector).__module__
    return "keepers" if module.startswith("keepers.") else module


def python_recipe(selection: Selection) -> str:
    """Lines of Python that repeat the selection, with the settings that are not the defaults."""
    source, home = selection.source, _home(selection.selector)
    lines = ["import keepers"] if home == "keepers" else ["import keepers", f"import {home}"]
    arguments = ""
    if source in BUNDLED:
        lines += ["", f"X, names, labels = keepers.datasets.load({source!r})"]
        arguments = ", feature_names=names, labels=labels"
    else:
        origin = f" of {display_name(source)}" if source else ""
        shape = f"{selection.n_samples} samples x {selection.n_features} features{origin}"
        lines += ["", f"X = ...  # the table of the fit: {shape}"]
    lines += [
        f"selector = {_constructor_call(selection.selector)}.fit(X)",
        f"print(selector.top({selection.k}).names)",
        f"report = keepers.report(selector, X{arguments})",
        "report.save('report.html')",
    ]
    return "\n".join(lines)


def today() -> date:
    """The date, or that of SOURCE_DATE_EPOCH, where a report has to be the same every day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.fromtimestamp(int(epoch), tz=UTC).date()
    return datetime.now().astimezone().date()
