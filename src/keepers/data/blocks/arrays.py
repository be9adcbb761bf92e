"""Blocks of rows out of arrays: in memory, mapped, or anything that is sliced like an array."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks, rows_at_once
from keepers.data.in_memory import canonical_sparse, numeric_input
from keepers.data.values import as_values
from keepers.exceptions import DataError

__all__ = ["ArrayBlocks", "MappedBlocks"]


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
        for start in range(0, self.n_samples, self._step):
            stop = min(start + self._step, self.n_samples)
            origin = f"{self.name}, rows {start + 1} to {stop}"
            values = as_values(self._rows(start, stop), origin)
            yield RowBlock(values if columns is None else values[:, columns], origin)


class MappedBlocks(ArrayBlocks):
    """Rows of a memory map, copied out block by block.

    Pages that were looked at count as memory of the process until the system takes them back, which
    would make a budget hard to keep; so they are given back after every block. The map itself is
    read, never its file: the file may have been replaced or deleted, the array may be a part of it
    in any order, and changes to a copy-on-write map are in no file.
    """

    def __init__(self, X: Any, name: str) -> None:
        # The changes to a copy-on-write map are lost with its pages.
        self._map = None if X.mode == "c" else X._mmap
        super().__init__(X, name)

    def _rows(self, start: int, stop: int) -> Any:
        rows = np.array(self._X[start:stop], subok=False)
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
        return rows
