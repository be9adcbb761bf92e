"""Inf-FS, unsupervised: features as nodes of a graph, scored by all paths that start at them.

An edge is heavy if one of its ends varies much and the two are not redundant (Roffo, Melzi and
Cristani, ICCV 2015; Roffo et al., TPAMI 2020):

    A = alpha S + (1 - alpha) R,      S_ij = max(s_i, s_j),      R_ij = 1 - |rho_ij|,

s the standard deviations, moved and scaled to run from 0 to 1, rho Spearman's rank correlation. The
weight of a path is the product of its edges, times the coupling b for each of them. The sum over
all paths of any length that start at a node is the row sum of bA + (bA)^2 + ..., that is

    score = (I - bA)^-1 1 - 1.

A is symmetric, and I - bA positive definite while the sum converges: one system of equations,
solved by conjugate gradients, of which a few products with A are all that is asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._protocols import FloatArray
from keepers.linalg.moments import row_blocks
from keepers.linalg.storage import as_array, by_columns
from keepers.linalg.unit_free import mean_ranks

# Deviations that agree to this are equal: scaled to [0, 1], rounding would decide.
EQUAL_DEVIATIONS = 1e-10
# Rank correlations this near to 1 are 1, but for rounding.
REDUNDANT = 1e-13
# The released version 5.1 takes this number per feature off 1.
_MARGIN, _LARGEST_MARGIN = 5e-6, 0.5
# Up to this share of the convergent couplings the release is followed.
_LARGEST_SHARE = 0.9
_BLOCK_BYTES = 1 << 24
_TOLERANCE = 1e-15
_MOST_PRODUCTS = 1000


@dataclass(frozen=True)
class PathScores:
    """The score of every feature, and the coupling they were computed with."""

    scores: FloatArray
    """Sums over all paths of one edge or more; 0 if no edge has any weight."""
    coupling: float
    """b."""


def unit_ranks(X: Any) -> FloatArray:
    """Mid-ranks of every column of an array or CSR/CSC matrix, centred and of length 1, as rows.

    A column without variation is a row of zeros.
    """
    n_samples, n_features = X.shape
    table = by_columns(X)
    ranks = np.empty((n_features, n_samples))
    for columns in row_blocks(n_features, n_samples):
        block = np.array(as_array(table[:, columns]).T, dtype=np.float64, order="C")
        ranks[columns] = mean_ranks(block, by_size=True) - (n_samples - 1) / 2.0
    lengths = np.sqrt(np.einsum("ij,ij->i", ranks, ranks))
    ranks /= np.where(lengths > 0.0, lengths, 1.0)[:, np.newaxis]
    return ranks


class EdgeMatrix:
    """A, by its products with vectors; stored, or made again in blocks of rows for each of them."""

    def __init__(
        self, ranks: FloatArray, deviations: FloatArray, alpha: float, *, stored: bool = True
    ) -> None:
        self.size = len(deviations)
        self._ranks, self._alpha = ranks, alpha
        self._spread = _scaled_deviations(deviations)
        self._stored: FloatArray | None = None
        if stored:
            self._stored = np.empty((self.size, self.size))
            for rows in self._blocks():
                self._stored[rows] = self._rows(rows)

    def product(self, weights: FloatArray) -> FloatArray:
        """A times a vector."""
        if self._stored is not None:
            return np.asarray(self._stored @ weights)
        return np.concatenate([self._rows(rows) @ weights for rows in self._blocks()])

    def dense(self) -> FloatArray:
        """A itself."""
        return np.concatenate([self._rows(rows) for rows in self._blocks()])

    def _blocks(self) -> list[slice]:
        return row_blocks(self.size, self.size, _BLOCK_BYTES)

    def _rows(self, rows: slice) -> FloatArray:
        block = self._ranks[rows] @ self._ranks.T
        np.abs(block, out=block)
        np.subtract(1.0, block, out=block)
        block[block < REDUNDANT] = 0.0
        block *= 1.0 - self._alpha
        block += self._alpha * np.maximum(self._spread[rows, np.newaxis], self._spread)
        return np.asarray(block)


def _scaled_deviations(deviations: FloatArray) -> FloatArray:
    """From 0 for the smallest to 1 for the largest; 0 for all if they are equal."""
    least, most = float(deviations.min()), float(deviations.max())
    if most - least <= EQUAL_DEVIATIONS * most:
        return np.zeros(len(deviations))
    return np.asarray((deviations - least) / (most - least))


def score_paths(edges: EdgeMatrix, coupling: float | None = None) -> PathScores:
    """Scores with a coupling that is a share of the largest for which the sum converges.

    None takes that of the released version 5.1, (1 - m) / (rho (rho + m)) with rho the largest row
    sum of A and m = 5e-6 d: the share is about 1 / rho, and paths of more than one edge add little.
    It is lowered to 0.9 / rho where rho is not much above 1, because beyond 1 / rho the sum may not
    converge.
    """
    row_sums = edges.product(np.ones(edges.size))
    largest = float(row_sums.max())
    if largest == 0.0:
        return PathScores(row_sums, 0.0)
    if coupling is None:
        margin = min(_MARGIN * edges.size, _LARGEST_MARGIN)
        b = min((1.0 - margin) / (largest + margin), _LARGEST_SHARE) / largest
    else:
        b = coupling / _spectral_radius(edges.product, row_sums)

    def apply(vector: FloatArray) -> FloatArray:
        return vector - b * edges.product(vector)

    return PathScores(_conjugate_gradients(apply, b * row_sums), b)


def _spectral_radius(product: Callable[[FloatArray], FloatArray], start: FloatArray) -> float:
    """Of a symmetric matrix without negative entries: the ratios of norms never fall."""
    vector = start / np.linalg.norm(start)
    radius = 0.0
    for _ in range(_MOST_PRODUCTS):
        following = product(vector)
        found = float(np.linalg.norm(following))
        vector = following / found
        if found <= radius * (1.0 + _TOLERANCE):
            break
        radius = found
    return max(radius, found)


def _conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray], right: FloatArray
) -> FloatArray:
    """Solve with a positive definite matrix, from the right-hand side on."""
    solution = right.copy()
    residual = right - apply(solution)
    direction = residual.copy()
    square = float(residual @ residual)
    enough = (_TOLERANCE * float(np.linalg.norm(right))) ** 2
    for _ in range(_MOST_PRODUCTS):
        if square <= enough:
            break
        image = apply(direction)
        step = square / float(direction @ image)
        solution += step * direction
        residual -= step * image
        square, before = float(residual @ residual), square
        direction = residual + (square / before) * direction
    return solution
