"""MATLAB files: versions 5 to 7, and 7.3, which is HDF5.

Versions 5 to 7 are parsed here, because SciPy's reader ends the process on some damaged files (see
docs/decisions/0010-readers-again.md). The layout is that of MathWorks' "MAT-File Format": a header,
then one element per variable, each a matrix whose parts (flags, dimensions, name, values) are
elements themselves. Version 7 packs every variable with zlib.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.formats.hdf5 import HDF5_MAGIC, open_hdf5, own_member, read_dataset
from keepers.data.formats.stored_sparse import build_compressed
from keepers.data.limits import SizeLimit, refuse_declared
from keepers.data.table import LabelledTable, Matrix, ReadRequest, to_table
from keepers.data.wording import some_of
from keepers.exceptions import DataError, shorten

VALUE_VARIABLES = ("X", "fea", "data")
LABEL_VARIABLES = ("y", "Y", "gnd", "label", "labels")
_HEADER_OF_73 = 512
_NO_NUMBERS = (b"char", b"cell", b"struct", b"string", b"function_handle")
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


def read_mat(path: Path, request: ReadRequest) -> LabelledTable:
    """Read X (or fea, data, or the only matrix) and y (or Y, gnd, label, labels)."""
    with path.open("rb") as stream:
        head = stream.read(_HEADER_OF_73 + len(HDF5_MAGIC))
    if HDF5_MAGIC in (head[:8], head[_HEADER_OF_73:]):
        return _read_73(path, request)
    return _read_5(path, request)


def _read_5(path: Path, request: ReadRequest) -> LabelledTable:
    variables = {variable.name: variable for variable in _list_variables(path)}
    shapes = {
        name: variable.shape
        for name, variable in variables.items()
        if variable.kind in ("numeric", "sparse")
    }
    labels = _labels_variable(request.labels, variables)
    values = _values_variable(shapes, variables, labels)
    X = _read_variable(path, variables[values], request.limit)
    y = None
    if labels is not None:
        y = _as_dense(_read_variable(path, variables[labels], request.limit), labels, request)
    return to_table(Matrix(X, labels=y), request, path.stem)


def _read_73(path: Path, request: ReadRequest) -> LabelledTable:
    with open_hdf5(path) as file:
        shapes: dict[str, tuple[int, ...]] = {}
        # MATLAB keeps what cells refer to under names that begin with #.
        known = [name for name in file if not name.startswith("#")]
        for name in known:
            node = own_member(file, name)
            if _is_sparse(node):
                shapes[name] = _sparse_shape(node)
            elif getattr(node, "ndim", 0) == 2 and _class_of(node) not in _NO_NUMBERS:
                shapes[name] = node.shape
        labels = _labels_variable(request.labels, known)
        values = _values_variable(shapes, known, labels)
        X = _node_values(own_member(file, values), request)
        y = None if labels is None else _node_labels(file, own_member(file, labels), request)
        return to_table(Matrix(X, labels=y), request, path.stem)


def _labels_variable(asked: str | None, known: Iterable[str]) -> str | None:
    names = set(known)
    if asked is not None:
        return asked if asked in names else None
    return next((name for name in LABEL_VARIABLES if name in names), None)


def _values_variable(
    shapes: dict[str, tuple[int, ...]], known: Iterable[str], labels: str | None
) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) == 2 and name != labels]
    for usual in VALUE_VARIABLES:
        if usual in matrices:
            return usual
    wide = [name for name in matrices if 1 not in shapes[name]] or matrices
    if len(wide) == 1:
        return wide[0]
    raise DataError(
        f"The values must be a matrix named {', '.join(VALUE_VARIABLES)}, or the only matrix of "
        f"the file; this one holds {some_of([repr(name) for name in known], shown=12) or 'none'}. "
        "Save the values as X and the classes as y."
    )


def _is_sparse(node: Any) -> bool:
    return "MATLAB_sparse" in node.attrs


def _node_values(node: Any, request: ReadRequest) -> Any:
    """A matrix as MATLAB shows it: HDF5 holds its columns as rows."""
    if not _is_sparse(node):
        return read_dataset(node, request).T
    shape = _sparse_shape(node)
    starts = read_dataset(own_member(node, "jc"), request)
    if "data" in node:
        data, rows = (read_dataset(own_member(node, part), request) for part in ("data", "ir"))
    else:  # MATLAB stores no values where all are zero
        data, rows = np.empty(0), np.empty(0, dtype=np.int64)
    used = _used_entries(starts)
    what = f"the sparse matrix {shorten(node.name)}"
    return build_compressed(data[:used], rows[:used], starts, shape, by_rows=False, what=what)


def _sparse_shape(node: Any) -> tuple[int, int]:
    columns = own_member(node, "jc")
    if getattr(columns, "ndim", 0) != 1:
        raise DataError(f"The sparse matrix {shorten(node.name)} is damaged. Save the file again.")
    return int(node.attrs["MATLAB_sparse"]), max(0, int(columns.shape[0]) - 1)


def _class_of(node: Any) -> bytes:
    """What MATLAB says a variable is; nothing if another program wrote it."""
    kind = node.attrs.get("MATLAB_class", b"")
    return kind if isinstance(kind, bytes) else str(kind).encode()


def _as_dense(labels: Any, name: str, request: ReadRequest) -> Any:
    """Labels, which MATLAB may store sparse."""
    if not sp.issparse(labels):
        return labels
    request.limit.refuse_shape(labels.shape, 8, f"variable {shorten(name)}")
    return labels.toarray()


def _node_labels(file: Any, node: Any, request: ReadRequest) -> Any:
    if _is_sparse(node):
        return _as_dense(_node_values(node, request), node.name, request)
    if "MATLAB_empty" in node.attrs:  # what is stored then are the lengths
        raise DataError(
            f"The labels {shorten(node.name)} are empty. Save one label for every sample."
        )
    kind = _class_of(node)
    values = read_dataset(node, request)
    if kind == b"char":
        return np.array(["".join(map(chr, row)).rstrip() for row in values.T], dtype=object)
    if kind != b"cell":
        return values.T
    cells = [_cell_label(file[reference], request) for reference in values.ravel()]
    return np.array(cells, dtype=object)


def _cell_label(node: Any, request: ReadRequest) -> str | None:
    """The text or number in a cell; None if it is empty."""
    if "MATLAB_empty" in node.attrs:
        return None
    values = read_dataset(node, request).ravel()
    if _class_of(node) == b"char" or values.dtype == np.uint16:
        return "".join(map(chr, values))
    return _cell_text(values)


@dataclass(frozen=True)
class _Variable:
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


def _list_variables(path: Path) -> list[_Variable]:
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
                described, _ = _Parts(beginning, order).describe()
                found.append(_Variable(*described, offset, size, compressed, order))
            stream.seek(offset + size)
    return found


def _read_variable(path: Path, variable: _Variable, limit: SizeLimit) -> Any:
    """The values: an array, a CSC matrix, or an object array of text."""
    if variable.kind in ("numeric", "char"):
        limit.refuse_shape(variable.shape, 8, f"variable {shorten(variable.name)}")
    with path.open("rb") as stream:
        stream.seek(variable.offset)
        content = stream.read(variable.size)
    if variable.compressed:
        content = _expand(content, variable, limit)
    return _value(content, variable.order, depth=0)


def _expand(content: bytes, variable: _Variable, limit: SizeLimit) -> bytes:
    expander = zlib.decompressobj()
    tag = expander.decompress(content, _TAG)
    (size,) = struct.unpack_from(f"{variable.order}I", tag, 4)
    limit.refuse_past(size, f"variable {shorten(variable.name)}, expanded,")
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

    def describe(self) -> tuple[tuple[str, str, tuple[int, ...]], int]:
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
    (name, kind, shape), flags = parts.describe()
    if flags & _COMPLEX and kind in ("numeric", "sparse"):
        raise DataError("Values must be real; this variable is complex. Save real(X).")
    if kind == "numeric":
        return parts.numbers().reshape(shape, order="F")
    if kind == "sparse":
        rows, starts, values = parts.numbers(), parts.numbers(), parts.numbers()
        used = _used_entries(starts)
        what = f"the sparse matrix {shorten(name)}"
        return build_compressed(values[:used], rows[:used], starts, shape, by_rows=False, what=what)
    if kind == "char":
        return _lines(parts.text(), shape)
    if kind == "cell" and depth < _DEEPEST:
        return np.array(list(_cells(parts, int(np.prod(shape)), order, depth)), dtype=object)
    raise DataError("A variable must hold numbers or text; this one does not.")


def _used_entries(starts: Any) -> int:
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
        yield _cell_text(_value(content, order, depth + 1)) if len(content) else None


def _cell_text(value: Any) -> str | None:
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
