"""What `CUR` and `ColumnSubset` share: the table as columns, and what the picks explain of it."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.exceptions import DataWarning, warn_caller
from keepers.linalg.moments import ColumnMoments
from keepers.linalg.scatter import SMALL_SIDE, FactoredScatter, as_short_factor
from keepers.selectors.fitted_table import Table
from keepers.selectors.memory import refuse_past_memory
from keepers.solvers.picked_columns import PickedColumns, best_shares

# Vectors as long as the shorter side that are held beside the directions taken out.
_VECTORS_BESIDE = 150


def read_columns(selector: Any, table: Table) -> FactoredScatter:
    """The columns of a table, centred unless the selector says otherwise."""
    n_samples, n_features = table.X.shape
    is_sparse = sp.issparse(table.X)
    is_reduced = not is_sparse and n_features <= SMALL_SIDE
    n_rows = min(n_samples, n_features) if is_reduced else n_samples
    n_directions = min(selector.n_features_to_select_, n_samples, n_features)
    n_values = n_rows * (n_directions + _VECTORS_BESIDE) + 4.0 * min(n_rows, SMALL_SIDE) ** 2
    n_values += 3.0 * table.X.nnz if is_sparse else float(n_rows * n_features)
    what = f"{n_directions} directions of {n_rows} samples and a copy of the table"
    refuse_past_memory(type(selector).__name__, what, 8.0 * n_values)
    return as_short_factor(table.X, table.moments if selector.center else _about_zero(table))


def _about_zero(table: Table) -> ColumnMoments:
    moments = table.moments
    squares = moments.sum_of_squares + moments.n_samples * moments.mean**2
    return ColumnMoments(moments.n_samples, np.zeros_like(moments.mean), squares)


def store_picks(selector: Any, X: FactoredScatter, picked: PickedColumns) -> None:
    """Set what the picks explain, beside what as many directions could."""
    n_picked, n_wanted = len(picked.order), selector.n_features_to_select_
    selector.n_picked_ = n_picked
    selector.explained_share_ = picked.explained
    selector.best_share_ = np.maximum(best_shares(X, n_picked), picked.explained)
    if n_picked < n_wanted:
        warn_caller(
            f"{n_wanted} features are wanted, but {n_picked} explain all others: those are "
            "combinations of them, and are ranked by their variance.",
            DataWarning,
        )
