"""Blocks that the user hands over: a list of them, a function that makes them, an iterator."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockTable, IndexArray, RowBlock, Sum
from keepers.data.blocks.local import LocalBlocks, refuse_misshapen, rows_at_once
from keepers.data.blocks.named_columns import column_labels, in_order, string_names
from keepers.data.in_memory import numeric_input
from keepers.data.values import as_values
from keepers.exceptions import DataError, ParameterError

__all__ = ["ForeignBlocks", "GivenBlocks", "PassingBlocks"]


class GivenBlocks(LocalBlocks):
    """Blocks that can be asked for again and again.

    The first block is looked at when the table is made, and kept for the first pass: a function
    may return the same iterator every time.
    """

    def __init__(self, ask: Callable[[], Iterable[Any]], name: str) -> None:
        self._ask = ask
        self.name = name
        blocks = self._begin()
        first = next(blocks, None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self._describe(first)
        self._begun: Iterator[Any] | None = chain([first], blocks)

    def _describe(self, first: Any) -> None:
        """What the first block tells of all."""
        self._labels = column_labels(first)
        self.feature_names = string_names(self._labels)
        values = _values(first, "block 1")
        self.n_features = int(values.shape[1])
        self.dtype = values.dtype
        self.is_sparse = bool(sp.issparse(values))

    def _begin(self) -> Iterator[Any]:
        """The blocks from the first; an error if an iterator was begun before."""
        asked = self._ask()
        if not isinstance(asked, Iterator):
            return iter(asked)
        if _started.holds(asked):
            raise DataError(
                f"Blocks are read from the first on; {self.name} was already consumed, at least in "
                "part, by a fit before this one. Make a new iterator, or give a list of blocks or "
                "a function that returns a new iterator."
            )
        return _started.blocks_of(asked)

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The blocks, long ones cut."""
        begun, self._begun = self._begun, None
        for number, given in enumerate(self._begin() if begun is None else begun, 1):
            origin = f"block {number}"
            if number > 1 or begun is None:
                given = in_order(given, self._labels, origin)
            yield from _cut(_values(given, origin), origin, self.n_features, columns)


class PassingBlocks(GivenBlocks):
    """Blocks that pass by once."""

    rereadable = False

    def __init__(self, blocks: Iterator[Any], name: str) -> None:
        super().__init__(lambda: blocks, name)


class _StartedIterators:
    """Iterators from which blocks were taken, up to their last one.

    What was taken cannot be put back: a second fit would see the rest of the rows only.
    """

    def __init__(self) -> None:
        self._weak: WeakValueDictionary[int, Any] = WeakValueDictionary()
        # Those of built-in types have no weak references. They are few: fits that failed.
        self._others: deque[Any] = deque(maxlen=64)

    def holds(self, iterator: Iterator[Any]) -> bool:
        """Whether blocks were taken from it."""
        known = self._weak.get(id(iterator))
        return known is iterator or any(other is iterator for other in self._others)

    def blocks_of(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """The blocks; the iterator is remembered from the first one on, until it has no more."""
        try:
            self._weak[id(iterator)] = iterator
        except TypeError:
            self._others.append(iterator)
        yield from iterator
        self._weak.pop(id(iterator), None)
        for at, other in enumerate(self._others):
            if other is iterator:
                del self._others[at]
                break


_started = _StartedIterators()


class ForeignBlocks:
    """An object of the user's that follows `BlockTable`; what it hands over is checked."""

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self.name = str(table.name)
        self.n_features = int(table.n_features)
        self.n_samples, self.n_stored = table.n_samples, table.n_stored
        self.dtype = np.dtype(table.dtype)
        self.is_sparse, self.rereadable = bool(table.is_sparse), bool(table.rereadable)
        self.is_local = bool(table.is_local)
        names = table.feature_names
        self.feature_names = None if names is None else np.asarray(names, dtype=object)
        if self.dtype not in (np.float32, np.float64):
            raise ParameterError(
                f"dtype of a block table must be float64 or float32; {self.name} has {self.dtype}."
            )
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ParameterError(
                f"A block table must have a name for each of its {self.n_features} columns, or "
                f"feature_names None; {self.name} has {len(self.feature_names)}."
            )

    def total(self, begin: Callable[[], Sum], columns: IndexArray | None = None) -> Sum:
        """Sum over all blocks, each of which is checked."""
        width = self.n_features if columns is None else len(columns)
        found = self._table.total(lambda: _CheckedSum(begin(), width, self), columns)
        if not isinstance(found, _CheckedSum):
            raise ParameterError(
                f"total(begin, columns) must return a sum made by begin(); that of {self.name} "
                f"returned a {type(found).__name__}."
            )
        result: Sum = found.inner
        return result


class _CheckedSum:
    """A sum that looks at every block before it is added."""

    def __init__(self, inner: Any, width: int, kind: ForeignBlocks) -> None:
        self.inner = inner
        self._width = width
        self._dtype, self._is_sparse = kind.dtype, kind.is_sparse

    @property
    def n_bytes(self) -> float:
        """Memory it takes."""
        return float(self.inner.n_bytes)

    def add(self, block: RowBlock) -> None:
        """Take a block in, as the kind of matrix that the table declares."""
        values = _values(block.values, block.origin)
        refuse_misshapen(RowBlock(values, block.origin), self._width)
        if self._is_sparse:
            values = sp.csr_matrix(values)
        elif sp.issparse(values):
            values = values.toarray()
        self.inner.add(RowBlock(values.astype(self._dtype, copy=False), block.origin))

    def merge(self, other: "_CheckedSum") -> None:
        """Take in what was summed over other blocks."""
        self.inner.merge(other.inner)


def _cut(
    values: Any, origin: str, n_features: int, columns: IndexArray | None
) -> Iterator[RowBlock]:
    """Blocks of a size that is good to work with; a misshapen one as it is, to be refused."""
    if values.shape[1] != n_features or values.shape[0] == 0:
        yield RowBlock(values, origin)
        return
    per_row = n_features
    if sp.issparse(values):
        per_row = max(1, values.nnz // values.shape[0])
    step = rows_at_once(per_row, values.dtype.itemsize)
    for start in range(0, values.shape[0], step):
        rows = values[start : start + step]
        yield RowBlock(rows if columns is None else rows[:, columns], origin)


def _values(block: Any, origin: str) -> Any:
    if hasattr(block, "var_names") and hasattr(block, "X"):  # AnnData
        block = block.X
    block = numeric_input(block)
    if sp.issparse(block):
        return as_values(block, origin)
    if isinstance(block, (str, bytes, dict)):
        raise ParameterError(
            f"A block is an array, a sparse matrix or a data frame; {origin} is a "
            f"{type(block).__name__}."
        )
    if hasattr(block, "column_names"):  # Arrow: column by column, whatever its version can do
        block = np.column_stack([np.asarray(column) for column in block.columns])
    elif hasattr(block, "to_numpy") and hasattr(block, "columns"):
        block = block.to_numpy()
    values = np.asarray(block)
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Every column must be numeric; {origin} holds something else. Drop or encode it."
            ) from error
    return as_values(values, origin)
