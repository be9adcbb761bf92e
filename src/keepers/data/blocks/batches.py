"""Arrow record batches as blocks of values, copied column by column."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers.data.blocks.local import rows_at_once
from keepers.data.formats.arrow_columns import cast_exactly

__all__ = ["blocks_of_batches"]


def blocks_of_batches(
    batches: Iterable[Any], stored: Sequence[str], dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    """The columns ``stored`` of all batches, as Fortran-ordered blocks; a missing value is NaN.

    Batches are as large as their writer made them, so a block may hold a part of one or many.
    """
    n_rows = rows_at_once(len(stored), dtype.itemsize)
    block, filled = np.empty((len(stored), n_rows), dtype=dtype), 0
    for batch in batches:
        taken = 0
        while taken < batch.num_rows:
            count = min(n_rows - filled, batch.num_rows - taken)
            piece = batch if count == batch.num_rows else batch.slice(taken, count)
            _copy_columns(piece, stored, block[:, filled : filled + count])
            filled, taken = filled + count, taken + count
            if filled == n_rows:
                yield block.T
                block, filled = np.empty((len(stored), n_rows), dtype=dtype), 0
    if filled:
        yield np.ascontiguousarray(block[:, :filled]).T


def _copy_columns(batch: Any, stored: Sequence[str], target: NDArray[Any]) -> None:
    """Copy columns of a batch into rows of ``target``."""
    import pyarrow as pa

    as_they_are = (pa.float32(), pa.float64())
    place = {name: at for at, name in enumerate(batch.schema.names)}
    columns = batch.columns
    for row, name in zip(target, stored, strict=True):
        column = columns[place[name]]
        if column.type not in as_they_are:
            column = cast_exactly(column, pa.float64(), name)
        row[:] = column.to_numpy(zero_copy_only=False)
