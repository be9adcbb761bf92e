"""Cells and genes: AnnData, and folders and files of 10x.

Genes in rows are read as columns. Of an AnnData file only X or a layer, obs and var are read.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers._packages import optional
from keepers._wording import closest, some_of
from keepers.exceptions import DataError, DataWarning, shorten, warn_caller
from keepers.tables.arrays import (
    open_hdf5,
    open_rows,
    parsing,
    read_array,
    read_matrix_market,
    scan_hdf5,
)
from keepers.tables.atomic import open_plain
from keepers.tables.scans import ArrayFile
from keepers.tables.table import (
    ReadRequest,
    Table,
    as_texts,
    number_repeated,
    refuse_absent,
    refuse_shape,
    table_of_matrix,
)


def read_anndata(path: Path, request: ReadRequest) -> Table:
    """X or a layer; labels and sample names are columns of obs."""
    with open_hdf5(path) as store, parsing("X, obs or var"):
        place, *beside = _annotations(store, request)
        X = _read_element(_checked(store[place], request))
        return table_of_matrix(X, request, path.stem, *beside)


def scan_anndata(path: Path, request: ReadRequest) -> ArrayFile:
    """X or a layer, in blocks of rows."""
    with open_hdf5(path) as store, parsing("X, obs or var"):
        place, *beside = _annotations(store, request)
        _checked(store[place], replace(request, max_bytes=2**62))
        return ArrayFile(path, partial(open_rows, path, place), request, *beside)


def _annotations(store: Any, request: ReadRequest) -> tuple[str, Any, Any, Any]:
    """The place of X or of the layer, names of the genes and the cells, and labels or None."""
    layers = list(store["layers"]) if "layers" in store else []
    place = "X" if request.layer is None else f"layers/{request.layer}"
    absent = [part for part in (place, "obs", "var") if part not in store]
    if absent:
        known = some_of([repr(name) for name in layers]) or "not there"
        raise DataError(
            f"An AnnData file holds X, obs and var; this one has no {shorten(absent[0])}."
            f"{closest(request.layer or '', layers)} Its layers are {known} (layer=, --layer)."
        )
    obs, var = (_read_element(_checked(store[part], request)) for part in ("obs", "var"))
    asked = [name for name in (request.labels, request.identifier) if name is not None]
    refuse_absent([f"obs/{name}" for name in asked], [f"obs/{column}" for column in obs.columns])
    ids = obs.index if request.identifier is None else obs[request.identifier]
    labels = None if request.labels is None else obs[request.labels]
    if labels is not None:  # pandas marks gaps in several ways
        labels = np.array(labels.astype(object).where(labels.notna(), None).tolist())
    return place, var.index.to_numpy(), np.array(ids.tolist(), dtype=object), labels


def _checked(node: Any, request: ReadRequest) -> Any:
    """A part of a store, after all in it was seen to be safe to read."""
    if hasattr(node, "keys"):
        for name in node:
            _checked(node[name], request)
        return node
    what, max_bytes = f"array {shorten(node.name)}", request.max_bytes
    refuse_shape(node.shape or (), what, max_bytes, node.dtype.itemsize)
    return node


def _read_element(node: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata warns of its own older versions
        return optional("anndata.io", "AnnData files").read_elem(node)


def tenx_files(folder: Path) -> list[list[Path]]:
    """Matrices, genes and barcodes of Cell Ranger, as their names end; empty if one is not there.

    Names may begin with that of a sample, such as "GSM123_".
    """
    shown = [path for path in folder.iterdir() if not path.name.startswith(".")]
    found = [
        [path for path in shown if re.search(rf"{end}(\.gz)?$", path.name)]
        for end in (r"matrix\.mtx", r"(features|genes)\.tsv", r"barcodes\.tsv")
    ]
    return found if all(found) else []


def read_10x(folder: Path, request: ReadRequest) -> Table:
    """A folder of Cell Ranger as cells x genes; barcodes are the sample names."""
    samples = tenx_files(folder)
    if any(len(paths) > 1 for paths in samples):
        raise DataError(
            "A 10x folder holds one matrix with its genes and barcodes; this one holds "
            f"{some_of([repr(path.name) for path in max(samples, key=len)])}. Move each into a "
            "folder of its own."
        )
    [matrix], *others = samples
    tables = []
    for [path] in others:
        with open_plain(path, request.max_bytes) as stream:
            lines = stream.read().decode(errors="replace").rstrip().splitlines()
        tables.append([line.split("\t") for line in lines])
    genes, cells = tables
    X = read_matrix_market(matrix, request)
    columns = [[[*row, "", ""][at] for row in genes] for at in range(3)]
    ids = None if request.identifier is not None else [row[0] for row in cells]
    names = _gene_names(columns, folder.name)
    return table_of_matrix(sp.coo_matrix(X).T, request, folder.name, names, ids)


def _gene_names(columns: Sequence[Any], source: str) -> list[str]:
    """Symbols, or ids where there are none; repeated ones are numbered as scanpy does.

    ``columns``: ids, symbols and, if known, kinds of the features.
    """
    ids, symbols, kinds = [*columns, ()][:3]
    counts = Counter(filter(None, kinds)).most_common()
    if len(counts) > 1:
        told = ", ".join(f"{number} of {kind!r}" for kind, number in counts)
        warn_caller(
            f"{source}: features of several kinds ({told}) are read. Leave out those that were "
            "measured on another scale (drop=, --drop).",
            DataWarning,
        )
    names = [symbol or name for name, symbol in zip(ids, symbols, strict=True)]
    return number_repeated(names, mark="-")


def scan_hdf5_table(path: Path, request: ReadRequest) -> ArrayFile:
    """The matrix of Cell Ranger, if the file holds one, else an array of numbers."""
    parts = {"data", "indices", "indptr", "barcodes", "shape"}
    with open_hdf5(path) as file:
        # The group is called "matrix", or in version 2 as the genome.
        groups = {name: node for name, node in file.items() if hasattr(node, "keys")}
        places = [name for name, node in groups.items() if parts <= set(node)]
        if len(places) != 1 or request.dataset is not None:
            return scan_hdf5(path, request)
        group, genes = file[places[0]], ["genes", "gene_names"]
        if "features" in group:
            genes = ["features/id", "features/name", "features/feature_type"]
        with parsing("The matrix"):
            columns = [as_texts(read_array(group[part], request), part) for part in genes]
            names = _gene_names(columns, path.name)
            ids = None if request.identifier else read_array(group["barcodes"], request)
            return ArrayFile(path, partial(open_rows, path, places[0]), request, names, ids)
