"""Plain HDF5 files: one two-dimensional array of numbers, somewhere in them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepers._protocols import IndexArray
from keepers.data.blocks.local import BLOCK_BYTES, rows_at_once
from keepers.data.blocks.matrices import MatrixBlocks
from keepers.data.formats.hdf5 import open_hdf5_numbers, refuse_unsound
from keepers.data.formats.hdf5_chunks import refuse_short_chunks
from keepers.data.formats.hdf5_tables import find_matrix, is_vector, member, names_of
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError

__all__ = ["DatasetBlocks", "open_hdf5_file"]

_LARGEST_BAND = 8 * BLOCK_BYTES


class DatasetBlocks(MatrixBlocks):
    """Rows of a two-dimensional array in an HDF5 file."""

    title = "HDF5"
    _proven = False
    """Whether the chunks were seen to be whole, which costs as much as reading them."""

    def __init__(self, path: Path, node: Any, names: list[str], request: ReadRequest) -> None:
        n_rows, _ = node.shape
        super().__init__(path, names, request, n_rows, node.dtype)
        self._dataset = str(node.name)
        self._limit = request.limit

    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        with open_hdf5_numbers(self.path) as file:
            node = member(file, self._dataset)
            refuse_unsound(node, self._limit)
            if node.shape[1:] != (self._width,) or node.shape[0] < self._here.stop:
                raise DataError("It was changed since it was opened. Open it again.")
            if not self._proven:
                refuse_short_chunks(node, self._here.start, self._here.stop)
                self._proven = True
            for start, stop in _bands(self._here, node):
                rows = node[start:stop]
                yield rows if chosen is None else rows[:, chosen]


def open_hdf5_file(path: Path, request: ReadRequest) -> DatasetBlocks:
    """Find the array, its shape and kind of numbers; no values are read."""
    with reading(path, DatasetBlocks.title), open_hdf5_numbers(path) as file:
        node = find_matrix(file, request.dataset, request.limit)
        # Labels and sample names may be arrays of their own, which are no columns.
        labels, identifier = (
            None if name is not None and is_vector(file, name) else name
            for name in (request.labels, request.identifier)
        )
        columns = replace(request, labels=labels, identifier=identifier)
        return DatasetBlocks(path, node, names_of(node), columns)


def _bands(rows: range, node: Any) -> Iterator[tuple[int, int]]:
    """Stretches of rows; they end where chunks end, so that no chunk is expanded twice."""
    n_columns, itemsize = node.shape[1], node.dtype.itemsize
    step = rows_at_once(n_columns, itemsize)
    tall = 1 if node.chunks is None else node.chunks[0]
    if tall <= rows_at_once(n_columns, itemsize, _LARGEST_BAND):
        step = max(1, step // tall) * tall
    start = rows.start
    while start < rows.stop:
        stop = min(start // step * step + step, rows.stop)
        yield start, stop
        start = stop
