"""Files that hold a matrix: NumPy, MATLAB, Matrix Market, HDF5; AnnData, folders and files of 10x.

Nothing is unpickled, no link leads into another file, and sizes are checked before memory is taken.
Of an AnnData file only X or a layer, obs and var are read; genes in rows are read as columns.
"""

import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from keepers._packages import optional
from keepers._wording import closest, first_line, some_of
from keepers.exceptions import DataError, DataWarning, KeepersError, shorten, warn_caller
from keepers.tables.atomic import open_plain
from keepers.tables.scans import ArrayFile, StoredRows, dense_rows, sparse_rows
from keepers.tables.table import (
    ReadRequest,
    Table,
    as_texts,
    number_repeated,
    refuse_absent,
    refuse_shape,
    table_of_matrix,
)

VALUES = ("X", "fea", "data")
LABELS = ("y", "Y", "gnd", "labels", "label", "target")
"""Usual names of the values and of the classes."""


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Make a `DataError` of what our own code raises for content that it did not expect."""
    try:
        yield
    except KeepersError:
        raise
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DataError(
            f"{what} cannot be understood ({first_line(error)}): the file is damaged, or not "
            "written as its format demands. Write it again."
        ) from error


def scan_npy(path: Path, request: ReadRequest) -> ArrayFile:
    """A single array, whole or in blocks of rows."""
    with path.open("rb") as stream:
        _check_header(stream, path.name)
    return ArrayFile(path, partial(_map_npy, path), request)


@contextmanager
def _map_npy(path: Path) -> Iterator[StoredRows]:
    yield dense_rows(np.load(path, mmap_mode="r", allow_pickle=False))


def _check_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], int]:
    """The shape of the array and the bytes of a value; raise for pickled objects."""
    version = np.lib.format.read_magic(stream)
    # 3.0 differs from 2.0 in the names of fields only.
    reader = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
    shape, _, dtype = getattr(np.lib.format, reader)(stream)
    if dtype.hasobject:
        raise DataError(
            f"{shorten(name)} holds pickled objects, which are never loaded: a pickle can run any "
            "code. Store numbers or fixed-width text, such as names.astype(str)."
        )
    return shape, dtype.itemsize


def read_npz(path: Path, request: ReadRequest) -> Table:
    """An archive: X, its only matrix, or the parts of a sparse one, with y and names if there."""
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for file in archive.namelist():
            if file.endswith(".npy"):
                name = file.removesuffix(".npy")
                with archive.open(file) as stream:
                    shape, itemsize = _check_header(stream, name)
                refuse_shape(shape, f"Array {shorten(name)}", request.max_bytes, itemsize)
                with archive.open(file) as stream:
                    found[name] = np.lib.format.read_array(stream, allow_pickle=False)
    if "X" not in found and {"shape", "data"} <= set(found):
        with parsing("The sparse matrix"):
            shape = tuple(map(int, found["shape"]))
            refuse_shape((max(shape) + 1,), "The sparse matrix", request.max_bytes)
            if "format" in found:
                found["X"] = sp.load_npz(path)
            else:  # the parts of a CSR matrix, next to labels and names
                parts = (found["data"], found["indices"], found["indptr"])
                found["X"] = sp.csr_matrix(parts, shape=shape)
    return _table_of_variables(found, request, path.stem)


def _table_of_variables(found: Mapping[str, Any], request: ReadRequest, name: str) -> Table:
    """The values, with classes and names if they are there."""
    values, *roles = _choose(found, request)
    vectors = [None if role is None else _as_vector(found[role], role) for role in roles]
    return table_of_matrix(found[values], request, name, *vectors)


def _choose(found: Mapping[str, Any], request: ReadRequest) -> tuple[str, *tuple[str | None, ...]]:
    """The arrays with values, feature names, sample names and classes; None where there is none."""
    shapes = {
        each: tuple(value.shape)
        for each, value in found.items()
        if value.ndim == 2 and value.dtype.kind in "biufc"
    }

    def find(asked: str | None, *usual: str) -> str | None:
        """The requested array, or a vector with a usual name."""
        if asked is not None:
            return asked if asked in found else None
        vectors = (each for each in usual if each in found and 1 in shapes.get(each, (1,)))
        return next(vectors, None)

    ids, labels = find(request.identifier, "sample_names"), find(request.labels, *LABELS)
    left = {each: shape for each, shape in shapes.items() if each not in (ids, labels)}
    wide = [each for each, shape in left.items() if 1 not in shape] or list(left)
    usual = next((each for each in VALUES if each in left), wide[0] if len(wide) == 1 else None)
    values = usual if request.dataset is None else request.dataset.strip("/")
    if values is None or values not in found:
        told = [f"{each!r} ({' x '.join(map(str, shape))})" for each, shape in shapes.items()]
        raise DataError(
            f"The values must be the only matrix of the file, one of {', '.join(VALUES)}, or be "
            f"named (dataset=); there is no array {shorten(values or 'X')}."
            f"{closest(values or '', shapes)} The file holds {some_of(told) or 'none'}."
        )
    return values, find(None, "feature_names"), ids, labels


def _as_vector(value: Any, name: str) -> Any:
    """Labels or names; cells of MATLAB become texts, empty ones None."""
    if value.dtype != object:
        return np.char.rstrip(value) if value.dtype.kind == "U" else value
    with parsing(f"Variable {shorten(name)}"):
        cells = map(np.asarray, value.ravel())
        texts = [str(cell.item()) if cell.size else "" for cell in cells]
        return np.array([text or None for text in texts], dtype=object)


def read_mat(path: Path, request: ReadRequest) -> Table:
    """X (or fea, data, or the only matrix) and y (or gnd, labels, ...) of a MATLAB file.

    SciPy reads versions 4 to 7; a damaged file can end the process.
    """
    try:
        variables = scipy.io.whosmat(path, appendmat=False)
    except NotImplementedError as error:
        raise DataError("It is of version 7.3. Save it in MATLAB with save(..., '-v7').") from error
    for name, shape, kind in variables:
        if kind != "sparse":
            refuse_shape(shape, f"variable {shorten(name)}", request.max_bytes)
    loaded = scipy.io.loadmat(path, appendmat=False, mat_dtype=True)
    found = {name: value for name, value in loaded.items() if not name.startswith("__")}
    return _table_of_variables(found, request, path.stem)


def read_mtx(path: Path, request: ReadRequest) -> Table:
    """A Matrix Market file whose rows are samples; sparse stays sparse."""
    return table_of_matrix(read_matrix_market(path, request), request, path.stem)


def read_matrix_market(path: Path, request: ReadRequest) -> Any:
    """An array or a COO matrix; a file that was damaged on purpose can end the process."""
    with open_plain(path, request.max_bytes) as stream:
        n_rows, n_columns, n_entries, layout, *_ = scipy.io.mminfo(_MarketStream(stream))
    # Each entry has a value, a row and a column; SciPy's CSR has a pointer for each row.
    size = (n_rows, n_columns) if layout == "array" else (n_rows + 3 * n_entries,)
    refuse_shape(size, "The matrix", request.max_bytes)
    with open_plain(path, request.max_bytes) as stream:
        return scipy.io.mmread(_MarketStream(stream))


class _MarketStream:
    """A stream that SciPy can read.

    SciPy 1.17 ends the process when it seeks in some sound files, or meets a number that is cut off
    in its exponent at the end of a file: so this stream cannot seek, and ends in a line break.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._end = stream, b"\n"

    def read(self, size: int = -1) -> bytes:
        found = self._stream.read(size)
        if not found:
            found, self._end = self._end, b""
        return found


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """An HDF5 file to read; raise if it leads into other files, before anything is read."""
    h5py = optional("h5py", "HDF5 files (.h5, .h5ad)")
    elsewhere: list[str] = []

    def look(name: str, node: Any) -> None:
        is_array = isinstance(node, h5py.Dataset)
        is_stored_apart = is_array and bool(node.external or node.is_virtual)
        if is_stored_apart or isinstance(node, h5py.ExternalLink):
            elsewhere.append(name)

    with h5py.File(path, "r") as file:
        file.visititems_links(look)
        file.visititems(look)
        if elsewhere:
            raise DataError(
                f"{some_of([*map(shorten, elsewhere)])} points to another file, which is not read. "
                "Store the values in the file."
            )
        yield file


@contextmanager
def open_rows(path: Path, place: str) -> Iterator[StoredRows]:
    """Rows of an array in a store, of the sparse parts of AnnData, or of those of Cell Ranger."""
    with open_hdf5(path) as file:
        node = file[place]
        if not hasattr(node, "keys"):
            yield dense_rows(node)
        elif "barcodes" in node:  # columns of genes x cells are rows of cells x genes
            yield sparse_rows(node, tuple(node["shape"][:].tolist()[::-1]))
        else:
            stored = optional("anndata.io", "AnnData files").sparse_dataset(node)
            if stored.format != "csr":
                raise DataError(
                    f"{place} must be stored by rows (CSR) to be read in blocks. Convert it where "
                    "it fits in memory: adata.X = adata.X.tocsr(), then adata.write_h5ad(...)."
                )
            yield sparse_rows(node, stored.shape)


def _checked(node: Any, request: ReadRequest) -> Any:
    """A part of a store, after the sizes of all in it were compared with the memory."""
    if hasattr(node, "keys"):
        for name in node:
            _checked(node[name], request)
        return node
    what, max_bytes = f"array {shorten(node.name)}", request.max_bytes
    refuse_shape(node.shape or (), what, max_bytes, node.dtype.itemsize)
    return node


def scan_hdf5(path: Path, request: ReadRequest) -> ArrayFile:
    """The matrix of Cell Ranger, if the file holds one, else ``dataset``, X or the only matrix."""
    parts = {"data", "indices", "indptr", "barcodes", "shape"}
    found: dict[str, Any] = {}
    with open_hdf5(path) as file:
        # The group is called "matrix", or in version 2 as the genome.
        groups = {name: node for name, node in file.items() if hasattr(node, "keys")}
        places = [name for name, node in groups.items() if parts <= set(node)]
        if len(places) != 1 or request.dataset is not None:
            file.visititems(found.__setitem__)
            found = {name: node for name, node in found.items() if getattr(node, "shape", ())}
            place, *roles = _choose(found, request)
            vectors = [
                None if role is None else _checked(found[role], request)[()] for role in roles
            ]
            return ArrayFile(path, partial(open_rows, path, place), request, *vectors)
        group, genes = file[places[0]], ["genes", "gene_names"]
        if "features" in group:
            genes = ["features/id", "features/name", "features/feature_type"]
        with parsing("The matrix"):
            columns = [as_texts(_checked(group[part], request)[()], part) for part in genes]
            names = _gene_names(columns, path.name)
            ids = None if request.identifier else _checked(group["barcodes"], request)[()]
            return ArrayFile(path, partial(open_rows, path, places[0]), request, names, ids)


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
