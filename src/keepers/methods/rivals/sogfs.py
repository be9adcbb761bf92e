"""SOGFS: structured optimal graph feature selection (Nie, Zhu and Li, AAAI 2016).

L_S is the Laplacian of (S + S')/2. One pass makes three steps: S by projection onto the simplex, W
by reweighting (as in UDFS), F by the smallest eigenvectors of L_S. lambda is doubled while the
graph has fewer than c components, halved while it has more; the run ends with exactly c. alpha is
fixed by the first graph.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataError
from keepers.linalg.graph import NeighbourList, laplacian
from keepers.linalg.spectrum import squared_row_norms
from keepers.methods.neighbours import nearest_neighbours
from keepers.methods.parameters import (
    Seed,
    cap_clusters,
    cap_columns,
    one_of,
    positive,
    whole,
)
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival
from keepers.methods.rivals.udfs import (
    RowSparseProjection,
    first_weights,
    form_in_coordinates,
    row_coordinates,
    row_sparse_projection,
)

# Sums of eigenvalues of L below which the graph counts as split into c, and into more than c; and
# the passes in which neighbours are those in the full space: all as in the authors' program.
CONNECTED, SPLIT_FURTHER = 1e-9, 1e-11
PASSES_WITH_FIRST_NEIGHBOURS = 5


@dataclass(frozen=True)
class SOGFSResult:
    """The last pass; it converged if the graph has exactly c components."""

    projection: RowSparseProjection
    cost: FloatArray
    """Diagonal of X'LX for the last graph."""
    graph: sp.csr_array
    objective: FloatArray
    lambdas: FloatArray
    converged: bool


def project_rows_onto_simplex(V: FloatArray) -> FloatArray:
    """The nearest point of the unit simplex {s >= 0, sum s = 1} to every row of V.

    The projection is max(v - tau, 0) with the one tau that makes the sum 1. With u the entries in
    descending order, tau = (u_1 + ... + u_r - 1) / r for the largest r with u_r > tau.
    """
    shifted = V - V.max(axis=1, keepdims=True)  # the projection does not see it; sums keep digits
    descending = -np.sort(-shifted, axis=1)
    places = np.arange(1, V.shape[1] + 1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / places
    last = np.count_nonzero(descending > thresholds, axis=1) - 1
    tau = np.take_along_axis(thresholds, last[:, np.newaxis], axis=1)
    return np.maximum(shifted - tau, 0.0)


def unit_columns(X: FloatArray) -> FloatArray:
    centred = X - X.mean(axis=0)
    centred -= centred.mean(axis=0)  # what rounding left, where the mean is large
    return np.asarray(centred / np.sqrt(np.einsum("ij,ij->j", centred, centred) + EPS))


def first_similarities(neighbours: NeighbourList) -> tuple[FloatArray, float]:
    """Similarities to the first k of k + 1 neighbours, which alone are positive, and alpha.

    Row i minimises sum_j ( e_j s_j + rr_i s_j^2 ) on the simplex; alpha is the mean of rr.
    """
    e = neighbours.distances**2
    inner, outer = e[:, :-1], e[:, -1:]
    twice_rr = (inner.shape[1] * outer - inner.sum(axis=1, keepdims=True)).clip(min=0.0)
    similarities = (outer - inner) / (twice_rr + EPS)
    # Neighbours as far as the next one: distances do not determine weights.
    flat = (twice_rr <= 1e-12 * outer).ravel()
    similarities[flat] = 1.0 / inner.shape[1]
    alpha = float(twice_rr.mean()) / 2.0
    return similarities, alpha if alpha > 0.0 else 1.0


def squared_gaps(points: FloatArray, neighbours: IndexArray) -> FloatArray:
    """Squared distance of every point to its listed ones."""
    return np.stack([squared_row_norms(points - points[j]) for j in neighbours.T], axis=1)


def symmetric_graph(neighbours: IndexArray, similarities: FloatArray) -> sp.csr_array:
    """(S + S')/2."""
    n_samples, n_neighbors = neighbours.shape
    places = (np.repeat(np.arange(n_samples), n_neighbors), neighbours.ravel())
    S = sp.csr_array((similarities.ravel(), places), shape=(n_samples, n_samples))
    graph = sp.csr_array((S + S.T) / 2)
    graph.eliminate_zeros()
    return graph


def solve_sogfs(
    X: FloatArray,
    weights: FloatArray,
    rng: np.random.Generator,
    *,
    n_neighbors: int,
    n_clusters: int,
    width: int,
    gamma: float,
    max_iter: int = 50,
    tol: float = 1e-6,
) -> SOGFSResult:
    """Alternate the three steps on data X from `unit_columns`; W begins with ``weights``."""
    points, basis = row_coordinates(X)

    def best_projection(L: sp.csr_array) -> tuple[FloatArray, RowSparseProjection]:
        form = form_in_coordinates(points.T @ (L @ points), basis)
        found = row_sparse_projection(
            form, gamma, width, weights, rng, max_iter=100, tol=tol, is_relative=False
        )
        return form.diagonal(), found

    listed = nearest_neighbours(X, n_neighbors + 1)
    neighbours = listed.indices[:, :n_neighbors]
    similarities, alpha = first_similarities(listed)
    L = laplacian(symmetric_graph(neighbours, similarities))
    F = eigh(L.toarray(), subset_by_index=[0, n_clusters - 1])[1]
    cost, projection = best_projection(L)
    lambda_ = alpha
    history: list[tuple[float, float]] = []
    converged = False
    while len(history) < max_iter and not converged:
        projected = X @ projection.W
        if len(history) >= PASSES_WITH_FIRST_NEIGHBOURS:
            neighbours = nearest_neighbours(projected, n_neighbors).indices
        gaps = squared_gaps(projected, neighbours) + lambda_ * squared_gaps(F, neighbours)
        similarities = project_rows_onto_simplex(gaps / (-2.0 * alpha))
        L = laplacian(symmetric_graph(neighbours, similarities))
        cost, projection = best_projection(L)
        n_found = min(n_clusters + 1, len(X))
        eigenvalues, vectors = eigh(L.toarray(), subset_by_index=[0, n_found - 1])
        trace = float(eigenvalues[:n_clusters].sum())
        smoothness = projection.objective[-1] + lambda_ * trace
        value = 2.0 * smoothness + alpha * float(np.vdot(similarities, similarities))
        history.append((value, lambda_))
        if trace > CONNECTED:
            lambda_, F = 2.0 * lambda_, vectors[:, :n_clusters]
        elif n_found > n_clusters and eigenvalues.sum() < SPLIT_FURTHER:
            lambda_ = lambda_ / 2.0  # F stays what it was: this one is an arbitrary part of many
        else:
            converged = len(history) > 1
            F = vectors[:, :n_clusters]
    values, lambdas = np.array(history).T
    graph = symmetric_graph(neighbours, similarities)
    return SOGFSResult(projection, cost, graph, values, lambdas, converged)


@dataclass(eq=False, repr=False, kw_only=True)
class SOGFS(Rival):
    """Structured optimal graph feature selection.

    Learns three things together, on centred features of unit norm: a graph S in which every sample
    has a few weighted neighbours, a projection W (features x components) with few non-zero rows
    that keeps neighbours close, and an indicator F that drives the graph towards ``n_clusters``
    connected components::

        minimise  sum_ij (|W'x_i - W'x_j|^2 s_ij + alpha s_ij^2) + 2 gamma sum_j |w_j|
                  + 2 lambda Tr(F' L_S F)
        subject to S1 = 1, S >= 0, W'W = I, F'F = I.

    alpha comes from the data, lambda is raised or lowered until the number of components is right.
    The method is that of Nie, Zhu and Li (AAAI 2016). Scores do not depend on the unit or the
    offset of a feature.

    Parameters
    ----------
    {n_features_to_select}
        It enters the fit through the default of ``n_components`` only.
    n_clusters : int, default=5
        Number of connected components of the graph. A number above n_samples is lowered, with a
        warning.
    n_components : int or None, default=None
        Columns of W. None takes ``n_features_to_select`` if that is given, at least ``n_clusters``
        and at most 100; else ``n_clusters``. Capped, with a warning, below the number of columns.
    n_neighbors : int, default=5
        Neighbours of each sample. Capped, with a warning, at n_samples - 2.
    gamma : float, default=1.0
        Weight of the penalty on the rows of W, as in the authors' program.
    max_iter : int, default=50
        Maximum number of passes over S, W and F.
    tol : float, default=1e-6
        Within a pass, W is reweighted until its part of the objective falls by no more than this
        (absolutely), at most 100 times.
    {max_correlation}
    {random_state}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W; higher is better. Norms that are rounding noise, up to 1e-12 of the
        largest, are ordered by (X'LX)_jj.
    {fitted}
    {run}
        It does if the graph has exactly ``n_clusters`` components.
    n_active_ : int
        Features whose score is not rounding noise.
    n_components_ : int
        Columns of W.

    Examples
    --------
    >>> from keepers import SOGFS, datasets
    >>> SOGFS(10, n_clusters=4).fit(datasets.load("srbct").X[:, :200]).converged_
    True
    """

    looks_for = "features in which the samples keep their neighbours"

    why_not_sparse = "it works with centred columns, which have no zeros."
    parameter_rules: ClassVar = {
        "n_components": one_of(None) | whole(),
        "gamma": positive(),
        "tol": positive(),
    }

    n_clusters: int = 5
    n_components: int | None = None
    n_neighbors: int = 5
    gamma: float = 1.0
    max_iter: int = 50
    tol: float = 1e-6
    random_state: Seed = None

    @property
    def depends_on_k(self) -> bool:  # type: ignore[override]
        """By default the number of columns of W follows the number of features wanted."""
        return self.n_components is None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        if n_samples < 3:
            raise DataError(
                "SOGFS needs at least 3 samples: each sample, its neighbour, and a farther one "
                f"that sets the scale. X has {n_samples}."
            )
        n_clusters = cap_clusters(self.n_clusters, n_samples)
        self.n_components_ = self._count_components(n_clusters, n_usable)
        self.refuse_past_memory(table, tables=4, of_side=2, of_samples=2)
        values = unit_columns(self.centred_values(table))
        neighbours = self.list_neighbours(values, spare=2)
        with one_blas_thread_if_small(min(values.shape)):
            result = solve_sogfs(
                values,
                first_weights(np.sqrt(table.moments.variance)),
                self.random_generator(),
                n_neighbors=neighbours.n_neighbors,
                n_clusters=n_clusters,
                width=self.n_components_,
                gamma=float(self.gamma),
                max_iter=self.max_iter,
                tol=self.tol,
            )
        self.store_run(
            result,
            f"The graph does not have exactly {n_clusters} components after max_iter="
            f"{self.max_iter} passes. Raise max_iter, or try another n_clusters.",
        )
        self.warn_of_noise(result.projection.n_active)
        return table.to_all_columns(result.projection.scores(result.cost))

    def _count_components(self, n_clusters: int, n_usable: int) -> int:
        if self.n_components is not None:
            return cap_columns("n_components", self.n_components, n_usable)
        wanted = 0 if self.n_features_to_select is None else self.n_features_to_select_
        return min(max(n_clusters, min(wanted, 100)), max(1, n_usable - 1))
