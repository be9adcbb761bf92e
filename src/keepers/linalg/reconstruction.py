"""Weights that rebuild each sample from its neighbours, as in locally linear embedding.

For sample i with neighbours N(i), the weights minimise |x_i - sum_j w_j x_j|^2 under sum_j w_j = 1:
with G the Gram matrix of the differences x_j - x_i, they solve G w = 1 and are divided by their
sum. Row i of the result holds them, so that W 1 = 1 and X is close to W X.
"""

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray, IndexArray
from keepers.linalg.graph import NeighbourList
from keepers.linalg.moments import row_blocks

__all__ = ["reconstruction_residual", "reconstruction_weights"]

# Added to the diagonal of a singular G, as a share of its trace: the authors of RNE take it too.
RIDGE = 1e-3
# An eigenvalue of G below this share of the largest is rounding noise. More neighbours than
# features, duplicate samples and neighbours on a line all lead there.
SINGULAR_RATIO = 1e-12


def reconstruction_weights(X: FloatArray, neighbours: NeighbourList) -> sp.csr_array:
    """Sparse n x n matrix W with the weights of sample i in row i."""
    n_samples, n_neighbors = neighbours.indices.shape
    weights = np.empty((n_samples, n_neighbors))
    for rows in row_blocks(n_samples, X.shape[1] * n_neighbors):
        weights[rows] = _solved(_difference_grams(X, rows, neighbours.indices[rows]))
    starts = np.arange(0, n_samples * n_neighbors + 1, n_neighbors)
    matrix = sp.csr_array(
        (weights.ravel(), neighbours.indices.ravel(), starts), shape=(n_samples, n_samples)
    )
    matrix.sort_indices()
    return matrix


def reconstruction_residual(X: FloatArray, weights: sp.csr_array) -> FloatArray:
    """(I - W) X: what the neighbours cannot rebuild."""
    return np.asarray(X - weights @ X)


def _difference_grams(X: FloatArray, rows: slice, indices: IndexArray) -> FloatArray:
    """One k x k Gram matrix of differences to the neighbours for each sample in ``rows``."""
    differences = X[indices] - X[rows][:, np.newaxis, :]
    return np.asarray(differences @ differences.transpose(0, 2, 1))


def _solved(grams: FloatArray) -> FloatArray:
    """Solutions of G w = 1 with unit sum, one a row; singular G get a ridge first."""
    n_neighbors = grams.shape[1]
    spectrum = np.linalg.eigvalsh(grams)
    singular = spectrum[:, 0] <= SINGULAR_RATIO * spectrum[:, -1]
    ridge = RIDGE * np.trace(grams[singular], axis1=1, axis2=2)
    ridge[ridge == 0.0] = 1.0  # the sample coincides with all its neighbours: equal weights
    grams[singular] += ridge[:, np.newaxis, np.newaxis] * np.eye(n_neighbors)
    solutions = np.linalg.solve(grams, np.ones((len(grams), n_neighbors, 1)))[:, :, 0]
    return np.asarray(solutions / solutions.sum(axis=1, keepdims=True))
