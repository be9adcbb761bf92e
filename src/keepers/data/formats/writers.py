"""Writing the binary formats and the two sparse text formats."""

from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.formats.content import WrittenTable
from keepers.exceptions import MissingDependencyError, ParameterError, shortened

__all__ = [
    "write_h5ad",
    "write_npy",
    "write_npz",
]


def write_npy(path: Path, table: WrittenTable, name: str) -> None:
    """Write the values alone."""
    with path.open("wb") as stream:
        np.save(stream, table.dense(), allow_pickle=False)


def write_npz(path: Path, table: WrittenTable, name: str) -> None:
    """Write X, y, feature_names and sample_names; a sparse X as `scipy.sparse.save_npz` does."""
    arrays: dict[str, Any] = {"feature_names": np.array(table.feature_names, dtype=str)}
    if table.is_sparse:
        X = table.X
        arrays |= {"format": np.array(b"csr"), "shape": np.array(X.shape), "data": X.data}
        arrays |= {"indices": X.indices, "indptr": X.indptr}
    else:
        arrays["X"] = table.X
    if table.sample_names is not None:
        arrays["sample_names"] = np.array(table.sample_names, dtype=str)
    if table.labels is not None:
        numeric = table.has_numeric_labels
        arrays["y"] = table.labels if numeric else np.array(table.text_labels(), dtype=str)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


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
