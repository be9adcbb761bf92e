"""The updates of H in RNE: H *= sqrt(negative part of a gradient / positive part of it).

With G = A'A apart by sign and columns of H scaled to length one before each update, the parts are

    alpha H + g G- H + g B+ + C+   and   alpha H H'H + g G+ H + g B- + C- + eps.

Both are divided by g/2 here. H is kept by its transpose, features along the rows, which BLAS
multiplies faster.

Two ways give the same H, to rounding. `everywhere` forms |G| H and G H whole. After some steps of
RNE nearly every feature is in one or two columns only, for alpha from about 100 on: the other
entries have fallen below rounding and go on falling. `concentrated` then

1. updates the entries that count alone, column by column with the rows of G that belong to them;
2. does the same updates to the others afterwards. They only depend on the former, so that one
   product a column serves all updates at once.

Where an entry grew enough meanwhile to count, the updates before that stay, and it is moved to the
former.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray

# Entries of a column of length one that count: even d of those below the first limit change no
# digit. One that grew during the last updates is taken to count from the second limit on.
COUNTS, GROWING_COUNTS = 1e-20, 1e-45
# Others are followed as long as none has grown to the first of these; those that grew, and are not
# smaller than the second times what counts, then count as well.
TOO_LARGE, NEARLY = 1e-18, 1e-6
# Where that made most updates in vain, the cost of `concentrated` counts so many times from then
# on, and this much less in each further step.
IN_VAIN, CALMER = 4.0, 0.8
# Whole rows of G are taken, not single numbers, where this times the numbers wanted exceeds d.
WHOLE_ROWS = 3
# A multiplied entry that has become this small is slow (denormal) and cannot matter any more.
VANISHED = 1e-150
# Multiplications that a pair of numbers costs `concentrated`, relative to `everywhere`: two that
# count, and one of each kind. And what the calls for a column cost.
BOTH_COUNT, ONE_COUNTS, CALLS = 9.0, 4.0, 2e5
# Updates in one go: as many as fit in so many bytes of history, and no fewer than this.
HISTORY_BYTES, FEWEST_UPDATES = 1 << 26, 5
# Updates everywhere before it is asked again which entries count.
UPDATES_EVERYWHERE = 10
# Others that are followed together, so that their products stay in a cache.
_FOLLOWED = 4096
_EPS = float(np.finfo(np.float64).eps)


def gram_count(n_samples: int, n_features: int) -> int:
    """How many d x d arrays of numbers are held: |A'A|, and A'A unless A is cheaper."""
    return 1 if 2 * n_samples < n_features else 2


class SplitGram:
    """G = A'A, known by |G| and its signs: as an array of its own, or one bit a number."""

    def __init__(self, A: FloatArray) -> None:
        self.A = A
        gram = A.T @ A
        self._negative = gram < 0.0
        # With one array for both, it is G or |G|, whichever was needed last.
        self._signed = gram
        self._has_two = gram_count(*A.shape) == 2
        self._magnitude = np.abs(gram) if self._has_two else gram
        self._is_signed = True
        self.room = Room()
        self._kept: dict[str, FloatArray] = {}

    def array(self, name: str, shape: tuple[int, int]) -> FloatArray:
        """An array that is used again by the next call: fresh pages cost more than what is done."""
        size = shape[0] * shape[1]
        if name not in self._kept or size > len(self._kept[name]):
            self._kept[name] = np.empty(size)
        return self._kept[name][:size].reshape(shape)

    @property
    def cost(self) -> float:
        """Multiplications of `products` for a column of H."""
        n_samples, n_features = self.A.shape
        return float(n_features * (n_features + min(2 * n_samples, n_features)))

    def products(self, Ht: FloatArray, magnitude: FloatArray, signed: FloatArray) -> None:
        """Write H'|G| and H'G into the two arrays."""
        self._set_signs(self._has_two)
        np.matmul(Ht, self._magnitude, out=magnitude)
        if self._has_two:
            np.matmul(Ht, self._signed, out=signed)
        else:
            np.matmul(Ht @ self.A.T, self.A, out=signed)

    def parts(
        self, rows: IndexArray, columns: IndexArray, room: "Room | None" = None
    ) -> tuple[FloatArray, FloatArray]:
        """G+ and G- in these rows and columns, in ``room`` if it is given."""
        self._set_signs(True)
        shape = (len(rows), len(columns))
        places, block, positive = (room or Room()).arrays(shape)
        # Three times as fast as an open mesh. Indices are in range: nothing is clipped.
        np.add(rows[:, np.newaxis] * len(self._signed), columns, out=places)
        self._signed.reshape(-1).take(places, out=block, mode="clip")
        np.maximum(block, 0.0, out=positive)
        return positive, np.subtract(positive, block, out=block)

    def row_parts(self, rows: IndexArray, room: "Room") -> tuple[FloatArray, FloatArray]:
        """G+ and G- in these rows."""
        self._set_signs(True)
        _, block, positive = room.arrays((len(rows), len(self._signed)))
        self._signed.take(rows, axis=0, out=block, mode="clip")
        np.maximum(block, 0.0, out=positive)
        return positive, np.subtract(positive, block, out=block)

    def _set_signs(self, signed: bool) -> None:
        if self._is_signed and not signed:
            np.abs(self._signed, out=self._signed)
        elif signed and not self._is_signed:
            np.negative(self._signed, where=self._negative, out=self._signed)
        self._is_signed = signed


class Room:
    """Memory for a block of indices and two of numbers: fresh pages cost more than what is done."""

    def __init__(self) -> None:
        self._places = np.empty(0, dtype=np.intp)
        self._numbers = np.empty((2, 0))

    def arrays(self, shape: tuple[int, int]) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Arrays of this shape, with anything in them."""
        size = shape[0] * shape[1]
        if size > len(self._places):
            self._places = np.empty(size, dtype=np.intp)
            self._numbers = np.empty((2, size))
        first, second = (numbers[:size].reshape(shape) for numbers in self._numbers)
        return self._places[:size].reshape(shape), first, second


@dataclass(frozen=True)
class Gradient:
    """What stays fixed during the updates of a step, divided by g/2; m x d."""

    pull: float
    """2 alpha / g."""
    gain: FloatArray
    """2 B+ + (2/g) C+."""
    loss: FloatArray
    """2 B- + (2/g) (C- + eps)."""

    @classmethod
    def of(cls, B: FloatArray, C: FloatArray, alpha: float, penalty: float) -> "Gradient":
        """B = M'A, C = Y'A and the penalty g."""
        inverse = 2.0 / penalty
        gain = 2.0 * np.maximum(B, 0.0) + inverse * np.maximum(C, 0.0)
        loss = 2.0 * np.maximum(-B, 0.0) + inverse * (np.maximum(-C, 0.0) + _EPS)
        return cls(alpha * inverse, gain, loss)


class Updates:
    """Updates of H in place, in the cheaper of the two ways."""

    def __init__(self, gram: SplitGram, Ht: FloatArray) -> None:
        self._gram = gram
        self._Ht = Ht
        self._before = Ht.copy()
        self._caution = 1.0

    def apply(self, gradient: Gradient, n_updates: int) -> None:
        """Do this number of updates."""
        self._caution = max(CALMER * self._caution, 1.0)
        while n_updates > 0:
            counting = self._counting()
            self._before[:] = self._Ht
            at_once = min(n_updates, UPDATES_EVERYWHERE)
            if _is_concentrated(self._Ht, counting, self._gram, self._caution):
                n_others = np.count_nonzero(self._Ht) - np.count_nonzero(counting)
                fitting = HISTORY_BYTES // (8 * int(n_others) + 1)
                at_once = min(n_updates, max(fitting, FEWEST_UPDATES))
                if concentrated(self._Ht, counting, self._gram, gradient, at_once):
                    self._caution *= IN_VAIN
            else:
                everywhere(self._Ht, self._gram, gradient, at_once)
            n_updates -= at_once

    def _counting(self) -> BoolArray:
        lengths = column_lengths(self._Ht)[:, np.newaxis]
        growing = (self._Ht > self._before) & (self._Ht > GROWING_COUNTS * lengths)
        return np.asarray((self._Ht > COUNTS * lengths) | growing)


def column_lengths(Ht: FloatArray) -> FloatArray:
    """Length of every column of H, never zero."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", Ht, Ht) + _EPS))


def _is_concentrated(
    Ht: FloatArray, counting: BoolArray, gram: SplitGram, caution: float = 1.0
) -> bool:
    counts = np.count_nonzero(counting, axis=1).astype(np.float64)
    others = np.count_nonzero(Ht, axis=1) - counts
    cost = counts * (BOTH_COUNT * counts + ONE_COUNTS * others) + CALLS
    return bool(counts.min() > 0 and caution * cost.sum() < len(Ht) * gram.cost)


def everywhere(Ht: FloatArray, gram: SplitGram, gradient: Gradient, n_updates: int) -> None:
    """Update H in place with whole products."""
    magnitude, signed, numerator = (np.empty_like(Ht) for _ in range(3))
    for _ in range(n_updates):
        Ht /= column_lengths(Ht)[:, np.newaxis]
        gram.products(Ht, magnitude, signed)
        np.subtract(magnitude, signed, out=numerator)
        np.maximum(numerator, 0.0, out=numerator)  # a difference of equals may round below zero
        numerator += gradient.gain
        denominator = np.add(magnitude, signed, out=magnitude)
        np.maximum(denominator, 0.0, out=denominator)
        denominator += gradient.loss
        denominator += np.matmul(gradient.pull * (Ht @ Ht.T), Ht, out=signed)
        numerator += np.multiply(gradient.pull, Ht, out=signed)
        numerator /= denominator
        Ht *= np.sqrt(numerator, out=numerator)
        Ht[Ht < VANISHED] = 0.0


def concentrated(
    Ht: FloatArray, counting: BoolArray, gram: SplitGram, gradient: Gradient, n_updates: int
) -> bool:
    """Update H in place; only entries marked in ``counting`` take part in products.

    Where another entry comes to count on the way, the updates before that stay, and the rest is
    done with what counts then; everywhere, if more than half were in vain. Returns whether it was.
    """
    values = Ht.reshape(-1)
    while True:
        run = _Concentrated(Ht, counting, gram, gradient, n_updates)
        n_done = run.follow()
        run.store(values, n_done)
        n_updates -= n_done
        if n_updates == 0:
            return False
        counting = (Ht > COUNTS) | run.grown(n_done)
        if n_done < n_updates or not _is_concentrated(Ht, counting, gram):
            everywhere(Ht, gram, gradient, n_updates)
            return True


class _Concentrated:
    """Some updates of the entries that count, and what the others need of them afterwards."""

    def __init__(
        self,
        Ht: FloatArray,
        counting: BoolArray,
        gram: SplitGram,
        gradient: Gradient,
        n_updates: int,
    ) -> None:
        self._gram, self._gradient = gram, gradient
        self._room = gram.room
        self._width, self._n_features = Ht.shape
        self.entries = np.flatnonzero(counting)
        self.others = np.flatnonzero((Ht > 0.0) & ~counting)
        self.others_after = Ht.reshape(-1)[self.others]
        self._entry_parts, self._other_parts = map(self._columns, (self.entries, self.others))
        # After the lengths are made one: entries, and H H'H at the others, update by update.
        self._lengths = np.empty((n_updates, self._width))
        self._history = gram.array("history", (n_updates, len(self.entries)))
        self._spread = gram.array("spread", (n_updates, len(self.others)))
        self.entries_after = self._update_entries(Ht.reshape(-1)[self.entries])

    def _columns(self, places: IndexArray) -> list[slice]:
        """The part of ``places`` that belongs to each column of H."""
        bounds = np.searchsorted(places, np.arange(self._width + 1) * self._n_features)
        return [slice(*pair) for pair in itertools.pairwise(bounds)]

    def _update_entries(self, values: FloatArray) -> FloatArray:
        entries, pull = self.entries, self._gradient.pull
        column, feature = np.divmod(entries, self._n_features)
        starts = [part.start for part in self._entry_parts]
        gain, loss = (v.reshape(-1)[entries] for v in (self._gradient.gain, self._gradient.loss))
        unit, minus, plus = (np.empty_like(values) for _ in range(3))
        products = []
        sizes = [part.stop - part.start for part in self._entry_parts]
        n_numbers = sum(size * size for size in sizes)
        blocks, end = self._gram.array("blocks", (2, n_numbers)), 0
        for part, size in zip(self._entry_parts, sizes, strict=True):
            found = self._gram.parts(feature[part], feature[part], self._room)
            kept = blocks[:, end : (end := end + size * size)].reshape(2, size, size)
            kept[:] = found
            products.append((unit[part], kept[0], plus[part]))
            products.append((unit[part], kept[1], minus[part]))
        whole = np.zeros((self._width, self._n_features))
        for update, lengths in enumerate(self._lengths):
            np.sqrt(np.add.reduceat(values * values, starts) + _EPS, out=lengths)
            np.divide(values, lengths[column], out=unit)
            self._history[update] = unit
            for left, block, out in products:
                np.dot(left, block, out=out)
            whole.reshape(-1)[entries] = unit
            spread = ((whole @ whole.T) @ whole).reshape(-1)
            spread.take(self.others, out=self._spread[update], mode="clip")
            numerator = 2.0 * minus + gain + pull * unit
            values = unit * np.sqrt(numerator / (2.0 * plus + loss + pull * spread[entries]))
            values[values < VANISHED] = 0.0
        return values

    def follow(self) -> int:
        """Do the same updates to the others. Returns how many came before one of them counted."""
        largest = np.zeros(len(self._history))
        first = 0
        for last in range(self._width):
            size = self._other_parts[last].stop - self._other_parts[first].start
            if last == self._width - 1 or size > _FOLLOWED:
                part = slice(self._other_parts[first].start, self._other_parts[last].stop)
                np.maximum(largest, self._follow_columns(range(first, last + 1), part), out=largest)
                first = last + 1
        too_large = np.flatnonzero(largest > TOO_LARGE)
        return int(too_large[0]) if len(too_large) else len(largest)

    def store(self, values: FloatArray, n_done: int) -> None:
        """Write H as it is after this number of updates."""
        if n_done == len(self._history):
            values[self.entries], values[self.others] = self.entries_after, self.others_after
        else:
            values[self.entries], values[self.others] = self._history[n_done], self._spread[n_done]

    def grown(self, n_done: int) -> BoolArray:
        """Others that were larger after these updates than before, and not far from counting."""
        grown = np.zeros((self._width, self._n_features), dtype=bool)
        later = self._spread[n_done]
        near = (later > NEARLY * COUNTS) & (later > self._spread[0])
        grown.reshape(-1)[self.others[near]] = True
        return grown

    def _follow_columns(self, columns: range, part: slice) -> FloatArray:
        others, pull = self.others[part], self._gradient.pull
        numerator, denominator = self._products(columns, part)
        denominator += self._gradient.loss.reshape(-1)[others]
        denominator += pull * self._spread[:, part]
        numerator += self._gradient.gain.reshape(-1)[others]
        numerator /= denominator
        slopes = np.divide(pull, denominator, out=denominator)
        values, largest = self.others_after[part], np.zeros(len(self._history))
        column = others // self._n_features
        rounds = zip(self._lengths, numerator, slopes, strict=True)
        for update, (lengths, constant, slope) in enumerate(rounds):
            values /= lengths[column]
            largest[update] = values.max(initial=0.0)
            self._spread[update, part] = values  # H H'H is not needed any more, these may be
            slope *= values
            slope += constant
            values *= np.sqrt(slope, out=slope)
            values[values < VANISHED] = 0.0
        return largest

    def _products(self, columns: range, part: slice) -> tuple[FloatArray, FloatArray]:
        """2 G- H and 2 G+ H at the others of some columns, for all updates."""
        shape = (len(self._history), part.stop - part.start)
        minus, plus = (self._gram.array(name, shape) for name in ("minus", "plus"))
        room, d = self._room, self._n_features
        for column in columns:
            mine, other = self._entry_parts[column], self._other_parts[column]
            rows, others = self.entries[mine] % d, self.others[other] % d
            doubled = 2.0 * self._history[:, mine]
            place = slice(other.start - part.start, other.stop - part.start)
            if WHOLE_ROWS * len(others) > d:
                positive, negative = self._gram.row_parts(rows, room)
                np.matmul(doubled, positive).take(others, axis=1, out=plus[:, place], mode="clip")
                np.matmul(doubled, negative).take(others, axis=1, out=minus[:, place], mode="clip")
                continue
            positive, negative = self._gram.parts(rows, others, room)
            np.matmul(doubled, positive, out=plus[:, place])
            np.matmul(doubled, negative, out=minus[:, place])
        return minus, plus
