"""Arrow IPC files (which Feather files are) and streams, a record batch at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.batches import blocks_of_batches
from keepers.data.blocks.files import FileBlocks, Rows
from keepers.data.formats.arrow_columns import ArrowColumns
from keepers.data.formats.arrow_files import batches_of, map_ipc, open_ipc
from keepers.data.formats.arrow_sizes import batch_lengths
from keepers.data.limits import SizeLimit
from keepers.data.read_errors import reading
from keepers.data.request import ReadRequest

__all__ = ["ArrowBlocks", "open_arrow"]


class ArrowBlocks(FileBlocks):
    """Record batches of an Arrow file or stream."""

    title = "Arrow"

    def __init__(self, path: Path, layout: ArrowColumns, n_rows: int) -> None:
        names = [layout.names[at] for at in layout.plan.features]
        super().__init__(path, names, layout.dtype, range(n_rows))
        self._layout = layout

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        import pyarrow as pa

        features = np.array(self._layout.plan.features, dtype=np.intp)
        chosen = features if columns is None else features[columns]
        stored = self._layout.stored_features(columns)
        options = pa.ipc.IpcReadOptions(included_fields=sorted({int(at) for at in chosen}))
        with map_ipc(self.path) as content, open_ipc(content, options) as reader:
            yield from map(Rows, blocks_of_batches(batches_of(reader), stored, self.dtype))


def open_arrow(path: Path, request: ReadRequest) -> ArrowBlocks:
    """Find columns, kinds and number of rows; no values are read."""
    with reading(path, ArrowBlocks.title), map_ipc(path) as content:
        lengths = batch_lengths(content, SizeLimit.of(None))
        with open_ipc(content) as reader:
            layout = ArrowColumns.of(reader.schema, request)
        return ArrowBlocks(path, layout, sum(lengths))
