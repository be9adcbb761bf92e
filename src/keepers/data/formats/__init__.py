"""One table from file suffix to reader and writer.

A new format is a module here with ``read_<format>(path, request) -> LabelledTable``, perhaps a
writer, and a line in `FORMATS`. Formats with named columns decide roles with
`keepers.data.columns.plan_columns`; formats that hold a bare matrix end with
`keepers.data.columns.to_table`. A reader may let any exception of the library it uses pass:
`keepers.data.open_table` turns it into a `DataError`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keepers.data.formats import delimited_writing, writers
from keepers.data.formats.arrow_files import read_arrow, read_parquet
from keepers.data.formats.compression import with_compressions
from keepers.data.formats.content import WrittenTable
from keepers.data.formats.delimited import read_csv, read_tsv
from keepers.data.formats.h5ad import read_h5ad
from keepers.data.formats.hdf5_tables import read_hdf5
from keepers.data.formats.matlab import read_mat
from keepers.data.formats.matrix_market import read_mtx
from keepers.data.formats.numpy_files import read_npy, read_npz
from keepers.data.formats.svmlight import read_svmlight
from keepers.data.request import ReadRequest
from keepers.data.table import LabelledTable

__all__ = ["FORMATS", "FileFormat", "format_of"]


@dataclass(frozen=True)
class FileFormat:
    """How a kind of file is called, recognised, read and written."""

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadRequest], LabelledTable]
    write: Callable[[Path, WrittenTable, str], None] | None = None
    """(where to write, what, the final name of the file); None if it is only read."""


FORMATS = (
    FileFormat("CSV", with_compressions(".csv"), read_csv, delimited_writing.write_csv),
    FileFormat("TSV", with_compressions(".tsv", ".tab"), read_tsv, delimited_writing.write_tsv),
    FileFormat("Parquet", (".parquet", ".pq"), read_parquet, writers.write_parquet),
    FileFormat("Arrow", (".feather", ".arrow", ".ipc"), read_arrow, writers.write_feather),
    FileFormat("NumPy array", (".npy",), read_npy, writers.write_npy),
    FileFormat("NumPy archive", (".npz",), read_npz, writers.write_npz),
    FileFormat("MATLAB", (".mat",), read_mat),
    FileFormat("Matrix Market", with_compressions(".mtx"), read_mtx, writers.write_mtx),
    FileFormat(
        "svmlight",
        with_compressions(".svm", ".libsvm", ".svmlight"),
        read_svmlight,
        writers.write_svmlight,
    ),
    FileFormat("AnnData", (".h5ad",), read_h5ad, writers.write_h5ad),
    FileFormat("HDF5", (".h5", ".hdf5"), read_hdf5),
)


def format_of(path: Path) -> FileFormat | None:
    """The format that the end of a file's name says."""
    name = path.name.casefold()
    for file_format in FORMATS:
        if name.endswith(file_format.suffixes):
            return file_format
    return None
