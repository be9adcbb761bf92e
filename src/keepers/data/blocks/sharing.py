"""Blocks shared out among threads, in a fixed order.

With one BLAS thread each, threads do everything in parallel: reading, centring and multiplying.
One product spread over all threads leaves the rest to a single one, and took 1.3 times as long.
"""

import threading
from collections.abc import Callable, Iterator

from keepers._blas_threads import blas_threads, one_blas_thread
from keepers._protocols import RowBlock, Sum

__all__ = ["shared_out", "usable_threads"]

MOST_THREADS = 4
# Every thread has a sum of its own; past this, they share one and leave the threads to BLAS.
MOST_BYTES = 64 * 2**20


def usable_threads(n_bytes: float) -> int:
    """How many threads may have a sum of so many bytes each: as many as BLAS may use, at most."""
    if n_bytes > MOST_BYTES / 2:
        return 1
    return max(1, min(MOST_THREADS, int(MOST_BYTES / max(n_bytes, 1.0)), blas_threads()))


def shared_out(blocks: Iterator[RowBlock], sums: list[Sum]) -> Sum:
    """The total of all blocks; the i-th goes to the sum i modulo their number, whoever is first."""
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
    result = sums[0]
    for other in sums[1:]:
        result.merge(other)
    return result


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
