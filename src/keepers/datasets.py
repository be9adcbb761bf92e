"""Data sets and files in, tables out."""

from keepers._protocols import RowBlock
from keepers.linalg.scatter import SCALINGS, scale_samples
from keepers.tables.opening import (
    CatalogueEntry,
    Dataset,
    catalogue,
    data_folder,
    find,
    load,
    load_catalogued,
    names,
    open_table,
    present,
    scan_table,
)
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table
from keepers.tables.writing import write_table

__all__ = [
    "SCALINGS",
    "CatalogueEntry",
    "Dataset",
    "FileScan",
    "ReadRequest",
    "RowBlock",
    "Table",
    "catalogue",
    "data_folder",
    "find",
    "load",
    "load_catalogued",
    "names",
    "open_table",
    "present",
    "scale_samples",
    "scan_table",
    "write_table",
]
