"""Matrix Market (.mtx), sparse or dense.

Parsed here: scipy's reader was seen to end the whole process on damaged files.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from keepers._protocols import FloatArray
from keepers.data.columns import Matrix, to_table
from keepers.data.formats.compression import is_compressed, open_expanded
from keepers.data.formats.text_cells import is_rounded_integer, parse_cells
from keepers.data.limits import (
    LARGEST_EXACT_INTEGER,
    refuse_columns,
    refuse_declared,
    refuse_hollow,
)
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.exceptions import DataError, MissingDependencyError, shortened

__all__ = ["read_mtx"]

_LONGEST_LINE = 2**16
_LONGEST_WORD = 1000
_BLOCK_BYTES = 4 * 2**20
_ONE_A_LINE = bytes.maketrans(b" \t\r", b"\n\n\n")
_BANNER = "%%matrixmarket"
_NUMBERS_PER_ENTRY = {"pattern": 2, "real": 3, "integer": 3}
_MIRRORED = {"general": None, "symmetric": 1, "hermitian": 1, "skew-symmetric": -1}
"""Sign of the other triangle; where numbers are real, hermitian is symmetric."""


@dataclass(frozen=True)
class _Head:
    """The banner and the sizes."""

    sparse: bool
    field: str
    symmetry: str
    n_rows: int
    n_columns: int
    n_entries: int

    @property
    def n_numbers(self) -> int:
        """How many numbers follow."""
        return self.n_entries * (_NUMBERS_PER_ENTRY[self.field] if self.sparse else 1)


def read_mtx(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a matrix whose rows are samples; sparse stays sparse."""
    with open_expanded(path, request.limit) as stream:
        head = _read_head(stream)
        refuse_columns(head.n_columns, "the file")
        if head.sparse:
            refuse_hollow(head.n_rows, head.n_entries, "the file")
            request.limit.refuse_shape((head.n_numbers,), 8, "The sparse matrix")
        else:
            request.limit.refuse_shape((head.n_rows, head.n_columns), 8, "The matrix")
        if not is_compressed(path):  # every number takes a digit and a space
            refuse_declared(2 * head.n_numbers, path.stat().st_size + 1, "the file")
        numbers = _read_numbers(stream, head)
    X = _sparse(numbers, head) if head.sparse else _dense(numbers, head)
    return to_table(Matrix(X), request, path.name.split(".")[0])


def _read_head(stream: IO[bytes]) -> _Head:
    words = stream.readline(_LONGEST_LINE).decode("ascii", errors="replace").lower().split()
    if len(words) != 5 or words[:2] != [_BANNER, "matrix"]:
        raise DataError("A Matrix Market file begins with '%%MatrixMarket matrix ...'.")
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array") or field not in ("real", "integer", "pattern"):
        raise DataError(
            "A matrix must be coordinate or array, and real, integer or pattern; this one is "
            f"{layout} {field}. Store real numbers."
        )
    if symmetry not in _MIRRORED or (layout == "array" and field == "pattern"):
        raise DataError(f"A {layout} {field} matrix cannot be {symmetry}; the file is damaged.")
    sizes = _read_sizes(stream)
    if len(sizes) != (3 if layout == "coordinate" else 2) or min(sizes) < 0:
        raise DataError(f"The line of sizes reads {sizes}; the file is damaged.")
    n_rows, n_columns = sizes[:2]
    if symmetry != "general" and n_rows != n_columns:
        raise DataError(f"A {symmetry} matrix is square; this one is {n_rows} x {n_columns}.")
    if layout == "coordinate":
        return _Head(True, field, symmetry, n_rows, n_columns, sizes[2])
    n_entries = n_rows * n_columns
    sign = _MIRRORED[symmetry]
    if sign is not None:  # one triangle, with the diagonal or without
        n_entries = n_rows * (n_rows + sign) // 2
    return _Head(False, field, symmetry, n_rows, n_columns, n_entries)


def _read_sizes(stream: IO[bytes]) -> list[int]:
    while line := stream.readline(_LONGEST_LINE):
        if line.strip() and not line.startswith(b"%"):
            words = line.decode("ascii", errors="replace").split()
            if not all(re.fullmatch("-?[0-9]{1,18}", word) for word in words):
                raise DataError(
                    f"The line of sizes must hold integers; it reads {shortened(line[:60])}."
                )
            return [int(word) for word in words]
    raise DataError("There is no line of sizes; the file is truncated.")


def _read_numbers(stream: IO[bytes], head: _Head) -> Any:
    """The numbers of the body, as many as were declared; int64 if float64 would round some."""
    expected = head.n_numbers
    numbers: Any = np.empty(expected)
    exact: dict[int, int] = {}
    found = 0
    for block in _whole_words(stream):
        values = _parsed(block)
        if head.field == "integer":
            large = _large_integers(values, block)
            exact.update((found + at, value) for at, value in large.items())
        if found + len(values) > expected:
            raise DataError(f"The body must hold {expected} numbers; there are more.")
        numbers[found : found + len(values)] = values
        found += len(values)
    if found < expected:
        raise DataError(f"The body must hold {expected} numbers; there are {found}.")
    if head.field == "integer" and not _are_integers(numbers):
        raise DataError("An integer matrix must hold integers; this one holds other numbers.")
    if exact:
        numbers = numbers.astype(np.int64)
        numbers[list(exact)] = list(exact.values())
    return numbers


def _are_integers(numbers: FloatArray) -> bool:
    return bool(np.all(np.isfinite(numbers) & (numbers == np.floor(numbers))))


def _whole_words(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks that end where a word ends."""
    while block := stream.read(_BLOCK_BYTES):
        if not block[-1:].isspace():
            rest = stream.readline(_LONGEST_LINE)
            if len(rest) == _LONGEST_LINE:
                raise DataError(f"A line must be shorter than {_LONGEST_LINE} bytes.")
            block += rest
        yield block


def _large_integers(values: FloatArray, block: bytes) -> dict[int, int]:
    """Integers that float64 does not hold exactly, by their place in the block."""
    large = np.flatnonzero(np.abs(values) >= LARGEST_EXACT_INTEGER).tolist()
    words = block.decode("ascii", errors="replace").split() if large else []
    exact = {at: int(words[at][:_LONGEST_WORD]) for at in large if is_rounded_integer(words[at])}
    if any(abs(value) >= 2**63 for value in exact.values()):
        raise DataError(
            "Integers must fit in 64 bits; the body holds a larger one. Write the matrix as real."
        )
    return exact


def _parsed(block: bytes) -> FloatArray:
    try:
        return parse_cells(block.translate(_ONE_A_LINE), skip_empty=True)
    except (MissingDependencyError, ValueError):
        return _parsed_slowly(block)  # without pyarrow, or to be sure that something is wrong


def _parsed_slowly(block: bytes) -> FloatArray:
    with warnings.catch_warnings():
        # NumPy stops at the first word that is no number; as a warning until it becomes an error.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(block.decode("ascii"), sep=" ") if block.strip() else np.empty(0)
        except (DeprecationWarning, ValueError) as error:
            raise DataError(
                "The body must hold numbers only; found a non-numeric token."
            ) from error


def _sparse(numbers: Any, head: _Head) -> Any:
    entries = numbers.reshape(head.n_entries, _NUMBERS_PER_ENTRY[head.field])
    places = entries[:, :2]
    inside = (places >= 1) & (places <= (head.n_rows, head.n_columns))
    if not inside.all() or np.any(places != np.floor(places)):
        raise DataError(
            f"Rows and columns must be whole numbers from 1 to {head.n_rows} and "
            f"{head.n_columns}; some are not."
        )
    rows, columns = places.T.astype(np.int64) - 1
    values = np.ones(len(entries)) if head.field == "pattern" else entries[:, 2]
    sign = _MIRRORED[head.symmetry]
    if sign is not None:
        below = rows != columns
        values = np.concatenate([values, sign * values[below]])
        rows, columns = (
            np.concatenate([rows, columns[below]]),
            np.concatenate([columns, rows[below]]),
        )
    return sp.csr_matrix((values, (rows, columns)), shape=(head.n_rows, head.n_columns))


def _dense(numbers: Any, head: _Head) -> Any:
    sign = _MIRRORED[head.symmetry]
    if sign is None:
        return numbers.reshape((head.n_rows, head.n_columns), order="F")
    X = np.zeros((head.n_rows, head.n_columns), dtype=numbers.dtype)
    # The lower triangle by columns is the upper one of the transpose by rows.
    upper = np.triu_indices(head.n_rows, k=0 if sign > 0 else 1)
    X.T[upper] = numbers
    X[upper] = sign * numbers
    return X
