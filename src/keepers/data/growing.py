"""Matrices that grow by blocks of rows without holding two copies of themselves."""

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from keepers.data.limits import SizeLimit

__all__ = ["GrowingMatrix", "GrowingSparse"]

_FIRST_ROWS = 64
_GROWTH = 1.2  # a larger factor would touch memory that the last rows never fill


class GrowingMatrix:
    """Rows are appended; memory is set aside at once if their number is known, else extended."""

    def __init__(
        self,
        n_columns: int,
        limit: SizeLimit,
        dtype: DTypeLike = np.float64,
        n_rows: int | None = None,
        order: Literal["C", "F"] = "C",
    ) -> None:
        self._limit = limit
        self._rows = 0
        self._n_rows = n_rows
        limit.refuse_shape((n_rows or 0, n_columns), np.dtype(dtype).itemsize, "The table")
        first = _FIRST_ROWS if n_rows is None else n_rows
        # Costs nothing before it is written to.
        self._values: NDArray[Any] = np.empty((first, n_columns), dtype=dtype, order=order)

    def append(self, rows: NDArray[Any]) -> None:
        """Append a block of rows, which may be kept; refuse it if the table outgrows the limit."""
        n_columns = self._values.shape[1]
        end = self._rows + len(rows)
        if end == len(rows) == self._n_rows:  # one block holds them all
            self._values, self._rows = rows, end
            return
        self._limit.refuse_shape((end, n_columns), self._values.itemsize, "The table")
        if end > len(self._values):
            capacity = max(end, int(_GROWTH * len(self._values)))
            # No other array looks at this memory, so it may move.
            self._values.resize((capacity, n_columns), refcheck=False)
        self._values[self._rows : end] = rows
        self._rows = end

    def finish(self) -> NDArray[Any]:
        """Return the matrix, cut to the rows that were appended."""
        if self._rows < len(self._values):
            self._values.resize((self._rows, self._values.shape[1]), refcheck=False)
        return self._values


class GrowingSparse:
    """CSR rows are appended."""

    def __init__(
        self,
        n_columns: int,
        limit: SizeLimit,
        dtype: DTypeLike = np.float64,
        n_rows: int | None = None,
        order: Literal["C", "F"] = "C",
    ) -> None:
        self._limit, self._n_bytes = limit, 0
        self._blocks: list[Any] = []

    def append(self, rows: Any) -> None:
        """Append a block of rows; refuse it if the table outgrows the limit."""
        self._n_bytes += rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
        self._limit.refuse_past(self._n_bytes, "The table")
        self._blocks.append(rows)

    def finish(self) -> Any:
        """Return the matrix."""
        if len(self._blocks) == 1:
            return self._blocks[0]
        return sp.vstack(self._blocks, format="csr")
