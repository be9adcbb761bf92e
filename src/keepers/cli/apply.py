"""A recipe on another table: its columns as a file, and what differs from the selection's table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers._wording import some_of
from keepers.cli.options import ReadingOptions
from keepers.cli.prepared import read_source
from keepers.cli.selecting import write_columns
from keepers.prepare.check import listed
from keepers.prepare.facts import as_words
from keepers.prepare.preparer import PreparedColumn, column_of, encode_columns
from keepers.reports.recipe import Recipe
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table


@dataclass
class Differences:
    """What the selection of a recipe would have read otherwise, counted block by block."""

    columns: Sequence[PreparedColumn]
    missing: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """How often, by what was found and by column."""
    n_rows: int = 0

    def look(self, table: Table) -> None:
        X = encode_columns(table, self.columns)
        self.n_rows += table.n_samples
        names = [column.name for column in self.columns]
        gaps = dict(zip(names, _count(X != X), strict=True))  # only NaN differs from itself
        self._add("infinite", dict(zip(names, _count(abs(X) == np.inf), strict=True)))
        unread = {}
        if table.frame is not None:
            for words in as_words(table.frame.select([n for n in names if n in table.others])):
                unread[words.name] = gaps[words.name] - words.null_count()
                gaps[words.name] = words.null_count()
        for column in self.columns:
            if column.levels and column.name not in unread:  # numbers that stand for categories
                n_missing = int(np.isnan(column_of(table, column.name)).sum())
                unread[column.name], gaps[column.name] = gaps[column.name] - n_missing, n_missing
        texts = {c.name: c.name in table.others for c in self.columns if c.kind == "number"}
        self._add("unread", unread)
        self._add("gaps", gaps)
        self._add("texts", {name: int(is_text) for name, is_text in texts.items()})

    def _add(self, what: str, found: Mapping[str, int]) -> None:
        self.counts.setdefault(what, Counter()).update({n: c for n, c in found.items() if c})

    def notes(self) -> list[str]:
        """What differs from the table of the selection, a sentence each."""
        gaps = self.counts.get("gaps", Counter())
        empty = [repr(name) for name, count in gaps.items() if count == self.n_rows]
        some = {name: f"{count:,}" for name, count in gaps.items() if count < self.n_rows}
        notes = [f"Kept columns without a single value: {some_of(empty)}."] if empty else []
        if some and self.missing != "drop-rows":
            notes.append(f"Missing values, written as they are (how many): {listed(some)}.")
        sentences = {
            "infinite": "Infinite values, which a selection refuses, were written (how many): {}.",
            "unread": "Values that the selection did not know, such as text among numbers or new "
            "categories, were written as they are (how many): {}.",
        }
        for what, sentence in sentences.items():
            if found := self.counts.get(what):
                notes.append(sentence.format(listed(found)))
        if texts := self.counts.get("texts"):
            shown = some_of([repr(name) for name in texts])
            notes.append(f"Columns of numbers that are stored as text in this table: {shown}.")
        return notes


def _count(found: Any) -> list[int]:
    """How often each column of a mask, dense or sparse, is true."""
    return [int(count) for count in np.asarray(found.sum(axis=0)).ravel()]


def apply_recipe(
    recipe: Recipe, data: str, out: Path, reading: ReadingOptions, *, in_blocks: bool, force: bool
) -> list[str]:
    """Write the kept columns of a table; returns sentences about it."""
    stored = recipe.preparation or {}
    request = reading.request()
    request = replace(
        request,
        transpose=request.transpose or stored.get("transpose", False),
        make_unique=request.make_unique or stored.get("make_unique", False),
    )
    # Samples to leave out may have names, which only the roles of the recipe tell.
    all_rows = replace(reading, drop_samples=None, drop_zero_rows=False)
    source = read_source(data, all_rows, request, in_blocks=in_blocks)
    roles = _with_stored_roles(request, stored, source)
    if roles != request or all_rows != reading:
        source = read_source(data, reading, roles, in_blocks=in_blocks)
    recipe.refuse_absent(source.columns)
    preparer = stored.get("preparer") or {"missing": "error", "columns": []}
    columns = [PreparedColumn.from_dict(each) for each in preparer["columns"]]
    found = Differences(columns, preparer["missing"])
    write_columns(
        *(out, data, source, recipe.features, columns, preparer["missing"], roles, reading),
        look=found.look,
        force=force,
    )
    notes = found.notes()
    left_out = {"--drop-samples": "drop_samples", "--drop-zero-rows": "drop_zero_rows"}
    for option, name in left_out.items():
        if stored.get(name) and not getattr(reading, name):
            notes.append(f"The selection left out rows by {option}; give it again to do so here.")
    return [*notes, f"Kept {len(recipe.features)} features of {source.name}; wrote {out}"]


def _with_stored_roles(
    request: ReadRequest, stored: Mapping[str, Any], source: Table | FileScan
) -> ReadRequest:
    """The request with the columns of sample names and classes of the selection, if there."""
    ids = source.ids if isinstance(source, Table) else source.identifier
    columns = source.columns
    if ids is None and stored.get("id") in columns:
        request = replace(request, identifier=stored["id"])
    if source.labels is None and stored.get("labels") in columns:
        request = replace(request, labels=stored["labels"])
    return request
