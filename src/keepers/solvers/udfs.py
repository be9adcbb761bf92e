"""UDFS: unsupervised discriminative feature selection (Yang, Shen, Ma, Huang and Zhou, 2011).

    minimise  Tr(W'MW) + gamma * |W|_{2,1}   over W'W = I,      M = X' Lbar X

Lbar adds up, over every sample and its k nearest neighbours (a patch of k + 1 rows, centred to
Z_i), how badly a linear map can tell the rows of the patch apart:

    Lbar = sum_i P_i' H B_i H P_i,      B_i = (Z_i Z_i' + lambda I)^-1,      H = I - 11'/(k + 1),

P_i picking the rows of the patch. Steps: the sparse Lbar from all patches; M as a matrix (d <= n)
or as a product of thin factors (d > n); then the reweighting of `keepers.solvers.reweighting`.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.quadratic_form import QuadraticForm
from keepers.solvers.reweighting import first_weights, row_sparse_projection

__all__ = ["UDFSResult", "patch_laplacian", "solve_udfs"]


@dataclass(frozen=True)
class UDFSResult:
    """Where the iteration ended."""

    W: FloatArray
    squared_norms: FloatArray
    """|w_j|^2; they sum to the number of columns of W."""
    objective: FloatArray
    """Smoothed objective after every step; it never rises."""
    n_iter: int
    converged: bool


def patch_laplacian(X: FloatArray, neighbours: IndexArray, regularization: float) -> sp.csr_array:
    """Lbar of centred data X, from the n x k list of neighbours; symmetric, and Lbar 1 = 0."""
    n_samples = X.shape[0]
    patches = np.column_stack([np.arange(n_samples), neighbours])
    width = patches.shape[1]
    blocks = np.empty((n_samples, width, width))
    for rows in row_blocks(n_samples, width * X.shape[1]):
        blocks[rows] = _patch_blocks(X[patches[rows]], regularization)
    rows_of = np.repeat(patches, width, axis=1)
    columns_of = np.tile(patches, (1, width))
    Lbar = sp.csr_array(
        (blocks.ravel(), (rows_of.ravel(), columns_of.ravel())), shape=(n_samples, n_samples)
    )
    return sp.csr_array((Lbar + Lbar.T) / 2)


def _patch_blocks(patches: FloatArray, regularization: float) -> FloatArray:
    """H (ZZ' + lambda I)^-1 H for a stack of patches (b x (k + 1) x d)."""
    width = patches.shape[1]
    Z = patches - patches.mean(axis=1, keepdims=True)
    gram = Z @ Z.transpose(0, 2, 1)
    H = np.eye(width) - 1.0 / width
    # ZZ' vanishes along 1, and H drops that direction again: any value may stand there, and the
    # mean of the others keeps the system as well conditioned as it can be.
    filler = np.trace(gram, axis1=1, axis2=2)[:, np.newaxis, np.newaxis] / width**2
    system = gram + filler + regularization * np.eye(width)
    return np.asarray(H @ np.linalg.solve(system, np.broadcast_to(H, gram.shape)))


def solve_udfs(
    form: QuadraticForm,
    gamma: float,
    n_clusters: int,
    spread: FloatArray,
    rng: np.random.Generator,
    *,
    max_iter: int = 100,
    tol: float = 1e-8,
    tie_breaker: bool = True,
) -> UDFSResult:
    """Minimise over W with ``n_clusters`` columns.

    ``spread`` is the standard deviation of each feature; it decides ties only. The iteration ends
    when a step lowers the objective by no more than ``tol``, relatively; a negative ``tol`` makes
    exactly ``max_iter`` steps.
    """

    def has_settled(history: list[float]) -> bool:
        return history[-2] - history[-1] <= tol * abs(history[-1])

    found = row_sparse_projection(
        form,
        gamma,
        n_clusters,
        first_weights(spread, tie_breaker=tie_breaker),
        rng,
        max_iter=max_iter,
        has_settled=has_settled,
    )
    return UDFSResult(found.W, found.squared_norms, found.objective, found.n_iter, found.converged)
