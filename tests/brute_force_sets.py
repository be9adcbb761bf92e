"""Small matrices of many kinds, and the best sets of features by looking at every set."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

KINDS = ("flat", "decaying", "low rank", "near duplicates", "duplicates", "diagonal")
# Values closer than this share are equal but for rounding. Proofs tell values 3e-12 apart.
EQUAL = 2e-13


@dataclass(frozen=True)
class SmallCase:
    """A problem, and the value of every set."""

    kind: str
    S: np.ndarray
    k: int
    m: int
    sets: np.ndarray
    """One a row."""
    values: np.ndarray

    @property
    def best(self) -> float:
        """The optimum."""
        return float(self.values.max())

    def best_among(self, allowed=None, forced=None) -> float:
        """The optimum over sets of allowed features that have all forced ones."""
        admitted = self.admitted(allowed, forced)
        return float(self.values[admitted].max())

    def admitted(self, allowed=None, forced=None) -> np.ndarray:
        """Which sets a restriction admits."""
        marks = np.zeros((len(self.sets), len(self.S)), dtype=bool)
        np.put_along_axis(marks, self.sets, True, axis=1)
        admitted = np.ones(len(self.sets), dtype=bool)
        if allowed is not None:
            admitted &= ~marks[:, ~allowed].any(axis=1)
        if forced is not None:
            admitted &= marks[:, forced].all(axis=1)
        return admitted

    def share_of_best_sets(self) -> np.ndarray:
        """In which share of the best sets each feature is."""
        best = self.sets[self.values >= self.best * (1 - EQUAL)]
        return np.bincount(best.ravel(), minlength=len(self.S)) / len(best)


def case_of(S: np.ndarray, k: int, m: int, kind: str = "") -> SmallCase:
    """The values of all sets of k features."""
    sets = np.array(list(combinations(range(len(S)), k)))
    parts = S[sets[:, :, np.newaxis], sets[:, np.newaxis, :]]
    values = np.linalg.eigvalsh(parts)[:, -m:].sum(axis=1)
    return SmallCase(kind, S, k, m, sets, values)


def scatter_of(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    """A random scatter."""
    A = rng.standard_normal((20, d)) * rng.uniform(0.3, 1.0, d)
    half = d // 2
    if kind == "decaying":
        A = A @ np.diag(np.exp(-0.7 * np.arange(d))) @ rng.standard_normal((d, d))
    elif kind == "low rank":
        A = rng.standard_normal((int(rng.integers(1, 4)), d))
    elif kind == "near duplicates":
        A[:, half : 2 * half] = A[:, :half] + 1e-3 * rng.standard_normal((20, half))
    elif kind == "duplicates":
        A[:, half : 2 * half] = A[:, :half]
    S = A.T @ A
    return np.diag(S.diagonal()) if kind == "diagonal" else S


def small_cases(count: int, seed: int, largest: int = 12) -> Iterator[SmallCase]:
    """Random problems with up to ``largest`` features, of all kinds and sizes of numbers."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        d = int(rng.integers(4, largest + 1))
        m = int(rng.integers(1, 5))
        k = int(rng.integers(m, min(d, 8) + 1))
        S = scatter_of(kind, d, rng) * 10.0 ** rng.integers(-8, 9)
        yield case_of(S, k, m, kind)


def random_restriction(case: SmallCase, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features that are allowed, and some of them that are forced, so that there are sets."""
    d = len(case.S)
    order = rng.permutation(d)
    n_forced = int(rng.integers(0, case.k + 1))
    n_out = int(rng.integers(0, d - case.k + 1))
    forced, allowed = np.zeros(d, dtype=bool), np.ones(d, dtype=bool)
    forced[order[:n_forced]] = True
    allowed[order[d - n_out :]] = False
    return allowed, forced
