"""Data sets and files in, tables out."""

from keepers._protocols import RowBlock as RowBlock
from keepers.prepare.scaling import SCALINGS as SCALINGS
from keepers.prepare.scaling import scale_samples as scale_samples
from keepers.tables.opening import Dataset as Dataset
from keepers.tables.opening import load as load
from keepers.tables.opening import names as names
from keepers.tables.opening import open_table as open_table
from keepers.tables.opening import scan_table as scan_table
from keepers.tables.scans import FileScan as FileScan
from keepers.tables.table import ReadRequest as ReadRequest
from keepers.tables.table import Table as Table
from keepers.tables.writing import write_table as write_table
