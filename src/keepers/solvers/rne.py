"""RNE: robust neighbourhood embedding.

    minimise  |A H|_1 + (alpha/4) |H'H - I|_F^2   over H >= 0 (d x m),

with |.|_1 the sum of absolute entries and A (n x d) the residual of rebuilding each sample from its
neighbours. H is a relaxed selection matrix: few large rows, one for each feature kept.

The l1 term is split off as M = A H with multipliers Y and a penalty g that grows by a tenth a step.
Each of the steps (`RNE_obj.m` of the authors)

1. updates H 30 times by the quotient of the negative and the positive part of the gradient
   alpha H H'H - alpha H + g A'A H - g A'M - A'Y;
2. sets M to the soft threshold of A H - Y/g at 1/g;
3. moves Y along M - A H, and raises g.

Nearly all the work is in step 1, which `keepers.solvers.multiplicative_updates` does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.proximal import soft_threshold
from keepers.linalg.subspace import squared_row_norms
from keepers.solvers.multiplicative_updates import Gradient, SplitGram, Updates, gram_count

__all__ = ["RNEResult", "gram_count", "solve_rne"]

INNER_UPDATES = 30
FIRST_PENALTY, PENALTY_GROWTH, LARGEST_PENALTY = 10.0, 1.1, 1e10


@dataclass(frozen=True)
class RNEResult:
    """Where the best of the runs ended."""

    H: FloatArray
    objective: FloatArray
    """|A H|_1 + (alpha/4) |H'H - I|_F^2 after every step."""
    n_iter: int
    converged: bool
    split_gap: float
    """Largest entry of |M - A H|."""
    orthogonality_gap: float
    """|H'H - I|_F."""

    @property
    def squared_row_norms(self) -> FloatArray:
        """One number a feature: its weight in H."""
        return squared_row_norms(self.H)


def solve_rne(
    A: FloatArray, starts: Iterable[FloatArray], *, alpha: float, max_iter: int, tol: float
) -> RNEResult:
    """Run from each start (d x m, entries > 0); keep the smallest final objective.

    A run ends after ``max_iter`` steps, or when the objective changes by less than ``tol``,
    relatively, twice in a row; ``tol=0`` always takes all steps.
    """
    gram = SplitGram(A)
    runs = (_run(gram, start, alpha, max_iter, tol) for start in starts)
    return min(runs, key=lambda run: run.objective[-1])


def _run(gram: SplitGram, start: FloatArray, alpha: float, max_iter: int, tol: float) -> RNEResult:
    A = gram.A
    Ht: FloatArray = np.array(start.T, dtype=np.float64, order="C")
    embedded: FloatArray = Ht @ A.T
    M, Y = embedded, np.zeros_like(embedded)
    penalty = FIRST_PENALTY
    updates = Updates(gram, Ht)
    history: list[float] = []
    calm = 0
    while len(history) < max_iter and calm < 2:
        updates.apply(Gradient.of(M @ A, Y @ A, alpha, penalty), INNER_UPDATES)
        embedded = Ht @ A.T
        M = soft_threshold(embedded - Y / penalty, 1 / penalty)
        Y += penalty * (M - embedded)
        penalty = min(PENALTY_GROWTH * penalty, LARGEST_PENALTY)
        orthogonality_gap = float(np.linalg.norm(Ht @ Ht.T - np.eye(len(Ht))))
        history.append(float(np.abs(embedded).sum()) + alpha / 4 * orthogonality_gap**2)
        calm = calm + 1 if _has_converged(history, tol) else 0
    split_gap = float(np.abs(M - embedded).max())
    H = np.ascontiguousarray(Ht.T)
    return RNEResult(H, np.array(history), len(history), calm == 2, split_gap, orthogonality_gap)


def _has_converged(history: list[float], tol: float) -> bool:
    return len(history) > 1 and abs(history[-2] - history[-1]) < tol * abs(history[-1])
