"""Text with thousands of columns: parsed as one long column of cells.

An engine spends its time on starting columns, and 450,000 of them take it longer than their cells.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._protocols import FloatArray
from keepers.exceptions import DataError
from keepers.tables.atomic import open_plain
from keepers.tables.sniffing import Dialect, lacks_last, refuse_ragged
from keepers.tables.table import GAP_WORDS, LARGEST_EXACT_INTEGER, refuse_shape

MANY = 5_000
"""From this number of columns on it takes less time and memory than polars."""
_BLOCK_BYTES = 4 << 20

Texts = dict[int, list[str | None]]


def read_wide(
    path: Path, dialect: Dialect, skip_lines: int, max_bytes: int | None
) -> tuple[FloatArray, Texts]:
    """The matrix of the columns of numbers, and the cells of the other columns by their place."""
    apart = [at for at, kind in enumerate(dialect.kinds) if kind in ("text", "nothing")]
    texts: Texts = {at: [] for at in apart}
    pieces: list[FloatArray] = []
    n_rows = 0
    for rows in _blocks(path, dialect, skip_lines):
        X = _parse_plain(rows, dialect, texts) if isinstance(rows[0], str) else None
        if X is None:
            cells = [row.split(dialect.sep) if isinstance(row, str) else row for row in rows]
            X, strange = _parse(cells, dialect, texts)
            if strange:  # text further down: begin again with what is known now
                for at in strange:
                    dialect.kinds[at] = "text"
                return read_wide(path, dialect, skip_lines, max_bytes)
        pieces.append(X)
        n_rows += len(X)
        refuse_shape((n_rows, len(dialect.names)), 8, "The table", max_bytes)
    if not pieces:
        raise DataError("It holds no rows. A table needs column names and at least one row.")
    return _stack(pieces), texts


def _parse_plain(lines: Sequence[str], dialect: Dialect, texts: Texts) -> FloatArray | None:
    """Numbers of lines whose columns of text stand at their ends; None for anything unusual."""
    pl = optional("polars", "Text tables")
    mark, width = dialect.sep, len(dialect.names)
    first = next((at for at in range(width) if at not in texts), width)
    last = next((at for at in range(width)[::-1] if at not in texts), -1)
    n_after = width - 1 - last
    if first + n_after != len(texts) or first > last or dialect.decimal == ",":
        return None
    begins = [line.split(mark, first) for line in lines]
    ends = [row[-1].rsplit(mark, n_after) for row in begins]
    column = "\n".join(row[0] for row in ends).replace(mark, "\n")
    options = {"schema": {"x": pl.Float64}, "null_values": sorted(dialect.gaps)}
    try:
        numbers = pl.read_csv(column.encode(), has_header=False, **options)["x"]
    except pl.exceptions.PolarsError:
        return None
    values = numbers.to_numpy()
    is_whole = len(values) == len(lines) * (width - len(texts))
    if not is_whole or np.nanmax(np.abs(values), initial=0) >= LARGEST_EXACT_INTEGER:
        return None
    for at, held in texts.items():
        held.extend(
            _word(b[at] if at < first else e[at - last]) for b, e in zip(begins, ends, strict=True)
        )
    return np.asarray(values.reshape(len(lines), -1))


def _parse(
    rows: Sequence[Sequence[str]], dialect: Dialect, texts: Texts
) -> tuple[FloatArray, set[int]]:
    """Numbers of rows, and columns that were taken for numbers and hold something else."""
    pl = optional("polars", "Text tables")
    places = np.array([at for at in range(len(dialect.names)) if at not in texts])
    column = pl.Series([row[at] for row in rows for at in places], dtype=pl.String)
    column = column.str.strip_chars()
    if dialect.decimal == ",":
        numbers = column.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    else:
        numbers = column.cast(pl.Float64, strict=False)
    if "truth" in dialect.kinds:
        truths = {"true": 1.0, "false": 0.0}
        lower = column.str.to_lowercase()
        found = lower.replace_strict(truths, default=None, return_dtype=pl.Float64)
        numbers = numbers.fill_null(found)
    strange = numbers.is_null() & ~column.is_in(list(GAP_WORDS))
    strange |= numbers.is_infinite().fill_null(False) & column.str.contains(r"\d")
    is_large = (numbers.abs() >= LARGEST_EXACT_INTEGER).fill_null(False)
    strange |= is_large & column.str.contains(r"^[+-]?\d{16,}$")
    at_fault = np.flatnonzero(strange.to_numpy()) % len(places)
    for at, held in texts.items():
        held.extend(_word(row[at]) for row in rows)
    return np.asarray(numbers.to_numpy().reshape(len(rows), -1)), set(places[at_fault].tolist())


def _word(cell: str) -> str | None:
    word = cell.strip()
    return None if word in GAP_WORDS else word


def _stack(pieces: list[FloatArray]) -> FloatArray:
    """All rows in one matrix; the pieces are given up one by one."""
    rows = sum(len(piece) for piece in pieces)
    X = np.empty((rows, pieces[0].shape[1]))
    at = rows
    while pieces:
        piece = pieces.pop()
        X[at - len(piece) : at] = piece
        at -= len(piece)
    return X


def _blocks(path: Path, dialect: Dialect, skip_lines: int) -> Iterator[Any]:
    """About 4 MB of lines at a time, as text or, if cells are quoted, as lists of cells."""
    width, mark, line = len(dialect.names), dialect.sep, skip_lines
    encoding = "utf-8" if dialect.encoding == "utf-8-sig" or skip_lines == 0 else dialect.encoding
    with open_plain(path) as stream:
        for _ in range(skip_lines):
            stream.readline()
        while block := stream.read(_BLOCK_BYTES):
            text = (block + stream.readline()).decode(encoding)
            rows: list[Any]
            if '"' in text:  # a cell with a line break in a table this wide is not expected
                rows = [row for row in csv.reader(io.StringIO(text), delimiter=mark) if row]
                counts = [len(row) for row in rows]
            else:
                rows = [row.removesuffix("\r") for row in text.split("\n") if row.strip("\r")]
                counts = [row.count(mark) + 1 for row in rows]
            for at, count in enumerate(counts):
                if dialect.may_be_short and lacks_last(count, width):
                    lacking = width - count
                    rows[at] += mark * lacking if isinstance(rows[at], str) else [""] * lacking
                elif count != width:
                    refuse_ragged(line + at + 1, count, width)
            line += len(counts)
            if rows:
                yield rows
