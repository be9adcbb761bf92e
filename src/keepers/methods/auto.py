"""AutoSelector: features on which neighbouring samples agree, and how many of them are enough.

Developed in this project from the Laplacian score (He, Cai and Niyogi, NIPS 2005). `auto_steps.py`
has the method, step by step. This file has the settings, reads the table and words the answer.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers._wording import some_of
from keepers.blocks.sources import as_blocks, number_rows
from keepers.exceptions import DataError, NoStructureWarning, ParameterError, warn_caller
from keepers.linalg.correlation import Correlations
from keepers.linalg.gaps import observed_columns
from keepers.linalg.ordering import distinct_rows, drawn_rows, largest_drawn_key
from keepers.linalg.scatter import ColumnMoments, by_rows, stack_rows
from keepers.linalg.sums import NotFiniteError, RowReservoir
from keepers.methods.auto_steps import (
    FEWEST_SAMPLES,
    LEVEL,
    SAME,
    WIDEST,
    Discount,
    Discounted,
    FoldGrams,
    HalfSampleStability,
    NeighbourAgreement,
    UnitFreeColumns,
    cap_at_third,
    compare_halves,
    count_shuffles,
    fewest_observed,
    first_grams,
    growing_counts,
    in_words,
    measure_smoothness,
    set_copies_back,
)
from keepers.methods.base import FitNotes, RankingSelector
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
    MemoryTable,
    fills_gaps,
    is_plain,
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
"""Largest number of rows used; from larger tables, this number is drawn at random."""
ENOUGH = 0.95
"""Share of the best neighbour agreement that counts as enough."""
FIRST_TRIED, MOST_TRIED = 200, 2000
"""Numbers of features up to the first are tried. The limit is doubled, up to the second, while more
than half of it is needed, because then the agreement still rises. The discount covers as many
columns as the largest number tried."""
N_RANDOM = 10
"""Number of random sets with which the kept features are compared."""
FEWEST_TO_HALVE = 20
"""Smallest number of samples to halve; smaller halves do not allow graphs of 7 neighbours."""


@dataclass(frozen=True)
class ComparedTable(MemoryTable):
    """A table in which two columns are compared over the rows where both have a value."""

    columns: UnitFreeColumns
    """The usable columns."""

    def correlations(self, order: IndexArray) -> Correlations:
        """Correlations of the usable columns."""
        return self.columns


@dataclass(eq=False, repr=False)
class AutoSelector(RankingSelector):
    """Choose features without labels and without settings: the selector to start with.

    It answers three questions from the table alone and explains its answers (``summary_``,
    ``doubts_``):

    * Is there structure? It tests whether any feature takes more similar values in similar samples
      than a shuffled feature would. If none does, all columns are kept, with a
      `NoStructureWarning`.
    * Which features? Those that take similar values in similar samples. A feature that resembles
      a better one ranks lower: its score is ``a_j * (1 - max r_ij^2)``, where a_j is 1 minus the
      Laplacian score and r_ij the correlation with a better feature. Units do not matter.
    * How many? The smallest number that preserves 95 % as many of the samples' nearest neighbours
      as the best number tried. It tries up to 200 features, and up to 2,000 if more features
      preserve more. Tables of up to 100 features keep every feature that carries structure, except
      those with an absolute correlation of 0.95 or more with a better one; `keepers.explain` lists
      the reasons.

    At most 1,000 rows are used, drawn at random from larger tables. The time is therefore linear
    in the number of features, and further rows only have to be read once. In tables of up to 1,000
    rows, the order of rows and columns and the signs of columns do not change the result, and
    copies of a row count as one sample. The test needs at least 10 different samples.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        Number of features to keep, or share of those not in ``never_keep``; None chooses the
        number. The ranking does not depend on it, so ``top(k)`` gives the best k for any k. (Beyond
        the largest of ``counts_``, only a fit for that number discounts similar features.)
    n_neighbors : int, default=7
        Neighbours of each sample in each of the four graphs; at most a third of the samples.
    must_keep, never_keep : sequence of names or indices, boolean mask or None, default=None
        Features to keep always, and features never to keep. Others rank lower if they resemble a
        feature of ``must_keep``. ``never_keep`` removes its columns before the fit.
    max_correlation : float in (0, 1] or None, default=None
        Features whose absolute correlation with a better one exceeds this rank after all others.
        None relies on the discount alone.
    missing : {"observed", "error", "mean", "median", "model"}, default="observed"
        What to do about NaN. "observed" scores every feature on its observed values; only the graph
        of the samples uses estimates. Features with gaps and fewer than 10 values come last.
        "mean", "median" and "model" fill the gaps first and treat the result as measured, so
        features with many gaps rank too high. "error" raises. ``transform`` does not fill gaps.
    prepare : bool, default=True
        Accept data frames (pandas, polars, Arrow) and `Table` objects with text, categories or
        dates. A `TablePreparer` turns these columns into numbers for the fit; columns that cannot
        be features, such as identifiers, rank last and are never kept. Results and ``transform``
        refer to the original columns. False raises an error for text.
    n_halves : int, default=4
        Number of random halves of the samples on which the selection is repeated, to measure how
        stable it is; 0 skips this. Tables with fewer than 20 samples are not halved.
    random_state : int, RandomState or None, default=0
        Seeds the draw of rows from large tables, the shuffles for the p-values and the random sets
        of features. The default gives the same answer every time.

    Attributes
    ----------
    summary_ : str
        How many features to keep and what they preserve, in a few sentences.
    doubts_ : list of str
        What is uncertain, one sentence each.
    stability_ : HalfSampleStability or None
        How many of the kept features come back with half of the samples, and which features replace
        the others. It prints as a sentence. None if it was not measured.
    n_enough_ : int
        The number of features that are enough; 0 if no structure was found.
    counts_, agreement_ : arrays of shape (n_counts,)
        The numbers of features that were tried, and the share of each sample's nearest neighbours
        that each preserves.
    random_agreement_ : array of shape (10,)
        The same share for ten random sets of the size that is kept.
    scores_ : array of shape (n_features,)
        Higher is better. For features that carry structure, the smoothness after the discount, from
        0 to 1. For others, minus the Laplacian score, which is 0 or less; -2 for constant columns.
    smoothness_ : array of shape (n_features,)
        The smoothness before the discount: 1 if neighbours have the same value, about 0 for noise;
        NaN for constant columns and those never kept. More gaps than usual lower it. If few
        features carry structure and the table has one unit, excess variance raises it.
    carries_structure_ : boolean array of shape (n_features,)
        Features on which neighbours agree more than chance explains; false discovery rate 1 %.
    p_values_ : array of shape (n_features,)
        How often a shuffled feature is as smooth, with neighbours found in other features.
    structure_found_ : bool
        Whether any feature carries structure.
    few_carry_ : bool or None
        True if so few features carry structure that columns were weighted by the evidence for
        them; None if none do.
    represented_by_, representation_ : arrays of shape (n_features,)
        Index of the better feature that each one resembles most, and the correlation with it; -1
        and NaN if there is none or it was not compared.
    n_missing_ : array of int of shape (n_features,)
        Number of missing values of each column, in the rows used.
    preparer_ : TablePreparer or None
        The transformer that turned the columns into numbers; its ``set_aside_`` lists the columns
        that were not used, and why. None if all columns were numbers.
    on_features_ : AutoSelector or None
        The selector fitted to the numbers of ``preparer_``.
    mean_, var_ : arrays of shape (n_features,)
        Column means and variances (divided by n) over the rows used.
    n_samples_seen_, n_rows_used_ : int
        Number of rows of the table, and of those used.
    n_passes_ : int
        How many times the table was read.
    {fitted}

    See Also
    --------
    LaplacianScore : The score without the other steps, on one graph of the values as they are.
    SPCAFS : Row-sparse PCA, the method of the paper.
    select_settings : Chooses the settings of SPCAFS without labels.

    Examples
    --------
    >>> from keepers import AutoSelector, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = AutoSelector().fit(X)
    >>> X_kept = selector.transform(X)
    >>> selector.structure_found_
    True
    """

    looks_for = "features that take similar values in similar samples, and ranks near-copies lower"
    score_means = (
        "from 0 (noise, or a copy of a better feature) to 1 (similar samples agree exactly, and "
        "no better feature is like it); below 0, neighbours agree no more than by chance"
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
        if not is_plain(X):
            X = as_frame(X)
            if self.prepare and has_other_columns(X):
                self._fit_prepared(X)
                return
            if comes_in_blocks(table_values(X)):
                self._fit_blocks(X)
                return
        self.n_passes_ = 1
        self._fit_rows(*self._draw_rows(X))

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
        """The largest number of features to keep; an error if that cannot be."""
        if self.n_features_to_select is not None:
            return control.count_to_select(self.n_features_to_select)
        return min(FIRST_TRIED, int((~control.never).sum()))

    def fit_half(self, X: Any, whole: Any) -> Self:
        """Rank the features by half of the samples, and keep as many as the fit to all samples.

        That fit, ``whole``, has found whether there is structure; the ranking is not described.
        """
        with self._fitting():
            table, control = self._read_rows(*self._draw_rows(X))
            self.n_features_to_select_ = min(whole.n_features_to_select_, table.n_features)
            rng = self.random_generator()
            grams = first_grams(table.columns, rng)
            order, _ = self._rank_half(table, grams, rng, whole.few_carry_, control)
            self._store_columns(order, table, control)
        return self

    def _draw_rows(self, X: Any) -> tuple[Any, int]:
        """The rows to look at, and the number of rows of X."""
        values = by_rows(validate_table(self, X))
        rows = drawn_rows(values.shape[0], MOST_ROWS, self._seed())
        drawn = values if len(rows) == values.shape[0] else stack_rows([values[rows]])
        return drawn, values.shape[0]

    def _fit_rows(self, values: Any, n_samples: int) -> None:
        """Fit to the rows drawn from a table with ``n_samples`` of them."""
        self.preparer_: TablePreparer | None = None
        self.on_features_: Self | None = None
        table, control = self._read_rows(values, n_samples)
        n_wanted = self._count_wanted(control)
        columns, must = table.columns, np.flatnonzero(control.must[table.usable])
        n_neighbors = cap_neighbors(self.n_neighbors, self.n_rows_used_)
        n_neighbors = cap_at_third(n_neighbors, columns.n_samples)
        rng = self.random_generator()
        grams = first_grams(columns, rng)
        found = measure_smoothness(columns, grams, n_neighbors, rng)
        self.carries_structure_ = table.to_all_columns(found.carries)
        self.p_values_ = table.to_all_columns(found.p_values, fill=1.0)
        self.smoothness_ = table.to_all_columns(found.values, fill=np.nan)
        self.structure_found_ = bool(found.carries.any())
        self.few_carry_ = found.weighted if self.structure_found_ else None
        agreement = NeighbourAgreement(columns, found.graph.toarray(), n_neighbors)
        discount = Discount(columns, found.values, found.carries, must)
        ranked = self._try_counts(discount, agreement, int(found.carries.sum()), n_wanted)
        if columns.n_features <= WIDEST:
            limit = self.max_correlation or SAME
            ranked, self.n_enough_ = set_copies_back(columns, ranked, must, limit)
        self.scores_ = table.to_all_columns(ranked.scores, fill=-2.0)
        nearest = np.where(ranked.nearest >= 0, table.usable[ranked.nearest], -1)
        self.represented_by_ = table.to_all_columns(nearest, fill=-1)
        self.representation_ = table.to_all_columns(ranked.correlations, fill=np.nan)
        preserved = self._choose_count(agreement, ranked.order, control)
        self._store_columns(table.usable[ranked.order], table, control)
        self.stability_: HalfSampleStability | None = None
        if self.structure_found_:
            self.stability_ = self._halve(table, grams, control)
            self._describe(columns.n_features, preserved)
        else:
            self._warn_of_noise(columns)

    def _read_rows(self, values: Any, n_samples: int) -> tuple[ComparedTable, FeatureControl]:
        """The columns to choose from, over the rows drawn from ``n_samples``."""
        n_rows = values.shape[0]
        which = f"the {n_rows} rows drawn of {n_samples}" if n_rows < n_samples else ""
        everything = table_of_values(self, values, which)
        self.mean_, self.var_ = everything.mean, everything.variances
        self.n_samples_seen_, self.n_rows_used_ = n_samples, n_rows
        self.doubts_: list[str] = []
        self.n_missing_ = np.zeros(everything.n_features, dtype=np.intp)
        if not sp.issparse(values):
            self.n_missing_ += np.isnan(values).sum(axis=0)
        observed = None
        if self.missing == "observed" and self.n_missing_.any():
            everything, observed = self._leave_out_gaps(values, everything), ~np.isnan(values)
        control = control_of(self, everything.n_features)
        return self._order_samples(everything, observed, control), control

    def _store_columns(
        self, order: IndexArray, table: ComparedTable, control: FeatureControl
    ) -> None:
        """Rank the columns to choose from in their order, all others behind them."""
        constant, never = table.unusable & ~control.never, np.flatnonzero(control.never)
        order = np.concatenate([order, np.flatnonzero(constant), never])
        order = order[np.argsort(~control.must[order], kind="stable")]
        self._store_order(order, table, control.must, control.never)

    def _leave_out_gaps(self, values: FloatArray, filled: MemoryTable) -> MemoryTable:
        """The filled table without columns that have too few values."""
        stats = observed_columns(values.astype(np.float64, copy=False))
        self.mean_ = np.where(stats.counts > 0, stats.means, 0.0)
        self.var_ = np.where(filled.unusable, 0.0, stats.scales**2)
        fewest = fewest_observed(len(values))
        enough = stats.counts[filled.usable] >= fewest
        names = self._names_of_columns()
        few = [f"{str(names[j])!r} ({stats.counts[j]})" for j in filled.usable[~enough]]
        if not enough.any():
            raise DataError(
                f"At least one column that varies must have {fewest} observed values; these have "
                f"fewer: {some_of(few)}. Fill the gaps first, or use missing='model'."
            )
        if few:
            were = "feature was" if len(few) == 1 else "features were"
            where = " in the rows drawn" if len(values) < self.n_samples_seen_ else ""
            self.doubts_.append(
                f"{len(few)} {were} not used because fewer than {fewest} values were "
                f"observed{where}: {some_of(few)}."
            )
        return filled.restrict(np.flatnonzero(enough))

    def _order_samples(
        self, everything: MemoryTable, observed: BoolArray | None, control: FeatureControl
    ) -> ComparedTable:
        """The columns to choose from, over different samples in an order that does not depend on
        the order of the table.
        """
        table = control.restrict(everything)
        X, of_everything, there = everything.in_double(), None, None
        if observed is not None:
            of_everything, there = observed[:, everything.usable], observed[:, table.usable]
        rows = distinct_rows(X, everything.moments, of_everything)
        make = partial(UnitFreeColumns.of_table, table.in_double(), table.moments, there)
        if len(rows) == X.shape[0]:
            return ComparedTable(**vars(table), columns=make(rows))
        self.doubts_.append(
            f"{X.shape[0] - len(rows):,} of {X.shape[0]:,} rows are copies of others; each set of "
            "copies counts as one row."
        )
        columns, kept = make().of_samples(rows)
        return ComparedTable(**vars(table.restrict(kept)), columns=columns)

    def _try_counts(
        self, discount: Discount, agreement: NeighbourAgreement, n_carrying: int, n_wanted: int
    ) -> Discounted:
        """Find how many features are enough; the columns in order, as far as that was needed."""
        self.counts_, self.agreement_ = np.empty(0, dtype=np.intp), np.empty(0)
        most, self.n_enough_ = FIRST_TRIED, 0
        while True:
            ranked = discount.ranking(max(n_wanted, most))
            last = int(self.counts_.max(initial=0))
            counts = growing_counts(min(n_carrying, most), max(last, 5))
            counts = counts[counts > last]
            found = agreement.of(ranked.order, counts.tolist())
            self.counts_ = np.concatenate([self.counts_, counts])
            self.agreement_ = np.concatenate([self.agreement_, found])
            if n_carrying:
                self.n_enough_ = int(self._close_counts()[0])
            if 2 * self.n_enough_ <= most or most >= min(MOST_TRIED, n_carrying):
                return ranked
            most = min(2 * most, MOST_TRIED)

    def _choose_count(
        self, agreement: NeighbourAgreement, order: IndexArray, control: FeatureControl
    ) -> float:
        """Choose how many features are kept; the agreement of their neighbours with the graph."""
        kept = self.n_enough_ or int((~control.never).sum())
        if self.n_features_to_select is not None:
            kept = control.count_to_select(self.n_features_to_select)
        self.n_features_to_select_ = count = max(kept, int(control.must.sum()))
        self.random_agreement_ = np.empty(0)
        if not self.structure_found_:
            return 0.0
        if count < len(order):
            rng = self.random_generator()
            sets = [order[rng.permutation(len(order))[:count]] for _ in range(N_RANDOM)]
            self.random_agreement_ = np.concatenate([agreement.of(each, [count]) for each in sets])
        return float(agreement.of(order, [min(count, len(order))])[0])

    def _halve(
        self, table: ComparedTable, grams: FoldGrams, control: FeatureControl
    ) -> HalfSampleStability | None:
        """The choices from halves of the samples; None if there is nothing to compare."""
        k, n_rows = self.n_features_to_select_, table.columns.n_samples
        if not self.n_halves or n_rows < FEWEST_TO_HALVE or k >= len(table.usable):
            return None
        rng = self.random_generator().spawn(1)[0]
        chosen: list[IndexArray] = []
        while len(chosen) < self.n_halves:
            rows = rng.permutation(n_rows)
            for part in (rows[: n_rows // 2], rows[n_rows // 2 :])[: self.n_halves - len(chosen)]:
                samples = np.sort(part)
                columns, kept = table.columns.of_samples(samples)
                if not len(kept):
                    return None
                half = replace(table, columns=columns, usable=table.usable[kept])
                of_half = grams.of_samples(samples, kept, columns.shares)
                order, n_kept = self._rank_half(half, of_half, rng, self.few_carry_, control)
                if self.max_correlation is not None:
                    order = self._unlike_first(order, half, ~half.unusable, control.must)
                chosen.append(order[:n_kept])
        place = np.full(table.n_features, -1)
        place[table.usable] = np.arange(len(table.usable))
        best = np.argsort(self.ranking_)[:k]
        best = best[place[best] >= 0]
        chosen = [place[each] for each in chosen]
        return compare_halves(table.columns, place[best], best, table.usable, chosen)

    def _rank_half(
        self,
        half: ComparedTable,
        grams: FoldGrams,
        rng: np.random.Generator,
        few_carry: bool | None,
        control: FeatureControl,
    ) -> tuple[IndexArray, int]:
        """Columns of half of the samples in order; how many are kept, at most those enough."""
        columns, k = half.columns, self.n_features_to_select_
        n_neighbors = cap_at_third(self.n_neighbors, columns.n_samples)
        found = measure_smoothness(columns, grams, n_neighbors, rng, few_carry)
        must = np.flatnonzero(control.must[half.usable])
        ranked = Discount(columns, found.values, found.carries, must).ranking(k)
        if columns.n_features <= WIDEST:
            ranked, n_own = set_copies_back(columns, ranked, must, self.max_correlation or SAME)
            if self.n_features_to_select is None:
                k = min(k, max(n_own, 1))
        return half.usable[ranked.order], k

    def _count_gaps(self) -> str:
        """A sentence about the missing values; empty if there are none."""
        if not self.n_missing_.any():
            return ""
        n_columns, n_rows = int(np.sum(self.n_missing_ > 0)), self.n_rows_used_
        values = "1 value is" if (n := self.n_missing_.sum()) == 1 else f"{n:,} values are"
        drawn = f"In the {n_rows:,} rows drawn, " if n_rows < self.n_samples_seen_ else ""
        how = "only observed values were scored"
        if self.missing != "observed":
            how = f"they were filled (missing={self.missing!r})"
        columns = "1 column" if n_columns == 1 else f"{n_columns:,} columns"
        share = self.n_missing_.mean() / n_rows
        return f" {drawn}{values} missing ({share:.1%}), in {columns}; {how}."

    def _close_counts(self) -> IndexArray:
        """Numbers of features whose neighbours agree almost as well as those of the best."""
        return self.counts_[self.agreement_ >= ENOUGH * self.agreement_.max(initial=0.0)]

    def _describe(self, n_features: int, agreement: float) -> None:
        """Put the answer, and the doubts about it, into words."""
        doubts, drawn = self.doubts_, self.random_agreement_
        kept, n_carrying = self.n_features_to_select_, int(self.carries_structure_.sum())
        ends = (drawn.min(), drawn.max()) if len(drawn) else ()
        shares = " to ".join(dict.fromkeys(f"{100 * share:.0f}" for share in ends))
        by_chance = f" ({in_words(kept, 'random ')}: {shares} %)" if shares else ""
        self.summary_ = f"Keep {kept:,} of {in_words(len(self.scores_))}."
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
                at = f"{last:,} ({100 * self.agreement_[-1]:.0f} %)"
                self.summary_ += f" More features preserve more; the search stopped at {at}."
        shows = "shows" if n_carrying == 1 else "show"
        self.summary_ += f" {in_words(n_carrying)} {shows} structure beyond chance"
        if by_verdict and kept < n_carrying:
            repeat = "repeats" if n_carrying - kept == 1 else "repeat"
            self.summary_ += (
                f"; {n_carrying - kept:,} of them {repeat} a kept one (r of {SAME} or more)"
            )
        self.summary_ += f".{self._count_gaps()}"
        if self.stability_ is not None:
            self.summary_ += f" {self.stability_}"
        if agreement <= drawn.max(initial=-1.0) and not by_verdict:
            which = "every one of them preserves" if agreement < drawn.min() else "some preserve"
            doubts.append(
                f"By this measure the choice is no better than chance: of {len(drawn)} random sets "
                f"of {in_words(kept)}, {which} as many neighbours or more."
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
                f"Too few samples to test for structure: {columns.n_samples} are different, and at "
                f"least {FEWEST_SAMPLES} are needed"
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
        fills = {"scores_": -2.0, "p_values_": 1.0, "smoothness_": np.nan}
        fills |= {"representation_": np.nan, "represented_by_": -1}
        for name in (*fills, "carries_structure_", "support_", "n_missing_", "mean_", "var_"):
            setattr(self, name, widen(getattr(found, name), fills.get(name, 0)))
        self.represented_by_ = as_columns(self.represented_by_)
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
        """Report the fit: summary, doubts and measurements."""
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
