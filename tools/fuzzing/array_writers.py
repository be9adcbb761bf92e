"""Writers of arrays: NumPy, SciPy's sparse archives, MATLAB, HDF5, AnnData."""

import importlib.util
import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from numpy.random import Generator

from fuzzing.tables import Case, chance, choose, odd_table, sparse_values

HAS_ANNDATA = importlib.util.find_spec("anndata") is not None  # in no extra of keepers
KINDS = ("f8", "f8", "scales", "f4", "f2", "i8", "i4", "i2", "u1", "u4", "bool")
TEXT = h5py.string_dtype()


def numpy_save(rng: Generator, path: Path) -> Case:
    """`numpy.save`: kinds, byte orders, layouts, header versions."""
    X = odd_table(rng, kinds=(*KINDS, "g")).X
    if chance(rng, 0.2):
        X = X.astype(X.dtype.newbyteorder(">"))
    if chance(rng, 0.4):
        X = np.asfortranarray(X)
    where = path.with_suffix(".npy")
    with where.open("wb") as stream:
        np.lib.format.write_array(stream, X, version=choose(rng, None, (1, 0), (2, 0), (3, 0)))
    return Case("numpy save", where, X)


def numpy_savez(rng: Generator, path: Path) -> Case:
    """`numpy.savez` and `savez_compressed`, with names and labels under their usual names."""
    table = odd_table(rng, kinds=KINDS)
    text = choose(rng, np.str_, np.bytes_)
    parts: dict[str, Any] = {choose(rng, "X", "X", "values"): table.X}
    given, samples, labels = None, None, None
    if chance(rng, 0.6):
        given = table.names
        parts["feature_names"] = _as_text(given, text)
    if chance(rng, 0.4):
        samples = table.samples
        parts["sample_names"] = _as_text(samples, text)
    if chance(rng, 0.6):
        labels = table.labels
        is_text = labels.dtype == object
        parts[choose(rng, "y", "labels", "target")] = _as_text(labels, text) if is_text else labels
    where = path.with_suffix(".npz")
    choose(rng, np.savez, np.savez_compressed)(where, **parts)
    return Case("numpy savez", where, table.X, given, samples, labels)


def _as_text(texts: Any, kind: type) -> Any:
    if kind is np.bytes_:
        return np.array([text.encode() for text in texts])
    return np.array(list(texts), dtype=np.str_)


def scipy_save_npz(rng: Generator, path: Path) -> Case:
    """`scipy.sparse.save_npz` in all its formats, as matrix and array, tidy or not."""
    X = sparse_values(rng, choose(rng, "f8", "f4", "i4", "i8", "u1"))
    kind = choose(rng, "csr", "csc", "coo", "bsr", "dia")
    stored = X.asformat(kind)
    if kind == "coo" and chance(rng, 0.5):  # entries in any order, some in two parts
        order = rng.permutation(stored.nnz)
        rows, columns = stored.row[order], stored.col[order]
        both = np.concatenate([stored.data[order], np.ones(3, dtype=stored.dtype)])
        places = (
            np.concatenate([rows, rows[:1].repeat(3)]),
            np.concatenate([columns, columns[:1].repeat(3)]),
        )
        stored = sp.coo_matrix((both, places), shape=X.shape)
        X = stored.tocsr()
    if chance(rng, 0.3):
        stored = getattr(sp, f"{kind}_array")(stored)
    where = path.with_suffix(".npz")
    sp.save_npz(where, stored, compressed=chance(rng, 0.6))
    return Case("scipy save_npz", where, X)


def scipy_savemat(rng: Generator, path: Path) -> Case:
    """`scipy.io.savemat`: dense and sparse, labels as numbers, texts and cells."""
    table = odd_table(rng, missing=True, kinds=KINDS[:4] + KINDS[5:])
    X: Any = table.X
    if chance(rng, 0.3):
        X = _thinned(rng, X)
    content = {choose(rng, "X", "fea", "data", "expression"): X}
    labels = table.labels if chance(rng, 0.7) and X.shape != (1, 1) else None
    if labels is not None:
        stored: Any = labels
        if labels.dtype == object and chance(rng, 0.5) and len(labels) > 1:
            stored = np.array(list(labels), dtype=np.str_)
        content[choose(rng, "y", "gnd", "labels")] = stored
    where = path.with_suffix(".mat")
    scipy.io.savemat(
        where, content, do_compression=chance(rng, 0.5), oned_as=choose(rng, "row", "column")
    )
    return Case("scipy savemat", where, X, labels=labels)


def _thinned(rng: Generator, X: Any) -> Any:
    """A CSC matrix with some of the entries."""
    return sp.csc_matrix(np.where(rng.random(X.shape) < 0.3, np.nan_to_num(X), 0).astype(float))


def _stored(rng: Generator, group: Any, name: str, values: Any) -> Any:
    """A dataset with some choice of chunks, filters and alignment."""
    options: dict[str, Any] = {}
    values = np.asarray(values)
    if values.ndim and values.size and chance(rng, 0.5):
        options["chunks"] = tuple(max(1, min(5, length)) for length in values.shape)
        options["compression"] = choose(rng, None, "gzip", "gzip", "lzf")
        options["shuffle"] = chance(rng, 0.3)
        options["fletcher32"] = chance(rng, 0.2)
    return group.create_dataset(name, data=values, **options)


def plain_hdf5(rng: Generator, path: Path) -> Case:
    """Plain HDF5: groups, chunks, filters, byte orders, library versions."""
    table = odd_table(rng, kinds=KINDS)
    X = table.X.astype(table.X.dtype.newbyteorder(choose(rng, "<", ">")))
    where = path.with_suffix(choose(rng, ".h5", ".hdf5"))
    name = choose(rng, "X", "X", "matrix", "group/deeper/values")
    arguments = {"dataset": name} if chance(rng, 0.3) else {}
    labels = None
    with h5py.File(where, "w", libver=choose(rng, "earliest", "latest")) as file:
        _stored(rng, file, name, X)
        if chance(rng, 0.5):
            labels = table.labels
            texts = np.array(list(labels), dtype=object)
            if labels.dtype == object:
                file.create_dataset("labels", data=texts, dtype=TEXT)
            else:
                _stored(rng, file, "y", labels)
    return Case("h5py, plain", where, X, None, None, labels, arguments)


def _cells(rng: Generator) -> tuple[Any, Any]:
    """X, often sparse, and a table with its names and labels as text."""
    table = odd_table(rng, kinds=("f8", "f4", "i4", "scales"))
    X: Any = table.X
    if chance(rng, 0.6):
        dense = np.where(rng.random(X.shape) < 0.3, np.nan_to_num(X.astype(float)), 0)
        X = choose(rng, sp.csr_matrix, sp.csc_matrix)(np.where(np.isfinite(dense), dense, 0))
    return X, table


def anndata_h5ad(rng: Generator, path: Path) -> Case:
    """`anndata.AnnData.write_h5ad`."""
    anndata = importlib.import_module("anndata")
    X, table = _cells(rng)
    where = path.with_suffix(".h5ad")
    labels = pd.Series(table.labels, index=table.samples)
    texts = labels.dtype == object
    if chance(rng, 0.5):
        labels = labels.astype(str).astype("category")
        texts = True
    elif labels.dtype.kind == "i" and chance(rng, 0.5):
        labels = labels.astype("Int64")
    obs = pd.DataFrame({"kind": labels}, index=pd.Index(table.samples))
    cells = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=pd.Index(table.names)))
    cells.uns["notes"] = "made up"
    if not sp.issparse(X):
        cells.layers["twice"] = 2 * X
    cells.write_h5ad(where, compression=choose(rng, None, "gzip", "lzf"))
    expected = np.array([str(label) for label in labels]) if texts else table.labels
    names = table.names
    return Case("anndata write_h5ad", where, X, names, table.samples, expected, {"labels": "kind"})


def matlab_4(rng: Generator, path: Path) -> Case:
    """`scipy.io.savemat` in version 4: may be refused, must not be misread."""
    table = odd_table(rng, kinds=("f8",))
    stream = io.BytesIO()
    scipy.io.savemat(stream, {"X": table.X}, format="4")
    where = path.with_suffix(".mat")
    where.write_bytes(stream.getvalue())
    return Case("scipy savemat, version 4", where, table.X)


ARRAY_WRITERS = (
    numpy_save,
    numpy_savez,
    scipy_save_npz,
    scipy_save_npz,
    scipy_savemat,
    scipy_savemat,
    plain_hdf5,
    matlab_4,
    *((anndata_h5ad,) if HAS_ANNDATA else ()),
)
