"""What the report shows beside the selection itself, as plain numbers and strings."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataError, ParameterError, shortened
from keepers.reporting.report_text import python_recipe, readable, settings_of, significant
from keepers.reporting.sample_planes import Classes, Planes, classes_of, planes_of
from keepers.selection import DroppedFeature, Selection, as_texts
from keepers.tuning.false_selections import FalseSelections
from keepers.tuning.gamma_path import SPCAFSPath
from keepers.tuning.stability import StabilitySelector, wilson_intervals
from keepers.tuning.stability_index import Stability
from keepers.tuning.structure import knee_of

NEAR_COPY = 0.9
MOST_IN_THE_MAP = 60
MOST_ON_THE_PATH = 8
MOST_SIMILAR_LISTED = 100
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
    neighbour: IndexArray
    """For the first of them: rank - 1 of the most correlated other kept feature; -1 for none."""
    neighbour_r: FloatArray


@dataclass(frozen=True)
class Redundancy:
    """How much the kept features repeat each other; positions are ranks - 1."""

    n_compared: int
    """Kept features that were compared with each other."""
    median: float
    """Median |r| over their pairs."""
    closest: tuple[int, int]
    closest_r: float
    n_near_copies: int
    """Those with |r| > 0.9 to another."""
    shown: IndexArray
    """Those in the map, similar ones side by side."""
    correlation: FloatArray
    """Their correlations, in that order."""


@dataclass(frozen=True)
class Method:
    """How the ranking was made, and how to make it again."""

    parameters: tuple[tuple[str, str], ...]
    found: tuple[tuple[str, str], ...]
    python: str
    command: str | None


@dataclass(frozen=True)
class Convergence:
    """The objective after every step."""

    objective: FloatArray
    converged: bool | None


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
class SelectionSummary:
    """Everything that the report shows."""

    selection: Selection
    title: str
    knee: int | None
    ranked: RankedFeatures
    dropped: dict[str, int]
    """How many features were dropped, by reason."""
    similar: tuple[DroppedFeature, ...]
    """The best of those dropped because they are too much like a kept one."""
    method: Method
    convergence: Convergence | None
    redundancy: Redundancy | None
    planes: Planes | None
    classes: Classes | None
    labels: tuple[str, ...] | None
    sample_names: tuple[str, ...] | None
    image: MeanImage | None
    stability: SelectionStability | None
    path: ReportedPath | None


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
) -> SelectionSummary:
    """Measure what `make_report` shows; its parameters are explained there."""
    selector, k, order = selection.selector, selection.k, selection.order
    n_samples = selection.n_samples
    tagged = None if labels is None else tuple(as_texts("labels", labels, n_samples, "sample"))
    called = None
    if sample_names is not None:
        called = tuple(as_texts("sample_names", sample_names, n_samples, "sample"))
    ranked = _rank(selection)
    along = _reported_path(path, selection)
    similar = [feature for feature in selection.dropped if feature.reason == "max_correlation"]
    return SelectionSummary(
        selection=selection,
        title=title or "Features worth keeping",
        knee=knee_of(ranked.scores[ranked.variances > 0]),
        ranked=ranked,
        dropped=selection.count_dropped(),
        similar=tuple(similar[:MOST_SIMILAR_LISTED]),
        method=_method(selection, image_shape, along, command),
        convergence=_convergence(selector),
        redundancy=redundancy_of(selection.correlation[:k, :k]),
        planes=planes_of(selection.X, selection.moments, order[:k]),
        classes=None if tagged is None else classes_of(list(tagged)),
        labels=tagged,
        sample_names=called,
        image=_mean_image(image_shape, image_order, selection.moments.mean),
        stability=_stability(selector, order),
        path=along,
    )


def _rank(selection: Selection) -> RankedFeatures:
    order = selection.order
    neighbour, neighbour_r = selection.nearest
    return RankedFeatures(
        names=tuple(selection.feature_names[order].tolist()),
        columns=order,
        scores=selection.scores[order],
        variances=selection.variances[order],
        neighbour=neighbour,
        neighbour_r=neighbour_r,
    )


def redundancy_of(correlation: FloatArray) -> Redundancy | None:
    """Describe the correlations of the kept features, given best first; None if only one varies."""
    varies = np.flatnonzero(~np.isnan(correlation.diagonal()))
    if len(varies) < 2:
        return None
    among = correlation[np.ix_(varies, varies)]
    rows, columns = np.triu_indices(len(varies), 1)
    pairs = np.abs(among[rows, columns])
    top = int(np.argmax(np.round(pairs, 12)))
    strongest = np.abs(among - np.diag(among.diagonal())).max(axis=1)
    shown = varies[:MOST_IN_THE_MAP]
    shown = shown[_side_by_side(correlation[np.ix_(shown, shown)])]
    return Redundancy(
        n_compared=len(varies),
        median=float(np.median(pairs)),
        closest=(int(varies[rows[top]]), int(varies[columns[top]])),
        closest_r=float(among[rows[top], columns[top]]),
        n_near_copies=int(np.sum(strongest > NEAR_COPY)),
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
) -> Method:
    selector = selection.selector
    extras = [] if image_shape is None else [f"image_shape={readable(tuple(image_shape))}"]
    if along is not None:
        settings = f"n_components={along.path.n_components}"
        settings += "" if along.path.p == 1.0 else f", p={along.path.p}"
        extras.append(f"path=keepers.spcafs_path(X, {settings})")
    found = [
        (words, _value_text(getattr(selector, name)))
        for name, words in _FOUND.items()
        if hasattr(selector, name)
    ]
    if selection.n_active is not None:
        found.append(("active rows", str(selection.n_active)))
    return Method(
        parameters=tuple((name, readable(value)) for name, value, _ in settings_of(selector)),
        found=tuple(found),
        python=python_recipe(selection, extras),
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
    if objective.ndim != 1 or len(objective) < 2 or not np.all(np.isfinite(objective)):
        return None
    converged = getattr(selector, "converged_", None)
    return Convergence(objective, None if converged is None else bool(converged))


def _mean_image(
    shape: tuple[int, int] | None, order: Literal["C", "F"], mean: FloatArray
) -> MeanImage | None:
    if shape is None:
        return None
    if order not in ("C", "F"):
        raise ParameterError(
            f"image_order must be 'C' (row by row) or 'F'; got {shortened(order)}."
        )
    height, width = (int(side) for side in shape)
    if height < 1 or width < 1 or height * width != len(mean):
        raise ParameterError(
            f"image_shape must be (rows, columns) with one pixel per feature, {len(mean)} in all; "
            f"got {shortened(tuple(shape))}. Leave it out if the features are not pixels."
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
