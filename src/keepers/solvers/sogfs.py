"""SOGFS: structured optimal graph feature selection (Nie, Zhu and Li, AAAI 2016).

A similarity graph S (rows on the simplex), a row-sparse projection W (d x p) and an indicator F
(n x c) of c components are learned together, on centred features of unit norm:

    minimise  sum_ij ( |W'x_i - W'x_j|^2 s_ij + alpha s_ij^2 ) + 2 gamma |W|_{2,1}
              + 2 lambda Tr(F' L_S F)          over S1 = 1, S >= 0, W'W = I, F'F = I.

L_S is the Laplacian of (S + S')/2. Every sample keeps k neighbours. One pass makes three steps:
S by projection onto the simplex, W by reweighting (from weights of ones each time), F by the
smallest eigenvectors of L_S. lambda is doubled while the graph has fewer than c components, halved
while it has more; the run ends with exactly c. alpha is fixed by the first graph.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import NeighbourList, laplacian
from keepers.linalg.moments import row_blocks
from keepers.linalg.proximal import project_rows_onto_simplex
from keepers.linalg.quadratic_form import LaplacianForms, SparseForm
from keepers.linalg.smallest import EigenBlock, smallest_eigenvectors
from keepers.solvers.reweighting import (
    RowSparseProjection,
    first_weights,
    row_sparse_projection,
)

EPS = float(np.finfo(float).eps)
# Sums of eigenvalues of L below which the graph counts as split into c, and into more than c.
CONNECTED, SPLIT_FURTHER = 1e-9, 1e-11
# In these first passes neighbours are those in the full space.
PASSES_WITH_FIRST_NEIGHBOURS = 5
MOST_REWEIGHTINGS = 100
# Neighbours as far as the next one: no weights can be told from distances.
EQUIDISTANT = 1e-12
DENSE_GRAPH = 300

FindNeighbours = Callable[[FloatArray, int], NeighbourList]


@dataclass(frozen=True)
class SOGFSResult:
    """Where the iteration ended."""

    W: FloatArray
    squared_norms: FloatArray
    """|w_j|^2; they sum to the number of columns of W."""
    cost: FloatArray
    """Diagonal of X'LX for the last graph."""
    graph: sp.csr_array
    """(S + S')/2."""
    objective: FloatArray
    """Value of the whole objective after every pass, with the lambda of that pass."""
    lambdas: FloatArray
    """The lambda of every pass."""
    alpha: float
    n_iter: int
    converged: bool
    """Whether the graph has exactly c components."""


@dataclass(frozen=True)
class Indicator:
    """The smallest eigenvectors of a Laplacian."""

    F: FloatArray
    eigenvalues: FloatArray
    """The c + 1 smallest (c if n = c), ascending."""

    @property
    def trace(self) -> float:
        """Tr(F'LF): zero if the graph has c components or more."""
        return float(self.eigenvalues[: self.F.shape[1]].sum())

    @property
    def next_trace(self) -> float:
        """With one eigenvalue more: zero if the graph has more than c components."""
        if len(self.eigenvalues) == self.F.shape[1]:
            return np.inf
        return float(self.eigenvalues.sum())


def unit_columns(X: FloatArray) -> FloatArray:
    """Centred columns of unit norm."""
    centred = X - X.mean(axis=0)
    centred -= centred.mean(axis=0)  # what rounding left, where the mean is large
    return np.asarray(centred / np.sqrt(np.einsum("ij,ij->j", centred, centred) + EPS))


def first_similarities(neighbours: NeighbourList) -> tuple[FloatArray, float]:
    """Similarities to the first k of k + 1 listed neighbours, and alpha.

    Row i minimises sum_j ( e_j s_j + rr_i s_j^2 ) on the simplex, rr_i being such that exactly k
    similarities are positive; alpha is the mean of rr.
    """
    e = neighbours.distances**2
    inner, outer = e[:, :-1], e[:, -1:]
    twice_rr = (inner.shape[1] * outer - inner.sum(axis=1, keepdims=True)).clip(min=0.0)
    similarities = (outer - inner) / (twice_rr + EPS)
    flat = (twice_rr <= EQUIDISTANT * outer).ravel()
    similarities[flat] = 1.0 / inner.shape[1]
    alpha = float(twice_rr.mean()) / 2.0
    return similarities, alpha if alpha > 0.0 else 1.0


def similarity_step(
    projected: FloatArray, F: FloatArray, neighbours: IndexArray, lambda_: float, alpha: float
) -> FloatArray:
    """The best similarities to the listed neighbours: a projection onto the simplex."""
    cost = squared_gaps(projected, neighbours) + lambda_ * squared_gaps(F, neighbours)
    return project_rows_onto_simplex(cost / (-2.0 * alpha))


def squared_gaps(points: FloatArray, neighbours: IndexArray) -> FloatArray:
    """Squared distance of every point to its listed ones."""
    gaps = np.empty(neighbours.shape)
    for rows in row_blocks(len(points), points.shape[1] * neighbours.shape[1]):
        difference = points[neighbours[rows]] - points[rows][:, np.newaxis, :]
        gaps[rows] = np.einsum("ijk,ijk->ij", difference, difference)
    return gaps


def symmetric_graph(neighbours: IndexArray, similarities: FloatArray) -> sp.csr_array:
    """(S + S')/2."""
    n_samples, n_neighbors = neighbours.shape
    starts = np.arange(0, n_samples * n_neighbors + 1, n_neighbors)
    S = sp.csr_array(
        (similarities.ravel(), neighbours.ravel(), starts), shape=(n_samples, n_samples)
    )
    graph = sp.csr_array((S + S.T) / 2)
    graph.eliminate_zeros()
    return graph


def indicator_step(L: sp.csr_array, n_clusters: int, rng: np.random.Generator) -> Indicator:
    """F, and one eigenvalue more than it has columns.

    A graph of many samples is solved one connected component after the other. Each has one zero,
    so of m components none has more than c + 2 - m of the c + 1 smallest eigenvalues.
    """
    n_samples = L.shape[0]
    wanted = min(n_clusters + 1, n_samples)
    if n_samples <= DENSE_GRAPH:
        eigenvalues, vectors = np.linalg.eigh(L.toarray())
        return Indicator(vectors[:, :n_clusters], eigenvalues[:wanted])
    n_parts, labels = connected_components(L, directed=False)
    most = max(wanted - n_parts + 1, 1)
    parts = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    values: list[FloatArray] = []
    places: list[tuple[IndexArray, FloatArray]] = []
    for part in parts:
        found, vectors = _smallest_of_part(L[part][:, part], min(most, len(part)), rng)
        values.append(found)
        places.extend((part, vector) for vector in vectors.T)
    eigenvalues = np.concatenate(values)
    order = np.argsort(eigenvalues, kind="stable")[:wanted]
    F = np.zeros((n_samples, n_clusters))
    for column, index in enumerate(order[:n_clusters]):
        part, vector = places[index]
        F[part, column] = vector
    return Indicator(F, eigenvalues[order])


def _smallest_of_part(
    L: sp.csr_array, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Smallest eigenvalues and eigenvectors of the Laplacian of a connected graph."""
    n_samples = L.shape[0]
    if count == 1:
        return np.zeros(1), np.full((n_samples, 1), 1.0 / np.sqrt(n_samples))
    if n_samples <= DENSE_GRAPH:
        eigenvalues, vectors = np.linalg.eigh(L.toarray())
        return eigenvalues[:count], vectors[:, :count]
    block = smallest_eigenvectors(SparseForm(L), np.ones(n_samples), count, rng)
    eigenvalues, rotation = np.linalg.eigh(block.vectors.T @ (L @ block.vectors))
    return eigenvalues, block.vectors @ rotation


def solve_sogfs(
    X: FloatArray,
    deviations: FloatArray,
    find_neighbours: FindNeighbours,
    rng: np.random.Generator,
    *,
    n_neighbors: int,
    n_clusters: int,
    width: int,
    gamma: float,
    max_iter: int = 50,
    tol: float = 1e-6,
    tie_breaker: bool = True,
) -> SOGFSResult:
    """Alternate the three steps on data X from `unit_columns`.

    ``deviations`` holds the standard deviations before that scaling; it decides ties only.
    ``find_neighbours(points, k)`` lists the k nearest others. The reweighting of W ends when its
    objective changes by less than ``tol``.
    """
    projector = _Projector(
        LaplacianForms.of(X),
        gamma,
        width,
        first_weights(deviations, tie_breaker=tie_breaker),
        rng,
        tol,
    )
    listed = find_neighbours(X, n_neighbors + 1)
    neighbours = listed.indices[:, :n_neighbors]
    similarities, alpha = first_similarities(listed)
    lambda_ = alpha
    L = laplacian(symmetric_graph(neighbours, similarities))
    indicator = indicator_step(L, n_clusters, rng)
    F = indicator.F
    projection = projector.step(L)
    history: list[tuple[float, float]] = []
    converged = False
    while len(history) < max_iter and not converged:
        projected = X @ projection.W
        if len(history) >= PASSES_WITH_FIRST_NEIGHBOURS:
            neighbours = find_neighbours(projected, n_neighbors).indices
        similarities = similarity_step(projected, F, neighbours, lambda_, alpha)
        L = laplacian(symmetric_graph(neighbours, similarities))
        projection = projector.step(L)
        indicator = indicator_step(L, n_clusters, rng)
        smoothness = projection.objective[-1] + lambda_ * indicator.trace
        value = 2.0 * smoothness + alpha * float(np.vdot(similarities, similarities))
        history.append((value, lambda_))
        if indicator.trace > CONNECTED:
            lambda_, F = 2.0 * lambda_, indicator.F
        elif indicator.next_trace < SPLIT_FURTHER:
            lambda_ = lambda_ / 2.0  # F stays what it was: this one is an arbitrary part of many
        else:
            F = indicator.F
            converged = len(history) > 1
    return SOGFSResult(
        projection.W,
        projection.squared_norms,
        projector.cost(L),
        symmetric_graph(neighbours, similarities),
        np.array([value for value, _ in history]),
        np.array([lambda_ for _, lambda_ in history]),
        alpha,
        len(history),
        converged,
    )


@dataclass
class _Projector:
    """The W-step; it remembers where its first eigenproblem ended, to start there again."""

    forms: LaplacianForms
    gamma: float
    width: int
    weights: FloatArray
    rng: np.random.Generator
    tol: float
    start: EigenBlock | None = None

    def step(self, L: sp.csr_array) -> RowSparseProjection:
        """W for the graph with Laplacian L, reweighted from the first weights on."""
        projection = row_sparse_projection(
            self.forms.form(L),
            self.gamma,
            self.width,
            self.weights,
            self.rng,
            max_iter=MOST_REWEIGHTINGS,
            has_converged=lambda history: abs(history[-2] - history[-1]) < self.tol,
            start=self.start,
        )
        self.start = replace(projection.first, projected=None)  # that is of this graph
        return projection

    def cost(self, L: sp.csr_array) -> FloatArray:
        """Diagonal of X'LX."""
        return self.forms.form(L).diagonal()
