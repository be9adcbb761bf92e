"""The formats: what each is called, its suffixes, how it is read, and whether it is written.

A new format is one module here and one line in `FORMATS`. The module provides

- ``open_x(path, request) -> FileBlocks`` if rows can be read a block at a time. It reads names and
  sizes only. The class derives from `keepers.data.blocks.files.FileBlocks` (from `MatrixBlocks` if
  the file holds a bare matrix) and implements ``_read(columns, annotated) -> Iterator[Rows]``;
  `open_table` collects the same blocks, ``annotated``, into a `LabelledTable`.
- or, if it cannot, ``read_x(path, request) -> LabelledTable``, which usually ends with
  `keepers.data.columns.to_table`. `open_blocks` then says that the format is read whole only.
- and ``write_x(path, table, name)`` if it is written.

Any exception of a library may pass: it becomes a `DataError` that names the file.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keepers.data.blocks.files import FileBlocks
from keepers.data.blocks.numpy_file import open_numpy
from keepers.data.blocks.text import open_csv, open_tsv
from keepers.data.formats import delimited_writing, writers
from keepers.data.formats.arrow import open_arrow, open_parquet, write_feather, write_parquet
from keepers.data.formats.compression import with_compressions
from keepers.data.formats.content import WrittenTable
from keepers.data.formats.h5ad import open_h5ad, write_h5ad
from keepers.data.formats.hdf5 import open_hdf5_file
from keepers.data.formats.matlab import read_mat
from keepers.data.formats.matrix_market import read_mtx, write_mtx
from keepers.data.formats.numpy_files import read_npz
from keepers.data.formats.svmlight import read_svmlight, write_svmlight
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable
from keepers.data.wording import unknown_suffix
from keepers.exceptions import DataError

HDF5 = "HDF5"


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

    def name_of(self, path: Path) -> str:
        """What a table is called: its file without the suffix of the format."""
        lengths = [len(end) for end in self.suffixes if path.name.casefold().endswith(end)]
        return path.name[: -max(lengths)] if lengths else path.name


FORMATS = (
    Format("CSV", with_compressions(".csv"), open_csv, write=delimited_writing.write_csv),
    Format("TSV", with_compressions(".tsv", ".tab"), open_tsv, write=delimited_writing.write_tsv),
    Format("Parquet", (".parquet", ".pq"), open_parquet, write=write_parquet),
    Format("Arrow", (".feather", ".arrow", ".ipc"), open_arrow, write=write_feather),
    Format("NumPy array", (".npy",), open_numpy, write=writers.write_npy),
    Format("NumPy archive", (".npz",), read_whole=read_npz, write=writers.write_npz),
    Format("MATLAB", (".mat",), read_whole=read_mat),
    Format("Matrix Market", with_compressions(".mtx"), read_whole=read_mtx, write=write_mtx),
    Format(
        "svmlight",
        with_compressions(".svm", ".libsvm", ".svmlight"),
        read_whole=read_svmlight,
        write=write_svmlight,
    ),
    Format("AnnData", (".h5ad",), open_h5ad, write=write_h5ad),
    Format(HDF5, (".h5", ".hdf5"), open_hdf5_file),
)


def format_of(path: Path) -> Format | None:
    """The format that the end of a file's name says; None if it says none."""
    name = path.name.casefold()
    return next((known for known in FORMATS if name.endswith(known.suffixes)), None)


def known_format(path: Path) -> Format:
    """The format that the end of a file's name says; an error if it says none."""
    found = format_of(path)
    if found is None:
        known = [suffix for known in FORMATS for suffix in known.suffixes]
        raise DataError(unknown_suffix(path.name, known))
    return found


def block_suffixes() -> list[str]:
    """Suffixes of the files that can be read in blocks."""
    return [suffix for known in FORMATS if known.open_blocks for suffix in known.suffixes]
