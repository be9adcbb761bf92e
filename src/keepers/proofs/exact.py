"""The k features that hold the most variance in m components, with proof: branch and bound.

A node is the problem with some features forced in and others left out. Its bound is that of
`keepers.proofs.bounds` on the features that are left; the node with the largest bound is taken
first. What its bound proves about single features is settled at once, without branching; then the
free feature with the largest term is forced in in one child and left out in the other. Sets of
features are tried at every node, so that the best set is usually found long before it is proved.
The largest bound of the open nodes is a bound on the optimum at any time.
"""

import heapq
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._blas_threads import one_blas_thread_if_small
from keepers._protocols import BoolArray, FloatArray, IndexArray, SymmetricOperator
from keepers.linalg.scatter import SMALL_SIDE, DenseScatter, FactoredScatter, as_factored
from keepers.methods.control import FeatureControl, check_control, read_control
from keepers.methods.fspca import AllowedSets, improve_by_projection, variance_held
from keepers.methods.parameters import (
    FUNCTION,
    SEED,
    Seed,
    check_value,
    is_whole,
    one_of,
    positive,
    whole,
)
from keepers.methods.reading import FittedTable, MemoryTable
from keepers.methods.reading_blocks import read_any_table
from keepers.proofs.bounds import (
    TermBound,
    allowance,
    row_sum_bound,
    spectral_bound,
    tight_bound,
)

# Up to so many features are branched on: each node decomposes a matrix of their scatter.
MOST_SEARCHED = 20_000
# A bound that exceeds the best value by no more than this share of it proves that value.
PROVED = 1e-10
# Features up to which the tight bound, and for one component row sums, are looked at in a node.
MOST_TIGHT, MOST_ROW_SUMS = 3000, 500
INSIDE, OUTSIDE = 1, -1
Marks = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class ExactSelection:
    """The best set of features found, and how near it is proved to be to the best of all."""

    features: IndexArray
    """The set, ascending."""
    value: float
    """Variance that it holds in the components (divisor n)."""
    upper_bound: float
    """No set of as many features holds more."""
    proved: bool
    """Whether the search ended: no set holds more, but for a share of 1e-10."""
    n_components: int
    n_nodes: int
    """Nodes of the search tree that were looked at."""
    seconds: float
    """Time of the search."""
    names: Any = field(default=None)
    """Names of the features, if the columns have any."""

    @property
    def gap(self) -> float:
        """The share of the bound that is not reached; 0 where the set is proved to be the best."""
        return 0.0 if self.proved else max(1.0 - self.value / self.upper_bound, 0.0)

    def as_dict(self) -> dict[str, Any]:
        """The result as numbers, words and lists, for JSON.

        Returns
        -------
        dict
            All attributes, and the sentence that ``print`` shows.
        """
        return {
            "sentence": str(self),
            **vars(self),
            "features": self.features.tolist(),
            "names": None if self.names is None else [str(name) for name in self.names],
            "gap": self.gap,
        }

    def __str__(self) -> str:
        k, m = len(self.features), self.n_components
        these = "This one holds" if k == 1 else f"These {k:,} features hold"
        inside = f"in {m} component{'' if m == 1 else 's'}"
        looked = f"{self.n_nodes:,} node{'' if self.n_nodes == 1 else 's'}, {self.seconds:.1f} s"
        if self.proved:
            return f"{these} the most variance {inside} of all such sets: proved ({looked})."
        share = np.floor(1000.0 * (1.0 - self.gap)) / 10.0
        return (
            f"{these} at least {share:.1f} % of the most variance {inside} that such a set could "
            f"hold; the search did not end ({looked})."
        )


def solve_exactly(
    X: Any,
    n_features_to_select: int,
    n_components: int,
    *,
    time_limit: float | None = 60.0,
    callback: Callable[[ExactSelection], object] | None = None,
    must_keep: Any = None,
    never_keep: Any = None,
    random_state: Seed = None,
) -> ExactSelection:
    """The k features that hold the most variance in m components, with proof if time allows.

    Branch and bound: sets of features are ruled out by bounds until one is left, or until the time
    is over; then the gap says how near the best set found is to the best of all. Tables with up to
    a hundred columns are often solved in seconds, and much wider ones if k is small or few columns
    have most of the variance. Columns are taken as they are: scale those of different units first.

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
        Seconds for the search; None: until it ends. Reading the table is not counted.
    callback : callable or None, default=None
        Called after every node with the `ExactSelection` so far. An exception that it raises ends
        the search.
    must_keep, never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that the set has to contain, and those that it must not.
    random_state : int, RandomState or None, default=None
        Seeds the eigenvectors of tables of which both sides exceed 3000.

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
    check_value("callback", callback, FUNCTION)
    check_value("random_state", random_state, SEED)
    check_control(must_keep=must_keep, never_keep=never_keep)
    k, m = int(n_features_to_select), int(n_components)
    control = FeatureControl(np.empty(0), None)

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

    def result(found: ExactSelection) -> ExactSelection:
        columns = np.sort(np.concatenate([table.usable[found.features], filling]))
        return replace(
            found,
            features=columns,
            value=found.value / table.n_samples,
            upper_bound=found.upper_bound / table.n_samples,
            names=None if read.names is None else read.names[columns],
        )

    if count == 0:
        return result(ExactSelection(np.empty(0, dtype=np.intp), 0.0, 0.0, True, m, 0, 0.0))
    rng = np.random.default_rng(random_state if is_whole(random_state) else 0)
    with one_blas_thread_if_small(min(table.n_samples, len(table.usable))):
        for state in _search(table, control.must[table.usable], count, m, rng, time_limit):
            if callback is not None and state.n_nodes:
                callback(result(state))
    return result(state)


def _search(
    table: FittedTable,
    forced: BoolArray,
    k: int,
    m: int,
    rng: np.random.Generator,
    time_limit: float | None,
) -> Iterator[ExactSelection]:
    """Bound, leave out what is proved to be out, and search what is left; values are those of S."""
    begun = time.perf_counter()
    operator = table.scatter(m)
    spectrum = spectral_bound(operator, m, rng, allowance(table.working_dtype))
    bound = spectrum.bound(k, m, forced)
    allowed = AllowedSets.of_count(operator.size, k, forced)
    best = max(
        (
            improve_by_projection(operator, allowed.choose(scores), m, allowed)
            for scores in (bound.terms, spectrum.leading_terms(m), spectrum.variances)
        ),
        key=lambda found: found.variance,
    )
    proofs = bound.proofs(best.variance)
    left = np.flatnonzero(~proofs.outside)
    part = _in_memory(table, operator, left)
    if part is None:
        upper, seconds = max(bound.value, best.variance), time.perf_counter() - begun
        yield ExactSelection(best.features, best.variance, upper, False, m, 0, seconds)
        return
    start = np.searchsorted(left, best.features)  # no feature of a set is out if its value is v
    search = FeatureSearch(part, k, m, proofs.inside[left], start=start, bound=bound.value)
    for state in search.run(time_limit):
        yield replace(state, features=left[state.features])


class _WideScatter(FactoredScatter):
    """S through the centred columns of a table with few rows: its small side has their number."""

    def _forming_pays(self) -> bool:
        return False


def _in_memory(
    table: FittedTable, operator: SymmetricOperator, left: IndexArray
) -> SymmetricOperator | None:
    """S on the features left, as a matrix or, where there are few rows, by its columns.

    In double precision, as nodes are compared to rounding. None where there are too many rows and
    features to decompose it at every node.
    """
    is_small = len(left) <= SMALL_SIDE
    if not isinstance(table, MemoryTable):
        return DenseScatter(operator.restrict(left).dense()) if is_small else None
    moments = table.moments.subset(left)
    part = as_factored(table.X[:, left].astype(np.float64, copy=False), moments)
    if len(left) <= table.n_samples and is_small:
        return DenseScatter(part.dense())
    if table.n_samples > SMALL_SIDE or len(left) > MOST_SEARCHED:
        return None
    centred = replace(moments, mean=np.zeros(len(left)))
    return _WideScatter(part.columns(np.arange(len(left))), centred)


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
        self._n_nodes, self._count = 0, itertools.count()
        self._tight_pays = True
        self._open: list[tuple[float, int, Marks]] = []
        if start is not None:
            self._try(np.sort(start))
        variances = np.asarray(operator.diagonal(), dtype=np.float64)
        self._try_with_steps(variances, np.arange(operator.size), marks)
        self._push(min(float(np.sort(variances)[-n_features:].sum()), bound), marks)

    @property
    def _enough(self) -> float:
        """Nodes whose bound is at most this are given up."""
        return self.value + PROVED * max(self.value, 0.0)

    def run(self, time_limit: float | None = None) -> Iterator[ExactSelection]:
        """Search until the best set is proved, or for ``time_limit`` seconds, node by node."""
        begun = time.perf_counter()
        while True:
            seconds = time.perf_counter() - begun
            highest = -self._open[0][0] if self._open else -np.inf
            # Nodes were given up as soon as they could not be better by more than the tolerance.
            upper, proved = max(highest, self._enough), highest <= self._enough
            yield ExactSelection(
                self.features, self.value, upper, proved, self._m, self._n_nodes, seconds
            )
            if proved or (time_limit is not None and seconds >= time_limit):
                return
            bound, _, marks = heapq.heappop(self._open)  # the node with the largest bound
            self._look_at(-bound, marks)
            self._n_nodes += 1

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

    def _try_with_steps(self, scores: FloatArray, left: IndexArray, marks: Marks) -> None:
        """The same for the set with the largest scores, and the one that projections lead to."""
        allowed = AllowedSets.of_count(len(left), self._k, marks[left] == INSIDE)
        start = allowed.choose(scores)
        if left[start].tobytes() not in self._tried:
            self._try(left[start])
            part = self._operator.restrict(left)
            self._try(left[improve_by_projection(part, start, self._m, allowed).features])

    def _look_at(self, bound: float, marks: Marks) -> None:
        """Bound a node, settle what is proved, and branch."""
        marks = marks.copy()
        while True:
            n_inside, n_free = int(np.sum(marks == INSIDE)), int(np.sum(marks == 0))
            if n_inside >= self._k or n_inside + n_free <= self._k:
                # The only set that is left in the node, if any.
                chosen = np.flatnonzero(
                    marks == INSIDE if n_inside >= self._k else marks != OUTSIDE
                )
                if len(chosen) == self._k:
                    self._try(chosen)
                return
            left = np.flatnonzero(marks != OUTSIDE)
            terms, value = self._bound_node(left, marks)
            value = min(bound, value)
            if value <= self._enough:
                return
            if not self._settle(marks, left, terms):
                break
        free = np.flatnonzero(marks[left] == 0)
        next_best, _ = terms.around_edge(free, self._k - n_inside)
        at = free[np.argmax(terms.terms[free])]
        with_it, without = marks.copy(), marks.copy()
        with_it[left[at]], without[left[at]] = INSIDE, OUTSIDE
        self._push(value, with_it)
        self._push(min(value, terms.value - float(terms.terms[at] - next_best)), without)

    def _bound_node(self, left: IndexArray, marks: Marks) -> tuple[TermBound, float]:
        """The bound from the spectrum, and the least of all; a set is tried on the way."""
        part, forced = self._operator.restrict(left), marks[left] == INSIDE
        spectrum = spectral_bound(part, self._m, np.random.default_rng(0))
        terms = spectrum.bound(self._k, self._m, forced)
        value = terms.value
        if self._m == 1 and len(left) <= MOST_ROW_SUMS:
            value = min(value, row_sum_bound(part.dense(), self._k, forced) + terms.rounding)
        gap = value - self.value
        if self._tight_pays and part.size <= MOST_TIGHT and value > self._enough:
            # It takes the time of a hundred spectra: at all nodes only if it closes much of the
            # gap at the first.
            first = self._n_nodes == 0
            tight = tight_bound(
                part,
                self._k,
                self._m,
                forced=forced,
                max_steps=30 if first else 8,
                enough=self.value,
            ).value
            if first:
                self._tight_pays = tight - self.value < 0.3 * gap
            value = min(value, tight)
        self._try_with_steps(terms.terms, left, marks)
        return terms, value

    def _settle(self, marks: Marks, left: IndexArray, terms: TermBound) -> bool:
        """Mark the features that every better set of a node has, or none has; False if none."""
        n_free, proofs = int(np.sum(marks == 0)), terms.proofs(self._enough)
        # A node without better sets may prove both of one feature; any one of them will do.
        marks[left[proofs.inside]] = INSIDE
        marks[left[proofs.outside]] = OUTSIDE
        return int(np.sum(marks == 0)) < n_free
