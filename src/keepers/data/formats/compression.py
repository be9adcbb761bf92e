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
_MAGIC = {
    b"\x1f\x8b\x08": ".gz",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    **{b"BZh%d1AY&SY" % level: ".bz2" for level in range(1, 10)},
}
"""How a compressed file begins."""
_BUFFER = 2**20


def with_compressions(*suffixes: str) -> tuple[str, ...]:
    """The suffixes, plain and followed by each kind of compression."""
    return tuple(suffix + packed for suffix in suffixes for packed in ("", *COMPRESSIONS))


def is_packed(name: str) -> bool:
    """Whether a name ends in the suffix of a kind of compression."""
    return name.casefold().endswith(COMPRESSIONS)


def is_compressed(path: Path) -> bool:
    """Whether the file's name or its first bytes say that it is compressed."""
    return _compression(path) is not None


def _compression(path: Path) -> str | None:
    """The suffix of the kind of compression; the name counts more than what the file holds."""
    kind = path.suffix.casefold()
    if kind in COMPRESSIONS:
        return kind
    with path.open("rb") as stream:
        start = stream.read(max(map(len, _MAGIC)))
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def open_expanded(path: Path, limit: SizeLimit) -> io.BufferedReader:
    """The file's bytes, expanded; reading past the limit raises `DataError`."""
    kind = _compression(path)
    if kind is None:
        return io.BufferedReader(io.FileIO(path), _BUFFER)
    return io.BufferedReader(_Watched(_expander(path, kind), path, limit), _BUFFER)


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


def _expander(path: Path, kind: str) -> Any:
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
