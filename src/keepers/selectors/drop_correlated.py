"""Of columns that repeat each other one is kept."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from keepers._protocols import FloatArray, IndexArray
from keepers._tables import as_frame
from keepers.exceptions import DataError, ParameterError, shorten
from keepers.linalg.correlation import (
    ColumnCorrelations,
    Correlations,
    PairwiseCorrelations,
    UnitColumnCorrelations,
    walk_ranking,
)
from keepers.linalg.gaps import observed_columns
from keepers.linalg.moments import ColumnMoments, column_moments
from keepers.linalg.ordering import best_first
from keepers.selectors.fitted_table import named_table, refuse_unrepresentable, validate_table
from keepers.selectors.parameters import check_choice, check_count, check_positive
from keepers.selectors.ranking import ColumnSelector

Representative = Literal["variance", "gaps", "score"]
REPRESENTATIVES: tuple[Representative, ...] = ("variance", "gaps", "score")


@dataclass(eq=False, repr=False)
class DropCorrelated(ColumnSelector):
    """Drop columns that correlate too much with a better one.

    The columns are gone through from best to worst, as ``representative`` says. A column is dropped
    if its correlation with a column already kept exceeds ``threshold`` in size, whichever its sign.
    What is kept does not depend on the order of the columns in the table, except between those that
    are equally good: then the first of them comes first.

    Columns without variation correlate with nothing and stay, as do columns without values; see
    `DropUninformative`. Gaps (NaN) may stay as well: a correlation is that of the rows in which
    both columns have a value.

    Parameters
    ----------
    threshold : float in (0, 1], default=0.95
        Absolute correlation above which the worse of two columns is dropped; 1 drops nothing.
    representative : {"variance", "gaps", "score"}, default="variance"
        Which column is the better one: that of the larger variance, with fewer gaps, or with the
        higher of your ``scores``. Ties go by variance, then to the first.
    scores : array of shape (n_features,) or None, default=None
        A number for every column, higher is better; for representative="score".
    method : {"pearson", "spearman"}, default="pearson"
        The correlation of the values or of their ranks; of ranks only without gaps, and not of a
        sparse matrix.
    min_rows : int, default=3
        Columns with fewer common rows are not compared. From two rows the correlation is always 1
        or -1; with many gaps, ask for more.

    Attributes
    ----------
    kept_instead_ : dict of str to (str, float)
        For each dropped column, best first, the kept one that it is most like among those better
        than itself, and their correlation. Columns without names are x0, x1, ...
    support_ : boolean array of shape (n_features,)
        The columns kept.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    prune_redundant : The same for a ranking that you have.
    DropUninformative : Drops constant columns, identifiers and columns of gaps.

    Notes
    -----
    The columns are compared in blocks: memory grows with the table, not with the square of its
    number of columns. In the worst case, where nothing is dropped, every pair is compared once.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import DropCorrelated
    >>> rng = np.random.default_rng(0)
    >>> length, width = rng.normal(size=(2, 50))
    >>> X = np.column_stack([length, width, 2.54 * length])
    >>> step = DropCorrelated(0.9).fit(X)
    >>> step.transform(X).shape
    (50, 2)
    >>> for name, (kept, r) in step.kept_instead_.items():
    ...     print(f"{name}: {kept} was kept, r = {r:.2f}")
    x0: x2 was kept, r = 1.00
    """

    threshold: float = 0.95
    _: KW_ONLY
    representative: Representative = "variance"
    scores: ArrayLike | None = None
    method: Literal["pearson", "spearman"] = "pearson"
    min_rows: int = 3

    why_not_dask = "it compares columns of a table in memory."

    @property
    def why_not_sparse(self) -> str | None:
        """Ranks of a sparse matrix are not sparse."""
        if self.method == "pearson":
            return None
        return "method='spearman' ranks all rows, and only method='pearson' leaves zeros out."

    def __sklearn_tags__(self) -> Tags:
        """Gaps and sparse matrices are welcome for Pearson's correlation."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = self.method == "pearson"
        return tags

    def check_parameters(self) -> None:
        """Refuse settings outside their rules, without looking at data."""
        check_positive("threshold", self.threshold, at_most=1.0)
        check_choice("representative", self.representative, REPRESENTATIVES)
        check_choice("method", self.method, ("pearson", "spearman"))
        check_count("min_rows", self.min_rows, at_least=3, hint="Two rows always correlate.")
        if (self.representative == "score") == (self.scores is None):
            found = "None" if self.scores is None else f"scores and {self.representative!r}"
            raise ParameterError(
                f"scores and representative='score' go together; got {found}. Give both, or "
                "neither."
            )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns that repeat a better one.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, LabelledTable or AnnData object of numbers; NaN is
            a gap.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        with self._fitting():
            self._fit(validate_table(self, named_table(X)))
        return self

    def _fit(self, X: Any) -> None:
        has_gaps = bool(np.isnan(X.data if sp.issparse(X) else X).any())
        if has_gaps and sp.issparse(X):
            raise DataError(
                "A sparse matrix may hold no NaN here: the rows that two columns have in common "
                "are found in an array only. Pass X.toarray() if it fits in memory, or fill the "
                "gaps."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # refused with a sentence
            moments, n_values = _moments_with_gaps(X) if has_gaps else _moments_without_gaps(X)
        refuse_unrepresentable(None if has_gaps else X, moments)
        order = self._best_first(moments.variance, n_values)
        order = order[~moments.constant[order] & (n_values[order] >= self.min_rows)]
        columns = np.sort(order)  # only these are compared, by their place among them
        compared = X[:, columns] if len(columns) < X.shape[1] else X
        correlations = self._correlations(compared, moments.subset(columns), has_gaps)
        places = np.searchsorted(columns, order)
        walk = walk_ranking(correlations, places, float(self.threshold), most=len(order))
        self.support_ = np.ones(X.shape[1], dtype=bool)
        self.support_[order[~walk.keeps]] = False
        names = self._names_of_columns()
        self.kept_instead_ = {
            str(names[order[at]]): (str(names[columns[walk.instead[at]]]), _within_one(walk.r[at]))
            for at in np.flatnonzero(~walk.keeps)
        }

    def _best_first(self, variances: FloatArray, n_values: IndexArray) -> IndexArray:
        if self.representative == "variance":
            return best_first(variances, variances)
        if self.representative == "gaps":
            return best_first(n_values.astype(np.float64), variances)
        return best_first(self._scores_of(len(variances)), variances)

    def _scores_of(self, n_columns: int) -> FloatArray:
        try:
            scores = np.asarray(self.scores, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.empty(0)
        if scores.shape != (n_columns,) or not np.all(np.isfinite(scores)):
            raise ParameterError(
                f"scores must be a finite number for each of the {n_columns} columns; got "
                f"{shorten(self.scores)}."
            )
        return scores

    def _correlations(self, X: Any, moments: ColumnMoments, has_gaps: bool) -> Correlations:
        if has_gaps:
            return PairwiseCorrelations.of(X, int(self.min_rows))
        if sp.issparse(X):
            return ColumnCorrelations(sp.csc_array(X, dtype=np.float64), moments)
        if self.method == "spearman":
            X = rankdata(X, axis=0)
            moments = column_moments(X)
        return UnitColumnCorrelations.of(X, moments)

    def to_frame(self) -> Any:
        """What was dropped as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            The columns ``feature``, ``kept_instead`` and ``r``; one row for each dropped column.
        """
        check_is_fitted(self)
        rows = [
            {"feature": name, "kept_instead": kept, "r": r}
            for name, (kept, r) in self.kept_instead_.items()
        ]
        return as_frame(rows, ["feature", "kept_instead", "r"])


def _moments_without_gaps(X: Any) -> tuple[ColumnMoments, IndexArray]:
    return column_moments(X), np.full(X.shape[1], X.shape[0], dtype=np.intp)


def _moments_with_gaps(X: FloatArray) -> tuple[ColumnMoments, IndexArray]:
    """Mean and variance of the values that are there, as if all rows had them; their number."""
    seen = observed_columns(X.astype(np.float64, copy=False))
    return ColumnMoments(len(X), seen.means, len(X) * seen.scales**2), seen.counts


def _within_one(r: float) -> float:
    """Rounding takes a correlation past 1."""
    return float(np.clip(r, -1.0, 1.0))
