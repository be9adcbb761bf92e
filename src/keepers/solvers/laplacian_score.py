"""Laplacian score: how much a feature varies across the edges of a graph of the samples.

For a symmetric graph S with degrees D = diag(S 1) and L = D - S, a feature f is first freed of
its degree-weighted mean; then

    LS(f) = (f' L f) / (f' D f),   f' L f = 1/2 sum_ij S_ij (f_i - f_j)^2,

a Rayleigh quotient in [0, 2]. Small is good: neighbours have similar values, far samples do not.
Steps: weighted means, denominators from centred values, numerators from differences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray
from keepers.linalg.graph import Graph, degrees, laplacian
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
class QuadraticForms:
    """Per feature: f' L f and f' D f, for degrees that sum to one."""

    across_edges: FloatArray
    """f' L f."""
    around_mean: FloatArray
    """f' D f of the centred feature."""
    around_zero: FloatArray
    """f' D f of the feature as it is: the scale that the one before is to be judged on."""

    @property
    def flat(self) -> BoolArray:
        """Features without variance under the degrees."""
        # Relative: an absolute bound would take every feature for constant when weights are small.
        return np.asarray(self.around_mean <= CONSTANT_RATIO**2 * self.around_zero)


def laplacian_scores(graph: Graph, X: Any) -> LaplacianScores:
    """Score the columns of X, an array or a CSR/CSC matrix, on the graph of its rows."""
    forms = quadratic_forms(graph, X)
    scores = quotients(forms.across_edges, forms.around_mean, forms.flat, WORST_SCORE)
    return LaplacianScores(scores, forms.flat)


def quadratic_forms(graph: Graph, X: Any) -> QuadraticForms:
    """Of the columns of X, an array or a CSR/CSC matrix; the graph is a CSR matrix or an array."""
    weight = degrees(graph)
    total = float(weight.sum())
    if total == 0.0:  # no edge at all
        return QuadraticForms(*np.zeros((3, X.shape[1])))
    measure = _sparse_forms if sp.issparse(X) and sp.issparse(graph) else _dense_forms
    return measure(graph / total, weight / total, X)


def quotients(
    numerators: FloatArray, denominators: FloatArray, flat: BoolArray, worst: float
) -> FloatArray:
    """Scores in [0, worst]; ``worst`` for flat features."""
    scores = np.full(len(flat), worst)
    np.divide(numerators, denominators, out=scores, where=~flat)
    scores[scores < ROUNDING] = 0.0  # the same on both ends of every edge
    return np.minimum(scores, worst)


def centred_blocks(weight: FloatArray, X: Any) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """A few columns at a time: which, their values less their means, and these; as arrays.

    ``weight`` sums to one. A sparse X has to be CSC.
    """
    n_samples, n_features = X.shape
    for columns in row_blocks(n_features, n_samples):
        block = X[:, columns]
        F = block.toarray() if sp.issparse(block) else block
        F = F.astype(np.float64)
        mean = weight @ F
        F -= mean
        residue = weight @ F  # what rounding left in the mean
        F -= residue
        yield columns, F, mean + residue


def _dense_forms(graph: Graph, weight: FloatArray, X: Any) -> QuadraticForms:
    """Through L F, a few columns at a time."""
    L = laplacian(graph)
    across_edges, around_mean, around_zero = np.empty((3, X.shape[1]))
    for columns, F, mean in centred_blocks(weight, X.tocsc() if sp.issparse(X) else X):
        across_edges[columns] = np.einsum("ij,ij->j", F, L @ F)
        around_mean[columns] = np.einsum("i,ij,ij->j", weight, F, F)
        around_zero[columns] = around_mean[columns] + mean * mean
    return QuadraticForms(across_edges, around_mean, around_zero)


def _sparse_forms(graph: sp.csr_array, weight: FloatArray, X: Any) -> QuadraticForms:
    """Through the differences along the edges, a few edges at a time; X is never densified."""
    _, around_mean, around_zero = weighted_moments(weight, X)
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
    return QuadraticForms(across_edges, around_mean, around_zero)


def weighted_moments(weight: FloatArray, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted means of a CSR/CSC matrix, and sums f' D f around them and around zero."""
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
    return mean, np.maximum(around_mean, 0.0), per_column(stored_weight * values**2)
