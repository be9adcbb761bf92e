"""AutoSelector: features on which neighbouring samples agree, and how many of them are enough.

Developed in this project from the Laplacian score (He, Cai and Niyogi, NIPS 2005). In this order:

1. **Clouds.** Columns lose their units: they get the same variance, or are replaced by their ranks.
   Of both tables the principal components that stand out from noise are taken, the strong ones
   turned down (multiplied by the fourth root of the relative eigenvalue) or all alike.
2. **Graph.** Each of the four clouds joins every sample to its nearest ones; W is the sum of the
   four graphs and D its degrees.
3. **Smoothness.** That of a column x is 1 minus its Laplacian score on W,

       a = z'Wz / z'Dz,   z = x - (x'D1 / 1'D1):

   1 if neighbours agree exactly, about 0 for a column that has nothing to do with W.
4. **Test.** Every column is scored on a graph of the other half of the columns, so that no column
   helps to build the graph it is tested on, and compared with columns whose rows are shuffled;
   Benjamini and Hochberg's procedure turns the p-values into the set that carries structure.
   Where that is a small part of the columns, the graphs are built anew, every column weighted by
   the evidence for it. If the variances of the columns agree up to sampling error, as those of
   a table in one unit do, an excess of variance is evidence too; nothing else depends on units.
5. **Discount.** Columns are taken one by one, the largest a_j (1 - r^2) first, r being the
   strongest correlation with a column taken before.
6. **How many.** The smallest number whose neighbours agree with W almost as well as those of any
   number tried: up to 200, and further while more than half of the largest number is needed.
   Of at most 100 columns: all that carry structure and repeat no better one (`narrow.py`).

7. **How sure.** Steps 1 to 5 on halves of the samples, for as many features.

**Gaps.** Filled values agree with their neighbours by construction. So filled values only build the
graph. Smoothness, shuffles and correlations of a column use the rows where it was observed.

docs/decisions/0014-autoselector.md has the measurements behind the constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._wording import some_of
from keepers.blocks.sources import as_blocks, number_rows
from keepers.exceptions import DataError, NoStructureWarning, ParameterError, warn_caller
from keepers.linalg.gaps import observed_columns
from keepers.linalg.graph import nearest_by_distance, squared_distances
from keepers.linalg.ordering import drawn_rows, first_largest, largest_drawn_key
from keepers.linalg.scatter import ColumnMoments, by_rows, stack_rows
from keepers.linalg.sums import NotFiniteError, RowReservoir
from keepers.methods.auto_structure import (
    FEWEST_SAMPLES,
    LEVEL,
    Smoothness,
    TableWithGaps,
    UnitFreeColumns,
    cap_at_third,
    correlate,
    count_shuffles,
    fewest_observed,
    measure_smoothness,
    observed_variances,
    put_in_order,
    table_of_rows,
    unit_free_columns,
)
from keepers.methods.base import FitNotes, RankingSelector
from keepers.methods.narrow import SAME, WIDEST, split_copies
from keepers.methods.parameters import (
    FLAG,
    FeatureControl,
    FeatureCount,
    Seed,
    cap_neighbors,
    control_of,
    one_of,
    whole,
)
from keepers.methods.reading import (
    FittedTable,
    MemoryTable,
    fills_gaps,
    refuse_undeclared,
    table_of_values,
    table_values,
    validate_table,
)
from keepers.prepare.check import listed
from keepers.prepare.preparer import TablePreparer
from keepers.tables.objects import as_frame, comes_in_blocks, has_other_columns, table_of_object
from keepers.tables.table import NamedValues, Table

MOST_ROWS = 1000
"""Rows that are looked at; of larger tables that many are drawn at random."""
ENOUGH = 0.95
"""Share of the best neighbour agreement that counts as enough."""
FIRST_TRIED, MOST_TRIED = 200, 2000
"""Numbers of features up to the first are tried. It is doubled, up to the second, while more than
half of it are needed: there the agreement has not levelled off. Columns up to the largest number
tried are discounted."""
COMPARED = 256
"""Columns that are compared with every column taken: the others wait with an upper bound."""
N_RANDOM = 10
"""Random sets of features that the kept ones are compared with."""
FEWEST_TO_HALVE = 20
"""Samples: halves of fewer are too small for graphs of 7 neighbours."""

# Discount


@dataclass(frozen=True)
class Discounted:
    """The columns in order, and what each says that better ones do not."""

    order: IndexArray
    """Columns that must stay, columns that carry structure, the others."""
    scores: FloatArray
    nearest: IndexArray
    """The better column that each resembles most; -1 if there is none or it was not compared."""
    correlations: FloatArray
    """With that column; NaN if there is none."""


def discount(
    columns: UnitFreeColumns, values: FloatArray, carries: BoolArray, must: IndexArray, most: int
) -> Discounted:
    """Take ``must``, then columns that carry structure, the largest ``values * (1 - r^2)`` first.

    r is the strongest correlation with a column taken before. At most ``most`` columns are taken.
    Those left are scored below them, in the order of their values; those without structure have
    minus their Laplacian score.
    """
    candidates = np.union1d(np.flatnonzero(carries), must)
    taken, found, nearest, r = _take(columns, values, candidates, must, min(most, len(candidates)))
    scores = np.minimum(values, 1.0) - 1.0
    scores[taken] = found
    rest = np.setdiff1d(candidates, taken)
    if len(rest):
        highest = max(float(values[rest].max()), np.finfo(float).tiny)
        scores[rest] = found[-1] * np.maximum(values[rest], 0.0) / highest
    others = np.setdiff1d(np.arange(len(values)), candidates)
    by_value = [p[np.argsort(-np.round(values[p], 9), kind="stable")] for p in (rest, others)]
    order = np.concatenate([taken, *by_value])
    nearest[order[len(taken) :]] = -1
    return Discounted(order, scores, nearest, np.where(nearest >= 0, r, np.nan))


def _take(
    columns: UnitFreeColumns,
    values: FloatArray,
    candidates: IndexArray,
    must: IndexArray,
    count: int,
) -> tuple[IndexArray, FloatArray, IndexArray, FloatArray]:
    """The columns taken, their scores; and for all columns the nearest one taken and r with it.

    A score only falls, so an old one is an upper bound. The columns with the highest bounds are
    brought up to date together, and taken until one of the others might be better.
    """
    worth = np.maximum(values, 0.0)
    bounds = np.full(len(values), -np.inf)
    bounds[candidates] = np.round(worth[candidates], 12)
    n_compared, nearest = np.zeros(len(values), dtype=np.intp), np.full(len(values), -1)
    r = np.zeros(len(values))
    taken, scores = np.empty(count, dtype=np.intp), np.empty(count)
    kept = np.empty((count, columns.n_samples))
    kept_there = np.empty_like(kept) if columns.has_gaps else None

    def compare(part: IndexArray, found: FloatArray, since: int, n_taken: int) -> None:
        # Rounding must not decide between copies: the one taken first.
        strongest = np.argmax(np.round(np.abs(found), 12), axis=1)
        found = found[np.arange(len(part)), strongest]
        is_open = np.isfinite(bounds[part])  # not taken yet
        stronger = is_open & (np.abs(found) > np.abs(r[part]) + 1e-12)
        r[part] = np.where(stronger, found, r[part])
        nearest[part] = np.where(stronger, taken[since + strongest], nearest[part])
        n_compared[part] = n_taken
        score = np.round(worth[part] * (1.0 - r[part] ** 2), 12)
        bounds[part] = np.where(is_open, score, -np.inf)

    place = 0
    while place < count:
        stale = n_compared < place
        # Of equal bounds, stale ones first, so that every round brings some up to date.
        near = np.lexsort((~stale, -bounds))[:COMPARED]
        if place < len(must):
            near = must[place : place + 1]
        near = np.sort(near)
        block, there = columns.observed(near)
        since = int(n_compared[near].min())
        if since < place:
            before = None if kept_there is None else kept_there[since:place]
            compare(near, correlate((block, there), (kept[since:place], before)), since, place)
        others = np.ones(len(bounds), dtype=bool)
        others[near] = False
        might_be = float(bounds[others & (n_compared < place)].max(initial=-np.inf))
        others_are = float(bounds[others & (n_compared == place)].max(initial=-np.inf))
        among = correlate((block, there), (block, there))
        while place < count:
            at = first_largest(bounds[near])
            best = bounds[near[at]]
            if place >= len(must) and (best <= might_be or best < others_are):
                break
            taken[place], scores[place] = near[at], best
            kept[place] = block[at]
            if kept_there is not None and there is not None:
                kept_there[place] = there[at]
            bounds[near[at]] = -np.inf
            place += 1
            if place <= len(must):
                break
            might_be = max(might_be, others_are)
            compare(near, among[:, at : at + 1], place - 1, place)
    return taken, scores, nearest, r


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
                shares = self.columns.count_observed(added) / self.columns.n_samples
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


# How sure


@dataclass(frozen=True)
class HalfSampleStability:
    """What would be kept with half of the samples. It prints as a sentence."""

    n_halves: int
    features: IndexArray
    """The kept features that vary, best first."""
    shares: FloatArray
    """For each of them, the share of halves that keep it too."""
    stand_ins: IndexArray
    """The feature that halves without it keep in its place: the one most correlated with it. -1 if
    all halves keep it."""
    correlations: FloatArray
    """With the stand-in, over all samples; NaN if there is none."""
    n_same: float
    """Kept features that a half keeps too, on average."""
    mean_correlation: float
    """Size of the correlation of the others with their stand-ins, mean over halves; NaN if all are
    the same."""

    def __str__(self) -> str:
        """As a sentence."""
        n_kept = len(self.features)
        if np.isnan(self.mean_correlation):
            return f"With half of the samples, the same {_features(n_kept)} would be kept."
        same = min(round(self.n_same), n_kept - 1)
        return (
            f"With half of the samples, {same:,} of {_features(n_kept)} would be the same; the "
            f"others have stand-ins with r = {self.mean_correlation:.2f} on average."
        )


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


@dataclass(eq=False, repr=False)
class AutoSelector(RankingSelector):
    """Choose features without labels and without settings: the selector to start with.

    It answers three questions from the table alone and says why (``summary_``, ``doubts_``):

    * Is there structure? Some features must be smoother over neighbours found without them than
      shuffled features are. Otherwise all columns are kept, with a `NoStructureWarning`.
    * Which features? Those on which neighbours agree, less what better features say already:
      ``a_j * (1 - max r_ij^2)``, with a_j = 1 minus the Laplacian score and r_ij the correlation
      with a better feature. Neither units nor copies of features matter.
    * How many? The smallest number that preserves almost as many (95 %) of the samples' nearest
      neighbours as any number tried: up to 200, or 2,000 where more preserve more. In tables of up
      to 100 features: all that carry structure, except those that say the same as a better one
      (a correlation of 0.95 or more in size); `keepers.explain` lists them.

    At most 1,000 rows are used, drawn at random from larger tables. So the time is linear in the
    number of features, and more rows only have to be read once. In tables of up to 1,000 rows, the
    order of the rows and columns and the signs of the columns change nothing, and copies of a row
    are one sample. Fewer than 10 different samples are too few to test.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None chooses the
        number. The ranking is the same: ``top(k)`` gives the best k for any k afterwards (beyond
        the largest of ``counts_`` a fit for more features discounts more).
    n_neighbors : int, default=7
        Neighbours of each sample in each of the four graphs; at most a third of the samples.
    must_keep, never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay; others are discounted for resembling them. Features that go, as in a fit
        without these columns.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None leaves it to the discount.
    missing : {"observed", "error", "mean", "median", "model"}, default="observed"
        What to do about NaN. "observed" scores every feature on its observed values; only the graph
        of the samples uses estimates. Features with gaps and fewer than 10 values come last.
        "mean", "median" and "model" fill the gaps first and treat the result as measured: features
        with many gaps then rank too high. "error" raises. ``transform`` leaves gaps as they are.
    prepare : bool, default=True
        Take data frames (pandas, polars, Arrow) and `Table` objects with text, categories or dates:
        a `TablePreparer` turns these columns into numbers for the fit, and columns that cannot be
        features, such as identifiers, come last and are never kept. Results and ``transform`` speak
        of the original columns. False raises for text.
    n_halves : int, default=4
        Halves of the samples on which the selection is repeated, to see how stable it is; 0
        switches it off. Fewer than 20 samples are not halved.
    random_state : int, RandomState or None, default=0
        Draws the rows of large tables, the shuffles for the p-values and the random sets of
        features. The default gives the same answer every time.

    Attributes
    ----------
    summary_ : str
        What to keep and what it preserves, in a few sentences.
    doubts_ : list of str
        What is uncertain, a sentence each.
    stability_ : HalfSampleStability or None
        How many of the kept features halves of the samples keep too, and which features stand in
        for the others. It prints as a sentence. None if it was not measured.
    n_enough_ : int
        The number of features that are enough; 0 if no structure was found.
    counts_, agreement_ : arrays of shape (n_counts,)
        Numbers of features that were tried, and for each the share of each sample's nearest
        neighbours that they preserve.
    random_agreement_ : array of shape (10,)
        The same for random sets of as many features as are kept.
    scores_ : array of shape (n_features,)
        Features that carry structure: smoothness after the discount, from 0 to 1. Others: minus
        their Laplacian score, which is 0 or less; -2 for constant columns. Higher is better.
    smoothness_ : array of shape (n_features,)
        Before the discount: 1 if neighbours agree exactly, about 0 for noise; NaN for constant
        columns and those never kept. More gaps than in the typical column lower it. Where few
        features carry structure and the table has one unit, an excess of variance raises it.
    carries_structure_ : boolean array of shape (n_features,)
        Features that neighbours agree on by more than chance; false discovery rate 1 %.
    p_values_ : array of shape (n_features,)
        How often a shuffled feature is as smooth, over neighbours found in other features.
    structure_found_ : bool
        Whether any feature carries structure.
    represented_by_, representation_ : arrays of shape (n_features,)
        The better ranked feature that each one resembles most, by index, and the correlation with
        it; -1 and NaN where there is none or it was not compared.
    n_missing_ : array of int of shape (n_features,)
        Missing values of every column in the rows that were looked at.
    preparer_ : TablePreparer or None
        What turned the columns into numbers; ``set_aside_`` of it are the columns that were not
        used, and why. None if all columns were numbers.
    on_features_ : AutoSelector or None
        The selector fitted to the numbers of ``preparer_``.
    mean_, var_ : arrays of shape (n_features,)
        Column means and variances (divided by n) over the rows that were looked at.
    n_samples_seen_, n_rows_used_ : int
        Rows of the table, and how many of them were looked at.
    n_passes_ : int
        How many times the table was read.
    {fitted}

    See Also
    --------
    LaplacianScore : The score alone, on one graph of the values as they are.
    SPCAFS : Row-sparse PCA, the method of the paper.
    select_settings : Compares this with other methods on your table.

    Examples
    --------
    >>> from keepers import AutoSelector, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = AutoSelector().fit(X)
    >>> X_kept = selector.transform(X)
    >>> selector.structure_found_
    True
    """

    looks_for = (
        "features on which samples that are alike agree, and ranks lower what repeats a better one"
    )
    score_means = (
        "from 0 (noise, or a repetition of a better feature) to 1 (samples that are alike "
        "agree exactly, and no better feature says the same); below 0, neighbours agree no "
        "more than chance"
    )

    parameter_rules: ClassVar = {
        "n_neighbors": whole(),
        "n_halves": whole(at_least=0),
        "missing": one_of("error", "mean", "median", "model", "observed"),
        "prepare": FLAG,
    }

    @property
    def column_power(self) -> float:
        """All columns count the same: they are standardised."""
        return 1.0

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_neighbors: int = 7
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "observed"
    prepare: bool = True
    n_halves: int = 4
    random_state: Seed = 0

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows, in one pass.

        Parameters
        ----------
        source : path, array, list, function or Dask collection
            What `SPCAFS.fit_blocks` accepts.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted selector; the same as from ``fit`` on the same numbers.
        """
        with self._fitting():
            self._fit_blocks(source)
        return self

    def _fit(self, X: Any) -> None:
        X = as_frame(X)
        if self.prepare and has_other_columns(X):
            self._fit_prepared(X)
            return
        if comes_in_blocks(table_values(X)):
            self._fit_blocks(X)
            return
        values = by_rows(validate_table(self, X))
        rows = drawn_rows(values.shape[0], MOST_ROWS, self._seed())
        self.n_passes_ = 1
        drawn = values if len(rows) == values.shape[0] else stack_rows([values[rows]])
        self._fit_rows(drawn, values.shape[0])

    def _fit_blocks(self, given: Any) -> None:
        """Draw the rows that ``fit`` would draw; all rows are checked for values not finite."""
        source = as_blocks(table_values(given))
        self.n_features_in_ = source.n_features
        names = given.names if isinstance(given, NamedValues) else source.feature_names
        if names is not None:
            names = self.feature_names_in_ = np.asarray(names, dtype=object)
        self._count_wanted(control_of(self, source.n_features))  # refused before it is read
        numbered, seed = number_rows(source), self._seed()  # may count the rows of partitions
        self.n_passes_ = 1 if numbered is source else 2
        n_samples = numbered.n_samples
        largest_key = largest_drawn_key(n_samples, MOST_ROWS, seed) if n_samples else None
        begin = partial(RowReservoir, MOST_ROWS, seed, largest_key, allow_nan=fills_gaps(self))
        try:
            drawn = numbered.total(begin)
        except NotFiniteError as error:
            raise DataError(error.with_names(names)) from error
        refuse_undeclared(numbered, drawn.n_samples)
        values = validate_table(self, drawn.rows())
        if names is not None:
            self.feature_names_in_ = names
        self._fit_rows(values, drawn.n_samples)

    def _seed(self) -> int:
        return int(self.random_generator().integers(2**63))

    def _count_wanted(self, control: FeatureControl) -> int:
        """How many features are asked for at most; an error if that cannot be."""
        if self.n_features_to_select is not None:
            return control.count_to_select(self.n_features_to_select)
        return min(FIRST_TRIED, int((~control.never).sum()))

    def _fit_rows(self, values: Any, n_samples: int) -> None:
        """Fit to the rows drawn from a table with ``n_samples`` of them."""
        self.preparer_: TablePreparer | None = None
        self.on_features_: Self | None = None
        n_rows = values.shape[0]
        which = f"the {n_rows} rows drawn of {n_samples}" if n_rows < n_samples else ""
        everything = table_of_values(self, values, which)
        self.mean_, self.var_ = everything.mean, everything.variances
        self.doubts_: list[str] = []
        self.n_missing_ = np.zeros(everything.n_features, dtype=np.intp)
        if not sp.issparse(values):
            self.n_missing_ += np.isnan(values).sum(axis=0)
        if self.missing == "observed" and self.n_missing_.any():
            everything = self._leave_out_gaps(values, everything)
        self.n_samples_seen_, self.n_rows_used_ = n_samples, n_rows
        everything = put_in_order(everything)
        if everything.n_samples < n_rows:
            self.doubts_.append(
                f"{n_rows - everything.n_samples:,} of {n_rows:,} rows are copies of others; "
                "every row was counted once."
            )
        control = control_of(self, everything.n_features)
        n_wanted = self._count_wanted(control)
        table = control.restrict(everything)
        columns = unit_free_columns(table)
        n_neighbors = cap_at_third(cap_neighbors(self.n_neighbors, n_rows), table.n_samples)
        rng = self.random_generator()
        found = measure_smoothness(columns, observed_variances(table), n_neighbors, rng)
        self.carries_structure_ = table.to_all_columns(found.carries)
        self.p_values_ = table.to_all_columns(found.p_values, fill=1.0)
        self.smoothness_ = table.to_all_columns(found.values, fill=np.nan)
        self.structure_found_ = bool(found.carries.any())
        must = np.flatnonzero(control.must[table.usable])
        take = partial(discount, columns, found.values, found.carries, must)
        agree = NeighbourAgreement(columns, found.graph.toarray(), n_neighbors).of
        ranked = self._try_counts(take, agree, int(found.carries.sum()), n_wanted)
        if columns.n_features <= WIDEST:
            ranked, self.n_enough_ = self._set_copies_back(columns, ranked, found.carries, must)
        self.scores_ = table.to_all_columns(ranked.scores, fill=-2.0)
        nearest = np.where(ranked.nearest >= 0, table.usable[ranked.nearest], -1)
        self.represented_by_ = table.to_all_columns(nearest, fill=-1)
        self.representation_ = table.to_all_columns(ranked.correlations, fill=np.nan)
        agreement = self._choose_count(agree, ranked.order, control)
        order = _all_columns(table.usable[ranked.order], everything, control)
        self._store_order(order, everything, control.must, control.never)
        self.stability_: HalfSampleStability | None = None
        if self.structure_found_:
            self.stability_ = self._halve(table, columns, found, control)
            self._describe(columns.n_features, agreement)
        else:
            self._warn_of_noise(columns)

    def _leave_out_gaps(self, values: FloatArray, filled: MemoryTable) -> TableWithGaps:
        """The filled table with its gaps marked, without columns that have too few values."""
        n_rows = len(values)
        stats = observed_columns(values.astype(np.float64, copy=False))
        self.mean_ = np.where(stats.counts > 0, stats.means, 0.0)
        self.var_ = np.where(filled.unusable, 0.0, stats.scales**2)
        table = TableWithGaps(
            filled.moments,
            filled.usable,
            self.mean_,
            filled.dtype,
            filled.X,
            ~np.isnan(values[:, filled.usable]),
        )
        fewest = fewest_observed(n_rows)
        too_few = (stats.counts < fewest) & (stats.counts > 0) & ~filled.unusable
        if not too_few.any():
            return table
        names = self._names_of_columns()
        listed = [f"{str(names[j])!r} ({stats.counts[j]})" for j in np.flatnonzero(too_few)]
        if len(listed) == len(filled.usable):
            raise DataError(
                f"At least one column that varies must have {fewest} observed values; these have "
                f"fewer: {some_of(listed)}. Fill the gaps first, or use missing='model'."
            )
        self.doubts_.append(
            f"{len(listed)} {'feature was' if len(listed) == 1 else 'features were'} not used "
            f"because fewer than {fewest} values were observed: {some_of(listed)}."
        )
        return table.restrict(np.flatnonzero(~too_few[filled.usable]))

    def _count_gaps(self) -> str:
        """A sentence about the missing values; empty if there are none."""
        if not self.n_missing_.any():
            return ""
        n_columns = int(np.sum(self.n_missing_ > 0))
        how = "only observed values were scored"
        if self.missing != "observed":
            how = f"they were filled (missing={self.missing!r})"
        return (
            f" {self.n_missing_.sum():,} values are missing "
            f"({self.n_missing_.mean() / self.n_rows_used_:.1%}), in {n_columns:,} "
            f"{'column' if n_columns == 1 else 'columns'}; {how}."
        )

    def _try_counts(
        self,
        take: Callable[..., Discounted],
        agree: Callable[..., FloatArray],
        n_carrying: int,
        n_wanted: int,
    ) -> Discounted:
        """Find how many features are enough; the columns in order, as far as that was needed."""
        self.counts_, self.agreement_ = np.empty(0, dtype=np.intp), np.empty(0)
        most, self.n_enough_ = FIRST_TRIED, 0
        ranked = take(most=max(n_wanted, most))
        while True:
            if most > max(n_wanted, FIRST_TRIED):
                ranked = take(most=most)
            last = int(self.counts_.max(initial=0))
            counts = growing_counts(min(n_carrying, most), max(last, 5))
            counts = counts[counts > last]
            found = agree(ranked.order, counts.tolist())
            self.counts_ = np.concatenate([self.counts_, counts])
            self.agreement_ = np.concatenate([self.agreement_, found])
            if n_carrying:
                self.n_enough_ = int(self._close_counts()[0])
            if 2 * self.n_enough_ <= most or most >= min(MOST_TRIED, n_carrying):
                return ranked
            most = min(2 * most, MOST_TRIED)

    def _set_copies_back(
        self, columns: UnitFreeColumns, ranked: Discounted, carries: BoolArray, must: IndexArray
    ) -> tuple[Discounted, int]:
        """Of a narrow table: copies behind the other columns with structure; how many those are."""
        everything = np.arange(columns.n_features)
        r, always = columns.between(everything, everything), np.isin(everything, must)
        walk = ranked.order[(carries | always)[ranked.order]]
        kept, copies = split_copies(walk, r, always, self.max_correlation or SAME)
        order = np.concatenate([kept, copies, ranked.order[len(walk) :]])
        nearest, with_nearest = ranked.nearest.copy(), ranked.correlations.copy()
        if len(copies):
            nearest[copies] = kept[np.argmax(np.round(np.abs(r[np.ix_(copies, kept)]), 12), axis=1)]
            with_nearest[copies] = r[copies, nearest[copies]]
        return replace(ranked, order=order, nearest=nearest, correlations=with_nearest), len(kept)

    def _choose_count(
        self, agree: Callable[..., FloatArray], order: IndexArray, control: FeatureControl
    ) -> float:
        """Choose how many features are kept; the agreement of their neighbours with the graph."""
        kept = self.n_enough_ or int((~control.never).sum())
        if self.n_features_to_select is not None:
            kept = control.count_to_select(self.n_features_to_select)
        self.n_features_to_select_ = max(kept, int(control.must.sum()))
        self.random_agreement_ = np.empty(0)
        if not self.structure_found_:
            return 0.0
        count = self.n_features_to_select_
        if count < len(order):
            rng = self.random_generator()
            sets = [order[rng.permutation(len(order))[:count]] for _ in range(N_RANDOM)]
            self.random_agreement_ = np.concatenate([agree(each, [count]) for each in sets])
        return float(agree(order, [min(count, len(order))])[0])

    def _halve(
        self,
        table: MemoryTable,
        columns: UnitFreeColumns,
        found: Smoothness,
        control: FeatureControl,
    ) -> HalfSampleStability | None:
        """What halves of the samples would keep; None if there is nothing to compare."""
        k, n_rows = self.n_features_to_select_, table.n_samples
        if not self.n_halves or n_rows < FEWEST_TO_HALVE or k >= len(table.usable):
            return None
        place = np.full(table.n_features, -1)
        place[table.usable] = np.arange(len(table.usable))
        kept = np.argsort(self.ranking_)[:k]
        kept = kept[place[kept] >= 0]
        rng = self.random_generator().spawn(1)[0]
        chosen: list[IndexArray] = []
        while len(chosen) < self.n_halves:
            rows = rng.permutation(n_rows)
            for part in (rows[: n_rows // 2], rows[n_rows // 2 :])[: self.n_halves - len(chosen)]:
                half = table_of_rows(table, np.sort(part))
                if not len(half.usable):
                    return None
                chosen.append(place[self._rank_half(half, found, control, rng)[:k]])
        return compare_halves(columns, place[kept], kept, table.usable, chosen)

    def _rank_half(
        self,
        table: MemoryTable,
        whole: Smoothness,
        control: FeatureControl,
        rng: np.random.Generator,
    ) -> IndexArray:
        """Columns of half of the samples in order; no fewer than are kept, or than are enough."""
        columns, k = unit_free_columns(table), self.n_features_to_select_
        n_neighbors = cap_at_third(self.n_neighbors, table.n_samples)
        variances = observed_variances(table)
        found = measure_smoothness(columns, variances, n_neighbors, rng, like=whole)
        must = np.flatnonzero(control.must[table.usable])
        ranked = discount(columns, found.values, found.carries, must, k)
        if columns.n_features <= WIDEST:
            ranked, n_own = self._set_copies_back(columns, ranked, found.carries, must)
            k = max(n_own, 1) if self.n_features_to_select is None else k
            return table.usable[ranked.order[:k]]
        order = table.usable[ranked.order]
        if self.max_correlation is None:
            return order
        return self._unlike_first(order, table, ~table.unusable, control.must)

    def _close_counts(self) -> IndexArray:
        """Numbers of features whose neighbours agree almost as well as those of the best."""
        return self.counts_[self.agreement_ >= ENOUGH * self.agreement_.max(initial=0.0)]

    def _describe(self, n_features: int, agreement: float) -> None:
        """Put the answer, and what speaks against it, into words."""
        doubts, drawn = self.doubts_, self.random_agreement_
        kept, n_carrying = self.n_features_to_select_, int(self.carries_structure_.sum())
        by_chance = ""
        if len(drawn):
            low, high = (f"{100 * share:.0f}" for share in (drawn.min(), drawn.max()))
            by_chance = (
                f" ({_features(kept, 'random ')}: {low if low == high else f'{low} to {high}'} %)"
            )
        self.summary_ = f"Keep {kept:,} of {_features(len(self.scores_))}."
        by_verdict = self.n_features_to_select is None and n_features <= WIDEST
        last = int(self.counts_[-1])
        if not by_verdict:  # else neighbours did not decide the number
            preserve = "It preserves" if kept == 1 else "They preserve"
            self.summary_ += (
                f" {preserve} {100 * agreement:.0f} % of each sample's nearest "
                f"neighbours{by_chance}."
            )
            rises = self.agreement_[-1] == self.agreement_.max() or 2 * self.n_enough_ > last
            if rises and kept < last < n_carrying:
                self.summary_ += f" More features preserve more; the search stopped at {last:,}."
        shows = "shows" if n_carrying == 1 else "show"
        self.summary_ += f" {_features(n_carrying)} {shows} structure beyond chance"
        if by_verdict and kept < n_carrying:
            repeat = "repeats" if n_carrying - kept == 1 else "repeat"
            self.summary_ += (
                f"; {n_carrying - kept:,} of them {repeat} a kept one (r of {SAME} or more)"
            )
        self.summary_ += "."
        self.summary_ += self._count_gaps()
        if self.stability_ is not None:
            self.summary_ += f" {self.stability_}"
        if agreement <= drawn.max(initial=-1.0) and not by_verdict:
            which = "every one of them preserves" if agreement < drawn.min() else "some preserve"
            doubts.append(
                f"By this measure the choice is no better than chance: of {len(drawn)} random sets "
                f"of {_features(kept)}, {which} as many neighbours or more."
            )
        close = self._close_counts()
        if self.n_features_to_select is None and not by_verdict and len(close) > 1:
            doubts.append(
                f"Anything from {close[0]:,} to {close[-1]:,} features works about equally well."
            )
        smallest, n_shuffled = self.p_values_.min(), n_features * count_shuffles(n_features)
        # More shuffled columns than that reach it by chance; in narrow tables, more than none.
        if smallest > max(LEVEL / 10, 1.5 / (1 + n_shuffled)):
            doubts.append(
                f"Whether there is structure is a close call (smallest p-value {smallest:.2g})."
            )
        n_without = int(np.sum(self.support_ & ~self.carries_structure_))
        if n_without:
            doubts.append(
                f"{n_without:,} of the {kept:,} kept features "
                f"{'shows' if n_without == 1 else 'show'} no structure beyond chance."
            )

    def _warn_of_noise(self, columns: UnitFreeColumns) -> None:
        found = "No structure found: these columns look like noise"
        if columns.n_samples < FEWEST_SAMPLES:
            found = (
                f"Too few samples to tell whether there is structure: {columns.n_samples} differ, "
                f"and at least {FEWEST_SAMPLES} are needed"
            )
        kept = f"all {self.n_features_to_select_:,} are kept"
        if self.n_features_to_select is not None:
            kept = "the ranking is about as good as a random one"
        self.summary_ = f"{found}; {kept}.{self._count_gaps()}"
        warn_caller(self.summary_, NoStructureWarning)

    def _fit_prepared(self, X: Any) -> None:
        """Fit to the numbers that a preparer makes of the columns of X."""
        table = table_of_object(X)
        self.n_features_in_ = len(table.columns)
        if isinstance(X, Table):
            self.feature_names_in_ = np.array(table.columns, dtype=object)
        else:
            validate_data(self, X, skip_check_array=True)  # sets the names
        preparer = TablePreparer(missing="keep" if fills_gaps(self) else "error").fit(table)
        features = preparer.prepare(table, first_row=0)
        places = {name: at for at, name in enumerate(table.columns)}
        at = np.array([places[str(name)] for name in features.names])
        control = control_of(self, self.n_features_in_)
        aside = preparer.set_aside_
        lost = {name: why for name, why in aside.items() if control.must[places[name]]}
        if lost:
            raise ParameterError(
                f"must_keep must name features; these columns are not: {listed(lost)}. Take them "
                "out, or set their kind with TablePreparer(kinds={name: 'number'}) in a pipeline."
            )
        found = type(self)(**self.get_params(deep=False))
        found.must_keep = features.names[control.must[at]].tolist() or None
        found.never_keep = features.names[control.never[at]].tolist() or None
        self._take_over(found.fit(features), at)
        self.preparer_, self.on_features_ = preparer, found
        if aside:
            were = "1 column was" if len(aside) == 1 else f"{len(aside):,} columns were"
            self.summary_ += f" {were} not used: {listed(aside)}."

    def _take_over(self, found: Self, at: IndexArray) -> None:
        """Take the results of a selector fitted to the columns ``at``; other columns come last."""

        def widen(values: Any, fill: float) -> Any:
            wide = np.full(self.n_features_in_, fill, dtype=values.dtype)
            wide[at] = values
            return wide

        def as_columns(features: IndexArray) -> IndexArray:
            return np.where(features >= 0, at[features], -1)

        for name in {*vars(found)} - {*vars(self)}:
            setattr(self, name, getattr(found, name))
        fills = {"scores_": -2.0, "p_values_": 1.0, "carries_structure_": 0, "support_": 0}
        fills |= {"smoothness_": np.nan, "representation_": np.nan, "n_missing_": 0}
        for name, fill in {**fills, "mean_": 0.0, "var_": 0.0}.items():
            setattr(self, name, widen(getattr(found, name), fill))
        self.represented_by_ = widen(as_columns(found.represented_by_), -1)
        others = np.setdiff1d(np.arange(self.n_features_in_), at)
        self.ranking_ = widen(found.ranking_, 0)
        self.ranking_[others] = np.arange(len(at), self.n_features_in_) + 1
        if found.stability_ is not None:
            features, stand_ins = found.stability_.features, found.stability_.stand_ins
            self.stability_ = replace(
                found.stability_, features=at[features], stand_ins=as_columns(stand_ins)
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = getattr(self, "preparer_", None) is not None  # columns of any type
        return tags

    def fit_notes(self) -> FitNotes:
        """What the fit has to report: its summary, doubts, and what it measured."""
        return replace(
            super().fit_notes(),
            summary=self.summary_,
            doubts=tuple(self.doubts_),
            how_sure=() if self.stability_ is None else (str(self.stability_),),
            how_many="chosen" if self.n_features_to_select is None else "asked",
            n_rows_used=self.n_rows_used_,
            n_observed=self.n_rows_used_ - self.n_missing_,
            moments=ColumnMoments(self.n_rows_used_, self.mean_, self.n_rows_used_ * self.var_),
            structure_found=self.structure_found_,
            carries_structure=self.carries_structure_,
            alone=self.smoothness_,
            nearest_better=(self.represented_by_, self.representation_),
            tried=(self.counts_, self.agreement_) if self.n_enough_ in self.counts_ else None,
            by_chance=self.random_agreement_,
            halves=self.stability_,
        )

    def _count_top(self, k: Any) -> int:
        if self.on_features_ is not None:
            return self.on_features_._count_top(k)
        return control_of(self, len(self.scores_)).count(k, "k")


def _features(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}{'feature' if count == 1 else 'features'}"


def _all_columns(
    ranked: IndexArray, everything: FittedTable, control: FeatureControl
) -> IndexArray:
    """The order of all columns: always kept, ranked, constant, never kept."""
    order = np.concatenate([ranked, np.flatnonzero(everything.unusable & ~control.never)])
    order = np.concatenate([order, np.flatnonzero(control.never)])
    return order[np.argsort(~control.must[order], kind="stable")]
