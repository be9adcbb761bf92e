"""AnnData files (.h5ad): X by rows, dense or sparse, read with h5py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.hdf5_file import DatasetBlocks
from keepers.data.blocks.local import BLOCK_BYTES, even_ranges
from keepers.data.blocks.matrices import MatrixBlocks
from keepers.data.columns import settled_names
from keepers.data.formats.h5ad import (
    column_of,
    index_name,
    is_stored_sparse,
    refuse_parts_absent,
    sparse_layout,
)
from keepers.data.formats.hdf5 import hard_linked, open_hdf5, open_hdf5_numbers, refuse_unsound
from keepers.data.formats.hdf5_chunks import refuse_short_chunks
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.limits import refuse_columns
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest
from keepers.data.values import as_names
from keepers.exceptions import DataError

__all__ = ["CellBlocks", "SparseCellBlocks", "open_h5ad"]

_STARTS_AT_ONCE = 2**18
_UNSOUND = (
    "The row pointers of X ('indptr') must rise from 0 to the number of its entries; here they do "
    "not: the file is damaged. Obtain or write it again."
)


class CellBlocks(DatasetBlocks):
    """Rows of a dense X."""

    title = "AnnData"


class SparseCellBlocks(MatrixBlocks):
    """Rows of a CSR X, cut out of its stored parts."""

    title = "AnnData"
    is_sparse = True
    _proven = False
    """Whether the chunks were seen to be whole, which costs as much as reading them."""

    def __init__(self, path: Path, node: Any, names: list[str], request: ReadRequest) -> None:
        parts = _checked_parts(node, request)
        n_entries = int(parts["data"].shape[0])
        n_rows = parts["indptr"].shape[0] - 1
        super().__init__(path, names, request, n_rows, parts["data"].dtype, n_entries)
        self._request = request

    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        with open_hdf5_numbers(self.path) as file:
            parts = _checked_parts(hard_linked(file, "X"), self._request)
            self._prove(parts)
            entry_bytes = parts["data"].dtype.itemsize + parts["indices"].dtype.itemsize
            most = max(1, BLOCK_BYTES // entry_bytes)
            for first in range(self._here.start, self._here.stop, _STARTS_AT_ONCE):
                last = min(first + _STARTS_AT_ONCE, self._here.stop)
                starts = _sound_starts(parts, first, last)
                for top, bottom in _row_cuts(starts, most):
                    rows = self._rows(parts, starts[top : bottom + 1])
                    yield rows if chosen is None else rows[:, chosen]

    def _prove(self, parts: dict[str, Any]) -> None:
        if self._proven:
            return
        starts = parts["indptr"]
        refuse_short_chunks(starts)
        first, stop = (int(starts[at]) for at in (self._here.start, self._here.stop))
        for name in ("data", "indices"):
            refuse_short_chunks(parts[name], first, stop)
        self._proven = True

    def _rows(self, parts: dict[str, Any], starts: Any) -> Any:
        entries = slice(int(starts[0]), int(starts[-1]))
        return build_compressed(
            parts["data"][entries],
            parts["indices"][entries],
            starts - starts[0],
            (len(starts) - 1, self._width),
            by_rows=True,
            what="X",
        )

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows as ``n_parts`` ranges of them."""
        ranges = even_ranges(self._here, n_parts)
        with reading(self.path, self.title), open_hdf5_numbers(self.path) as file:
            starts = _checked_parts(hard_linked(file, "X"), self._request)["indptr"]
            refuse_short_chunks(starts)
            bounds = [int(starts[at]) for at in (*(rows.start for rows in ranges), self._here.stop)]
            if bounds[0] < 0 or bounds != sorted(bounds):
                raise DataError(_UNSOUND)
            counts = np.diff(bounds).tolist()
            return [
                self._with_entries(rows, count) for rows, count in zip(ranges, counts, strict=True)
            ]

    def _with_entries(self, rows: range, n_entries: int) -> Self:
        part = self.of_rows(rows)
        part.n_stored = n_entries
        return part


def open_h5ad(path: Path, request: ReadRequest) -> CellBlocks | SparseCellBlocks:
    """Find names, shape and kind of numbers; labels and identifier are columns of obs."""
    with reading(path, CellBlocks.title), open_hdf5(path) as file:
        refuse_parts_absent(file)
        obs, var, node = (hard_linked(file, part) for part in ("obs", "var", "X"))
        for name in (request.labels, request.identifier):
            if name is not None:
                column_of(obs, name, request)
        names = settled_names(list(as_names(column_of(var, index_name(var), request), "var")))
        roles = ReadRequest(None, None, request.drop, request.limit)
        if is_stored_sparse(node):
            shape, by_rows = sparse_layout(node)
            _refuse_by_columns(by_rows)
            _refuse_other_count(names, shape[1])
            return SparseCellBlocks(path, node, names, roles)
        refuse_unsound(node, request.limit)
        if node.ndim != 2:
            raise DataError(f"X has two dimensions (samples, features); here it has {node.ndim}.")
        _refuse_other_count(names, node.shape[1])
        return CellBlocks(path, node, names, roles)


def _checked_parts(node: Any, request: ReadRequest) -> dict[str, Any]:
    """The stored parts of a CSR matrix, proven to fit together in number."""
    if not is_stored_sparse(node):
        raise DataError("It was changed since it was opened. Open it again.")
    (n_rows, _), by_rows = sparse_layout(node)
    _refuse_by_columns(by_rows)
    parts = {name: hard_linked(node, name) for name in ("data", "indices", "indptr")}
    for part in parts.values():
        refuse_unsound(part, request.limit)
    shapes = {name: part.shape for name, part in parts.items()}
    if shapes["data"] != shapes["indices"] or shapes["indptr"] != (n_rows + 1,):
        raise DataError(
            f"The parts of X must fit together; here they have shapes {shapes} for {n_rows} rows: "
            "the file is damaged. Obtain or write it again."
        )
    for name in ("indices", "indptr"):
        if parts[name].dtype.kind not in "iu":
            raise DataError(
                f"The {name} of X must be integers; they are {parts[name].dtype}: the file is "
                "damaged. Obtain or write it again."
            )
    return parts


def _sound_starts(parts: dict[str, Any], first: int, last: int) -> Any:
    """Where the rows from ``first`` to ``last`` begin and the last one ends, proven to rise."""
    n_rows, n_entries = parts["indptr"].shape[0] - 1, parts["data"].shape[0]
    starts = parts["indptr"][first : last + 1]
    sound = (
        int(starts[0]) >= 0
        and int(starts[-1]) <= n_entries
        and (first > 0 or int(starts[0]) == 0)
        and (last < n_rows or int(starts[-1]) == n_entries)
        and not np.any(starts[1:] < starts[:-1])
    )
    if not sound:
        raise DataError(_UNSOUND)
    return starts.astype(np.int64)


def _row_cuts(starts: Any, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold at most so many entries, or one row."""
    top, n_rows = 0, len(starts) - 1
    while top < n_rows:
        reached = int(np.searchsorted(starts, starts[top] + most, side="right")) - 1
        bottom = max(top + 1, min(reached, n_rows))
        yield top, bottom
        top = bottom


def _refuse_by_columns(by_rows: bool) -> None:
    if not by_rows:
        raise DataError(
            "X must be stored by rows to be read in blocks of rows; here it is stored by columns "
            "(CSC). Convert it once where it fits in memory: adata.X = adata.X.tocsr(), then "
            "adata.write_h5ad(...)."
        )


def _refuse_other_count(names: list[str], n_columns: int) -> None:
    refuse_columns(n_columns, "X")
    if len(names) != n_columns:
        raise DataError(
            f"var must name every column of X; it has {len(names)} names and X has {n_columns} "
            "columns: the file is damaged. Obtain or write it again."
        )
