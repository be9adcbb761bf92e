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

The quotient needs the entries of A'A apart by sign. Both parts follow from two products,
G+ H = (|G| H + G H)/2 and G- H = (|G| H - G H)/2, and G H = A'(A H) is cheap where samples are few:
half the work and a third of the memory of keeping G+ and G-.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.proximal import soft_threshold
from keepers.linalg.subspace import squared_row_norms

INNER_UPDATES = 30
FIRST_PENALTY, PENALTY_GROWTH, LARGEST_PENALTY = 10.0, 1.1, 1e10
# A multiplied entry that has become this small is slow (denormal) and cannot matter any more.
VANISHED = 1e-150
_EPS = float(np.finfo(np.float64).eps)


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


def gram_count(n_samples: int, n_features: int) -> int:
    """How many d x d arrays a run holds: |A'A|, and A'A unless products with A are cheaper."""
    return 1 if 2 * n_samples < n_features else 2


def solve_rne(
    A: FloatArray, starts: Iterable[FloatArray], *, alpha: float, max_iter: int, tol: float
) -> RNEResult:
    """Run from each start (d x m, entries > 0); keep the smallest final objective.

    A run ends after ``max_iter`` steps, or when the objective changes by less than ``tol``,
    relatively, twice in a row; ``tol=0`` always takes all steps.
    """
    gram = _SplitGram(A)
    runs = (_run(gram, start, alpha, max_iter, tol) for start in starts)
    return min(runs, key=lambda run: run.objective[-1])


def _run(
    gram: "_SplitGram", start: FloatArray, alpha: float, max_iter: int, tol: float
) -> RNEResult:
    A = gram.A
    H: FloatArray = np.array(start, dtype=np.float64, order="C")
    embedded: FloatArray = A @ H
    M, Y = embedded, np.zeros_like(embedded)
    penalty = FIRST_PENALTY
    updates = _InnerUpdates(gram, H.shape, alpha)
    history: list[float] = []
    calm = 0
    while len(history) < max_iter and calm < 2:
        updates.apply(H, A.T @ M, A.T @ Y, penalty)
        embedded = A @ H
        M = soft_threshold(embedded - Y / penalty, 1 / penalty)
        Y += penalty * (M - embedded)
        penalty = min(PENALTY_GROWTH * penalty, LARGEST_PENALTY)
        orthogonality_gap = float(np.linalg.norm(H.T @ H - np.eye(H.shape[1])))
        history.append(float(np.abs(embedded).sum()) + alpha / 4 * orthogonality_gap**2)
        calm = calm + 1 if _has_converged(history, tol) else 0
    split_gap = float(np.abs(M - embedded).max())
    return RNEResult(H, np.array(history), len(history), calm == 2, split_gap, orthogonality_gap)


def _has_converged(history: list[float], tol: float) -> bool:
    return len(history) > 1 and abs(history[-2] - history[-1]) < tol * abs(history[-1])


class _SplitGram:
    """G = A'A, known by the products |G| H and G H."""

    def __init__(self, A: FloatArray) -> None:
        self.A = A
        gram = A.T @ A
        keep_signs = gram_count(*A.shape) == 2
        self._signed = gram if keep_signs else None
        self._magnitude = np.abs(gram) if keep_signs else np.abs(gram, out=gram)

    def products(self, H: FloatArray, magnitude: FloatArray, signed: FloatArray) -> None:
        """Write |G| H and G H into the two arrays."""
        np.matmul(self._magnitude, H, out=magnitude)
        if self._signed is None:
            np.matmul(self.A.T, self.A @ H, out=signed)
        else:
            np.matmul(self._signed, H, out=signed)


class _InnerUpdates:
    """The multiplicative updates of H, with arrays that are allocated once.

    Numerator and denominator are both divided by g/2, which spares scaling the large products.
    """

    def __init__(self, gram: _SplitGram, shape: tuple[int, ...], alpha: float) -> None:
        self._gram = gram
        self._alpha = alpha
        self._magnitude, self._signed, self._quotient = (np.empty(shape) for _ in range(3))

    def apply(self, H: FloatArray, B: FloatArray, C: FloatArray, penalty: float) -> None:
        """Update H in place 30 times, for B = A'M, C = A'Y and g = ``penalty``."""
        pull = 2 * self._alpha / penalty
        gain = 2 * np.maximum(B, 0) + (2 / penalty) * np.maximum(C, 0)
        loss = 2 * np.maximum(-B, 0) + (2 / penalty) * (np.maximum(-C, 0) + _EPS)
        for _ in range(INNER_UPDATES):
            H /= np.sqrt(np.einsum("ij,ij->j", H, H) + _EPS)
            self._gram.products(H, self._magnitude, self._signed)
            numerator = self._numerator(H, pull, gain)
            numerator /= self._denominator(H, pull, loss)
            H *= np.sqrt(numerator, out=numerator)
            H[H < VANISHED] = 0.0

    def _numerator(self, H: FloatArray, pull: float, gain: FloatArray) -> FloatArray:
        """Negative part of the gradient: alpha H + g G- H + g B+ + C+."""
        numerator = np.subtract(self._magnitude, self._signed, out=self._quotient)
        np.maximum(numerator, 0.0, out=numerator)  # a difference of equals may round below zero
        numerator += gain
        numerator += pull * H
        return numerator

    def _denominator(self, H: FloatArray, pull: float, loss: FloatArray) -> FloatArray:
        """Positive part of the gradient: alpha H H'H + g G+ H + g B- + C- + eps."""
        denominator = np.add(self._magnitude, self._signed, out=self._magnitude)
        np.maximum(denominator, 0.0, out=denominator)
        denominator += loss
        denominator += np.matmul(H, pull * (H.T @ H), out=self._signed)
        return denominator
