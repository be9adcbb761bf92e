"""What a set of features holds, and what it gains or loses if a feature comes or goes.

For a set I let (theta_a, u_a), a = 1..m, be the leading eigenpairs of S_II, so that
F(I) = sum_a theta_a is the variance that m components made of these features hold. Everything here
follows from them and from the images B = S_{.,I} U, one row b_j for every feature:

* Projection. With X the centred data, Q = X_I U Theta^(-1/2) has orthonormal columns, and
  p_j = |Q'x_j|^2 = sum_a b_ja^2 / theta_a is what they hold of feature j. Over I the p_j add up to
  F(I); over any other set J to Tr(Q' X_J X_J' Q) <= F(J).
* Gain of adding j, at least: the m largest eigenvalues of S on the span of U and feature j, the
  matrix [[Theta, b_j], [b_j', s_jj]], add up to F(I) + s_jj - mu with mu its smallest eigenvalue,
  which is the smallest root of s_jj - mu = sum_a b_ja^2 / (theta_a - mu).
* Loss of removing i, at most: U without its row i spans a space on which the trace is known in
  closed form; it lacks (q - s_ii t) / (1 - t), with t = |u_i|^2 and q = sum_a theta_a u_ia^2.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter
from keepers.linalg.spectrum import leading_pairs, principal_subspace

# Eigenvalues of S_II below this share of the largest are rounding, and their vectors arbitrary.
NEGLIGIBLE = 1e-12
# Of eigenvectors, relative, where S_II is too large to be decomposed.
_TOL = 1e-7
# Newton steps for the smallest root; they come from above, so that gains are never overstated.
_NEWTON_STEPS = 6


@dataclass(frozen=True)
class HeldSet:
    """A set of features, and the leading eigenpairs of S on them."""

    features: IndexArray
    values: FloatArray
    """theta, largest first: at most m, and none that is rounding."""
    vectors: FloatArray
    """u, a row for every feature of the set."""
    width: int
    """m; there may be fewer features."""

    @property
    def variance(self) -> float:
        """F."""
        return float(np.sum(self.values))


def hold(operator: SymmetricOperator, features: IndexArray, width: int) -> HeldSet:
    """The leading eigenpairs of S on some features."""
    part = operator.restrict(features)
    count = min(width, len(features))
    if part.size <= SMALL_SIDE:
        values, vectors = leading_pairs(part.dense(), count)
    else:
        # Any start will do; always the same one gives the same digits.
        found = principal_subspace(part, count, np.random.default_rng(0), tol=_TOL)
        values, vectors = found.values, found.vectors
    n_real = max(1, int(np.sum(values > NEGLIGIBLE * values[0])))
    return HeldSet(features, values[:n_real], vectors[:, :n_real], width)


def images_of(operator: SymmetricOperator, held: HeldSet) -> FloatArray:
    """B = S_{.,I} U: one product with a block that is zero outside the set."""
    if isinstance(operator, DenseScatter):
        return np.asarray(operator.matrix[:, held.features] @ held.vectors)
    block = np.zeros((operator.size, held.vectors.shape[1]), order="F")
    block[held.features] = held.vectors
    return operator.matmat(block)


def projections(held: HeldSet, images: FloatArray) -> FloatArray:
    """P of every feature."""
    return np.asarray(images**2 @ (1.0 / held.values))


def gains_of_adding(held: HeldSet, images: FloatArray, variances: FloatArray) -> FloatArray:
    """By how much F grows at least with each feature; of those of the set it says nothing."""
    if len(held.values) < held.width:
        # There is room for one component more. Of what the others hold of j nothing is lost.
        if len(held.values) == len(held.features):
            return variances
        return np.maximum(variances - projections(held, images), 0.0)
    squares, values = images**2, held.values
    last, rest = values[-1], variances - squares[:, :-1] @ (1.0 / values[:-1])
    # With the other poles at mu = 0 the root of a quadratic lies above that of the whole.
    middle, apart = (rest + last) / 2.0, (rest - last) / 2.0
    mu = np.clip(middle - np.sqrt(apart**2 + squares[:, -1]), 0.0, None)
    floor = np.finfo(float).tiny + NEGLIGIBLE * values[0]
    for _ in range(_NEWTON_STEPS):
        below = np.maximum(values - mu[:, np.newaxis], floor)
        terms = squares / below
        excess = variances - mu - terms.sum(axis=1)
        slope = 1.0 + np.sum(terms / below, axis=1)
        mu = np.clip(mu + excess / slope, 0.0, mu)
    return np.maximum(variances - mu, 0.0)


def losses_of_removing(held: HeldSet, variances: FloatArray) -> FloatArray:
    """By how much F falls at most without each feature of the set; ``variances`` are the set's."""
    squares = held.vectors**2
    t, q = squares.sum(axis=1), squares @ held.values
    left = 1.0 - t
    alone = left <= 1e-10  # a component of its own: all of its variance goes
    quotient = (q - variances * t) / np.where(alone, 1.0, left)
    return np.where(alone, variances, np.clip(quotient, 0.0, variances))
