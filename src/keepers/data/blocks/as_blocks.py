"""From whatever holds a table to blocks of its rows: the one place that asks what it is."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockTable
from keepers.data.blocks.arrays import ArrayBlocks, MappedBlocks
from keepers.data.blocks.iterables import ForeignBlocks, GivenBlocks, PassingBlocks
from keepers.data.blocks.local import LocalBlocks
from keepers.data.blocks.opening import open_blocks
from keepers.data.dask_blocks import DaskBlocks, is_dask
from keepers.exceptions import ParameterError

__all__ = ["as_blocks", "is_large_map"]

LARGE_MAP = 256 * 2**20
# Of the protocol, `BlockTable`.
_MEMBERS = (
    "name",
    "n_features",
    "n_samples",
    "n_stored",
    "dtype",
    "is_sparse",
    "rereadable",
    "is_local",
    "feature_names",
    "total",
)


def is_large_map(X: Any) -> bool:
    """Whether X is a memory map too large to be taken into memory without need."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes >= LARGE_MAP


def as_blocks(source: Any) -> BlockTable:
    """The rows of ``source`` in blocks."""
    if isinstance(source, (LocalBlocks, DaskBlocks)):
        return source
    if is_dask(source):
        return DaskBlocks.of(source)
    if callable(getattr(source, "total", None)) and hasattr(source, "n_features"):
        return _followed(source)
    if isinstance(source, (str, Path)):
        return open_blocks(source)
    if isinstance(source, np.memmap):
        return MappedBlocks(source, "X" if source.filename is None else Path(source.filename).name)
    if hasattr(source, "var_names") and hasattr(source, "X"):  # AnnData, backed or not
        return ArrayBlocks(
            source.X, "X", np.array([str(n) for n in source.var_names], dtype=object)
        )
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return GivenBlocks(lambda: [source], "the data frame")
    if sp.issparse(source) or (hasattr(source, "shape") and hasattr(source, "__getitem__")):
        return ArrayBlocks(source, "X")
    if callable(source):
        return GivenBlocks(source, "the function")
    if isinstance(source, Sequence):
        return _sequence(source)
    if isinstance(source, Iterator):
        return PassingBlocks(source, "the iterator")
    if hasattr(source, "__iter__"):
        return GivenBlocks(lambda: source, f"the {type(source).__name__}")
    raise ParameterError(
        "Blocks come from a file, a folder, an array, a list of blocks, a function that returns "
        "an iterator, an iterator, a Dask collection or a block table of your own; got a "
        f"{type(source).__name__}."
    )


def _followed(source: Any) -> BlockTable:
    """An object of the user's that follows the protocol."""
    lacking = [member for member in _MEMBERS if not hasattr(source, member)]
    if lacking:
        raise ParameterError(
            f"A block table must have {', '.join(_MEMBERS)}; the {type(source).__name__} given "
            f'lacks {", ".join(lacking)}. The page "How it scales" shows a class that has all.'
        )
    return ForeignBlocks(source)


def _sequence(source: Sequence[Any]) -> BlockTable:
    if source and all(isinstance(part, (str, Path)) for part in source):
        return open_blocks(list(source))
    return GivenBlocks(lambda: source, "the list")
