"""Writing the binary formats and the two sparse text formats."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.formats.compression import open_compressing
from keepers.data.formats.content import WrittenTable
from keepers.exceptions import MissingDependencyError, ParameterError, shortened


def write_mtx(path: Path, table: WrittenTable, name: str) -> None:
    """Write the values alone; sparse as coordinates, dense column by column.

    Not through scipy: where its writer's stream fails, the whole process is aborted.
    """
    layout = "coordinate" if table.is_sparse else "array"
    size = [*table.X.shape, table.X.nnz] if table.is_sparse else [*table.X.shape]
    with open_compressing(path, name) as stream:
        stream.write(f"%%MatrixMarket matrix {layout} real general\n".encode())
        stream.write((" ".join(map(str, size)) + "\n").encode())
        for at in range(table.X.shape[0 if table.is_sparse else 1]):
            if table.is_sparse:
                columns, values = _row(table.X, at)
                cells = zip(columns, values, strict=True)
                lines = [f"{at + 1} {column + 1} {float(value)!r}\n" for column, value in cells]
            else:
                lines = [f"{float(value)!r}\n" for value in table.X[:, at].tolist()]
            stream.write("".join(lines).encode())


def _row(X: Any, at: int) -> tuple[list[int], list[float]]:
    """Columns and values of the entries of a CSR row."""
    entries = slice(X.indptr[at], X.indptr[at + 1])
    return X.indices[entries].tolist(), X.data[entries].tolist()


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
            columns, values = _row(X, at)
            if at == 0 and X.shape[1] - 1 not in columns:
                # The last column must be named once, or a reader finds fewer columns.
                columns, values = [*columns, X.shape[1] - 1], [*values, 0.0]
            cells = sorted(zip(columns, values, strict=True))
            entries = " ".join(f"{column + 1}:{value!r}" for column, value in cells)
            stream.write(f"{label!r} {entries}\n".encode("ascii"))


def write_h5ad(path: Path, table: WrittenTable, name: str) -> None:
    """Write the layout of anndata: X, obs with names and labels, var with names."""
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError('.h5ad files need h5py: pip install "keepers[io]".') from error
    if table.labels is not None and ("/" in table.label_name or table.label_name == "_index"):
        raise ParameterError(
            f"An .h5ad file has no column named {shortened(table.label_name)}. Rename it."
        )
    samples = table.sample_names
    if samples is None:
        samples = [str(at) for at in range(table.X.shape[0])]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        _write_values(file, table)
        columns: dict[str, Any] = {}
        if table.labels is not None:
            numeric = table.has_numeric_labels
            columns[table.label_name] = table.labels if numeric else table.text_labels()
        _write_frame(file, "obs", samples, columns)
        _write_frame(file, "var", table.feature_names, {})


def _write_values(file: Any, table: WrittenTable) -> None:
    if not table.is_sparse:
        file["X"] = table.X
        file["X"].attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        return
    group = file.create_group("X")
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    group.attrs["shape"] = np.array(table.X.shape, dtype=np.int64)
    for part in ("data", "indices", "indptr"):
        group[part] = getattr(table.X, part)


def _write_frame(file: Any, name: str, index: list[str], columns: dict[str, Any]) -> None:
    import h5py

    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    group.attrs["_index"] = "_index"
    order = np.array(list(columns), dtype=h5py.string_dtype())
    group.attrs.create("column-order", order, shape=(len(columns),), dtype=h5py.string_dtype())
    for key, values in {"_index": index, **columns}.items():
        if isinstance(values, list):
            group.create_dataset(key, data=values, dtype=h5py.string_dtype())
            kind = "string-array"
        else:
            group[key] = values
            kind = "array"
        group[key].attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})
