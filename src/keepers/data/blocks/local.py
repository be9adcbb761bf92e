"""Tables whose blocks are read by this process, one after the other, by one thread or several.

With one BLAS thread each, threads do everything in parallel: reading, centring and multiplying.
One product spread over all threads leaves the rest to a single one, and took 1.3 times as long.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from keepers._blas_threads import blas_threads, one_blas_thread
from keepers._protocols import BlockSum, IndexArray, PassProgress, ResumableSum, RowBlock, Sum
from keepers.exceptions import DataError

# Large enough for one product per block to be efficient, small enough for a cache to help.
BLOCK_BYTES = 8 * 2**20


def rows_at_once(n_columns: int, itemsize: int = 8, n_bytes: int = BLOCK_BYTES) -> int:
    """How many rows of so many columns make a block."""
    return max(1, n_bytes // (max(n_columns, 1) * itemsize))


class LocalBlocks(ABC):
    """A `BlockTable` that is read here; a kind of storage implements ``blocks``."""

    name: str
    n_features: int
    dtype: np.dtype[Any]
    n_samples: int | None = None
    n_stored: int | None = None
    is_sparse: bool = False
    rereadable: bool = True
    is_local: bool = True
    feature_names: NDArray[np.object_] | None = None

    @abstractmethod
    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of them, in that order, if given."""

    def blocks_after(
        self, n_rows: int, columns: IndexArray | None = None
    ) -> Iterator[RowBlock] | None:
        """The blocks after the first ``n_rows`` rows; None if no block ends there.

        The rows before are read and dropped; a storage that can begin anywhere overrides this.
        """
        return drop_rows(self.blocks(columns), n_rows)

    def identity(self) -> str | None:
        """What tells, before any row is read, that this is the table of an earlier process.

        None where nothing does: then only the rows themselves can.
        """
        return None

    def parts(self, n_parts: int) -> Sequence["LocalBlocks"]:
        """The same rows as tables of their own, about ``n_parts``, for workers to share."""
        return [self]

    def total(
        self,
        begin: Callable[[], Sum],
        columns: IndexArray | None = None,
        progress: PassProgress | None = None,
    ) -> Sum:
        """Sum over all blocks, with several threads where sums are small.

        With ``progress``, the sums are saved now and then, and an interrupted pass resumes
        from those it saved.
        """
        first = begin()
        n_sums = usable_threads(first.n_bytes)
        sums = None if progress is None else progress.load(begin, n_sums)
        blocks = None
        if sums is not None:
            n_rows = sum(cast(ResumableSum, each).n_samples for each in sums)
            blocks = self.blocks_after(n_rows, columns)
        if sums is None or blocks is None:
            sums = [first, *(begin() for _ in range(n_sums - 1))]
            blocks = self.blocks(columns)
        width = self.n_features if columns is None else len(columns)
        stretch = _Stretch(_check_shapes(blocks, width), n_sums, progress)
        while not stretch.ended:
            add_blocks(stretch, sums)
            if progress is not None and not stretch.ended:
                progress.save(sums)
        for other in sums[1:]:
            sums[0].merge(other)
        return sums[0]


class _Stretch(Iterator[RowBlock]):
    """The blocks up to the moment at which sums are to be saved; then it can be begun again.

    It pauses only when every sum has as many blocks as the others, so that the next block goes to
    the first sum, as it would without a pause: the digits of the result stay the same.
    """

    def __init__(
        self, blocks: Iterator[RowBlock], n_sums: int, progress: PassProgress | None
    ) -> None:
        self._blocks = blocks
        self._n_sums = n_sums
        self._progress = progress
        self._count = 0
        self.ended = False

    def __next__(self) -> RowBlock:
        """The next block, if it is not time to save."""
        is_even = self._count > 0 and self._count % self._n_sums == 0
        if is_even and self._progress is not None and self._progress.is_due():
            self._count = 0
            raise StopIteration
        try:
            block = next(self._blocks)
        except StopIteration:
            self.ended = True
            raise
        self._count += 1
        return block


def drop_rows(blocks: Iterator[RowBlock], n_rows: int) -> Iterator[RowBlock] | None:
    """The blocks after the first ``n_rows`` rows; None if no block ends there."""
    left = n_rows
    while left > 0:
        block = next(blocks, None)
        if block is None:
            return None
        left -= block.values.shape[0]
    return blocks if left == 0 else None


def _check_shapes(blocks: Iterator[RowBlock], width: int) -> Iterator[RowBlock]:
    for block in blocks:
        refuse_misshapen(block, width)
        yield block


def refuse_misshapen(block: RowBlock, width: int) -> None:
    """Raise for a block without rows, or with another number of columns."""
    n_rows, n_columns = block.values.shape
    if n_columns != width:
        raise DataError(
            f"Every block must have the same {width} columns; {block.origin} has {n_columns}. "
            "Leave it out, or write it again with the columns of the others."
        )
    if n_rows == 0:
        raise DataError(
            f"Every block must hold at least one row; {block.origin} holds none. Leave it out."
        )


MOST_THREADS = 4
# Every thread has a sum of its own; past this, they share one and leave the threads to BLAS.
MOST_BYTES = 64 * 2**20


def usable_threads(n_bytes: float) -> int:
    """How many threads may have a sum of so many bytes each: as many as BLAS may use, at most."""
    if n_bytes > MOST_BYTES / 2:
        return 1
    return max(1, min(MOST_THREADS, int(MOST_BYTES / max(n_bytes, 1.0)), blas_threads()))


def add_blocks(blocks: Iterator[RowBlock], sums: Sequence[BlockSum]) -> None:
    """Add the i-th block to the sum i modulo their number, a thread for each sum."""
    if len(sums) == 1:
        for block in blocks:
            sums[0].add(block)
        return
    turns = _Turns(blocks, len(sums))
    with one_blas_thread():
        others = [
            threading.Thread(target=turns.work, args=(turn, total.add), daemon=True)
            for turn, total in enumerate(sums[1:], 1)
        ]
        for thread in others:
            thread.start()
        try:
            turns.work(0, sums[0].add)
        finally:
            turns.end()
            for thread in others:
                thread.join()
    if turns.error is not None:
        raise turns.error


class _Turns:
    """Threads that read one after the other and work at the same time."""

    def __init__(self, blocks: Iterator[RowBlock], n_threads: int) -> None:
        self._blocks = blocks
        self._n_threads = n_threads
        self._turn = 0
        self._ended = False
        self._changed = threading.Condition()
        self.error: BaseException | None = None

    def work(self, turn: int, add: Callable[[RowBlock], None]) -> None:
        """Read when it is our turn, and add, until there are no more blocks."""
        try:
            while (block := self._next(turn)) is not None:
                add(block)
        except BaseException as error:
            with self._changed:
                self.error = self.error or error
            self.end()

    def _next(self, turn: int) -> RowBlock | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._turn == turn)
            if self._ended:
                return None
            block = next(self._blocks, None)
            if block is None:
                self._ended = True
            self._turn = (turn + 1) % self._n_threads
            self._changed.notify_all()
            return block

    def end(self) -> None:
        """Let everybody stop."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def even_ranges(rows: range, n_parts: int) -> list[range]:
    """Cut consecutive rows into at most ``n_parts`` ranges, none of them empty."""
    n_parts = max(1, min(n_parts, len(rows)))
    cuts = [rows.start + len(rows) * part // n_parts for part in range(n_parts + 1)]
    return [range(start, stop) for start, stop in pairwise(cuts)]


def shares(weights: Sequence[int], n_parts: int) -> list[range]:
    """Cut things in a row, of these weights, into at most ``n_parts`` ranges of positions."""
    n_parts = max(1, min(n_parts, len(weights)))
    ends = np.cumsum(np.asarray(weights, dtype=np.float64))
    middles = ends - np.asarray(weights) / 2
    part_of = np.minimum((middles * n_parts / max(ends[-1], 1)).astype(np.intp), n_parts - 1)
    starts = np.flatnonzero(np.diff(part_of, prepend=-1)).tolist()
    return [range(start, stop) for start, stop in pairwise([*starts, len(weights)])]


def known_sum(numbers: Iterable[float | None]) -> int | None:
    """The sum, or None if one of the numbers is not known (None, or nan in Dask)."""
    total = sum(np.nan if number is None else number for number in numbers)
    return None if np.isnan(total) else int(total)
