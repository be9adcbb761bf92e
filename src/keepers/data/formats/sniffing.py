"""The format of a file whose name does not tell it, by how the file begins."""

import re
import zipfile
from pathlib import Path

from keepers.data.formats.compression import is_compressed, open_expanded
from keepers.data.formats.hdf5 import open_hdf5_numbers
from keepers.data.formats.plain_text import delimiter_of
from keepers.data.table import ReadRequest
from keepers.data.wording import some_of
from keepers.exceptions import DataError

_HDF5, _ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"FEA1": "feather",
    b"\x93NUMPY": "npy",
    b"MATLAB 5.0 MAT": "mat",
    b"MATLAB 7.3 MAT": "mat",
}
"""How files of numbers begin, which are not compressed as a whole."""
_TEXT = {
    re.compile(rb"%%MatrixMarket\s", re.IGNORECASE): "mtx",
    re.compile(rb"#1\.[23]\s*\n"): "gct",
    re.compile(rb'"?!(Series|Sample)_'): "geo",
    re.compile(rb"[+-]?[0-9.]+([eE][+-]?[0-9]+)?([ \t]+[0-9]+:[^\s:]+)+\s*(\n|\Z)"): "svmlight",
}
"""How text begins that is no plain table."""
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT = 2**12


def sniff(path: Path, request: ReadRequest) -> str:
    """The name of the format that the file seems to have; an error that says what was tried."""
    with path.open("rb") as stream:
        start = stream.read(_LOOKED_AT)
    if start.startswith(_HDF5):
        with open_hdf5_numbers(path) as file:
            return "h5ad" if {"X", "obs", "var"} <= set(file) else "h5"
    if start.startswith(_ZIP):
        return _sniff_archive(path)
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    if is_compressed(path):
        with open_expanded(path, request.limit) as expanded:
            start = expanded.read(_LOOKED_AT)
    text = start.removeprefix(b"\xef\xbb\xbf")
    for pattern, name in _TEXT.items():
        if pattern.match(text):
            return name
    told_by_mark = start.startswith(_BYTE_ORDER_MARKS) or request.encoding is not None
    if start.strip() and (b"\0" not in start or told_by_mark):
        delimiter_of(path, request)
        return "txt"
    what = "bytes that are no text" if start.strip() else "nothing"
    raise DataError(
        f"It holds {what}: it is no table in text, and begins like no Parquet, Arrow, NumPy, "
        "MATLAB, HDF5, zip, Matrix Market, svmlight, GCT or GEO file."
    )


def _sniff_archive(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        members = archive.namelist()
    if "xl/workbook.xml" in members:
        return "excel"
    if any(name.endswith(".npy") for name in members):
        return "npz"
    raise DataError(
        "It is a zip archive, which may be a workbook or hold arrays of NumPy; this one holds "
        f"{some_of(members) or 'nothing'}. Unpack it, and name the table."
    )
