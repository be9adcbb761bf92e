"""Sets of features and the variance that they hold; FSPCA's projection steps.

For a set I let (theta_a, u_a), a = 1..m, be the leading eigenpairs of S_II, so that
F(I) = sum_a theta_a is the variance that m components made of these features hold. The images
B = S_{.,I} U have one row b_j for every feature.

* Projection. With X the centred data, Q = X_I U Theta^(-1/2) has orthonormal columns, and
  p_j = |Q'x_j|^2 = sum_a b_ja^2 / theta_a is what they hold of feature j. Over I the p_j add up to
  F(I); over any other set J to Tr(Q' X_J X_J' Q) <= F(J). So F never falls if the next set is the
  one with the largest p: IPU of Tian, Nie, Wang and Li (NeurIPS 2020).
* Gain of adding j, at least: the m largest eigenvalues of S on the span of U and feature j, the
  matrix [[Theta, b_j], [b_j', s_jj]], add up to F(I) + s_jj - mu with mu its smallest eigenvalue,
  which is the smallest root of s_jj - mu = sum_a b_ja^2 / (theta_a - mu).
* Loss of removing i, at most: U without its row i spans a space on which the trace is known in
  closed form; it lacks (q - s_ii t) / (1 - t), with t = |u_i|^2 and q = sum_a theta_a u_ia^2.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.exceptions import ParameterError
from keepers.linalg.ordering import nearest_first
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter
from keepers.linalg.spectrum import leading_pairs, principal_subspace
from keepers.methods.control import FeatureControl
from keepers.methods.reading import FittedTable

# Eigenvalues of S_II below this share of the largest are rounding, and their vectors arbitrary.
NEGLIGIBLE = 1e-12
# The relative growth of F beyond which a set counts as better.
GAIN = 1e-10


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
        """The variance F that the set holds."""
        return float(np.sum(self.values))


def hold(operator: SymmetricOperator, features: IndexArray, width: int) -> HeldSet:
    """The leading eigenpairs of S on some features; their sum is never above F but for rounding."""
    part = operator.restrict(features)
    count = min(width, len(features))
    if part.size <= SMALL_SIDE:
        values, vectors = leading_pairs(part.dense(), count)
    else:
        # Any start will do; always the same one gives the same digits.
        found = principal_subspace(part, count, np.random.default_rng(0), tol=1e-7)
        values, vectors = found.values, found.vectors
    n_real = max(1, int(np.sum(values > NEGLIGIBLE * values[0])))
    return HeldSet(features, values[:n_real], vectors[:, :n_real], width)


def variance_held(operator: SymmetricOperator, features: IndexArray, width: int) -> float:
    """F of a set, which may be empty or have fewer features than components."""
    if len(features) <= width:
        return float(operator.diagonal()[features].sum())
    return max(hold(operator, features, width).variance, 0.0)


def images_of(operator: SymmetricOperator, held: HeldSet) -> FloatArray:
    """The images B = S_{.,I} U, by one product with a block that is zero outside the set."""
    if isinstance(operator, DenseScatter):
        return np.asarray(operator.matrix[:, held.features] @ held.vectors)
    block = np.zeros((operator.size, held.vectors.shape[1]), order="F")
    block[held.features] = held.vectors
    return operator.matmat(block)


def projections(held: HeldSet, images: FloatArray) -> FloatArray:
    """The part p of every feature that the components hold."""
    return np.asarray(images**2 @ (1.0 / held.values))


def gains_of_adding(held: HeldSet, images: FloatArray, variances: FloatArray) -> FloatArray:
    """The least growth of F with each feature outside the set."""
    if len(held.values) < held.width:
        # There is room for one more component, and nothing is lost of the others.
        if len(held.values) == len(held.features):
            return variances
        return np.maximum(variances - projections(held, images), 0.0)
    squares, values = images**2, held.values
    last, rest = values[-1], variances - squares[:, :-1] @ (1.0 / values[:-1])
    # With the other poles at mu = 0 the root of a quadratic lies above that of the whole.
    middle, apart = (rest + last) / 2.0, (rest - last) / 2.0
    mu = np.clip(middle - np.sqrt(apart**2 + squares[:, -1]), 0.0, None)
    floor = np.finfo(float).tiny + NEGLIGIBLE * values[0]
    for _ in range(6):  # Newton's steps come from above: gains are never overstated
        below = np.maximum(values - mu[:, np.newaxis], floor)
        terms = squares / below
        excess = variances - mu - terms.sum(axis=1)
        slope = 1.0 + np.sum(terms / below, axis=1)
        mu = np.clip(mu + excess / slope, 0.0, mu)
    return np.maximum(variances - mu, 0.0)


def losses_of_removing(held: HeldSet, variances: FloatArray) -> FloatArray:
    """The largest fall of F without each feature of the set; ``variances`` are the set's."""
    squares = held.vectors**2
    t, q = squares.sum(axis=1), squares @ held.values
    left = 1.0 - t
    alone = left <= 1e-10  # a component of its own: all of its variance goes
    quotient = (q - variances * t) / np.where(alone, 1.0, left)
    return np.where(alone, variances, np.clip(quotient, 0.0, variances))


@dataclass(frozen=True)
class AllowedSets:
    """The sets that may be kept: at most ``count`` features, those of ``must`` among them."""

    count: int
    must: BoolArray

    @classmethod
    def of_count(cls, size: int, count: int, must: BoolArray | None = None) -> "AllowedSets":
        """Any ``count`` of ``size`` features, with those that must be kept."""
        return cls(min(count, size), np.zeros(size, dtype=bool) if must is None else must)

    @classmethod
    def of_table(cls, table: FittedTable, control: FeatureControl, count: int) -> "AllowedSets":
        """The usable columns that a user allows; constant ones that must be kept take a place."""
        must = control.must[table.usable]
        return cls.of_count(len(must), count - int(np.sum(control.must & table.unusable)), must)

    def choose(self, values: FloatArray) -> IndexArray:
        """Features whose values add up to the most; ties go to the lowest index."""
        chosen = self.must.copy()
        free = np.flatnonzero(~self.must)
        n_free = min(self.count - int(self.must.sum()), len(free))
        if n_free > 0:
            chosen[free[nearest_first(-values[np.newaxis, free], n_free)[0]]] = True
        return np.flatnonzero(chosen)

    def restrict(self, rows: IndexArray) -> "AllowedSets":
        """The sets among some of the features."""
        return AllowedSets(self.count, self.must[rows])


@dataclass(frozen=True)
class FoundSet:
    """A set, and the way there."""

    held: HeldSet
    images: FloatArray
    """B of the set, a row for every feature of S."""
    history: tuple[float, ...]
    """F of every set on the way, with the last one; it never falls."""
    n_steps: int
    """Projections (the last one changes nothing) and exchanges."""
    start: str = ""
    """The name of the start that led to the set."""

    @property
    def features(self) -> IndexArray:
        return self.held.features

    @property
    def variance(self) -> float:
        """F of the set."""
        return self.history[-1]


def improve_by_projection(
    operator: SymmetricOperator,
    features: IndexArray,
    width: int,
    allowed: AllowedSets | None = None,
    max_iter: int = 100,
) -> FoundSet:
    """IPU from a set of features: the set with the largest p, until the sum of p does not grow.

    A step needs S on the set and one product with S. Without ``allowed``, any set of this size may
    be kept.
    """
    features = np.sort(np.asarray(features, dtype=np.intp))
    allowed = allowed or AllowedSets.of_count(operator.size, len(features))
    held = hold(operator, features, width)
    images, history, n_steps = images_of(operator, held), [held.variance], 0
    while n_steps < max_iter:
        n_steps += 1
        p = projections(held, images)
        features = allowed.choose(p)
        if not np.sum(p[features]) > history[-1] * (1.0 + GAIN):
            break
        candidate = hold(operator, features, width)
        if candidate.variance < history[-1]:
            break  # by rounding
        held = candidate
        images = images_of(operator, held)
        history.append(held.variance)
    return FoundSet(held, images, tuple(history), n_steps)


@dataclass(frozen=True)
class Refinement:
    """The changes made by refining a selection."""

    n_changed: int
    """Kept features that were not kept before."""
    variance_before: float
    """Variance held by components of the features kept before, on the scale of the scatter."""
    variance_after: float
    """The same for the features kept now."""


def refine_order(
    scatter: SymmetricOperator,
    order: IndexArray,
    table: FittedTable,
    control: FeatureControl,
    count: int,
    width: int,
) -> tuple[IndexArray, Refinement]:
    """Columns in order, after exchanges that raise the variance held by the first ``count``."""
    place = np.full(table.n_features, -1)
    place[table.usable] = np.arange(len(table.usable))
    kept = place[order[:count]]
    kept = np.sort(kept[kept >= 0])
    if control.groups is not None:
        raise ParameterError(
            "refine='l20' exchanges single features, so groups must be None. Leave one of them out."
        )
    if len(kept) == 0:  # constant columns only
        return order, Refinement(0, 0.0, 0.0)
    allowed = AllowedSets.of_table(table, control, count)
    found = improve_by_projection(scatter, kept, width, allowed)
    comes_first = control.must.copy()
    comes_first[table.usable[found.features]] = True
    n_changed = len(np.setdiff1d(found.features, kept))
    order = order[np.argsort(~comes_first[order], kind="stable")]
    return order, Refinement(n_changed, found.history[0], found.variance)
