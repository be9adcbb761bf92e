"""Sets of features and the variance that they hold; FSPCA's projection steps.

For a set I let (theta_a, u_a), a = 1..m, be the leading eigenpairs of S_II, so that
F(I) = sum_a theta_a is the variance that m components made of these features hold. Everything here
follows from them and from the images B = S_{.,I} U, one row b_j for every feature:

* Projection. With X the centred data, Q = X_I U Theta^(-1/2) has orthonormal columns, and
  p_j = |Q'x_j|^2 = sum_a b_ja^2 / theta_a is what they hold of feature j. Over I the p_j add up to
  F(I); over any other set J to Tr(Q' X_J X_J' Q) <= F(J). So F never falls if the next set is the
  one with the largest p: IPU of Tian, Nie, Wang and Li (NeurIPS 2020).
* Gain of adding j, at least: the m largest eigenvalues of S on the span of U and feature j, the
  matrix [[Theta, b_j], [b_j', s_jj]], add up to F(I) + s_jj - mu with mu its smallest eigenvalue,
  which is the smallest root of s_jj - mu = sum_a b_ja^2 / (theta_a - mu).
* Loss of removing i, at most: U without its row i spans a space on which the trace is known in
  closed form; it lacks (q - s_ii t) / (1 - t), with t = |u_i|^2 and q = sum_a theta_a u_ia^2.

`keepers.methods.fspca` searches with these, `refine_order` improves a selection of SPCAFS, and
`keepers.proofs` compares sets with bounds.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.ordering import best_first, nearest_first
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter, FactoredScatter
from keepers.linalg.spectrum import leading_pairs, principal_subspace
from keepers.methods.control import FeatureControl
from keepers.methods.reading import FittedTable

# Eigenvalues of S_II below this share of the largest are rounding, and their vectors arbitrary.
NEGLIGIBLE = 1e-12
# What F has to grow by, relatively, for a set to count as better: beyond rounding.
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
        """F."""
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
    """B = S_{.,I} U: one product with a block that is zero outside the set."""
    if isinstance(operator, DenseScatter):
        return np.asarray(operator.matrix[:, held.features] @ held.vectors)
    if isinstance(operator, FactoredScatter):
        return operator.back(operator.take(held.features).times(held.vectors))
    block = np.zeros((operator.size, held.vectors.shape[1]), order="F")
    block[held.features] = held.vectors
    return operator.matmat(block)


def projections(held: HeldSet, images: FloatArray) -> FloatArray:
    """p: the part of every feature that the components hold."""
    return np.asarray(images**2 @ (1.0 / held.values))


def gains_of_adding(held: HeldSet, images: FloatArray, variances: FloatArray) -> FloatArray:
    """The least growth of F with each feature outside the set."""
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
    """The sets that may be kept: at most ``count`` features, and groups as a whole."""

    count: int
    must: BoolArray
    """Features that every set holds."""
    units: IndexArray
    """Features of the same number are kept together; counted from 0."""

    @classmethod
    def of_count(cls, size: int, count: int, must: BoolArray | None = None) -> "AllowedSets":
        """Any ``count`` of ``size`` features, with those that must be kept."""
        must = np.zeros(size, dtype=bool) if must is None else must
        return cls(min(count, size), must, np.arange(size))

    @classmethod
    def of_table(cls, table: FittedTable, control: FeatureControl, count: int) -> "AllowedSets":
        """What a user allows, of the usable columns.

        Constant columns that must be kept take their place without a choice.
        """
        must = control.must[table.usable]
        allowed = cls.of_count(len(must), count - int(np.sum(control.must & table.unusable)), must)
        if control.groups is None:
            return allowed
        units = np.unique(control.groups[table.usable], return_inverse=True)[1]
        return replace(allowed, units=units.astype(np.intp))

    @cached_property
    def sizes(self) -> FloatArray:
        return np.bincount(self.units).astype(np.float64)

    @property
    def has_groups(self) -> bool:
        return len(self.sizes) < len(self.units)

    def pool(self, values: FloatArray | BoolArray) -> FloatArray:
        """A value of every feature -> its sum over every unit."""
        return np.asarray(np.bincount(self.units, values), dtype=np.float64)

    def choose(self, values: FloatArray) -> IndexArray:
        """Features whose values add up to the most; ties go to the lowest index.

        With groups it is the better of two greedy choices, by mean value and by total value.
        """
        if self.has_groups:
            worth, must = self.pool(values), np.flatnonzero(self.must)
            typical = worth / self.sizes
            orders = (best_first(typical, worth), best_first(worth, typical))
            fillings = [self.fill(must, order) for order in orders]
            return max(fillings, key=lambda features: float(np.sum(values[features])))
        chosen = self.must.copy()
        free = np.flatnonzero(~self.must)
        n_free = min(self.count - int(self.must.sum()), len(free))
        if n_free > 0:
            chosen[free[nearest_first(-values[np.newaxis, free], n_free)[0]]] = True
        return np.flatnonzero(chosen)

    def fill(self, features: IndexArray, order: IndexArray) -> IndexArray:
        """Some features and the units that still fit, taken in this order."""
        taken = np.zeros(len(self.sizes), dtype=bool)
        taken[self.units[features]] = True
        room = self.count - len(features)
        for unit in order:
            if room < 1:
                break
            if not taken[unit] and self.sizes[unit] <= room:
                taken[unit] = True
                room -= int(self.sizes[unit])
        return np.flatnonzero(taken[self.units])

    def restrict(self, rows: IndexArray) -> "AllowedSets":
        """The same on some of the features, which are those of whole units."""
        units = np.unique(self.units[rows], return_inverse=True)[1].astype(np.intp)
        return AllowedSets(self.count, self.must[rows], units)


@dataclass(frozen=True)
class FoundSet:
    """A set, and the way there."""

    held: HeldSet
    images: FloatArray
    """B of the set, a row for every feature of S."""
    history: tuple[float, ...]
    """F of every set on the way, the last one's included; it never falls."""
    n_steps: int
    """Projections, including the last one, which changes nothing, and exchanges."""

    @property
    def features(self) -> IndexArray:
        return self.held.features

    @property
    def variance(self) -> float:
        """F."""
        return self.history[-1]


def improve_by_projection(
    operator: SymmetricOperator,
    features: IndexArray,
    width: int,
    allowed: AllowedSets | None = None,
    max_iter: int = 100,
) -> FoundSet:
    """IPU from a set of features: the set with the largest p, until the sum of p does not grow.

    A step needs S on the set and one product with S. Without ``allowed``, any set of this size is.
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
    """All columns in order, those first that hold more variance than the first ``count`` did."""
    place = np.full(table.n_features, -1)
    place[table.usable] = np.arange(len(table.usable))
    ranked = place[order]
    kept = ranked[:count]
    kept = np.sort(kept[kept >= 0])
    allowed = AllowedSets.of_table(table, control, count)
    start = kept
    if allowed.has_groups:  # those that fit whole, the best first
        units = allowed.units[ranked[ranked >= 0]]
        first = np.sort(np.unique(units, return_index=True)[1])
        start = allowed.fill(np.flatnonzero(allowed.must), units[first])
    if len(start) == 0:  # constant columns only, or no group fits
        return order, Refinement(0, 0.0, 0.0)
    found = improve_by_projection(scatter, start, width, allowed)
    comes_first = control.must & table.unusable
    comes_first[table.usable[found.features]] = True
    n_changed = len(np.setdiff1d(found.features, kept))
    order = np.concatenate([order[comes_first[order]], order[~comes_first[order]]])
    return order, Refinement(n_changed, found.history[0], found.variance)
