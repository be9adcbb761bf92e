"""Smoothness over denoised neighbours, redundancy discounted, as a scikit-learn selector."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.data.blocks.as_blocks import as_blocks
from keepers.data.in_memory import comes_in_blocks
from keepers.data.table import NamedValues
from keepers.exceptions import NoStructureWarning, warn_caller
from keepers.linalg.unit_free import UnitFreeColumns
from keepers.selectors.control import FeatureControl, check_control, read_control
from keepers.selectors.drawn_tables import DrawnTable, draw_from_blocks, draw_from_memory
from keepers.selectors.fitted_table import FittedTable, table_values
from keepers.selectors.parameters import FeatureCount, Seed, cap_neighbors, check_count
from keepers.selectors.ranking import RankingSelector
from keepers.solvers.denoised_laplacian import Smoothness, measure_smoothness, take_greedily

MOST_ROWS = 1000
"""Rows that are looked at; larger tables are represented by so many, drawn at random."""
# Features up to this rank are compared with all the better ones, and all that are asked for.
FEWEST_TAKEN = 200
# The score of columns that do not vary: below minus any Laplacian score.
WORST = -2.0


@dataclass(eq=False, repr=False)
class DenoisedLaplacian(RankingSelector):
    """Unsupervised feature selection by agreement of neighbours, without units and copies.

    Finds the neighbours of every sample in the principal components that stand out from noise, the
    strong ones turned down, prefers features on which neighbours agree, and discounts what better
    features already say::

        score of j = a_j * (1 - max over better kept i of r_ij^2),   a_j = 1 - LS_j,

    with LS the Laplacian score (He, Cai and Niyogi, NIPS 2005) over the sum of four neighbour
    graphs: of the features at the same variance and of their ranks, each with its components
    half-whitened and whitened. Features that carry structure come before all others: those
    that are smoother over neighbours found without them than shuffled features are. Needs no
    number of clusters and no penalty, and does not depend on the units of the features.

    At most 1000 rows are looked at, drawn at random from larger tables: the cost is linear in the
    number of features, and flat in the number of samples but for reading them once.

    Parameters
    ----------
    n_features_to_select : int, float in (0, 1] or None, default=None
        How many features to keep, or which share of those not in ``never_keep``; None keeps half.
        It does not influence the ranking: ``top(k)`` gives the best k for any k afterwards (beyond
        rank 200 a fit for more features discounts more).
    n_neighbors : int, default=7
        Neighbours of each sample in each of the four graphs.
    must_keep : sequence of names or indices, boolean mask or None, default=None
        Features that stay; others are discounted for resembling them.
    never_keep : sequence of names or indices, boolean mask or None, default=None
        Features that go: the same as a fit without these columns.
    max_correlation : float in (0, 1] or None, default=None
        Features whose correlation with a better one exceeds this, in size, are ranked behind all
        others. None leaves it to the discount.
    missing : {"error", "mean", "median", "model"}, default="error"
        What to do about NaN: refuse it, or fill the gaps of the rows that are looked at, with the
        mean or the median of the column, or from the other columns ("model", the best of them on
        average: a few components fitted to the values that are there; see the page "Missing
        values"). Columns without any value are set aside like constant ones. ``transform`` leaves
        gaps as they are.
    random_state : int, RandomState or None, default=0
        Draws the rows of large tables, and shuffles them for the p-values. The default gives the
        same answer for the same table every time.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Features that carry structure: smoothness after the discount, from 0 to 1. Others: minus
        their Laplacian score, which is 0 or less; -2 for constant columns. Higher is better.
    smoothness_ : array of shape (n_features,)
        Before the discount: 1 if neighbours agree exactly, about 0 for noise; NaN for constant
        columns and those never kept. Where few features carry structure and the table has one
        unit, it includes what an excess of variance is worth as evidence.
    carries_structure_ : boolean array of shape (n_features,)
        Features that neighbours agree on by more than chance; false discovery rate 1 %.
    p_values_ : array of shape (n_features,)
        How often a shuffled feature is as smooth, over neighbours found in other features.
    structure_found_ : bool
        Whether any feature carries structure. If not, a `NoStructureWarning` says so.
    represented_by_ : array of shape (n_features,)
        The better ranked feature that each of the first features resembles most, by index; -1
        where there is none or it was not compared.
    representation_ : array of shape (n_features,)
        The correlation with it; NaN where there is none.
    ranking_ : array of shape (n_features,)
        1 is the best feature. Ties go by variance, then by index; constant columns come last.
    support_ : boolean array of shape (n_features,)
        The features kept.
    n_features_to_select_ : int
        How many features are kept.
    mean_ : array of shape (n_features,)
        Column means over the rows that were looked at.
    var_ : array of shape (n_features,)
        Column variances over these rows, divided by their number; 0 for constant columns.
    n_samples_seen_ : int
        Rows of the table.
    n_rows_used_ : int
        Rows that were looked at.
    n_passes_ : int
        How many times the table was read.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    AutoSelector : The same ranking; also chooses how many features to keep, and says why.
    LaplacianScore : The score alone, on one graph of the values as they are.

    Examples
    --------
    >>> from keepers import DenoisedLaplacian, datasets
    >>> X, names, y = datasets.load("srbct")
    >>> selector = DenoisedLaplacian(50).fit(X)
    >>> selector.transform(X).shape
    (83, 50)
    >>> selector.structure_found_
    True
    """

    n_features_to_select: FeatureCount = None
    _: KW_ONLY
    n_neighbors: int = 7
    must_keep: Any = None
    never_keep: Any = None
    max_correlation: float | None = None
    missing: str = "error"
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        super().check_parameters()
        check_count("n_neighbors", self.n_neighbors)
        check_control(must_keep=self.must_keep, never_keep=self.never_keep)

    def fit_blocks(self, source: Any, y: Any = None) -> Self:
        """Rank the features of a table that is read in blocks of rows, in one pass.

        Parameters
        ----------
        source : path, array, list, function, iterator, Dask collection or block table
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
        if comes_in_blocks(table_values(X)):
            self._fit_blocks(X)
        else:
            self._fit_drawn(draw_from_memory(self, X, MOST_ROWS, self._seed()))

    def _fit_blocks(self, given: Any) -> None:
        source = as_blocks(table_values(given))
        if isinstance(given, NamedValues):
            self.feature_names_in_ = given.feature_names
        self._check_count(self._read_control(source.n_features))
        self._fit_drawn(draw_from_blocks(self, source, MOST_ROWS, self._seed()))

    def _seed(self) -> int:
        return int(self.random_generator().integers(2**63))

    def _check_count(self, control: FeatureControl) -> int:
        """How many features are asked for at most; an error if that cannot be."""
        return control.count_to_select(self.n_features_to_select)

    def _read_control(self, n_features: int) -> FeatureControl:
        names = getattr(self, "feature_names_in_", None)
        return read_control(n_features, names, must_keep=self.must_keep, never_keep=self.never_keep)

    def _fit_drawn(self, drawn: DrawnTable) -> None:
        everything = drawn.table
        control = self._read_control(everything.n_features)
        n_wanted = self._check_count(control)
        table = control.restrict(everything)
        columns = UnitFreeColumns(table.in_double(), table.moments)
        n_neighbors = cap_neighbors(self.n_neighbors, table.n_samples)
        found = measure_smoothness(
            columns, table.moments.variance, n_neighbors, self.random_generator()
        )
        self.carries_structure_ = table.to_all_columns(found.carries)
        self.p_values_ = table.to_all_columns(found.p_values, fill=1.0)
        self.smoothness_ = table.to_all_columns(found.values, fill=np.nan)
        self.structure_found_ = bool(found.carries.any())
        self.mean_, self.var_ = everything.mean, everything.variances
        self.n_samples_seen_ = drawn.n_samples
        self.n_rows_used_ = len(drawn.rows)
        self.n_passes_ = drawn.n_passes
        must = np.flatnonzero(control.must[table.usable])
        ranked = _rank(columns, found, must, max(n_wanted, FEWEST_TAKEN))
        self.n_features_to_select_ = self._count_to_keep(columns, found, ranked.order, control)
        self.scores_ = table.to_all_columns(ranked.scores, fill=WORST)
        self.represented_by_ = table.to_all_columns(
            np.where(ranked.nearest >= 0, table.usable[ranked.nearest], -1), fill=-1
        )
        self.representation_ = table.to_all_columns(ranked.correlations, fill=np.nan)
        order = _all_columns(table.usable[ranked.order], everything, control)
        self._store_order(order, everything, control.must, control.never)
        self._conclude()

    def _count_to_keep(
        self,
        columns: UnitFreeColumns,
        found: Smoothness,
        order: IndexArray,
        control: FeatureControl,
    ) -> int:
        """How many features are kept."""
        return control.count_to_select(self.n_features_to_select)

    def _conclude(self) -> None:
        """Say what the ranking does not show."""
        if not self.structure_found_:
            warn_caller(
                "No structure found: on no feature do neighbouring samples agree by more than "
                "chance. The ranking is about as good as a random one.",
                NoStructureWarning,
            )

    def _count_top(self, k: Any) -> int:
        return self._read_control(len(self.scores_)).count(k, "k")


@dataclass(frozen=True)
class _Ranked:
    """The usable columns in order, with what there is to say about each of them."""

    order: IndexArray
    scores: FloatArray
    nearest: IndexArray
    """The better column that each resembles most; -1 if there is none or it was not compared."""
    correlations: FloatArray


def _rank(columns: UnitFreeColumns, found: Smoothness, must: IndexArray, depth: int) -> _Ranked:
    """Columns that must stay and those that carry structure, greedily; then the others."""
    values = found.values
    candidates = np.union1d(np.flatnonzero(found.carries), must)
    taken = take_greedily(
        values[candidates],
        lambda part: columns.standardised(candidates[part]),
        depth,
        np.searchsorted(candidates, must),
    )
    first = candidates[taken.order]
    nearest = np.full(len(values), -1)
    correlations = np.full(len(values), np.nan)
    near = taken.nearest >= 0
    nearest[first[near]] = candidates[taken.nearest[near]]
    correlations[first[near]] = taken.correlations[near]
    scores = np.minimum(values, 1.0) - 1.0
    scores[first] = taken.scores
    rest = np.setdiff1d(candidates, first)
    if len(rest):  # not compared with all the better ones: below the last that was, by smoothness
        highest = max(float(values[rest].max()), np.finfo(float).tiny)
        scores[rest] = float(taken.scores[-1]) * np.maximum(values[rest], 0.0) / highest
    others = np.setdiff1d(np.arange(len(values)), candidates)
    by_value = [
        part[np.argsort(-np.round(values[part], 9), kind="stable")] for part in (rest, others)
    ]
    return _Ranked(np.concatenate([first, *by_value]), scores, nearest, correlations)


def _all_columns(
    ranked: IndexArray, everything: FittedTable, control: FeatureControl
) -> IndexArray:
    """The order of all columns: always kept, ranked, constant, never kept."""
    must = control.must[ranked]
    constant = everything.unusable & ~control.never
    rest = [np.flatnonzero(constant & control.must), ranked[~must]]
    last = [np.flatnonzero(constant & ~control.must), np.flatnonzero(control.never)]
    return np.concatenate([ranked[must], *rest, *last])
