"""UDFS: unsupervised discriminative feature selection (Yang, Shen, Ma, Huang and Zhou, 2011).

    minimise  Tr(W'MW) + gamma * |W|_{2,1}   over W'W = I,      M = X' Lbar X

Lbar adds up, over every sample and its k nearest neighbours (a patch of k + 1 rows, centred to
Z_i), how badly a linear map can tell the rows of the patch apart:

    Lbar = sum_i P_i' H B_i H P_i,      B_i = (Z_i Z_i' + lambda I)^-1,      H = I - 11'/(k + 1),

P_i picking the rows of the patch. Lbar itself is never formed. With Z_i = U diag(sigma) V',

    M = sum_i F_i' F_i,      F_i = diag(1 / sqrt(sigma^2 + lambda)) U' Z_i,

whose rows are no longer than 1, so that M is positive semi-definite to its own rounding: X' Lbar X
cancels, and beside one far outlier nothing of M was left. Steps: M, in the coordinates of the
samples where d > n; then the reweighting of `keepers.solvers.reweighting`.
"""

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.moments import BLOCK_BYTES, row_blocks
from keepers.linalg.quadratic_form import QuadraticForm
from keepers.solvers.reweighting import RowSparseProjection, first_weights, row_sparse_projection

EPS = float(np.finfo(float).eps)


def local_scatter(X: FloatArray, neighbours: IndexArray, regularization: float) -> FloatArray:
    """M of centred data X, from the n x k list of neighbours."""
    n_samples, n_features = X.shape
    patches = np.column_stack([np.arange(n_samples), neighbours])
    M = np.zeros((n_features, n_features))
    # Blocks that are small beside M would spend their time on adding it up.
    n_bytes = max(BLOCK_BYTES, M.nbytes // 2)
    for rows in row_blocks(n_samples, patches.shape[1] * n_features, n_bytes):
        F = _patch_factors(X[patches[rows]], regularization).reshape(-1, n_features)
        M += F.T @ F
    return M


def _patch_factors(patches: FloatArray, regularization: float) -> FloatArray:
    """F of every patch of a stack (b x (k + 1) x d); directions lost to rounding are zero."""
    width = patches.shape[1]
    Z = patches - patches.mean(axis=1, keepdims=True)
    spectrum, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    rounding = (width * EPS) ** 2 * np.einsum("bij,bij->b", patches, patches)[:, np.newaxis]
    kept = spectrum > np.maximum(width * EPS * spectrum[:, -1:], rounding)
    factors = np.where(kept, 1.0 / np.sqrt(np.maximum(spectrum, 0.0) + regularization), 0.0)
    F = factors[:, :, np.newaxis] * (vectors.transpose(0, 2, 1) @ Z)
    return np.asarray(F[:, 1:])  # Z'1 = 0: the first is always lost


def solve_udfs(
    form: QuadraticForm,
    gamma: float,
    n_clusters: int,
    deviations: FloatArray,
    rng: np.random.Generator,
    *,
    max_iter: int = 100,
    tol: float = 1e-8,
    tie_breaker: bool = True,
) -> RowSparseProjection:
    """Minimise over W with ``n_clusters`` columns.

    ``deviations`` holds the standard deviation of each feature; it decides ties only. The
    iteration ends when a step lowers the objective by no more than ``tol``, relatively; a negative
    ``tol`` makes exactly ``max_iter`` steps.
    """

    def has_converged(history: list[float]) -> bool:
        return history[-2] - history[-1] <= tol * abs(history[-1])

    return row_sparse_projection(
        form,
        gamma,
        n_clusters,
        first_weights(deviations, tie_breaker=tie_breaker),
        rng,
        max_iter=max_iter,
        has_converged=has_converged,
    )
