"""svmlight and libsvm text (.svm, .libsvm, .svmlight): sparse rows, each with its label."""

from pathlib import Path

from keepers.data.columns import Matrix, to_table
from keepers.data.formats.expansion import open_expanded
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.exceptions import DataError

__all__ = ["read_svmlight"]


def read_svmlight(path: Path, request: ReadRequest) -> LabelledTable:
    """Read the rows as CSR; indices count from 1 unless one of them is 0."""
    from sklearn.datasets import load_svmlight_file  # slow to import, and only needed here

    with open_expanded(path, request.limit) as stream:
        X, y = load_svmlight_file(stream)
    if X.nnz == 0:
        raise DataError("Rows must hold index:value pairs; there is not one. Check the format.")
    return to_table(Matrix(X, labels=y), request, path.name.split(".")[0])
