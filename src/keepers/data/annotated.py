"""AnnData objects as tables: X or a layer, with the names of the genes. anndata is not imported."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.in_memory import is_stored
from keepers.data.table import NamedValues
from keepers.data.wording import closest, duplicates, some_of
from keepers.exceptions import DataError, shorten


def values_of(adata: Any, layer: str | None = None) -> NamedValues:
    """X, or a layer, of an AnnData object; values on a disk or of Dask are not read yet."""
    names = np.array([str(name) for name in adata.var_names], dtype=object)
    if len(set(names)) < len(names):
        raise DataError(
            f"Names of variables must differ; there are duplicates: {some_of(duplicates(names))}. "
            "Call adata.var_names_make_unique() first."
        )
    return NamedValues(_plain(_matrix(adata, layer)), names)


def _matrix(adata: Any, layer: str | None) -> Any:
    layers = [str(name) for name in getattr(adata, "layers", ())]  # adata.raw has none
    told = some_of([repr(name) for name in layers]) or "none"
    if layer is None:
        if adata.X is None:
            raise DataError(
                "An AnnData object must hold values in X to be fitted; this one has none. Set "
                f"adata.X, or name a layer (keepers.anndata.select(..., layer=)); it has {told}."
            )
        return adata.X
    if layer not in layers:
        raise DataError(
            f"There is no layer {shorten(layer)}.{closest(str(layer), layers)} The layers are "
            f"{told}; leave layer out for adata.X."
        )
    return adata.layers[layer]


def _plain(X: Any) -> Any:
    """Values without the class by which anndata sees a view written to.

    A file that stores columns one after the other has no rows to seek: it is taken into memory.
    """
    if is_stored(X) and getattr(X, "format", None) == "csc":
        X = X.to_memory()
    if isinstance(X, np.ndarray) and not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    if sp.issparse(X) and X.format in ("csr", "csc"):
        kind = sp.csr_matrix if X.format == "csr" else sp.csc_matrix
        return kind((X.data, X.indices, X.indptr), shape=X.shape)
    return X
