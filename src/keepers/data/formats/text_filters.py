"""Streams of text brought into the one form that text tables are parsed in."""

import codecs
import io
import re
from collections.abc import Callable
from typing import IO, Any

from keepers.data.formats.text_cells import LONGEST_LINE, refuse_long_line
from keepers.data.wording import closest, first_line
from keepers.exceptions import DataError, ParameterError, shorten

_BUFFER = 2**20
_CELL = re.compile(rb'"(?:[^"]|"")*"|[^ \t\r]+')
_COMMENT_MARK = re.compile(rb"^#\t", re.MULTILINE)
_USUAL_ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252", "cp1250", "cp1251", "shift_jis", "gbk")


def decoded(stream: IO[bytes], encoding: str) -> IO[bytes]:
    """The text as UTF-8, whatever it was encoded in."""
    try:
        codec = codecs.lookup(encoding)
        is_text = isinstance(codecs.decode(b"", encoding), str) and encoding.isascii()
    except (LookupError, ValueError):  # a name with a zero byte is a ValueError
        is_text = False
    if not is_text:
        raise ParameterError(
            "encoding= is the name of an encoding that Python knows, such as "
            f"{', '.join(_USUAL_ENCODINGS[:4])}; got {shorten(encoding)}."
            f"{closest(encoding, _USUAL_ENCODINGS)}"
        )
    if codec.name in ("utf-8", "utf-8-sig"):
        return stream  # as it is
    decoder = codecs.getincrementaldecoder(encoding)()

    def change(block: bytes) -> bytes:
        try:
            return decoder.decode(block, not block).encode()
        except UnicodeError as error:
            raise DataError(
                f"The text is not in the encoding {encoding}: {first_line(error)}. Name the one "
                "that it was saved in (encoding=, --encoding)."
            ) from error

    return _filtered(stream, change)


def unified_line_ends(stream: IO[bytes]) -> IO[bytes]:
    """Newlines for carriage returns."""
    return _filtered(stream, lambda block: block.replace(b"\r", b"\n"))


def comments_blanked(stream: IO[bytes], mark: str) -> IO[bytes]:
    """Empty lines for those that begin with the mark, so that lines keep their numbers."""
    start = mark.encode()

    def change(lines: bytes) -> bytes:
        if not lines.startswith(start) and b"\n" + start not in lines:
            return lines
        split = lines.split(b"\n")
        return b"\n".join([b"" if line.startswith(start) else line for line in split])

    return in_whole_lines(stream, change)


def runs_of_blanks_as_tabs(stream: IO[bytes]) -> IO[bytes]:
    """One tab for blanks between cells, none at the ends of lines; what is quoted stays.

    A quoted cell ends in the line where it begins. The "#" of a comment is no cell.
    """

    def change(lines: bytes) -> bytes:
        split = _CELL.findall if b'"' in lines else bytes.split
        changed = b"\n".join([b"\t".join(split(line)) for line in lines.split(b"\n")])
        return _COMMENT_MARK.sub(b"# ", changed) if b"#\t" in changed else changed

    return in_whole_lines(stream, change)


def in_whole_lines(stream: IO[bytes], change: Callable[[bytes], bytes]) -> IO[bytes]:
    """The stream with some lines at a time changed; the last may have no end."""
    held: list[bytes] = []

    def change_lines(block: bytes) -> bytes:
        cut = block.rfind(b"\n") + 1
        if block and not cut:
            held.append(block)
            refuse_long_line(sum(map(len, held)), LONGEST_LINE)
            return b""
        lines = b"".join([*held, block[:cut]])
        held[:] = [block[cut:]] if block[cut:] else []
        return change(lines)

    return _filtered(stream, change_lines)


def _filtered(stream: IO[bytes], change: Callable[[bytes], bytes]) -> IO[bytes]:
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
