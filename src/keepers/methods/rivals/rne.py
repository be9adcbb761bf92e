"""RNE: robust neighbourhood embedding.

The objective is in the docstring of `RNE`. The l1 term is split off as M = A H with multipliers Y
and a penalty g that grows by a tenth a step. Each step (`RNE_obj.m` of the authors)

1. scales the columns of H to length 1 and multiplies H by the root of the quotient of the negative
   and the positive part of the gradient alpha H H'H - alpha H + g A'A H - g A'M - A'Y, 30 times;
2. sets M to the soft threshold of A H - Y/g at 1/g;
3. moves Y along M - A H, and raises g.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.preprocessing import normalize

from keepers._protocols import FloatArray
from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.graph import reconstruction_weights
from keepers.linalg.scatter import as_array
from keepers.linalg.spectrum import squared_row_norms
from keepers.methods.neighbours import nearest_neighbours
from keepers.methods.parameters import Seed, cap_neighbors, positive
from keepers.methods.reading import MemoryTable
from keepers.methods.rivals import EPS, Rival

# As in the authors' program.
INNER_UPDATES = 30
FIRST_PENALTY, PENALTY_GROWTH, LARGEST_PENALTY = 10.0, 1.1, 1e10


def soft_threshold(Q: FloatArray, threshold: float) -> FloatArray:
    """Minimise threshold * sum_ij |e_ij| + 1/2 |E - Q|^2 over E: entries nearer to zero."""
    return np.asarray(np.sign(Q) * np.maximum(np.abs(Q) - threshold, 0.0))


@dataclass(frozen=True)
class RNEResult:
    """The last step."""

    H: FloatArray
    objective: FloatArray
    converged: bool


def solve_rne(
    A: FloatArray, H: FloatArray, *, alpha: float, max_iter: int, tol: float
) -> RNEResult:
    """Iterate from H (d x m, entries > 0)."""
    gram = A.T @ A
    positive_gram = np.maximum(gram, 0.0)
    M: FloatArray = A @ H
    Y: FloatArray = np.zeros_like(M)
    g = FIRST_PENALTY
    history: list[float] = []
    n_calm = 0
    while len(history) < max_iter and n_calm < 2:
        B, C = A.T @ M, A.T @ Y
        gain = g * np.maximum(B, 0.0) + np.maximum(C, 0.0)
        loss = g * np.maximum(-B, 0.0) + np.maximum(-C, 0.0)
        for _ in range(INNER_UPDATES):
            H = H / np.sqrt(np.einsum("ij,ij->j", H, H) + EPS)
            positive_part = positive_gram @ H
            negative_part = np.maximum(positive_part - gram @ H, 0.0)  # rounding may make it < 0
            above = alpha * H + g * negative_part + gain
            below = alpha * (H @ (H.T @ H)) + g * positive_part + loss + EPS
            H *= np.sqrt(above / below)
            # An entry this small is slow (denormal) and cannot matter any more.
            H[H < 1e-150] = 0.0
        AH = A @ H
        M = soft_threshold(AH - Y / g, 1 / g)
        Y = Y + g * (M - AH)
        g = min(PENALTY_GROWTH * g, LARGEST_PENALTY)
        gap = np.linalg.norm(H.T @ H - np.eye(H.shape[1]))
        history.append(float(np.abs(AH).sum() + alpha / 4 * gap**2))
        is_calm = len(history) > 1 and abs(history[-2] - history[-1]) < tol * abs(history[-1])
        n_calm = n_calm + 1 if is_calm else 0
    return RNEResult(H, np.array(history), n_calm == 2)


@dataclass(eq=False, repr=False, kw_only=True)
class RNE(Rival):
    """Robust neighbourhood embedding.

    Samples are scaled to unit length and each is rebuilt from its nearest neighbours; A holds what
    is left. Then a non-negative H (features x features to select) is sought that leaves little of
    A and has nearly orthonormal columns::

        minimise  |A H|_1 + (alpha/4) |H'H - I|_F^2   over H >= 0.

    A feature's score is the squared norm of its row. The method is that of Liu, Ye, Li and Wang
    (Knowledge-Based Systems 2020). A step costs O(d^2 m) to keep m of d features. A sparse X is
    made dense.

    Parameters
    ----------
    {n_features_refit}
        It is the width of H.
    n_neighbors : int, default=5
        Neighbours that rebuild a sample. Capped, with a warning, at n_samples - 1.
    alpha : float, default=1000.0
        Weight of the orthonormality of H, fixed at this value in the authors' program.
    max_iter : int, default=50
        Maximum number of steps, of 30 updates of H each.
    tol : float, default=1e-6
        The iteration ends when the objective changes by less than this share twice in a row.
    {max_correlation}
    random_state : int, RandomState or None, default=None
        Seeds the start, on which the selection depends strongly.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of H; higher is better.
    {fitted}
    {run}
        It rarely does: the method is defined by its number of steps, and no warning is given.

    Examples
    --------
    >>> from keepers import RNE, datasets
    >>> X = datasets.load("digits").X[:300, 2:6]
    >>> RNE(2, random_state=0).fit_transform(X).shape
    (300, 2)
    """

    looks_for = "features in which the samples keep their neighbours"

    depends_on_k = True
    parameter_rules: ClassVar = {
        "alpha": positive(),
    }

    n_neighbors: int = 5
    alpha: float = 1000.0
    max_iter: int = 50
    tol: float = 1e-6
    random_state: Seed = None

    def score_features(self, table: MemoryTable) -> FloatArray:
        n_samples, n_usable = table.X.shape
        width = min(self.n_features_to_select_, n_usable)
        self.refuse_past_memory(table, tables=3, of_features=2 + 12 * width // n_usable)
        X = normalize(as_array(table.in_double()))  # a sample of zeros stays one
        neighbours = nearest_neighbours(X, cap_neighbors(self.n_neighbors, n_samples))
        A = X - reconstruction_weights(X, neighbours) @ X  # what the neighbours cannot rebuild
        if np.abs(A).max() <= 1e-12:  # rounding: samples have unit length
            warn_caller(
                "After scaling to unit length, neighbours rebuild every sample exactly, so the "
                "scores only reflect the random start.",
                DataWarning,
            )
        start = self.random_generator().random((n_usable, width))
        result = solve_rne(A, start, alpha=self.alpha, max_iter=self.max_iter, tol=self.tol)
        self.store_run(result)
        return table.to_all_columns(squared_row_norms(result.H))
