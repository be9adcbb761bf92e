"""HDF5 as the formats built on it need it: nothing read from elsewhere, nothing too large."""

import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.formats.hdf5_chunks import refuse_short_chunks
from keepers.data.limits import DEFLATE_RATIO, SizeLimit, refuse_declared
from keepers.data.request import ReadRequest
from keepers.exceptions import DataError, MissingDependencyError, shortened

__all__ = [
    "HDF5_MAGIC",
    "hard_linked",
    "open_hdf5",
    "open_hdf5_numbers",
    "read_dataset",
    "read_field",
    "refuse_unsound",
]

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HEAP_MAGIC = b"GCOL\x01\0\0\0"
_TEXT_RECORD = 16
"""A length (4 bytes), the address of a heap (8) and a number in it (4)."""
_STRING = 3  # H5T_STRING
_SEARCHED_WHOLE = 2**30
_HEAP_OBJECT = struct.Struct("<H6xQ")


def open_hdf5(path: Path) -> Any:
    """Open for reading; a context manager."""
    h5py = _h5py(path)
    _refuse_endless_heaps(path)
    return h5py.File(path, "r")


def open_hdf5_numbers(path: Path) -> Any:
    """Open to read arrays of numbers only: the store of text, which is not touched, may be large.

    A context manager.
    """
    return _h5py(path).File(path, "r")


def _h5py(path: Path) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError(
            f'{path.suffix} files of this kind need h5py: pip install "keepers[io]".'
        ) from error
    return h5py


def _refuse_endless_heaps(path: Path) -> None:
    """Raise if text would be looked up without end.

    Text of varying length lies in heaps: collections of objects, each with its size. The HDF5
    library was seen to walk on the spot, for ever, where free space has size 0, and where the
    size of an object and its header add up to 2**64.
    """
    if path.stat().st_size == 0:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as file:
        for heap in _heaps(file):
            end = min(heap + int.from_bytes(file[heap + 8 : heap + 16], "little"), len(file))
            at = heap + 16
            while at + _HEAP_OBJECT.size <= end:
                index, size = _HEAP_OBJECT.unpack_from(file, at)
                step = size if index == 0 else _HEAP_OBJECT.size + size + (-size % 8)
                if step == 0 or step > end - at:
                    raise DataError("Its store of text is damaged. Obtain or write it again.")
                at += step


def _heaps(file: mmap.mmap) -> Iterator[int]:
    """Where stores of text begin; of a large file only both ends are searched."""
    if len(file) <= _SEARCHED_WHOLE:
        stretches = [(0, len(file))]
    else:  # names are written before or after the values, which may be larger than memory
        half = _SEARCHED_WHOLE // 2
        stretches = [(0, half), (len(file) - half, len(file))]
    for start, stop in stretches:
        heap = start - 1
        while (heap := file.find(_HEAP_MAGIC, heap + 1, stop)) >= 0:
            yield heap


def hard_linked(group: Any, name: str) -> Any:
    """A member that lies in this file; a link into another file is not followed."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise DataError(
            f"{shortened(name)} must lie in the file itself; it is a link to elsewhere, which is "
            "not followed. Store the values in the file."
        )
    return group[name]


def refuse_unsound(dataset: Any, limit: SizeLimit) -> None:
    """Raise for what is no array, lies elsewhere, or is larger than the limit or the file says."""
    import h5py

    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise DataError(f"{shortened(dataset.name)} must be an array; it is a group, or empty.")
    if dataset.external or dataset.is_virtual:
        raise DataError(
            f"{shortened(dataset.name)} must lie in the file itself; it points to other files, "
            "which are not read. Store the values in the file."
        )
    what = f"array {shortened(dataset.name)}"
    limit.refuse_shape(dataset.shape, max(dataset.dtype.itemsize, 8), what)
    # Chunks that were never written take no space and stand for zeros; that is no table either.
    ratio = 1 if dataset.chunks is None else DEFLATE_RATIO
    declared = dataset.dtype.itemsize * int(np.prod(dataset.shape, dtype=object))
    refuse_declared(declared, ratio * dataset.id.get_storage_size(), what)


def read_dataset(dataset: Any, request: ReadRequest) -> Any:
    """All values of a dataset, after its size was held against the limit and the file."""
    import h5py

    refuse_unsound(dataset, request.limit)
    if h5py.check_string_dtype(dataset.dtype) is not None and dataset.dtype.kind == "O":
        _refuse_false_lengths(dataset, f"array {shortened(dataset.name)}")
    refuse_short_chunks(dataset)
    return dataset[()]


def read_field(dataset: Any, name: str, request: ReadRequest) -> Any:
    """One field of an array of records."""
    refuse_unsound(dataset, request.limit)
    if dataset.dtype[name].kind == "O":
        record, offset = _place_in_record(dataset.id.get_type(), name)
        what = f"field {shortened(name)} of array {shortened(dataset.name)}"
        _refuse_false_lengths(dataset, what, record, offset)
    refuse_short_chunks(dataset)
    return dataset[name]


def _place_in_record(record: Any, name: str) -> tuple[int, int]:
    """Bytes of a stored record, and where a text in it stands.

    The type tells both as in memory, where a text of varying length is a pointer.
    """
    texts = [
        record.get_member_offset(at)
        for at in range(record.get_nmembers())
        if record.get_member_class(at) == _STRING and record.get_member_type(at).is_variable_str()
    ]
    longer = _TEXT_RECORD - struct.calcsize("P")
    offset = record.get_member_offset(record.get_member_index(name.encode("utf-8")))
    before = sum(text < offset for text in texts)
    return record.get_size() + longer * len(texts), offset + longer * before


def _refuse_false_lengths(
    dataset: Any, what: str, record: int = _TEXT_RECORD, offset: int = 0
) -> None:
    """Raise if the text of an array claims to be longer than the file.

    For every entry the file holds a length and a place; the HDF5 library sets memory aside by the
    length before it looks at the place.
    """
    file_size = Path(dataset.file.filename).stat().st_size
    total = 0
    for block in _stored_blocks(dataset, file_size, record):
        stored = np.frombuffer(block, dtype=np.uint8)
        usable = stored[: len(stored) // record * record].reshape(-1, record)
        lengths = np.ascontiguousarray(usable[:, offset : offset + 4]).view("<u4")
        total += int(lengths.sum(dtype=np.int64))
        refuse_declared(total, file_size, what)


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
    for number in range(dataset.id.get_num_chunks()):
        place = dataset.id.get_chunk_info(number).chunk_offset
        skipped, block = dataset.id.read_direct_chunk(place)
        if dataset.compression == "gzip" and not skipped:
            block = zlib.decompressobj().decompress(block, expected)
        yield block
