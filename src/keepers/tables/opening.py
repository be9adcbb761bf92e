"""From a path or the name of a data set to a table, whole or in blocks of rows."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from keepers._protocols import FloatArray
from keepers._wording import closest, some_of
from keepers.exceptions import DataError, DataWarning, ParameterError, shorten, warn_caller
from keepers.tables.atomic import COMPRESSIONS, open_plain, reading
from keepers.tables.scans import ArrayScan, FileScan
from keepers.tables.table import (
    ReadRequest,
    Table,
    matching_names,
    numbered_names,
    refuse_absent,
    table_of_matrix,
    unique_names,
)

_LAYOUT = ("header", "skip_rows", "header_rows")
_TEXT = ("sep", "decimal", "comment", "encoding", *_LAYOUT)
_SHEETS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")
_OPTIONS = ("dataset", "layer", "sheet", *_TEXT)
"""Options of a request that only some formats have."""
_GEO = {"comment": "!", "sep": "tab", "identifier": "ID_REF", "transpose": True}
_PLACE = re.compile(r"start|end|length|chr(?:om|omosome)?|strand|width", re.IGNORECASE)
"""Columns of featureCounts and of BED files that say where a gene is."""


@dataclass(frozen=True)
class Format:
    """How a kind of file is called, recognised and read."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    """Ends of names; ends of compressed files (`COMPRESSIONS`) may follow."""
    module: str
    kind: str
    """Functions of the module are ``read_<kind>`` and, for blocks, ``scan_<kind>``."""
    in_blocks: bool = False
    options: tuple[str, ...] = ()
    """Those of `_OPTIONS` that it understands."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that every file of this kind needs."""

    def function(self, verb: str) -> Callable[..., Any]:
        """The function to "read" or to "scan" a file; its module is imported now."""
        module = import_module(f"keepers.tables.{self.module}")
        found: Callable[..., Any] | None = getattr(module, f"{verb}_{self.kind}", None)
        return found or (lambda path, request: self.function("scan")(path, request).whole())


FORMATS = (
    Format("csv", "CSV", (".csv",), "columnar", "text", True, _TEXT),
    Format("tsv", "TSV", (".tsv", ".tab"), "columnar", "text", True, _TEXT),
    Format("parquet", "Parquet", (".parquet", ".pq"), "columnar", "columns", True),
    Format("feather", "Arrow", (".feather", ".arrow", ".ipc"), "columnar", "columns", True),
    Format("npy", "NumPy array", (".npy",), "arrays", "npy", True),
    Format("npz", "NumPy archive", (".npz",), "arrays", "npz"),
    Format("mat", "MATLAB", (".mat",), "arrays", "mat"),
    Format("mtx", "Matrix Market", (".mtx",), "arrays", "mtx"),
    Format("h5ad", "AnnData", (".h5ad",), "arrays", "anndata", True, ("layer",)),
    Format("h5", "HDF5", (".h5", ".hdf5"), "arrays", "hdf5", True, ("dataset",)),
    Format("xlsx", "Excel", _SHEETS, "columnar", "excel", False, ("sheet", *_LAYOUT)),
    Format("geo", "GEO", ("_series_matrix.txt",), "columnar", "text", False, ("encoding",), _GEO),
    Format("10x", "10x", (), "arrays", "10x"),
    # Last: another format may have a longer suffix that ends in one of these.
    Format("txt", "text", (".txt", ".dat", ".data"), "columnar", "text", True, _TEXT),
)
_BY_NAME = {known.name: known for known in FORMATS}


def open_table(
    source: str | os.PathLike[str], request: ReadRequest | None = None, **options: Any
) -> Table:
    """Read a table from a file, or a data set by its name.

    Parameters
    ----------
    source : str or Path
        A file, read by its suffix, a text file without a known one by how it begins; a 10x folder
        (matrix.mtx, features.tsv or genes.tsv, barcodes.tsv); or the name of a bundled data set
        ("srbct", "digits").
    request : ReadRequest or None
        Roles of columns, layout and limits; see `ReadRequest`.
    **options
        Fields of `ReadRequest` by name: ``open_table("genes.csv", labels="type")``.

    Returns
    -------
    Table
        Numbers in ``values``, text and dates in ``frame``, and labels where there are any.

    Raises
    ------
    DataError
        The file cannot be read as a table; the message gives the reason and the way out.

    Examples
    --------
    >>> from keepers.datasets import open_table
    >>> table = open_table("srbct")
    >>> table.n_samples, table.n_features, sorted(set(table.labels))
    (83, 2308, ['BL', 'EWS', 'NB', 'RMS'])
    """
    request = replace(request or ReadRequest(), **options)
    path = Path(source)
    if os.path.isfile(path) or is_table_folder(path):
        return _read_file(path, request)
    if request.transpose:
        raise DataError(f"A table to be transposed is read from a file; there is no {path}.")
    name = str(source).casefold()
    if name not in BUNDLED:
        raise DataError(_describe_absent(source, BUNDLED))
    data = load(name)
    request = replace(request, labels=None)
    return table_of_matrix(data.X, request, name, data.feature_names, labels=data.y)


def _read_file(path: Path, request: ReadRequest) -> Table:
    known = format_to_read(path, request)
    layout = {each: value for each, value in known.layout.items() if not getattr(request, each)}
    request = asked = replace(request, format=known.name, **layout)
    if request.transpose:
        if request.labels is not None:
            raise ParameterError(
                "labels= (--labels) names a column; those of a table to be transposed are samples."
            )
        # Columns to leave out may be samples, or rows, whose names are known only after reading.
        asked = replace(request, transpose=False, drop=(), annotation=())
    with reading(path, known.title):
        title = Path(_unpacked(path.name)).stem
        table: Table = replace(known.function("read")(path, asked), name=title)
        return _transpose(table, request) if request.transpose else table


def _transpose(table: Table, request: ReadRequest) -> Table:
    """A table whose rows are features; the ids or the first text column name them."""
    columns = table.columns
    annotation = set(matching_names(request.annotation, columns))
    refuse_absent(annotation - {request.identifier}, columns)
    asked = matching_names(request.drop, columns)
    places = [] if annotation else [name for name in table.names if _PLACE.fullmatch(name)]
    dropped = annotation.union(places, set(asked).intersection(columns))
    others = [name for name in table.others if name not in asked]
    others.sort(key=annotation.__contains__)  # those that only describe the rows come last
    ids = None if table.ids is None else list(table.ids)
    if ids is None and others and table.frame is not None:
        ids = ["" if word is None else str(word) for word in table.frame[others.pop(0)]]
    left = [n for n in columns if n in places or (n in others and n not in annotation)]
    if left:
        warn_caller(
            f"{table.name}: columns that describe the rows, or hold text, are not samples and are "
            f"left out: {some_of([repr(name) for name in left])}. Name such columns with "
            "annotation= (--annotation).",
            DataWarning,
        )
    features = numbered_names(table.n_samples)
    if ids is not None:
        features = unique_names(ids, make_unique=request.make_unique)
    left_out = set(matching_names([name for name in asked if name not in dropped], features))
    refuse_absent(left_out, [*columns, *features])
    samples = [at for at, name in enumerate(table.names) if str(name) not in dropped]
    rows = [at for at, name in enumerate(features) if name not in left_out]
    if not (samples and rows):
        raise DataError("At least one sample and one feature must remain. Leave out fewer.")
    X = table.values.T.tocsr() if table.is_sparse else table.values.T
    X = X[samples][:, rows] if dropped or left_out else X
    return Table(
        X if table.is_sparse else np.ascontiguousarray(X),
        np.array(features, dtype=object)[rows],
        np.array([str(table.names[at]) for at in samples], dtype=object),
        name=table.name,
    )


def scan_table(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    request: ReadRequest | None = None,
    **options: Any,
) -> FileScan:
    """Open a table that may be larger than memory, to be read in blocks of rows.

    Parameters
    ----------
    source : str, Path or list of them
        A file (text, Parquet, Arrow, .npy, HDF5, .h5ad); a folder, whose files of one format make
        one table, sorted by name with numbers by their value (folders in it are searched; names
        that begin with "." or "_" are left out); a pattern such as ``"part-*.parquet"``; or a list
        of files, read in that order. The files of a table have the same columns, in any order.
    request : ReadRequest or None
        As in `open_table`.
    **options
        Fields of `ReadRequest` by name.

    Returns
    -------
    FileScan
        ``blocks()`` gives numbers, ``tables()`` everything. A text file is converted once, when
        it is opened, to a temporary Arrow file; every pass reads that.

    Raises
    ------
    DataError
        A file cannot be read as a table, or does not fit the others; the message names it.
    """
    request = replace(request or ReadRequest(), **options)
    if request.transpose:
        raise ParameterError("transpose= needs the table in memory (open_table).")
    paths, name = _find_files(source, request)
    kinds = [format_to_read(path, request) for path in paths]
    examples = {known.title: path for known, path in zip(kinds, paths, strict=True)}
    if len(examples) > 1:
        told = " and ".join(f"{title} ({path.name})" for title, path in examples.items())
        raise DataError(
            f"All files of a table must have one format; {name} holds {told}. Name a pattern."
        )
    known = kinds[0]
    if not known.in_blocks:
        raise DataError(
            f"{paths[0]} cannot be read in blocks: {known.title} files are read whole only. "
            "Convert it to Parquet, .npy or .h5ad."
        )
    request, scan = replace(request, format=known.name), known.function("scan")
    with reading(paths[0] if len(paths) == 1 else Path(name), known.title):
        if known.module == "columnar":
            found: FileScan = scan(paths, request, name)
            return found
        files = []
        for path in paths:
            with reading(path, known.title):
                files.append(scan(path, request))
        return ArrayScan(name, files)


def is_table_folder(path: str | os.PathLike[str]) -> bool:
    """True if a folder is one table, read whole: of Cell Ranger (10x)."""
    if not os.path.isdir(path):  # does not raise for a name that is too long
        return False
    from keepers.tables.arrays import tenx_files

    return bool(tenx_files(Path(path)))


def source_files(source: str) -> Iterator[Path]:
    """All files below a path or a pattern."""
    found = [source] if os.path.exists(source) else glob.glob(source, recursive=True)
    for path in map(Path, found):
        yield from path.rglob("*") if path.is_dir() else [path]


def reads_in_blocks(source: str | os.PathLike[str]) -> bool:
    """True if a source is several files, which are read in blocks."""
    if os.path.isdir(source):
        return not is_table_folder(source)
    return not os.path.exists(source) and glob.has_magic(os.fspath(source))


def _find_files(source: Any, request: ReadRequest) -> tuple[list[Path], str]:
    """The files of a table in their order, absolute, and what the table is called."""
    if not isinstance(source, (str, os.PathLike)):
        paths = [Path(os.path.abspath(path)) for path in source]
        absent = next((path for path in paths if not os.path.isfile(path)), None)
        if absent is not None or not paths:
            raise DataError(
                "The list of files is empty." if absent is None else _describe_absent(absent)
            )
        return paths, "the list of files"
    path, name = Path(os.path.abspath(source)), str(source)
    if os.path.isfile(path) or is_table_folder(path):
        return [path], path.name
    matches = [path] if os.path.isdir(path) else []
    if not matches and glob.has_magic(name):
        matches = [Path(os.path.abspath(match)) for match in glob.glob(name, recursive=True)]
    elif not matches:
        raise DataError(_describe_absent(source))
    name = path.name if matches == [path] else name
    found = [file for match in matches for file in _files_below(match)]
    return _readable(_in_natural_order(found), name, request), name


def _readable(paths: list[Path], where: str, request: ReadRequest) -> list[Path]:
    """Files of a format that is read in blocks; plain text only if there is nothing else."""
    formats = {path: format_of(path) for path in paths}
    known = {path: kind.name for path, kind in formats.items() if kind and kind.in_blocks}
    if request.format is not None:
        known = dict.fromkeys(paths, request.format)
    if not known:
        raise DataError(
            "Only formats such as .csv, .parquet and .h5ad are read in blocks; "
            f"{where} holds {some_of([path.name for path in paths]) or 'nothing'}, seen from "
            f"{Path.cwd()}. Check the pattern, or convert the files."
        )
    return [path for path, kind in known.items() if kind != "txt"] or list(known)


def _files_below(place: Path) -> list[Path]:
    """A file, or all in a folder and below it, but those whose names begin with "." or "_"."""
    paths, top = (place.rglob("*"), place) if place.is_dir() else ([place], place.parent)
    return [
        path
        for path in paths
        if path.is_file()
        and not any(part.startswith((".", "_")) for part in path.relative_to(top).parts)
    ]


def _in_natural_order(paths: Iterable[Path]) -> list[Path]:
    """Sorted by name, numbers in names by their value (part-2 before part-10); each once."""

    def by_value(path: Path) -> list[list[str | int]]:
        parts = (re.split(r"([0-9]+)", part.casefold()) for part in path.parts)
        return [[int(p) if at % 2 else p for at, p in enumerate(pieces)] for pieces in parts]

    return sorted(sorted(set(paths)), key=by_value)


def _describe_absent(source: Any, known: Sequence[str] = ()) -> str:
    """A sentence about a source that is not a table; ``known`` are names of data sets."""
    path, shown = Path(source), shorten(str(source))
    if os.path.isdir(path):
        return f"{shown} is a folder that is not one table. Name a file in it."
    if str(path) == "-" or os.path.exists(path):
        return f"A table must be a regular file; {shown} is not. Write it to a file first."
    if known and not path.suffix and len(path.parts) == 1:
        sets = f"{closest(str(source), known)} Known: {', '.join(known)}."
        return f"{shown} is neither a file nor a known data set.{sets}"
    others: list[str] = []
    with suppress(OSError):
        others = os.listdir(path.parent)
    return f"There is no file {shown}.{closest(path.name, others)}"


def _unpacked(name: str) -> str:
    """The name of a file without the suffix of its compression."""
    end = next((end for end in COMPRESSIONS if name.casefold().endswith(end)), "")
    return name[: len(name) - len(end)]


def format_of(path: Path) -> Format | None:
    """The format that the end of a file's name stands for; None if it is unknown."""
    name = _unpacked(path.name).casefold()
    return next(
        (known for known in FORMATS if known.suffixes and name.endswith(known.suffixes)), None
    )


def format_to_read(path: Path, request: ReadRequest) -> Format:
    """The format that the request names, or the suffix, or how a text file begins."""
    if request.format is not None:
        known = _format_named(request.format)
    else:
        told = _BY_NAME["10x"] if is_table_folder(path) else format_of(path)
        known = told if told is not None and told.name != "txt" else _format_found(path, told)
    for option in _OPTIONS:
        if getattr(request, option) is not None and option not in known.options:
            titles = [each.title for each in FORMATS if option in each.options]
            raise ParameterError(
                f"{option}= is for files of {' or '.join(titles)}; {path} is {known.title}."
            )
    return known


def _format_named(name: str) -> Format:
    asked = name.strip().casefold().removeprefix(".")
    for known in FORMATS:
        if asked == known.name or f".{asked}" in known.suffixes:
            return known
    raise ParameterError(
        f"format= must be one of {', '.join(_BY_NAME)}; got {shorten(name)}."
        f"{closest(name, _BY_NAME)}"
    )


_TEXT_STARTS = {re.compile(rb"%%MatrixMarket\s"): "mtx", re.compile(rb'"?!(Series|Sample)_'): "geo"}


def _format_found(path: Path, told: Format | None) -> Format:
    """The format of a text file by how it begins; plain text if nothing else fits."""
    with reading(path, "text"), open_plain(path) as expanded:
        start = expanded.read(2**12).removeprefix(b"\xef\xbb\xbf")
    is_text = b"\0" not in start or start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if told is None and not (start.strip() and is_text):
        raise DataError(
            f"{path} does not hold text, and its suffix shows no other format. Rename or convert "
            f"it, or name its format (format=, --format), one of {', '.join(_BY_NAME)}."
        )
    found = (name for pattern, name in _TEXT_STARTS.items() if pattern.match(start))
    return _BY_NAME[next(found, "txt")]


BUNDLED = ("srbct", "digits")


class Dataset(NamedTuple):
    """Values (samples x features), names of the columns, and classes, which no method uses."""

    X: FloatArray
    feature_names: NDArray[np.object_]
    y: NDArray[np.object_]


def load(name: str) -> Dataset:
    """Load a bundled data set.

    Parameters
    ----------
    name : {"srbct", "digits"}
        "srbct": 83 tumour samples x 2308 gene expression ratios, 4 kinds of small round blue cell
        tumours (Khan et al. 2001; SRBCTML in the SPCAFS paper). "digits": 1797 hand-written digits
        x 64 pixels, 10 classes (scikit-learn's copy of the UCI set).

    Examples
    --------
    >>> from keepers.datasets import load
    >>> X, feature_names, y = load("srbct")
    >>> X.shape
    (83, 2308)
    """
    if name == "digits":
        from sklearn.datasets import load_digits  # slow to import, and only needed here

        bunch = load_digits()
        return Dataset(bunch.data, np.array(bunch.feature_names, dtype=object), bunch.target)
    if name != "srbct":
        raise ParameterError(f"The bundled data sets are {str(BUNDLED)[1:-1]}; got {name!r}.")
    with (files("keepers.tables") / "files" / "srbct.npz").open("rb") as stream:
        stored = np.load(stream, allow_pickle=False)
        ratios, labels = np.exp(stored["log_ratio"]), stored["y"]
    tumours = np.array(["", "BL", "EWS", "NB", "RMS"], dtype=object)
    genes = np.array([f"gene{j}" for j in range(1, ratios.shape[1] + 1)], dtype=object)
    return Dataset(ratios, genes, tumours[labels])


def names() -> list[str]:
    """Names of the bundled data sets."""
    return list(BUNDLED)
