"""The regularisation path of SPCAFS: what happens between PCA and m features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import ParameterError, shortened
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import leading_spectrum
from keepers.selectors.fitted_table import read_table, refuse_dask
from keepers.selectors.parameters import check_callback, check_count, is_whole
from keepers.selectors.spcafs import SPCAFS, check_component_count
from keepers.solvers.path import PathPoint, find_path, follow_path
from keepers.solvers.penalty import RowPenalty


POINT_TOL = 1e-4
POINT_STEPS = 60


@dataclass(frozen=True)
class SPCAFSPath:
    """SPCAFS along gamma, weakest penalty first."""

    gammas: FloatArray
    """Penalty weights, on the scale of the scatter."""
    scores: FloatArray
    """Row norms, points x features."""
    n_live: IndexArray
    """Rows of W that are not zero, at every point."""
    objective: FloatArray
    """What is minimised, at every point."""
    explained_variance: FloatArray
    """Share of the total variance that the components hold, at every point."""
    entry: IndexArray
    """Features in the order in which they would enter if gamma fell: those that live longest come
    first; among equals the larger score where they last lived."""
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
            f"eigenvalue, {self.n_live[0]} to {self.n_live[-1]} live rows of "
            f"{self.scores.shape[1]}; .plot() draws it>"
        )

    def plot(self, axes: Any = None, n_named: int = 8, feature_names: Any = None) -> Any:
        """Draw scores, live rows and explained variance along gamma.

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
        from keepers.tuning.path_plot import draw_path  # matplotlib is an extra

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
        remain; if that is reached early, the points left over go where most rows die.
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
        ``gammas``, ``scores``, ``n_live``, ``objective``, ``explained_variance``, ``entry``; its
        ``plot()`` draws them.

    Examples
    --------
    >>> from keepers import datasets, spcafs_path
    >>> X, names, y = datasets.load("srbct")
    >>> path = spcafs_path(X, n_components=3)
    >>> path.scores.shape
    (20, 2308)
    >>> int(path.n_live[0]) > int(path.n_live[-1])
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
        n_points = check_count("n_gammas", n_gammas, at_least=2)
        found = find_path(scatter, pca, penalty, n_points, max_iter=max_iter, tol=tol)
    else:
        along = _checked(gammas)
        n_points = len(along)
        found = follow_path(scatter, pca, penalty, along, max_iter=max_iter, tol=tol)
    points = []
    for point in found:
        points.append(point)
        if callback is not None:
            callback(len(points), n_points)
    points.sort(key=lambda point: point.gamma)
    return _assembled(points, selector, table, pca.values, float(p), eps)


def _checked(gammas: Any) -> FloatArray:
    try:
        along = np.sort(np.atleast_1d(np.asarray(gammas, dtype=np.float64)))
    except (TypeError, ValueError):
        along = np.empty(0)
    if along.ndim != 1 or not len(along) or not np.all(np.isfinite(along)) or along[0] <= 0:
        raise ParameterError(
            f"gammas must be finite numbers > 0; got {shortened(gammas)}. None finds them from X."
        )
    return along


def _assembled(
    points: list[PathPoint],
    selector: SPCAFS,
    table: Any,
    eigenvalues: FloatArray,
    p: float,
    eps: float,
) -> SPCAFSPath:
    scores = table.spread(np.array([point.row_norms for point in points]))
    names = getattr(selector, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{i}" for i in range(scores.shape[1])], dtype=object)
    return SPCAFSPath(
        gammas=np.array([point.gamma for point in points]),
        scores=scores,
        n_live=np.array([point.n_live for point in points]),
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
    """Features by the last point at which they live, then by their score there."""
    live = scores**2 > 4.0 * eps
    last = np.where(live.any(axis=0), len(scores) - 1 - np.argmax(live[::-1], axis=0), -1)
    there = scores[np.maximum(last, 0), np.arange(scores.shape[1])]
    return np.lexsort((np.arange(scores.shape[1]), -levels(there), -last))
