"""Sets of features that hold much variance, searched for in a matrix S that is in memory.

None of it needs more than eigenpairs of S_II for sets I of about the size that is kept:

* `project` repeats: p_j of every feature, the set with the largest sum of p. F never falls.
* `grow` adds the feature with the largest gain, `shrink` drops those with the smallest losses.
* `swap` exchanges one unit for another as long as F, computed anew, grows.
"""

from dataclasses import dataclass

import numpy as np

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.ordering import best_first, first_largest
from keepers.linalg.scatter import DenseScatter
from keepers.solvers.set_changes import (
    HeldSet,
    gains_of_adding,
    hold,
    images_of,
    losses_of_removing,
    projections,
)
from keepers.solvers.set_limit import SetLimit

# What F has to grow by, relatively, for a set to count as better.
GAIN = 1e-10
# Units that may leave in a swap, the cheapest first, and those that may come for each, the best
# first. All of both if that are no more pairs than this.
OUT, IN, ALL_PAIRS = 6, 2, 600
# Multiplications that the swaps of one set may take, and rounds at most.
SWAP_WORK, MOST_SWAPS = 6e8, 50
# Share of the features that `shrink` drops between two decompositions.
DROPPED = 0.15


@dataclass(frozen=True)
class Found:
    """A set, and the way there."""

    held: HeldSet
    history: tuple[float, ...]
    """F of every set on the way, the last one's included; it never falls."""
    n_steps: int
    """Steps of `project`, the last of which changes nothing, and swaps."""

    @property
    def variance(self) -> float:
        """F."""
        return self.history[-1]


def project(
    operator: SymmetricOperator, start: HeldSet, limit: SetLimit, max_iter: int
) -> tuple[Found, FloatArray]:
    """Iterative projection from a set: the result, and the images of its eigenvectors.

    Every step makes one product. A step in which the sum of p does not grow is not taken.
    """
    held, history = start, [start.variance]
    images = images_of(operator, held)
    n_steps = 0
    while n_steps < max_iter:
        n_steps += 1
        p = projections(held, images)
        features = limit.choose(p)
        if not np.sum(p[features]) > history[-1] * (1.0 + GAIN):
            break
        candidate = hold(operator, features, held.width)
        if candidate.variance < history[-1]:
            break  # by rounding
        held = candidate
        history.append(held.variance)
        images = images_of(operator, held)
    return Found(held, tuple(history), n_steps), images


class SetSearch:
    """The search in one matrix."""

    def __init__(self, matrix: FloatArray, width: int, limit: SetLimit, max_iter: int) -> None:
        self.operator = DenseScatter(matrix)
        self.variances = matrix.diagonal()
        self.width = width
        self.limit = limit
        self.max_iter = max_iter

    def hold(self, features: IndexArray) -> HeldSet:
        """The leading eigenpairs on some features."""
        return hold(self.operator, features, self.width)

    def project(self, features: IndexArray) -> Found:
        """Iterative projection from a set."""
        return project(self.operator, self.hold(features), self.limit, self.max_iter)[0]

    def grow(self) -> IndexArray:
        """Units added one by one, each time the one with the largest gain for its cost.

        The eigenpairs are those of S on the span of the last ones and the new feature: what they
        hold is a lower bound, good enough to choose by.
        """
        limit, matrix = self.limit, self.operator.matrix
        taken = limit.unit_must.copy()
        rows = limit.rows_of(np.flatnonzero(taken))
        growing = _GrowingSet(matrix, self.width)
        for row in rows:
            growing.add(row)
        room = limit.room_in(rows)
        while True:
            fits = ~taken & (limit.unit_costs <= room)
            if not fits.any():
                return limit.rows_of(np.flatnonzero(taken))
            gains = limit.pool(growing.gains(self.variances)) / limit.unit_costs
            unit = first_largest(np.where(fits, gains, -np.inf))
            taken[unit] = True
            room -= float(limit.unit_costs[unit])
            for row in limit.rows_of(np.array([unit])):
                growing.add(row)

    def shrink(self, features: IndexArray) -> IndexArray:
        """Features dropped from a larger set, some at a time, those with the smallest losses."""
        count = int(self.limit.capacity)
        while len(features) > count:
            losses = losses_of_removing(self.hold(features), self.variances[features])
            losses = np.where(self.limit.must[features], np.inf, losses)
            left = max(count, int((1.0 - DROPPED) * len(features)))
            order = best_first(losses, self.variances[features])
            features = np.sort(features[order[:left]])
        return features

    def swap(self, found: Found) -> Found:
        """Exchange units as long as F grows; after each exchange, project."""
        size = len(found.held.features)
        rounds = int(min(MOST_SWAPS, SWAP_WORK / (OUT * (1 + IN) * float(size) ** 3)))
        for _ in range(rounds):
            best = self._best_swap(found.held)
            if not best.variance > found.variance * (1.0 + GAIN):
                break
            onward = project(self.operator, best, self.limit, self.max_iter)[0]
            n_steps = found.n_steps + 1 + onward.n_steps
            found = Found(onward.held, found.history + onward.history, n_steps)
        return found

    def _best_swap(self, held: HeldSet) -> HeldSet:
        """The best set that differs in one unit (and in what fits in beside it)."""
        limit, features = self.limit, held.features
        units = limit.units_of(features)
        n_out, n_in = OUT, IN
        if len(units) * (len(limit.unit_costs) - len(units)) <= ALL_PAIRS:
            n_out = n_in = len(limit.unit_costs)
        losses = np.zeros(limit.size)
        losses[features] = losses_of_removing(held, self.variances[features])
        price = (limit.pool(losses) / limit.unit_costs)[units]
        price = np.where(limit.unit_must[units], np.inf, price)
        out = units[np.argsort(price, kind="stable")][: min(n_out, int(np.isfinite(price).sum()))]
        candidates = [
            self.hold(features) for unit in out for features in self._without(held, int(unit), n_in)
        ]
        if not candidates:
            return held
        return candidates[first_largest(np.array([each.variance for each in candidates]))]

    def _without(self, held: HeldSet, unit: int, n_in: int) -> list[IndexArray]:
        """Sets with the best others in the place of one unit."""
        limit = self.limit
        rest = held.features[limit.unit_of[held.features] != unit]
        worth = limit.pool(self.variances)
        if len(rest):
            left = self.hold(rest)
            images = images_of(self.operator, left)
            worth = limit.pool(gains_of_adding(left, images, self.variances))
        fits = limit.unit_costs <= limit.room_in(rest)
        fits[limit.unit_of[held.features]] = False
        coming = np.flatnonzero(fits)
        order = best_first(worth / limit.unit_costs, worth)
        best = coming[np.argsort(-worth[coming], kind="stable")][:n_in]
        sets = []
        for other in best:
            together = np.sort(np.concatenate([rest, limit.rows_of(np.array([other]))]))
            sets.append(together if limit.is_count else limit.fill(together, order))
        return sets


class _GrowingSet:
    """Eigenpairs of S on the span of those before and one more feature."""

    def __init__(self, matrix: FloatArray, width: int) -> None:
        self.matrix = matrix
        self.width = width
        self.values = np.empty(0)
        self.images = np.empty((len(matrix), 0))

    def gains(self, variances: FloatArray) -> FloatArray:
        """What every feature would add."""
        if len(self.values) < self.width:
            return variances
        held = HeldSet(np.empty(0, dtype=np.intp), self.values, np.empty((0, 0)), self.width)
        return gains_of_adding(held, self.images, variances)

    def add(self, row: int) -> None:
        """Take a feature in."""
        count = len(self.values)
        bordered = np.zeros((count + 1, count + 1))
        bordered[np.arange(count), np.arange(count)] = self.values
        bordered[count, :count] = bordered[:count, count] = self.images[row]
        bordered[count, count] = self.matrix[row, row]
        values, mixing = np.linalg.eigh(bordered)
        kept = min(count + 1, self.width)
        mixing = mixing[:, ::-1][:, :kept]
        self.images = self.images @ mixing[:count] + np.outer(self.matrix[:, row], mixing[count])
        self.values = values[::-1][:kept]
