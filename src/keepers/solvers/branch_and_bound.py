"""The k features that hold the most variance in m components, with proof: branch and bound.

A node is the problem with some features forced in and others left out. Its bound is that of
`keepers.solvers.variance_bounds` on the features that are left; the node with the largest bound is
taken first. What its bound proves about single features is settled at once, without branching;
then the free feature with the largest term is forced in in one child and left out in the other.
Sets of features are tried at every node, so that the best set is usually found long before it is
proved. The largest bound of the nodes that are open is a bound on the optimum at any time.
"""

import heapq
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.held_variance import variance_held
from keepers.solvers.tight_bound import MOST_STEPS, tight_bound
from keepers.solvers.variance_bounds import (
    Restriction,
    row_sum_bound,
    spectral_bound,
)

# A bound that exceeds the best value by no more than this share of it proves that value.
PROVED = 1e-10
# The tighter bound: steps at a node, up to how many features, and the share of the gap of the other
# bound at the first node below which it is taken at all nodes.
_TIGHT_STEPS, _MOST_TIGHT, _CLOSES = 8, 3000, 0.3
# Features up to which row sums are looked at.
_MOST_ROW_SUMS = 500
_SECONDS_BETWEEN = 5.0
_INSIDE, _OUTSIDE = 1, -1


@dataclass(frozen=True)
class SearchProgress:
    """How far a search has come."""

    value: float
    """The largest value found."""
    upper_bound: float
    """No set holds more."""
    n_nodes: int
    """Nodes looked at."""
    n_open: int
    """Nodes to look at, as far as is known."""
    seconds: float
    """Time spent, that before an interruption included."""

    @property
    def gap(self) -> float:
        """The share of the bound that is not reached, 0 at the optimum."""
        if self.upper_bound <= 0.0:
            return 0.0
        return max(1.0 - self.value / self.upper_bound, 0.0)


@dataclass(frozen=True)
class BestSet:
    """The best set of features found, and what is proved about it."""

    features: IndexArray
    value: float
    upper_bound: float
    proved: bool
    """Whether no set holds more, but for a share of 1e-10."""
    n_nodes: int
    seconds: float


SearchState = Mapping[str, NDArray[Any]]


class FeatureSearch:
    """Branch and bound.

    Parameters
    ----------
    operator : SymmetricOperator
        S, in memory: as a matrix, or as a factor of low rank. Each node decomposes a part of it.
    n_features, n_components : int
        k and m, 1 <= m <= k <= d.
    restriction : Restriction or None
        Features that sets have to contain, and those among which they are chosen.
    start : array of indices or None
        A set that is known to be good.
    bound : float
        No set holds more, as far as is known.
    """

    def __init__(
        self,
        operator: SymmetricOperator,
        n_features: int,
        n_components: int,
        restriction: Restriction | None = None,
        start: IndexArray | None = None,
        bound: float = np.inf,
    ) -> None:
        self._operator = operator
        self._variances = np.asarray(operator.diagonal(), dtype=np.float64)
        self._k, self._m = n_features, n_components
        restriction = restriction or Restriction.to_all(operator.size)
        marks = np.zeros(operator.size, dtype=np.int8)
        marks[~restriction.allowed] = _OUTSIDE
        marks[restriction.forced] = _INSIDE
        self.value, self.features = -np.inf, np.empty(0, dtype=np.intp)
        self._known: set[bytes] = set()
        self._n_nodes, self._seconds, self._count = 0, 0.0, 0
        self._tight_pays = True
        self._open: list[tuple[float, int, NDArray[np.int8]]] = []
        if start is not None:
            self._try(np.sort(start))
        self._try_with_steps(restriction.choose(self._variances, n_features), restriction)
        largest = float(np.sort(self._variances)[-n_features:].sum())
        self._push(min(largest, bound), marks)

    @property
    def _tolerance(self) -> float:
        return PROVED * max(self.value, 0.0)

    def progress(self) -> SearchProgress:
        """How far the search has come."""
        # Nodes were given up as soon as they could not be better by more than the tolerance.
        bound = self.value + self._tolerance
        if self._open:
            bound = max(bound, -self._open[0][0])
        return SearchProgress(self.value, bound, self._n_nodes, len(self._open), self._seconds)

    def run(
        self,
        time_limit: float | None = None,
        callback: Callable[[SearchProgress], object] | None = None,
        keep: Callable[[SearchState], object] | None = None,
    ) -> BestSet:
        """Search until the best set is proved, or for ``time_limit`` seconds from now.

        ``callback`` is called after every node, ``keep`` with the state from which a search can
        resume: every few seconds and at the end, also if that is an exception.
        """
        begun, before = time.perf_counter(), self._seconds
        saved = begun
        try:
            while not self._is_proved():
                if time_limit is not None and time.perf_counter() - begun >= time_limit:
                    break
                self._take_next()
                now = time.perf_counter()
                self._seconds = before + now - begun
                if keep is not None and now - saved >= _SECONDS_BETWEEN:
                    keep(self.state())
                    saved = time.perf_counter()
                if callback is not None:
                    callback(self.progress())
        finally:
            if keep is not None:
                keep(self.state())
        return self._result()

    def _take_next(self) -> None:
        """Look at the node with the largest bound; it stays open if that is interrupted."""
        bound, _, marks = heapq.heappop(self._open)
        try:
            self._look_at(-bound, marks)
        except BaseException:
            self._push(-bound, marks)
            raise
        self._n_nodes += 1

    def _is_proved(self) -> bool:
        return not self._open or -self._open[0][0] <= self.value + self._tolerance

    def _result(self) -> BestSet:
        at = self.progress()
        return BestSet(
            self.features, self.value, at.upper_bound, self._is_proved(), at.n_nodes, at.seconds
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that a search can resume from, as arrays."""
        size = self._operator.size
        nodes = [marks for _, _, marks in self._open]
        return {
            "features": self.features,
            "bounds": np.array([-bound for bound, _, _ in self._open]),
            "nodes": np.array(nodes, dtype=np.int8).reshape(-1, size),
            "counts": np.array([self._n_nodes, self._count, self._tight_pays], dtype=np.int64),
            "seconds": np.array(self._seconds),
        }

    def restore(self, state: SearchState) -> None:
        """Resume from a state of the same problem; ValueError if it cannot be one."""
        size = self._operator.size
        bounds, nodes = state["bounds"], state["nodes"]
        features, counts, seconds = state["features"], state["counts"], state["seconds"]
        sound = (
            bounds.ndim == 1
            and nodes.dtype == np.int8
            and nodes.shape == (len(bounds), size)
            and bool(np.isin(nodes, (_OUTSIDE, 0, _INSIDE)).all())
            and features.shape == (self._k,)
            and features.dtype.kind == "i"
            and bool(np.all((features >= 0) & (features < size)))
            and len(np.unique(features)) == self._k
            and counts.shape == (3,)
            and counts.dtype.kind == "i"
            and seconds.shape == ()
            and bool(np.isfinite(bounds).all() and np.isfinite(seconds))
        )
        if not sound:
            raise ValueError("not the state of a search for this problem")
        self._try(np.sort(features.astype(np.intp)))
        self._open = [
            (-float(bound), number, marks)
            for number, (bound, marks) in enumerate(zip(bounds, nodes.copy(), strict=True))
        ]
        heapq.heapify(self._open)
        self._n_nodes, self._count = int(counts[0]), max(int(counts[1]), len(self._open))
        self._seconds, self._tight_pays = float(seconds), bool(counts[2])

    def _push(self, bound: float, marks: NDArray[np.int8]) -> None:
        if bound > self.value + self._tolerance:
            self._count += 1
            heapq.heappush(self._open, (-bound, self._count, marks))

    def _try(self, features: IndexArray) -> None:
        """Keep a set if it is the best so far."""
        key = features.tobytes()
        if key in self._known:
            return
        self._known.add(key)
        value = variance_held(self._operator, features, self._m)
        if value > self.value:
            self.value, self.features = value, features

    def _try_with_steps(self, features: IndexArray, restriction: Restriction) -> None:
        """The same for a set and the one that projections lead to."""
        if features.tobytes() in self._known:
            return
        self._try(features)
        self._try(restriction.improve(self._operator, features, self._m).features)

    def _look_at(self, bound: float, marks: NDArray[np.int8]) -> None:
        """Bound a node, settle what is proved, and branch."""
        marks = marks.copy()
        while True:
            n_inside, n_free = int(np.sum(marks == _INSIDE)), int(np.sum(marks == 0))
            if n_inside >= self._k or n_inside + n_free <= self._k:
                self._try_leaf(marks, n_inside)
                return
            node = self._bound_node(marks)
            value = min(bound, node.value)
            if value <= self.value + self._tolerance:
                return
            settled = self._settle(marks, node, value)
            if settled == 0:
                break
        self._branch(marks, node, value)

    def _try_leaf(self, marks: NDArray[np.int8], n_inside: int) -> None:
        """The only set that is left in a node, if any."""
        chosen = np.flatnonzero(marks == _INSIDE if n_inside >= self._k else marks != _OUTSIDE)
        if len(chosen) == self._k:
            self._try(chosen)

    def _bound_node(self, marks: NDArray[np.int8]) -> "_Node":
        left = np.flatnonzero(marks != _OUTSIDE)
        part = self._operator.restrict(left)
        inner = Restriction(np.ones(len(left), dtype=bool), marks[left] == _INSIDE)
        spectrum = spectral_bound(part, self._m, np.random.default_rng(0))
        found = spectrum.bound(self._k, self._m, inner)
        value = found.value
        if self._m == 1 and len(left) <= _MOST_ROW_SUMS:
            value = min(value, row_sum_bound(part.dense(), self._k, inner) + found.rounding)
        value = min(value, self._tight_value(part, inner, value))
        node = _Node(left, value, found.value, found.rounding, found.terms)
        restriction = Restriction(marks != _OUTSIDE, marks == _INSIDE)
        terms = np.zeros(len(marks))
        terms[left] = found.terms
        self._try_with_steps(restriction.choose(terms, self._k), restriction)
        return node

    def _tight_value(self, part: SymmetricOperator, inner: Restriction, value: float) -> float:
        """The tighter bound, at the first node, and at others if it closed much of the gap there.

        It takes the time of a hundred spectra.
        """
        gap = value - self.value
        if not self._tight_pays or part.size > _MOST_TIGHT or gap <= self._tolerance:
            return value
        steps = MOST_STEPS if self._n_nodes == 0 else _TIGHT_STEPS
        found = tight_bound(
            part,
            self._k,
            self._m,
            forced=inner.forced,
            max_steps=steps,
            enough=self.value,
        ).value
        if self._n_nodes == 0:
            self._tight_pays = found - self.value < _CLOSES * gap
        return found

    def _settle(self, marks: NDArray[np.int8], node: "_Node", value: float) -> int:
        """Mark the features that every better set of a node has, or none has; returns how many."""
        free = np.flatnonzero(marks[node.left] == 0)
        n_open = self._k - int(np.sum(marks == _INSIDE))
        next_best, edge = node.around_edge(free, n_open)
        t = node.terms[free]
        slack = node.spectral - self.value - self._tolerance
        outside, inside = free[edge - t >= slack], free[t - next_best >= slack]
        # A node without better sets may prove both of one feature; any one of them will do.
        inside = np.setdiff1d(inside, outside)
        marks[node.left[outside]] = _OUTSIDE
        marks[node.left[inside]] = _INSIDE
        return len(outside) + len(inside)

    def _branch(self, marks: NDArray[np.int8], node: "_Node", value: float) -> None:
        free = np.flatnonzero(marks[node.left] == 0)
        n_open = self._k - int(np.sum(marks == _INSIDE))
        next_best, _ = node.around_edge(free, n_open)
        at = free[np.argmax(node.terms[free])]
        feature = node.left[at]
        with_it, without = marks.copy(), marks.copy()
        with_it[feature], without[feature] = _INSIDE, _OUTSIDE
        self._push(value, with_it)
        self._push(min(value, node.spectral - float(node.terms[at] - next_best)), without)


@dataclass(frozen=True)
class _Node:
    """The bound of a node."""

    left: IndexArray
    """Features that are not left out."""
    value: float
    """The bound."""
    spectral: float
    """The bound from the spectrum, of which the terms are part."""
    rounding: float
    terms: FloatArray
    """Of the features left."""

    def around_edge(self, free: IndexArray, n_open: int) -> tuple[float, float]:
        """The largest term that the bound leaves out, and the smallest that it counts."""
        ordered = np.sort(self.terms[free])[::-1]
        return float(ordered[n_open]), float(ordered[n_open - 1])
