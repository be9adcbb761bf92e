"""Nearest neighbours and the bandwidth of the heat kernel, through scikit-learn.

Distances come twice. The expansion |x|^2 - 2xy + |y|^2 is fast and finds the candidates; it is
off by rounding, so every pair that could be among the nearest is a candidate. Differences x - y
then decide, and distances that agree to rounding are ties, which go to the lowest index.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.exceptions import DataWarning, ParameterError, warn_caller
from keepers.linalg.graph import (
    NeighbourList,
    full_graph_defect,
    graph_defect,
    heat_weights,
    union_graph,
)
from keepers.linalg.moments import row_blocks
from keepers.linalg.storage import by_rows
from keepers.selectors.parameters import check_bandwidth, check_count

# Cai's rule: past this many samples the mean distance is taken over a random sample of them. Up to
# it, the matrix of all distances is formed once and serves the neighbours as well.
BANDWIDTH_SAMPLES = 3000
_CACHED_BYTES = 1 << 20


class _Points:
    """The samples, made ready for distances, in an array or a CSR matrix."""

    def __init__(self, X: Any) -> None:
        self.is_sparse = bool(sp.issparse(X))
        if self.is_sparse:
            self.X = self.centred = sp.csr_array(X, dtype=np.float64)
        else:
            self.X = np.asarray(X, dtype=np.float64)
            # The expansion keeps its digits when |x| is not large beside |x - y|.
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

    def _products(self, rows: Any) -> FloatArray:
        products = self.centred[rows] @ self.centred.T
        return np.asarray(products.toarray() if self.is_sparse else products)

    def squared_distances(self, rows: Any) -> FloatArray:
        """Of some samples (slice or indices) to all of them, by expansion."""
        return self._expand(self._products(rows), rows)

    def squared_distance_blocks(self) -> Iterator[tuple[IndexArray, FloatArray]]:
        """Of all samples to all of them, some rows at a time; for tables with few samples.

        One symmetric product is half the work of the products block by block, and what is done
        with a block that fits in a cache costs a fraction of what it would on the whole.
        """
        products = self._products(slice(None))
        for rows in row_blocks(self.n_samples, self.n_samples, _CACHED_BYTES):
            yield np.arange(self.n_samples)[rows], self._expand(products[rows], rows)

    def _expand(self, squared: FloatArray, rows: Any) -> FloatArray:
        """|x|^2 - 2xy + |y|^2 from the products xy, in place; never negative, zero to itself."""
        squared *= -2.0
        squared += self.squared_norms
        squared += self.squared_norms[rows][:, np.newaxis]
        np.maximum(squared, 0.0, out=squared)
        squared[np.arange(len(squared)), np.arange(self.n_samples)[rows]] = 0.0
        return np.asarray(squared)

    def pair_distances(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """|x - y| for a list of pairs, by differences."""
        squared = np.empty(len(first))
        for pairs in row_blocks(len(first), self.X.shape[1]):
            squared[pairs] = self._row_squares(self.X[first[pairs]] - self.X[second[pairs]])
        return np.sqrt(squared)


def nearest_neighbours(X: Any, n_neighbors: int, *, spare: int = 1) -> NeighbourList:
    """The ``n_neighbors`` nearest other samples of every sample; X as it is, not scaled.

    A sample is excluded from its own list by its index, not by its position: among duplicates it
    need not come first. At most n_samples - ``spare`` neighbours can be asked for.
    """
    _check_neighbors(n_neighbors, X.shape[0], spare)
    points = _Points(X)
    if points.n_samples > BANDWIDTH_SAMPLES:
        return _search_neighbours(points, n_neighbors)
    pairs = [
        _candidates(points, rows, squared, n_neighbors)
        for rows, squared in points.squared_distance_blocks()
    ]
    return _first_of_each(points, n_neighbors, *_concatenate(pairs))


def _check_neighbors(n_neighbors: Any, n_samples: int, spare: int = 1) -> None:
    check_count(
        "n_neighbors",
        n_neighbors,
        at_most=n_samples - spare,
        hint=f"X has {n_samples} samples, and a sample is not its own neighbour.",
    )


def _concatenate(pairs: list[tuple[IndexArray, IndexArray]]) -> tuple[IndexArray, IndexArray]:
    """Lists of pairs, one after the other."""
    first, second = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return first, second


def _candidates(
    points: _Points, rows: IndexArray, squared: FloatArray, n_neighbors: int
) -> tuple[IndexArray, IndexArray]:
    """Pairs that are among the nearest, or could be but for the rounding of the expansion."""
    squared[np.arange(len(rows)), rows] = np.inf
    reach = _add_rounding(points, rows, _bound_of_nearest(squared, n_neighbors))
    which, second = np.nonzero(squared <= reach[:, np.newaxis])
    few = squared[which, second]
    order = np.lexsort((few, which))
    starts = np.searchsorted(which, np.arange(len(rows)))
    reach = _add_rounding(points, rows, few[order[starts + n_neighbors - 1]])
    kept = few <= reach[which]
    return rows[which[kept]], second[kept]


def _bound_of_nearest(squared: FloatArray, n_neighbors: int) -> FloatArray:
    """A distance within which every row has ``n_neighbors`` entries, and not many more.

    Exact if the row is short; else from the minima of groups of columns, which is much quicker.
    """
    n_rows, n_columns = squared.shape
    n_groups = max(128, 8 * n_neighbors)
    depth = n_columns // n_groups
    if depth > 1:
        squared = squared[:, : depth * n_groups].reshape(n_rows, depth, n_groups).min(axis=1)
    return np.asarray(np.partition(squared, n_neighbors - 1, axis=1)[:, n_neighbors - 1])


def _add_rounding(points: _Points, rows: IndexArray, squared: FloatArray) -> FloatArray:
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


def _search_neighbours(points: _Points, n_neighbors: int) -> NeighbourList:
    """Through scikit-learn's search, and once more where it may have cut through a tie."""
    n_samples = points.n_samples
    everyone = np.arange(n_samples)
    index = NearestNeighbors(n_neighbors=min(n_neighbors + 2, n_samples)).fit(points.centred)
    found_distances, found = index.kneighbors(points.centred)
    other = found != everyone[:, np.newaxis]
    first, second = np.nonzero(other)[0], found[other]
    listed = _first_of_each(points, n_neighbors, first, second)
    doubtful = _may_miss_some(points, listed, found_distances[:, -1])
    if found.shape[1] == n_samples or not doubtful.any():
        return listed
    kept = ~doubtful[first]
    pairs = [(first[kept], second[kept])]
    rows = np.flatnonzero(doubtful)
    for block in row_blocks(len(rows), n_samples):
        squared = points.squared_distances(rows[block])
        pairs.append(_candidates(points, rows[block], squared, n_neighbors))
    return _first_of_each(points, n_neighbors, *_concatenate(pairs))


def _may_miss_some(points: _Points, listed: NeighbourList, searched: FloatArray) -> BoolArray:
    """Samples for which one not found could be as near as the last one listed."""
    reach = listed.distances[:, -1] ** 2
    return np.asarray(searched**2 <= _add_rounding(points, np.arange(points.n_samples), reach))


def mean_distance(X: Any, rng: np.random.Generator) -> float:
    """Mean of all entries of the distance matrix, its zero diagonal included (Cai's bandwidth)."""
    n_samples = X.shape[0]
    if n_samples > BANDWIDTH_SAMPLES:
        rows = np.sort(rng.choice(n_samples, BANDWIDTH_SAMPLES, replace=False))
        X = by_rows(X)[rows]
    blocks = _Points(X).squared_distance_blocks()
    return sum(float(np.sqrt(squared).sum()) for _, squared in blocks) / X.shape[0] ** 2


def heat_graph(
    X: Any,
    n_neighbors: int,
    bandwidth: float | None,
    rng: np.random.Generator,
    *,
    self_loops: bool = False,
) -> sp.csr_array:
    """The symmetric heat-kernel graph of the samples; None takes the mean distance as bandwidth."""
    check_bandwidth(bandwidth)
    if X.shape[0] > BANDWIDTH_SAMPLES:
        neighbours = nearest_neighbours(X, n_neighbors)
        width = mean_distance(X, rng) if bandwidth is None else bandwidth
    else:
        _check_neighbors(n_neighbors, X.shape[0])
        points = _Points(X)
        total, pairs = 0.0, []
        for rows, squared in points.squared_distance_blocks():
            total += float(np.sqrt(squared).sum())
            pairs.append(_candidates(points, rows, squared, n_neighbors))
        neighbours = _first_of_each(points, n_neighbors, *_concatenate(pairs))
        width = total / X.shape[0] ** 2 if bandwidth is None else bandwidth
    _refuse_zero_width(width)
    graph = union_graph(neighbours, heat_weights(neighbours, width), self_loops=self_loops)
    warn_of_defect(neighbours, graph)
    return graph


def binary_graph(X: Any, n_neighbors: int, *, self_loops: bool = False) -> sp.csr_array:
    """The symmetric graph of the samples with weight 1 on every edge."""
    neighbours = nearest_neighbours(X, n_neighbors)
    graph = union_graph(neighbours, self_loops=self_loops)
    warn_of_defect(neighbours, graph)
    return graph


def full_heat_graph(X: Any, bandwidth: float | None) -> FloatArray:
    """A heat-kernel weight for every pair of samples, as an array, and none of one with itself.

    None takes the mean distance as bandwidth, over all samples however many there are.
    """
    check_bandwidth(bandwidth)
    graph = _Points(X).squared_distances(slice(None))
    blocks = row_blocks(len(graph), len(graph), _CACHED_BYTES)
    total = sum(float(np.sqrt(graph[rows]).sum()) for rows in blocks)
    width = total / graph.size if bandwidth is None else bandwidth
    _refuse_zero_width(width)
    with np.errstate(over="ignore"):  # a square past 1e308 has the weight exp(-inf) = 0
        for rows in blocks:
            scaled = np.sqrt(graph[rows]) / width
            np.exp(-0.5 * scaled * scaled, out=graph[rows])
    np.fill_diagonal(graph, 0.0)
    defect = full_graph_defect(graph)
    if defect is not None:
        _warn_of_degenerate_graph(defect)
    return graph


def _refuse_zero_width(width: float) -> None:
    if width == 0.0:
        raise ParameterError(
            "The mean distance between samples is 0, so no heat kernel can be scaled by it; "
            "all samples are the same. Check that samples are rows."
        )


def warn_of_defect(neighbours: NeighbourList, graph: sp.csr_array) -> None:
    """Warn, naming the cause, if the graph carries no information."""
    defect = graph_defect(neighbours, graph)
    if defect is not None:
        _warn_of_degenerate_graph(defect)


def _warn_of_degenerate_graph(defect: str) -> None:
    warn_caller(
        f"The neighbour graph is degenerate: {defect}. The scores say little about X.",
        DataWarning,
    )
