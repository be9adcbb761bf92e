"""Columnar files: Parquet, and Arrow IPC as .arrow or .feather."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.blocks.files import GrowingMatrix
from keepers.data.formats.arrow_columns import ArrowColumns, import_pyarrow
from keepers.data.formats.arrow_sizes import is_ipc_file, refuse_bombs
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError

__all__ = ["batches_of", "map_ipc", "open_ipc", "read_arrow", "read_parquet"]

_BATCH_BYTES = 64 * 2**20
_FEWEST_ROWS = 64
_FEATHER_1 = b"FEA1"


def read_parquet(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a Parquet file; only the row group at hand is in memory besides the matrix."""
    import_pyarrow()
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        columns = ArrowColumns.of(file.schema_arrow, request)
        metadata = file.metadata
        shape = (metadata.num_rows, len(columns.plan.features))
        request.limit.refuse_shape(shape, columns.itemsize, "The table")
        expanded = sum(
            max(0, metadata.row_group(at).total_byte_size) for at in range(metadata.num_row_groups)
        )
        request.limit.refuse_past(expanded, "The table, expanded,")
        batches = file.iter_batches(
            batch_size=max(_FEWEST_ROWS, _BATCH_BYTES // (8 * len(columns.stored))),
            columns=columns.needed(),
        )
        return _assembled(batches, columns, request, path.stem)


def read_arrow(path: Path, request: ReadRequest) -> LabelledTable:
    """Read Arrow IPC, as file (which Feather is) or stream."""
    with map_ipc(path) as content:
        refuse_bombs(content, request.limit)
        with open_ipc(content) as reader:
            columns = ArrowColumns.of(reader.schema, request)
            return _assembled(batches_of(reader), columns, request, path.stem)


@contextmanager
def map_ipc(path: Path) -> Iterator[Any]:
    """The content of a file as a buffer of mapped memory."""
    pa = import_pyarrow()
    with pa.memory_map(str(path)) as source:
        content = source.read_buffer()
        if bytes(memoryview(content)[: len(_FEATHER_1)]) == _FEATHER_1:
            raise DataError("Feather is read from version 2 on; this is version 1. Write it again.")
        yield content


def open_ipc(content: Any, options: Any = None) -> Any:
    """A reader of record batches, by the footer if there is one; a context manager."""
    import pyarrow as pa

    opened = pa.ipc.open_file if is_ipc_file(content) else pa.ipc.open_stream
    return opened(content, options=options)


def batches_of(reader: Any) -> Iterator[Any]:
    """The record batches of an open reader.

    Arrow trusts the offsets in a file; these are proven before anything follows them.
    """
    count = getattr(reader, "num_record_batches", None)
    for batch in reader if count is None else map(reader.get_batch, range(count)):
        batch.validate(full=True)
        yield batch


def _assembled(
    batches: Iterable[Any], columns: ArrowColumns, request: ReadRequest, name: str
) -> LabelledTable:
    plan = columns.plan
    X = GrowingMatrix(len(plan.features), request.limit, columns.dtype)
    labels: list[Any] = []
    samples: list[Any] = []
    for batch in batches:
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        X.append(_values(arrays, batch.num_rows, columns))
        if plan.labels is not None:
            labels.extend(arrays[columns.stored[plan.labels]].to_pylist())
        if plan.identifier is not None:
            samples.extend(arrays[columns.stored[plan.identifier]].to_pylist())
    return LabelledTable(
        X.finish(),
        np.array([columns.names[at] for at in plan.features], dtype=object),
        None if plan.identifier is None else as_names(_objects(samples), "identifier"),
        None if plan.labels is None else as_labels(_classes(labels), str(request.labels)),
        name,
    )


def _values(stored: dict[str, Any], n_rows: int, columns: ArrowColumns) -> Any:
    """Rows x features; a missing value is NaN."""
    import pyarrow as pa

    arrays = columns.features_of(stored)
    if n_rows == 0:
        return np.empty((0, len(arrays)), dtype=columns.dtype)
    plain = pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])
    return plain.to_tensor(null_to_nan=True).to_numpy()


def _objects(values: list[Any]) -> Any:
    """An object array of one dimension, even if its entries are lists."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _classes(labels: list[Any]) -> Any:
    """Whole numbers stay numbers, everything else becomes text; None is missing."""
    if labels and all(isinstance(label, bool | int) for label in labels):
        return np.array(labels)
    if labels and all(isinstance(label, float) for label in labels):
        return np.array(labels)
    return _objects([None if label is None else str(label) for label in labels])
