"""Whether the stored chunks of an HDF5 array are as long as the array says.

The HDF5 library takes the length of an expanded chunk on trust: where one is shorter, it reads on
in the memory behind it, so that a damaged file gives values that are not in it, or ends the
process.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from keepers.exceptions import DataError, shortened

__all__ = ["refuse_short_chunks"]

_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF = 1, 2, 3, 32000
_KNOWN = {_DEFLATE, _SHUFFLE, _FLETCHER32, _LZF}
_CHECKSUM = 4
_COMPOUND, _STRING = 6, 3  # H5T_COMPOUND, H5T_STRING
_STORED_TEXT = 16
"""Bytes of a text of varying length in the file; in memory it is a pointer."""


def refuse_short_chunks(dataset: Any, first: int = 0, stop: int | None = None) -> None:
    """Raise if a chunk with rows from ``first`` to ``stop`` has another length than a chunk."""
    if dataset.chunks is None:
        return
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(at)[0] for at in range(properties.get_nfilters())]
    if not set(filters) <= _KNOWN:
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
                f"A chunk of array {shortened(dataset.name)} must hold {expected} bytes; one holds "
                f"{length}: the file is damaged. Obtain or write it again."
            )


def _stored_size(kind: Any) -> int:
    """Bytes of an entry in the file; the type tells those in memory."""
    if kind.get_class() == _STRING and kind.is_variable_str():
        return _STORED_TEXT
    if kind.get_class() != _COMPOUND:
        return int(kind.get_size())
    members = [kind.get_member_type(at) for at in range(kind.get_nmembers())]
    longer = sum(_stored_size(member) - int(member.get_size()) for member in members)
    return int(kind.get_size()) + longer


def _chunks(dataset: Any) -> Iterator[Any]:
    found: list[Any] = []
    if hasattr(dataset.id, "chunk_iter"):  # not in older versions of HDF5
        dataset.id.chunk_iter(found.append)
    else:
        found += map(dataset.id.get_chunk_info, range(dataset.id.get_num_chunks()))
    return iter(found)


def _expanded_length(stored: bytes, filters: list[int], expected: int) -> int:
    """How long a chunk becomes when its filters are undone, the last one first."""
    length = len(stored)
    for kind in reversed(filters):
        if kind == _FLETCHER32:
            stored = stored[:-_CHECKSUM]
        elif kind == _DEFLATE:
            stored = zlib.decompressobj().decompress(stored, expected + 1 + _CHECKSUM)
        elif kind == _LZF:
            return _lzf_length(stored)
        length = len(stored)
    return length


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
