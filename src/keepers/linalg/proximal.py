"""Proximal maps and projections with a closed form: what splitting methods are made of."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from keepers._protocols import FloatArray
from keepers.linalg.subspace import row_norms


def shrinkage(norms: FloatArray, threshold: float) -> FloatArray:
    """The factors max(1 - threshold / norm, 0) that `shrink_rows` multiplies rows with."""
    # A row at or below the threshold is divided by 1 instead: its norm may be zero.
    divisors = np.where(norms > threshold, norms, 1.0)
    return np.where(norms > threshold, 1.0 - threshold / divisors, 0.0)


def shrink_rows(Q: FloatArray, threshold: float) -> FloatArray:
    """Minimise threshold * sum_i |e_i| + 1/2 |E - Q|^2 over E: rows shorter by threshold."""
    return np.asarray(shrinkage(row_norms(Q), threshold)[:, np.newaxis] * Q)


def soft_threshold(Q: FloatArray, threshold: float) -> FloatArray:
    """Minimise threshold * sum_ij |e_ij| + 1/2 |E - Q|^2 over E: entries nearer to zero."""
    return np.asarray(np.sign(Q) * np.maximum(np.abs(Q) - threshold, 0.0))


def keep_top_rows(Q: FloatArray, n_rows: int) -> FloatArray:
    """The nearest matrix with at most ``n_rows`` non-zero rows; ties keep the lowest index."""
    kept = np.argsort(-row_norms(Q), kind="stable")[:n_rows]
    E = np.zeros_like(Q)
    E[kept] = Q[kept]
    return E


@dataclass(frozen=True)
class SpectralPart:
    """A symmetric matrix of low rank by its non-zero eigenpairs, largest eigenvalue first."""

    values: FloatArray
    vectors: FloatArray

    @property
    def rank(self) -> int:
        """Number of eigenpairs; 0 is the zero matrix."""
        return len(self.values)

    def dense(self) -> FloatArray:
        """The matrix itself."""
        return np.asarray((self.vectors * self.values) @ self.vectors.T)


def rank_threshold(A: FloatArray, eta: float) -> SpectralPart:
    """Minimise |L - A|^2 + eta * rank(L) over positive semi-definite L, A symmetrised.

    Eigenvalues of A above sqrt(eta) stay, the others go.
    """
    symmetric = (A + A.T) / 2
    smallest = float(np.sqrt(eta))
    # No eigenvalue exceeds the largest absolute row sum: often that is enough to know.
    if np.abs(symmetric).sum(axis=1).max() <= smallest:
        return SpectralPart(np.zeros(0), np.zeros((len(symmetric), 0)))
    values, vectors = eigh(symmetric, subset_by_value=(smallest, np.inf))
    return SpectralPart(values[::-1], vectors[:, ::-1])


def nearest_orthonormal(N: FloatArray) -> FloatArray:
    """Maximise Tr(U'N) over U with orthonormal columns: orthogonal Procrustes."""
    left, _, right = np.linalg.svd(N, full_matrices=False)
    return np.asarray(left @ right)


def project_rows_onto_simplex(V: FloatArray) -> FloatArray:
    """The nearest point of the unit simplex {s >= 0, sum s = 1} to every row of V.

    The projection is max(v - tau, 0) with the one tau that makes the sum 1. With u the entries in
    descending order, tau = (u_1 + ... + u_r - 1) / r for the largest r with u_r > tau.
    """
    shifted = V - V.max(axis=1, keepdims=True)  # the projection does not see it; sums keep digits
    descending = -np.sort(-shifted, axis=1)
    places = np.arange(1, V.shape[1] + 1)
    thresholds = (np.cumsum(descending, axis=1) - 1.0) / places
    last = np.count_nonzero(descending > thresholds, axis=1) - 1
    tau = np.take_along_axis(thresholds, last[:, np.newaxis], axis=1)
    return np.maximum(shifted - tau, 0.0)
