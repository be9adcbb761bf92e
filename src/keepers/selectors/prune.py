"""A ranking without the features that repeat better ones."""

from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.exceptions import ParameterError
from keepers.linalg.correlation import unlike_the_better
from keepers.selectors.baselines import VarianceScore
from keepers.selectors.fitted_table import read_table, refuse_dask
from keepers.selectors.parameters import check_count, check_max_correlation


def prune_redundant(
    X: Any, ranking: Any, max_correlation: float = 0.8, *, n_features: int | None = None
) -> IndexArray:
    """Walk down a ranking and leave out every feature too much like one already kept.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table.
    ranking : array of shape (n_features,)
        1 is the best feature: ``ranking_`` of any selector.
    max_correlation : float in (0, 1], default=0.8
        A feature whose correlation with a better kept one exceeds this in size, whichever its
        sign, is left out.
    n_features : int or None, default=None
        Stop once so many are kept; None goes through all.

    Returns
    -------
    array of int
        Columns that are kept, best first. Constant columns are never among them.

    See Also
    --------
    SPCAFS : ``max_correlation`` does the same within a fit, as in every selector.

    Examples
    --------
    >>> import numpy as np
    >>> from keepers import prune_redundant
    >>> X = np.array([[0.0, 1.0, 0.1], [1.0, 0.0, 1.0], [2.0, 0.0, 2.1], [3.0, 1.0, 2.9]])
    >>> prune_redundant(X, ranking=[1, 3, 2], max_correlation=0.9)
    array([0, 1])
    """
    if max_correlation is None:
        raise ParameterError("max_correlation must lie in (0, 1]; got None. 1 leaves nothing out.")
    check_max_correlation(max_correlation)
    refuse_dask(X, "prune_redundant", "it compares features of a table in memory.")
    table = read_table(VarianceScore(), X)  # any selector that takes every kind of table
    ranks = np.asarray(ranking)
    expected = np.arange(1, table.n_features + 1)
    if ranks.shape != expected.shape or not np.array_equal(np.sort(ranks), expected):
        raise ParameterError(
            f"ranking must hold each of 1 (best) to {len(expected)}, the number of columns of X, "
            "exactly once. The attribute ranking_ of a fitted selector does."
        )
    most = table.n_features if n_features is None else check_count("n_features", n_features)
    order = np.argsort(ranks[table.usable])
    keeps = unlike_the_better(table.correlations(order), order, max_correlation, most=most)
    return np.asarray(table.usable[order[keeps]])
