"""Compressed files as streams of what they hold, with a watch on how much that is."""

import bz2
import gzip
import io
import lzma
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from keepers._packages import optional
from keepers.data.limits import SizeLimit

_MODULES: dict[str, Any] = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
COMPRESSIONS = (*_MODULES, ".zst")
_BUFFER = 2**20


def with_compressions(*suffixes: str) -> tuple[str, ...]:
    """The suffixes, plain and followed by each kind of compression."""
    return tuple(suffix + packed for suffix in suffixes for packed in ("", *COMPRESSIONS))


def is_compressed(path: Path) -> bool:
    """Whether the file's name says that it is compressed."""
    return path.suffix.casefold() in COMPRESSIONS


def open_expanded(path: Path, limit: SizeLimit) -> io.BufferedReader:
    """The file's bytes, expanded; reading past the limit raises `DataError`."""
    if not is_compressed(path):
        return io.BufferedReader(io.FileIO(path), _BUFFER)
    return io.BufferedReader(_Watched(_expander(path), path, limit), _BUFFER)


@contextmanager
def open_compressing(path: Path, name: str) -> Iterator[Any]:
    """A stream into ``path``, compressed as the end of ``name`` says."""
    kind = Path(name).suffix.casefold()
    with ExitStack() as stack:
        if kind == ".zst":
            pa = optional("pyarrow", ".zst files")
            sink = stack.enter_context(pa.OSFile(str(path), "wb"))
            yield stack.enter_context(pa.CompressedOutputStream(sink, "zstd"))
            return
        plain = stack.enter_context(path.open("wb"))
        if kind == ".gz":  # without name and time: the same table gives the same bytes
            yield stack.enter_context(gzip.GzipFile("", "wb", fileobj=plain, mtime=0))
        elif kind in _MODULES:
            yield stack.enter_context(_MODULES[kind].open(plain, "wb"))
        else:
            yield plain


def _expander(path: Path) -> Any:
    kind = path.suffix.casefold()
    if kind != ".zst":
        return _MODULES[kind].open(path, "rb")
    pa = optional("pyarrow", ".zst files")
    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


class _Watched(io.RawIOBase):
    """A stream that counts what passes through it."""

    def __init__(self, inner: Any, path: Path, limit: SizeLimit) -> None:
        self._inner, self._path, self._limit = inner, path, limit
        self._passed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        expanded = self._inner.read(len(buffer))
        self._passed += len(expanded)
        self._limit.refuse_past(self._passed, f"{self._path.name}, expanded,")
        buffer[: len(expanded)] = expanded
        return len(expanded)

    def close(self) -> None:
        self._inner.close()
        super().close()
