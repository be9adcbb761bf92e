"""Features on which neighbours agree, the neighbours being found in denoised, unit-free components.

1. Samples are compared in the components that stand out from noise, of the columns at the same
   variance and of their ranks, with the strong components turned down (divided by the fourth root,
   or the square root, of their eigenvalues). Each of the four clouds joins every sample to its
   nearest ones; W is the sum of the four graphs and D its degrees.
2. The smoothness of a column x is 1 minus its Laplacian score on W,

       a = z'Wz / z'Dz,   z = x - (x'D1 / 1'D1):

   1 if neighbours agree exactly, about 0 for a column that has nothing to do with W.
3. Which columns carry structure: every column is scored on a graph of the other half of the
   columns, so that it cannot vouch for itself, and compared with what shuffled rows give;
   Benjamini and Hochberg's procedure turns the p-values into a set.
4. Where few columns carry structure, the components of all columns drown them. Then the graphs are
   built anew, every column weighted by its evidence so far; each column is always scored on graphs
   of other columns. If step 3 found none, one half of the columns is tested on a graph of the other
   half, weighted by evidence from that half alone. If the variances of the columns agree up to
   sampling error, as those of a table in one unit do, a variance in excess is evidence too.

Nothing depends on the units of the columns, except the excess variance of step 4.
docs/decisions/0014-front-door.md has the measurements behind the constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.graph import degrees, nearest_in_cloud, union_graph
from keepers.linalg.ordering import first_largest
from keepers.linalg.spectrum import edge_of_scatter, pairs_above
from keepers.linalg.unit_free import UnitFreeColumns

LEVEL = 0.01
"""False discovery rate of the columns that carry structure."""
FEWEST_COMPONENTS, MOST_COMPONENTS = 2, 100
# Powers of the eigenvalues by which the components are multiplied: half-whitened and whitened.
_EXPONENTS = (0.25, 0.0)
# Smoothnesses of shuffled columns that p-values are read from.
_SHUFFLED_VALUES, _FEWEST_SHUFFLES, _MOST_SHUFFLES = 50_000, 2, 100
# Below this share of columns that carry structure, columns are weighted by their evidence.
FEW = 0.1
_ROUNDS, _FOLDS = 4, 5
# There, what is sought is weak: so many times the neighbours are averaged over.
_NEIGHBOUR_FACTOR = 2
# The rounds end when the columns that carry structure grow no more than by this factor.
_STILL_GROWING = 1.1
_LEFT_OUT = -1  # the fold of columns that have no part in a graph
# Variances agree up to sampling error if their logarithms spread less than this many times it.
_SAME_VARIANCE = 1.5


@dataclass(frozen=True)
class Smoothness:
    """How much neighbours agree on every column, and whether by more than chance."""

    values: FloatArray
    """1 minus the Laplacian score; what columns are ranked by before redundancy is discounted."""
    p_values: FloatArray
    """How often a column that has nothing to do with the others would be as smooth."""
    carries: BoolArray
    """Columns that carry structure, false discovery rate held at ``LEVEL``."""
    graph: sp.csr_array
    """The neighbours of the samples in all columns."""
    weighted: bool
    """Whether few columns carry structure, so that columns were weighted by their evidence."""


def measure_smoothness(
    columns: UnitFreeColumns, variances: FloatArray, n_neighbors: int, rng: np.random.Generator
) -> Smoothness:
    """Smoothness of every column over neighbours found in all columns, and its p-value."""
    graphs = _Graphs(columns, n_neighbors)
    # Dealt by a random direction: at random, but by the values of a column, not by its place.
    direction = rng.standard_normal(columns.n_samples)
    grams = graphs.grams(_deal(_project(columns, direction), 2))
    tested = _cross_fit(graphs, grams, rng)
    carries = discoveries(tested.p_values)
    if carries.mean() < FEW:
        n_neighbors = min(_NEIGHBOUR_FACTOR * n_neighbors, columns.n_samples - 1)
        graphs = _Graphs(columns, n_neighbors)
        return _weigh_by_evidence(graphs, variances, tested, carries, rng)
    whole = graphs.of_all(grams)
    values = smoothness(columns, np.arange(columns.n_features), whole)[0]
    return Smoothness(values, tested.p_values, carries, whole, weighted=False)


def discoveries(p_values: FloatArray, level: float = LEVEL) -> BoolArray:
    """Benjamini and Hochberg's step-up procedure."""
    ordered = np.sort(p_values)
    below = np.flatnonzero(ordered <= level * np.arange(1, len(ordered) + 1) / len(ordered))
    if not len(below):
        return np.zeros(len(p_values), dtype=bool)
    return np.asarray(p_values <= ordered[below[-1]])


@dataclass(frozen=True)
class _CrossFit:
    """Every column on a graph of other columns, beside shuffled columns."""

    values: FloatArray
    p_values: FloatArray
    z: FloatArray
    """In standard deviations of the shuffled columns, from their mean."""
    graph: sp.csr_array
    """The sum of the graphs used."""


@dataclass(frozen=True)
class _FoldGrams:
    """Sums of outer products of the columns of each fold, times their weights."""

    folds: IndexArray
    squares: FloatArray
    """The squared weight of every column."""
    totals: tuple[FloatArray, ...]
    """For each view of the columns: one n x n sum per fold."""

    @property
    def used(self) -> BoolArray:
        """Columns that have a part in the sums."""
        return np.asarray((self.folds != _LEFT_OUT) & (self.squares > 0.0))


class _Graphs:
    """Neighbour graphs of one table from all its columns, or from all but one fold."""

    def __init__(self, columns: UnitFreeColumns, n_neighbors: int) -> None:
        self.columns = columns
        self._n_neighbors = n_neighbors
        self._views = (columns.standardised, columns.ranked)

    def grams(self, folds: IndexArray, weights: FloatArray | None = None) -> _FoldGrams:
        """One pass over the columns."""
        n_samples = self.columns.n_samples
        totals = tuple(np.zeros((folds.max() + 1, n_samples, n_samples)) for _ in self._views)
        counts = np.ones(len(folds), dtype=bool) if weights is None else weights > 0.0
        for fold in range(folds.max() + 1):
            for part in self.columns.blocks(np.flatnonzero((folds == fold) & counts)):
                for total, view in zip(totals, self._views, strict=True):
                    block = view(part)
                    if weights is not None:
                        block = block * weights[part, np.newaxis]
                    total[fold] += block.T @ block
        squares = np.ones(len(folds)) if weights is None else weights**2
        return _FoldGrams(folds, squares, totals)

    def of_all(self, grams: _FoldGrams) -> sp.csr_array:
        """From all columns."""
        whole = [total.sum(axis=0) for total in grams.totals]
        return self._graph(whole, grams.squares[grams.used])

    def without(self, fold: int, grams: _FoldGrams) -> sp.csr_array:
        """From the columns of all other folds."""
        others = [total.sum(axis=0) - total[fold] for total in grams.totals]
        return self._graph(others, grams.squares[(grams.folds != fold) & grams.used])

    def _graph(self, grams: list[FloatArray], squares: FloatArray) -> sp.csr_array:
        """The sum of the graphs of all clouds; ``squares`` are the columns' sums of squares."""
        n_samples = self.columns.n_samples
        edge = edge_of_scatter(squares, n_samples)
        graphs = []
        for gram in grams:
            values, vectors = pairs_above(
                gram,
                edge,
                rank=len(squares),
                at_least=min(FEWEST_COMPONENTS, n_samples - 1),
                at_most=min(MOST_COMPONENTS, n_samples - 1),
            )
            for exponent in _EXPONENTS:
                cloud = vectors * (values / values[0]) ** exponent
                graphs.append(union_graph(nearest_in_cloud(cloud, self._n_neighbors)))
        return sp.csr_array(sum(graphs[1:], graphs[0]))


def smoothness(
    columns: UnitFreeColumns,
    wanted: IndexArray,
    graph: sp.csr_array,
    orders: Sequence[IndexArray] = (),
) -> FloatArray:
    """The smoothness of the wanted columns; in further rows, with their samples in other orders.

    With x of length 1 and W1 = D1, freeing it of its weighted mean takes the same square off both
    sums: z'Wz / z'Dz = (x'Wx - c) / (x'Dx - c), c = (x'D1)^2 / 1'D1.
    """
    degree = degrees(graph)
    found = np.empty((1 + len(orders), len(wanted)))
    for part in columns.blocks(np.arange(len(wanted))):
        block = np.ascontiguousarray(columns.standardised(wanted[part]).T)
        for at, order in enumerate((None, *orders)):
            x = block if order is None else block[order]
            common = (degree @ x) ** 2 / degree.sum()
            agreement = np.einsum("ij,ij->j", graph @ x, x) - common
            found[at, part] = agreement / (np.einsum("ij,i,ij->j", x, degree, x) - common)
    return found


def _project(columns: UnitFreeColumns, direction: FloatArray) -> FloatArray:
    parts = columns.blocks(np.arange(columns.n_features))
    return np.concatenate([columns.standardised(part) @ direction for part in parts])


def _deal(values: FloatArray, n_folds: int) -> IndexArray:
    """Columns dealt into folds in the order of their values, so that the folds are alike.

    It depends on the columns, not on their order: reordered columns are in the same folds.
    """
    folds = np.empty(len(values), dtype=np.intp)
    folds[np.argsort(-np.round(values, 9), kind="stable")] = np.arange(len(values))
    return folds % min(n_folds, len(values))


def _cross_fit(
    graphs: _Graphs, grams: _FoldGrams, rng: np.random.Generator, n_shuffles: int | None = None
) -> _CrossFit:
    """Score the columns of each fold on a graph of the others; shuffle rows for comparison."""
    folds = grams.folds
    values = np.zeros(len(folds))
    if folds.max() == 0:  # a single column has no others
        return _CrossFit(values, values + 1.0, values, graphs.of_all(grams))
    pool, used = [], []
    for fold in range(folds.max() + 1):
        graph = graphs.without(fold, grams)
        held_out = np.flatnonzero(folds == fold)
        orders = _orders(graphs.columns, rng, n_shuffles)
        found = smoothness(graphs.columns, held_out, graph, orders)
        values[held_out] = found[0]
        pool.append(found[1:].ravel())
        used.append(graph)
    shuffled = np.concatenate(pool)
    z = (values - shuffled.mean()) / (float(shuffled.std()) or 1.0)
    graph = sp.csr_array(sum(used[1:], used[0]))
    return _CrossFit(values, _p_values(values, shuffled), z, graph)


def _orders(
    columns: UnitFreeColumns, rng: np.random.Generator, n_shuffles: int | None = None
) -> list[IndexArray]:
    """Other orders of the samples: enough for p-values, or as many as are asked for."""
    if n_shuffles is None:
        wanted = _SHUFFLED_VALUES // columns.n_features
        n_shuffles = int(np.clip(wanted, _FEWEST_SHUFFLES, _MOST_SHUFFLES))
    return [rng.permutation(columns.n_samples) for _ in range(n_shuffles)]


def _p_values(values: FloatArray, shuffled: FloatArray) -> FloatArray:
    """How often shuffled columns are as smooth; those that agree up to rounding count."""
    n_above = len(shuffled) - np.searchsorted(np.sort(shuffled), values - 1e-9, "left")
    return np.asarray((1.0 + n_above) / (1.0 + len(shuffled)))


def _weigh_by_evidence(
    graphs: _Graphs,
    variances: FloatArray,
    tested: _CrossFit,
    carries: BoolArray,
    rng: np.random.Generator,
) -> Smoothness:
    """Few columns carry structure: let each of them count as much as there is evidence for it."""
    excess = excess_variance(graphs.columns, variances)
    evidence = _combine(tested.z, excess)
    if not carries.any():
        halves = _test_halves(graphs, excess, rng)
        evidence = halves.evidence
        carries = discoveries(halves.p_values)
    found = bool(carries.any())
    everything = np.arange(graphs.columns.n_features)
    if found or excess is not None:
        for _ in range(_ROUNDS):
            n_before = int(carries.sum())
            tested = _cross_fit(graphs, _weighted_grams(graphs, everything, evidence), rng)
            evidence = _combine(tested.z, excess)
            carries = discoveries(tested.p_values)
            if n_before and carries.sum() <= _STILL_GROWING * n_before:
                break
    values = tested.values
    if excess is not None or not found:
        values = evidence * _largest(values) / (_largest(evidence) or 1.0)
    p_values = tested.p_values if found else np.ones(len(values))
    return Smoothness(values, p_values, discoveries(p_values), tested.graph, weighted=True)


def _weighted_grams(
    graphs: _Graphs, members: IndexArray, evidence: FloatArray | None, n_folds: int = _FOLDS
) -> _FoldGrams:
    """Sums over folds of the members, weighted by evidence for them; None: all alike."""
    folds = np.full(graphs.columns.n_features, _LEFT_OUT)
    weights = np.zeros(len(folds))
    folds[members] = (
        np.arange(len(members)) % n_folds if evidence is None else _deal(evidence, n_folds)
    )
    weights[members] = 1.0 if evidence is None else _weights(evidence)
    return graphs.grams(folds, weights)


@dataclass(frozen=True)
class _Halves:
    """Every column over the weighted columns of the other half."""

    p_values: FloatArray
    evidence: FloatArray


def _test_halves(graphs: _Graphs, excess: FloatArray | None, rng: np.random.Generator) -> _Halves:
    """Find weights within each half of the columns, and test the other half over them.

    So the weights know nothing of the columns that are tested.
    """
    columns = graphs.columns
    projected = _project(columns, rng.standard_normal(columns.n_samples))
    halves = _deal(projected, 2)
    values, z, pool = np.zeros(len(halves)), np.zeros(len(halves)), []
    for half in range(2):
        members, others = np.flatnonzero(halves == half), np.flatnonzero(halves != half)
        if min(len(members), len(others)) < _FOLDS:
            return _Halves(np.ones(len(halves)), values)
        # In an order that depends on the columns, not on their places.
        members = members[np.argsort(np.round(projected[members], 9), kind="stable")]
        evidence = None if excess is None else excess[members]
        for _ in range(_ROUNDS - 1):
            grams = _weighted_grams(graphs, members, evidence)
            within = _cross_fit(graphs, grams, rng, _FEWEST_SHUFFLES)
            evidence = _combine(within.z[members], None if excess is None else excess[members])
        graph = graphs.of_all(_weighted_grams(graphs, members, evidence, n_folds=1))
        found = smoothness(columns, others, graph, _orders(columns, rng))
        values[others] = found[0]
        z[others] = (found[0] - found[1:].mean()) / (float(found[1:].std()) or 1.0)
        pool.append(found[1:].ravel())
    return _Halves(_p_values(values, np.concatenate(pool)), _combine(z, excess))


def _weights(evidence: FloatArray) -> FloatArray:
    """The evidence where it is above 0; if it is so for too few columns to build graphs, alike."""
    if np.sum(evidence > 0.0) < 2 * _FOLDS:
        return np.ones(len(evidence))
    return np.asarray(np.maximum(evidence, 0.0))


def _largest(values: FloatArray) -> float:
    return float(np.abs(values).max())


def _combine(z: FloatArray, excess: FloatArray | None) -> FloatArray:
    """One number of standard deviations from two that are independent without structure."""
    return z if excess is None else np.asarray((z + excess) / np.sqrt(2.0))


def excess_variance(columns: UnitFreeColumns, variances: FloatArray) -> FloatArray | None:
    """How far each variance lies above the typical one, in sampling errors of its logarithm.

    None unless most variances agree up to sampling error: then they tell units, not structure.
    """
    kurtosis = np.empty(len(variances))
    for part in columns.blocks(np.arange(len(variances))):
        squares = columns.standardised(part) ** 2
        kurtosis[part] = columns.n_samples * np.einsum("ij,ij->i", squares, squares)
    error = np.sqrt(max(float(np.median(kurtosis)) - 1.0, 0.0) / columns.n_samples)
    logarithms = np.log(variances)
    above = logarithms - np.median(logarithms)
    spread = 1.4826 * float(np.median(np.abs(above)))
    if not 1e-6 < spread <= _SAME_VARIANCE * error:
        return None
    return np.asarray(above / error)


@dataclass(frozen=True)
class GreedyOrder:
    """Columns in the order in which they were taken, with what each still had to say."""

    order: IndexArray
    scores: FloatArray
    """Per place of ``order``: smoothness times 1 minus the largest r^2 with an earlier column."""
    nearest: IndexArray
    """Per place: the earlier column that it resembles most; -1 if there is none."""
    correlations: FloatArray
    """Per place: the correlation with it."""


_COMPARED_AT_ONCE = 64
Fetch = Callable[[IndexArray], FloatArray]


def take_greedily(
    values: FloatArray, fetch: Fetch, most: int, first: IndexArray | None = None
) -> GreedyOrder:
    """Take the column with the largest ``values * (1 - r^2)``, r with any taken one, and so on.

    ``fetch`` returns columns of length 1 about their means, one a row. ``first`` are taken
    before all others. What a column still has to say only falls, so it is looked at again only when
    it comes first.
    """
    n_features = len(values)
    most = min(most, n_features)
    state = _Discounts(values, fetch, most)
    for column in (np.empty(0, dtype=np.intp) if first is None else first)[:most]:
        state.take(int(column))
    while state.n_taken < most:
        best = first_largest(state.scores)
        if state.compared[best] == state.n_taken:
            state.take(best)
        else:
            state.compare(best)
    order = state.order
    return GreedyOrder(order, state.final_scores, state.nearest[order], state.r[order])


class _Discounts:
    """What every column still has to say, as far as it is known: never too little."""

    def __init__(self, values: FloatArray, fetch: Fetch, most: int) -> None:
        self._values = np.maximum(values, 0.0)
        self._fetch = fetch
        self.scores = np.round(self._values, 12)
        self.compared = np.zeros(len(values), dtype=np.intp)
        self.nearest = np.full(len(values), -1, dtype=np.intp)
        self.r = np.zeros(len(values))
        self._kept: FloatArray | None = None
        self.order = np.empty(most, dtype=np.intp)
        self.final_scores = np.empty(most)
        self.n_taken = 0

    def take(self, column: int) -> None:
        """Take a column, whatever it still has to say."""
        self.compare(column, alone=True)
        fetched = self._fetch(np.array([column]))[0]
        if self._kept is None:
            self._kept = np.empty((len(self.order), len(fetched)))
        self._kept[self.n_taken] = fetched
        self.order[self.n_taken] = column
        self.final_scores[self.n_taken] = self.scores[column]
        self.n_taken += 1
        self.scores[column] = -np.inf

    def compare(self, column: int, *, alone: bool = False) -> None:
        """Compare a column, and those with the next largest scores, with all that are taken."""
        if self._kept is None or self.compared[column] == self.n_taken:
            return
        part = np.array([column])
        if not alone:
            stale = np.flatnonzero((self.compared < self.n_taken) & np.isfinite(self.scores))
            count = min(_COMPARED_AT_ONCE, len(stale))
            part = stale[np.argpartition(-self.scores[stale], count - 1)[:count]]
        # Those compared before lack the latest few only.
        for group in (part[self.compared[part] == 0], part[self.compared[part] > 0]):
            if len(group):
                self._compare(group, int(self.compared[group].min()))

    def _compare(self, part: IndexArray, since: int) -> None:
        assert self._kept is not None
        r = np.clip(self._fetch(part) @ self._kept[since : self.n_taken].T, -1.0, 1.0)
        # Rounding must not decide between copies: the one taken first.
        strongest = np.argmax(np.round(np.abs(r), 12), axis=1)
        found = r[np.arange(len(part)), strongest]
        stronger = np.abs(found) > np.abs(self.r[part]) + 1e-12
        self.r[part] = np.where(stronger, found, self.r[part])
        self.nearest[part] = np.where(stronger, self.order[since + strongest], self.nearest[part])
        self.compared[part] = self.n_taken
        self.scores[part] = np.round(self._values[part] * (1.0 - self.r[part] ** 2), 12)
