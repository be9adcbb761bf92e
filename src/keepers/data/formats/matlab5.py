"""MATLAB files of versions 5 to 7, as far as tables need them.

Parsed here: scipy's reader was seen to end the whole process on damaged files. The layout is that
of MathWorks' "MAT-File Format": a header, then one element per variable, each a matrix whose parts
(flags, dimensions, name, values) are elements themselves. Version 7 packs every variable with zlib.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.limits import SizeLimit, refuse_declared
from keepers.exceptions import DataError, shortened

__all__ = ["Variable", "cell_text", "read_variable", "used_entries", "variables_of"]

_HEADER, _TAG = 128, 8
_MATRIX, _COMPRESSED = 14, 15
_COMPLEX = 0x0800
_BEGINNING = 4096
"""Bytes of a variable that surely hold its flags, dimensions and name."""
_DEEPEST = 2
Buffer = bytes | memoryview
_CLASSES = {1: "cell", 4: "char", 5: "sparse"} | dict.fromkeys(range(6, 16), "numeric")
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_STORED |= {12: "i8", 13: "u8"}
_CODECS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}


@dataclass(frozen=True)
class Variable:
    """What the beginning of a variable says, and where the rest lies."""

    name: str
    kind: str
    """"numeric", "sparse", "char", "cell" or "other"."""
    shape: tuple[int, ...]
    offset: int
    size: int
    compressed: bool
    order: str
    """Of the bytes: "<" or ">"."""


def variables_of(path: Path) -> list[Variable]:
    """All variables of the file; only their beginnings are read."""
    found = []
    file_size = path.stat().st_size
    with path.open("rb") as stream:
        header = stream.read(_HEADER)
        if len(header) < _HEADER or header[126:] not in (b"IM", b"MI"):
            raise DataError(
                "MATLAB files are read from version 5 on; this is none, or an older one. In "
                "MATLAB, save('file.mat', 'X', 'y', '-v7') writes one."
            )
        order = "<" if header[126:] == b"IM" else ">"
        while len(tag := stream.read(_TAG)) == _TAG:
            kind, size = struct.unpack(f"{order}II", tag)
            offset = stream.tell()
            refuse_declared(offset + size, file_size, "a variable")
            beginning = stream.read(min(size, _BEGINNING))
            if kind == _COMPRESSED:
                unpacked = zlib.decompressobj().decompress(beginning, _BEGINNING)
                kind = struct.unpack_from(f"{order}I", unpacked)[0]
                beginning, compressed = unpacked[_TAG:], True
            else:
                compressed = False
            if kind == _MATRIX:
                described, _ = _Parts(beginning, order).described()
                found.append(Variable(*described, offset, size, compressed, order))
            stream.seek(offset + size)
    return found


def read_variable(path: Path, variable: Variable, limit: SizeLimit) -> Any:
    """The values: an array, a CSC matrix, or an object array of text."""
    if variable.kind in ("numeric", "char"):
        limit.refuse_shape(variable.shape, 8, f"variable {shortened(variable.name)}")
    with path.open("rb") as stream:
        stream.seek(variable.offset)
        content = stream.read(variable.size)
    if variable.compressed:
        content = _expanded(content, variable, limit)
    return _value(content, variable.order, depth=0)


def _expanded(content: bytes, variable: Variable, limit: SizeLimit) -> bytes:
    expander = zlib.decompressobj()
    tag = expander.decompress(content, _TAG)
    (size,) = struct.unpack_from(f"{variable.order}I", tag, 4)
    limit.refuse_past(size, f"variable {shortened(variable.name)}, expanded,")
    return expander.decompress(expander.unconsumed_tail, max(1, size))


class _Parts:
    """The elements inside a matrix, one after the other."""

    def __init__(self, content: Buffer, order: str) -> None:
        self._content, self._order, self._at = memoryview(content), order, 0

    def next(self) -> tuple[int, memoryview]:
        """Type and bytes of the next element."""
        kind, size = struct.unpack_from(f"{self._order}II", self._content, self._at)
        if kind >> 16:  # up to four bytes stand in the tag itself
            kind, size = kind & 0xFFFF, kind >> 16
            start, self._at = self._at + 4, self._at + _TAG
            if size > 4:
                raise DataError("A MATLAB element is damaged. Save the file again.")
        else:
            start = self._at + _TAG
            self._at = start + size + (-size % 8)
        if start + size > len(self._content):
            raise DataError("A MATLAB variable is truncated or damaged. Save the file again.")
        return kind, self._content[start : start + size]

    def described(self) -> tuple[tuple[str, str, tuple[int, ...]], int]:
        """(name, kind, shape) of the matrix, and its flags."""
        (flags,) = struct.unpack_from(f"{self._order}I", self.next()[1])
        _, dimensions = self.next()
        shape = tuple(np.frombuffer(dimensions, f"{self._order}i4").tolist())
        if any(length < 0 for length in shape):
            raise DataError("A MATLAB variable declares a negative length; it is damaged.")
        name = str(self.next()[1], "latin-1")
        return (name, _CLASSES.get(flags & 0xFF, "other"), shape), flags

    def numbers(self) -> np.ndarray[Any, Any]:
        """The next element as a vector of numbers."""
        kind, content = self.next()
        if kind not in _STORED:
            raise DataError("A MATLAB variable holds values of no known type; it is damaged.")
        return np.frombuffer(content, self._order + _STORED[kind])

    def text(self) -> str:
        """The next element as text."""
        kind, content = self.next()
        codec = _CODECS.get(kind, "latin-1")
        if codec in ("utf-16", "utf-32"):
            codec += "-le" if self._order == "<" else "-be"
        return str(content, codec, errors="replace")


def _value(content: Buffer, order: str, depth: int) -> Any:
    parts = _Parts(content, order)
    (name, kind, shape), flags = parts.described()
    if flags & _COMPLEX and kind in ("numeric", "sparse"):
        raise DataError("Values must be real; this variable is complex. Save real(X).")
    if kind == "numeric":
        return parts.numbers().reshape(shape, order="F")
    if kind == "sparse":
        rows, starts, values = parts.numbers(), parts.numbers(), parts.numbers()
        used = used_entries(starts)
        what = f"the sparse matrix {shortened(name)}"
        return build_compressed(values[:used], rows[:used], starts, shape, by_rows=False, what=what)
    if kind == "char":
        return _lines(parts.text(), shape)
    if kind == "cell" and depth < _DEEPEST:
        return np.array(list(_cells(parts, int(np.prod(shape)), order, depth)), dtype=object)
    raise DataError("A variable must hold numbers or text; this one does not.")


def used_entries(starts: Any) -> int:
    """How many entries of a sparse matrix count: MATLAB may reserve more than it uses."""
    return max(0, int(starts[-1])) if len(starts) else 0


def _lines(text: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Rows of a char matrix, which is stored by columns and padded with blanks."""
    n_rows = shape[0] if shape else 0
    if n_rows > max(1, len(text)):
        raise DataError(
            f"A MATLAB text declares {n_rows} lines and has {len(text)} characters; it is damaged. "
            "Save the file again."
        )
    return np.array([text[row::n_rows].rstrip() for row in range(n_rows)], dtype=object)


def _cells(parts: _Parts, count: int, order: str, depth: int) -> Iterator[str | None]:
    for _ in range(count):
        kind, content = parts.next()
        if kind != _MATRIX:
            raise DataError("A MATLAB cell is damaged. Save the file again.")
        # An empty array may be no more than a tag without content.
        yield cell_text(_value(content, order, depth + 1)) if len(content) else None


def cell_text(value: Any) -> str | None:
    """What a cell of labels holds: text, a number, or None for nothing."""
    if not isinstance(value, np.ndarray) or value.size > 1:
        raise DataError(
            "A cell of labels must hold one text or one number; one of them holds more. Save the "
            "labels as a vector of numbers or a cell array of texts."
        )
    if not value.size:
        return None
    single = value.item()
    whole = isinstance(single, float) and single.is_integer()
    return str(int(single)) if whole else str(single)
