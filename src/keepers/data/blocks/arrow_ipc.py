"""Arrow IPC files (which Feather files are) and streams, a record batch at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keepers._protocols import IndexArray
from keepers.data.blocks.batches import blocks_of_batches
from keepers.data.blocks.files import FileBlocks
from keepers.data.formats.arrow_columns import ArrowColumns, import_pyarrow, validated
from keepers.data.formats.arrow_files import stream_start
from keepers.data.formats.arrow_sizes import batch_lengths
from keepers.data.guard import reading
from keepers.data.limits import SizeLimit
from keepers.data.request import ReadRequest

__all__ = ["ArrowBlocks", "open_arrow"]


class ArrowBlocks(FileBlocks):
    """Record batches of an Arrow file or stream."""

    title = "Arrow"

    def __init__(self, path: Path, layout: ArrowColumns, n_rows: int) -> None:
        names = [layout.names[at] for at in layout.plan.features]
        super().__init__(path, names, layout.dtype, range(n_rows))
        self._layout = layout

    def _values(self, columns: IndexArray | None) -> Iterator[Any]:
        import pyarrow as pa

        features = np.array(self._layout.plan.features, dtype=np.intp)
        chosen = features if columns is None else features[columns]
        stored = self._layout.stored_features(columns)
        options = pa.ipc.IpcReadOptions(included_fields=sorted({int(at) for at in chosen}))
        with pa.memory_map(str(self.path)) as source:
            buffer = source.read_buffer().slice(stream_start(self.path))
            with pa.ipc.open_stream(buffer, options=options) as reader:
                yield from blocks_of_batches(validated(reader), stored, self.dtype)


def open_arrow(path: Path, request: ReadRequest) -> ArrowBlocks:
    """Find columns, kinds and number of rows; no values are read."""
    with reading(path, ArrowBlocks.title):
        pa = import_pyarrow()
        start = stream_start(path)
        with pa.memory_map(str(path)) as source:
            buffer = source.read_buffer().slice(start)
            lengths = batch_lengths(buffer, SizeLimit.of(None))
            with pa.ipc.open_stream(buffer) as reader:
                layout = ArrowColumns.of(reader.schema, request)
        return ArrowBlocks(path, layout, sum(lengths))
