"""Plain HDF5 files: one two-dimensional array of numbers, somewhere in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keepers._protocols import IndexArray
from keepers.data.blocks.local import BLOCK_BYTES, rows_at_once
from keepers.data.blocks.matrices import MatrixBlocks
from keepers.data.columns import numbered_names
from keepers.data.formats.hdf5 import hard_linked, open_hdf5_numbers, refuse_unsound
from keepers.data.guard import reading
from keepers.data.request import ReadRequest
from keepers.data.wording import closest, listed
from keepers.exceptions import DataError, shortened

__all__ = ["DatasetBlocks", "open_hdf5_file"]

_LARGEST_BAND = 8 * BLOCK_BYTES


class DatasetBlocks(MatrixBlocks):
    """Rows of a two-dimensional array in an HDF5 file."""

    title = "HDF5"

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
            for start, stop in _bands(self._here, node):
                rows = node[start:stop]
                yield rows if chosen is None else rows[:, chosen]


def open_hdf5_file(path: Path, request: ReadRequest, dataset: str | None = None) -> DatasetBlocks:
    """Find the array, its shape and kind of numbers; no values are read."""
    with reading(path, DatasetBlocks.title), open_hdf5_numbers(path) as file:
        node = _only_matrix(file) if dataset is None else member(file, dataset)
        refuse_unsound(node, request.limit)
        if node.ndim != 2:
            raise DataError(
                f"A table has two dimensions (samples, features); {shortened(node.name)} has "
                f"{node.ndim}. Reshape it, or name another array (dataset=)."
            )
        return DatasetBlocks(path, node, numbered_names(node.shape[1]), request)


def member(file: Any, name: str) -> Any:
    """What stands at a path in the file; links to other files are not followed."""
    node = file
    for part in name.strip("/").split("/"):
        if not hasattr(node, "keys") or part not in node:
            known = list(_matrices(file))
            raise DataError(
                f"There is no array {shortened(name)}.{closest(name, known)} With two dimensions "
                f"there are {listed([repr(key) for key in known]) or 'none'}."
            )
        node = hard_linked(node, part)
    return node


def _only_matrix(file: Any) -> Any:
    found = _matrices(file)
    if len(found) == 1:
        return next(iter(found.values()))
    told = listed(
        [f"{shortened(name)} ({' x '.join(map(str, node.shape))})" for name, node in found.items()]
    )
    raise DataError(
        "A file must hold one array of numbers with two dimensions, or its name must be given "
        f"(dataset=); this one holds {told or 'none'}."
    )


def _matrices(file: Any) -> dict[str, Any]:
    """All two-dimensional arrays of numbers in a file, in whatever group."""
    import h5py

    found = {}

    def look(name: str, node: Any) -> None:
        is_array = isinstance(node, h5py.Dataset) and node.shape is not None
        if is_array and node.ndim == 2 and node.dtype.kind in "biuf":
            found[name] = node

    file.visititems(look)  # follows no link to another file, and no circle
    return found


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
