"""Columnar files, written: Parquet and Arrow IPC, every column in the type that its source had."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers.data.columns import OtherColumn
from keepers.data.table import WrittenTable, refuse_changed_types

_GROUP_BYTES = 2**25
"""Rows are held back until there are so many: small row groups are read slowly."""

Append = Callable[[WrittenTable], None]


def _pyarrow(module: str = "pyarrow") -> Any:
    return optional(module, "Parquet and Arrow files")


def write_parquet(path: Path, table: WrittenTable, name: str) -> None:
    """Write sample names, labels and features as columns."""
    with append_parquet(path, name) as append:
        append(table)


def write_feather(path: Path, table: WrittenTable, name: str) -> None:
    """Write the same columns as an Arrow IPC file."""
    with append_feather(path, name) as append:
        append(table)


@contextmanager
def append_parquet(path: Path, name: str) -> Iterator[Append]:
    """A function that appends rows, in row groups of some size."""
    pq = _pyarrow("pyarrow.parquet")
    with ExitStack() as stack:
        rows = _Rows(lambda schema: stack.enter_context(pq.ParquetWriter(path, schema)))
        yield rows.append
        rows.flush()


@contextmanager
def append_feather(path: Path, name: str) -> Iterator[Append]:
    """A function that appends rows, in record batches of some size."""
    pa = _pyarrow()
    # A dictionary of an IPC file may only grow.
    options = pa.ipc.IpcWriteOptions(
        compression="lz4", unify_dictionaries=True, emit_dictionary_deltas=True
    )
    with ExitStack() as stack:
        sink = stack.enter_context(pa.OSFile(str(path), "wb"))
        rows = _Rows(
            lambda schema: stack.enter_context(pa.ipc.new_file(sink, schema, options=options))
        )
        yield rows.append
        rows.flush()


class _Rows:
    """Rows on their way to a writer, which is opened with the schema of the first of them."""

    def __init__(self, open_writer: Callable[[Any], Any]) -> None:
        self._open_writer = open_writer
        self._writer: Any = None
        self._schema: Any = None
        self._held: list[Any] = []
        self._n_bytes = 0
        self._dictionaries: dict[str, Any] = {}

    def append(self, table: WrittenTable) -> None:
        """Take rows, and write what is held if it is enough."""
        content = self._arrow_table(table)
        if self._schema is None:
            self._schema = content.schema
        self._held.append(content)
        self._n_bytes += content.nbytes
        if self._n_bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write all rows that are held."""
        if not self._held:
            return
        if self._writer is None:
            self._writer = self._open_writer(self._schema)
        self._writer.write_table(_pyarrow().concat_tables(self._held).unify_dictionaries())
        self._held, self._n_bytes = [], 0

    def _arrow_table(self, table: WrittenTable) -> Any:
        pa = _pyarrow()
        arrays: list[Any] = []
        if table.sample_names is not None:
            arrays.append(pa.array(table.sample_names, pa.string()))
        if table.labels is not None:
            numeric = table.has_numeric_labels
            labels = pa.array(table.labels) if numeric else pa.array(table.text_labels(), "string")
            arrays.append(labels)
        X = np.asfortranarray(table.dense())  # so that columns are handed over as they lie
        names = table.column_names
        at_fault = []
        for name, column in zip(names[len(arrays) :], table.columns, strict=True):
            kind = table.types.get(name) if self._schema is None else self._schema.field(name).type
            if isinstance(column, OtherColumn):
                arrays.append(self._other_array(column, kind))
                continue
            plain = pa.array(X[:, column], from_pandas=True)
            array = plain if kind is None else exact_array(plain, _value_type(kind))
            if array is None and self._schema is not None:
                at_fault.append(name)
            # Numbers that were changed to what the type cannot hold are written as they are.
            arrays.append(plain if array is None else self._coded(name, array, kind))
        refuse_changed_types(at_fault)
        return pa.Table.from_arrays(arrays, names=names)

    def _other_array(self, column: OtherColumn, kind: Any) -> Any:
        """Text or dates as stored in the source, if that were text or dates."""
        pa = _pyarrow()
        value_type = _value_type(kind)
        if column.kind == "date":
            array = _date_array(column, value_type)
        else:
            is_text = value_type in (pa.string(), pa.large_string())
            array = pa.array(column.values, value_type if is_text else pa.string())
            if column.levels and kind is None:
                kind = pa.dictionary(pa.int32(), array.type, ordered=True)
        return self._coded(column.name, array, kind, column.levels)

    def _coded(self, name: str, array: Any, kind: Any, levels: Sequence[str] = ()) -> Any:
        """By codes if ``kind`` is a dictionary, which begins as in the rows before."""
        pa, pc = _pyarrow(), _pyarrow("pyarrow.compute")
        if kind is None or not pa.types.is_dictionary(kind):
            return array
        found = array.unique().drop_null()
        known = self._dictionaries.get(name)
        if known is None:
            is_sorted = kind.ordered and not levels
            known = found.sort() if is_sorted else pa.array(levels, array.type)
        new = found.filter(pc.invert(pc.is_in(found, value_set=known)))
        known = self._dictionaries[name] = pa.concat_arrays([known, new])
        codes = pc.index_in(array, value_set=known).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, known, ordered=kind.ordered)


def _value_type(kind: Any) -> Any:
    """The type of the values, which may be stored once each in a dictionary."""
    is_coded = kind is not None and _pyarrow().types.is_dictionary(kind)
    return kind.value_type if is_coded else kind


def _date_array(column: OtherColumn, kind: Any) -> Any:
    pa = _pyarrow()
    if kind is not None and pa.types.is_date(kind):
        return pa.array(column.values.astype("datetime64[D]")).cast(kind)
    if kind is None or not pa.types.is_timestamp(kind):
        return pa.array(column.values)
    # Moments are held in universal time, as Arrow holds those with a zone.
    return pa.array(column.values.astype(f"datetime64[{kind.unit}]")).view(kind)


def exact_array(plain: Any, kind: Any) -> Any | None:
    """Floats, null for a gap, in another type; None if it does not hold the same numbers."""
    pa = _pyarrow()
    if kind == plain.type:
        return plain
    if pa.types.is_null(kind):
        return pa.nulls(len(plain)) if plain.null_count == len(plain) else None
    try:
        if pa.types.is_float16(kind):  # which older versions do not cast
            with np.errstate(over="ignore"):
                halves = plain.to_numpy(zero_copy_only=False).astype(np.float16)
            array = pa.array(halves, mask=plain.is_null().to_numpy(zero_copy_only=False))
            back = pa.array(halves.astype(np.float64), from_pandas=True)
        else:
            array = plain.cast(kind)
            whole = array.cast(pa.int8()) if pa.types.is_boolean(kind) else array
            back = whole.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return array if back.equals(plain.cast(pa.float64())) else None
