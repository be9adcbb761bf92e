"""A recipe on a new table: the kept columns, prepared as in the selection."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers.cli.console import progress_line
from keepers.cli.prepared import (
    complete_part,
    leave_out_rows,
    read_source,
    refuse_transposed_blocks,
)
from keepers.cli.reading import ReadingOptions
from keepers.data.columns import OtherColumn, as_texts
from keepers.data.table import LabelledTable
from keepers.data.table_files import copy_features, open_blocks, write_selected
from keepers.data.values import as_labels
from keepers.exceptions import DataError, ParameterError
from keepers.preparation.table_preparer import TablePreparer
from keepers.recipe import Recipe


def refuse_decided(reading: ReadingOptions) -> None:
    """Raise for options about what the recipe has decided."""
    given = {"--missing": reading.missing != "error", "--as": reading.kinds, "--log": reading.log}
    named = [option for option, value in given.items() if value]
    if named:
        raise ParameterError(
            f"The recipe says how the table is prepared; got {', '.join(named)}. Leave it out, or "
            "make another selection."
        )


def apply_to_table(
    recipe: Recipe,
    data: str,
    out: Path,
    reading: ReadingOptions,
    max_bytes: int | None,
    *,
    force: bool,
    quiet: bool,
) -> str:
    """Write the kept columns of a table in memory; returns what was done, in a sentence."""
    stored = recipe.preparation or {}
    if stored.get("transpose"):
        reading = replace(reading, transpose=True)
    if stored.get("make_unique"):
        reading = replace(reading, make_unique=True)
    read = read_source(data, reading, max_bytes, quiet=quiet)
    table = leave_out_rows(with_roles(read, recipe), reading)
    recipe.refuse_absent(_names(table))
    filled = _fill(recipe, table)
    if filled is None:
        raise DataError(f"Leaving out rows with gaps leaves none of {table.n_samples}.")
    same = filled is read
    write_selected(
        out,
        data if same else "",
        filled,
        list(recipe.features),
        identifier_name=reading.id or stored.get("id") or "sample",
        label_name=reading.labels or stored.get("labels") or "label",
        force=force,
    )
    n_columns = table.n_features + len(table.others)
    return f"Kept {len(recipe.features)} of {n_columns} features of {table.name}; wrote {out}"


def apply_to_blocks(
    recipe: Recipe, data: str, out: Path, reading: ReadingOptions, *, force: bool, quiet: bool
) -> str:
    """The same for a table in blocks, block after block."""
    stored = recipe.preparation or {}
    refuse_transposed_blocks(bool(stored.get("transpose")) or reading.transpose)
    source = open_blocks(data, **reading.roles(), mixed=True)

    def change(table: LabelledTable) -> LabelledTable | None:
        table = with_roles(table, recipe)
        recipe.refuse_absent(_names(table))
        return _fill(recipe, table)

    with progress_line(f"writing {out}", quiet=quiet):
        copy_features(
            source,
            out,
            list(recipe.features),
            change=change,
            identifier_name=reading.id or stored.get("id") or "sample",
            label_name=reading.labels or stored.get("labels") or "label",
            force=force,
        )
    return f"Kept {len(recipe.features)} features of {source.name}; wrote {out}"


def with_roles(table: LabelledTable, recipe: Recipe) -> LabelledTable:
    """The table with the columns of sample names and classes that the recipe remembers, if any."""
    stored = recipe.preparation or {}
    if table.sample_names is None:
        table, names = _take_column(table, stored.get("id"))
        if names is not None:
            texts = np.array(["" if word is None else word for word in names], dtype=object)
            table = replace(table, sample_names=texts)
    if table.labels is None:
        table, labels = _take_column(table, stored.get("labels"))
        if labels is not None:
            table = replace(table, labels=as_labels(labels, str(stored["labels"])))
    return table


def _take_column(table: LabelledTable, name: Any) -> tuple[LabelledTable, Any]:
    """The table without a column, and that column; None if there is none of this name."""
    for column in table.others:
        if column.name == name:
            left = [each for each in table.others if each is not column]
            return replace(table, others=_moved_up(left, column.position)), column.values
    places = np.flatnonzero(table.feature_names == name)
    if not len(places) or table.is_sparse:
        return table, None
    at = int(places[0])
    values = table.X[:, at]
    words = values.astype(np.int64) if np.all(np.rint(values) == values) else values
    place = at + sum(each.position <= at for each in table.others)
    left_over = replace(
        table,
        X=np.delete(table.X, at, axis=1),
        feature_names=np.delete(table.feature_names, at),
        others=_moved_up(table.others, place),
    )
    return left_over, as_texts(words.tolist())


def _moved_up(columns: Sequence[OtherColumn], place: int) -> tuple[OtherColumn, ...]:
    """Columns, of which those behind a place that is gone move up by one."""
    return tuple(
        replace(each, position=each.position - 1) if each.position > place else each
        for each in columns
    )


def _names(table: LabelledTable) -> list[str]:
    return [*map(str, table.feature_names), *(column.name for column in table.others)]


def _fill(recipe: Recipe, table: LabelledTable) -> LabelledTable | None:
    """The table with gaps in the kept columns filled as in the selection."""
    stored = (recipe.preparation or {}).get("preparer")
    if stored is None:
        return table
    try:
        preparer = TablePreparer.from_dict(stored)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"The recipe is damaged: its preparation is not valid ({error}).") from None
    if preparer.missing == "drop-rows":
        return complete_part(preparer, table)
    return preparer.fill_source(table)
