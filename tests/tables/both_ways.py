"""A table read whole, and the same read in blocks; what the tests of formats share."""

import pytest
import scipy.sparse as sp

from keepers.datasets import open_table, scan_table
from keepers.tables.table import stack_tables


def in_blocks(path, **options):
    return stack_tables(list(scan_table(path, **options).tables()))


both_ways = pytest.mark.parametrize("read", [open_table, in_blocks], ids=["whole", "in blocks"])


def dense(values):
    return values.toarray() if sp.issparse(values) else values


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
