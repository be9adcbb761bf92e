"""Which of the best features say the same thing: correlations among them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import column_moments
from keepers.linalg.scatter import as_scatter
from keepers.reporting.selection.matrix import as_matrix

__all__ = ["Redundancy", "correlation_matrix", "nearest_neighbours", "nearest_of", "redundancy_of"]

NEAR_COPY = 0.9
MOST_IN_THE_MAP = 60


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
    """Those in the map, neighbours side by side."""
    correlation: FloatArray
    """Their correlations, in that order; 0 where a column does not vary."""


def nearest_neighbours(X: Any, order: Any, depth: int) -> tuple[IndexArray, FloatArray]:
    """The most correlated other feature, for each of the best.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table. At most ``depth`` of its columns are held as a dense array.
    order : array of int
        Columns of X, best first: ``selector.top(n).indices``.
    depth : int
        How far down ``order`` to look.

    Returns
    -------
    index : array of min(depth, len(order)) column numbers
        For each of the first ``depth`` in ``order`` the other one with the largest |r|; -1 where
        there is none (a column that does not vary, or nothing to compare it with).
    correlation : array of the same length
        That r, with its sign; NaN where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.1], [2.0, 0.0, 0.2], [3.0, 1.0, 0.3]])
    >>> index, correlation = nearest_neighbours(X, [0, 1, 2], depth=3)
    >>> index.tolist()
    [2, 0, 0]
    >>> correlation.round(3).tolist()
    [1.0, 0.0, 1.0]
    """
    columns = np.asarray(order, dtype=np.intp)[:depth]
    position, correlation = nearest_of(correlation_matrix(as_matrix(X), columns))
    return np.where(position < 0, -1, columns[position]), correlation


def correlation_matrix(X: Any, columns: IndexArray) -> FloatArray:
    """Pearson correlations of some columns; NaN for those that do not vary."""
    kept = X[:, columns].astype(np.float64)
    moments = column_moments(kept)
    scatter = as_scatter(kept, moments, len(columns)).dense()
    norms = np.sqrt(np.where(moments.constant, np.nan, moments.sum_of_squares))
    return np.clip(scatter / norms[:, None] / norms, -1.0, 1.0)


def nearest_of(correlation: FloatArray) -> tuple[IndexArray, FloatArray]:
    """Per row the position and value of the largest |r| off the diagonal; -1 and NaN if none."""
    n_features = len(correlation)
    strength = np.where(np.isnan(correlation), -1.0, np.abs(correlation))
    np.fill_diagonal(strength, -1.0)
    if n_features == 0:
        return np.empty(0, dtype=np.intp), np.empty(0)
    # Among equals the better-ranked one: rounding must not decide between exact copies.
    position = np.argmax(np.round(strength, 12), axis=1)
    rows = np.arange(n_features)
    none = strength[rows, position] < 0
    return np.where(none, -1, position), np.where(none, np.nan, correlation[rows, position])


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
