"""Some rows of a table, drawn at random, as a table in memory: the same ones in every storage.

Methods whose result depends on a sample of the rows call `draw_from_memory` in ``fit`` and
`draw_from_blocks` for everything that is read in blocks. For the same seed both draw the same rows.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from keepers._protocols import BlockTable, IndexArray
from keepers.data.blocks.as_blocks import number_rows
from keepers.exceptions import DataError
from keepers.linalg.reservoir import RowReservoir, drawn_rows, largest_drawn_key
from keepers.linalg.storage import by_rows, stack_rows
from keepers.linalg.sums import NotFiniteError
from keepers.selectors.block_tables import refuse_undeclared
from keepers.selectors.fitted_table import Table, fills_gaps, table_of_values, validate_table


@dataclass(frozen=True)
class DrawnTable:
    """Rows drawn from a table, and what is known of the whole."""

    table: Table
    """The drawn rows, in their order, without columns that are constant over them."""
    rows: IndexArray
    """Their numbers in the whole table, from 0, ascending."""
    n_samples: int
    """Rows of the whole table."""
    n_passes: int
    """How many times the whole table was read."""


def draw_from_memory(selector: Any, X: Any, n_rows: int, seed: int) -> DrawnTable:
    """Draw at most ``n_rows`` rows of an array, a data frame, a sparse matrix or a LabelledTable.

    All of X is validated, as `read_table` does, and the names of its columns are set.
    """
    values = by_rows(validate_table(selector, X))
    n_samples = values.shape[0]
    rows = drawn_rows(n_samples, n_rows, seed)
    return _drawn(selector, stack_rows([values[rows]]), rows, n_samples, n_passes=1)


def draw_from_blocks(selector: Any, source: BlockTable, n_rows: int, seed: int) -> DrawnTable:
    """Draw at most ``n_rows`` rows of a table that is read in blocks.

    One pass; a Dask collection with partitions of unknown length is counted first. Sets
    ``n_features_in_`` and, if the table names its columns, ``feature_names_in_``. A value that is
    not finite is refused in any row, drawn or not; where the selector fills gaps, only infinity.
    """
    selector.n_features_in_ = source.n_features
    if source.feature_names is not None:
        selector.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
    names = getattr(selector, "feature_names_in_", None)
    numbered = number_rows(source)
    largest_key = None
    if numbered.n_samples:
        largest_key = largest_drawn_key(numbered.n_samples, n_rows, seed)
    try:
        allow_nan = fills_gaps(selector)
        found = numbered.total(
            partial(RowReservoir, n_rows, seed, largest_key, allow_nan=allow_nan)
        )
    except NotFiniteError as error:
        raise DataError(error.with_names(names)) from error
    refuse_undeclared(numbered, found.n_samples)
    values = validate_table(selector, found.rows())
    if names is not None:
        selector.feature_names_in_ = names
    n_passes = 1 if numbered is source else 2
    return _drawn(selector, values, found.numbers, found.n_samples, n_passes)


def _drawn(
    selector: Any, values: Any, rows: IndexArray, n_samples: int, n_passes: int
) -> DrawnTable:
    drawn = f"the {len(rows)} rows drawn of {n_samples}" if len(rows) < n_samples else ""
    return DrawnTable(table_of_values(selector, values, drawn), rows, n_samples, n_passes)
