"""From whatever holds a table to blocks of its rows: the one place that asks what it is."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import BlockTable
from keepers.data.blocks.arrays import ArrayBlocks, RawFileBlocks
from keepers.data.blocks.given import GivenBlocks, PassingBlocks
from keepers.data.blocks.local import LocalBlocks
from keepers.data.blocks.opening import open_blocks
from keepers.data.dask_blocks import DaskBlocks, is_dask
from keepers.exceptions import ParameterError

__all__ = ["as_blocks", "is_large_map"]

LARGE_MAP = 256 * 2**20


def is_large_map(X: Any) -> bool:
    """Whether X is a memory map too large to be taken into memory without need."""
    return isinstance(X, np.memmap) and X.ndim == 2 and X.nbytes >= LARGE_MAP


def as_blocks(source: Any) -> BlockTable:
    """The rows of ``source`` in blocks."""
    if isinstance(source, (LocalBlocks, DaskBlocks)):
        return source
    if is_dask(source):
        return DaskBlocks.of(source)
    if isinstance(source, (str, Path)):
        return open_blocks(source)
    if isinstance(source, np.memmap) and _is_whole_file_array(source):
        shape = (int(source.shape[0]), int(source.shape[1]))
        path = Path(str(source.filename))
        return RawFileBlocks(path, source.offset, shape, source.dtype, path.name)
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
        f"an iterator, an iterator or a Dask collection; got a {type(source).__name__}."
    )


def _sequence(source: Sequence[Any]) -> BlockTable:
    if source and all(isinstance(part, (str, Path)) for part in source):
        return open_blocks(list(source))
    return GivenBlocks(lambda: source, "the list")


def _is_whole_file_array(X: Any) -> bool:
    """Whether the file can be read instead of its map: row-major, and no slice of a larger map."""
    return (
        X.ndim == 2
        and X.flags.c_contiguous
        and X.filename is not None
        and getattr(X, "offset", None) is not None
        and not isinstance(X.base, np.memmap)
        and X.dtype.kind in "biuf"
        and X.dtype.isnative
    )
