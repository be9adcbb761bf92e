"""Kept columns out of a table, into a file."""

from pathlib import Path

from keepers._protocols import IndexArray
from keepers.data.table import LabelledTable
from keepers.data.writing import write_table

__all__ = ["write_columns"]


def write_columns(
    table: LabelledTable,
    columns: IndexArray,
    path: Path,
    *,
    identifier: str | None,
    labels: str | None,
    force: bool,
) -> None:
    """Write some columns with the values they have in the table, and the names of its rows."""
    write_table(
        path,
        table.X[:, columns],
        table.feature_names[columns],
        table.sample_names,
        table.labels,
        identifier_name=identifier or "sample",
        label_name=labels or "label",
        force=force,
    )
