"""Nearest neighbours of samples, and graphs made of them.

Distances come twice. The expansion |x|^2 - 2xy + |y|^2 is fast and finds the candidates; it is
off by rounding, so every pair that could be among the nearest is a candidate. Differences x - y
then decide, and distances that agree to rounding are ties, which go to the lowest index.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.exceptions import DataWarning, ParameterError, warn_caller
from keepers.linalg.graph import Graph, NeighbourList, graph_defect, heat_weights, union_graph
from keepers.linalg.scatter import BLOCK_BYTES, row_blocks
from keepers.methods.parameters import check_value, one_of, positive, whole

# Cai's rule: above this number the mean distance is taken over a random sample of the rows. Up to
# it, the matrix of all products is formed once and serves the neighbours as well.
BANDWIDTH_SAMPLES = 3000
_CACHED_BYTES = 1 << 20
BANDWIDTH = positive() | one_of(None, hint="None takes the mean distance between samples.")


class _Points:
    """The samples, made ready for distances, in an array or a CSR matrix."""

    def __init__(self, X: Any) -> None:
        self.is_sparse = bool(sp.issparse(X))
        if self.is_sparse:
            self.X = self.centred = sp.csr_array(X, dtype=np.float64)
        else:
            self.X = np.asarray(X, dtype=np.float64)
            # The expansion keeps its digits when |x| is not much larger than |x - y|.
            self.centred = self.X - self.X.mean(axis=0)
        self.n_samples, n_features = self.X.shape
        self.squared_norms = self._row_squares(self.centred)
        # Bound on the error of the expansion, relative to |x|^2 + |y|^2, and of a sum of squared
        # differences, relative to the sum.
        self.rounding = (n_features + 4) * float(np.finfo(np.float64).eps)

    def _row_squares(self, rows: Any) -> FloatArray:
        if self.is_sparse:
            return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.asarray(np.einsum("ij,ij->i", rows, rows))

    def _products(self, rows: slice) -> FloatArray:
        products = self.centred[rows] @ self.centred.T
        return np.asarray(products.toarray() if self.is_sparse else products)

    @cached_property
    def _all_products(self) -> FloatArray:
        # One symmetric product is half the work of the products block by block.
        return self._products(slice(None))

    def squared_distances(self) -> Iterator[tuple[slice, FloatArray]]:
        """Squared distances of all pairs, by expansion, some rows at a time; zero to itself."""
        few = self.n_samples <= BANDWIDTH_SAMPLES
        for rows in row_blocks(
            self.n_samples, self.n_samples, _CACHED_BYTES if few else BLOCK_BYTES
        ):
            products = self._all_products[rows] if few else self._products(rows)
            squared = -2.0 * products
            squared += self.squared_norms
            squared += self.squared_norms[rows, np.newaxis]
            np.maximum(squared, 0.0, out=squared)
            squared[np.arange(len(squared)), np.arange(rows.start, rows.stop)] = 0.0
            yield rows, squared

    def pair_distances(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """|x - y| for a list of pairs, by differences."""
        squared = np.empty(len(first))
        for pairs in row_blocks(len(first), self.X.shape[1]):
            squared[pairs] = self._row_squares(self.X[first[pairs]] - self.X[second[pairs]])
        return np.sqrt(squared)


def nearest_neighbours(X: Any, n_neighbors: int) -> NeighbourList:
    """The ``n_neighbors`` nearest other samples of every sample; X as it is, not scaled.

    A sample is excluded from its own list by its index, not by its position: among duplicates it
    need not come first.
    """
    return _nearest(_Points(X), n_neighbors)


def _nearest(points: _Points, n_neighbors: int) -> NeighbourList:
    n = points.n_samples
    hint = f"X has {n} samples, and a sample is not its own neighbour."
    check_value("n_neighbors", n_neighbors, whole(at_most=n - 1, hint=hint))
    pairs = [
        _candidates(points, rows, squared, n_neighbors)
        for rows, squared in points.squared_distances()
    ]
    first, second = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return _first_of_each(points, n_neighbors, first, second)


def _candidates(
    points: _Points, rows: slice, squared: FloatArray, n_neighbors: int
) -> tuple[IndexArray, IndexArray]:
    """Pairs that are among the nearest, or could be but for the rounding of the expansion."""
    squared[np.arange(len(squared)), np.arange(rows.start, rows.stop)] = np.inf
    furthest = np.partition(squared, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    reach = _add_rounding(points, rows, furthest)
    which, second = np.nonzero(squared <= reach[:, np.newaxis])
    return rows.start + which, second


def _add_rounding(points: _Points, rows: slice, squared: FloatArray) -> FloatArray:
    """A bound that no pair within ``squared`` of these rows exceeds by rounding.

    An entry is off by at most ``rounding`` (|x|^2 + |y|^2), |y|^2 <= 2 |x|^2 + 2 |x - y|^2, and
    both the bound and the entries compared with it are off. Pairs that count as ties are within.
    """
    return squared + 10.0 * points.rounding * (points.squared_norms[rows] + squared)


def _first_of_each(
    points: _Points, n_neighbors: int, first: IndexArray, second: IndexArray
) -> NeighbourList:
    """The nearest of each sample among candidate pairs, by distance; ties by index.

    Distances that differ by rounding are ties, or layout and CPU would decide between neighbours.
    """
    low, high = np.minimum(first, second), np.maximum(first, second)
    pairs, place = np.unique(low * points.n_samples + high, return_inverse=True)
    distances = points.pair_distances(*np.divmod(pairs, points.n_samples))[place]
    order = np.lexsort((distances, first))
    ascending = distances[order]
    apart = np.diff(ascending) > 2.0 * points.rounding * ascending[1:]
    apart |= np.diff(first[order]) > 0
    level = np.concatenate([[0], np.cumsum(apart)])
    order = order[np.lexsort((second[order], level))]
    starts = np.searchsorted(first[order], np.arange(points.n_samples))
    chosen = order[starts[:, np.newaxis] + np.arange(n_neighbors)]
    return NeighbourList(second[chosen], distances[chosen])


def _mean_distance(points: _Points, rng: np.random.Generator) -> float:
    """Mean of all entries of the distance matrix, its zero diagonal included (Cai's bandwidth)."""
    if points.n_samples > BANDWIDTH_SAMPLES:
        rows = np.sort(rng.choice(points.n_samples, BANDWIDTH_SAMPLES, replace=False))
        points = _Points(points.X[rows])
    total = sum(float(np.sqrt(squared).sum()) for _, squared in points.squared_distances())
    return total / points.n_samples**2


def heat_graph(
    X: Any,
    n_neighbors: int,
    bandwidth: float | None,
    rng: np.random.Generator,
    *,
    self_loops: bool = False,
) -> sp.csr_array:
    """The symmetric heat-kernel graph of the samples; None takes the mean distance as bandwidth."""
    points = _Points(X)
    neighbours = _nearest(points, n_neighbors)
    width = _mean_distance(points, rng) if bandwidth is None else bandwidth
    _refuse_zero_width(width)
    graph = union_graph(neighbours, heat_weights(neighbours, width), self_loops=self_loops)
    warn_of_defect(graph, neighbours)
    return graph


def binary_graph(X: Any, n_neighbors: int, *, self_loops: bool = False) -> sp.csr_array:
    """The symmetric graph of the samples with weight 1 on every edge."""
    neighbours = nearest_neighbours(X, n_neighbors)
    graph = union_graph(neighbours, self_loops=self_loops)
    warn_of_defect(graph, neighbours)
    return graph


def full_heat_graph(X: Any, bandwidth: float | None) -> FloatArray:
    """A heat-kernel weight for every pair of samples, as an array, and none of one with itself.

    None takes the mean distance as bandwidth, over all samples however many there are.
    """
    points = _Points(X)
    graph = np.sqrt(np.concatenate([squared for _, squared in points.squared_distances()]))
    width = float(graph.mean()) if bandwidth is None else bandwidth
    _refuse_zero_width(width)
    with np.errstate(over="ignore"):  # a square past 1e308 has the weight exp(-inf) = 0
        np.square(graph / width, out=graph)
        np.exp(-0.5 * graph, out=graph)
    np.fill_diagonal(graph, 0.0)
    warn_of_defect(graph)
    return graph


def _refuse_zero_width(width: float) -> None:
    if width == 0.0:
        raise ParameterError(
            "The mean distance between samples is 0, so no heat kernel can be scaled by it; "
            "all samples are the same. Check that samples are rows."
        )


def warn_of_defect(graph: Graph, neighbours: NeighbourList | None = None) -> None:
    """Warn, naming the cause, if the graph carries no information, as `graph_defect` does."""
    defect = graph_defect(graph, neighbours)
    if defect is not None:
        warn_caller(
            f"The neighbour graph is degenerate: {defect}. The scores say little about X.",
            DataWarning,
        )
