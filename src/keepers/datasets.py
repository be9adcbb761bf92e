"""Data sets and files in, tables out: the public name of `keepers.data`."""

from keepers.data import (
    SCALINGS,
    CatalogueEntry,
    Dataset,
    LabelledTable,
    RowBlock,
    catalogue,
    data_folder,
    find,
    load,
    load_catalogued,
    names,
    open_blocks,
    open_table,
    present,
    scale_samples,
    write_table,
)

__all__ = [
    "SCALINGS",
    "CatalogueEntry",
    "Dataset",
    "LabelledTable",
    "RowBlock",
    "catalogue",
    "data_folder",
    "find",
    "load",
    "load_catalogued",
    "names",
    "open_blocks",
    "open_table",
    "present",
    "scale_samples",
    "write_table",
]
