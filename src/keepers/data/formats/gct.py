"""GCT (.gct), versions 1.2 and 1.3: genes in rows, read and written."""

import re
from pathlib import Path
from typing import IO

import numpy as np

from keepers.data.formats.compression import open_compressing
from keepers.data.formats.genes_in_rows import DELIMITER, GeneRows, read_cells
from keepers.data.formats.text import number_lines, open_text, text_line
from keepers.data.table import LabelledTable, ReadRequest, WrittenTable
from keepers.exceptions import DataError, shorten

_SIZES = {"#1.2": 2, "#1.3": 4}
"""Numbers in the second line: rows, columns, and in 1.3 what is told of each."""
_NUMBERED = ["id", "name", "description"]
"""How some files of version 1.2 begin their header, whose rows are numbered besides."""
_MISSING = "na"
_CELLS_PER_BLOCK = 500_000


def read_gct(path: Path, request: ReadRequest) -> LabelledTable:
    """Read samples x features; ``labels`` or ``identifier`` may name a row of column metadata."""
    with open_text(path, request) as stream:
        version = "".join(read_cells(stream, 1)[:1])
        if version not in _SIZES:
            raise DataError(
                f"A GCT file begins with #1.2 or #1.3; this one begins with {shorten(version)}."
            )
        n_rows, n_columns, *n_metadata = _sizes(stream, version)
        n_row_metadata, n_column_metadata = n_metadata or (1, 0)
        header = read_cells(stream, 3)
        n_before, names_at = 1 + n_row_metadata, 0
        if [cell.casefold() for cell in header[:3]] == _NUMBERED:
            n_before, names_at = 3, 1
        if len(header) != n_before + n_columns:
            raise DataError(
                f"Line 3 must hold {n_before + n_columns} names, {n_columns} of them of samples, "
                f"as line 2 declares; it holds {len(header)}. Obtain or write it again."
            )
        request.limit.refuse_shape((n_columns, n_rows), 8, "The table")
        metadata = {}
        for line in range(4, 4 + n_column_metadata):
            cells = read_cells(stream, line)
            if len(cells) != len(header):
                raise DataError(
                    f"Line {line} must tell something of every sample, in {len(header)} cells; it "
                    f"has {len(cells)}. Obtain or write it again."
                )
            words = ["" if word.casefold() == _MISSING else word for word in cells[n_before:]]
            metadata[cells[0]] = words

        def check(n_found: int) -> None:
            if n_found != n_rows:
                raise DataError(
                    f"It declares {n_rows} rows and holds {n_found}: it is cut off or damaged. "
                    "Obtain or write it again."
                )

        rows = GeneRows(header, n_before, 4 + n_column_metadata, metadata, names_at)
        return rows.read(stream, request, path.name.split(".")[0], check)


def _sizes(stream: IO[bytes], version: str) -> list[int]:
    cells = [cell for cell in read_cells(stream, 2) if cell]
    n_sizes = _SIZES[version]
    if len(cells) != n_sizes or not all(re.fullmatch("[0-9]{1,15}", cell) for cell in cells):
        raise DataError(
            f"Line 2 of GCT {version} must hold {n_sizes} numbers, of rows and columns; it reads "
            f"{shorten(' '.join(cells))}."
        )
    return [int(cell) for cell in cells]


def write_gct(path: Path, table: WrittenTable, name: str) -> None:
    """Write version 1.2, or 1.3 where there are labels, as a row of column metadata."""
    n_samples, n_features = table.X.shape
    labels = table.labels is not None
    samples = table.sample_names or [f"sample {at}" for at in range(1, n_samples + 1)]
    sizes = [n_features, n_samples, 0, 1] if labels else [n_features, n_samples]
    lines = ["#1.3" if labels else "#1.2", DELIMITER.join(map(str, sizes))]
    lines.append(text_line([*(["id"] if labels else ["Name", "Description"]), *samples], DELIMITER))
    if labels:
        lines.append(text_line([table.label_name, *table.text_labels()], DELIMITER))
    columns = table.X.tocsc() if table.is_sparse else table.X
    with open_compressing(path, name) as stream:
        stream.write("\n".join([*lines, ""]).encode())
        step = max(1, _CELLS_PER_BLOCK // max(1, n_samples))
        for start in range(0, n_features, step):
            block = columns[:, start : start + step]
            block = block.toarray() if table.is_sparse else block
            names = table.feature_names[start : start + step]
            for gene, numbers in zip(
                names, number_lines(np.ascontiguousarray(block.T), DELIMITER), strict=True
            ):
                told = text_line([gene] if labels else [gene, gene], DELIMITER)
                stream.write(f"{told}{DELIMITER}{numbers}\n".encode())
