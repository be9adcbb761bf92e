"""Columnar files: Parquet, and Arrow IPC as .arrow or .feather."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.columns import ColumnPlan, plan_columns, refuse_text, settled_names
from keepers.data.formats.arrow_sizes import refuse_bombs
from keepers.data.growing import GrowingMatrix
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError, MissingDependencyError

__all__ = ["read_arrow", "read_parquet"]

_BATCH_BYTES = 64 * 2**20
_FEWEST_ROWS = 64
_FEATHER_1 = b"FEA1"
_ARROW_FILE = b"ARROW1"
_FILE_PREFIX = 8  # the magic and two bytes of padding; then follows a stream


def read_parquet(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a Parquet file; only the row group at hand is in memory besides the matrix."""
    _pyarrow()
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        columns = _Columns.of(file.schema_arrow, request)
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
    pa = _pyarrow()
    with path.open("rb") as stream:
        head = stream.read(_FILE_PREFIX)
    if head.startswith(_FEATHER_1):
        raise DataError("Feather is read from version 2 on; this is version 1. Write it again.")
    with pa.memory_map(str(path)) as source:
        buffer = source.read_buffer()
        if head.startswith(_ARROW_FILE):
            buffer = buffer.slice(_FILE_PREFIX)
        refuse_bombs(buffer, request.limit)
        with pa.ipc.open_stream(buffer) as reader:
            columns = _Columns.of(reader.schema, request)
            return _assembled(_validated(reader), columns, request, path.stem)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingDependencyError(
            'Parquet and Arrow files need pyarrow: pip install "keepers[io]".'
        ) from error
    return pa


def _validated(batches: Iterable[Any]) -> Iterator[Any]:
    """Arrow trusts the offsets in a file; these are proven before anything follows them."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


@dataclass(frozen=True)
class _Columns:
    """Columns as stored, as they will be named, and what each is for."""

    stored: list[str]
    names: list[str]
    plan: ColumnPlan
    dtype: type

    @classmethod
    def of(cls, schema: Any, request: ReadRequest) -> "_Columns":
        names = settled_names(schema.names)
        plan = plan_columns(names, request, index=_pandas_index(schema))
        types = schema.types  # made anew at every access: slow in a wide table
        kinds = [types[at] for at in plan.features]
        refuse_text(
            [
                names[at]
                for at, kind in zip(plan.features, kinds, strict=True)
                if not _is_numeric(kind)
            ]
        )
        single = all(str(kind) in ("float", "halffloat") for kind in kinds)
        return cls(list(schema.names), names, plan, np.float32 if single else np.float64)

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    def needed(self) -> list[str] | None:
        """Stored names of the columns to read; None for all."""
        positions = {*self.plan.features, self.plan.labels, self.plan.identifier} - {None}
        if len(positions) == len(self.stored):
            return None
        return [name for at, name in enumerate(self.stored) if at in positions]


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _pandas_index(schema: Any) -> int | None:
    """Position of the column in which pandas stored the row index, if it did."""
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return None
    try:
        index = json.loads(described)["index_columns"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(index, list) and len(index) == 1 and isinstance(index[0], str):
        position = schema.get_field_index(index[0])
        return position if position >= 0 else None
    return None


def _assembled(
    batches: Iterable[Any], columns: _Columns, request: ReadRequest, name: str
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
        X.finished(),
        np.array([columns.names[at] for at in plan.features], dtype=object),
        None if plan.identifier is None else as_names(_objects(samples), "identifier"),
        None if plan.labels is None else as_labels(_classes(labels), str(request.labels)),
        name,
    )


def _values(stored: dict[str, Any], n_rows: int, columns: _Columns) -> Any:
    """Rows x features; a missing value is NaN."""
    import pyarrow as pa

    target = pa.float32() if columns.dtype is np.float32 else pa.float64()
    arrays = []
    for at in columns.plan.features:
        array = stored[columns.stored[at]]
        if array.type != target:
            array = _cast(array, target, columns.names[at])
        arrays.append(array)
    if n_rows == 0:
        return np.empty((0, len(arrays)), dtype=columns.dtype)
    plain = pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])
    return plain.to_tensor(null_to_nan=True).to_numpy()


def _cast(array: Any, target: Any, name: str) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    try:
        return array.cast(target)  # refuses whole numbers past 2**53
    except pa.ArrowInvalid as error:
        raise DataError(
            f"Column {name!r} holds numbers that float64 cannot hold exactly. If it is an "
            "identifier, name it so (identifier=, --id) or leave it out (drop=, --drop)."
        ) from error


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
