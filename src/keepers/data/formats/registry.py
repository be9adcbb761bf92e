"""The formats: what each is called, its suffixes, how it is read, and whether it is written.

A new format is one module here and one line in `FORMATS`. The module provides

- ``open_x(path, request) -> FileBlocks`` if rows can be read a block at a time. It reads names and
  sizes only. The class derives from `keepers.data.blocks.files.FileBlocks` (from `MatrixBlocks` if
  the file holds a bare matrix) and implements ``_read(columns, annotated) -> Iterator[Rows]``;
  `open_table` collects the same blocks, ``annotated``, into a `LabelledTable`.
- or, if it cannot, ``read_x(path, request) -> LabelledTable``, which usually ends with
  `keepers.data.table.to_table`. `open_blocks` then says that the format is read whole only.
- and ``write_x(path, table, name)`` if it is written, with ``holds_text`` if that goes for
  ``table.others`` too; ``append_x(path, name)`` if rows can be written piece after piece; and
  ``copy_x_columns(source, target, names)`` if its files hold more than a table, which is to be kept
  with some of the columns.

Any exception of a library may pass: it becomes a `DataError` that names the file.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from keepers.data.blocks.files import FileBlocks, collect, reading
from keepers.data.formats.arrow import open_arrow, open_parquet
from keepers.data.formats.arrow_writing import (
    append_feather,
    append_parquet,
    write_feather,
    write_parquet,
)
from keepers.data.formats.compression import is_packed, with_compressions
from keepers.data.formats.excel import read_excel, write_excel
from keepers.data.formats.gct import read_gct, write_gct
from keepers.data.formats.geo import read_geo
from keepers.data.formats.h5ad import open_h5ad, write_h5ad
from keepers.data.formats.h5ad_columns import copy_h5ad_columns
from keepers.data.formats.matlab import read_mat
from keepers.data.formats.matrix_market import read_mtx, write_mtx
from keepers.data.formats.numpy_files import open_numpy, read_npz, write_npy, write_npz
from keepers.data.formats.plain_text import PLAIN_TEXT_SUFFIXES, open_plain_text
from keepers.data.formats.sniffing import sniff
from keepers.data.formats.svmlight import read_svmlight, write_svmlight
from keepers.data.formats.tenx import is_10x_folder, open_hdf5_table, read_10x
from keepers.data.formats.text import (
    append_csv,
    append_tsv,
    open_csv,
    open_tsv,
    write_csv,
    write_tsv,
)
from keepers.data.formats.zarr_anndata import read_zarr
from keepers.data.table import (
    LabelledTable,
    ReadRequest,
    WrittenTable,
    refuse_empty_columns,
)
from keepers.data.wording import closest, unknown_suffix
from keepers.exceptions import DataError, ParameterError, shorten

_OPTIONS = {
    "dataset": "dataset= names an array in an HDF5 file",
    "delimiter": "sep= tells what separates the cells of a text table",
    "decimal": "decimal= is the decimal mark of a text table",
    "comment": "comment= is for lines of a text table",
    "encoding": "encoding= is that of a text table",
    "sheet": "sheet= names a sheet of a workbook",
}
"""What a request may say of some formats only, by its field."""
_TEXT_OPTIONS = ("delimiter", "decimal", "comment", "encoding")


RowWriter = Callable[[Path, str], AbstractContextManager[Callable[[WrittenTable], None]]]
"""(where to write, the final name of the file) gives a function that appends rows."""


@dataclass(frozen=True)
class Format:
    """How a kind of file is called, recognised, read and written."""

    title: str
    suffixes: tuple[str, ...]
    open_blocks: Callable[[Path, ReadRequest], FileBlocks] | None = None
    """None if the format cannot be read in blocks of rows."""
    read_whole: Callable[[Path, ReadRequest], LabelledTable] | None = None
    """For a format that cannot be read in blocks."""
    write: Callable[[Path, WrittenTable, str], None] | None = None
    """(where to write, what, the final name of the file); None if it is only read."""
    append: RowWriter | None = None
    """For a format that can be written piece after piece; None if it is written whole."""
    holds_text: bool = False
    """Whether columns of text and dates are written beside numbers."""
    copy_columns: Callable[[Path, Path, Sequence[str]], None] | None = None
    """(file, where to write, names of columns) for a format that holds more than a table, all of
    which is to go along; None if it does not."""
    options: tuple[str, ...] = ()
    """Fields of a request, of those in `_OPTIONS`, that it understands."""

    @property
    def name(self) -> str:
        """What `open_table` calls it: format="csv"."""
        suffix = self.suffixes[0]
        return suffix[1:] if suffix.startswith(".") else self.title.casefold()

    def name_of(self, path: Path) -> str:
        """What a table is called: its file without the suffix of the format."""
        lengths = [len(end) for end in self.suffixes if path.name.casefold().endswith(end)]
        return path.name[: -max(lengths)] if lengths else path.name


FORMATS = (
    Format(
        "CSV",
        with_compressions(".csv"),
        open_csv,
        write=write_csv,
        append=append_csv,
        holds_text=True,
        options=_TEXT_OPTIONS,
    ),
    Format(
        "TSV",
        with_compressions(".tsv", ".tab"),
        open_tsv,
        write=write_tsv,
        append=append_tsv,
        holds_text=True,
        options=_TEXT_OPTIONS,
    ),
    Format(
        "Parquet",
        (".parquet", ".pq"),
        open_parquet,
        write=write_parquet,
        append=append_parquet,
        holds_text=True,
    ),
    Format(
        "Arrow",
        (".feather", ".arrow", ".ipc"),
        open_arrow,
        write=write_feather,
        append=append_feather,
        holds_text=True,
    ),
    Format("NumPy array", (".npy",), open_numpy, write=write_npy),
    Format("NumPy archive", (".npz",), read_whole=read_npz, write=write_npz),
    Format("MATLAB", (".mat",), read_whole=read_mat),
    Format("Matrix Market", with_compressions(".mtx"), read_whole=read_mtx, write=write_mtx),
    Format(
        "svmlight",
        with_compressions(".svm", ".libsvm", ".svmlight"),
        read_whole=read_svmlight,
        write=write_svmlight,
    ),
    Format("AnnData", (".h5ad",), open_h5ad, write=write_h5ad, copy_columns=copy_h5ad_columns),
    Format("AnnData in Zarr", (".zarr",), read_whole=read_zarr),
    Format("HDF5", (".h5", ".hdf5"), open_hdf5_table, options=("dataset",)),
    Format(
        "Excel",
        (".xlsx",),
        read_whole=read_excel,
        write=write_excel,
        holds_text=True,
        options=("sheet",),
    ),
    Format("Excel with macros", (".xlsm",), read_whole=read_excel, options=("sheet",)),
    Format(
        "GCT",
        with_compressions(".gct"),
        read_whole=read_gct,
        write=write_gct,
        options=("encoding",),
    ),
    Format(
        "GEO",
        with_compressions("_series_matrix.txt"),
        read_whole=read_geo,
        options=("encoding",),
    ),
    # Last: another format may have a longer suffix that ends in one of these.
    Format(
        "text",
        with_compressions(*PLAIN_TEXT_SUFFIXES),
        open_plain_text,
        options=_TEXT_OPTIONS,
    ),
)
_TENX = Format("10x", (), read_whole=read_10x)


def folder_format(path: Path) -> Format | None:
    """The format of a folder that is one table: 10x, or Zarr; None for a folder of tables."""
    if not path.is_dir():
        return None
    if path.name.casefold().endswith(".zarr"):
        return format_of(path)
    return _TENX if is_10x_folder(path) else None


def format_of(path: Path) -> Format | None:
    """The format that the end of a file's name says; None if it says none."""
    name = path.name.casefold()
    return next((known for known in FORMATS if name.endswith(known.suffixes)), None)


def format_named(name: str) -> Format:
    """The format that a name or a suffix stands for; an error with the names if there is none."""
    asked = name.strip().casefold().removeprefix(".")
    for known in FORMATS:
        if asked in (known.title.casefold(), *(end.removeprefix(".") for end in known.suffixes)):
            return known
    names = [known.name for known in FORMATS]
    raise ParameterError(
        f"format= is one of {', '.join(names)}, or a suffix of theirs; got {shorten(name)}."
        f"{closest(name, names)}"
    )


def format_to_read(path: Path, request: ReadRequest) -> Format:
    """The format that the request names, or the suffix of the file, or what the file holds."""
    if request.format is not None:
        known = format_named(request.format)
    else:
        told = folder_format(path) or format_of(path)
        is_clear = told is not None and not is_plain_text(path)
        known = told if told is not None and is_clear else _format_found(path, request, told)
    for option, purpose in _OPTIONS.items():
        if getattr(request, option) is not None and option not in known.options:
            raise ParameterError(f"{purpose}; {path} is {known.title}. Leave it out.")
    return known


def _format_found(path: Path, request: ReadRequest, told: Format | None) -> Format:
    """The format of a file whose suffix is unknown, or says no more than that it is text."""
    try:
        with reading(path, "table"):
            return format_named(sniff(path, request))
    except (DataError, OSError) as error:
        if told is not None:
            raise
        suffixes = [end for kind in FORMATS for end in kind.suffixes if not is_packed(end)]
        reason = str(error).removeprefix(f"{path}: ")
        raise DataError(f"{path}: {unknown_suffix(path.name, suffixes)} {reason}") from error


def is_plain_text(path: Path) -> bool:
    """Whether the end of a file's name says no more than that it is text."""
    known = format_of(path)
    return known is not None and known.open_blocks is open_plain_text


def format_to_write(path: Path) -> Format:
    """The format that the end of a file's name says; an error if it is not written."""
    known = format_of(path)
    if known is None or known.write is None:
        written = ", ".join(kind.suffixes[0] for kind in FORMATS if kind.write is not None)
        raise ParameterError(
            f"The suffix of a written table tells its format, one of {written}; got "
            f"{shorten(path.name)}."
        )
    return known


def has_blocks(path: Path) -> bool:
    """Whether the end of a file's name says a format that can be read in blocks."""
    return path.name.casefold().endswith(tuple(block_suffixes()))


def block_suffixes() -> list[str]:
    """Suffixes of the files that can be read in blocks."""
    return [suffix for known in FORMATS if known.open_blocks for suffix in known.suffixes]


def block_format(path: Path, request: ReadRequest) -> Format:
    """The format of a file; an error if it is unknown, or cannot be read in blocks."""
    known = format_to_read(path, request)
    if known.open_blocks is None:
        raise DataError(
            f"{path} cannot be read in blocks: {known.title} files are read whole only "
            f"(open_table). Convert it to one of {', '.join(block_suffixes())}."
        )
    return known


def open_in_blocks(path: Path, request: ReadRequest) -> FileBlocks:
    """Open a file to be read in blocks; nothing but names and sizes is read."""
    known = block_format(path, request)
    assert known.open_blocks is not None
    with reading(path, known.title):
        return known.open_blocks(path, request)


def read_table(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a whole file: its blocks collected, where it can be read in blocks."""
    known = format_to_read(path, request)
    with reading(path, known.title):
        if known.open_blocks is not None:
            table = collect(known.open_blocks(path, request), request.limit, known.name_of(path))
        else:
            assert known.read_whole is not None
            table = known.read_whole(path, request)
        if not request.mixed:
            refuse_empty_columns(table)
        return table
