"""Blocks that the user hands over: a list of them, a function that makes them, an iterator."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from keepers._protocols import IndexArray, RowBlock
from keepers.data.blocks.local import LocalBlocks, rows_at_once
from keepers.data.values import as_values
from keepers.exceptions import DataError, ParameterError, shortened

__all__ = ["GivenBlocks", "PassingBlocks"]


class GivenBlocks(LocalBlocks):
    """Blocks that can be asked for again and again."""

    def __init__(self, ask: Callable[[], Iterable[Any]], name: str) -> None:
        self._ask = ask
        self.name = name
        first = next(iter(ask()), None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self._describe(first)

    def _describe(self, first: Any) -> None:
        """What the first block tells of all."""
        self.feature_names = _names(first)
        values = _values(first, "block 1")
        self.n_features = int(values.shape[1])
        self.dtype = values.dtype
        self.is_sparse = bool(sp.issparse(values))

    def blocks(self, columns: IndexArray | None = None) -> Iterator[RowBlock]:
        """The blocks, long ones cut."""
        for number, given in enumerate(self._ask(), 1):
            origin = f"block {number}"
            if self.feature_names is not None:
                given = _in_order(given, self.feature_names, origin)
            yield from _cut(_values(given, origin), origin, self.n_features, columns)


class PassingBlocks(GivenBlocks):
    """Blocks that pass by once."""

    rereadable = False

    def __init__(self, blocks: Iterator[Any], name: str) -> None:
        first = next(blocks, None)
        if first is None:
            raise DataError(f"There must be at least one block; {name} gives none.")
        self.name = name
        self._describe(first)
        self._left: Iterator[Any] | None = chain([first], blocks)
        self._ask = self._once

    def _once(self) -> Iterator[Any]:
        if self._left is None:
            raise DataError(f"{self.name} can be read only once, and was.")
        left, self._left = self._left, None
        return left


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


def _names(block: Any) -> NDArray[np.object_] | None:
    columns = getattr(block, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def _in_order(block: Any, names: NDArray[np.object_], origin: str) -> Any:
    """A data frame with its columns as in the first one."""
    found = _names(block)
    if found is None or np.array_equal(found, names):
        return block
    if len(found) == len(names) and set(found) == set(names):
        return block[list(names)]
    if len(found) == len(names):
        strange = next(name for name in found if name not in set(names))
        raise DataError(
            f"Every block must have the columns of the first; {origin} has {shortened(strange)}, "
            "which the first has not. Leave it out, or name its columns like the others'."
        )
    return block


def _values(block: Any, origin: str) -> Any:
    if sp.issparse(block):
        return as_values(block, origin)
    if isinstance(block, (str, bytes, dict)):
        raise ParameterError(
            f"A block is an array, a sparse matrix or a data frame; {origin} is a "
            f"{type(block).__name__}."
        )
    if hasattr(block, "to_numpy") and hasattr(block, "columns"):
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
