"""HDF5: arrays of a file, checked before libhdf5 reads them, and the table in a plain file.

libhdf5 follows links into other files, walks damaged stores of text without end, and believes the
lengths of texts and chunks. What a reader takes from a file therefore goes through `read_dataset`,
or through `refuse_unsound` and `refuse_short_chunks` if it is read in pieces.
"""

import mmap
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import IndexArray
from keepers.data.blocks.files import MatrixBlocks, reading
from keepers.data.blocks.local import BLOCK_BYTES, rows_at_once
from keepers.data.limits import DEFLATE_RATIO, SizeLimit, refuse_declared
from keepers.data.table import ReadRequest, numbered_names
from keepers.data.wording import closest, some_of
from keepers.exceptions import DataError, shorten

_TITLE = "HDF5"
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_STRING, _COMPOUND = 3, 6  # H5T_STRING, H5T_COMPOUND
_STORED_TEXT = 16
"""Bytes of a text of varying length in the file: its length (4), the address of a heap (8) and a
number in it (4). In memory it is a pointer."""
_HEAP_MAGIC = b"GCOL\x01\0\0\0"
_HEAP_OBJECT = struct.Struct("<H6xQ")
_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
_CHECKSUM = 4
_LARGEST_BAND = 8 * BLOCK_BYTES
VALUES_ARRAY = "X"
LABEL_ARRAYS = ("y", "labels", "label", "target")
_PANDAS_VALUES, _PANDAS_NAMES = "_values", "_items"


def _h5py() -> Any:
    return optional("h5py", "HDF5 files (.h5, .h5ad, MATLAB 7.3)")


def open_hdf5_numbers(path: Path) -> Any:
    """Open to read arrays of numbers only, whatever the state of the text; a context manager."""
    return _h5py().File(path, "r")


def open_hdf5(path: Path) -> Any:
    """Open to read numbers and text; a context manager."""
    file = open_hdf5_numbers(path)
    try:
        _refuse_endless_heaps(file, path)
    except BaseException:
        file.close()
        raise
    return file


def _refuse_endless_heaps(file: Any, path: Path) -> None:
    """Raise if text would be looked up without end.

    Text of varying length lies in heaps: collections of objects, each with its size. libhdf5 was
    seen to walk on the spot, for ever, where free space has size 0, and where the size of an
    object and its header add up to 2**64.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in _heaps(data, _number_stretches(file)):
            end = min(heap + int.from_bytes(data[heap + 8 : heap + 16], "little"), len(data))
            at = heap + 16
            while at + _HEAP_OBJECT.size <= end:
                index, size = _HEAP_OBJECT.unpack_from(data, at)
                step = size if index == 0 else _HEAP_OBJECT.size + size + (-size % 8)
                if step == 0 or step > end - at:
                    raise DataError("Its store of text is damaged. Obtain or write it again.")
                at += step


def _heaps(data: mmap.mmap, skipped: list[tuple[int, int]]) -> Iterator[int]:
    """Where stores of text begin, outside of the skipped stretches."""
    start = 0
    for first, stop in [*sorted(skipped), (len(data), len(data))]:
        heap = start - 1
        while (heap := data.find(_HEAP_MAGIC, heap + 1, first)) >= 0:
            yield heap
        start = max(start, stop)


def _number_stretches(file: Any) -> list[tuple[int, int]]:
    """Where the values of arrays of numbers lie: most of a file, and no place for text."""
    found: list[tuple[int, int]] = []

    def look(_: str, node: Any) -> None:
        if getattr(getattr(node, "dtype", None), "kind", "") not in tuple("biuf"):
            return
        if node.chunks is None:
            offset = node.id.get_offset()
            if offset is not None:
                found.append((offset, offset + node.id.get_storage_size()))
        else:
            places = [(chunk.byte_offset, chunk.size) for chunk in _chunks(node)]
            found.extend((offset, offset + size) for offset, size in places if offset is not None)

    file.visititems(look)  # follows no link to another file, and no circle
    return found


def own_member(group: Any, name: str) -> Any:
    """A member that lies in this file; a link into another file is not followed."""
    if not isinstance(group.get(name, getlink=True), _h5py().HardLink):
        raise DataError(
            f"{shorten(name)} must lie in the file itself; it is a link to elsewhere, which is "
            "not followed. Store the values in the file."
        )
    return group[name]


def refuse_unsound(dataset: Any, limit: SizeLimit) -> None:
    """Raise for what is no array, lies elsewhere, or is larger than the limit or the file says."""
    if not isinstance(dataset, _h5py().Dataset) or dataset.shape is None:
        raise DataError(f"{shorten(dataset.name)} must be an array; it is a group, or empty.")
    _refuse_elsewhere(dataset)
    what = f"array {shorten(dataset.name)}"
    limit.refuse_shape(dataset.shape, max(dataset.dtype.itemsize, 8), what)
    # Chunks that were never written take no space and stand for zeros; that is no table either.
    ratio = 1 if dataset.chunks is None else DEFLATE_RATIO
    declared = dataset.dtype.itemsize * int(np.prod(dataset.shape, dtype=object))
    refuse_declared(declared, ratio * dataset.id.get_storage_size(), what)


def _refuse_elsewhere(dataset: Any) -> None:
    if dataset.external or dataset.is_virtual:
        raise DataError(
            f"{shorten(dataset.name)} must lie in the file itself; it points to other files, "
            "which are not read. Store the values in the file."
        )


def read_dataset(dataset: Any, request: ReadRequest, field: str | None = None) -> Any:
    """All values of a dataset, or one field of its records, after they were seen to be sound."""
    refuse_unsound(dataset, request.limit)
    record = dataset.id.get_type()
    if field is None:
        kind, offset = record, 0
    else:
        kind = record.get_member_type(record.get_member_index(field.encode("utf-8")))
        offset = _stored_offset(record, field)
    if _is_text(kind):
        _refuse_false_lengths(dataset, _stored_size(record), offset)
    refuse_short_chunks(dataset)
    return dataset[()] if field is None else dataset[field]


def _is_text(kind: Any) -> bool:
    """Whether entries are texts of varying length."""
    return bool(kind.get_class() == _STRING and kind.is_variable_str())


def _stored_size(kind: Any) -> int:
    """Bytes of an entry in the file; the type tells those in memory."""
    if _is_text(kind):
        return _STORED_TEXT
    if kind.get_class() != _COMPOUND:
        return int(kind.get_size())
    return int(kind.get_size()) + sum(
        _growth(kind.get_member_type(at)) for at in range(kind.get_nmembers())
    )


def _stored_offset(record: Any, field: str) -> int:
    """Where a field begins in a stored record."""
    offset = record.get_member_offset(record.get_member_index(field.encode("utf-8")))
    before = [at for at in range(record.get_nmembers()) if record.get_member_offset(at) < offset]
    return int(offset) + sum(_growth(record.get_member_type(at)) for at in before)


def _growth(kind: Any) -> int:
    """How much longer an entry is in the file than in memory."""
    return _stored_size(kind) - int(kind.get_size())


def _refuse_false_lengths(dataset: Any, record: int, offset: int) -> None:
    """Raise if the text of an array claims to be longer than the file.

    For every entry the file holds a length and a place; libhdf5 sets memory aside by the length
    before it looks at the place.
    """
    file_size = Path(dataset.file.filename).stat().st_size
    total = 0
    for block in _stored_blocks(dataset, file_size, record):
        stored = np.frombuffer(block, dtype=np.uint8)
        usable = stored[: len(stored) // record * record].reshape(-1, record)
        lengths = np.ascontiguousarray(usable[:, offset : offset + 4]).view("<u4")
        total += int(lengths.sum(dtype=np.int64))
        refuse_declared(total, file_size, f"the text of array {shorten(dataset.name)}")


def refuse_false_text(file: Any) -> None:
    """Raise if some text of a file claims to be longer than the file, or lies elsewhere.

    To be called before arrays are copied by libhdf5, which looks at them on its own.
    """

    def look(_: str, node: Any) -> None:
        if not isinstance(node, _h5py().Dataset) or node.shape is None:
            return
        _refuse_elsewhere(node)
        kind = node.id.get_type()
        if _is_text(kind):
            _refuse_false_lengths(node, _STORED_TEXT, 0)
        elif kind.get_class() == _COMPOUND:
            for at in range(kind.get_nmembers()):
                if _is_text(kind.get_member_type(at)):
                    field = kind.get_member_name(at).decode("utf-8")
                    _refuse_false_lengths(node, _stored_size(kind), _stored_offset(kind, field))

    file.visititems(look)  # follows no link to another file, and no circle


def _stored_blocks(dataset: Any, file_size: int, record: int) -> Iterator[bytes]:
    """The bytes of an array as stored; nothing where a filter hides them."""
    if dataset.chunks is None:
        offset, size = dataset.id.get_offset(), dataset.id.get_storage_size()
        if offset is not None and offset + size <= file_size:
            with Path(dataset.file.filename).open("rb") as stream:
                stream.seek(offset)
                yield stream.read(size)
        return
    if dataset.compression not in (None, "gzip") or dataset.shuffle or dataset.fletcher32:
        return
    expected = record * int(np.prod(dataset.chunks, dtype=object))
    for chunk in _chunks(dataset):
        skipped, block = dataset.id.read_direct_chunk(chunk.chunk_offset)
        if dataset.compression == "gzip" and not skipped:
            block = zlib.decompressobj().decompress(block, expected)
        yield block


def _chunks(dataset: Any) -> list[Any]:
    found: list[Any] = []
    dataset.id.chunk_iter(found.append)
    return found


def refuse_short_chunks(dataset: Any, first: int = 0, stop: int | None = None) -> None:
    """Raise if a chunk with rows from ``first`` to ``stop`` has another length than a chunk.

    Where an expanded chunk is shorter, libhdf5 reads on in the memory behind it, so that a damaged
    file gives values that are not in it, or ends the process.
    """
    if dataset.chunks is None:
        return
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(at)[0] for at in range(properties.get_nfilters())]
    if not set(filters) <= {_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF}:
        return  # whose lengths only the library can tell
    expected = _stored_size(dataset.id.get_type()) * int(np.prod(dataset.chunks, dtype=object))
    tall = dataset.chunks[0]
    for chunk in _chunks(dataset):
        top = chunk.chunk_offset[0]
        if top + tall <= first or (stop is not None and top >= stop):
            continue
        applied = [kind for at, kind in enumerate(filters) if not chunk.filter_mask >> at & 1]
        length = chunk.size
        if applied:
            stored = dataset.id.read_direct_chunk(chunk.chunk_offset)[1]
            length = _expanded_length(stored, applied, expected)
        if length != expected:
            raise DataError(
                f"A chunk of array {shorten(dataset.name)} must hold {expected} bytes; one holds "
                f"{length}: the file is damaged. Obtain or write it again."
            )


def _expanded_length(stored: bytes, filters: list[int], expected: int) -> int:
    """How long a chunk becomes when its filters are undone, the last one first."""
    for kind in reversed(filters):
        if kind == _FLETCHER32:
            stored = stored[:-_CHECKSUM]
        elif kind == _DEFLATE:
            stored = zlib.decompressobj().decompress(stored, expected + 1 + _CHECKSUM)
        elif kind == _LZF:
            return _lzf_length(stored)
    return len(stored)


def _lzf_length(stored: bytes) -> int:
    """The length of what LZF compressed: runs of bytes, and references to earlier ones."""
    at = length = 0
    while at < len(stored):
        control = stored[at]
        if control < 32:
            at, length = at + control + 2, length + control + 1
        elif control < 7 << 5:
            at, length = at + 2, length + (control >> 5) + 2
        else:
            length += 9 + (stored[at + 1] if at + 1 < len(stored) else 0)
            at += 3
    return length


class DatasetBlocks(MatrixBlocks):
    """Rows of a two-dimensional array in an HDF5 file."""

    _proven = False
    """Whether the chunks were seen to be whole, which costs as much as reading them."""

    def __init__(
        self, path: Path, node: Any, names: list[str], request: ReadRequest, title: str
    ) -> None:
        n_rows, _ = node.shape
        super().__init__(path, names, request, n_rows, node.dtype)
        self.title = title
        self._dataset = str(node.name)
        self._request = request

    def _raw(self, chosen: IndexArray | None) -> Iterator[Any]:
        with open_hdf5_numbers(self.path) as file:
            node = member(file, self._dataset)
            refuse_unsound(node, self._request.limit)
            if node.shape[1:] != (self._width,) or node.shape[0] < self._here.stop:
                raise DataError("It was changed since it was opened. Open it again.")
            if not self._proven:
                refuse_short_chunks(node, self._here.start, self._here.stop)
                self._proven = True
            for start, stop in bands(self._here, node):
                rows = node[start:stop]
                yield rows if chosen is None else rows[:, chosen]


def open_hdf5_file(path: Path, request: ReadRequest) -> DatasetBlocks:
    """Find the array X, or the only matrix, its shape and kind of numbers; no values are read.

    Labels are an array (y, labels, label or target if none is named) or a column of the matrix.
    """
    with reading(path, _TITLE), open_hdf5_numbers(path) as file:
        node = find_matrix(file, request.dataset, request.limit)
        usual = LABEL_ARRAYS if request.labels is None else (request.labels,)
        labels = next((name for name in usual if _is_vector(file, name)), None)
        named = request.identifier
        identifier = named if named is not None and _is_vector(file, named) else None
        columns = replace(
            request,
            labels=request.labels if labels is None else None,
            identifier=named if identifier is None else None,
        )
        table = DatasetBlocks(path, node, _names_of(node), columns, _TITLE)
        if labels is not None or identifier is not None:
            table.annotate(
                partial(_read_vectors, path, (labels, identifier), request), request.labels
            )
        return table


def _read_vectors(path: Path, names: Sequence[str | None], request: ReadRequest) -> tuple[Any, Any]:
    with open_hdf5(path) as file:
        labels, identifier = (
            None if name is None else read_dataset(member(file, name), request) for name in names
        )
    return labels, identifier


def bands(rows: range, node: Any) -> Iterator[tuple[int, int]]:
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


def find_matrix(file: Any, name: str | None, limit: SizeLimit) -> Any:
    """The array of values: the named one, else X, else the only one with two dimensions."""
    node = _only_matrix(file) if name is None else member(file, name)
    refuse_unsound(node, limit)
    if node.ndim != 2:
        raise DataError(
            f"A table has two dimensions (samples, features); {shorten(node.name)} has "
            f"{node.ndim}. Reshape it, or name another array (dataset=)."
        )
    return node


def member(file: Any, name: str) -> Any:
    """What stands at a path in the file; links to other files are not followed."""
    node = file
    for part in name.strip("/").split("/"):
        if not hasattr(node, "keys") or part not in node:
            known = list(_matrices(file))
            raise DataError(
                f"There is no array {shorten(name)}.{closest(name, known)} With two dimensions "
                f"there are {some_of([repr(key) for key in known]) or 'none'}."
            )
        node = own_member(node, part)
    return node


def _is_vector(file: Any, name: str) -> bool:
    """Whether an array of one dimension, or of one column, stands there: labels, say."""
    if name not in file:
        return False
    shape = getattr(member(file, name), "shape", None)
    return shape is not None and (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1))


def _names_of(node: Any) -> list[str]:
    """Names of the columns: pandas stores them beside the values of a frame."""
    name = str(node.name).rpartition("/")[2]
    beside = name.removesuffix(_PANDAS_VALUES) + _PANDAS_NAMES
    if name.endswith(_PANDAS_VALUES) and beside in node.parent:
        names = own_member(node.parent, beside)
        if getattr(names, "shape", None) == node.shape[1:] and names.dtype.kind == "S":
            refuse_short_chunks(names)
            return [text.decode("utf-8", errors="replace") for text in names[()].tolist()]
    return numbered_names(node.shape[1])


def _only_matrix(file: Any) -> Any:
    found = _matrices(file)
    if VALUES_ARRAY in found:
        return found[VALUES_ARRAY]
    wide = [node for node in found.values() if node.shape[1] != 1] or list(found.values())
    if len(wide) == 1:
        return wide[0]
    told = some_of(
        [f"{shorten(name)} ({' x '.join(map(str, node.shape))})" for name, node in found.items()]
    )
    raise DataError(
        f"A file must hold an array {VALUES_ARRAY} or one array of numbers with two dimensions, or "
        f"its name must be given (dataset=); this one holds {told or 'none'}. Name one, or "
        f"store the values as {VALUES_ARRAY}."
    )


def _matrices(file: Any) -> dict[str, Any]:
    """All two-dimensional arrays of numbers in a file, in whatever group."""
    found = {}

    def look(name: str, node: Any) -> None:
        if len(getattr(node, "shape", None) or ()) == 2 and node.dtype.kind in "biuf":
            found[name] = node

    file.visititems(look)  # follows no link to another file, and no circle
    return found
