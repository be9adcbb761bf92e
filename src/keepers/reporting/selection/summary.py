"""What a fitted selector found, as plain numbers and strings: the data of the report."""

import platform
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataError, ParameterError, shortened
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.reporting.selection.matrix import as_matrix, as_texts, names_of
from keepers.reporting.selection.path import ReportedPath, reported_path
from keepers.reporting.selection.plane import Classes, Planes, classes_of, planes_of
from keepers.reporting.selection.redundancy import (
    Redundancy,
    correlation_matrix,
    nearest_of,
    redundancy_of,
)
from keepers.reporting.selection.stability import SelectionStability, stability_of
from keepers.reporting.selection.wording import (
    python_recipe,
    readable,
    settings_of,
    significant,
)
from keepers.tuning.structure import knee_of

__all__ = [
    "Convergence",
    "MeanImage",
    "Method",
    "RankedFeatures",
    "SelectionSummary",
    "knee_of",
    "summarise",
]

NEIGHBOUR_DEPTH = 200
# Fitted quantities worth a line, with the words for them.
_FOUND = {
    "n_components_": "components used",
    "gamma_": "penalty weight used",
    "alpha_": "alpha used",
    "n_clusters_": "clusters used",
    "n_iter_": "steps",
    "converged_": "settled",
    "n_active_": "features with an active row",
    "solver_": "solver used",
}


@dataclass(frozen=True)
class RankedFeatures:
    """Every feature, best first."""

    names: tuple[str, ...]
    columns: IndexArray
    """Where they stand in X."""
    scores: FloatArray
    variances: FloatArray
    """Population variances (divided by n)."""
    neighbour: IndexArray
    """For the first 200: position of the most correlated other one among them; -1 for none."""
    neighbour_r: FloatArray


@dataclass(frozen=True)
class Method:
    """How the ranking was made, and how to make it again."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    found: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    python: str
    command: str | None
    seconds: float | None


@dataclass(frozen=True)
class Convergence:
    """The objective after every step."""

    objective: FloatArray
    settled: bool | None


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
class SelectionSummary:
    """Everything that the page shows."""

    title: str
    source: str | None
    n_samples: int
    n_features: int
    k: int
    share: float
    """Variance of the kept features over that of all."""
    knee: int | None
    ranked: RankedFeatures
    method: Method
    convergence: Convergence | None
    redundancy: Redundancy | None
    planes: Planes | None
    classes: Classes | None
    labels: tuple[str, ...] | None
    sample_names: tuple[str, ...] | None
    image: MeanImage | None
    stability: SelectionStability | None = None
    path: ReportedPath | None = None


def summarise(
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
) -> SelectionSummary:
    """Measure what `make_report` shows; its parameters are explained there."""
    check_is_fitted(selector)
    matrix = as_matrix(X)
    n_samples, n_features = matrix.shape
    if n_features != len(selector.scores_):
        raise DataError(
            f"X must have the {len(selector.scores_)} columns that the selector was fitted on; got "
            f"{n_features}. Give the report the table of the fit."
        )
    names = names_of(feature_names, selector, X, n_features)
    tagged = None if labels is None else tuple(as_texts("labels", labels, n_samples, "sample"))
    called = None
    if sample_names is not None:
        called = tuple(as_texts("sample_names", sample_names, n_samples, "sample"))
    moments = column_moments(matrix)
    n_kept = len(selector.top(k))
    order = np.argsort(selector.ranking_)  # all of them: `top` refuses features never to be kept
    correlation = correlation_matrix(matrix, order[:NEIGHBOUR_DEPTH])
    ranked = _ranked(names, order, selector.scores_, moments, correlation)
    along = reported_path(path, selector, names)
    extras = [] if image_shape is None else [f"image_shape={readable(tuple(image_shape))}"]
    if along is not None:
        extras.append(f"path=keepers.spcafs_path(X, {_path_settings(along)})")
    return SelectionSummary(
        title=title or "Features worth keeping",
        source=source,
        n_samples=n_samples,
        n_features=n_features,
        k=n_kept,
        share=_share(ranked.variances, n_kept),
        knee=knee_of(ranked.scores[ranked.variances > 0]),
        ranked=ranked,
        method=_method(
            selector,
            python_recipe(selector, matrix.shape, n_kept, source, extras),
            command,
            seconds,
        ),
        convergence=_convergence(selector),
        redundancy=redundancy_of(correlation[:n_kept, :n_kept]),
        planes=planes_of(matrix, moments, order[:n_kept]),
        classes=None if tagged is None else classes_of(list(tagged)),
        labels=tagged,
        sample_names=called,
        image=_mean_image(image_shape, image_order, moments.mean),
        stability=stability_of(selector, order),
        path=along,
    )


def _path_settings(along: ReportedPath) -> str:
    components = f"n_components={along.path.n_components}"
    return components if along.path.p == 1.0 else f"{components}, p={along.path.p}"


def _share(variances: FloatArray, k: int) -> float:
    total = float(variances.sum())
    return float(variances[:k].sum()) / total if total > 0 else 0.0


def _ranked(
    names: list[str],
    order: IndexArray,
    scores: FloatArray,
    moments: ColumnMoments,
    correlation: FloatArray,
) -> RankedFeatures:
    neighbour, neighbour_r = nearest_of(correlation)
    return RankedFeatures(
        names=tuple(names[column] for column in order),
        columns=order,
        scores=np.asarray(scores, dtype=np.float64)[order],
        variances=np.where(moments.constant, 0.0, moments.variance)[order],
        neighbour=neighbour,
        neighbour_r=neighbour_r,
    )


def _method(selector: Any, python: str, command: str | None, seconds: float | None) -> Method:
    from keepers import __version__  # the package imports its rooms, so not at the top

    found = [
        (words, _found(getattr(selector, name)))
        for name, words in _FOUND.items()
        if hasattr(selector, name)
    ]
    versions = (
        ("keepers", __version__),
        ("numpy", np.__version__),
        ("scipy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
        ("python", platform.python_version()),
    )
    return Method(
        name=type(selector).__name__,
        parameters=tuple((name, readable(value)) for name, value, _ in settings_of(selector)),
        found=tuple(found),
        versions=versions,
        python=python,
        command=command,
        seconds=seconds,
    )


def _found(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return significant(float(value), 6)
    return str(value)


def _convergence(selector: Any) -> Convergence | None:
    objective = np.asarray(getattr(selector, "objective_", ()), dtype=np.float64)
    if objective.ndim != 1 or len(objective) < 2 or not np.all(np.isfinite(objective)):
        return None
    settled = getattr(selector, "converged_", None)
    return Convergence(objective, None if settled is None else bool(settled))


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
