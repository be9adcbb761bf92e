"""Near-copies of better columns, dropped before a selection."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags

from keepers.exceptions import DataError
from keepers.linalg.correlation import (
    ColumnCorrelations,
    Correlations,
    PairwiseCorrelations,
    walk_ranking,
)
from keepers.linalg.gaps import observed_columns
from keepers.linalg.ordering import best_first
from keepers.linalg.scatter import ColumnMoments, column_moments
from keepers.methods.base import ColumnSelector
from keepers.methods.parameters import positive
from keepers.methods.reading import named_table, refuse_unrepresentable, validate_table

# Two rows always correlate.
FEWEST_ROWS = 3


@dataclass(eq=False, repr=False)
class DropCorrelated(ColumnSelector):
    """Drop columns that correlate too much with a better one.

    Goes through the columns from the largest variance to the smallest. A column is dropped if its
    absolute correlation with a column already kept exceeds ``threshold``.

    Constant and empty columns are not dropped. Gaps (NaN) are allowed: each pair is compared over
    the rows in which both columns have a value, if there are at least three. For rank correlations,
    fit it to a table of ranks.

    Parameters
    ----------
    threshold : float in (0, 1], default=0.95
        Absolute correlation above which the worse of two columns is dropped; 1 drops nothing.

    Attributes
    ----------
    kept_instead_ : dict of str to (str, float)
        For each dropped column, best first: the better kept column most similar to it, and their
        correlation. Columns without names are x0, x1, ...
    support_ : boolean array of shape (n_features,)
        True for the kept columns.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of shape (n_features,)
        Column names, if X was a data frame with string columns.

    See Also
    --------
    SPCAFS : ``max_correlation`` does the same within a ranking, as in every selector.

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

    why_not_dask = "it compares columns of a table in memory."
    why_not_sparse: ClassVar[str | None] = None
    parameter_rules: ClassVar = {"threshold": positive(at_most=1.0)}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns to drop.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            An array, data frame, sparse matrix, Table or AnnData object; NaN is a gap.
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
        n_rows, n_columns = X.shape
        has_gaps = bool(np.isnan(X.data if sp.issparse(X) else X).any())
        if has_gaps and sp.issparse(X):
            raise DataError(
                "DropCorrelated cannot compare columns of a sparse matrix with NaN. Pass "
                "X.toarray() if it fits in memory, or fill the gaps."
            )
        n_values = np.full(n_columns, n_rows, dtype=np.intp)
        with np.errstate(over="ignore", invalid="ignore"):  # refuse_unrepresentable raises
            if has_gaps:  # as if all rows had values like the others
                seen = observed_columns(X.astype(np.float64, copy=False))
                moments = ColumnMoments(n_rows, seen.means, n_rows * seen.scales**2)
                n_values = seen.counts
            else:
                moments = column_moments(X)
        refuse_unrepresentable(None if has_gaps else X, moments)
        order = best_first(moments.variance, moments.variance)
        order = order[~moments.constant[order] & (n_values[order] >= FEWEST_ROWS)]
        if has_gaps:
            X = np.where(n_values > 0, X, 0.0)  # empty columns are not compared
            correlations: Correlations = PairwiseCorrelations.of(X, FEWEST_ROWS)
        else:
            X = sp.csc_array(X, dtype=np.float64) if sp.issparse(X) else X
            correlations = ColumnCorrelations(X, moments)
        walk = walk_ranking(correlations, order, float(self.threshold), most=len(order))
        self.support_ = np.ones(n_columns, dtype=bool)
        self.support_[order[~walk.keeps]] = False
        names = self._names_of_columns()
        self.kept_instead_ = {
            # Rounding may give a correlation beyond 1.
            str(names[order[at]]): (
                str(names[walk.instead[at]]),
                float(np.clip(walk.r[at], -1.0, 1.0)),
            )
            for at in np.flatnonzero(~walk.keeps)
        }
