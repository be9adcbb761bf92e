"""svmlight and libsvm text (.svm, .libsvm, .svmlight): sparse rows, each with its label."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from keepers.data.formats.compression import open_compressing, open_expanded
from keepers.data.formats.text_cells import LONGEST_LINE, is_rounded_integer, refuse_long_line
from keepers.data.limits import refuse_columns
from keepers.data.table import (
    LabelledTable,
    Matrix,
    ReadRequest,
    WrittenTable,
    row_entries,
    to_table,
)
from keepers.data.values import refuse_rounded_integers
from keepers.exceptions import DataError, ParameterError

_LONG_INTEGER = re.compile(rb"(?<!\S)(?:([0-9]+):)?[+-]?[0-9]{16,}(?!\S)")


def read_svmlight(path: Path, request: ReadRequest) -> LabelledTable:
    """Read the rows as CSR; indices count from 1 unless one of them is 0."""
    from sklearn.datasets import load_svmlight_file  # slow to import, and only needed here

    with open_expanded(path, request.limit) as stream:
        X, y = load_svmlight_file(_CheckedLines(stream))
    if X.nnz == 0:
        raise DataError("Rows must hold index:value pairs; there is not one. Check the format.")
    return to_table(Matrix(X, labels=y), request, path.name.split(".")[0])


class _CheckedLines:
    """Lines that scikit-learn may read: it takes 1_0 for 10, rounds integers, and joins pieces."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.read = stream.read
        """Tells scikit-learn that this is an open file."""

    def __iter__(self) -> Iterator[bytes]:
        """Each line, refused where it would be misread."""
        at = 0
        while line := self._stream.readline(LONGEST_LINE + 1):
            at += 1
            refuse_long_line(len(line), LONGEST_LINE)
            line = line.partition(b"#")[0]
            refuse_columns(line.count(b":"), f"line {at}")
            if b"_" in line:
                raise DataError(f"Rows must hold decimal numbers; line {at} holds an underscore.")
            for found in _LONG_INTEGER.finditer(line):
                if is_rounded_integer(found[0].decode().rpartition(":")[2]):
                    what = "the labels" if found[1] is None else f"index {found[1].decode()}"
                    refuse_rounded_integers([f"{what} (line {at})"])
            yield line


def write_svmlight(path: Path, table: WrittenTable, name: str) -> None:
    """Write labels (0 where there are none) and the entries that are not zero, counted from 1."""
    if table.labels is not None and not table.has_numeric_labels:
        raise ParameterError(
            "svmlight holds numeric labels; these are text. Encode them as numbers, or choose "
            "another format."
        )
    X = sp.csr_matrix(table.X)
    labels = np.zeros(X.shape[0], dtype=int) if table.labels is None else table.labels
    with open_compressing(path, name) as stream:
        for at, label in enumerate((1 * labels).tolist()):  # truth values as 0 and 1
            cells = dict(row_entries(X, at))
            if at == 0:  # the last column must be named once, or a reader finds fewer columns
                cells.setdefault(X.shape[1] - 1, 0.0)
            entries = " ".join(f"{column + 1}:{value!r}" for column, value in sorted(cells.items()))
            stream.write(f"{label!r} {entries}\n".encode("ascii"))
