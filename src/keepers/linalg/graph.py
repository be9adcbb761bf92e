"""What is made of lists of nearest neighbours: sparse graphs, Laplacians, reconstructions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.ordering import nearest_first
from keepers.linalg.subspace import squared_row_norms

Graph = Any
"""A symmetric graph of the samples: a CSR matrix, or an array with a weight for every pair."""

# Below this, a degree is the sum of weights that underflowed.
_VANISHED = 1e-200
# Added to the diagonal of a singular G, as a share of its trace: the authors of RNE take it too.
RIDGE = 1e-3
# An eigenvalue of G below this share of the largest is rounding noise. More neighbours than
# features, duplicate samples and neighbours on a line all lead there.
SINGULAR_RATIO = 1e-12
# Squared distances below this share of the largest are rounding.
COINCIDENT = 1e-13


@dataclass(frozen=True)
class NeighbourList:
    """For each sample its k nearest others, nearest first, ties by lowest index."""

    indices: IndexArray
    distances: FloatArray
    """Euclidean, not squared; n x k as ``indices``."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.indices.shape[0])

    @property
    def n_neighbors(self) -> int:
        """Neighbours per sample, k."""
        return int(self.indices.shape[1])


def squared_distances(points: FloatArray) -> FloatArray:
    """Between all pairs of rows; centre them first if they lie far from the origin."""
    lengths = squared_row_norms(points)
    squared = points @ points.T
    squared *= -2.0
    squared += lengths[:, np.newaxis]
    squared += lengths
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.asarray(squared)


def nearest_in_cloud(points: FloatArray, n_neighbors: int) -> NeighbourList:
    """The nearest others of every point of a small cloud, in no order, all distances in memory.

    Points that coincide up to rounding are at distance 0, and ties go to the lowest index.
    """
    squared = squared_distances(points)
    squared[squared <= COINCIDENT * squared.max(initial=0.0)] = 0.0
    np.fill_diagonal(squared, np.inf)
    indices = nearest_first(squared, n_neighbors)
    return NeighbourList(indices, np.sqrt(np.take_along_axis(squared, indices, axis=1)))


def heat_weights(neighbours: NeighbourList, bandwidth: float) -> FloatArray:
    """exp(-distance^2 / (2 bandwidth^2)) for every entry of the list."""
    with np.errstate(over="ignore"):  # a square past 1e308 has the weight exp(-inf) = 0
        scaled = neighbours.distances / bandwidth
        return np.asarray(np.exp(-0.5 * scaled * scaled))


def union_graph(
    neighbours: NeighbourList, weights: FloatArray | None = None, *, self_loops: bool = False
) -> sp.csr_array:
    """Symmetric graph with an edge where either sample lists the other.

    ``weights`` has the shape of the list; None gives every edge weight 1. ``self_loops`` adds
    ones on the diagonal, as scikit-feature does.
    """
    n_samples, n_neighbors = neighbours.indices.shape
    values = np.ones((n_samples, n_neighbors)) if weights is None else weights
    rows = np.repeat(np.arange(n_samples), n_neighbors)
    directed = sp.csr_array(
        (values.ravel(), (rows, neighbours.indices.ravel())), shape=(n_samples, n_samples)
    )
    graph = directed.maximum(directed.T.tocsr())
    if self_loops:
        graph = graph + sp.csr_array(sp.eye(n_samples))
    graph.sort_indices()
    return graph


def degrees(graph: Graph) -> FloatArray:
    """Row sums."""
    return np.asarray(graph.sum(axis=1)).ravel()


def laplacian(graph: Graph) -> Graph:
    """D - S, stored as S is."""
    if not sp.issparse(graph):
        L = -graph
        L.flat[:: len(L) + 1] += degrees(graph)
        return L
    return sp.csr_array(sp.csr_array(sp.diags(degrees(graph))) - graph)


def graph_defect(neighbours: NeighbourList, graph: sp.csr_array) -> str | None:
    """What is wrong with a graph that carries no information, in words; None if nothing is."""
    distances = neighbours.distances
    to_others = degrees(graph) - graph.diagonal()
    isolated = int(np.sum(to_others <= _VANISHED))
    if isolated == neighbours.n_samples:
        return (
            "all heat weights underflow to zero: the bandwidth is far below the distances between "
            f"neighbours (smallest {distances[distances > 0].min(initial=np.inf):.3g})"
        )
    if isolated:
        return f"{isolated} of {neighbours.n_samples} samples have no neighbour of non-zero weight"
    if not np.any(distances):
        return "all samples coincide with their neighbours: every distance is zero"
    if np.ptp(distances) > 1e-12 * distances.max():
        return None
    if neighbours.n_neighbors == neighbours.n_samples - 1:
        return "all samples are equally far from each other: every pair has the same weight"
    return "all neighbours are equally far: which samples are neighbours is decided by ties"


def full_graph_defect(graph: FloatArray) -> str | None:
    """The same for a graph with a weight for every pair, and zeros on its diagonal."""
    n_samples, to_others = len(graph), degrees(graph)
    isolated = int(np.sum(to_others <= _VANISHED))
    if isolated == n_samples:
        return "all heat weights underflow to zero: the bandwidth is far below the distances"
    if isolated:
        return f"{isolated} of {n_samples} samples have no neighbour of non-zero weight"
    if n_samples > 2 and to_others.min() >= (n_samples - 1) * graph.max() * (1.0 - 1e-12):
        return "all samples are equally far from each other: every pair has the same weight"
    return None


def reconstruction_weights(X: FloatArray, neighbours: NeighbourList) -> sp.csr_array:
    """Weights that rebuild each sample from its neighbours, as in locally linear embedding.

    For sample i with neighbours N(i), the weights minimise |x_i - sum_j w_j x_j|^2 under
    sum_j w_j = 1: with G the Gram matrix of the differences x_j - x_i, they solve G w = 1 and are
    divided by their sum. Row i of the sparse n x n result holds them, so that W 1 = 1 and X is
    close to W X.
    """
    n_samples, n_neighbors = neighbours.indices.shape
    weights = np.empty((n_samples, n_neighbors))
    for rows in row_blocks(n_samples, X.shape[1] * n_neighbors):
        weights[rows] = _solve_for_weights(_difference_grams(X, rows, neighbours.indices[rows]))
    starts = np.arange(0, n_samples * n_neighbors + 1, n_neighbors)
    matrix = sp.csr_array(
        (weights.ravel(), neighbours.indices.ravel(), starts), shape=(n_samples, n_samples)
    )
    matrix.sort_indices()
    return matrix


def reconstruction_laplacian(weights: sp.csr_array) -> sp.csr_array:
    """(I - W)'(I - W), positive semi-definite and zero on the constant, as a Laplacian is."""
    rest = sp.csr_array(sp.eye_array(weights.shape[0]) - weights)
    return sp.csr_array(rest.T @ rest)


def reconstruction_residual(X: FloatArray, weights: sp.csr_array) -> FloatArray:
    """(I - W) X: what the neighbours cannot rebuild."""
    return np.asarray(X - weights @ X)


def _difference_grams(X: FloatArray, rows: slice, indices: IndexArray) -> FloatArray:
    """One k x k Gram matrix of differences to the neighbours for each sample in ``rows``."""
    differences = X[indices] - X[rows][:, np.newaxis, :]
    return np.asarray(differences @ differences.transpose(0, 2, 1))


def _solve_for_weights(grams: FloatArray) -> FloatArray:
    """Solutions of G w = 1 with unit sum, one a row; singular G get a ridge first."""
    n_neighbors = grams.shape[1]
    spectrum = np.linalg.eigvalsh(grams)
    singular = spectrum[:, 0] <= SINGULAR_RATIO * spectrum[:, -1]
    ridge = RIDGE * np.trace(grams[singular], axis1=1, axis2=2)
    ridge[ridge == 0.0] = 1.0  # the sample coincides with all its neighbours: equal weights
    grams[singular] += ridge[:, np.newaxis, np.newaxis] * np.eye(n_neighbors)
    solutions = np.linalg.solve(grams, np.ones((len(grams), n_neighbors, 1)))[:, :, 0]
    return np.asarray(solutions / solutions.sum(axis=1, keepdims=True))
