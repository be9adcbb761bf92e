"""The steps of `AutoSelector`, from arrays to features, in the order of the argument.

1. **Clouds.** Columns lose their units: they get the same variance, or are replaced by their ranks.
   Of both tables the principal components that stand out from noise are taken, the strong ones
   turned down (multiplied by the fourth root of the relative eigenvalue) or all alike.
2. **Graph.** Each of the four clouds joins every sample to its nearest ones; W is the sum of the
   four graphs and D its degrees.
3. **Smoothness.** That of a column x is 1 minus its Laplacian score on W,

       a = z'Wz / z'Dz,   z = x - (x'D1 / 1'D1):

   1 if neighbours agree exactly, about 0 for a column that has nothing to do with W.
4. **Test.** Every column is scored on a graph of the other half of the columns, so no column
   helps to build the graph it is tested on, and compared with columns whose rows are shuffled;
   Benjamini and Hochberg's procedure turns the p-values into the set that carries structure.
   Where that is a small part of the columns, the graphs are built anew, every column weighted by
   the evidence for it. If the variances of the columns agree up to sampling error, as those of
   a table in one unit do, an excess of variance is evidence too; nothing else depends on units.
5. **Discount.** Columns are taken one by one, the largest a_j (1 - r^2) first, r being the
   strongest correlation with a column taken before.
6. **How many.** The smallest number whose neighbours agree with W almost as well as those of any
   number tried: up to 200, and further while more than half of the largest number is needed.
   Of at most 100 columns: all that carry structure and repeat no better one.
7. **How sure.** Steps 2 to 5 on halves of the samples, for as many features.

**Gaps.** Filled values agree with their neighbours by construction. So filled values only build the
graph. Smoothness, shuffles and correlations of a column use the rows where it was observed.

docs/decisions/0014-autoselector.md has the measurements behind the constants.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.ordering import (
    first_largest,
    mean_ranks,
    nearest_by_distance,
    squared_distances,
)
from keepers.linalg.scatter import ColumnMoments, as_array, column_moments, row_sums
from keepers.linalg.spectrum import edge_of_scatter, pairs_above

LEVEL = 0.01
"""False discovery rate of the columns that carry structure."""
# Below this share of columns that carry structure, columns are weighted by the evidence for them:
# neutral on real tables, needed for planted columns (recall .23 without, .64 after four rounds).
FEW = 0.1
ROUNDS, FOLDS = 4, 5
FEWEST_OBSERVED = 10
"""Columns with gaps and fewer values than this are not used (in tables with fewer than 20 rows:
fewer than half of the rows). The standard error of a correlation of 10 values is 1/3."""
# Columns with more gaps than the typical column are ranked by their smoothness less this number of
# the standard errors that these gaps add: few values do not put noise ahead by chance.
CAUTION = 2.0
FEWEST_SAMPLES = 10
"""Different samples below which there are too few to tell structure from noise."""
MOST_GRAPH_VALUES = 3_000_000
"""From twice this number of values on, the first graphs are built from a part of the columns; the
test of halves does without ranks."""
# Sparse tables of no more values (256 MB) are made dense: columns are looked up many times.
MOST_DENSE = 1 << 25
# Values of a block of columns: 8 MB of float64. Of a block multiplied by the edges of graphs, 2 MB:
# 6,000 columns of 1,000 samples in three orders take .046 s, and .067 s in blocks of 8 MB.
BLOCK_SIZE, IN_CACHE = 1 << 20, 1 << 18
COMPARED = 256
"""Columns that are compared with every column taken: the others wait with an upper bound."""
WIDEST = 100
"""Tables with more columns that vary are not narrow."""
SAME = 0.95
"""From this absolute correlation on, a column of a narrow table repeats another one: 90 % of the
variance (docs/decisions/0025-any-table.md compares limits)."""
# Columns that differ from their mean by a smaller share of their length in the table do not vary.
_ROUNDING = 1e-12


# Clouds


class UnitFreeColumns:
    """Columns without their units, each along a row; none of them is constant.

    A large sparse table is never dense as a whole. Gaps are marked where values were filled.
    """

    def __init__(
        self, rows: Any, mean: FloatArray, length: FloatArray, observed: BoolArray | None
    ) -> None:
        self.n_features, self.n_samples = rows.shape
        # Standardised, if dense.
        self._rows, self._is_sparse = rows, bool(sp.issparse(rows))
        self._mean, self._length = mean, length
        self._there = observed
        self.has_gaps = observed is not None
        self.counts = np.full(self.n_features, self.n_samples)
        """The number of observed values of each column."""
        if observed is not None:
            self.counts = observed.sum(axis=1)
        self._ranks: Any = None
        self._row_of_ranks = np.full(self.n_features, -1)
        self.shares = np.ones(self.n_features)
        """Squared lengths, as shares of those in the table that these samples were taken from."""

    @classmethod
    def of_table(
        cls,
        X: Any,
        moments: ColumnMoments,
        observed: BoolArray | None = None,
        order: IndexArray | None = None,
    ) -> "UnitFreeColumns":
        """Columns of an array or sparse matrix with its rows in an order.

        ``observed`` marks the values that were not filled; None: all of them.
        """
        n_samples, n_features = X.shape
        order = np.arange(n_samples) if order is None else order
        mean, length = moments.mean, np.sqrt(moments.sum_of_squares)
        there = None if observed is None else np.ascontiguousarray(observed[order].T)
        if sp.issparse(X) and n_samples * n_features > MOST_DENSE:
            return cls(X.tocsr()[order].T.tocsr(), mean, length, there)
        values = as_array(X)
        rows = np.empty((n_features, n_samples))
        columns = cls(rows, mean, length, there)
        for part in columns.blocks(np.arange(n_features)):
            some = slice(part[0], part[-1] + 1)
            rows[some] = values[order, some].T
            rows[some] -= mean[some, np.newaxis]
            rows[some] /= length[some, np.newaxis]
        return columns

    def of_samples(self, samples: IndexArray) -> tuple["UnitFreeColumns", IndexArray]:
        """The columns that vary, and have enough values, over some of the samples; which these are.

        They get the same variance again.
        """
        if self._is_sparse:
            rows = self._rows[:, samples]
            moments = column_moments(rows.T)
        else:
            rows = np.take(self._rows, samples, axis=1)
            mean = rows.mean(axis=1)
            rows -= mean[:, np.newaxis]
            moments = ColumnMoments(len(samples), mean, np.einsum("ij,ij->i", rows, rows))
        there = None if self._there is None else np.take(self._there, samples, axis=1)
        length = np.sqrt(moments.sum_of_squares)
        varies = ~moments.constant
        if not self._is_sparse:
            rows /= np.where(varies, length, 1.0)[:, np.newaxis]
            length = length * self._length
        if there is not None:
            taken = UnitFreeColumns(rows, moments.mean, length, there)
            varies &= (taken.counts >= fewest_observed(len(samples))) & (taken.variances > 0.0)
        kept = np.flatnonzero(varies)
        if len(kept) < len(varies):
            rows, there = rows[kept], None if there is None else there[kept]
        taken = UnitFreeColumns(rows, moments.mean[kept], length[kept], there)
        taken.shares = (length[kept] / self._length[kept]) ** 2
        return taken, kept

    def blocks(self, columns: IndexArray, size: int = 0) -> Iterator[IndexArray]:
        """Some of the columns, a few at a time: ``size`` values, or `BLOCK_SIZE`."""
        step = max(1, (size or BLOCK_SIZE) // self.n_samples)
        for start in range(0, len(columns), step):
            yield columns[start : start + step]

    def standardised(self, columns: IndexArray) -> FloatArray:
        """Columns about their means, of length 1, one a row: their products are correlations."""
        block = as_array(self._rows[columns])
        if self._is_sparse:
            block -= self._mean[columns, np.newaxis]
            block /= self._length[columns, np.newaxis]
        return block

    def observed(self, columns: IndexArray) -> tuple[FloatArray, FloatArray | None]:
        """The observed values about their means, of length 1, 0 in the gaps; and 1 where observed.

        Without gaps, the columns as `standardised`, and None.
        """
        if self._there is None:
            return self.standardised(columns), None
        block, there = self._about_observed(columns)
        block /= np.sqrt(np.einsum("ij,ij->i", block, block))[:, np.newaxis]
        return block, there

    def there(self, columns: IndexArray) -> FloatArray:
        """1 where values were observed in a table with gaps; one row per column."""
        return np.asarray(self._there, dtype=bool)[columns].astype(np.float64)

    def _about_observed(self, columns: IndexArray) -> tuple[FloatArray, FloatArray]:
        block, there = self.standardised(columns), self.there(columns)
        block *= there
        block -= there * (block.sum(axis=1) / there.sum(axis=1))[:, np.newaxis]
        return block, there

    @cached_property
    def variances(self) -> FloatArray:
        """Variances of the observed values, in the units of the table."""
        squares = np.ones(self.n_features)
        if self._there is not None:
            for part in self.blocks(np.flatnonzero(self.counts)):
                block = self._about_observed(part)[0]
                squares[part] = np.einsum("ij,ij->i", block, block)
            squares[squares <= _ROUNDING**2] = 0.0
        return np.asarray(squares * self._length**2 / np.maximum(self.counts, 1))

    def between(self, mine: IndexArray, theirs: IndexArray) -> FloatArray:
        """Correlation of each of ``mine`` with each of ``theirs``, over rows observed in both."""
        return correlate(self.observed(mine), self.observed(theirs))

    def ranked(self, columns: IndexArray) -> FloatArray:
        """The ranks of the values, ties at their mean rank, about their means, of length 1."""
        ranks = self._doubled_ranks(columns) - (self.n_samples - 1.0)
        ranks /= np.sqrt(np.einsum("ij,ij->i", ranks, ranks))[:, np.newaxis]
        return ranks

    def _doubled_ranks(self, columns: IndexArray) -> Any:
        """Twice the ranks, which are whole numbers; of a dense table, they are kept as such."""
        if self._is_sparse:
            return 2.0 * mean_ranks(as_array(self._rows[columns]))
        if self._ranks is None:
            self._ranks = np.empty(self._rows.shape, dtype=np.int16)
        new = columns[self._row_of_ranks[columns] < 0]
        if len(new):  # row by row: places far apart in an array that nobody wrote to are slow
            first = self._row_of_ranks.max() + 1
            self._row_of_ranks[new] = np.arange(first, first + len(new))
            self._ranks[first : first + len(new)] = 2.0 * mean_ranks(self._rows[new])
        return self._ranks[self._row_of_ranks[columns]]


def correlate(
    mine: tuple[FloatArray, FloatArray | None], theirs: tuple[FloatArray, FloatArray | None]
) -> FloatArray:
    """Correlations of columns from `UnitFreeColumns.observed`; 0 over too few common rows."""
    (x, in_x), (y, in_y) = mine, theirs
    products = x @ y.T
    if in_x is None or in_y is None:
        return np.clip(products, -1.0, 1.0)
    n = in_x @ in_y.T
    sums_x, sums_y, n_or_1 = x @ in_y.T, in_x @ y.T, np.maximum(n, 1.0)
    of_x, of_y = x**2 @ in_y.T - sums_x**2 / n_or_1, in_x @ (y**2).T - sums_y**2 / n_or_1
    # Squares below rounding are those of columns constant over the common rows.
    usable = (n >= fewest_observed(x.shape[1])) & (np.minimum(of_x, of_y) > 1e-12)
    r = (products - sums_x * sums_y / n_or_1) / np.sqrt(np.where(usable, of_x * of_y, 1.0))
    return np.where(usable, np.clip(r, -1.0, 1.0), 0.0)


def fewest_observed(n_rows: int) -> int:
    return min(FEWEST_OBSERVED, n_rows // 2)


@dataclass(frozen=True)
class FoldGrams:
    """Columns dealt into folds, and what the clouds of some of the folds are made of.

    Columns are seen in two views, at the same variance and by ranks, or in the first alone.
    """

    folds: IndexArray
    """The fold of every column; -1: it has no part in any cloud."""
    squares: FloatArray
    """The squared length of every column in every view; 0: it has no part in any cloud."""
    sums: FloatArray
    """Sums of outer products of columns, n x n: for every view and fold."""

    def of_samples(self, samples: IndexArray, kept: IndexArray, shares: FloatArray) -> "FoldGrams":
        """The same of some samples: the ``kept`` columns with their ``shares`` of the squares.

        Columns keep the weights that equal variances over all samples give them.
        """
        sums = self.sums[:, :, samples[:, np.newaxis], samples]
        sums -= sums.mean(axis=-1, keepdims=True)
        sums -= sums.mean(axis=-2, keepdims=True)
        totals = np.einsum("vfii->v", sums) / self.squares.sum(axis=1)
        squares = self.squares[:, kept] * totals[:, np.newaxis]
        squares[0] = self.squares[0, kept] * shares
        return FoldGrams(self.folds[kept], squares, sums)


def first_grams(columns: UnitFreeColumns, rng: np.random.Generator) -> FoldGrams:
    """Two halves of the columns, all of the same weight; of many columns, a part has no weight."""
    projected = _project(columns, rng)
    in_graph = _deal(projected, 2 * _count_parts(columns)) < 2
    return sum_folds(columns, _deal(projected, 2), in_graph.astype(np.float64))


def _count_parts(columns: UnitFreeColumns) -> int:
    return max(1, columns.n_features * columns.n_samples // MOST_GRAPH_VALUES)


def _project(columns: UnitFreeColumns, rng: np.random.Generator) -> FloatArray:
    """Sizes of the columns along a random direction: they do not depend on places and signs."""
    direction = rng.standard_normal(columns.n_samples)
    parts = columns.blocks(np.arange(columns.n_features))
    return np.abs(np.concatenate([columns.standardised(part) @ direction for part in parts]))


def _deal(values: FloatArray, n_folds: int) -> IndexArray:
    """Columns dealt into folds in the order of their values, which makes the folds alike."""
    folds = np.empty(len(values), dtype=np.intp)
    folds[np.argsort(-np.round(values, 9), kind="stable")] = np.arange(len(values))
    return folds % min(n_folds, len(values))


def sum_folds(
    columns: UnitFreeColumns, folds: IndexArray, weights: FloatArray, *, by_ranks: bool = True
) -> FoldGrams:
    """Sum the outer products of the columns of each fold, times their weights.

    A column counts as much as the share of it that was observed. Its filled values repeat other
    columns: with 80 to 99 % gaps in five of 17 columns, 10 of 60 complete columns of noise were
    taken for structure over such graphs, and none with these weights.
    """
    weights = weights * np.sqrt(columns.counts / columns.n_samples)
    views = [columns.standardised, columns.ranked][: 1 + by_ranks]
    sums = np.zeros((len(views), folds.max() + 1, columns.n_samples, columns.n_samples))
    for fold in range(folds.max() + 1):
        for part in columns.blocks(np.flatnonzero((folds == fold) & (weights > 0.0))):
            for view, total in zip(views, sums, strict=True):
                block = view(part)
                block *= weights[part, np.newaxis]
                total[fold] += block.T @ block
    return FoldGrams(folds, np.tile(weights**2, (len(views), 1)), sums)


def _clouds(grams: FoldGrams, left_out: int | None) -> Iterator[FloatArray]:
    """The samples in the components above the noise; ``left_out`` is a fold."""
    sums, used = grams.sums.sum(axis=1), grams.squares[0] > 0.0
    if left_out is not None:
        sums -= grams.sums[:, left_out]
        used &= grams.folds != left_out
    n_samples = sums.shape[-1]
    for gram, squares in zip(sums, grams.squares[:, used], strict=True):
        values, vectors = pairs_above(
            gram,
            edge_of_scatter(squares, n_samples),
            rank=len(squares),
            at_least=min(2, n_samples - 1),
            at_most=min(100, n_samples - 1),
        )
        # Half-whitened and whitened: both together beat either of them alone.
        yield vectors * (values / values[0]) ** 0.25
        yield vectors


# Graph


def cap_at_third(n_neighbors: int, n_samples: int) -> int:
    """At most a third of the samples are neighbours: a graph that joins most pairs is useless.

    Of 20 tables of 14 samples with three groups, structure was found in 18, and in 12 at a half.
    """
    return max(1, min(n_neighbors, n_samples // 3))


def neighbour_graph(
    grams: FoldGrams, n_neighbors: int, *, left_out: int | None = None
) -> sp.csr_array:
    """The sum of the graphs of the four clouds of all columns, or of all but one fold."""
    samples = np.arange(grams.sums.shape[-1])[:, np.newaxis]
    total = np.zeros((len(samples), len(samples)))
    for cloud in _clouds(grams, left_out):
        lists = np.zeros(total.shape, dtype=bool)
        lists[samples, nearest_by_distance(squared_distances(cloud), n_neighbors)] = True
        total += lists | lists.T
    return sp.csr_array(total)


# Smoothness


def smoothness(
    columns: UnitFreeColumns,
    wanted: IndexArray,
    graph: sp.csr_array,
    orders: Sequence[IndexArray] = (),
) -> FloatArray:
    """The smoothness of the wanted columns; in further rows, with their samples in other orders.

    With x of length 1 and W1 = D1, freeing it of its weighted mean takes the same square off both
    sums: z'Wz / z'Dz = (x'Wx - c) / (x'Dx - c), c = (x'D1)^2 / 1'D1. Of columns with gaps, only the
    observed samples and the edges between them count, and they alone are reordered.
    """
    every_order = np.array([np.arange(columns.n_samples), *orders])
    found = np.empty((len(every_order), len(wanted)))
    upper, degree = sp.coo_array(sp.triu(graph, 1)), row_sums(graph)
    # Without gaps, the graph is reordered instead of the samples.
    graph_orders = every_order[:1] if columns.has_gaps else every_order
    ends = (graph_orders[:, upper.row], graph_orders[:, upper.col])
    edges = [sp.csr_array((upper.data, pair), graph.shape) for pair in zip(*ends, strict=True)]
    weight = degree[np.argsort(every_order)]
    for place in columns.blocks(np.arange(len(wanted)), IN_CACHE):
        block, there = columns.observed(wanted[place])
        block = np.ascontiguousarray(block.T)
        if there is None:
            agreement = np.array([np.einsum("ij,ij->j", W @ block, block) for W in edges])
            total, first, second = degree.sum(), weight @ block, weight @ block**2
        else:
            there = np.ascontiguousarray(there.T)
            weights = there * (graph @ there)  # edges between observed samples only
            total = np.maximum(weights.sum(axis=0), 1.0)
            agreement, first, second = np.empty((3, len(every_order), len(place)))
            for at, order in enumerate(every_order):
                x = _reorder(block, order, there)
                agreement[at] = np.einsum("ij,ij->j", edges[0] @ x, x)
                weighted = weights * x
                first[at], second[at] = weighted.sum(axis=0), np.einsum("ij,ij->j", weighted, x)
        common = first**2 / total
        spread = second - common
        differs = spread > 1e-12
        above = np.where(differs, 2.0 * agreement - common, 0.0)
        found[:, place] = above / np.where(differs, spread, 1.0)
    return found


def _reorder(block: FloatArray, order: IndexArray, there: FloatArray) -> FloatArray:
    """The samples of columns in another order; gaps stay where they are."""
    gaps = there == 0.0
    sources = order[np.argsort(gaps[order], axis=0, kind="stable")]
    places = np.argsort(gaps, axis=0, kind="stable")
    reordered = np.empty_like(block)
    np.put_along_axis(reordered, places, np.take_along_axis(block, sources, axis=0), axis=0)
    return reordered


@dataclass(frozen=True)
class Judged:
    """The smoothness of columns, and how unlikely it is by chance."""

    values: FloatArray
    """Values for the ranking: less `CAUTION` standard errors that unusual gaps add."""
    tested: FloatArray
    """Smoothness of a complete column that is as unlikely by chance; shuffled, in further rows."""
    z: FloatArray
    """In standard deviations of columns of noise from their mean, less the same caution."""


def judge(
    columns: UnitFreeColumns,
    wanted: IndexArray,
    graph: sp.csr_array,
    orders: Sequence[IndexArray] = (),
) -> Judged:
    """The smoothness of the wanted columns; in further rows, with their samples in other orders."""
    found = smoothness(columns, wanted, graph, orders)
    squares = sp.csr_array(graph.multiply(graph))
    typical = _moments_by_chance(graph, squares, np.ones((columns.n_samples, 1)))[:, 0]
    if not columns.has_gaps:
        return Judged(found[0], found, (found[0] - typical[0]) / typical[1])
    mean, deviation = np.empty((2, len(wanted)))
    for part in columns.blocks(np.arange(len(wanted))):
        there = np.ascontiguousarray(columns.there(wanted[part]).T)
        mean[part], deviation[part] = _moments_by_chance(graph, squares, there)
    z = (found - mean) / deviation
    complete = columns.counts[wanted] == columns.n_samples
    # Gaps that most columns have do not set columns apart.
    caution = CAUTION * np.maximum(1.0 - np.median(deviation) / deviation, 0.0)
    caution[complete] = 0.0
    tested = np.where(complete, found, typical[0] + typical[1] * z)
    return Judged(found[0] - caution * deviation, tested, z[0] - caution)


def _moments_by_chance(graph: sp.csr_array, squares: sp.csr_array, there: FloatArray) -> FloatArray:
    """Mean and deviation of the smoothness of columns of noise, observed where ``there`` is 1.

    To first order: -sum D_i^2 / ((sum D_i)^2 - sum D_i^2) and sqrt(2 sum W_ij^2) / sum D_i, over
    the edges between observed samples. Without any edge, a deviation of 1: nothing is known.
    """
    degree = there * (graph @ there)
    total, of_degrees = degree.sum(axis=0), np.einsum("ij,ij->j", degree, degree)
    of_edges = np.einsum("ij,ij->j", there, squares @ there)
    joined = total > 0.0
    mean = -of_degrees / np.where(joined, total**2 - of_degrees, 1.0)
    deviation = np.sqrt(2.0 * of_edges) / np.maximum(total, 1.0)
    return np.array([mean, np.where(joined, deviation, 1.0)])


# Test


@dataclass(frozen=True)
class Smoothness:
    """How much neighbours agree on every column, and whether by more than chance."""

    values: FloatArray
    """1 minus the Laplacian score; what columns are ranked by before redundancy is discounted."""
    p_values: FloatArray
    """How often a column that has nothing to do with the others would be as smooth."""
    z: FloatArray
    """On a graph of other columns, in standard deviations of columns of noise from their mean."""
    graph: sp.csr_array
    """The neighbours of the samples in all columns."""
    weighted: bool = False
    """True if few columns carry structure, and columns were weighted by evidence."""

    @cached_property
    def carries(self) -> BoolArray:
        """Columns that carry structure."""
        return discoveries(self.p_values)


def measure_smoothness(
    columns: UnitFreeColumns,
    grams: FoldGrams,
    n_neighbors: int,
    rng: np.random.Generator,
    few_carry: bool | None = None,
) -> Smoothness:
    """Smoothness of every column over neighbours found in all columns, and its p-value.

    ``grams`` are those of `first_grams`. ``few_carry``: these are half of the samples, and all of
    them show that few, or many, columns carry structure. This is not tested again.
    """
    everything = np.arange(columns.n_features)
    if columns.n_samples < FEWEST_SAMPLES:
        graph = neighbour_graph(grams, n_neighbors)
        values = judge(columns, everything, graph).values
        return Smoothness(values, np.ones(len(values)), np.zeros(len(values)), graph)
    known = few_carry is not None
    n_shuffles = count_shuffles(columns.n_features, known=known)
    tested = _cross_fit(columns, grams, n_neighbors, rng, n_shuffles)
    if few_carry or (not known and tested.carries.mean() < FEW):
        # The signal is weak: average over twice the neighbours.
        n_neighbors = cap_at_third(2 * n_neighbors, columns.n_samples)
        return _weigh_by_evidence(columns, tested, n_neighbors, rng, known=known)
    graph = neighbour_graph(grams, n_neighbors)
    return replace(tested, values=judge(columns, everything, graph).values, graph=graph)


def discoveries(p_values: FloatArray) -> BoolArray:
    """Benjamini and Hochberg's step-up procedure."""
    ordered = np.sort(p_values)
    below = np.flatnonzero(ordered <= LEVEL * np.arange(1, len(ordered) + 1) / len(ordered))
    return np.asarray(p_values <= (ordered[below[-1]] if len(below) else -1.0))


def _cross_fit(
    columns: UnitFreeColumns,
    grams: FoldGrams,
    n_neighbors: int,
    rng: np.random.Generator,
    n_shuffles: int,
) -> Smoothness:
    """Score the columns of each fold on a graph of the others.

    p-values come from columns with shuffled rows, or without any from the normal law.
    """
    values, tested, z = np.zeros((3, columns.n_features))
    n_folds = int(grams.folds.max()) + 1
    if n_folds == 1:  # a single column has no others
        return Smoothness(values, values + 1.0, values, neighbour_graph(grams, n_neighbors))
    pool, graphs = [], []
    for fold in range(n_folds):
        graph = neighbour_graph(grams, n_neighbors, left_out=fold)
        held_out = np.flatnonzero(grams.folds == fold)
        found = judge(columns, held_out, graph, _shuffles(columns, rng, n_shuffles))
        values[held_out], tested[held_out], z[held_out] = found.values, found.tested[0], found.z
        pool.append(found.tested[1:].ravel())
        graphs.append(graph)
    p_values = _p_values(tested, np.concatenate(pool)) if n_shuffles else ndtr(-z)
    return Smoothness(values, p_values, z, sp.csr_array(sum(graphs[1:], graphs[0])))


def _shuffles(columns: UnitFreeColumns, rng: np.random.Generator, count: int) -> list[IndexArray]:
    """Other orders of the samples."""
    return [rng.permutation(columns.n_samples) for _ in range(count)]


def count_shuffles(n_features: int, *, known: bool = False) -> int:
    """Give p-values from 50,000 shuffled columns, or two for each column.

    Where structure is known, the normal law will do, except in narrow tables.
    """
    return 0 if known and n_features > WIDEST else int(np.clip(50_000 // n_features, 2, 100))


def _p_values(values: FloatArray, shuffled: FloatArray) -> FloatArray:
    """How often shuffled columns are as smooth; those that agree up to rounding count."""
    n_above = len(shuffled) - np.searchsorted(np.sort(shuffled), values - 1e-9, "left")
    return np.asarray((1.0 + n_above) / (1.0 + len(shuffled)))


def _weigh_by_evidence(
    columns: UnitFreeColumns,
    tested: Smoothness,
    n_neighbors: int,
    rng: np.random.Generator,
    *,
    known: bool,
) -> Smoothness:
    """Few columns carry structure: let each of them count as much as there is evidence for it.

    A column influences the weights of the others, so p-values after weighting are used only where
    a test without weights, or of one half of the columns over weights of the other, found some; or
    where it is known from all samples that some do. There two folds do: halves of 100 and 200
    samples find 50 planted of 5,000 columns with a recall of .24, with five folds .22.
    """
    n_folds, n_shuffles = 2 if known else FOLDS, count_shuffles(columns.n_features, known=known)
    excess = excess_variance(columns)
    evidence, n_carrying = _combine(tested.z, excess), int(tested.carries.sum())
    if not n_carrying and not known:
        evidence, p_values = _test_halves(columns, excess, n_neighbors, rng)
        n_carrying = int(discoveries(p_values).sum())
    found = known or n_carrying > 0
    for _ in range(ROUNDS if found else 0):
        grams = _weighted_grams(columns, np.arange(columns.n_features), evidence, n_folds)
        n_before = n_carrying
        tested = _cross_fit(columns, grams, n_neighbors, rng, n_shuffles)
        evidence, n_carrying = _combine(tested.z, excess), int(tested.carries.sum())
        if n_before and n_carrying <= 1.1 * n_before:  # it grows no more
            break
    values, p_values = tested.values, tested.p_values if found else np.ones(columns.n_features)
    if excess is not None or not found:
        values = evidence * np.abs(values).max() / (np.abs(evidence).max() or 1.0)
    return replace(tested, values=values, p_values=p_values, weighted=True)


def _test_halves(
    columns: UnitFreeColumns,
    excess: FloatArray | None,
    n_neighbors: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Find weights within each half of the columns, and test the other half over them.

    So the weights know nothing of the columns that are tested. Two folds in each half have to do:
    recall of rescaled planted columns is .47 with them and .44 with five (100 samples, spread 1).
    Returns evidence and p-values.
    """
    projected = _project(columns, rng)
    halves, by_ranks = _deal(projected, 2), _count_parts(columns) == 1
    values, z, pool = np.zeros(len(halves)), np.zeros(len(halves)), []
    for half in range(2):
        members, others = np.flatnonzero(halves == half), np.flatnonzero(halves != half)
        if min(len(members), len(others)) < FOLDS:
            return values, np.ones(len(halves))
        # In an order that depends on the columns, not on their places.
        members = members[np.argsort(np.round(projected[members], 9), kind="stable")]
        of_members = None if excess is None else excess[members]
        evidence = np.zeros(len(members)) if of_members is None else of_members
        for _ in range(ROUNDS - 1):
            grams = _weighted_grams(columns, members, evidence, 2, by_ranks=by_ranks)
            within = _cross_fit(columns, grams, n_neighbors, rng, n_shuffles=0)
            evidence = _combine(within.z[members], of_members)
        grams = _weighted_grams(columns, members, evidence, 1, by_ranks=by_ranks)
        orders = _shuffles(columns, rng, count_shuffles(columns.n_features))
        found = judge(columns, others, neighbour_graph(grams, n_neighbors), orders)
        values[others], z[others] = found.tested[0], found.z
        pool.append(found.tested[1:].ravel())
    return _combine(z, excess), _p_values(values, np.concatenate(pool))


def _weighted_grams(
    columns: UnitFreeColumns,
    members: IndexArray,
    evidence: FloatArray,
    n_folds: int,
    *,
    by_ranks: bool = True,
) -> FoldGrams:
    """Sums over folds of the members, weighted by evidence above 0."""
    folds, weights = np.full(columns.n_features, -1), np.zeros(columns.n_features)
    folds[members] = _deal(evidence, n_folds)
    enough = np.sum(evidence > 0.0) >= 2 * FOLDS  # columns to build graphs of
    weights[members] = np.maximum(evidence, 0.0) if enough else 1.0
    return sum_folds(columns, folds, weights, by_ranks=by_ranks)


def _combine(z: FloatArray, excess: FloatArray | None) -> FloatArray:
    """One number of standard deviations from two that are independent without structure."""
    return z if excess is None else np.asarray((z + excess) / np.sqrt(2.0))


def excess_variance(columns: UnitFreeColumns) -> FloatArray | None:
    """How far each variance lies above the typical one, in sampling errors of its logarithm.

    None unless most variances agree up to sampling error: otherwise they depend on the units.
    """
    kurtosis = np.empty(columns.n_features)
    for part in columns.blocks(np.arange(columns.n_features)):
        squares = columns.observed(part)[0] ** 2
        kurtosis[part] = columns.counts[part] * np.einsum("ij,ij->i", squares, squares)
    error = np.sqrt(max(float(np.median(kurtosis)) - 1.0, 0.0) / columns.n_samples)
    above = np.log(columns.variances)
    above -= np.median(above)
    spread = 1.4826 * float(np.median(np.abs(above)))  # the standard deviation, if normal
    if not 1e-6 < spread <= 1.5 * error:
        return None
    return np.asarray(above / error * np.sqrt(columns.counts / columns.n_samples))


# Discount


@dataclass(frozen=True)
class Discounted:
    """The columns in order, and how much each adds to better ones."""

    order: IndexArray
    """Columns that must stay, columns that carry structure, the others."""
    scores: FloatArray
    nearest: IndexArray
    """The better column that each resembles most; -1 if there is none or it was not compared."""
    correlations: FloatArray
    """With that column; NaN if there is none."""
    n_candidates: int
    """Columns that must stay or carry structure."""


class Discount:
    """Columns taken one by one: those that must stay, then the largest ``values * (1 - r^2)``.

    r is the strongest correlation with a column taken before. A score only falls, so an old one is
    an upper bound. The columns with the highest bounds are brought up to date together, and taken
    until one of the others might be better.
    """

    def __init__(
        self, columns: UnitFreeColumns, values: FloatArray, carries: BoolArray, must: IndexArray
    ) -> None:
        self._columns, self._values, self._must = columns, values, must
        self._candidates = np.union1d(np.flatnonzero(carries), must)
        self._worth = np.maximum(values, 0.0)
        self._bounds = np.full(len(values), -np.inf)  # of those not taken yet
        self._bounds[self._candidates] = np.round(self._worth[self._candidates], 12)
        self._n_compared = np.zeros(len(values), dtype=np.intp)
        self._nearest, self._r = np.full(len(values), -1), np.zeros(len(values))
        self._taken: list[int] = []
        self._scores: list[float] = []

    def ranking(self, most: int) -> Discounted:
        """The order after at most ``most`` columns, or the number of the last call, were taken.

        Those left are scored below them, in the order of their values; those without structure have
        minus their Laplacian score.
        """
        self._take(min(most, len(self._candidates)))
        values, taken = self._values, np.array(self._taken, dtype=np.intp)
        scores = np.minimum(values, 1.0) - 1.0
        scores[taken] = self._scores
        rest = np.setdiff1d(self._candidates, taken)
        if len(rest):
            highest = max(float(values[rest].max()), np.finfo(float).tiny)
            scores[rest] = self._scores[-1] * self._worth[rest] / highest
        others = np.setdiff1d(np.arange(len(values)), self._candidates)
        by_value = [p[np.argsort(-np.round(values[p], 9), kind="stable")] for p in (rest, others)]
        nearest = self._nearest.copy()
        nearest[np.concatenate(by_value)] = -1
        order = np.concatenate([taken, *by_value])
        r = np.where(nearest >= 0, self._r, np.nan)
        return Discounted(order, scores, nearest, r, len(self._candidates))

    def _take(self, count: int) -> None:
        taken, n_must = self._taken, len(self._must)
        while len(taken) < count:
            place = len(taken)
            stale = self._n_compared < place
            near = self._must[place : place + 1] if place < n_must else self._highest(stale)
            here = self._columns.observed(near)
            since = int(self._n_compared[near].min())
            if since < place:
                before = np.array(taken[since:])
                self._compare(near, correlate(here, self._columns.observed(before)), before)
            others = self._bounds.copy()
            others[near] = -np.inf
            might_be = float(others[stale].max(initial=-np.inf))
            others_are = float(others[~stale].max(initial=-np.inf))
            self._n_compared[near] = place
            while len(taken) < count:
                bounds = self._bounds[near]
                at = first_largest(bounds)
                if place >= n_must and (bounds[at] <= might_be or bounds[at] < others_are):
                    break
                taken.append(int(near[at]))
                self._scores.append(float(bounds[at]))
                self._bounds[near[at]] = -np.inf
                if len(taken) <= n_must:
                    break
                might_be = max(might_be, others_are)
                best = near[at : at + 1]
                self._compare(near, correlate(here, self._columns.observed(best)), best)
                self._n_compared[near] = len(taken)

    def _highest(self, stale: BoolArray) -> IndexArray:
        """The columns with the highest bounds, in the order of the table.

        Among equal bounds, stale ones come first: every round brings some up to date.
        """
        bounds, some = self._bounds, np.arange(len(self._bounds))
        if len(bounds) > COMPARED:
            some = np.flatnonzero(bounds >= np.partition(bounds, -COMPARED)[-COMPARED])
        return np.sort(some[np.lexsort((~stale[some], -bounds[some]))[:COMPARED]])

    def _compare(self, near: IndexArray, r: FloatArray, taken: IndexArray) -> None:
        """Lower the bounds of columns by their correlations ``r`` with columns that were taken."""
        # Rounding must not decide between copies: the one taken first.
        strongest = np.argmax(np.round(np.abs(r), 12), axis=1)
        r = r[np.arange(len(near)), strongest]
        stronger = np.abs(r) > np.abs(self._r[near]) + 1e-12
        stronger &= np.isfinite(self._bounds[near])  # not taken yet
        near, r = near[stronger], r[stronger]
        self._r[near], self._nearest[near] = r, taken[strongest[stronger]]
        self._bounds[near] = np.round(self._worth[near] * (1.0 - r**2), 12)


# How many


@dataclass(frozen=True)
class NeighbourAgreement:
    """How well the first columns of an order keep the neighbours that a graph gives each sample.

    By some columns, each sample names its nearest others. The agreement is the weight that the
    graph gives to those, over the largest weight that as many could have: 1 if they are the best
    neighbours of all samples, and about 0 if they have nothing to do with the graph. A gap adds to
    distances what a random value of the column would on average.
    """

    columns: UnitFreeColumns
    graph: FloatArray
    """Its weights, n x n."""
    n_neighbors: int

    @cached_property
    def _largest(self) -> float:
        best = np.partition(self.graph, -self.n_neighbors, axis=1)[:, -self.n_neighbors :]
        return float(best.sum())

    def of(self, order: IndexArray, counts: Sequence[int]) -> FloatArray:
        """The agreement of the first columns of ``order``, for every one of rising numbers."""
        found, squared = np.empty(len(counts)), np.zeros_like(self.graph)
        for at, (start, stop) in enumerate(pairwise((0, *counts))):
            added = order[start:stop]
            block, there = self.columns.observed(added)
            if there is not None:  # columns of the same variance
                shares = self.columns.counts[added] / self.columns.n_samples
                block *= np.sqrt(shares)[:, np.newaxis]
                unknown = (1.0 - there).sum(axis=0) / self.columns.n_samples
                squared += unknown[:, np.newaxis] + unknown
            squared += squared_distances(np.ascontiguousarray(block.T))
            nearest = nearest_by_distance(squared.copy(), self.n_neighbors)
            found[at] = np.take_along_axis(self.graph, nearest, axis=1).sum() / self._largest
        return found


def growing_counts(most: int, first: int = 5) -> IndexArray:
    """Numbers of features to try, up to ``most``, each a quarter more than the last."""
    counts = [min(first, most)] if most else []
    while counts and counts[-1] < most:
        counts.append(min(most, max(counts[-1] + 1, round(counts[-1] * 1.25))))
    return np.array(counts, dtype=np.intp)


def split_copies(
    ranked: IndexArray, r: FloatArray, always: BoolArray, limit: float = SAME
) -> tuple[IndexArray, IndexArray]:
    """The ranked columns to keep, and those that repeat a better one that is kept.

    ``r`` are the correlations of all columns; from the absolute value ``limit`` on, one column
    repeats the other. Columns marked in ``always`` are kept.
    """
    kept: list[int] = []
    for column in ranked.tolist():
        # Rounding must not decide between exact copies.
        if always[column] or not np.any(np.abs(r[column, kept]) >= limit - 1e-9):
            kept.append(column)
    chosen = np.array(kept, dtype=np.intp)
    return chosen, ranked[~np.isin(ranked, chosen)]


def set_copies_back(
    columns: UnitFreeColumns, ranked: Discounted, must: IndexArray, limit: float
) -> tuple[Discounted, int]:
    """Rank copies behind the other columns that carry structure, and count those others."""
    everything = np.arange(columns.n_features)
    r, always = columns.between(everything, everything), np.isin(everything, must)
    with_structure, others = np.split(ranked.order, [ranked.n_candidates])
    kept, copies = split_copies(with_structure, r, always, limit)
    nearest, with_nearest = ranked.nearest.copy(), ranked.correlations.copy()
    if len(copies):
        nearest[copies] = kept[np.argmax(np.round(np.abs(r[np.ix_(copies, kept)]), 12), axis=1)]
        with_nearest[copies] = r[copies, nearest[copies]]
    order = np.concatenate([kept, copies, others])
    return replace(ranked, order=order, nearest=nearest, correlations=with_nearest), len(kept)


# How sure


@dataclass(frozen=True)
class HalfSampleStability:
    """How far half of the samples would keep the same features. It prints as a sentence."""

    n_halves: int
    features: IndexArray
    """The kept features that vary, best first."""
    shares: FloatArray
    """For each of them, the share of halves that keep it too."""
    stand_ins: IndexArray
    """The feature that replaces it in the other halves: the most correlated one that they keep.
    -1 if all halves keep it."""
    correlations: FloatArray
    """Correlation with the replacement over all samples; NaN if there is none."""
    n_same: float
    """Number of kept features that a half keeps too, on average."""
    mean_correlation: float
    """Mean absolute correlation of the other features with their replacements; NaN if all are the
    same."""

    def __str__(self) -> str:
        """As a sentence."""
        n_kept = len(self.features)
        if np.isnan(self.mean_correlation):
            return f"With half of the samples, the same {in_words(n_kept)} would be kept."
        same = min(round(self.n_same), n_kept - 1)
        others = "the other would be replaced by a correlated one"
        if n_kept - same > 1:
            others = "the others would be replaced by correlated ones"
        return (
            f"With half of the samples, {same:,} of {in_words(n_kept)} would be the same; "
            f"{others} (r = {self.mean_correlation:.2f} on average)."
        )


def in_words(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}{'feature' if count == 1 else 'features'}"


def compare_halves(
    columns: UnitFreeColumns,
    kept: IndexArray,
    features: IndexArray,
    names: IndexArray,
    chosen: Sequence[IndexArray],
) -> HalfSampleStability:
    """Compare the kept columns with those chosen on halves; the latter as columns too."""
    same = np.array([np.isin(kept, other) for other in chosen])
    r, stand_ins = np.zeros(same.shape), np.full(same.shape, -1)
    for at, other in enumerate(chosen):
        lost = np.flatnonzero(~same[at])
        for part in columns.blocks(lost):
            found = columns.between(kept[part], other)
            nearest = np.argmax(np.round(np.abs(found), 12), axis=1)
            r[at, part] = found[np.arange(len(part)), nearest]
            stand_ins[at, part] = other[nearest]
    best, all_kept = np.argmax(np.abs(r), axis=0), np.arange(len(kept))
    replaced = stand_ins[best, all_kept] >= 0
    return HalfSampleStability(
        n_halves=len(chosen),
        features=features,
        shares=same.mean(axis=0),
        stand_ins=np.where(replaced, names[stand_ins[best, all_kept]], -1),
        correlations=np.where(replaced, r[best, all_kept], np.nan),
        n_same=float(same.sum(axis=1).mean()),
        mean_correlation=float(np.abs(r[~same]).mean()) if not same.all() else np.nan,
    )
