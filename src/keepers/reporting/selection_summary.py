"""What the report shows beside the selection itself, as plain numbers and strings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from inspect import signature
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from scipy.spatial.distance import squareform

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.data.catalogue import BUNDLED
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.moments import ColumnMoments, column_moments, row_blocks
from keepers.linalg.ordering import knee_of
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import principal_subspace
from keepers.linalg.storage import scale_columns
from keepers.reporting.first_paragraph import FirstParagraph, first_paragraph
from keepers.reporting.kept_values import HeatMap, Histogram, heat_map, histograms
from keepers.reporting.report_parts import display_name, significant
from keepers.selection import Reason, Selection, as_texts
from keepers.selectors import AutoSelector
from keepers.selectors.certificate import Certificate
from keepers.tuning.false_selections import FalseSelections
from keepers.tuning.gamma_path import SPCAFSPath
from keepers.tuning.stability import StabilitySelector, wilson_intervals
from keepers.tuning.stability_index import Stability

LARGEST_EXACT = 500
DRAWING_ACCURACY = 1e-3
MOST_POINTS = 2000
MOST_COLOURS = 10
NEAR_COPY = 0.9
MOST_IN_THE_MAP = 60
MOST_ON_THE_PATH = 8
FEWEST_HISTOGRAMS = 200
FEWEST_STEPS = 4
"""Fewer make no curve."""
MOST_TRIALS = 5
MOST_PAIRS = 8
# Fitted quantities worth a line, with the words for them.
_FOUND = {
    "n_components_": "components used",
    "gamma_": "penalty weight used",
    "alpha_": "alpha used",
    "n_clusters_": "clusters used",
    "n_iter_": "steps",
    "converged_": "converged",
    "solver_": "solver used",
}


@dataclass(frozen=True)
class RankedFeatures:
    """Every feature, best first."""

    names: tuple[str, ...]
    columns: IndexArray
    """Their places in X."""
    scores: FloatArray
    variances: FloatArray
    """Population variances (divided by n)."""
    closest: tuple[tuple[tuple[int, float], ...], ...]
    """For the first of them, the most correlated other one among the best 1, 2, ...: rank - 1 and
    r of each that is closer than those before it."""
    histograms: tuple[Histogram, ...]
    """Of the first of them, all kept ones at least; empty if the table is not there."""


@dataclass(frozen=True)
class Redundancy:
    """How much the kept features repeat each other; positions are ranks - 1."""

    n_compared: int
    """Kept features that were compared with each other."""
    median: float
    """Median |r| over their pairs."""
    n_near_copies: int
    """Those with |r| > 0.9 to another."""
    pairs: tuple[tuple[int, int, float], ...]
    """The closest pairs and their r, closest first."""
    shown: IndexArray
    """Those in the map, similar ones side by side."""
    correlation: FloatArray
    """Their correlations, in that order."""


@dataclass(frozen=True)
class Provenance:
    """How the ranking was made, and how to make it again."""

    parameters: tuple[tuple[str, str], ...]
    """Those that are not the defaults."""
    defaults: tuple[tuple[str, str], ...]
    found: tuple[tuple[str, str], ...]
    python: str
    command: str | None


@dataclass(frozen=True)
class Trials:
    """The evidence for settings that were chosen: the best of what was tried."""

    rows: tuple[tuple[str, str, str, str], ...]
    """Settings that differ, fidelity, clumpiness and score of each."""
    same: str
    """The settings that they share."""
    n_tried: int


@dataclass(frozen=True)
class Convergence:
    """The objective after every step."""

    objective: FloatArray
    converged: bool | None


@dataclass(frozen=True)
class NeighbourAgreement:
    """How well the neighbours in the best features agree with those of the whole table."""

    counts: IndexArray
    """Numbers of features that were tried."""
    agreement: FloatArray
    """For each of them."""
    n_enough: int
    """The smallest number that is almost as good as any."""
    enough: float
    """Its agreement."""
    n_drawn: int
    """Features in each of the random sets."""
    drawn: FloatArray
    """The agreement of random sets of features; empty if none were drawn."""


@dataclass(frozen=True)
class MeanImage:
    """The mean of the samples as a picture."""

    height: int
    width: int
    grey: IndexArray
    """0 to 255 per feature, in the order of X."""
    place: IndexArray
    """Per feature of X its place in the picture, row by row."""


@dataclass(frozen=True)
class SelectionStability:
    """How far selections from halves of the samples agree."""

    n_halves: int
    base: str
    """The selector that was fitted to each half."""
    intervals: FloatArray
    """95 % intervals of the frequencies, best feature first."""
    by_count: FloatArray
    """The interval of a feature selected in 0, 1, ..., ``n_halves`` halves."""
    n_stable: int
    index: Stability
    bound: FalseSelections


@dataclass(frozen=True)
class ReportedPath:
    """A path, the names of its first features, and the penalty weight of the selection on it."""

    path: SPCAFSPath
    named: IndexArray
    names: tuple[str, ...]
    gamma: float | None
    """None if the selection is not on this path."""


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
    n_samples: int


@dataclass(frozen=True)
class Classes:
    """Labels as colours: the largest classes have one each, the others share the last."""

    legend: tuple[str, ...]
    sizes: tuple[int, ...]
    n_sharing: int
    """Classes behind the last entry of the legend; 0 if every class has its own."""
    colour_of: IndexArray
    """Per sample its place in the legend."""


@dataclass(frozen=True)
class SelectionSummary:
    """Everything that the report shows."""

    selection: Selection
    title: str
    made_on: date
    first: FirstParagraph
    knee: int | None
    """Where the score curve bends; None where it does not, or the number was chosen otherwise."""
    ranked: RankedFeatures
    dropped: Mapping[Reason, int]
    """How many features were dropped, by reason."""
    set_aside: Mapping[str, str]
    """Columns that are no features, and why."""
    trials: Trials | None
    method: Provenance
    convergence: Convergence | None
    agreement: NeighbourAgreement | None
    redundancy: Redundancy | None
    heat: HeatMap | None
    planes: Planes | None
    classes: Classes | None
    labels: tuple[str, ...] | None
    sample_names: tuple[str, ...] | None
    image: MeanImage | None
    stability: SelectionStability | None
    path: ReportedPath | None
    certificate: Certificate | None = None
    """How near the kept features are to those that hold the most variance."""


def summarise(
    selection: Selection,
    *,
    sample_names: Any = None,
    labels: Any = None,
    image_shape: tuple[int, int] | None = None,
    image_order: Literal["C", "F"] = "C",
    title: str | None = None,
    command: str | None = None,
    path: Any = None,
    notes: Sequence[str] = (),
    set_aside: Mapping[str, str] | None = None,
    loading: Sequence[str] | None = None,
    certificate: Certificate | None = None,
) -> SelectionSummary:
    """Measure what `make_report` shows; its parameters are explained there.

    ``notes`` are what was found in the table and done to it, ``loading`` is lines of Python that
    make ``table`` of a file.
    """
    selector, k, order = selection.selector, selection.k, selection.order
    n_samples = selection.n_samples if selection.X is None else selection.X.shape[0]
    tagged = None if labels is None else tuple(as_texts("labels", labels, n_samples, "sample"))
    called = None
    if sample_names is not None:
        called = tuple(as_texts("sample_names", sample_names, n_samples, "sample"))
    along = _reported_path(path, selection)
    redundancy = redundancy_of(selection.correlation[:k, :k])
    classes = None if tagged is None else classes_of(list(tagged))
    planes = weighed_planes(selection)
    first = first_paragraph(
        selection,
        certificate=certificate,
        n_near_copies=0 if redundancy is None else redundancy.n_near_copies,
        notes=notes,
    )
    return SelectionSummary(
        selection=selection,
        title=title or "Features worth keeping",
        made_on=today(),
        first=first,
        knee=_knee(selection),
        ranked=_rank(selection),
        dropped=selection.count_dropped(),
        set_aside=dict(set_aside or {}),
        trials=_trials(selection),
        method=_method(selection, image_shape, along, command, loading),
        convergence=_convergence(selector),
        agreement=_agreement(selector),
        redundancy=redundancy,
        heat=_heat(selection, classes, planes),
        planes=None if planes is None else thin_out(planes),
        classes=classes,
        labels=tagged,
        sample_names=called,
        image=_mean_image(image_shape, image_order, selection.moments.mean),
        stability=_stability(selector, order),
        path=along,
        certificate=certificate,
    )


def _rank(selection: Selection) -> RankedFeatures:
    order = selection.order
    return RankedFeatures(
        names=tuple(selection.feature_names[order].tolist()),
        columns=order,
        scores=selection.scores[order],
        variances=selection.variances[order],
        closest=closest_so_far(selection.correlation),
        histograms=histograms(selection.X, order[: max(selection.k, FEWEST_HISTOGRAMS)]),
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


def _knee(selection: Selection) -> int | None:
    """The knee of the scores that features stand by; None if an inactive one stands before it."""
    if selection.how_many == "chosen":
        return None
    ranked = selection.order[: selection.n_by_score]
    knee = knee_of(selection.scores[ranked])
    if knee is None or selection.active is None or selection.active[ranked[:knee]].all():
        return knee
    return None


def _trials(selection: Selection) -> Trials | None:
    """What was tried for settings that were chosen."""
    choice = getattr(selection.selector, "choice_", None)
    rows = selection.trials or (() if choice is None else choice.rows())
    if not rows:
        return None
    measured = ("fidelity", "clumpiness", "score")
    beside = (*measured, "gamma", "n_active", "n_active_kept")
    shown = rows[:MOST_TRIALS]
    texts = {n: [_short(row[n]) for row in shown] for n in rows[0] if n not in beside}
    told = []
    for at, row in enumerate(shown):
        settings = [f"{n}={words[at]}" for n, words in texts.items() if len(set(words)) > 1]
        fidelity, clumpiness, score = (f"{row[name]:.3f}" for name in measured)
        told.append((", ".join(settings), fidelity, clumpiness, score))
    same = [f"{n}={words[0]}" for n, words in texts.items() if len(set(words)) == 1]
    return Trials(tuple(told), ", ".join(same), len(rows))


def _short(value: Any) -> str:
    return significant(value, 3) if isinstance(value, float) else readable(value)


def weighed_planes(selection: Selection) -> Planes | None:
    """Both planes of the values as the method weighs columns."""
    X, moments, kept = selection.X, selection.moments, selection.order[: selection.k]
    if X is not None and selection.column_power:
        X = scale_columns(X, selection.column_factors)
        moments = moments.scaled(selection.column_factors)
    return None if X is None else planes_of(X, moments, kept)


def _heat(selection: Selection, classes: Classes | None, planes: Planes | None) -> HeatMap | None:
    colour_of = None if classes is None else classes.colour_of
    along = None if planes is None else planes.after.points[:, 0]
    return heat_map(selection.X, selection.order[: selection.k], colour_of, along)


def redundancy_of(correlation: FloatArray) -> Redundancy | None:
    """Describe the correlations of the kept features, given best first; None if only one varies."""
    varies = np.flatnonzero(~np.isnan(correlation.diagonal()))
    if len(varies) < 2:
        return None
    among = correlation[np.ix_(varies, varies)]
    rows, columns = np.triu_indices(len(varies), 1)
    pairs = np.abs(among[rows, columns])
    top = np.argsort(-np.round(pairs, 12), kind="stable")[:MOST_PAIRS]
    strongest = np.abs(among - np.diag(among.diagonal())).max(axis=1)
    shown = varies[:MOST_IN_THE_MAP]
    shown = shown[_side_by_side(correlation[np.ix_(shown, shown)])]
    return Redundancy(
        n_compared=len(varies),
        median=float(np.median(pairs)),
        n_near_copies=int(np.sum(strongest > NEAR_COPY)),
        pairs=tuple(
            (int(varies[i]), int(varies[j]), float(among[i, j]))
            for i, j in zip(rows[top], columns[top], strict=True)
        ),
        shown=shown,
        correlation=correlation[np.ix_(shown, shown)],
    )


def _side_by_side(correlation: FloatArray) -> IndexArray:
    """Order of the leaves of average linkage on 1 - |r|."""
    distance = 1.0 - np.abs(correlation)
    distance = np.maximum((distance + distance.T) / 2, 0.0)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(distance, checks=False)
    return leaves_list(linkage(condensed, "average", optimal_ordering=True)).astype(np.intp)


def _method(
    selection: Selection,
    image_shape: tuple[int, int] | None,
    along: ReportedPath | None,
    command: str | None,
    loading: Sequence[str] | None,
) -> Provenance:
    selector = selection.selector
    settings = [
        (name, readable(value), readable(value) == readable(default))
        for name, value, default in settings_of(selector)
    ]
    extras = [] if image_shape is None else [f"image_shape={readable(tuple(image_shape))}"]
    if along is not None:
        of_path = f"n_components={along.path.n_components}"
        of_path += "" if along.path.p == 1.0 else f", p={along.path.p}"
        extras.append(f"path=keepers.spcafs_path(X, {of_path})")
    found = [
        (words, _value_text(getattr(selector, name)))
        for name, words in _FOUND.items()
        if hasattr(selector, name)
    ]
    if selection.n_active is not None:
        found.append(("active rows", str(selection.n_active)))
    return Provenance(
        parameters=tuple((name, value) for name, value, usual in settings if not usual),
        defaults=tuple((name, value) for name, value, usual in settings if usual),
        found=tuple(found),
        python=python_recipe(selection, extras, loading),
        command=command,
    )


def _value_text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return significant(float(value), 6)
    return str(value)


def _convergence(selector: Any) -> Convergence | None:
    objective = np.asarray(getattr(selector, "objective_", ()), dtype=np.float64)
    if objective.ndim != 1 or len(objective) < FEWEST_STEPS or not np.all(np.isfinite(objective)):
        return None
    if objective[0] == objective[-1]:
        return None
    converged = getattr(selector, "converged_", None)
    return Convergence(objective, None if converged is None else bool(converged))


def _agreement(selector: Any) -> NeighbourAgreement | None:
    """What `AutoSelector` measured to choose the number; None for others, and for one point."""
    counts = getattr(selector, "counts_", ())
    if len(counts) < 2 or not isinstance(selector, AutoSelector):
        return None
    return NeighbourAgreement(
        counts=selector.counts_,
        agreement=selector.agreement_,
        n_enough=selector.n_enough_,
        enough=float(selector.agreement_[list(counts).index(selector.n_enough_)]),
        n_drawn=selector.n_features_to_select_,
        drawn=selector.random_agreement_,
    )


def _mean_image(
    shape: tuple[int, int] | None, order: Literal["C", "F"], mean: FloatArray
) -> MeanImage | None:
    if shape is None:
        return None
    if order not in ("C", "F"):
        raise ParameterError(f"image_order must be 'C' (row by row) or 'F'; got {shorten(order)}.")
    height, width = (int(side) for side in shape)
    if height < 1 or width < 1 or height * width != len(mean):
        raise ParameterError(
            f"image_shape must be (rows, columns) with one pixel per feature, {len(mean)} in all; "
            f"got {shorten(tuple(shape))}. Leave it out if the features are not pixels."
        )
    spread = float(np.ptp(mean)) or 1.0
    grey = np.rint(255 * (mean - mean.min()) / spread).astype(np.intp)
    pixels = np.arange(height * width).reshape(height, width)
    return MeanImage(height, width, grey, pixels.ravel(order=order))


def _stability(selector: Any, order: IndexArray) -> SelectionStability | None:
    """Frequencies, index and bound of a fitted `StabilitySelector`; None for other selectors."""
    if not isinstance(selector, StabilitySelector):
        return None
    n_halves = len(selector.selections_)
    return SelectionStability(
        n_halves=n_halves,
        base=type(selector.selector_).__name__,
        intervals=selector.frequency_intervals_[order],
        by_count=wilson_intervals(np.arange(n_halves + 1), n_halves),
        n_stable=int(selector.stable_.sum()),
        index=selector.stability_,
        bound=selector.expected_false_selections_,
    )


def _reported_path(path: Any, selection: Selection) -> ReportedPath | None:
    """The path with what the report needs beside it; refused if it is of another table."""
    if path is None:
        return None
    if not isinstance(path, SPCAFSPath):
        raise DataError(
            f"path must be what keepers.spcafs_path(X) returns, or None; got {type(path).__name__}."
        )
    names = selection.feature_names
    if path.scores.shape[1] != len(names):
        raise DataError(
            f"path must be of the same table as the selection, with {len(names)} features; got one "
            f"with {path.scores.shape[1]}. Call keepers.spcafs_path with the X of the report."
        )
    selector = selection.selector
    gamma = getattr(selector, "gamma_", None)
    settings = (getattr(selector, "n_components_", None), getattr(selector, "p", None))
    on_path = settings == (path.n_components, path.p) and gamma is not None
    if not on_path or not path.gammas[0] <= gamma <= path.gammas[-1]:
        gamma = None
    named = path.entry[:MOST_ON_THE_PATH]
    return ReportedPath(path, named, tuple(names[named].tolist()), gamma)


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
    cls = type(selector)
    home = "keepers" if cls.__module__.startswith("keepers.") else cls.__module__
    settings = [
        f"{name}={readable(value)}"
        for name, value, default in settings_of(selector)
        if readable(value) != readable(default)
    ]
    return f"{home}.{cls.__name__}({', '.join(settings)})"


def python_recipe(
    selection: Selection, extras: Iterable[str], loading: Sequence[str] | None = None
) -> str:
    """Lines of Python that repeat the selection, with the settings that are not the defaults."""
    source, cls = selection.source, type(selection.selector)
    home = "keepers" if cls.__module__.startswith("keepers.") else cls.__module__
    lines = ["import keepers"] if home == "keepers" else ["import keepers", f"import {home}"]
    table, arguments = "X", list(extras)
    if loading is not None:
        table = "table"
        lines += ["", *loading]
        arguments = ["labels=table.labels", *arguments]
    elif source in BUNDLED:
        lines += ["", f"X, names, labels = keepers.datasets.load({source!r})"]
        arguments = ["feature_names=names", "labels=labels", *arguments]
    else:
        origin = f" of {display_name(source)}" if source else ""
        shape = f"{selection.n_samples} samples x {selection.n_features} features{origin}"
        lines += ["", f"X = ...  # the table of the fit: {shape}"]
    lines += [
        f"selector = {_constructor_call(selection.selector)}.fit({table})",
        f"print(selector.top({selection.k}).names)",
        f"report = keepers.report({', '.join(['selector', table, *arguments])})",
        "report.save('report.html')",
    ]
    return "\n".join(lines)


def today() -> date:
    """The date, or that of SOURCE_DATE_EPOCH, where a report has to be the same every day."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.fromtimestamp(int(epoch), tz=UTC).date()
    return datetime.now().astimezone().date()


def settings_of(selector: Any) -> list[tuple[str, Any, Any]]:
    """Name, value and default of every parameter, in the order of the constructor."""
    given = selector.get_params(deep=False)
    accepted = signature(type(selector)).parameters
    return [(name, given[name], accepted[name].default) for name in accepted if name in given]


def planes_of(X: Any, moments: ColumnMoments, kept: IndexArray) -> Planes | None:
    """Both planes; None if no plane exists."""
    n_samples = X.shape[0]
    if n_samples < 3 or not np.any(moments.sum_of_squares[kept] > 0):
        return None
    before = plane_of(X, moments)
    chosen = X[:, kept]
    after = _turn_towards(before, plane_of(chosen, moments.subset(kept)))
    return Planes(before, after, np.arange(n_samples), n_samples)


def thin_out(planes: Planes) -> Planes:
    """The planes with at most 2000 samples, chosen by a fixed seed."""
    if planes.n_samples <= MOST_POINTS:
        return planes
    rng = np.random.default_rng(0)
    samples = np.sort(rng.choice(planes.n_samples, MOST_POINTS, replace=False))
    return Planes(
        Plane(planes.before.points[samples], planes.before.shares),
        Plane(planes.after.points[samples], planes.after.shares),
        samples,
        planes.n_samples,
    )


def plane_of(X: Any, moments: ColumnMoments | None = None) -> Plane:
    """The first two principal components of X; the second is 0 where X has only one."""
    moments = column_moments(X) if moments is None else moments
    n_samples, n_features = X.shape
    width = min(2, n_samples - 1, n_features)
    values, vectors = _leading(as_scatter(X, moments, width), width, min(X.shape))
    largest_first = np.argsort(-values, kind="stable")
    axes = _fix_signs(vectors[:, largest_first])
    points = np.zeros((n_samples, 2))
    for rows in row_blocks(n_samples, n_features):
        points[rows, :width] = _project(X[rows], moments.mean, axes)
    total = float(moments.sum_of_squares.sum())
    shares = np.zeros(2)
    shares[:width] = np.einsum("ij,ij->j", points, points)[:width] / total
    return Plane(points, (float(shares[0]), float(shares[1])))


def _leading(
    scatter: SymmetricOperator, width: int, smaller_side: int
) -> tuple[FloatArray, FloatArray]:
    """Leading eigenpairs: exact for a small table, by Lanczos to drawing accuracy for a large one.

    The selectors want the whole leading subspace and decompose up to 3000 x 3000 for it, which
    takes a quarter of a minute; a picture wants two axes, and some 70 products find them.
    """
    rng = np.random.default_rng(0)
    if smaller_side > LARGEST_EXACT:
        operator = LinearOperator(
            (scatter.size, scatter.size),
            matvec=lambda vector: scatter.matmat(vector.reshape(-1, 1)).ravel(),
            dtype=np.float64,
        )
        try:
            start = rng.standard_normal(scatter.size)
            values, vectors = eigsh(operator, k=width, v0=start, tol=DRAWING_ACCURACY)
            return values, vectors
        except ArpackNoConvergence:
            pass  # a spectrum without gaps; the block method below always ends
    subspace = principal_subspace(scatter, width, rng)
    return subspace.values, subspace.vectors


def _project(block: Any, mean: FloatArray, axes: FloatArray) -> FloatArray:
    if sp.issparse(block):
        return block @ axes - mean @ axes
    return (block - mean) @ axes


def _fix_signs(axes: FloatArray) -> FloatArray:
    """The largest entry of every axis positive: eigenvectors have no sign of their own."""
    largest = axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])]
    return axes * np.where(largest < 0, -1.0, 1.0)


def _turn_towards(before: Plane, after: Plane) -> Plane:
    """Turn the second plane so that samples stay on the side where they were in the first."""
    agreement = np.einsum("ij,ij->j", before.points, after.points)
    return Plane(after.points * np.where(agreement < 0, -1.0, 1.0), after.shares)


def classes_of(labels: list[str]) -> Classes:
    """At most ten colours: past ten classes the nine largest keep theirs, the rest share one."""
    words, index, counts = np.unique(
        np.array(labels, dtype=object), return_inverse=True, return_counts=True
    )
    by_size = np.argsort(-counts, kind="stable")
    n_own = len(words) if len(words) <= MOST_COLOURS else MOST_COLOURS - 1
    own = sorted(by_size[:n_own], key=lambda j: _reading_order(str(words[j])))
    n_sharing = len(words) - n_own
    place = np.full(len(words), n_own, dtype=np.intp)
    place[own] = np.arange(n_own)
    legend = tuple(str(words[j]) for j in own)
    sizes = tuple(int(counts[j]) for j in own)
    if n_sharing:
        legend += (f"{n_sharing} other classes",)
        sizes += (int(counts.sum()) - sum(sizes),)
    return Classes(legend, sizes, n_sharing, place[index])


def _reading_order(label: str) -> tuple[bool, float, str]:
    """Numbers first and by value, so that class 10 does not stand before class 2."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
