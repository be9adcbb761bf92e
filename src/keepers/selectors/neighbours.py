"""Nearest neighbours and the bandwidth of the heat kernel, through scikit-learn."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, ParameterError
from keepers.linalg.graph import NeighbourList, graph_defect, heat_weights, union_graph
from keepers.linalg.moments import row_blocks
from keepers.selectors.settings import check_count, check_positive

__all__ = ["heat_graph", "mean_distance", "nearest_neighbours", "warn_of_defect"]

# Cai's rule: past this many samples the mean distance is taken over a random sample of them.
BANDWIDTH_SAMPLES = 3000


def nearest_neighbours(X: Any, n_neighbors: int, *, spare: int = 1) -> NeighbourList:
    """The ``n_neighbors`` nearest other samples of every sample; X as it is, not scaled.

    A sample is excluded from its own list by its index, not by its position: among duplicates it
    need not come first. At most n_samples - ``spare`` neighbours can be asked for.
    """
    n_samples = X.shape[0]
    check_count(
        "n_neighbors",
        n_neighbors,
        at_most=n_samples - spare,
        hint=f"X has {n_samples} samples, and a sample is not its own neighbour.",
    )
    centred = X if sp.issparse(X) else X - X.mean(axis=0)  # keeps the digits of |x|^2 - 2xy + |y|^2
    index = NearestNeighbors(n_neighbors=min(n_neighbors + 2, n_samples)).fit(centred)
    distances, indices = index.kneighbors(centred)
    distances[indices == np.arange(n_samples)[:, np.newaxis]] = np.inf
    distances = np.where(np.isinf(distances), np.inf, _pair_distances(centred, indices))
    order = np.lexsort((indices, distances), axis=1)[:, :n_neighbors]
    return NeighbourList(
        np.take_along_axis(indices, order, axis=1),
        np.take_along_axis(distances, order, axis=1),
    )


def _pair_distances(X: Any, indices: np.ndarray) -> FloatArray:
    """Distances of each sample to its listed ones, by differences: no digits lost to expansion."""
    if sp.issparse(X):
        squared = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    distances = np.empty(indices.shape)
    for rows in row_blocks(X.shape[0], X.shape[1] * indices.shape[1] if not sp.issparse(X) else 1):
        listed = indices[rows]
        if sp.issparse(X):
            for column in range(listed.shape[1]):
                others = listed[:, column]
                cross = np.asarray(X[rows].multiply(X[others]).sum(axis=1)).ravel()
                gap = squared[rows] + squared[others] - 2 * cross
                distances[rows, column] = np.sqrt(np.maximum(gap, 0.0))
        else:
            gaps = X[listed] - X[rows][:, np.newaxis, :]
            distances[rows] = np.sqrt(np.einsum("ijk,ijk->ij", gaps, gaps))
    return distances


def mean_distance(X: Any, rng: np.random.Generator) -> float:
    """Mean of all entries of the distance matrix, its zero diagonal included (Cai's bandwidth)."""
    n_samples = X.shape[0]
    if n_samples > BANDWIDTH_SAMPLES:
        X = X[np.sort(rng.choice(n_samples, BANDWIDTH_SAMPLES, replace=False))]
    centred = X if sp.issparse(X) else X - X.mean(axis=0)
    chunks = pairwise_distances_chunked(centred, reduce_func=lambda chunk, _: [chunk.sum()])
    return float(sum(total for chunk in chunks for total in chunk)) / X.shape[0] ** 2


def heat_graph(
    X: Any,
    n_neighbors: int,
    bandwidth: float | None,
    rng: np.random.Generator,
    *,
    self_loops: bool = False,
) -> sp.csr_array:
    """The symmetric heat-kernel graph of the samples; None takes the mean distance as bandwidth."""
    neighbours = nearest_neighbours(X, n_neighbors)
    if bandwidth is None:
        bandwidth = mean_distance(X, rng)
        if bandwidth == 0.0:
            raise ParameterError(
                "The mean distance between samples is 0, so no heat kernel can be scaled by it; "
                "all samples are the same. Check that samples are rows."
            )
    check_positive("bandwidth", bandwidth, hint="None takes the mean distance between samples.")
    graph = union_graph(neighbours, heat_weights(neighbours, bandwidth), self_loops=self_loops)
    warn_of_defect(neighbours, graph)
    return graph


def warn_of_defect(neighbours: NeighbourList, graph: sp.csr_array) -> None:
    """Warn, naming the cause, if the graph carries no information."""
    defect = graph_defect(neighbours, graph)
    if defect is not None:
        warnings.warn(
            f"The neighbour graph is degenerate: {defect}. The scores say little about X.",
            DataWarning,
            stacklevel=4,
        )
