"""SPCAFS along gamma: what happens between PCA and m features.

The path runs from where PCA is recovered, the weakest penalty, to where exactly m rows are left.
Each point starts from the solution before it, so rows that were inactive there are left out from
the first step. Both ends are found from the data:

* At the strong end W is a rotation of m unit vectors, on a set A of m features. For p = 1 it stays
  stationary if no other row gains from leaving zero: gamma >= 2 max |S_jA| over the rows j outside
  A. With the m largest variances for A this predicts the end. The points are spaced for it, and the
  path stops where m rows are left.
* The share of the variance that a weak penalty takes grows like gamma^2: going down from a tenth of
  the strong end, a few short runs find where it is a thousandth.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers._tables import AsTable
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import as_scatter
from keepers.linalg.spectrum import Subspace, leading_spectrum, orthonormal_subspace
from keepers.methods.parameters import check_component_count, check_value, expected_width, whole
from keepers.methods.reading import read_table, refuse_dask
from keepers.methods.spcafs import SPCAFS, RowPenalty, SPCAFSResult, solve_block

# PCA counts as recovered where the components hold this share of the variance that PCA's hold.
RECOVERED = 0.999
# The strong end was found at 1.4 to 2.6 times 2 max |S_jA| on most tables.
EXPECTED_END = 2.0
# A row is small if its squared norm is below this share of the mean.
SMALL = 1e-3


@dataclass(frozen=True)
class PathPoint:
    """The end of the iteration for one gamma."""

    gamma: float
    row_norms: FloatArray
    trace: float
    """Tr(W'SW)."""
    n_active: int
    objective: float
    n_iter: int
    converged: bool


Solver = Callable[[float, Subspace], tuple[PathPoint, Subspace]]
"""The solution for a gamma, from that for another one."""


def solve_point(
    operator: SymmetricOperator,
    penalty: RowPenalty,
    max_iter: int,
    tol: float,
    gamma: float,
    start: Subspace,
) -> tuple[PathPoint, Subspace]:
    """The solution for gamma, from the solution for another one; zeros in inactive rows."""
    penalty = replace(penalty, gamma=gamma)
    start = replace(start, n_products=0)
    # The start counts as the first step.
    found = solve_block(operator, start, penalty, max_iter=max_iter + 1, tol=tol, warm=True)
    vanishing = _vanishing(found, penalty)
    space = orthonormal_subspace(operator, np.where(vanishing[:, None], 0.0, found.W))
    squared_norms = space.squared_row_norms
    point = PathPoint(
        gamma=gamma,
        row_norms=np.sqrt(squared_norms),
        trace=space.trace,
        n_active=int(np.count_nonzero(~penalty.inactive(squared_norms))),
        objective=penalty.value(squared_norms) - space.trace,
        n_iter=found.n_iter - 1,
        converged=found.converged,
    )
    return point, space


def _vanishing(found: SPCAFSResult, penalty: RowPenalty) -> BoolArray:
    """Rows that are inactive or, for p = 1, small and on their way there.

    The iteration is stopped early, and rows take long to vanish; a small row that is pulled by less
    than gamma does. (With 0.95 instead of 0.9, a tenth of the rows were lost that stay active in a
    single fit.)
    """
    if penalty.p < 1.0:
        return ~found.active
    small = found.row_norms**2 < SMALL * np.mean(found.row_norms**2)
    return ~found.active | (small & ~penalty.pulled_out(found.images / 0.9))


def find_path(
    solve: Solver, operator: SymmetricOperator, pca: Subspace, n_points: int
) -> list[PathPoint]:
    """At most ``n_points``, evenly spaced in log(gamma), from where PCA is recovered to m rows."""
    width, largest = pca.vectors.shape[1], float(pca.values[0])
    end = max(EXPECTED_END * _smallest_gamma_at_m_rows(operator, width), 1e-3 * largest)
    point, space = solve(end / 10.0, pca)
    while point.trace < RECOVERED * pca.trace:
        point, space = solve(point.gamma / 2.0, pca)
    points = [point]
    along = np.geomspace(point.gamma, max(end, 10.0 * point.gamma), n_points)
    for gamma in along[1:]:
        point, space = solve(float(gamma), space)
        # Beyond 4 lambda_1 only exact copies of a column share a row's place: two equal rows cost
        # 0.41 gamma more than one, and save its variance.
        while gamma == along[-1] and point.n_active > width and point.gamma < 4.0 * largest:
            point, space = solve(1.25 * point.gamma, space)
        points.append(point)
        if point.n_active <= width < points[0].n_active:
            break
    return points


def _smallest_gamma_at_m_rows(operator: SymmetricOperator, width: int) -> float:
    """2 max |S_jA| for the m features A of largest variance."""
    largest = np.argsort(-operator.diagonal(), kind="stable")[:width]
    units = np.zeros((operator.size, width))
    units[largest, np.arange(width)] = 1.0
    pull = np.linalg.norm(operator.matmat(units), axis=1)
    pull[largest] = 0.0
    return 2.0 * float(pull.max())


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
    """The objective at every point."""
    explained_variance: FloatArray
    """Share of the total variance that the components hold, at every point."""
    entry: IndexArray
    """Features in the order in which they enter if gamma falls; ties go to the larger score."""
    n_components: int
    """Columns of W."""
    largest_eigenvalue: float
    """Largest eigenvalue of the scatter; gamma="scale" is relative to it."""
    n_iter: IndexArray
    """Eigenproblems solved, at every point."""
    converged: np.ndarray
    """False for points that did not converge."""
    feature_names: np.ndarray
    """Names of the features; x0, x1, ... where the table has none."""

    def __len__(self) -> int:
        return len(self.gammas)

    def __repr__(self) -> str:
        low, high = self.gammas[[0, -1]] / self.largest_eigenvalue
        return (
            f"<SPCAFSPath: {len(self)} points, gamma from {low:.3g} to {high:.3g} of the largest "
            f"eigenvalue, {self.n_active[0]} to {self.n_active[-1]} active rows of "
            f"{self.scores.shape[1]}; .to_frame() has them>"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The points, weakest penalty first, a dict each.

        Returns
        -------
        list of dict
            ``gamma``, ``gamma_share`` (of the largest eigenvalue), ``n_active``, ``objective``,
            ``explained_variance``, ``n_iter`` and ``converged``.
        """
        names = ("n_active", "objective", "explained_variance", "n_iter", "converged")
        columns = {"gamma": self.gammas, "gamma_share": self.gammas / self.largest_eigenvalue}
        columns |= {name: getattr(self, name) for name in names}
        values = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in values]


def spcafs_path(
    X: Any,
    *,
    n_components: Any = "auto",
    p: float = 1.0,
    n_gammas: int = 20,
    max_iter: int = 60,
    tol: float = 1e-4,
    random_state: Any = None,
) -> SPCAFSPath:
    """Solve SPCAFS for a sequence of gammas, from PCA to exactly n_components active rows.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    n_components : "auto", int or float in (0, 1), default="auto"
        As in `SPCAFS`.
    p : float in (0, 1], default=1.0
        Exponent of the penalty.
    n_gammas : int, default=20
        The most points, evenly spaced in log(gamma), up to where n_components rows remain.
    max_iter : int, default=60
        Maximum number of steps for each point; see ``converged``.
    tol : float, default=1e-4
        A point ends when a step lowers the objective by a smaller share. This is looser than in a
        single fit: refit with `SPCAFS` at the gamma you choose.
    random_state : int, RandomState or None, default=None
        As in `SPCAFS`.

    Returns
    -------
    SPCAFSPath
        ``gammas``, ``scores``, ``n_active``, ``objective``, ``explained_variance``, ``entry``.

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
    settings: dict[str, Any] = {"p": p, "max_iter": max_iter, "tol": tol}
    selector = SPCAFS(n_components=n_components, random_state=random_state, **settings)
    selector.check_parameters()
    check_value("n_gammas", n_gammas, whole(at_least=2))
    refuse_dask(X, "The path", "it solves many problems on a table in memory.")
    table = read_table(selector, X)
    scatter = as_scatter(table.X, table.moments, expected_width(n_components))
    check_component_count(n_components, table.n_samples, len(table.usable))
    sum_of_squares = table.moments.sum_of_squares
    pca = leading_spectrum(
        scatter,
        n_components,
        n_samples=table.n_samples,
        sum_of_squares=sum_of_squares,
        rng=selector.random_generator(),
    )
    solve = partial(solve_point, scatter, RowPenalty(1.0, float(p), selector.eps), max_iter, tol)
    points = find_path(solve, scatter, pca, int(n_gammas))
    held = np.array([point.trace for point in points])
    scores = table.to_all_columns(np.array([point.row_norms for point in points]))
    columns = ("gamma", "n_active", "objective", "n_iter", "converged")
    along = {name: np.array([getattr(point, name) for point in points]) for name in columns}
    return SPCAFSPath(
        gammas=along.pop("gamma"),
        scores=scores,
        explained_variance=held / sum_of_squares.sum(),
        entry=_entry_order(scores, selector.eps),
        n_components=len(pca.values),
        largest_eigenvalue=float(pca.values[0]),
        feature_names=selector._names_of_columns(),
        **along,
    )


def _entry_order(scores: FloatArray, eps: float) -> IndexArray:
    """Features by the last point at which they are active, then by their score there."""
    active = scores**2 > 4.0 * eps
    last = np.where(active.any(axis=0), len(scores) - 1 - np.argmax(active[::-1], axis=0), -1)
    there = scores[np.maximum(last, 0), np.arange(scores.shape[1])]
    return np.lexsort((np.arange(scores.shape[1]), -levels(there), -last))
