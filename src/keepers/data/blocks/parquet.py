"""Parquet files, read a batch of rows at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.batches import blocks_of_batches
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.blocks.local import BLOCK_BYTES, rows_at_once, shares
from keepers.data.formats.arrow_columns import ArrowColumns, import_pyarrow
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError

__all__ = ["ParquetBlocks", "open_parquet"]

# pyarrow holds a whole row group as stored, unless it is told how much of each column to read at
# a time: 127 MB less for 250,000 x 100 values in single precision. Small groups come sooner whole.
_LARGEST_WHOLE_GROUP = 2**26
_LEAST_BUFFER, _LARGEST_BUFFER, _ALL_BUFFERS = 2**12, 2**16, 2**26
# A batch of a wide table is larger than a block, since every column of it has to be started: for
# 5,000 x 20,000 values, 12 s in batches of 209 rows and 3 s in batches of 1,024.
_FEWEST_ROWS, _LARGEST_BATCH = 1024, 8 * BLOCK_BYTES


class ParquetBlocks(FileBlocks):
    """Row groups of a Parquet file."""

    title = "Parquet"

    def __init__(
        self, path: Path, layout: ArrowColumns, group_sizes: list[int], largest_group: int
    ) -> None:
        names = [layout.names[at] for at in layout.plan.features]
        super().__init__(path, names, layout.dtype, range(sum(group_sizes)))
        self._layout = layout
        self._group_sizes = group_sizes
        self._largest_group = largest_group
        self._groups = range(len(group_sizes))

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        stored = self._layout.stored_features(columns)
        with _opened(self.path, _buffer_bytes(self._largest_group, len(stored))) as file:
            if len(self._group_sizes) != file.num_row_groups:
                raise DataError("It was changed since it was opened. Open it again.")
            batches = file.iter_batches(
                batch_size=_batch_rows(len(stored), self.dtype.itemsize),
                row_groups=list(self._groups),
                columns=None if len(stored) == len(self._layout.stored) else stored,
            )
            yield from map(Rows, blocks_of_batches(batches, stored, self.dtype))

    def parts(self, n_parts: int) -> list[Self]:
        """The same rows in about ``n_parts`` tables of whole row groups."""
        sizes = self._group_sizes[self._groups.start : self._groups.stop]
        assert self.rows is not None
        starts = self.rows.start + np.cumsum([0, *sizes])
        tables: list[Self] = []
        for share in shares(sizes, n_parts):
            part = self.of_rows(range(int(starts[share.start]), int(starts[share.stop])))
            part._groups = range(self._groups.start + share.start, self._groups.start + share.stop)
            tables.append(part)
        return tables


def open_parquet(path: Path, request: ReadRequest) -> ParquetBlocks:
    """Find columns, kinds and number of rows; no values are read."""
    with reading(path, ParquetBlocks.title):
        import_pyarrow()
        with _opened(path, _LEAST_BUFFER) as file:
            layout = ArrowColumns.of(file.schema_arrow, request)
            metadata = file.metadata
            groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
            sizes = [group.num_rows for group in groups]
            largest = max((group.total_byte_size for group in groups), default=0)
            if sum(sizes) != metadata.num_rows or min(sizes, default=0) < 0:
                raise DataError(
                    f"It declares {metadata.num_rows} rows, and {sum(sizes)} in its row groups: "
                    "it is damaged. Obtain or write it again."
                )
        return ParquetBlocks(path, layout, sizes, largest)


def _opened(path: Path, buffer_bytes: int) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        path, pre_buffer=False, buffer_size=buffer_bytes, page_checksum_verification=True
    )


def _buffer_bytes(largest_group: int, n_columns: int) -> int:
    """How much of a column is read at a time; 0 for all of a row group."""
    if largest_group <= _LARGEST_WHOLE_GROUP:
        return 0
    return min(_LARGEST_BUFFER, max(_LEAST_BUFFER, _ALL_BUFFERS // n_columns))


def _batch_rows(n_columns: int, itemsize: int) -> int:
    largest = rows_at_once(n_columns, itemsize, _LARGEST_BATCH)
    return max(rows_at_once(n_columns, itemsize), min(_FEWEST_ROWS, largest))
