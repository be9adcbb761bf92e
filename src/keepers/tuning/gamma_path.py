"""The regularisation path of SPCAFS: what happens between PCA and m features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray, IndexArray
from keepers._tables import AsTable
from keepers.exceptions import ParameterError, shorten
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import leading_spectrum
from keepers.selectors.fitted_table import read_table, refuse_dask
from keepers.selectors.parameters import (
    check_callback,
    check_component_count,
    check_count,
    is_whole,
)
from keepers.selectors.spcafs import SPCAFS
from keepers.solvers.penalty import RowPenalty
from keepers.solvers.spcafs_path import PathPoint, find_path, follow_path

POINT_TOL = 1e-4
POINT_STEPS = 60
MOST_LINES = 200
LONGEST_NAME = 24
# Ten hues that part on white and on near-black.
COLOURS = (
    "#3b82c4", "#e8853a", "#3fa66b", "#d4524e", "#8d6cc3",
    "#b08a3e", "#d873b0", "#2aa5b0", "#8fae2e", "#6b7280",
)  # fmt: skip
GREY, ACTIVE, HELD = "#c9cdd3", "#1f6f8b", "#b4531a"


@dataclass(frozen=True)
class SPCAFSPath(AsTable):
    """SPCAFS along gamma, weakest penalty first."""

    gammas: FloatArray
    """Penalty weights, on the scale of the scatter."""
    scores: FloatArray
    """Row norms, points x features."""
    n_active: IndexArray
    """Rows of W that are not zero, at every point."""
    objective: FloatArray
    """What is minimised, at every point."""
    explained_variance: FloatArray
    """Share of the total variance that the components hold, at every point."""
    entry: IndexArray
    """Features in the order in which they would enter if gamma fell: those that stay active
    longest come first; among equals the larger score where they were last active."""
    n_components: int
    """Columns of W."""
    p: float
    """Exponent of the penalty."""
    largest_eigenvalue: float
    """Of the scatter: the scale that gamma="scale" is relative to."""
    n_iter: IndexArray
    """Eigenproblems solved, at every point."""
    converged: np.ndarray
    """Whether that was enough, at every point."""
    feature_names: np.ndarray
    """Names of the features; x0, x1, ... where the table has none."""

    def __len__(self) -> int:
        return len(self.gammas)

    def __repr__(self) -> str:
        low, high = (
            self.gammas[0] / self.largest_eigenvalue,
            self.gammas[-1] / self.largest_eigenvalue,
        )
        return (
            f"<SPCAFSPath: {len(self)} points, gamma from {low:.3g} to {high:.3g} of the largest "
            f"eigenvalue, {self.n_active[0]} to {self.n_active[-1]} active rows of "
            f"{self.scores.shape[1]}; .plot() draws it>"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The points, weakest penalty first, a dict each.

        Returns
        -------
        list of dict
            ``gamma``, ``gamma_share`` (of the largest eigenvalue), ``n_active``, ``objective``,
            ``explained_variance``, ``n_iter`` and ``converged``.
        """
        return [
            {
                "gamma": float(self.gammas[at]),
                "gamma_share": float(self.gammas[at] / self.largest_eigenvalue),
                "n_active": int(self.n_active[at]),
                "objective": float(self.objective[at]),
                "explained_variance": float(self.explained_variance[at]),
                "n_iter": int(self.n_iter[at]),
                "converged": bool(self.converged[at]),
            }
            for at in range(len(self))
        ]

    def _caption(self) -> str:
        return repr(self).strip("<>")

    def plot(self, axes: Any = None, n_named: int = 8, feature_names: Any = None) -> Any:
        """Draw scores, active rows and explained variance along gamma.

        Parameters
        ----------
        axes : pair of matplotlib axes or None, default=None
            Where to draw; None makes a new figure.
        n_named : int, default=8
            How many of the first to enter are named.
        feature_names : sequence of str or None, default=None
            Names of all features; None takes those of the data frame, or x0, x1, ...

        Returns
        -------
        pair of matplotlib axes
            The upper one with the scores, the lower one with rows and variance.
        """
        return draw_path(self, axes, n_named, feature_names)


def spcafs_path(
    X: Any,
    *,
    n_components: Any = "auto",
    p: float = 1.0,
    n_gammas: int = 20,
    gammas: Any = None,
    eps: float = 1e-12,
    max_iter: int = POINT_STEPS,
    tol: float = POINT_TOL,
    random_state: Any = None,
    callback: Callable[[int, int], object] | None = None,
) -> SPCAFSPath:
    """Solve SPCAFS along gamma, from where PCA is recovered to where n_components rows remain.

    The points share one operator, and each starts from the solution before it.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    n_components : "auto", int or float in (0, 1), default="auto"
        As in `SPCAFS`.
    p : float in (0, 1], default=1.0
        Exponent of the penalty.
    n_gammas : int, default=20
        Number of points: evenly spaced on the scale of log(gamma) up to where n_components rows
        remain; if that is reached early, the points left over go where most rows vanish.
    gammas : sequence of float or None, default=None
        The points themselves, on the scale of S as in `SPCAFS`; None finds the range from X.
    eps : float, default=1e-12
        Smoothing of the penalty at zero.
    max_iter : int, default=60
        Steps at most, for each point; ``converged`` says where they were not enough.
    tol : float, default=1e-4
        A point is left when a step lowers the objective by less than this, relatively: looser than
        a single fit, since it is the shape of the path that matters here. Refit with `SPCAFS` at
        the gamma you choose.
    random_state : int, RandomState or None, default=None
        As in `SPCAFS`.
    callback : callable or None, default=None
        Called after each point with the number done and the number of all.

    Returns
    -------
    SPCAFSPath
        ``gammas``, ``scores``, ``n_active``, ``objective``, ``explained_variance``, ``entry``; its
        ``plot()`` draws them.

    Examples
    --------
    >>> from keepers import datasets, spcafs_path
    >>> X, names, y = datasets.load("srbct")
    >>> path = spcafs_path(X, n_components=3)
    >>> path.scores.shape
    (20, 2308)
    >>> int(path.n_active[0]) > int(path.n_active[-1])
    True
    """
    selector = SPCAFS(
        n_components=n_components,
        p=p,
        eps=eps,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
    )
    selector.check_parameters()
    check_callback(callback)
    if gammas is None:
        check_count("n_gammas", n_gammas, at_least=2)
    else:
        gammas = _check_gammas(gammas)
    refuse_dask(X, "The path", "it solves many problems on a table in memory.")
    table = read_table(selector, X)
    rng = selector.random_generator()
    scatter = as_scatter(table.X, table.moments, n_components if is_whole(n_components) else 10)
    check_component_count(n_components, table.n_samples, len(table.usable))
    pca = leading_spectrum(
        scatter,
        n_components,
        n_samples=table.n_samples,
        sum_of_squares=table.moments.sum_of_squares,
        rng=rng,
    ).subspace
    penalty = RowPenalty(1.0, float(p), float(eps))
    if gammas is None:
        found = find_path(scatter, pca, penalty, int(n_gammas), max_iter=max_iter, tol=tol)
    else:
        found = follow_path(scatter, pca, penalty, gammas, max_iter=max_iter, tol=tol)
    n_points = int(n_gammas) if gammas is None else len(gammas)
    points = []
    for point in found:
        points.append(point)
        if callback is not None:
            callback(len(points), n_points)
    points.sort(key=lambda point: point.gamma)
    return _assemble(points, selector, table, pca.values, float(p), eps)


def _check_gammas(gammas: Any) -> FloatArray:
    try:
        along = np.sort(np.atleast_1d(np.asarray(gammas, dtype=np.float64)))
    except (TypeError, ValueError):
        along = np.empty(0)
    if along.ndim != 1 or not len(along) or not np.all(np.isfinite(along)) or along[0] <= 0:
        raise ParameterError(
            f"gammas must be finite numbers > 0; got {shorten(gammas)}. None finds them from X."
        )
    return along


def _assemble(
    points: list[PathPoint],
    selector: SPCAFS,
    table: Any,
    eigenvalues: FloatArray,
    p: float,
    eps: float,
) -> SPCAFSPath:
    scores = table.to_all_columns(np.array([point.row_norms for point in points]))
    names = getattr(selector, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{i}" for i in range(scores.shape[1])], dtype=object)
    return SPCAFSPath(
        gammas=np.array([point.gamma for point in points]),
        scores=scores,
        n_active=np.array([point.n_active for point in points]),
        objective=np.array([point.objective for point in points]),
        explained_variance=np.array([point.trace for point in points])
        / float(table.moments.sum_of_squares.sum()),
        entry=_entry_order(scores, eps),
        n_components=len(eigenvalues),
        p=p,
        largest_eigenvalue=float(eigenvalues[0]),
        n_iter=np.array([point.n_iter for point in points]),
        converged=np.array([point.converged for point in points]),
        feature_names=names,
    )


def _entry_order(scores: FloatArray, eps: float) -> IndexArray:
    """Features by the last point at which they are active, then by their score there."""
    active = scores**2 > 4.0 * eps
    last = np.where(active.any(axis=0), len(scores) - 1 - np.argmax(active[::-1], axis=0), -1)
    there = scores[np.maximum(last, 0), np.arange(scores.shape[1])]
    return np.lexsort((np.arange(scores.shape[1]), -levels(there), -last))


def draw_path(path: SPCAFSPath, axes: Any, n_named: int, feature_names: Any = None) -> Any:
    """Scores above, active rows and explained variance below; the first to enter are named."""
    names = path.feature_names if feature_names is None else feature_names
    if len(names) != path.scores.shape[1]:
        raise ParameterError(
            f"feature_names must have one entry per feature, {path.scores.shape[1]} in all; got "
            f"{len(names)}. None takes those of the data frame."
        )
    upper, lower = _new_axes() if axes is None else _pair(axes)
    named = path.entry[:n_named]
    lines = draw_scores(path, upper, named, COLOURS, GREY)
    if lines:
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02)}
        legend = upper.legend(
            lines,
            [_shorten(str(names[feature])) for feature in named],
            title="first to enter",
            fontsize=8.5,
            title_fontsize=8.5,
            frameon=axes is not None,
            **(outside if axes is None else {"loc": "best"}),
        )
        legend.set_zorder(3)
        for text in legend.get_texts():
            text.set_parse_math(False)
    upper.set_title("SPCAFS from PCA to sparse", loc="left", fontsize=11)
    upper.tick_params(labelbottom=False)
    draw_counts(path, lower, (ACTIVE, HELD))
    return upper, lower


def draw_scores(
    path: SPCAFSPath, axes: Any, named: IndexArray, colours: Sequence[str], grey: str
) -> list[Any]:
    """A line for each feature that matters somewhere; returns the lines of the named ones."""
    share = path.gammas / path.largest_eigenvalue
    others = np.setdiff1d(_worth_a_line(path), named)
    axes.plot(share, path.scores[:, others], color=grey, linewidth=0.7, zorder=1)
    lines = [
        axes.plot(share, path.scores[:, feature], color=colours[i % len(colours)], linewidth=1.6)[0]
        for i, feature in enumerate(named)
    ]
    axes.set(xscale="log", ylabel="score (row norm)", xlim=_span(share))
    axes.set_ylim(0.0, 1.04 * max(float(path.scores.max()), 1e-12))
    plain_decades(axes.xaxis)
    _spare(axes)
    return lines


def draw_counts(path: SPCAFSPath, axes: Any, colours: tuple[str, str]) -> Any:
    """Active rows on the left, variance on the right; returns the axes of the right side."""
    share = path.gammas / path.largest_eigenvalue
    axes.plot(share, path.n_active, color=colours[0], marker="o", markersize=3.5, linewidth=1.3)
    axes.set(xscale="log", yscale="log", xlabel="penalty weight gamma / largest eigenvalue")
    axes.set_ylim(min(0.8 * path.n_active.min(), path.n_components), 1.25 * path.n_active.max())
    axes.set_ylabel("active features", color=colours[0])
    axes.set_xlim(_span(share))
    for axis in (axes.xaxis, axes.yaxis):
        plain_decades(axis)
    right = axes.twinx()
    right.plot(
        share,
        100 * path.explained_variance,
        color=colours[1],
        marker="s",
        markersize=3.5,
        linewidth=1.3,
        linestyle="--",
    )
    right.set_ylabel("variance explained, %", color=colours[1])
    right.set_ylim(0.0, 1.08 * max(100 * float(path.explained_variance.max()), 1e-12))
    for side in (axes, right):
        _spare(side)
    right.spines["right"].set_visible(True)
    return right


def plain_decades(axis: Any) -> None:
    """Ticks at 1, 2 and 5 times the powers of ten, written out."""
    ticker = optional("matplotlib.ticker", "Plots")
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_tick_params(which="minor", length=0)


def _worth_a_line(path: SPCAFSPath) -> IndexArray:
    """The first to enter, and those that are large at PCA: together at most MOST_LINES."""
    at_pca = np.argsort(-path.scores[0], kind="stable")[: MOST_LINES // 2]
    return np.union1d(at_pca, path.entry[: MOST_LINES // 2])


def _span(share: FloatArray) -> tuple[float, float]:
    """The limits of the horizontal axis; a single point gets some room."""
    room = 1.03 if len(share) > 1 else 2.0
    return float(share[0]) / room, float(share[-1]) * room


def _spare(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _pair(axes: Any) -> tuple[Any, Any]:
    try:
        upper, lower = axes
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"axes must be two matplotlib axes, one above the other; got {shorten(axes)}. None "
            "makes them."
        ) from error
    return upper, lower


def _new_axes() -> Any:
    _, axes = optional("matplotlib.pyplot", "Plots").subplots(
        2, 1, sharex=True, figsize=(8, 6), height_ratios=(3, 2), layout="constrained"
    )
    return axes
