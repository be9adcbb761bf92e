"""MCFS: sparse regressions of a spectral embedding of the samples on the features.

1. Embed: Y solves L y = lambda D y on a graph S of the samples (D its degrees, L = D - S), for
   the smallest lambda but the trivial one; the same as Y = D^-1/2 V with V the leading
   eigenvectors of N = D^-1/2 S D^-1/2, mu = 1 - lambda. Y'DY = I.
2. Regress: for each column y, follow the lasso path of |y - X a|^2 + ridge |a|^2, with neither
   intercept nor scaling, to its first knot with ``cardinality`` non-zeros; scale a to length 1.
3. Score: the largest |a_j| of a feature over the columns.

On a graph in C pieces mu = 1 has C eigenvectors, and any rotation of them would do. To have one
answer, the embedding then starts from the indicators of the pieces, the largest first, made
orthogonal to the trivial vector and to each other in that order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import degrees
from keepers.linalg.ordering import levels
from keepers.solvers.lars import Gram, first_knot_of_size

# Up to here a dense eigenproblem is quicker than Lanczos, and nothing is random.
DENSE_SAMPLES = 400
# Eigenvectors to mu this close to 0 are left out, as in Cai's program.
VANISHING = 1e-6
# Where eigenvalues crowd, coordinates that span them roughly have to do. The last always ends.
LANCZOS_TOLS = (1e-10, 1e-5, 1.0)
MOST_RESTARTS = 300


@dataclass(frozen=True)
class Embedding:
    """Coordinates of the samples."""

    Y: FloatArray
    mu: FloatArray
    """1 - lambda of every column of Y, falling."""
    n_pieces: int
    """Connected components of the graph that have an edge."""
    converged: bool
    """Whether the eigensolver reached its tolerance."""


@dataclass(frozen=True)
class MCFSResult:
    """The regressions, and what they say about the features."""

    scores: FloatArray
    coef: FloatArray
    """One row of length 1 for every column of the embedding."""
    n_knots: IndexArray
    """Knots walked along each path."""
    n_short: int
    """Regressions that ended before they had as many non-zeros as asked for."""


def solve_mcfs(X: Any, Y: FloatArray, cardinality: int, ridge: float) -> MCFSResult:
    """Steps 2 and 3, for X an array or a CSR/CSC matrix."""
    gram = Gram(X, ridge)
    covariances = np.asarray(X.T @ Y)
    fits = [first_knot_of_size(gram, covariance, cardinality) for covariance in covariances.T]
    coef = np.zeros((len(fits), gram.size))
    for row, fit in zip(coef, fits, strict=True):
        length = np.linalg.norm(fit.knot.values)
        row[fit.knot.features] = fit.knot.values / (length if length > 0 else 1.0)
    return MCFSResult(
        scores=np.abs(coef).max(axis=0, initial=0.0),
        coef=coef,
        n_knots=np.array([fit.n_knots for fit in fits], dtype=np.intp),
        n_short=sum(not fit.reached for fit in fits),
    )


def embed(graph: sp.csr_array, n_vectors: int, rng: np.random.Generator) -> Embedding:
    """Step 1: ``n_vectors`` columns, less those whose mu vanishes; none if no edge has weight."""
    weight = degrees(graph)
    inverse_root = np.zeros(len(weight))
    np.divide(1.0, np.sqrt(weight), out=inverse_root, where=weight > 0)
    scaling = sp.csr_array(sp.diags(inverse_root))
    N = sp.csr_array(scaling @ graph @ scaling)
    indicators = _piece_indicators(graph, weight)
    n_pieces = indicators.shape[1]
    pieces = _orthogonal_to_trivial(indicators, np.sqrt(weight), n_vectors)
    n_more = min(n_vectors - pieces.shape[1], len(weight) - n_pieces)
    mu, vectors, converged = _leading_outside(N, indicators, n_more, rng)
    kept = np.abs(mu) >= VANISHING
    if not kept.any() and not pieces.shape[1]:
        kept[:] = True
    return Embedding(
        Y=np.concatenate([pieces, vectors[:, kept]], axis=1) * inverse_root[:, np.newaxis],
        mu=np.concatenate([np.ones(pieces.shape[1]), mu[kept]]),
        n_pieces=n_pieces,
        converged=converged,
    )


def _piece_indicators(graph: sp.csr_array, weight: FloatArray) -> sp.csc_array:
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


def _orthogonal_to_trivial(
    indicators: sp.csc_array, trivial: FloatArray, n_vectors: int
) -> FloatArray:
    """The indicators but the last, made orthogonal to D^1/2 1 and then to each other."""
    count = min(n_vectors, max(indicators.shape[1] - 1, 0))
    basis = np.column_stack([trivial, indicators[:, :count].toarray()])
    return np.asarray(np.linalg.qr(basis)[0][:, 1:])


def _leading_outside(
    N: sp.csr_array, indicators: sp.csc_array, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, bool]:
    """The leading eigenpairs of N orthogonal to the pieces, largest first."""
    n_samples = N.shape[0]
    if count <= 0 or not indicators.shape[1]:
        return np.empty(0), np.empty((n_samples, 0)), True
    if n_samples <= DENSE_SAMPLES or 3 * count > n_samples:
        projector = (indicators @ indicators.T).toarray()
        # The pieces move from mu = 1 below everything else, which is at -1 or above.
        deflated = N.toarray() - 3.0 * projector
        mu, vectors = eigh(deflated, subset_by_index=[n_samples - count, n_samples - 1])
        return mu[::-1], vectors[:, ::-1], True
    return _lanczos(N, indicators, count, rng)


def _lanczos(
    N: sp.csr_array, indicators: sp.csc_array, count: int, rng: np.random.Generator
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
