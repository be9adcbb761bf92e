"""Laplacian score: how much a feature varies across the edges of a graph of the samples.

For a symmetric graph S with degrees D = diag(S 1) and L = D - S, a feature f is first freed of
its degree-weighted mean; then

    LS(f) = (f' L f) / (f' D f),   f' L f = 1/2 sum_ij S_ij (f_i - f_j)^2,

a Rayleigh quotient in [0, 2]. Small is good: neighbours have similar values, far samples do not.
Steps: weighted means, denominators from centred values, numerators from differences.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray
from keepers.linalg.graph import degrees, laplacian
from keepers.linalg.moments import CONSTANT_RATIO, row_blocks
from keepers.linalg.storage import stored_columns

# The upper end of the range; also what a feature gets that does not vary where the graph is.
WORST_SCORE = 2.0
ROUNDING = 1e-12


@dataclass(frozen=True)
class LaplacianScores:
    """The score of every feature, and which of them have none of their own."""

    scores: FloatArray
    """In [0, 2]; small is good."""
    flat: BoolArray
    """Features without variance under the degrees; they hold `WORST_SCORE`."""


@dataclass(frozen=True)
class _Forms:
    """Per feature: the two quadratic forms, and the scale the second is to be judged on."""

    across_edges: FloatArray
    """f' L f."""
    around_mean: FloatArray
    """f' D f of the centred feature."""
    around_zero: FloatArray
    """f' D f of the feature as it is."""


def laplacian_scores(graph: sp.csr_array, X: Any) -> LaplacianScores:
    """Score the columns of X, an array or a CSR/CSC matrix, on the graph of its rows."""
    weight = degrees(graph)
    total = float(weight.sum())
    if total == 0.0:  # no edge at all
        n_features = X.shape[1]
        return LaplacianScores(np.full(n_features, WORST_SCORE), np.ones(n_features, dtype=bool))
    measure = _sparse_forms if sp.issparse(X) else _dense_forms
    forms = measure(graph / total, weight / total, X)
    # Relative: an absolute bound would take every feature for constant when all weights are small.
    flat = forms.around_mean <= CONSTANT_RATIO**2 * forms.around_zero
    scores = np.full(X.shape[1], WORST_SCORE)
    np.divide(forms.across_edges, forms.around_mean, out=scores, where=~flat)
    scores[scores < ROUNDING] = 0.0  # the same on both ends of every edge
    return LaplacianScores(np.minimum(scores, WORST_SCORE), flat)


def _dense_forms(graph: sp.csr_array, weight: FloatArray, X: Any) -> _Forms:
    """Through L F, a few columns at a time; ``weight`` sums to one."""
    n_samples, n_features = X.shape
    L = laplacian(graph)
    across_edges, around_mean, mean = (np.empty(n_features) for _ in range(3))
    for columns in row_blocks(n_features, n_samples):
        F = X[:, columns].astype(np.float64)
        shift = weight @ F
        F -= shift
        residue = weight @ F  # what rounding left in the mean
        F -= residue
        mean[columns] = shift + residue
        across_edges[columns] = np.einsum("ij,ij->j", F, L @ F)
        around_mean[columns] = np.einsum("i,ij,ij->j", weight, F, F)
    return _Forms(across_edges, around_mean, around_mean + mean * mean)


def _sparse_forms(graph: sp.csr_array, weight: FloatArray, X: Any) -> _Forms:
    """Through the differences along the edges, a few edges at a time; X is never densified."""
    around_mean, around_zero = _sparse_variances(weight, X)
    n_samples, n_features = X.shape
    across_edges = np.zeros(n_features)
    rows = X.tocsr()
    edges = sp.triu(graph, k=1).tocoo()
    for some in row_blocks(edges.nnz, 1 + X.nnz // n_samples):
        strength = np.sqrt(edges.data[some])
        n_edges = len(strength)
        ends = np.concatenate([edges.row[some], edges.col[some]])
        numbers = np.tile(np.arange(n_edges), 2)
        signs = np.concatenate([strength, -strength])
        incidence = sp.csr_array((signs, (numbers, ends)), shape=(n_edges, n_samples))
        differences = incidence @ rows
        across_edges += np.bincount(
            differences.indices, weights=differences.data**2, minlength=n_features
        )
    return _Forms(across_edges, around_mean, around_zero)


def _sparse_variances(weight: FloatArray, X: Any) -> tuple[FloatArray, FloatArray]:
    """Sums f' D f around the weighted mean and around zero; absent entries are zeros."""
    n_samples, n_features = X.shape
    entries = X.tocsc()
    column = stored_columns(entries)
    values = entries.data.astype(np.float64, copy=False)
    stored_weight = weight[entries.indices]

    def per_column(quantity: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(column, weights=quantity, minlength=n_features), dtype=float)

    mean = per_column(stored_weight * values)
    gaps = values - mean[column]
    absent = np.maximum(1.0 - per_column(stored_weight), 0.0)
    absent[np.diff(entries.indptr) == n_samples] = 0.0  # exactly: it is multiplied by mean^2
    residue = per_column(stored_weight * gaps) - absent * mean  # what rounding left in the mean
    around_mean = per_column(stored_weight * gaps**2) + absent * mean**2 - residue**2
    return np.maximum(around_mean, 0.0), per_column(stored_weight * values**2)
