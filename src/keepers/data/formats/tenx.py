"""What Cell Ranger of 10x Genomics writes: a folder of three files, or one HDF5 file.

Both hold genes x cells and are read as cells x genes. Genes are called by their symbols; repeated
ones are numbered as scanpy numbers them (A, A-1, A-2).
"""

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from keepers.data.blocks.files import reading
from keepers.data.formats.compression import COMPRESSIONS, open_expanded
from keepers.data.formats.h5ad import SparseCellBlocks, SparseLayout
from keepers.data.formats.hdf5 import (
    DatasetBlocks,
    open_hdf5,
    open_hdf5_file,
    open_hdf5_numbers,
    own_member,
    read_dataset,
)
from keepers.data.formats.matrix_market import read_matrix
from keepers.data.formats.text_cells import decode
from keepers.data.limits import SizeLimit
from keepers.data.table import LabelledTable, Matrix, ReadRequest, number_repeated, to_table
from keepers.data.values import as_names
from keepers.data.wording import duplicates, some_of
from keepers.exceptions import DataError, DataWarning, ParameterError, warn_caller

_MATRIX, _CELLS = "matrix.mtx", "barcodes.tsv"
_GENES = ("features.tsv", "genes.tsv")
"""Of Cell Ranger 3 and later, and of version 2."""
_ID, _SYMBOL, _KIND = range(3)
_H5_PARTS = ("barcodes", "data", "indices", "indptr", "shape")


def is_10x_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds the matrix, the genes and the cells that Cell Ranger writes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("matrix.mtx.gz", "features.tsv.gz", "barcodes.tsv.gz"):
    ...         _ = (Path(folder) / f"GSM1_{name}").write_bytes(b"")
    ...     is_10x_folder(folder)
    True
    """
    return bool(_samples(Path(path)))


def _samples(folder: Path) -> dict[str, tuple[Path, Path, Path]]:
    """Matrix, genes and cells by what stands before their names: nothing, or GSM123_, say."""
    try:
        files = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except (OSError, ValueError):
        return {}
    plain = {_without_compression(name): folder / name for name in files}
    found = {}
    for name in plain:
        if name.endswith(_MATRIX):
            prefix = name.removesuffix(_MATRIX)
            genes = [plain[prefix + end] for end in _GENES if prefix + end in plain]
            if genes and prefix + _CELLS in plain:
                found[prefix] = (plain[name], genes[0], plain[prefix + _CELLS])
    return found


def _without_compression(name: str) -> str:
    return name.rpartition(".")[0] if name.endswith(COMPRESSIONS) else name


def read_10x(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a folder; the names of the samples are the barcodes."""
    samples = _samples(path)
    if len(samples) != 1:
        raise DataError(
            "A 10x folder holds one matrix with its genes and barcodes; this one holds "
            f"{some_of([repr(prefix) for prefix in samples]) or 'none'}. Move each into a folder "
            "of its own."
        )
    matrix_file, genes_file, cells_file = next(iter(samples.values()))
    with reading(genes_file, "text"):
        genes = _read_columns(genes_file, request.limit)
    with reading(cells_file, "text"):
        cells = _read_columns(cells_file, request.limit)
    with reading(matrix_file, "Matrix Market"):
        X = read_matrix(matrix_file, request.limit)
    if X.shape != (len(genes), len(cells)):
        raise DataError(
            "The matrix must have a row for each gene and a column for each barcode; it is "
            f"{X.shape[0]} x {X.shape[1]}, with {len(genes)} genes and {len(cells)} barcodes. Take "
            "the three files from the same folder of Cell Ranger."
        )
    kinds = [row[_KIND] for row in genes if len(row) > _KIND]
    symbols = [row[_SYMBOL] if len(row) > _SYMBOL else "" for row in genes]
    names = _gene_names([row[_ID] for row in genes], symbols, kinds, path.name)
    matrix = Matrix(sp.csr_matrix(X.T), names, [row[0] for row in cells])
    return to_table(matrix, request, path.name)


def _read_columns(path: Path, limit: SizeLimit) -> list[list[str]]:
    """The cells of each line, which tabs separate; empty lines at the end do not count."""
    limit.refuse_past(path.stat().st_size, path.name)
    with open_expanded(path, limit) as stream:
        lines = decode(stream.read()).rstrip().splitlines()
    return [[cell.strip().strip('"') for cell in line.split("\t")] for line in lines]


def _gene_names(
    ids: Sequence[str], symbols: Sequence[str], kinds: Sequence[str], source: str
) -> list[str]:
    """Symbols, or ids where there are none; repeated ones numbered, which a warning tells."""
    names = [symbol or id_ for id_, symbol in zip(ids, symbols, strict=True)]
    counts = Counter(kinds)
    if len(counts) > 1:
        told = ", ".join(f"{count} of {kind!r}" for kind, count in counts.most_common())
        warn_caller(
            f"{source} holds features of several kinds ({told}); all are read. Leave some out by "
            "name (drop=, --drop) if they were measured on another scale.",
            DataWarning,
        )
    repeated = duplicates(names)
    if not repeated:
        return names
    warn_caller(
        f"{source}: {len(repeated)} gene symbols stand for several genes and are numbered "
        f"(A, A-1, A-2): {some_of(repeated)}.",
        DataWarning,
    )
    return number_repeated(names, mark="-")


def open_hdf5_table(path: Path, request: ReadRequest) -> DatasetBlocks | SparseCellBlocks:
    """Open an HDF5 file: the matrix of Cell Ranger if it holds one, else an array of numbers.

    Labels of cells are not in the file of Cell Ranger; its barcodes name the samples.
    """
    with reading(path, "HDF5"), open_hdf5_numbers(path) as numbers:
        group = None if request.dataset is not None else _tenx_group(numbers)
    if group is None:
        return open_hdf5_file(path, request)
    if request.labels is not None or request.identifier is not None:
        raise ParameterError(
            f"A file of Cell Ranger names its cells by barcodes and holds no labels; {path} was "
            "asked for labels or an identifier. Leave them out."
        )
    with reading(path, "10x HDF5"), open_hdf5(path) as file:
        node = own_member(file, group)
        names = _stored_gene_names(node, request, path.name)
        table = SparseCellBlocks(path, group, node, names, request, partial(_tenx_layout, request))
        table.title = "10x HDF5"
        table.annotate(partial(_read_barcodes, path, group, request), None)
        return table


def _tenx_group(file: Any) -> str | None:
    """The group of the matrix: "matrix", or in version 2 one that is called as the genome."""
    found = [
        str(name)
        for name in file
        if file.get(name, getclass=True, getlink=True).__name__ == "HardLink"
        and hasattr(node := file[name], "keys")
        and all(part in node for part in _H5_PARTS)
    ]
    if len(found) > 1:
        raise DataError(
            f"A 10x file must hold one matrix; this one holds {some_of(found)}. Write one of them "
            "to a file of its own."
        )
    return found[0] if found else None


def _tenx_layout(request: ReadRequest, node: Any) -> SparseLayout:
    """Columns of genes x cells, one after the other, are rows of cells x genes."""
    n_genes, n_cells = (int(n) for n in read_dataset(own_member(node, "shape"), request).ravel())
    return SparseLayout((n_cells, n_genes), by_rows=True)


def _stored_gene_names(node: Any, request: ReadRequest, source: str) -> list[str]:
    def texts(group: Any, name: str) -> list[str]:
        return list(as_names(read_dataset(own_member(group, name), request), name))

    if "features" in node:  # version 3 and later
        features = own_member(node, "features")
        kinds = texts(features, "feature_type") if "feature_type" in features else []
        ids, symbols = texts(features, "id"), texts(features, "name")
    else:
        ids, symbols, kinds = texts(node, "genes"), texts(node, "gene_names"), []
    n_genes = _tenx_layout(request, node).shape[1]
    if not len(ids) == len(symbols) == n_genes:
        raise DataError(
            f"Every gene needs an id and a name; the matrix has {n_genes} genes, and there are "
            f"{len(ids)} ids and {len(symbols)} names: it is damaged. Obtain or write it again."
        )
    return _gene_names(ids, symbols, kinds, source)


def _read_barcodes(path: Path, group: str, request: ReadRequest) -> tuple[None, Any]:
    with open_hdf5_numbers(path) as file:
        barcodes = read_dataset(own_member(own_member(file, group), "barcodes"), request)
    return None, np.asarray(as_names(barcodes, "barcodes"))
