"""Sparse neighbour graphs and their Laplacians, from lists of nearest neighbours."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray

__all__ = ["NeighbourList", "degrees", "graph_defect", "heat_weights", "laplacian", "union_graph"]

# Below this, a degree is the sum of weights that underflowed.
_VANISHED = 1e-200


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


def degrees(graph: sp.csr_array) -> FloatArray:
    """Row sums."""
    return np.asarray(graph.sum(axis=1)).ravel()


def laplacian(graph: sp.csr_array) -> sp.csr_array:
    """D - S."""
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
