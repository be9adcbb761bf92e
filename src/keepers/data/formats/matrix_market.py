"""Matrix Market (.mtx), sparse or dense.

SciPy reads the numbers. It takes 1,5 for 1 and 1.2.3 for 1.2, and was seen to end the process where
a line does not end, so every line is held against the format before SciPy gets it.
"""

import io
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import scipy.io

from keepers.data.formats.compression import is_compressed, open_compressing, open_expanded
from keepers.data.limits import SizeLimit, refuse_columns, refuse_declared, refuse_hollow
from keepers.data.table import (
    LabelledTable,
    Matrix,
    ReadRequest,
    WrittenTable,
    row_entries,
    to_table,
)
from keepers.exceptions import DataError, shorten

_LONGEST_LINE = 2**16
_BLOCK_BYTES = 4 * 2**20
_BANNER = re.compile(rb"%%MatrixMarket\s+matrix(\s+\w+(-\w+)?){3}\s*", re.IGNORECASE)
_SIZES = re.compile(rb"\s*([0-9]{1,18}\s+){1,2}[0-9]{1,18}\s*")
# Possessive (++), so that nothing is tried twice; nan and inf are tried last.
_PLACE, _INTEGER = rb"[0-9]++[ \t]++[0-9]++", rb"-?+[0-9]++"
_REAL = rb"-?+(?:[0-9]++\.?+[0-9]*+%b|\.[0-9]++%b|(?i:nan|infinity|inf))"
_REAL = _REAL % (2 * (rb"(?:[eE][+-]?+[0-9]++)?+",))
_LINES = {
    ("coordinate", "pattern"): ("a row and a column", _PLACE),
    ("coordinate", "integer"): ("a row, a column and an integer", _PLACE + rb"[ \t]++" + _INTEGER),
    ("coordinate", "real"): ("a row, a column and a number", _PLACE + rb"[ \t]++" + _REAL),
    ("array", "integer"): ("an integer", _INTEGER),
    ("array", "real"): ("a number", _REAL),
}
"""Layout and kind of values -> what a line of the body holds."""
_PLUS = re.compile(rb"(?<!\S)\+(?=[0-9.iIn])")


def read_mtx(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a matrix whose rows are samples; sparse stays sparse."""
    return to_table(Matrix(read_matrix(path, request.limit)), request, path.name.split(".")[0])


def read_matrix(path: Path, limit: SizeLimit) -> Any:
    """The matrix of a file, as array or COO matrix."""
    with open_expanded(path, limit) as stream:
        head = _read_head(stream)
        n_rows, n_columns, n_entries, layout, field, symmetry = scipy.io.mminfo(io.BytesIO(head))
        if (layout, field) not in _LINES:
            raise DataError(
                "A matrix must be coordinate or array, and real, integer or pattern; this one is "
                f"{layout} {field}. Store real numbers."
            )
        if symmetry != "general" and n_rows != n_columns:
            raise DataError(f"A {symmetry} matrix is square; this one is {n_rows} x {n_columns}.")
        if 0 in (n_rows, n_columns):  # where SciPy divides by zero
            raise DataError(f"A table needs rows and columns; this one is {n_rows} x {n_columns}.")
        what, line = _LINES[layout, field]
        refuse_columns(n_columns, "the file")
        if layout == "coordinate":
            refuse_hollow(n_rows, n_entries, "the file")
            limit.refuse_shape((3 * n_entries,), 8, "The sparse matrix")
        else:
            limit.refuse_shape((n_rows, n_columns), 8, "The matrix")
        if not is_compressed(path) and layout == "coordinate":  # a line takes at least 4 bytes
            refuse_declared(4 * n_entries, path.stat().st_size + 1, "the file")
        n_lines = n_entries
        if layout == "array" and symmetry != "general":  # one triangle, with the diagonal or not
            n_lines = n_rows * (n_rows + (-1 if symmetry == "skew-symmetric" else 1)) // 2
        body = _checked_lines(stream, what, line, n_lines, n_before=head.count(b"\n"))
        return scipy.io.mmread(_Pieces(chain([head], body)))


def _read_head(stream: IO[bytes]) -> bytes:
    """The banner, comments and the line of sizes."""
    lines = [stream.readline(_LONGEST_LINE)]
    if not _BANNER.fullmatch(lines[0]):
        raise DataError("A Matrix Market file begins with '%%MatrixMarket matrix ...'.")
    while line := stream.readline(_LONGEST_LINE):
        lines.append(line)
        if line.startswith(b"%") or not line.strip():
            continue
        if not _SIZES.fullmatch(line):
            told = shorten(line[:60].decode("latin-1"))
            raise DataError(f"The line of sizes must hold 2 or 3 integers; it reads {told}.")
        return b"".join(lines).rstrip() + b"\n"
    raise DataError("There is no line of sizes; the file is truncated.")


def _checked_lines(
    stream: IO[bytes], what: str, line: bytes, expected: int, n_before: int
) -> Iterator[bytes]:
    """The body in blocks of lines, each of which is empty or holds ``what``.

    SciPy takes values that are missing from a symmetric array for zeros, so lines are counted.
    """
    found = 0
    plain = re.compile(rb"(?:%b\n)*+" % line)
    spaced = re.compile(rb"(?:[ \t]*+(?:%b)?+[ \t\r]*+\n)*+" % line)
    while block := stream.read(_BLOCK_BYTES):
        block += stream.readline(_LONGEST_LINE)
        if not block.endswith(b"\n"):
            block += b"\n"
        if plain.fullmatch(block):
            found += block.count(b"\n")
        else:
            block = _PLUS.sub(b"", block)  # SciPy reads no +1
            good = spaced.match(block).end()  # type: ignore[union-attr]
            if good < len(block):
                at = n_before + block.count(b"\n", 0, good) + 1
                wrong = block[good : good + 60].split(b"\n")[0].decode("latin-1")
                raise DataError(
                    f"A line must hold {what} and nothing else; line {at} reads {shorten(wrong)}."
                )
            found += sum(bool(line.strip()) for line in block.splitlines())
        n_before += block.count(b"\n")
        yield block
    if found != expected:
        raise DataError(f"The body must hold {expected} lines of numbers; there are {found}.")


class _Pieces:
    """Pieces of bytes as an open file; SciPy takes whatever ``read`` returns."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, _: int = -1) -> bytes:
        """The next piece; nothing at the end."""
        return next(self._pieces, b"")


def write_mtx(path: Path, table: WrittenTable, name: str) -> None:
    """Write the values alone; sparse as coordinates, dense column by column.

    Not through SciPy: where its writer's stream fails, the whole process is aborted.
    """
    layout = "coordinate" if table.is_sparse else "array"
    size = [*table.X.shape, table.X.nnz] if table.is_sparse else [*table.X.shape]
    with open_compressing(path, name) as stream:
        stream.write(f"%%MatrixMarket matrix {layout} real general\n".encode())
        stream.write((" ".join(map(str, size)) + "\n").encode())
        for at in range(table.X.shape[0 if table.is_sparse else 1]):
            if table.is_sparse:
                lines = [
                    f"{at + 1} {column + 1} {value!r}\n"
                    for column, value in row_entries(table.X, at)
                ]
            else:
                lines = [f"{value!r}\n" for value in table.X[:, at].tolist()]
            stream.write("".join(lines).encode())
