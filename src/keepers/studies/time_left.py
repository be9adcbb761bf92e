"""How long the rest of a study will take, guessed from what has been done."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

__all__ = ["TimeLeft"]

Kind = tuple[Hashable, ...]


class TimeLeft:
    """Expected seconds of the tasks that are left, shared among the workers.

    A task is expected to take as long as those of its kind have taken. A kind is a tuple from the
    general to the particular, say (method, data); one that has not been seen yet borrows from the
    kinds with the same beginning, and in the end from all.
    """

    def __init__(self, kinds: Iterable[Kind], n_jobs: int) -> None:
        self._left = Counter(kinds)
        self._n_jobs = max(1, n_jobs)
        self._times: defaultdict[Kind, list[float]] = defaultdict(list)

    def after(self, kind: Kind, seconds: float) -> float:
        """Count one more finished task of a kind; what is left, in seconds."""
        self._left[kind] -= 1
        for length in range(len(kind) + 1):
            self._times[kind[:length]].append(seconds)
        expected = sum(count * self._expected(kind) for kind, count in self._left.items())
        return expected / self._n_jobs

    def _expected(self, kind: Kind) -> float:
        known = next(kind[:n] for n in range(len(kind), -1, -1) if kind[:n] in self._times)
        return sum(self._times[known]) / len(self._times[known])
