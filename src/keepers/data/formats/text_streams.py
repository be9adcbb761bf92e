"""Text files as streams of UTF-8 lines that end in a newline, however they were saved."""

import codecs
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from keepers.data.formats.compression import open_expanded
from keepers.data.limits import SizeLimit

__all__ = ["open_text"]

_BUFFER = 2**20
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_text(path: Path, limit: SizeLimit) -> IO[bytes]:
    """The file, expanded; UTF-16 with a byte order mark as UTF-8, CR-only line ends as newlines."""
    stream = open_expanded(path, limit)
    try:
        if stream.peek().startswith(_UTF_16):
            decoder = codecs.getincrementaldecoder("utf-16")()
            stream = _filtered(stream, lambda block: decoder.decode(block, not block).encode())
        if _has_bare_returns(stream.peek()):
            stream = _filtered(stream, lambda block: block.replace(b"\r", b"\n"))
    except BaseException:
        stream.close()
        raise
    return stream


def _has_bare_returns(start: bytes) -> bool:
    """Whether lines end in CR alone, as spreadsheets on old Macs save them."""
    return b"\r" in start and b"\n" not in re.sub(rb'"[^"]*"', b"", start)


def _filtered(stream: IO[bytes], change: Callable[[bytes], bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Filter(stream, change), _BUFFER)


class _Filter(io.RawIOBase):
    """A stream each of whose blocks is changed; the last, empty one is handed over as well."""

    def __init__(self, inner: IO[bytes], change: Callable[[bytes], bytes]) -> None:
        self._inner, self._change = inner, change
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        more = b"more"
        while not self._ready and more:
            more = self._inner.read(_BUFFER)
            self._ready = memoryview(self._change(more))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._inner.close()
        super().close()
