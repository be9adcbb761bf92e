"""How large the compressed buffers of Arrow IPC say they become, before they do.

pyarrow allocates what each buffer declares. The declarations stand in the flatbuffer metadata of
every message and in the first eight bytes of every compressed buffer; this module reads just those.
"""

import struct
from collections.abc import Iterator
from typing import Any

from keepers.data.limits import SizeLimit
from keepers.exceptions import DataError

__all__ = ["batch_lengths", "is_ipc_file", "refuse_bombs"]

# Positions of fields in the tables of Arrow's Message.fbs.
_MESSAGE_HEADER = 2
_DICTIONARY_DATA = 1
_BATCH_LENGTH, _BATCH_BUFFERS, _BATCH_COMPRESSION = 0, 2, 3
_NOT_COMPRESSED = -1
# And in the footer of a file (File.fbs), which ends with its length and the magic.
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_BLOCK = 24
_ARROW_FILE = b"ARROW1"
_FILE_END = struct.Struct("<i6s")
_DAMAGED = "An Arrow message is damaged. Write the file again."


def is_ipc_file(content: Any) -> bool:
    """Whether a buffer holds the file format, which has a footer, and not a stream."""
    return bytes(memoryview(content)[: len(_ARROW_FILE)]) == _ARROW_FILE


def refuse_bombs(content: Any, limit: SizeLimit) -> None:
    """Raise if the buffers of an IPC file or stream would expand past the limit."""
    expanded = 0
    for _, size in _declarations(content):
        expanded += size
        limit.refuse_past(expanded, "The table, expanded,")


def batch_lengths(content: Any, limit: SizeLimit) -> list[int]:
    """Rows of every record batch of IPC; raise if one would expand past the limit."""
    lengths = []
    for length, size in _declarations(content):
        limit.refuse_past(size, "A record batch of the table, expanded,")
        if length is not None:
            lengths.append(length)
    return lengths


def _declarations(content: Any) -> Iterator[tuple[int | None, int]]:
    """Rows (None for a dictionary) and expanded size of every message that holds values."""
    import pyarrow as pa

    if is_ipc_file(content):
        messages = _messages_of_file(content)
    else:
        messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(content))
    for message in messages:
        if message.type not in ("record batch", "dictionary"):
            continue
        try:
            size = sum(_declared_sizes(message))
            length = _declared_length(message) if message.type == "record batch" else None
        except (struct.error, IndexError) as error:
            raise DataError(_DAMAGED) from error
        yield length, size


def _messages_of_file(content: Any) -> Iterator[Any]:
    """The messages that the footer names.

    What stands between them need not be a stream: Polars writes the schema without its length.
    """
    import pyarrow as pa

    data = memoryview(content)
    try:
        footer_size, magic = _FILE_END.unpack_from(data, len(data) - _FILE_END.size)
        end = len(data) - _FILE_END.size
        if magic != _ARROW_FILE or not 0 < footer_size <= end:
            raise DataError(
                "An Arrow file ends with a footer; this one does not: it was not written to its "
                "end. Write the file again."
            )
        places = list(_blocks(data[end - footer_size : end]))
    except (struct.error, IndexError) as error:
        raise DataError(_DAMAGED) from error
    for offset, size in places:
        if offset < 0 or not 0 <= size <= len(data) - offset:
            raise DataError(_DAMAGED)
        yield pa.ipc.read_message(content.slice(offset, size))


def _blocks(footer: memoryview) -> Iterator[tuple[int, int]]:
    """Where the messages of a file begin, and their sizes."""
    table = _indirect(footer, 0)
    for number in (_FOOTER_DICTIONARIES, _FOOTER_BATCHES):
        if _field(footer, table, number) is None:
            continue
        blocks = _table_in(footer, table, number)
        (count,) = _unpacked("<I", footer, blocks)
        if count * _BLOCK > len(footer):
            raise DataError(_DAMAGED)
        for at in range(count):
            offset, head, body = _unpacked("<qi4xq", footer, blocks + 4 + _BLOCK * at)
            yield offset, head + body


def _declared_length(message: Any) -> int:
    metadata = memoryview(message.metadata)
    batch = _table_in(metadata, _indirect(metadata, 0), _MESSAGE_HEADER)
    field = _field(metadata, batch, _BATCH_LENGTH)
    return 0 if field is None else _unpacked("<q", metadata, field)[0]


def _declared_sizes(message: Any) -> Iterator[int]:
    """Expanded size of every buffer of a message."""
    metadata = memoryview(message.metadata)
    batch = _table_in(metadata, _indirect(metadata, 0), _MESSAGE_HEADER)
    if message.type == "dictionary":
        batch = _table_in(metadata, batch, _DICTIONARY_DATA)
    buffers = _table_in(metadata, batch, _BATCH_BUFFERS)
    compressed = _field(metadata, batch, _BATCH_COMPRESSION) is not None
    body = memoryview(message.body)
    (count,) = _unpacked("<I", metadata, buffers)
    if count * 16 > len(metadata):
        raise DataError(_DAMAGED)
    for at in range(count):
        offset, length = _unpacked("<qq", metadata, buffers + 4 + 16 * at)
        if not compressed or length < 8:
            yield max(0, length)
            continue
        (declared,) = _unpacked("<q", body, offset)
        yield length - 8 if declared == _NOT_COMPRESSED else max(0, declared)


def _unpacked(layout: str, data: memoryview, at: int) -> tuple[int, ...]:
    if at < 0:
        raise IndexError
    return struct.unpack_from(layout, data, at)


def _indirect(data: memoryview, at: int) -> int:
    """Follow a flatbuffer's relative pointer."""
    return at + _unpacked("<I", data, at)[0]


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer table stands; None if it is left out."""
    vtable = table - _unpacked("<i", data, table)[0]
    (vtable_size,) = _unpacked("<H", data, vtable)
    entry = 4 + 2 * number
    if entry + 2 > vtable_size:
        return None
    (offset,) = _unpacked("<H", data, vtable + entry)
    return table + offset if offset else None


def _table_in(data: memoryview, table: int, number: int) -> int:
    field = _field(data, table, number)
    if field is None:
        raise IndexError
    return _indirect(data, field)
