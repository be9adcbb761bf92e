"""Writing NumPy arrays and archives."""

from pathlib import Path
from typing import Any

import numpy as np

from keepers.data.formats.content import WrittenTable

__all__ = [
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
