"""Writing text tables: exact numbers, and text that no spreadsheet takes for a formula."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.formats.compression import open_compressing
from keepers.data.formats.content import WrittenTable
from keepers.exceptions import MissingDependencyError

__all__ = ["harmless", "text_line", "write_csv", "write_tsv"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_CELLS_PER_BLOCK = 500_000


def write_csv(path: Path, table: WrittenTable, name: str) -> None:
    """Write comma-separated text, compressed if ``name`` says so."""
    _write(path, table, name, ",")


def write_tsv(path: Path, table: WrittenTable, name: str) -> None:
    """Write tab-separated text, compressed if ``name`` says so."""
    _write(path, table, name, "\t")


def harmless(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would evaluate.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-1.5"), harmless("gene")
    ("'=1+1", '-1.5', 'gene')
    """
    if not text.startswith(_FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text if text[0] in "+-" else "'" + text


def _write(path: Path, table: WrittenTable, name: str, delimiter: str) -> None:
    n_samples, n_features = table.X.shape
    leading = _leading_cells(table, delimiter)
    titles = [table.identifier_name] * (table.sample_names is not None)
    titles += [table.label_name] * (table.labels is not None)
    with open_compressing(path, name) as stream:
        stream.write(text_line([*titles, *table.feature_names], delimiter).encode() + b"\n")
        step = max(1, _CELLS_PER_BLOCK // max(1, n_features))
        for start in range(0, n_samples, step):
            rows = table.X[start : start + step]
            rows = rows.toarray() if table.is_sparse else np.ascontiguousarray(rows)
            lines = _number_lines(rows, delimiter)
            if leading:
                before = leading[start : start + step]
                lines = [f"{a}{delimiter}{b}" for a, b in zip(before, lines, strict=True)]
            stream.write("\n".join(lines).encode() + b"\n")


def _leading_cells(table: WrittenTable, delimiter: str) -> list[str]:
    """Sample names and labels of each row, as they will stand in the file."""
    columns: list[Sequence[str]] = []
    if table.sample_names is not None:
        columns.append(table.sample_names)
    if table.labels is not None:
        columns.append(table.text_labels())
    return [text_line(cells, delimiter) for cells in zip(*columns, strict=True)]


def text_line(cells: Iterable[Any], delimiter: str) -> str:
    """Cells of one row as they stand in a file, without the line end; None is an empty cell."""
    text = io.StringIO()
    # The line end is also what tells the writer which characters to quote.
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue().removesuffix("\r\n")


def _number_lines(rows: Any, delimiter: str) -> list[str]:
    """Every row joined by the delimiter, in the shortest digits that read back the same."""
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError as error:
        raise MissingDependencyError(
            'Text tables need pyarrow: pip install "keepers[io]".'
        ) from error
    if rows.dtype.kind == "b":
        rows = rows.astype(np.int8)
    elif rows.dtype == np.float16 or rows.dtype.itemsize > 8:
        rows = rows.astype(np.float64)
    n_rows, n_columns = rows.shape
    cells = pa.array(rows.ravel()).cast(pa.string())
    offsets = pa.array(np.arange(0, (n_rows + 1) * n_columns, n_columns, dtype=np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, cells), delimiter)
    return list(joined.to_pylist())
