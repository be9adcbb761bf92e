"""The k features that hold the most variance in m components, with proof: branch and bound.

A node is the problem with some features forced in and others left out. Its bound is that of
`keepers.proofs.bounds` on the features that are left; the node with the largest bound is next.
Features that its bound proves to be in or out are fixed without branching; then the free feature
with the largest term is forced in in one child and left out in the other. Sets of features are
tried at every node, so the best set is usually found long before it is proved. The largest
bound of the open nodes is a bound on the optimum at any time.
"""

import heapq
import itertools
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter
from keepers.methods.fspca import AllowedSets, improve_by_projection, variance_held
from keepers.methods.parameters import (
    FeatureControl,
    check_value,
    one_of,
    positive,
    read_control,
    whole,
)
from keepers.methods.reading import FittedTable, MemoryTable, read_any_table
from keepers.proofs import bounds
from keepers.proofs.certify import find_good_set

# Up to this number of features are branched on: each node decomposes a matrix of their scatter.
MOST_SEARCHED = 20_000
# A bound that exceeds the best value by no more than this share of it proves that value.
PROVED = 1e-10
# Features up to which nodes compute the tight bound.
MOST_TIGHT = 3000
INSIDE, OUTSIDE = 1, -1
Marks = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class ExactSelection:
    """The best set of features found, and the proof of how close it is to the best of all."""

    features: IndexArray
    """The set, ascending."""
    value: float
    """Variance that it holds in the components (divisor n)."""
    upper_bound: float
    """No set of as many features holds more."""
    proved: bool
    """True if the search ended: no set holds more, but for a share of 1e-10."""
    n_components: int
    n_nodes: int
    """Nodes of the search tree that were bounded."""
    seconds: float
    """Time of the search."""
    names: Any = field(default=None)
    """Names of the features, if the columns have any."""

    @property
    def gap(self) -> float:
        """The share of the bound that is not reached; 0 where the set is proved to be the best."""
        return 0.0 if self.proved else max(1.0 - self.value / self.upper_bound, 0.0)

    def __str__(self) -> str:
        k, m = len(self.features), self.n_components
        these = "This one holds" if k == 1 else f"These {k:,} features hold"
        inside = f"in {m} component{'' if m == 1 else 's'}"
        searched = f"{self.n_nodes:,} node{'' if self.n_nodes == 1 else 's'}, {self.seconds:.1f} s"
        if self.proved:
            return f"{these} the most variance {inside} of all such sets: proved ({searched})."
        share = np.floor(1000.0 * (1.0 - self.gap)) / 10.0
        return (
            f"{these} at least {share:.1f} % of the most variance {inside} that such a set could "
            f"hold; the search did not end ({searched})."
        )


def solve_exactly(
    X: Any,
    n_features_to_select: int,
    n_components: int,
    *,
    time_limit: float | None = 60.0,
    must_keep: Any = None,
    never_keep: Any = None,
) -> ExactSelection:
    """Find the k features that hold the most variance in m components, with proof if time allows.

    Bounds rule out sets of features until one is left, or until the time is over; then the gap
    shows how close the best set found is to the best of all. Tables with up to a hundred columns
    are often solved in seconds, and much wider ones if k is small or few columns have most of the
    variance. Columns are taken as they are: scale those of different units first.

    Parameters
    ----------
    X : table of shape (n_samples, n_features), path or blocks
        What `SPCAFS.fit` or `SPCAFS.fit_blocks` takes.
    n_features_to_select : int
        k, at least ``n_components``.
    n_components : int
        m: the variance that features hold is the sum of the m largest eigenvalues of their
        covariance.
    time_limit : float or None, default=60
        Seconds for the search; None sets no limit. Reading the table does not count.
    must_keep, never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that the set must contain, and features that it must not contain.

    Returns
    -------
    ExactSelection
        The set, its value, an upper bound on all values, and whether it is proved to be the best.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> found = solve_exactly(scale(load_wine().data), 5, 2)
    >>> found.features
    array([ 0,  5,  6,  9, 11])
    >>> found.proved
    True
    """
    check_value("n_features_to_select", n_features_to_select, whole())
    hint = "A set of k features holds variance in at most k components."
    check_value("n_components", n_components, whole(at_most=n_features_to_select, hint=hint))
    hint = "None searches to the end."
    check_value("time_limit", time_limit, positive(zero=True, hint=hint) | one_of(None))
    k, m = int(n_features_to_select), int(n_components)
    control: FeatureControl

    def find(n_columns: int, names: Any) -> None:
        nonlocal control
        control = read_control(n_columns, names, must_keep=must_keep, never_keep=never_keep)
        control.count_to_select(k)

    read = read_any_table(X, n_components=m, check=find)
    table, constant = control.restrict(read.table), read.table.unusable
    # Constant columns are chosen where they must be, or where too few others are left.
    filling = np.flatnonzero(constant & control.must)
    count = min(k - len(filling), len(table.usable))
    spare = np.flatnonzero(constant & ~control.must & ~control.never)
    filling = np.concatenate([filling, spare[: k - len(filling) - count]])
    found = ExactSelection(np.empty(0, dtype=np.intp), 0.0, 0.0, True, m, 0, 0.0)
    if count > 0:
        with one_blas_thread_if_small(min(table.n_samples, len(table.usable))):
            found = _search(table, control.must[table.usable], count, m, time_limit)
    columns = np.sort(np.concatenate([table.usable[found.features], filling]))
    return replace(
        found,
        features=columns,
        value=found.value / table.n_samples,
        upper_bound=found.upper_bound / table.n_samples,
        names=None if read.names is None else read.names[columns],
    )


def _search(
    table: FittedTable, forced: BoolArray, k: int, m: int, time_limit: float | None
) -> ExactSelection:
    """Bound, leave out what is proved to be out, and search the rest; values are those of S."""
    begun = time.perf_counter()
    in_memory = isinstance(table, MemoryTable)
    if isinstance(table, MemoryTable):  # nodes are compared to rounding
        table = replace(table, X=table.in_double())
    operator = table.scatter(m)
    precision = bounds.allowance(table.working_dtype)
    spectrum = bounds.spectral_bound(operator, m, np.random.default_rng(0), precision)
    bound = spectrum.bound(k, m, forced)
    best = find_good_set(operator, spectrum, bound, m)
    proofs = bound.proofs(best.variance)
    left = np.flatnonzero(~proofs.outside)
    # Nodes decompose S on the features that are left, or the columns where there are few rows.
    side = min(table.n_samples, len(left)) if in_memory else len(left)
    if side > SMALL_SIDE or len(left) > MOST_SEARCHED:
        upper, seconds = max(bound.value, best.variance), time.perf_counter() - begun
        return ExactSelection(best.features, best.variance, upper, False, m, 0, seconds)
    part = operator.restrict(left)
    if not in_memory:
        part = DenseScatter(part.dense())
    start = np.searchsorted(left, best.features)  # no feature of a set is out if its value is v
    search = FeatureSearch(part, k, m, proofs.inside[left], start=start, bound=bound.value)
    found = search.run(time_limit)
    return replace(found, features=left[found.features])


class FeatureSearch:
    """Branch and bound for S in memory: each node decomposes a part of it.

    ``forced``: features that sets have to contain. ``start``: a set that is known to be good.
    ``bound``: no set holds more, as far as is known.
    """

    def __init__(
        self,
        operator: SymmetricOperator,
        n_features: int,
        n_components: int,
        forced: BoolArray | None = None,
        start: IndexArray | None = None,
        bound: float = np.inf,
    ) -> None:
        self._operator, self._k, self._m = operator, n_features, n_components
        marks: Marks = np.zeros(operator.size, dtype=np.int8)
        if forced is not None:
            marks[forced] = INSIDE
        self.value, self.features = -np.inf, np.empty(0, dtype=np.intp)
        self._tried: set[bytes] = set()
        self._n_nodes = 0
        self._tight_pays = True
        self._count = itertools.count()
        self._open: list[tuple[float, int, Marks]] = []
        if start is not None:
            self._try(np.sort(start))
        variances = np.asarray(operator.diagonal(), dtype=np.float64)
        self._try_with_steps(operator, variances, np.arange(operator.size), marks)
        self._push(min(float(np.sort(variances)[-n_features:].sum()), bound), marks)

    @property
    def _enough(self) -> float:
        """Nodes whose bound is at most this are given up."""
        return self.value + PROVED * max(self.value, 0.0)

    def run(self, time_limit: float | None = None) -> ExactSelection:
        """Search until the best set is proved, or for ``time_limit`` seconds; may be repeated."""
        begun = time.perf_counter()
        seconds = 0.0
        while self._open and (time_limit is None or seconds < time_limit):
            if -self._open[0][0] <= self._enough:
                break
            bound, _, marks = heapq.heappop(self._open)  # the node with the largest bound
            self._branch(-bound, marks)
            self._n_nodes += 1
            seconds = time.perf_counter() - begun
        highest = -self._open[0][0] if self._open else -np.inf
        # Nodes were given up as soon as they could not be better by more than the tolerance.
        upper, proved = max(highest, self._enough), highest <= self._enough
        return ExactSelection(
            self.features, self.value, upper, proved, self._m, self._n_nodes, seconds
        )

    def _push(self, bound: float, marks: Marks) -> None:
        if bound > self._enough:
            heapq.heappush(self._open, (-bound, next(self._count), marks))

    def _try(self, features: IndexArray) -> None:
        """Keep a set if it is the best so far."""
        if features.tobytes() in self._tried:
            return
        self._tried.add(features.tobytes())
        value = variance_held(self._operator, features, self._m)
        if value > self.value:
            self.value, self.features = value, features

    def _try_with_steps(
        self, part: SymmetricOperator, scores: FloatArray, left: IndexArray, marks: Marks
    ) -> None:
        """The same for the set with the largest scores, and the one that projections lead to."""
        allowed = AllowedSets.of_count(len(left), self._k, marks[left] == INSIDE)
        start = allowed.choose(scores)
        if left[start].tobytes() not in self._tried:
            self._try(left[start])
            self._try(left[improve_by_projection(part, start, self._m, allowed).features])

    def _branch(self, bound: float, marks: Marks) -> None:
        """Bound a node, fix the features that are proved, and open its children."""
        marks = marks.copy()
        while True:
            n_inside, left = int(np.sum(marks == INSIDE)), np.flatnonzero(marks != OUTSIDE)
            if n_inside >= self._k or len(left) <= self._k:
                # The only set that is left in the node, if any.
                chosen = np.flatnonzero(marks == INSIDE) if n_inside >= self._k else left
                if len(chosen) == self._k:
                    self._try(chosen)
                return
            terms, value = self._bound_node(left, marks)
            value = min(bound, value)
            if value <= self._enough:
                return
            proofs = terms.proofs(self._enough)
            n_open = np.count_nonzero(marks == 0)
            # A node without better sets may prove both of one feature; any one of them will do.
            marks[left[proofs.inside]] = INSIDE
            marks[left[proofs.outside]] = OUTSIDE
            if np.count_nonzero(marks == 0) == n_open:
                break
        free = np.flatnonzero(marks[left] == 0)
        next_best, _ = terms.around_edge(free, self._k - n_inside)
        at = free[np.argmax(terms.terms[free])]
        with_it, without = marks.copy(), marks.copy()
        with_it[left[at]], without[left[at]] = INSIDE, OUTSIDE
        self._push(value, with_it)
        self._push(min(value, terms.value - float(terms.terms[at] - next_best)), without)

    def _bound_node(self, left: IndexArray, marks: Marks) -> tuple[bounds.TermBound, float]:
        """The bound from the spectrum, and the least of all; a set is tried on the way."""
        part, forced = self._operator.restrict(left), marks[left] == INSIDE
        spectrum = bounds.spectral_bound(part, self._m, np.random.default_rng(0))
        terms = spectrum.bound(self._k, self._m, forced)
        value = terms.value
        if self._tight_pays and part.size <= MOST_TIGHT and value > self._enough:
            # It takes the time of a hundred spectra: at all nodes only if it closes much of the
            # gap at the first.
            first, gap = self._n_nodes == 0, value - self.value
            steps = 30 if first else 8
            tight = bounds.tight_bound(
                part, self._k, self._m, forced=forced, max_steps=steps, enough=self.value
            ).value
            if first:
                self._tight_pays = tight - self.value < 0.3 * gap
            value = min(value, tight)
        self._try_with_steps(part, terms.terms, left, marks)
        return terms, value
