"""Arrow record batches as blocks of values."""

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
    pieces: list[NDArray[Any]] = []
    missing = n_rows
    for batch in batches:
        chosen = batch if batch.schema.names == stored else batch.select(stored)
        taken = 0
        while taken < batch.num_rows:
            count = min(missing, batch.num_rows - taken)
            pieces.append(_values(chosen.slice(taken, count), dtype))
            taken, missing = taken + count, missing - count
            if missing == 0:
                yield _joined(pieces)
                pieces, missing = [], n_rows
    if pieces:
        yield _joined(pieces)


def _values(batch: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows x columns, copied column by column inside Arrow."""
    import pyarrow as pa

    target = pa.from_numpy_dtype(dtype)
    types = batch.schema.types
    if any(kind != target for kind in types):
        names = batch.schema.names
        columns = [
            cast_exactly(column, target, name)
            for column, name in zip(batch.columns, names, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
    try:
        tensor = batch.to_tensor(null_to_nan=True, row_major=False)
    except TypeError:  # pyarrow 16 has no other order to offer
        tensor = batch.to_tensor(null_to_nan=True)
    values: NDArray[Any] = tensor.to_numpy()
    return values


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len(pieces) == 1:
        return pieces[0]
    n_rows, n_columns = sum(len(piece) for piece in pieces), pieces[0].shape[1]
    block = np.empty((n_columns, n_rows), dtype=pieces[0].dtype).T
    return np.concatenate(pieces, out=block)
