"""From a path or a name to a table, whole or in blocks of rows."""

import glob
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from keepers._packages import optional
from keepers._wording import closest, some_of
from keepers.exceptions import DataError, DataWarning, ParameterError, shorten, warn_caller
from keepers.tables import catalogue as datasets
from keepers.tables.atomic import COMPRESSIONS, leads_to_itself, open_plain
from keepers.tables.scans import FileScan, reading
from keepers.tables.sniffing import BLANKS
from keepers.tables.table import (
    ReadRequest,
    Table,
    as_request,
    matching_names,
    numbered_names,
    refuse_absent,
    table_of_matrix,
    unique_names,
)

_SEPARATORS = {
    "csv": (",", ";", "\t", "|"),
    "tsv": ("\t", ";", "|", ","),
    "txt": ("\t", ";", "|", ",", BLANKS),
}
_LAYOUT = ("header", "skip_rows", "header_rows")
_TEXT_OPTIONS = ("sep", "decimal", "comment", "encoding", *_LAYOUT)
_OPTIONS = {
    "dataset": "dataset= names an array in an HDF5 file",
    "layer": "layer= names a layer of an AnnData file",
    "sheet": "sheet= names a sheet of a workbook",
    "sep": "sep= is the separator of a text table",
    "decimal": "decimal= is the decimal mark of a text table",
    "comment": "comment= is for lines of a text table",
    "encoding": "encoding= is for text tables",
    "skip_rows": "skip_rows= is for text tables and workbooks",
    "header_rows": "header_rows= is for text tables and workbooks",
}
"""What a request may give for some formats only."""
_PLACE = re.compile(r"start|end|length|chr(?:om|omosome)?|strand|width", re.IGNORECASE)
"""Columns of featureCounts and of BED files that say where a gene is."""


@dataclass(frozen=True)
class Format:
    """How a kind of file is called, recognised and read."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: str
    """Module and function, imported when a file of this format is read."""
    scan: str | None = None
    """The same for reading in blocks; None if the format is read whole only."""
    options: tuple[str, ...] = ()
    """Options in `_OPTIONS` that it understands."""

    def reader(self, what: str) -> Callable[..., Any]:
        """The function that ``what``, "module:function", names."""
        module, _, function = what.partition(":")
        found: Callable[..., Any] = getattr(import_module(f"keepers.tables.{module}"), function)
        return found

    def title_of(self, path: Path) -> str:
        """What a table is called: its file without the suffix."""
        lengths = [len(end) for end in self.suffixes if path.name.casefold().endswith(end)]
        return path.name[: -max(lengths)] if lengths else path.name


def _packed(*suffixes: str) -> tuple[str, ...]:
    return tuple(suffix + packed for suffix in suffixes for packed in ("", *COMPRESSIONS))


FORMATS = (
    Format("csv", "CSV", _packed(".csv"), "text", "text", _TEXT_OPTIONS),
    Format("tsv", "TSV", _packed(".tsv", ".tab"), "text", "text", _TEXT_OPTIONS),
    Format("parquet", "Parquet", (".parquet", ".pq"), "columnar:read_columns", "columns"),
    Format("feather", "Arrow", (".feather", ".arrow", ".ipc"), "columnar:read_columns", "columns"),
    Format("npy", "NumPy array", (".npy",), "arrays:read_npy", "arrays:scan_npy"),
    Format("npz", "NumPy archive", (".npz",), "arrays:read_npz"),
    Format("mat", "MATLAB", (".mat",), "arrays:read_mat"),
    Format("mtx", "Matrix Market", _packed(".mtx"), "arrays:read_mtx"),
    Format("svmlight", "svmlight", _packed(".svm", ".libsvm", ".svmlight"), "arrays:read_svmlight"),
    Format(
        "h5ad",
        "AnnData",
        (".h5ad", ".zarr"),
        "biology:read_anndata",
        "biology:scan_anndata",
        ("layer",),
    ),
    Format(
        "h5",
        "HDF5",
        (".h5", ".hdf5"),
        "biology:read_hdf5_table",
        "biology:scan_hdf5_table",
        ("dataset",),
    ),
    Format(
        "xlsx",
        "Excel",
        (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"),
        "excel:read_excel",
        options=("sheet", *_LAYOUT),
    ),
    Format("gct", "GCT", _packed(".gct"), "biology:read_gct", options=("encoding",)),
    Format("geo", "GEO", _packed("_series_matrix.txt"), "biology:read_geo", options=("encoding",)),
    Format("10x", "10x", (), "biology:read_10x"),
    # Last: another format may have a longer suffix that ends in one of these.
    Format("txt", "text", _packed(".txt", ".dat", ".data"), "text", "text", _TEXT_OPTIONS),
)
_BY_NAME = {known.name: known for known in FORMATS}
SUFFIXES = tuple(
    end for known in FORMATS for end in known.suffixes if not end.endswith(COMPRESSIONS)
)


def open_table(
    source: str | os.PathLike[str], request: ReadRequest | None = None, **options: Any
) -> Table:
    """Read a table from a file, or a data set by its name.

    Parameters
    ----------
    source : str or Path
        A file, read by its suffix, or by its content where the suffix is unknown; a 10x folder
        (matrix.mtx, features.tsv or genes.tsv, barcodes.tsv) or a folder .zarr of AnnData; or the
        name of a bundled data set ("srbct", "digits") or of a catalogued one.
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
    request = as_request(request, options)
    path = Path(source)
    if os.path.isfile(path) or is_table_folder(path):
        return _read_file(path, request)
    if request.transpose:
        raise DataError(f"A table to be transposed is read from a file; there is no {path}.")
    table = _named_table(str(source), request)
    if table is None:
        raise DataError(_unknown(str(source), path))
    return table


def _read_file(path: Path, request: ReadRequest) -> Table:
    known = format_to_read(path, request)
    # Columns to leave out may be samples, or rows, whose names are known only after reading.
    asked = (
        replace(request, transpose=False, drop=(), annotation=(), labels=None)
        if request.transpose
        else request
    )
    if request.transpose and request.labels is not None:
        raise ParameterError(
            "labels= (--labels) names a column, and the columns of a table to be transposed are "
            "samples. Leave it out."
        )
    with reading(path, known.title):
        if known.read == "text":
            from keepers.tables.columnar import read_text

            table = read_text(path, asked, _SEPARATORS[known.name])
        else:
            table = known.reader(known.read)(path, asked)
        table = replace(table, name=known.title_of(path))
        return _transposed(table, request) if request.transpose else table


def _named_table(name: str, request: ReadRequest) -> Table | None:
    """A bundled or catalogued data set; None if there is none of this name."""
    folded = name.casefold()
    if folded in datasets.names():
        X, feature_names, y = datasets.load(folded)
        return table_of_matrix(X, replace(request, labels=None), folded, feature_names, labels=y)
    if folded in {entry.name.casefold() for entry in datasets.catalogue()}:
        return load_catalogued(name, request=request)
    return None


def load_catalogued(name: str, *, verify: bool = True, request: ReadRequest | None = None) -> Table:
    """Read a catalogued benchmark set from the data folder.

    Parameters
    ----------
    name : str
        Name in the catalogue; upper and lower case do not matter.
    verify : bool
        Raise for a file whose SHA-256 is not the catalogued one.
    request : ReadRequest or None
        Columns to drop, and the limit on size.

    Returns
    -------
    Table
        The raw values, with labels; the entry's ``scaling`` is not applied.
    """
    entry, path = datasets.entry_named(name), datasets.find(name)
    if verify:
        datasets.refuse_wrong_checksum(entry, path)
    table = _read_file(path, replace(request or ReadRequest(), labels=None))
    return replace(table, ids=None, name=entry.name)


def _transposed(table: Table, request: ReadRequest) -> Table:
    """A table whose rows are features; the ids or the first text column name them."""
    columns = table.columns
    annotation = set(matching_names(request.annotation, columns))
    refuse_absent(annotation - {request.identifier}, columns)
    if not annotation:
        annotation = {name for name in map(str, table.names) if _PLACE.fullmatch(name)}
        if annotation:
            warn_caller(
                f"{table.name}: columns that describe the rows are not samples and are left out: "
                f"{some_of([repr(name) for name in table.names if name in annotation])}. Name "
                "such columns with annotation= (--annotation).",
                DataWarning,
            )
    asked = matching_names(request.drop, columns)
    dropped = set(asked).intersection(columns)
    names = table.ids
    others = [name for name in table.others if name not in dropped]
    others.sort(key=annotation.__contains__)  # those that only describe the rows come last
    if names is None and others and table.frame is not None:
        column = table.frame[others.pop(0)]
        names = np.array(["" if word is None else str(word) for word in column.to_list()], object)
    others = [name for name in others if name not in annotation]
    if others:
        warn_caller(
            f"{table.name}: columns that hold text are not samples and are left out: "
            f"{some_of([repr(name) for name in others])}.",
            DataWarning,
        )
    dropped |= annotation
    if names is None:
        features = numbered_names(table.n_samples)
    else:
        features = unique_names(list(names), make_unique=request.make_unique)
    rows_dropped = matching_names([name for name in asked if name not in dropped], features)
    refuse_absent(rows_dropped, [*columns, *features])
    samples = [at for at, name in enumerate(table.names) if str(name) not in dropped]
    left_out = set(rows_dropped)
    rows = [at for at, name in enumerate(features) if name not in left_out]
    if not (samples and rows):
        raise DataError("At least one sample and one feature must remain. Leave out fewer.")
    X = table.values.T.tocsr() if table.is_sparse else table.values.T
    X = X[samples][:, rows] if asked or annotation else X
    return Table(
        X if table.is_sparse else np.ascontiguousarray(X),
        np.array(features, dtype=object)[rows],
        np.array([str(table.names[at]) for at in samples], dtype=object),
        None,
        table.name,
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
    request = as_request(request, options)
    if request.transpose:
        raise ParameterError("transpose= needs the table in memory (open_table).")
    paths, name = _find_files(source, request)
    kinds = [format_to_read(path, request) for path in paths]
    examples = {known.title: path for known, path in zip(kinds, paths, strict=True)}
    if len(examples) > 1:
        told = " and ".join(f"{title} ({path.name})" for title, path in examples.items())
        raise DataError(
            f"All files of a table must have one format; {name} holds {told}. Name the files by a "
            "pattern, such as '*.parquet'."
        )
    known = kinds[0]
    if known.scan is None:
        raise DataError(
            f"{paths[0]} cannot be read in blocks: {known.title} files are read whole only "
            "(open_table). Convert it to Parquet, .npy or .h5ad."
        )
    if len(paths) == 1:
        with reading(paths[0], known.title):
            return _scan(paths, known, request, name)
    return _scan(paths, known, request, name)


def _scan(paths: list[Path], known: Format, request: ReadRequest, name: str) -> FileScan:
    from keepers.tables.columnar import ColumnScan, scan_columns, scan_text

    if known.scan == "text":
        return scan_text(paths, request, _SEPARATORS[known.name], name)
    if known.scan == "columns":
        shared = os.path.commonpath([path.parent for path in paths])
        opened = [
            (os.path.relpath(path, shared), *_open(path, known, scan_columns)) for path in paths
        ]
        sources = [(label, lazy) for label, lazy, _ in opened]
        return ColumnScan(name, sources, request, opened[0][2])
    scan = known.reader(str(known.scan))
    scans = [_open(path, known, lambda path: scan(path, request)) for path in paths]
    if len(scans) == 1:
        return scans[0]
    from keepers.tables.array_scan import ArraySequence

    return ArraySequence(name, scans)


def _open(path: Path, known: Format, scan: Callable[[Path], Any]) -> Any:
    with reading(path, known.title):
        return scan(path)


def is_table_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is one table, read whole: of Cell Ranger (10x), or Zarr."""
    return os.path.isdir(path) and _folder_format(Path(path)) is not None


def _folder_format(path: Path) -> Format | None:
    if not path.is_dir():
        return None
    if path.name.casefold().endswith(".zarr"):
        return _BY_NAME["h5ad"]
    from keepers.tables.biology import tenx_files

    return _BY_NAME["10x"] if tenx_files(path) else None


def source_files(source: str) -> Iterator[Path]:
    """All files below a path or a pattern, and the file of the data set of this name."""
    found = [source] if os.path.exists(source) else glob.glob(source, recursive=True)
    for path in map(Path, found):
        yield from path.rglob("*") if path.is_dir() else [path]
    with suppress(DataError):
        yield datasets.find(source)


def reads_in_blocks(source: str | os.PathLike[str]) -> bool:
    """Whether a source is several files, which are read in blocks."""
    if os.path.isdir(source):
        return not is_table_folder(source)
    return not os.path.exists(source) and glob.has_magic(os.fspath(source))


def _find_files(source: Any, request: ReadRequest) -> tuple[list[Path], str]:
    """The files of a table in their order, absolute, and what the table is called."""
    if not isinstance(source, (str, os.PathLike)):
        paths = [Path(os.path.abspath(path)) for path in source]
        absent = [path for path in paths if not os.path.isfile(path)]
        if absent or not paths:
            raise DataError(_absent(absent[0]) if absent else "The list of files is empty.")
        return paths, "the list of files"
    path = Path(os.path.abspath(source))
    if os.path.isfile(path) or is_table_folder(path):
        return [path], path.name
    if os.path.isdir(path):
        return _readable(files_below(path), path.name, request), path.name
    if glob.has_magic(os.fspath(source)):
        found: list[Path] = []
        for match in sorted(glob.glob(os.fspath(source), recursive=True)):
            each = Path(os.path.abspath(match))
            if not each.name.startswith("_"):
                found += files_below(each) if each.is_dir() else [each]
        if not found:
            raise DataError(
                f"A pattern must match at least one file; {shorten(str(source))} matches none, "
                f"seen from {Path.cwd()}. Check the folder and the pattern."
            )
        ordered = in_natural_order(list(dict.fromkeys(found)))
        return _readable(ordered, str(source), request), str(source)
    raise DataError(_absent(Path(source)))


def _readable(paths: list[Path], where: str, request: ReadRequest) -> list[Path]:
    """Files of a format that is read in blocks; plain text only if there is nothing else."""
    if request.format is not None and paths:
        return paths
    told = [(path, format_of(path)) for path in paths]
    known = [(path, kind) for path, kind in told if kind is not None and kind.scan is not None]
    named = [path for path, kind in known if kind.name != "txt"] or [path for path, _ in known]
    if not named:
        held = some_of([path.name for path in paths]) or "nothing"
        ends = [end for kind in FORMATS if kind.scan for end in kind.suffixes]
        ends = [end for end in ends if not end.endswith(COMPRESSIONS)]
        raise DataError(
            f"A table in blocks needs files whose names end in one of {', '.join(ends)}; {where} "
            f"holds {held}. Name another folder, or convert the files."
        )
    return named


def files_below(folder: Path) -> list[Path]:
    """All files in a folder and below it, but hidden ones and those whose names begin with "_"."""
    return in_natural_order(
        [
            path
            for path in folder.rglob("*")
            if path.is_file()
            and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        ]
    )


def in_natural_order(paths: Sequence[Path]) -> list[Path]:
    """Sorted by name, numbers in names by their value: part-2 before part-10."""

    def by_value(name: str) -> tuple[list[str | int], str]:
        pieces = re.split(r"([0-9]+)", name.casefold())
        return [int(piece) if at % 2 else piece for at, piece in enumerate(pieces)], name

    return sorted(paths, key=lambda path: [by_value(part) for part in path.parts])


def _absent(path: Path) -> str:
    if _is_stream(path):
        return _STREAM.format(shorten(str(path)))
    what = "is a folder" if os.path.isdir(path) else "is not there"
    if leads_to_itself(path):
        what = "is a symbolic link that leads back to itself"
    return (
        f"A table in blocks is read from a file, a folder, a pattern or a list of files; {path} "
        f"{what}.{_nearest_file(path)}"
    )


_STREAM = (
    "A table is read more than once, so it must be a regular file; {} is a pipe, a device or the "
    "standard input. Write the table to a file first."
)


def _is_stream(path: Path) -> bool:
    """Whether this is the standard input, a named pipe or a device."""
    is_other = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    return str(path) == "-" or is_other


def _nearest_file(path: Path) -> str:
    """' Did you mean ...?' for a file in the same folder, or nothing."""
    try:
        return closest(path.name, [name for name in os.listdir(path.parent) if name != path.name])
    except OSError:
        return ""


def _unknown(name: str, path: Path) -> str:
    known = [*datasets.names(), *(entry.name for entry in datasets.catalogue())]
    shown = shorten(name)
    if _is_stream(path):
        return _STREAM.format(shown)
    if os.path.isdir(path):
        return (
            f"A table is read from a file, a 10x folder or a folder .zarr; {shown} is a folder of "
            "another kind. Name a file in it."
        )
    if leads_to_itself(path):
        return f"{shown} is a symbolic link that leads back to itself. Name another file."
    if path.suffix or len(path.parts) > 1:
        return (
            f"There is no file {shown}.{_nearest_file(path)} Give a file that exists, or one of "
            f"the known data sets: {', '.join(known)}."
        )
    return (
        f"{shown} is neither a file nor a known data set.{closest(name, known)} Known: "
        f"{', '.join(known)}."
    )


def format_of(path: Path) -> Format | None:
    """The format that the end of a file's name stands for; None if it is unknown."""
    name = path.name.casefold()
    return next(
        (known for known in FORMATS if known.suffixes and name.endswith(known.suffixes)), None
    )


def format_to_read(path: Path, request: ReadRequest) -> Format:
    """The format that the request names, or the suffix, or the content of the file."""
    if request.format is not None:
        known = _format_named(request.format)
    else:
        told = _folder_format(path) or format_of(path)
        known = told if told is not None and told.name != "txt" else _format_found(path, told)
    for option, purpose in _OPTIONS.items():
        if getattr(request, option) is not None and option not in known.options:
            raise ParameterError(f"{purpose}; {path} is {known.title}. Leave it out.")
    return known


def _format_named(name: str) -> Format:
    asked = name.strip().casefold().removeprefix(".")
    for known in FORMATS:
        ends = [end.removeprefix(".") for end in known.suffixes]
        if asked in (known.name, known.title.casefold(), *ends):
            return known
    raise ParameterError(
        f"format= must be one of {', '.join(_BY_NAME)}, or a suffix of theirs; got "
        f"{shorten(name)}.{closest(name, _BY_NAME)}"
    )


_HDF5, _ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\x93NUMPY": "npy",
    b"MATLAB 5.0 MAT": "mat",
    b"MATLAB 7.3 MAT": "mat",
    b"\xd0\xcf\x11\xe0": "xlsx",
}
_TEXT_STARTS = {
    re.compile(rb"%%MatrixMarket\s", re.IGNORECASE): "mtx",
    re.compile(rb"#1\.[23]\s*\n"): "gct",
    re.compile(rb'"?!(Series|Sample)_'): "geo",
    re.compile(rb"[+-]?[0-9.]+([eE][+-]?[0-9]+)?([ \t]+[0-9]+:[^\s:]+)+\s*(\n|\Z)"): "svmlight",
}


def _format_found(path: Path, told: Format | None) -> Format:
    """The format of a file by how it begins; plain text if nothing else fits."""
    with path.open("rb") as stream:
        start = stream.read(2**12)
    if start.startswith(_HDF5):
        h5py = optional("h5py", "HDF5 files")
        with reading(path, "HDF5"), h5py.File(path, "r") as file:
            return _BY_NAME["h5ad" if {"X", "obs", "var"} <= set(file) else "h5"]
    if start.startswith(_ZIP):
        with reading(path, "zip"), zipfile.ZipFile(path) as archive:
            members = archive.namelist()
        return _BY_NAME["npz" if any(name.endswith(".npy") for name in members) else "xlsx"]
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return _BY_NAME[name]
    with reading(path, "text"), open_plain(path) as expanded:
        start = expanded.read(2**12)
    for pattern, name in _TEXT_STARTS.items():
        if pattern.match(start.removeprefix(b"\xef\xbb\xbf")):
            return _BY_NAME[name]
    is_text = b"\0" not in start or start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if told is None and not (start.strip() and is_text):
        what = "bytes that are not text" if start.strip() else "nothing"
        raise DataError(
            f"{path}: The suffix of a file tells its format, one of {', '.join(SUFFIXES)}; got "
            f"{shorten(path.name)}, which holds {what}. Rename or convert it, or name its format "
            "(format=, --format)."
        )
    return _BY_NAME["txt"]
