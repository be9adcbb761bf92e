"""Inf-FS, unsupervised: features as nodes of a graph, scored by all paths that start at them.

The score of `InfFS` is (I - bA)^-1 1 - 1. A is symmetric, and I - bA positive definite while the
sum over all paths converges: one system of equations, which conjugate gradients solve with a few
products with A.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from keepers._blas_threads import one_blas_thread_for
from keepers._protocols import FloatArray
from keepers.linalg.ordering import mean_ranks
from keepers.linalg.scatter import as_array
from keepers.methods.parameters import one_of, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import Rival

# Deviations that agree to this are equal: scaled to [0, 1], rounding would decide. Rank
# correlations this near to 1 are 1, but for rounding.
EQUAL_DEVIATIONS, REDUNDANT = 1e-10, 1e-13


@dataclass(frozen=True)
class PathScores:
    """Sums over all paths of one edge or more, 0 if no edge has any weight; and the coupling."""

    scores: FloatArray
    coupling: float


def unit_ranks(X: Any) -> FloatArray:
    """Mid-ranks of every column, centred and of length 1, as rows; of constant columns zeros."""
    columns = np.ascontiguousarray(as_array(X).T, dtype=np.float64)
    ranks = mean_ranks(columns, by_size=True) - (X.shape[0] - 1) / 2.0
    lengths = np.sqrt(np.einsum("ij,ij->i", ranks, ranks))
    ranks /= np.where(lengths > 0.0, lengths, 1.0)[:, np.newaxis]
    return ranks


def edge_weights(ranks: FloatArray, deviations: FloatArray, alpha: float) -> FloatArray:
    """A, from the ranks of `unit_ranks`."""
    s: FloatArray = np.zeros(len(deviations))
    least, most = float(deviations.min()), float(deviations.max())
    if most - least > EQUAL_DEVIATIONS * most:
        s = (deviations - least) / (most - least)
    A = np.abs(ranks @ ranks.T)
    np.subtract(1.0, A, out=A)
    A[A < REDUNDANT] = 0.0
    A *= 1.0 - alpha
    A += alpha * np.maximum(s[:, np.newaxis], s)
    return np.asarray(A)


def score_paths(A: FloatArray, coupling: float | None = None) -> PathScores:
    """Scores with a coupling that is a share of the largest for which the sum converges.

    None takes that of the released version 5.1, (1 - m) / (rho (rho + m)) with rho the largest row
    sum of A and m = 5e-6 d: the share is about 1 / rho, and paths of more than one edge add little.
    It is lowered to 0.9 / rho where rho is not much above 1, because beyond 1 / rho the sum may not
    converge.
    """
    row_sums = A.sum(axis=1)
    largest = float(row_sums.max())
    if largest == 0.0:
        return PathScores(row_sums, 0.0)
    if coupling is None:
        margin = min(5e-6 * len(A), 0.5)
        b = min((1.0 - margin) / (largest + margin), 0.9) / largest
    else:
        radius = largest
        if len(A) > 1:
            options = {"which": "LA", "v0": row_sums, "tol": 1e-13}
            radius = float(eigsh(A, 1, return_eigenvectors=False, **options)[0])
        b = coupling / radius
    rest = LinearOperator(A.shape, matvec=lambda v: v - b * (A @ v), dtype=np.float64)
    scores, _ = cg(rest, b * row_sums, x0=b * row_sums, rtol=1e-15, maxiter=1000)
    return PathScores(scores, b)


@dataclass(eq=False, repr=False, kw_only=True)
class InfFS(Rival):
    """Infinite feature selection, unsupervised: all paths through a graph of the features.

    Two features are joined by a heavy edge if one of them varies much and they are not
    redundant::

        A_ij = alpha max(s_i, s_j) + (1 - alpha) (1 - |rho_ij|),

    s the standard deviations scaled to run from 0 to 1, rho Spearman's rank correlation. A feature
    scores the weight of all paths that start at it: the row sums of bA + (bA)^2 + ... = (I - bA)^-1
    - I. After Roffo, Melzi and Cristani (ICCV 2015), Roffo et al. (TPAMI 2020) and version 5.1 of
    the program the authors released. Ranks of a sparse X are dense; A has d x d entries.

    Parameters
    ----------
    {n_features_to_select}
    alpha : float in [0, 1], default=0.5
        Weight of the deviations; 1 - alpha is that of the rank correlations. 1 ranks by standard
        deviation; 0 prefers whatever resembles nothing else, pure noise above all.
    coupling : "release" or float in (0, 0.999], default="release"
        What an edge of a path is multiplied by. A number is the share of the largest value for
        which the sum over all paths converges: 0.9 in the first paper. "release" is about
        1 / rho^2 with rho the largest row sum of A: paths of one edge are nearly all of the score.
    {max_correlation}

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Weight of all paths of one edge or more; higher is better. The released program adds 1.
    {fitted}

    Examples
    --------
    >>> from keepers import InfFS, datasets
    >>> InfFS(50).fit_transform(datasets.load("srbct").X).shape
    (83, 50)
    """

    looks_for = "features that vary much and repeat the others little"
    score_means = "the weight of all paths through the feature in a graph of all features"

    parameter_rules: ClassVar = {
        "alpha": positive(at_most=1.0, zero=True),
        "coupling": one_of("release") | positive(at_most=0.999),
    }

    alpha: float = 0.5
    coupling: float | str = "release"

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        self.refuse_past_memory(table, tables=6, of_features=2)
        coupling = None if self.coupling == "release" else float(self.coupling)
        with one_blas_thread_for(2.0 * n_samples * n_usable**2):
            deviations = np.sqrt(table.moments.variance)
            A = edge_weights(unit_ranks(table.X), deviations, float(self.alpha))
            scores = score_paths(A, coupling).scores
        return table.to_all_columns(scores)
