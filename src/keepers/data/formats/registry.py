"""The formats: what each is called, its suffixes, how it is read, and whether it is written.

A new format is one module here and one line in `FORMATS`. The module provides

- ``open_x(path, request) -> FileBlocks`` if rows can be read a block at a time. It reads names and
  sizes only. The class derives from `keepers.data.blocks.files.FileBlocks` (from `MatrixBlocks` if
  the file holds a bare matrix) and implements ``_read(columns, annotated) -> Iterator[Rows]``;
  `open_table` collects the same blocks, ``annotated``, into a `LabelledTable`.
- or, if it cannot, ``read_x(path, request) -> LabelledTable``, which usually ends with
  `keepers.data.table.to_table`. `open_blocks` then says that the format is read whole only.
- and ``write_x(path, table, name)`` if it is written, and ``copy_x_columns(source, target, names)``
  if its files hold more than a table, which is to be kept with some of the columns.

Any exception of a library may pass: it becomes a `DataError` that names the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from keepers.data.blocks.files import FileBlocks, collect, reading
from keepers.data.formats.arrow import open_arrow, open_parquet, write_feather, write_parquet
from keepers.data.formats.compression import with_compressions
from keepers.data.formats.h5ad import open_h5ad, write_h5ad
from keepers.data.formats.h5ad_columns import copy_h5ad_columns
from keepers.data.formats.hdf5 import open_hdf5_file
from keepers.data.formats.matlab import read_mat
from keepers.data.formats.matrix_market import read_mtx, write_mtx
from keepers.data.formats.numpy_files import open_numpy, read_npz, write_npy, write_npz
from keepers.data.formats.svmlight import read_svmlight, write_svmlight
from keepers.data.formats.text import open_csv, open_tsv, write_csv, write_tsv
from keepers.data.table import (
    LabelledTable,
    ReadRequest,
    TextColumnsError,
    WrittenTable,
    refuse_empty_columns,
)
from keepers.data.wording import unknown_suffix
from keepers.exceptions import DataError, ParameterError

_HDF5 = "HDF5"


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
    copy_columns: Callable[[Path, Path, Sequence[str]], None] | None = None
    """(file, where to write, names of columns) for a format that holds more than a table, all of
    which is to go along; None if it does not."""

    def name_of(self, path: Path) -> str:
        """What a table is called: its file without the suffix of the format."""
        lengths = [len(end) for end in self.suffixes if path.name.casefold().endswith(end)]
        return path.name[: -max(lengths)] if lengths else path.name


FORMATS = (
    Format("CSV", with_compressions(".csv"), open_csv, write=write_csv),
    Format("TSV", with_compressions(".tsv", ".tab"), open_tsv, write=write_tsv),
    Format("Parquet", (".parquet", ".pq"), open_parquet, write=write_parquet),
    Format("Arrow", (".feather", ".arrow", ".ipc"), open_arrow, write=write_feather),
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
    Format(_HDF5, (".h5", ".hdf5"), open_hdf5_file),
)


def format_of(path: Path) -> Format | None:
    """The format that the end of a file's name says; None if it says none."""
    name = path.name.casefold()
    return next((known for known in FORMATS if name.endswith(known.suffixes)), None)


def has_blocks(path: Path) -> bool:
    """Whether the end of a file's name says a format that can be read in blocks."""
    return path.name.casefold().endswith(tuple(block_suffixes()))


def block_suffixes() -> list[str]:
    """Suffixes of the files that can be read in blocks."""
    return [suffix for known in FORMATS if known.open_blocks for suffix in known.suffixes]


def block_format(path: Path) -> Format:
    """The format of a file; an error if it is unknown, or cannot be read in blocks."""
    known = format_of(path)
    if known is None:
        raise DataError(f"{path}: {unknown_suffix(path.name, block_suffixes())}")
    if known.open_blocks is None:
        raise DataError(
            f"{path} cannot be read in blocks: {known.title} files are read whole only "
            f"(open_table). Convert it to one of {', '.join(block_suffixes())}."
        )
    return known


def open_in_blocks(path: Path, request: ReadRequest) -> FileBlocks:
    """Open a file to be read in blocks; nothing but names and sizes is read."""
    known = block_format(path)
    assert known.open_blocks is not None
    _refuse_dataset(path, known, request)
    with reading(path, known.title):
        return known.open_blocks(path, request)


def read_table(path: Path, request: ReadRequest) -> LabelledTable:
    """Read a whole file: its blocks collected, where it can be read in blocks."""
    known = format_of(path)
    if known is None:
        suffixes = [suffix for known in FORMATS for suffix in known.suffixes]
        raise DataError(unknown_suffix(path.name, suffixes))
    _refuse_dataset(path, known, request)
    with reading(path, known.title):
        if known.read_whole is not None:
            table = known.read_whole(path, request)
        else:
            table = _collect(path, request, known)
        if not request.mixed:
            refuse_empty_columns(table)
        return table


def _collect(path: Path, request: ReadRequest, known: Format) -> LabelledTable:
    """All rows; read again if a column of a mixed table holds text only further down."""
    while True:
        try:
            return collect(open_in_blocks(path, request), request.limit, known.name_of(path))
        except TextColumnsError as error:
            if not request.mixed or set(error.names) <= set(request.texts):
                raise
            request = replace(request, texts=(*request.texts, *error.names))


def _refuse_dataset(path: Path, known: Format, request: ReadRequest) -> None:
    if request.dataset is not None and known.title != _HDF5:
        raise ParameterError(
            f"dataset= names an array in an HDF5 file; {path} is {known.title}. Leave it out."
        )
