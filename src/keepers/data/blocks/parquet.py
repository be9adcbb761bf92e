"""Parquet files, read a batch of rows at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.batches import blocks_of_batches
from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.local import BLOCK_BYTES, LocalBlocks, rows_at_once
from keepers.data.blocks.splitting import shares
from keepers.data.formats.arrow_columns import ArrowColumns, import_pyarrow
from keepers.data.guard import reading
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError

__all__ = ["ParquetBlocks", "open_parquet"]

# Of every column this much is read at a time. Without it, or with pre_buffer, pyarrow holds a whole
# row group as stored: 127 MB more for 250,000 x 100 single-precision values, and no sooner read.
_BUFFER_BYTES = 2**16
# Starting a column costs as much as decoding a thousand values, so a batch of a wide table is
# larger than a block.
_FEWEST_ROWS, _LARGEST_BATCH = 1024, 8 * BLOCK_BYTES


class ParquetBlocks(FileBlocks):
    """Row groups of a Parquet file."""

    title = "Parquet"

    def __init__(self, path: Path, layout: ArrowColumns, group_sizes: list[int]) -> None:
        names = [layout.names[at] for at in layout.plan.features]
        super().__init__(path, names, layout.dtype, range(sum(group_sizes)))
        self._layout = layout
        self._group_sizes = group_sizes
        self._groups = range(len(group_sizes))

    def _values(self, columns: IndexArray | None) -> Iterator[Any]:
        stored = self._layout.stored_features(columns)
        with open_parquet_file(self.path) as file:
            if len(self._group_sizes) != file.num_row_groups:
                raise DataError("It was changed since it was opened. Open it again.")
            batches = file.iter_batches(
                batch_size=_batch_rows(len(stored), self.dtype.itemsize),
                row_groups=list(self._groups),
                columns=None if len(stored) == len(self._layout.stored) else stored,
            )
            yield from blocks_of_batches(batches, stored, self.dtype)

    def parts(self, n_parts: int) -> list[LocalBlocks]:
        """The same rows in about ``n_parts`` tables of whole row groups."""
        sizes = self._group_sizes[self._groups.start : self._groups.stop]
        assert self.rows is not None
        starts = self.rows.start + np.cumsum([0, *sizes])
        tables: list[LocalBlocks] = []
        for share in shares(sizes, n_parts):
            part = self.of_rows(range(int(starts[share.start]), int(starts[share.stop])))
            part._groups = range(self._groups.start + share.start, self._groups.start + share.stop)
            tables.append(part)
        return tables


def open_parquet(path: Path, request: ReadRequest) -> ParquetBlocks:
    """Find columns, kinds and number of rows; no values are read."""
    with reading(path, ParquetBlocks.title):
        import_pyarrow()
        with open_parquet_file(path) as file:
            layout = ArrowColumns.of(file.schema_arrow, request)
            metadata = file.metadata
            sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
            if sum(sizes) != metadata.num_rows or min(sizes, default=0) < 0:
                raise DataError(
                    f"It declares {metadata.num_rows} rows, and {sum(sizes)} in its row groups: "
                    "it is damaged. Obtain or write it again."
                )
        return ParquetBlocks(path, layout, sizes)


def open_parquet_file(path: Path) -> Any:
    """Open for reading in bounded memory; a context manager."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        path, pre_buffer=False, buffer_size=_BUFFER_BYTES, page_checksum_verification=True
    )


def _batch_rows(n_columns: int, itemsize: int) -> int:
    largest = rows_at_once(n_columns, itemsize, _LARGEST_BATCH)
    return max(rows_at_once(n_columns, itemsize), min(_FEWEST_ROWS, largest))
