"""Columnar files, read: Parquet, and Arrow IPC as .feather, .arrow or .ipc."""

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from keepers._packages import optional
from keepers._protocols import IndexArray
from keepers.data.blocks.files import FileBlocks, Rows, reading
from keepers.data.blocks.local import BLOCK_BYTES, rows_at_once, shares
from keepers.data.columns import OtherColumn, as_texts
from keepers.data.limits import LARGEST_EXACT_INTEGER
from keepers.data.table import (
    ColumnPlan,
    ReadRequest,
    plan_columns,
    refuse_text,
    unique_names,
)
from keepers.data.values import as_labels, as_names
from keepers.exceptions import DataError, shorten

Order = Literal["C", "F"]
_UNNAMED_LEVEL = re.compile(r"__index_level_\d+__")
_ARROW_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"
# pyarrow holds a whole row group as stored, unless it is told how much of each column to read at
# a time: 127 MB less for 250,000 x 100 values in single precision. Small groups come sooner whole.
_LARGEST_WHOLE_GROUP = 2**26
_LEAST_BUFFER, _LARGEST_BUFFER, _ALL_BUFFERS = 2**12, 2**16, 2**26
# A batch of a wide table is larger than a block, since every column of it has to be started: for
# 5,000 x 20,000 values, 12 s in batches of 209 rows and 3 s in batches of 1,024.
_FEWEST_ROWS, _LARGEST_BATCH = 1024, 8 * BLOCK_BYTES


def _pyarrow(module: str = "pyarrow") -> Any:
    return optional(module, "Parquet and Arrow files")


@dataclass(frozen=True)
class ArrowColumns:
    """Columns as stored, as they will be named, and what each is for."""

    stored: list[str]
    names: list[str]
    plan: ColumnPlan
    dtype: type
    types: Mapping[str, Any]
    """Of the columns that are stored otherwise than as float64."""

    @classmethod
    def of(cls, schema: Any, request: ReadRequest) -> "ArrowColumns":
        """Give the columns of a schema their roles; refuse features that hold no numbers."""
        names = unique_names(schema.names)
        levels = _index_levels(schema)
        index = levels[0] if len(levels) == 1 else None
        stored = schema.types  # made anew at every access: slow in a wide table
        types = _pyarrow("pyarrow.types")
        values = [_value_type(kind, types) for kind in stored]
        others = {
            name for name, kind in zip(names, values, strict=True) if not _is_numeric(kind, types)
        }
        plan = plan_columns(names, request, index=index, levels=levels, other_names=others)
        refuse_text([names[at] for at in plan.features if names[at] in others])
        kinds = [str(values[at]) for at in plan.features]
        single = bool(kinds) and all(kind in ("float", "halffloat") for kind in kinds)
        given = {
            names[at]: stored[at]
            for at in (*plan.features, *plan.others)
            if str(stored[at]) != "double"
        }
        return cls(list(schema.names), names, plan, np.float32 if single else np.float64, given)


def _is_numeric(kind: Any, types: Any) -> bool:
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _value_type(kind: Any, types: Any) -> Any:
    """The type of the values, which may be stored once each in a dictionary."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _index_levels(schema: Any) -> list[int]:
    """Positions of the columns in which pandas stored the row index, if it did.

    Without the metadata of pandas, which other programs do not pass on, the names tell that it
    gives to levels without one.
    """
    stored = _described_index(schema)
    names = schema.names
    return [at for at, name in enumerate(names) if name in stored or _UNNAMED_LEVEL.fullmatch(name)]


def _described_index(schema: Any) -> set[str]:
    described = (schema.metadata or {}).get(b"pandas")
    if described is None:
        return set()
    try:
        index = json.loads(described)["index_columns"]
    except (ValueError, KeyError, TypeError):
        return set()
    # An index that only counts is described, not stored.
    return {name for name in index if isinstance(name, str)} if isinstance(index, list) else set()


class ColumnBlocks(FileBlocks):
    """Rows of a columnar file; a format implements ``_batches``."""

    def __init__(self, path: Path, layout: ArrowColumns, n_rows: int, request: ReadRequest) -> None:
        names = [layout.names[at] for at in layout.plan.features]
        super().__init__(path, names, layout.dtype, range(n_rows))
        self.types = layout.types
        self._layout: ArrowColumns = layout
        self._label_name = str(request.labels)
        self._whole = request.whole
        self._mixed = request.mixed

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Columns that are handed over as text or dates."""
        return tuple(self._layout.names[at] for at in self._layout.plan.others)

    def with_texts(self, names: Sequence[str]) -> Self:
        """The same table, of which some columns are to be read as text."""
        layout = self._layout
        plan = layout.plan.with_texts(layout.names, names) if self._mixed else layout.plan
        features = [layout.names[at] for at in plan.features]
        return self._with(
            _layout=replace(layout, plan=plan),
            feature_names=np.array(features, dtype=object),
            n_features=len(features),
        )

    @abstractmethod
    def _batches(self, positions: Sequence[int]) -> Iterator[Any]:
        """Record batches with the columns at these positions in the file, in any order."""

    def _read(self, columns: IndexArray | None, annotated: bool) -> Iterator[Rows]:
        plan, stored = self._layout.plan, self._layout.stored
        features = plan.features if columns is None else [plan.features[at] for at in columns]
        roles = [plan.labels, plan.identifier] if annotated else [None, None]
        beside = plan.others if annotated else ()
        wanted = [*features, *(at for at in roles if at is not None), *beside]
        feature_names = [stored[at] for at in features]
        n_rows = rows_at_once(len(features), self.dtype.itemsize)
        order: Order = "F"
        if self._whole:  # wide blocks are put together faster if they are large and lie by rows
            n_rows = _batch_rows(len(features), self.dtype.itemsize)
            order = "C" if n_rows < len(features) else "F"
        for pieces in _cut(self._batches(wanted), n_rows):
            if self._mixed:
                self._refuse_rounded(pieces, features)
            values = [_values(piece, feature_names, self.dtype, order) for piece in pieces]
            notes = [
                None
                if at is None
                else list(
                    chain.from_iterable(piece.column(stored[at]).to_pylist() for piece in pieces)
                )
                for at in roles
            ]
            others = tuple(
                self._other(at, place, pieces)
                for at, place in zip(beside, plan.other_places, strict=False)
            )
            yield Rows(_stack(values, order), notes[0], notes[1], others)

    def _refuse_rounded(self, pieces: list[Any], features: Sequence[int]) -> None:
        """Raise for integers that float64 does not hold: digits that name something, as text."""
        stored, names = self._layout.stored, self._layout.names
        compute = _pyarrow("pyarrow.compute")
        rounded = [
            names[at]
            for at in features
            if str(self.types.get(names[at])) in ("int64", "uint64")
            and any(_is_rounded(piece.column(stored[at]), compute) for piece in pieces)
        ]
        refuse_text(rounded)

    def _other(self, at: int, place: int, pieces: list[Any]) -> OtherColumn:
        """A column that holds text or dates."""
        pa, layout = _pyarrow(), self._layout
        column = pa.chunked_array([piece.column(layout.stored[at]) for piece in pieces])
        return other_column(layout.names[at], column, place)

    def class_labels(self, pieces: Sequence[Any]) -> NDArray[Any]:
        """Integers and other numbers stay numbers, everything else becomes text."""
        labels = list(chain.from_iterable(pieces))
        if any(all(isinstance(label, kind) for label in labels) for kind in (int, float)):
            return as_labels(np.array(labels), self._label_name)
        texts = [None if label is None else str(label) for label in labels]
        return as_labels(_objects(texts), self._label_name)

    def row_names(self, pieces: Sequence[Any]) -> NDArray[np.object_]:
        """The sample names of all blocks as text."""
        return as_names(_objects(list(chain.from_iterable(pieces))), "identifier")


def _is_rounded(column: Any, compute: Any) -> bool:
    extremes = compute.min_max(column).as_py()
    return any(
        value is not None and abs(value) > LARGEST_EXACT_INTEGER for value in extremes.values()
    )


def other_column(name: str, column: Any, position: int) -> OtherColumn:
    """A column of Arrow that holds no numbers; what is neither text nor date as text."""
    pa = _pyarrow()
    types, kind = pa.types, column.type
    levels: tuple[str, ...] = ()
    if types.is_dictionary(kind):
        if kind.ordered and column.num_chunks:
            levels = tuple(str(level) for level in column.chunk(0).dictionary.to_pylist())
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if types.is_timestamp(kind) or types.is_date(kind):
        unit = kind.unit if types.is_timestamp(kind) else "s"
        times = column.cast(pa.timestamp(unit, getattr(kind, "tz", None)), safe=False)
        values = times.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
        return OtherColumn(name, "date", values.view(f"datetime64[{unit}]"), position)
    words = as_texts(column.to_pylist())
    return OtherColumn(name, "ordered" if levels else "text", words, position, levels)


def _cut(batches: Iterable[Any], n_rows: int) -> Iterator[list[Any]]:
    """Pieces of batches, ``n_rows`` together.

    Batches are as large as their writer made them, so a block may hold a part of one or many.
    """
    pieces: list[Any] = []
    missing = n_rows
    for batch in batches:
        taken = 0
        while taken < batch.num_rows:
            count = min(missing, batch.num_rows - taken)
            pieces.append(batch.slice(taken, count))
            taken, missing = taken + count, missing - count
            if missing == 0:
                yield pieces
                pieces, missing = [], n_rows
    if pieces:
        yield pieces


def _values(batch: Any, names: list[str], dtype: np.dtype[Any], order: Order) -> NDArray[Any]:
    """Rows x columns, copied column by column inside Arrow; a missing value is NaN."""
    pa = _pyarrow()
    if not names:  # text and dates alone
        return np.empty((batch.num_rows, 0), dtype=dtype)
    if batch.schema.names != names:
        batch = batch.select(names)
    target = pa.from_numpy_dtype(dtype)
    if any(kind != target for kind in batch.schema.types):
        columns = [
            _cast_exactly(column, target, name)
            for column, name in zip(batch.columns, names, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
    try:
        tensor = batch.to_tensor(null_to_nan=True, row_major=order == "C")
    except TypeError:  # pyarrow 16 has no other order to offer
        tensor = batch.to_tensor(null_to_nan=True)
    values: NDArray[Any] = tensor.to_numpy()
    return values


def _cast_exactly(array: Any, target: Any, name: str) -> Any:
    """A numeric column as float32 or float64; what that cannot hold is refused."""
    pa = _pyarrow()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if kind == target:
        return array
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    if pa.types.is_float16(kind):  # which older versions do not cast
        wider = array.to_numpy(zero_copy_only=False).astype(target.to_pandas_dtype())
        return pa.array(wider, from_pandas=True)
    try:
        if pa.types.is_decimal(kind) and kind.scale <= 0:  # an integer: held to the same rule
            array = array.cast(pa.int64())
        return array.cast(target)  # refuses integers past 2**53
    except pa.ArrowInvalid as error:
        raise DataError(
            f"Column {shorten(name)} holds numbers that float64 cannot hold exactly. If it is an "
            "identifier, name it so (identifier=, --id) or leave it out (drop=, --drop)."
        ) from error


def _stack(pieces: list[NDArray[Any]], order: Order) -> NDArray[Any]:
    if len(pieces) == 1:
        return pieces[0]
    n_rows, n_columns = sum(len(piece) for piece in pieces), pieces[0].shape[1]
    block = np.empty((n_rows, n_columns), dtype=pieces[0].dtype, order=order)
    return np.concatenate(pieces, out=block)


def _objects(values: list[Any]) -> NDArray[np.object_]:
    """An object array of one dimension, even if its entries are lists."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


class ParquetBlocks(ColumnBlocks):
    """Row groups of a Parquet file."""

    title = "Parquet"

    def __init__(
        self,
        path: Path,
        layout: ArrowColumns,
        group_sizes: list[int],
        largest_group: int,
        request: ReadRequest,
    ) -> None:
        super().__init__(path, layout, sum(group_sizes), request)
        self._group_sizes = group_sizes
        self._largest_group = largest_group
        self._groups = range(len(group_sizes))

    def _batches(self, positions: Sequence[int]) -> Iterator[Any]:
        stored, n_columns = self._layout.stored, len(positions)
        buffer_bytes = _buffer_bytes(self._largest_group, n_columns)
        if self._whole and buffer_bytes < _LARGEST_BUFFER:
            buffer_bytes = 0  # many small buffers take more time than they save memory
        with _open_parquet_file(self.path, buffer_bytes) as file:
            if len(self._group_sizes) != file.num_row_groups:
                raise DataError("It was changed since it was opened. Open it again.")
            yield from file.iter_batches(
                batch_size=_batch_rows(n_columns, self.dtype.itemsize),
                row_groups=list(self._groups),
                columns=None if n_columns == len(stored) else [stored[at] for at in positions],
            )

    def parts(self, n_parts: int) -> list["ParquetBlocks"]:
        """The same rows in about ``n_parts`` tables of whole row groups."""
        sizes = self._group_sizes[self._groups.start : self._groups.stop]
        assert self.rows is not None
        starts = self.rows.start + np.cumsum([0, *sizes])
        tables = []
        for share in shares(sizes, n_parts):
            part = self.of_rows(range(int(starts[share.start]), int(starts[share.stop])))
            part._groups = range(self._groups.start + share.start, self._groups.start + share.stop)
            tables.append(part)
        return tables


def open_parquet(path: Path, request: ReadRequest) -> ParquetBlocks:
    """Find columns, kinds and number of rows; no values are read."""
    with reading(path, ParquetBlocks.title), _open_parquet_file(path, _LEAST_BUFFER) as file:
        layout = ArrowColumns.of(file.schema_arrow, request)
        metadata = file.metadata
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        rows = [group.num_rows for group in groups]
        sizes = [max(0, group.total_byte_size) for group in groups]
        if sum(rows) != metadata.num_rows or min(rows, default=0) < 0:
            raise DataError(
                f"It declares {metadata.num_rows} rows, and {sum(rows)} in its row groups: "
                "it is damaged. Obtain or write it again."
            )
        shape = (metadata.num_rows, len(layout.plan.features))
        request.limit.refuse_shape(shape, np.dtype(layout.dtype).itemsize, "The table")
        request.limit.refuse_past(sum(sizes), "The table, expanded,")
        return ParquetBlocks(path, layout, rows, max(sizes, default=0), request)


def _open_parquet_file(path: Path, buffer_bytes: int) -> Any:
    return _pyarrow("pyarrow.parquet").ParquetFile(
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


class ArrowBlocks(ColumnBlocks):
    """Record batches of an Arrow file or stream."""

    title = "Arrow"

    def __init__(self, path: Path, layout: ArrowColumns, n_rows: int, request: ReadRequest) -> None:
        super().__init__(path, layout, n_rows, request)
        self._limit = request.limit

    def _batches(self, positions: Sequence[int]) -> Iterator[Any]:
        everything = len(positions) == len(self._layout.stored)
        with _open_ipc(self.path, () if everything else positions) as reader:
            for batch in _record_batches(reader):
                batch.validate(full=True)  # Arrow trusts offsets in a file, and follows them
                n_bytes = batch.get_total_buffer_size()
                self._limit.refuse_past(n_bytes, "A record batch of the table, expanded,")
                yield batch


def open_arrow(path: Path, request: ReadRequest) -> ArrowBlocks:
    """Find columns, kinds and number of rows, for which one column is read."""
    with reading(path, ArrowBlocks.title):
        with _open_ipc(path) as reader:
            layout = ArrowColumns.of(reader.schema, request)
        with _open_ipc(path, layout.plan.features[:1]) as reader:
            n_rows = sum(batch.num_rows for batch in _record_batches(reader))
        shape = (n_rows, len(layout.plan.features))
        request.limit.refuse_shape(shape, np.dtype(layout.dtype).itemsize, "The table")
        return ArrowBlocks(path, layout, n_rows, request)


@contextmanager
def _open_ipc(path: Path, positions: Sequence[int] = ()) -> Iterator[Any]:
    """A reader of the columns at ``positions`` (all if there are none), on mapped memory."""
    pa = _pyarrow()
    with pa.memory_map(str(path)) as source:
        content = source.read_buffer()
        start = bytes(memoryview(content)[: len(_ARROW_FILE)])
        if start.startswith(_FEATHER_1):
            raise DataError("Feather is read from version 2 on; this is version 1. Write it again.")
        is_file = start == _ARROW_FILE
        if is_file and bytes(memoryview(content)[-len(_ARROW_FILE) :]) != _ARROW_FILE:
            raise DataError(
                "An Arrow file ends with a footer; this one does not: it was not written to its "
                "end. Write the file again."
            )
        options = pa.ipc.IpcReadOptions(included_fields=sorted(set(positions)))
        open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
        with open_reader(content, options=options) as reader:
            yield reader


def _record_batches(reader: Any) -> Iterator[Any]:
    """The record batches of a file or stream."""
    count = getattr(reader, "num_record_batches", None)
    return iter(reader) if count is None else map(reader.get_batch, range(count))
