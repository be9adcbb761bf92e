"""Graphs of samples from lists of nearest neighbours: Laplacians, spectra, reconstructions."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.ordering import levels
from keepers.linalg.scatter import row_blocks, row_sums

Graph = Any
"""A symmetric graph of the samples: a CSR matrix, or an array with a weight for every pair."""

# Below this, a degree is the sum of weights that underflowed.
_VANISHED = 1e-200
# Added to the diagonal of a singular G, as a share of its trace, as in the authors' RNE. G is
# singular if its smallest eigenvalue is below the second share of the largest.
RIDGE, SINGULAR_RATIO = 1e-3, 1e-12
# Up to here a dense eigenproblem is quicker than Lanczos, and nothing is random.
DENSE_SAMPLES = 400
# Where eigenvalues crowd, vectors that span them roughly have to do. The last always ends.
LANCZOS_TOLS = (1e-10, 1e-5, 1.0)
MOST_RESTARTS = 300


@dataclass(frozen=True)
class NeighbourList:
    """For each sample its k nearest others, nearest first, ties by lowest index."""

    indices: IndexArray
    distances: FloatArray
    """Euclidean, not squared; n x k as ``indices``."""

    @property
    def n_neighbors(self) -> int:
        """Neighbours per sample, k."""
        return int(self.indices.shape[1])


def heat_weights(neighbours: NeighbourList, bandwidth: float) -> FloatArray:
    """exp(-distance^2 / (2 bandwidth^2)) for every entry of the list."""
    with np.errstate(over="ignore"):  # a square beyond 1e308 has the weight exp(-inf) = 0
        scaled = neighbours.distances / bandwidth
        return np.asarray(np.exp(-0.5 * scaled * scaled))


def union_graph(
    neighbours: NeighbourList, weights: FloatArray | None = None, *, self_loops: bool = False
) -> sp.csr_array:
    """Symmetric graph with an edge where either sample lists the other.

    ``weights`` has the shape of the list; None: ones. ``self_loops`` adds ones on the diagonal, as
    scikit-feature does.
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


def laplacian(graph: Graph) -> Graph:
    """D - S, stored as S is."""
    if not sp.issparse(graph):
        L = -graph
        L.flat[:: len(L) + 1] += row_sums(graph)
        return L
    return sp.csr_array(sp.csr_array(sp.diags(row_sums(graph))) - graph)


def graph_defect(graph: Graph, neighbours: NeighbourList | None = None) -> str | None:
    """The reason why a graph carries no information, in words; None if it carries some.

    ``neighbours``: the list that it was made of; None: it has a weight for every pair.
    """
    n_samples = graph.shape[0]
    to_others = row_sums(graph) - graph.diagonal()
    isolated = int(np.sum(to_others <= _VANISHED))
    if isolated == n_samples:
        return "all heat weights underflow to zero: the bandwidth is far below the distances"
    if isolated:
        return f"{isolated} of {n_samples} samples have no neighbour of non-zero weight"
    if neighbours is None:
        of_equal = (n_samples - 1) * graph.max() * (1.0 - 1e-12)
        flat, all_pairs = n_samples > 2 and to_others.min() >= of_equal, True
    else:
        if not np.any(neighbours.distances):
            return "all samples coincide with their neighbours: every distance is zero"
        flat = np.ptp(neighbours.distances) <= 1e-12 * neighbours.distances.max()
        all_pairs = neighbours.n_neighbors == n_samples - 1
    if flat and all_pairs:
        return "all samples are equally far from each other: every pair has the same weight"
    if flat:
        return "all neighbours are equally far: which samples are neighbours is decided by ties"
    return None


@dataclass(frozen=True)
class GraphSpectrum:
    """Eigenpairs of N = D^-1/2 S D^-1/2 for a graph S >= 0 with degrees D, without the trivial one.

    The trivial one is D^1/2 1, mu = 1; 1 - mu are eigenvalues of the normalised Laplacian. Samples
    without an edge have zeros, also in D^-1/2.
    """

    vectors: FloatArray
    """Orthonormal columns."""
    mu: FloatArray
    """Their eigenvalues, falling."""
    root_degrees: FloatArray
    inverse_root_degrees: FloatArray
    n_pieces: int
    """Connected components of the graph that have an edge."""
    converged: bool
    """True if the eigensolver reached its tolerance."""


def leading_eigenvectors(
    graph: Graph, n_vectors: int, rng: np.random.Generator, *, whole_pieces: bool = False
) -> GraphSpectrum:
    """The ``n_vectors`` leading eigenvectors of N without the trivial one, or all there are.

    On a graph in C pieces mu = 1 has C eigenvectors, unique up to rotation. We take the indicators
    of the pieces, the largest first, made orthogonal to the trivial vector and to each other in
    that order. ``whole_pieces`` adds those that ``n_vectors`` would cut off: then the span does not
    depend on this choice.
    """
    weight = row_sums(graph)
    root = np.sqrt(weight)
    inverse_root = np.zeros(len(weight))
    np.divide(1.0, root, out=inverse_root, where=weight > 0)
    indicators = _piece_indicators(graph, weight)
    n_pieces = indicators.shape[1]
    if whole_pieces:
        n_vectors = max(n_vectors, n_pieces - 1)
    n_indicated = min(n_vectors, max(n_pieces - 1, 0))
    pieces = np.linalg.qr(np.column_stack([root, indicators[:, :n_indicated].toarray()]))[0][:, 1:]
    n_more = min(n_vectors - n_indicated, len(weight) - n_pieces)
    if sp.issparse(graph):
        scaling = sp.csr_array(sp.diags(inverse_root))
        N = sp.csr_array(scaling @ graph @ scaling)
    else:
        N = graph * inverse_root
        N *= inverse_root[:, np.newaxis]
    mu, vectors, converged = _leading_outside(N, indicators, n_more, rng)
    return GraphSpectrum(
        vectors=np.concatenate([pieces, vectors], axis=1),
        mu=np.concatenate([np.ones(n_indicated), mu]),
        root_degrees=root,
        inverse_root_degrees=inverse_root,
        n_pieces=n_pieces,
        converged=converged,
    )


def _piece_indicators(graph: Graph, weight: FloatArray) -> sp.csc_array:
    """D^1/2 1_C of unit length for each connected piece C, by falling volume."""
    n_labels, labels = connected_components(graph, directed=False)
    volume = np.bincount(labels, weights=weight, minlength=n_labels).astype(np.float64)
    order = np.argsort(-levels(volume), kind="stable")[: np.count_nonzero(volume)]
    place = np.full(n_labels, -1)
    place[order] = np.arange(len(order))
    inside = np.flatnonzero(place[labels] >= 0)
    values = np.sqrt(weight[inside] / volume[labels[inside]])
    shape = (len(weight), len(order))
    return sp.csc_array((values, (inside, place[labels[inside]])), shape=shape)


def _leading_outside(
    N: Graph, indicators: sp.csc_array, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, bool]:
    """The leading eigenpairs of N orthogonal to the pieces, largest first."""
    n_samples = N.shape[0]
    if count <= 0 or not indicators.shape[1]:
        return np.empty(0), np.empty((n_samples, 0)), True
    if n_samples <= DENSE_SAMPLES or 3 * count > n_samples:
        projector = (indicators @ indicators.T).toarray()
        # The pieces move from mu = 1 below everything else, which is at -1 or above.
        deflated = (N.toarray() if sp.issparse(N) else N) - 3.0 * projector
        mu, vectors = eigh(deflated, subset_by_index=[n_samples - count, n_samples - 1])
        return mu[::-1], vectors[:, ::-1], True
    return _lanczos(N, indicators, count, rng)


def _lanczos(
    N: Graph, indicators: sp.csc_array, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, bool]:
    """The same by ARPACK."""
    across = sp.csr_array(indicators.T)
    n_samples = N.shape[0]

    def deflate(v: FloatArray) -> FloatArray:
        return np.asarray(N @ v - 3.0 * (indicators @ (across @ v)))

    operator = LinearOperator(N.shape, matvec=deflate, dtype=np.float64)
    start = rng.standard_normal(n_samples)
    start -= indicators @ (across @ start)
    ncv = min(n_samples, max(4 * count, 40))
    settings = {"k": count, "which": "LA", "v0": start, "ncv": ncv, "maxiter": MOST_RESTARTS}
    for tol in LANCZOS_TOLS:
        with contextlib.suppress(ArpackNoConvergence):
            mu, vectors = eigsh(operator, tol=tol, **settings)
            break
    order = np.argsort(-mu, kind="stable")
    return mu[order], vectors[:, order], tol == LANCZOS_TOLS[0]


def reconstruction_weights(X: FloatArray, neighbours: NeighbourList) -> sp.csr_array:
    """Weights W that rebuild each sample from its neighbours, as in locally linear embedding.

    For sample i with neighbours N(i), the weights minimise |x_i - sum_j w_j x_j|^2 under
    sum_j w_j = 1: with G the Gram matrix of the differences x_j - x_i, they solve G w = 1 and are
    divided by their sum.
    """
    n_samples, n_neighbors = neighbours.indices.shape
    weights = np.empty((n_samples, n_neighbors))
    for rows in row_blocks(n_samples, X.shape[1] * n_neighbors):
        differences = X[neighbours.indices[rows]] - X[rows][:, np.newaxis, :]
        weights[rows] = _solve_for_weights(differences @ differences.transpose(0, 2, 1))
    starts = np.arange(0, n_samples * n_neighbors + 1, n_neighbors)
    matrix = sp.csr_array(
        (weights.ravel(), neighbours.indices.ravel(), starts), shape=(n_samples, n_samples)
    )
    matrix.sort_indices()
    return matrix


def reconstruction_laplacian(weights: sp.csr_array) -> sp.csr_array:
    """(I - W)'(I - W), positive semi-definite and zero on the constant like a Laplacian."""
    rest = sp.csr_array(sp.eye_array(weights.shape[0]) - weights)
    return sp.csr_array(rest.T @ rest)


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
