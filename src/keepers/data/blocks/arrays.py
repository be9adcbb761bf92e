"""Blocks of rows out of arrays: in memory, mapped, or anything that is sliced like an array."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks, rows_at_once
from keepers.data.in_memory import canonical_sparse, numeric_input
from keepers.data.values import as_values
from keepers.exceptions import DataError

__all__ = ["ArrayBlocks", "RawFileBlocks", "row_ranges"]


def row_ranges(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    """From start to stop in steps."""
    for first in range(start, stop, step):
        yield first, min(first + step, stop)


class ArrayBlocks(LocalBlocks):
    """Rows of something with a shape, a dtype and slices, which may lie on a disk."""

    def __init__(self, X: Any, name: str, feature_names: Any = None) -> None:
        if len(X.shape) != 2:
            raise DataError(
                f"A table has two dimensions (samples, features); {name} has {len(X.shape)}. "
                "Reshape it."
            )
        self._X = canonical_sparse(X).tocsr() if sp.issparse(X) else X
        self.name = name
        self.n_samples, self.n_features = (int(length) for length in X.shape)
        if self.n_samples == 0 or self.n_features == 0:
            raise DataError(
                f"A table needs at least one row and one column; {name} is {self.n_samples} x "
                f"{self.n_features}."
            )
        first = as_values(self._rows(0, 1), name)
        self.is_sparse = bool(sp.issparse(first))
        self.dtype = first.dtype
        self.n_stored = self.n_samples * self.n_features
        if self.is_sparse:
            nnz = getattr(X, "nnz", None)
            self.n_stored = None if nnz is None else int(nnz)
        self.feature_names = feature_names
        self._step = rows_at_once(self.n_features, self.dtype.itemsize)
        if self.is_sparse and self.n_stored:
            per_row = max(1, self.n_stored // self.n_samples)
            self._step = rows_at_once(per_row, self.dtype.itemsize + 4)

    def _rows(self, start: int, stop: int) -> Any:
        rows = numeric_input(self._X[start:stop])
        return rows if sp.issparse(rows) else np.asarray(rows)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """Row slices."""
        assert self.n_samples is not None
        for start, stop in row_ranges(0, self.n_samples, self._step):
            origin = f"{self.name}, rows {start + 1} to {stop}"
            values = as_values(self._rows(start, stop), origin)
            yield RowBlock(values if columns is None else values[:, columns], origin)


@dataclass(frozen=True)
class _Place:
    """Where the numbers of a row-major array lie in a file."""

    path: Path
    offset: int
    dtype: np.dtype[Any]


class RawFileBlocks(LocalBlocks):
    """Rows of a row-major array in a file, read rather than mapped.

    Pages of a mapped file count as memory of the process as long as the system leaves them there,
    which would make a budget hard to keep.
    """

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, int], dtype: np.dtype[Any], name: str
    ) -> None:
        self._place = _Place(Path(path), offset, np.dtype(dtype))
        self._first_row = 0
        self.name = name
        self.n_samples, self.n_features = shape
        self.n_stored = shape[0] * shape[1]
        single = self._place.dtype.kind == "f" and self._place.dtype.itemsize <= 4
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """Rows, read one block after the other."""
        place, n_columns = self._place, self.n_features
        row_bytes = n_columns * place.dtype.itemsize
        assert self.n_samples is not None
        end = self._first_row + self.n_samples
        with place.path.open("rb", buffering=0) as stream:
            stream.seek(place.offset + self._first_row * row_bytes)
            step = rows_at_once(n_columns, place.dtype.itemsize)
            for start, stop in row_ranges(self._first_row, end, step):
                origin = f"{self.name}, rows {start + 1} to {stop}"
                rows = np.empty((stop - start, n_columns), dtype=place.dtype)
                _read_whole(stream, rows, origin)
                values = as_values(rows, origin)
                yield RowBlock(values if columns is None else values[:, columns], origin)

    def parts(self, n_parts: int) -> list[LocalBlocks]:
        """Ranges of rows."""
        assert self.n_samples is not None
        step = -(-self.n_samples // max(1, min(n_parts, self.n_samples)))
        found: list[LocalBlocks] = []
        for start, stop in row_ranges(0, self.n_samples, step):
            shape = (stop - start, self.n_features)
            part = RawFileBlocks(
                self._place.path, self._place.offset, shape, self._place.dtype, self.name
            )
            part._first_row = self._first_row + start
            found.append(part)
        return found


def _read_whole(stream: Any, rows: Any, origin: str) -> None:
    wanted = memoryview(rows).cast("B")
    while len(wanted):
        n_read = stream.readinto(wanted)
        if not n_read:
            raise DataError(f"{origin}: the file ends before these rows do. Write it again.")
        wanted = wanted[n_read:]
