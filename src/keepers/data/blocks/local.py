"""Tables whose blocks are read by this process, one after the other."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock, Sum
from keepers.data.blocks.sharing import shared_out, usable_threads
from keepers.exceptions import DataError

__all__ = ["BLOCK_BYTES", "LocalBlocks", "rows_at_once"]

# Large enough for one product per block to be efficient, small enough for a cache to help.
BLOCK_BYTES = 8 * 2**20


def rows_at_once(n_columns: int, itemsize: int = 8, n_bytes: int = BLOCK_BYTES) -> int:
    """How many rows of so many columns make a block."""
    return max(1, n_bytes // (max(n_columns, 1) * itemsize))


class LocalBlocks(ABC):
    """A `BlockTable` that is read here; a kind of storage implements ``blocks``."""

    name: str
    n_features: int
    dtype: np.dtype[Any]
    n_samples: int | None = None
    n_stored: int | None = None
    is_sparse: bool = False
    rereadable: bool = True
    is_local: bool = True
    feature_names: NDArray[np.object_] | None = None

    @abstractmethod
    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The rows, block after block; only ``columns`` of them, in that order, if given."""

    def parts(self, n_parts: int) -> Sequence["LocalBlocks"]:
        """The same rows as tables of their own, about ``n_parts``, for workers to share."""
        return [self]

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks, with several threads where sums are small."""
        width = self.n_features if columns is None else len(columns)
        blocks = _well_shaped(self.blocks(columns), width)
        first = begin()
        n_threads = usable_threads(first.n_bytes)
        if n_threads > 1:
            return shared_out(blocks, [first, *(begin() for _ in range(n_threads - 1))])
        for block in blocks:
            first.add(block)
        return first


def _well_shaped(blocks: Iterator[RowBlock], width: int) -> Iterator[RowBlock]:
    for block in blocks:
        refuse_misshapen(block, width)
        yield block


def refuse_misshapen(block: RowBlock, width: int) -> None:
    """Raise for a block without rows, or with another number of columns."""
    n_rows, n_columns = block.values.shape
    if n_columns != width:
        raise DataError(
            f"Every block must have the same {width} columns; {block.origin} has {n_columns}. "
            "Leave it out, or write it again with the columns of the others."
        )
    if n_rows == 0:
        raise DataError(
            f"Every block must hold at least one row; {block.origin} holds none. Leave it out."
        )
