"""A matrix that grows by blocks of rows without holding two copies of itself."""

import numpy as np

from keepers._protocols import FloatArray
from keepers.data.limits import SizeLimit

__all__ = ["GrowingMatrix"]

_FIRST_ROWS = 64
_GROWTH = 1.2  # a larger factor would touch memory that the last rows never fill


class GrowingMatrix:
    """Rows are appended; memory is extended in place where the system can."""

    def __init__(self, n_columns: int, limit: SizeLimit, dtype: type = np.float64) -> None:
        self._limit = limit
        self._rows = 0
        self._values: FloatArray = np.empty((_FIRST_ROWS, n_columns), dtype=dtype)

    def append(self, rows: FloatArray) -> None:
        """Append a block of rows; refuse it if the table outgrows the limit."""
        n_columns = self._values.shape[1]
        end = self._rows + len(rows)
        self._limit.refuse_shape((end, n_columns), self._values.itemsize, "The table")
        if end > len(self._values):
            capacity = max(end, int(_GROWTH * len(self._values)))
            # No other array looks at this memory, so it may move.
            self._values.resize((capacity, n_columns), refcheck=False)
        self._values[self._rows : end] = rows
        self._rows = end

    def finished(self) -> FloatArray:
        """Return the matrix, cut to the rows that were appended."""
        self._values.resize((self._rows, self._values.shape[1]), refcheck=False)
        return self._values
