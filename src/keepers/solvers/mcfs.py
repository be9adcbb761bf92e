"""MCFS: sparse regressions of a spectral embedding of the samples on the features.

1. Embed: Y solves L y = lambda D y on a graph S of the samples (D its degrees, L = D - S), for
   the smallest lambda but the trivial one; the same as Y = D^-1/2 V with V the leading
   eigenvectors of N = D^-1/2 S D^-1/2, mu = 1 - lambda. Y'DY = I.
2. Regress: for each column y, follow the lasso path of |y - X a|^2 + ridge |a|^2, with neither
   intercept nor scaling, to its first knot with ``cardinality`` non-zeros; scale a to length 1.
3. Score: the largest |a_j| of a feature over the columns.

On a graph in pieces the first columns are constant on each; `keepers.linalg.graph_spectrum` tells
which ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph_spectrum import leading_eigenvectors
from keepers.solvers.lars import Gram, SparseFit, first_knots_of_sizes

# Eigenvectors to mu this close to 0 are left out, as in Cai's program.
VANISHING = 1e-6


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


def solve_mcfs(
    X: Any, Y: FloatArray, cardinalities: Sequence[int], ridge: float
) -> list[MCFSResult]:
    """Steps 2 and 3 for each cardinality, along one path; X is an array or a CSR/CSC matrix."""
    gram = Gram(X, ridge)
    covariances = np.asarray(X.T @ Y)
    fits = [first_knots_of_sizes(gram, covariance, cardinalities) for covariance in covariances.T]
    return [
        _summarise([of_vector[place] for of_vector in fits], gram.size)
        for place in range(len(cardinalities))
    ]


def _summarise(fits: Sequence[SparseFit], n_features: int) -> MCFSResult:
    """The regressions of one cardinality, scaled to length 1."""
    coef = np.zeros((len(fits), n_features))
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
    spectrum = leading_eigenvectors(graph, n_vectors, rng)
    kept = np.abs(spectrum.mu) >= VANISHING
    if not kept.any():
        kept[:] = True
    return Embedding(
        Y=spectrum.vectors[:, kept] * spectrum.inverse_root_degrees[:, np.newaxis],
        mu=spectrum.mu[kept],
        n_pieces=spectrum.n_pieces,
        converged=spectrum.converged,
    )
