"""Leading eigenvectors of a graph of the samples, without the trivial one.

For a symmetric graph S >= 0, sparse or dense, with degrees D, these are eigenvectors of

    N = D^-1/2 S D^-1/2,      N D^1/2 1 = D^1/2 1 (the trivial one, mu = 1),

the largest mu first; 1 - mu are eigenvalues of the normalised Laplacian. Samples without an edge
have zeros.

On a graph in C pieces mu = 1 has C eigenvectors, and any rotation of them would do. To have one
answer, the vectors then start from the indicators of the pieces, the largest first, made
orthogonal to the trivial vector and to each other in that order; the others are orthogonal to all.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import Graph, degrees
from keepers.linalg.ordering import levels

# Up to here a dense eigenproblem is quicker than Lanczos, and nothing is random.
DENSE_SAMPLES = 400
# Where eigenvalues crowd, vectors that span them roughly have to do. The last always ends.
LANCZOS_TOLS = (1e-10, 1e-5, 1.0)
MOST_RESTARTS = 300


@dataclass(frozen=True)
class GraphSpectrum:
    """Eigenpairs of N."""

    vectors: FloatArray
    """Orthonormal columns."""
    mu: FloatArray
    """Their eigenvalues, falling."""
    root_degrees: FloatArray
    """D^1/2."""
    inverse_root_degrees: FloatArray
    """D^-1/2; 0 for samples without an edge."""
    n_pieces: int
    """Connected components of the graph that have an edge."""
    converged: bool
    """Whether the eigensolver reached its tolerance."""


def leading_eigenvectors(
    graph: Graph, n_vectors: int, rng: np.random.Generator, *, whole_pieces: bool = False
) -> GraphSpectrum:
    """The ``n_vectors`` leading eigenvectors of N but the trivial one, or as many as there are.

    ``whole_pieces`` adds those of mu = 1 that ``n_vectors`` would cut off: with all of them, or
    with none, the span does not depend on a choice of basis.
    """
    weight = degrees(graph)
    root = np.sqrt(weight)
    inverse_root = np.zeros(len(weight))
    np.divide(1.0, root, out=inverse_root, where=weight > 0)
    indicators = _piece_indicators(graph, weight)
    n_pieces = indicators.shape[1]
    if whole_pieces:
        n_vectors = max(n_vectors, n_pieces - 1)
    pieces = _orthogonal_to_trivial(indicators, root, n_vectors)
    n_more = min(n_vectors - pieces.shape[1], len(weight) - n_pieces)
    N = _scale_both_sides(graph, inverse_root)
    mu, vectors, converged = _leading_outside(N, indicators, n_more, rng)
    return GraphSpectrum(
        vectors=np.concatenate([pieces, vectors], axis=1),
        mu=np.concatenate([np.ones(pieces.shape[1]), mu]),
        root_degrees=root,
        inverse_root_degrees=inverse_root,
        n_pieces=n_pieces,
        converged=converged,
    )


def _scale_both_sides(graph: Graph, factors: FloatArray) -> Graph:
    """diag(factors) S diag(factors)."""
    if sp.issparse(graph):
        scaling = sp.csr_array(sp.diags(factors))
        return sp.csr_array(scaling @ graph @ scaling)
    scaled = graph * factors
    scaled *= factors[:, np.newaxis]
    return scaled


def _piece_indicators(graph: Graph, weight: FloatArray) -> sp.csc_array:
    """D^1/2 1_C of unit length for each connected piece C, by falling volume."""
    n_labels, labels = _label_pieces(graph)
    volume = np.bincount(labels, weights=weight, minlength=n_labels).astype(np.float64)
    order = np.argsort(-levels(volume), kind="stable")[: np.count_nonzero(volume)]
    place = np.full(n_labels, -1)
    place[order] = np.arange(len(order))
    inside = np.flatnonzero(place[labels] >= 0)
    values = np.sqrt(weight[inside] / volume[labels[inside]])
    shape = (len(weight), len(order))
    return sp.csc_array((values, (inside, place[labels[inside]])), shape=shape)


def _label_pieces(graph: Graph) -> tuple[int, IndexArray]:
    """How many connected pieces there are, and which one every sample belongs to."""
    if not sp.issparse(graph):
        n_others = np.count_nonzero(graph, axis=1) - (graph.diagonal() != 0.0)
        if n_others.max(initial=0) == len(graph) - 1:  # a sample is joined to all others
            return 1, np.zeros(len(graph), dtype=np.intp)
    n_labels, labels = connected_components(graph, directed=False)
    return int(n_labels), labels


def _orthogonal_to_trivial(
    indicators: sp.csc_array, trivial: FloatArray, n_vectors: int
) -> FloatArray:
    """The indicators but the last, made orthogonal to D^1/2 1 and then to each other."""
    count = min(n_vectors, max(indicators.shape[1] - 1, 0))
    basis = np.column_stack([trivial, indicators[:, :count].toarray()])
    return np.asarray(np.linalg.qr(basis)[0][:, 1:])


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
    across = sp.csr_array(indicators.T)
    n_samples = N.shape[0]

    def deflate(v: FloatArray) -> FloatArray:
        return np.asarray(N @ v - 3.0 * (indicators @ (across @ v)))

    operator = LinearOperator(N.shape, matvec=deflate, dtype=np.float64)
    start = rng.standard_normal(n_samples)
    start -= indicators @ (across @ start)
    settings = {
        "k": count,
        "which": "LA",
        "v0": start,
        "ncv": min(n_samples, max(4 * count, 40)),
        "maxiter": MOST_RESTARTS,
    }
    for tol in LANCZOS_TOLS:
        try:
            mu, vectors = eigsh(operator, tol=tol, **settings)
            break
        except ArpackNoConvergence:
            continue
    order = np.argsort(-mu, kind="stable")
    return mu[order], vectors[:, order], tol == LANCZOS_TOLS[0]
