"""An order of the rows that follows from their values, without rows that are copies of others.

Random numbers that are dealt to rows in this order do not depend on the order of the rows in the
table, nor on the signs, the units and the order of its columns.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from keepers._protocols import BoolArray, FloatArray, IndexArray
from keepers.linalg.moments import ColumnMoments, row_blocks
from keepers.linalg.ordering import levels
from keepers.linalg.storage import as_array, by_columns


def distinct_rows(X: Any, moments: ColumnMoments, observed: BoolArray | None = None) -> IndexArray:
    """The rows of an array or a CSR matrix in that order; of equal rows the first.

    Rows are ordered by their squared lengths in the standardised table; where these tie, by the sum
    of their products with all rows, each times its squared length. Equal rows all stay where the
    columns take so few values that rows are equal by chance. No column is constant. ``observed``
    marks the values that were not filled.
    """
    blocks = partial(_standardised_blocks, X, moments, observed)
    lengths = np.concatenate([np.einsum("ij,ij->i", Z, Z) for _, Z in blocks()])
    level = levels(lengths)
    tied = np.bincount(level)[level] > 1
    if not tied.any():
        return np.argsort(level)
    common = np.sum([lengths[rows] @ Z for rows, Z in blocks()], axis=0)
    products = np.concatenate([Z @ common for _, Z in blocks()])
    largest_possible = np.sqrt(lengths.max()) * (np.sqrt(lengths) @ lengths)
    order = np.lexsort((np.round(products / largest_possible, 9), level))
    first: dict[bytes, int] = {}
    for row in order[tied[order]]:
        first.setdefault(_content(X, observed, row), int(row))
    kept = order[~tied[order] | np.isin(order, list(first.values()))]
    return order if len(kept) == len(order) or _meet_by_chance(X[kept]) else kept


def _standardised_blocks(
    X: Any, moments: ColumnMoments, observed: BoolArray | None
) -> Iterator[tuple[slice, FloatArray]]:
    """Some rows at a time about the means, with columns of length 1; 0 where values were filled."""
    factors = 1.0 / np.sqrt(moments.sum_of_squares)
    for rows in row_blocks(*X.shape):
        block = (as_array(X[rows]) - moments.mean) * factors
        yield rows, block if observed is None else block * observed[rows]


def _content(X: Any, observed: BoolArray | None, row: int) -> bytes:
    """The values of a row as bytes, the same for 0 and -0."""
    values = as_array(X[[row]]) + 0.0
    if observed is None:
        return values.tobytes()
    return np.where(observed[row], values, np.nan).tobytes()


def _meet_by_chance(X: Any) -> bool:
    """Whether independent columns with these values would have a pair of equal rows too."""
    n_samples, n_features = X.shape
    n_pairs = n_samples * (n_samples - 1) / 2
    expected, X = n_pairs, by_columns(X)
    for column in range(n_features):  # mostly the first one decides
        counts = np.unique(as_array(X[:, [column]]), return_counts=True)[1]
        expected *= float((counts * (counts - 1) / 2).sum()) / n_pairs
        if expected < 1.0:
            return False
    return True
