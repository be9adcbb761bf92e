"""Rows of a table, drawn uniformly without replacement in one pass.

Every row has a key: a 64-bit number that follows from the seed and the number of the row in the
table. The rows with the smallest keys are drawn. So the same rows are drawn from a table in memory,
from blocks of any size and from sums that are merged in any order. The keys of a seed all differ.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import BlockSum, IndexArray, RowBlock
from keepers.exceptions import DataError
from keepers.linalg.moments import stack_rows
from keepers.linalg.sums import refuse_not_finite

Keys = NDArray[np.uint64]

_LARGEST = int(np.iinfo(np.uint64).max)
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: its i-th number from the state s is ``mix(s + i * GOLDEN_RATIO)``."""
# Keys that are computed at once.
_STEP = 1 << 18


def mix(numbers: Keys) -> Keys:
    """The mixing function of SplitMix64 (Steele, Lea and Flood, 2014), a bijection of 64 bits."""
    mixed = numbers
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = mixed ^ (mixed >> np.uint64(shift))
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def row_keys(numbers: IndexArray, seed: int) -> Keys:
    """The keys of the rows with these numbers: entries of the stream of SplitMix64."""
    # The seed is mixed before it starts the stream: streams of near seeds are far apart.
    first = mix(np.array([seed % 2**64], dtype=np.uint64))
    states = numbers.astype(np.uint64)
    states += np.uint64(1)
    states *= GOLDEN_RATIO
    states += first
    return mix(states)


def drawn_rows(n_samples: int, n_rows: int, seed: int) -> IndexArray:
    """The rows that are drawn from a table with ``n_samples`` rows, in ascending order."""
    drawn: IndexArray = np.empty(0, dtype=np.intp)
    for start in range(0, n_samples, _STEP):
        drawn = np.append(drawn, np.arange(start, min(start + _STEP, n_samples)))
        drawn = drawn[_smallest(row_keys(drawn, seed), n_rows)]
    return drawn


def largest_drawn_key(n_samples: int, n_rows: int, seed: int) -> int:
    """The largest key among the rows that are drawn from a table with ``n_samples`` rows."""
    return int(row_keys(drawn_rows(n_samples, n_rows, seed), seed).max())


def _smallest(keys: Keys, count: int) -> IndexArray:
    """The places of the ``count`` smallest keys, in ascending order; of fewer, all places."""
    if len(keys) <= count:
        return np.arange(len(keys))
    return np.sort(np.argpartition(keys, count - 1)[:count])


class RowReservoir(BlockSum):
    """The ``n_rows`` rows with the smallest keys; rows that are not drawn must be finite too.

    Up to twice that many rows are held. ``largest_key`` is `largest_drawn_key`, if the number of
    rows is known: no other row is copied. ``allow_nan``: rows may have gaps.
    """

    def __init__(
        self, n_rows: int, seed: int, largest_key: int | None = None, *, allow_nan: bool = False
    ) -> None:
        self.n_rows = n_rows
        self.seed = seed
        self.allow_nan = allow_nan
        self.n_samples = 0
        self._largest_key = _LARGEST if largest_key is None else largest_key
        self._next = 0
        self._assumed_first = False
        self._pieces: list[Any] = []
        self._numbers: IndexArray = np.empty(0, dtype=np.intp)

    def add(self, block: RowBlock) -> None:
        """Take in the rows of a block that may be among those drawn."""
        refuse_not_finite(block, allow_nan=self.allow_nan)
        n_rows = block.values.shape[0]
        if block.start is None and self.n_samples == 0:
            self._assumed_first = True
        start = self._next if block.start is None else block.start
        self._next = start + n_rows
        self.n_samples += n_rows
        numbers = np.arange(start, self._next, dtype=np.intp)
        keys = row_keys(numbers, self.seed)
        near = np.flatnonzero(keys <= self._largest_key)
        near = near[_smallest(keys[near], self.n_rows)]
        if len(near):
            self._hold([block.values[near]], numbers[near])

    def merge(self, other: Self) -> None:
        """Take in the rows of other blocks."""
        if other._assumed_first and self.n_samples:
            raise DataError(
                "To draw rows, a block table must add its blocks in order to one sum, or give "
                "where each starts: RowBlock(values, origin, start=number of its first row in the "
                "table). This one merged sums of blocks without start."
            )
        self.n_samples += other.n_samples
        self._next = other._next
        self._assumed_first |= other._assumed_first
        self._largest_key = min(self._largest_key, other._largest_key)
        self._hold(other._pieces, other._numbers)

    def _hold(self, pieces: list[Any], numbers: IndexArray) -> None:
        self._pieces += pieces
        self._numbers = np.concatenate([self._numbers, numbers])
        if len(self._numbers) > 2 * self.n_rows:
            self._sort_out()

    def _sort_out(self) -> None:
        """Keep the rows with the smallest keys, in ascending order of their numbers."""
        if self._pieces:
            keys = row_keys(self._numbers, self.seed)
            kept = _smallest(keys, self.n_rows)
            if len(kept) == self.n_rows:
                self._largest_key = min(self._largest_key, int(keys[kept].max()))
            kept = kept[np.argsort(self._numbers[kept])]
            self._pieces = [stack_rows(self._pieces)[kept]]
            self._numbers = self._numbers[kept]

    @property
    def numbers(self) -> IndexArray:
        """The numbers of the rows drawn so far, in ascending order."""
        self._sort_out()
        return self._numbers

    def rows(self) -> Any:
        """The rows drawn so far, in their order in the table: array or CSR matrix."""
        self._sort_out()
        return self._pieces[0]
