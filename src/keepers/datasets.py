"""Data sets and files in, tables out."""

from keepers._protocols import RowBlock
from keepers.data.catalogue import (
    CatalogueEntry,
    Dataset,
    catalogue,
    data_folder,
    find,
    load,
    names,
    present,
)
from keepers.data.scaling import SCALINGS, scale_samples
from keepers.data.table import LabelledTable
from keepers.data.table_files import (
    TableWriter,
    copy_features,
    load_catalogued,
    open_blocks,
    open_table,
    open_writer,
    write_features,
    write_table,
)

__all__ = [
    "SCALINGS",
    "CatalogueEntry",
    "Dataset",
    "LabelledTable",
    "RowBlock",
    "TableWriter",
    "catalogue",
    "copy_features",
    "data_folder",
    "find",
    "load",
    "load_catalogued",
    "names",
    "open_blocks",
    "open_table",
    "open_writer",
    "present",
    "scale_samples",
    "write_features",
    "write_table",
]
