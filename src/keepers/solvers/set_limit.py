"""Which sets of features may be kept: so many, some always, groups as a whole, costs up to a sum.

Features that stand or fall together are a unit. A unit has a cost, the sum over its features; a
set of units is allowed if it holds those that must be kept and its costs add up to no more than
the capacity. Without groups and costs every feature is a unit of cost 1: a set is any k features.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.ordering import best_first, nearest_first

# Sums of costs may exceed the capacity by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class SetLimit:
    """The sets of rows that may be kept."""

    size: int
    """Number of rows."""
    capacity: float
    """What the costs of a set may add up to; the number of rows where they cost 1 each."""
    must: BoolArray
    """Rows that every set holds."""
    units: IndexArray | None = None
    """The unit of every row, counted from 0; None: every row is its own."""
    costs: FloatArray | None = None
    """Of every row, > 0; None: 1 each."""

    @classmethod
    def of_count(cls, size: int, count: int) -> "SetLimit":
        """Any ``count`` of ``size`` rows."""
        return cls(size, float(min(count, size)), np.zeros(size, dtype=bool))

    @property
    def is_count(self) -> bool:
        """Whether only the number of rows counts."""
        return self.units is None and self.costs is None

    @cached_property
    def unit_of(self) -> IndexArray:
        """The unit of every row."""
        return np.arange(self.size) if self.units is None else self.units

    @cached_property
    def unit_costs(self) -> FloatArray:
        """The cost of every unit."""
        costs = np.ones(self.size) if self.costs is None else self.costs
        return costs if self.units is None else self.pool(costs)

    @cached_property
    def unit_must(self) -> BoolArray:
        """Units that every set holds."""
        return self.must if self.units is None else self.pool(self.must) > 0

    def pool(self, values: FloatArray | BoolArray) -> FloatArray:
        """A value of every row -> its sum over every unit."""
        if self.units is None:
            return np.asarray(values, dtype=np.float64)
        return np.asarray(np.bincount(self.units, values), dtype=np.float64)

    def rows_of(self, units: IndexArray) -> IndexArray:
        """The rows of some units, in order."""
        if self.units is None:
            return np.sort(units)
        return np.flatnonzero(np.isin(self.units, units))

    def units_of(self, rows: IndexArray) -> IndexArray:
        """The units of some rows, in order."""
        return np.unique(self.unit_of[rows])

    def cost_of(self, rows: IndexArray) -> float:
        """What these rows cost."""
        return float(len(rows)) if self.costs is None else float(np.sum(self.costs[rows]))

    def room_in(self, rows: IndexArray) -> float:
        """What may be added to these rows."""
        return self.capacity * (1.0 + _ROUNDING) - self.cost_of(rows)

    def choose(self, values: FloatArray) -> IndexArray:
        """Rows whose values add up to much: the largest, or the units worth most for their cost.

        For a number of rows the sum is the largest there is; ties go to the lowest index. With
        groups or costs it is that of the better of two greedy fillings, by value over cost and by
        value.
        """
        if self.is_count:
            free = np.flatnonzero(~self.must)
            count = min(int(self.capacity) - int(self.must.sum()), len(free))
            chosen = self.must.copy()
            if count > 0:
                chosen[free[nearest_first(-values[np.newaxis, free], count)[0]]] = True
            return np.flatnonzero(chosen)
        worth = self.pool(values)
        begun = self.rows_of(np.flatnonzero(self.unit_must))
        fillings = [
            self.fill(begun, best_first(worth / self.unit_costs, worth)),
            self.fill(begun, best_first(worth, worth / self.unit_costs)),
        ]
        sums = [float(np.sum(values[rows])) for rows in fillings]
        return fillings[0] if sums[0] >= sums[1] else fillings[1]

    def fill(self, rows: IndexArray, order: IndexArray) -> IndexArray:
        """Some rows and the units that still fit, taken in this order."""
        room = self.room_in(rows)
        taken = np.zeros(len(self.unit_costs), dtype=bool)
        taken[self.unit_of[rows]] = True
        cheapest = float(np.min(self.unit_costs, where=~taken, initial=np.inf))
        for unit in order:
            if room < cheapest:
                break
            if not taken[unit] and self.unit_costs[unit] <= room:
                taken[unit] = True
                room -= float(self.unit_costs[unit])
        return self.rows_of(np.flatnonzero(taken))

    def restrict(self, rows: IndexArray) -> "SetLimit":
        """The same on some of the rows, which are those of whole units."""
        units = None
        if self.units is not None:
            units = np.unique(self.units[rows], return_inverse=True)[1].astype(np.intp)
        costs = None if self.costs is None else self.costs[rows]
        return SetLimit(len(rows), self.capacity, self.must[rows], units, costs)
