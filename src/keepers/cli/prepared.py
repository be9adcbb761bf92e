"""From a file to a table that a selector takes: one path for tables in memory and in blocks."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keepers._wording import some_of
from keepers.cli.console import progress_line, say_notes, shell_command
from keepers.cli.options import ReadingOptions
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.reservoir import drawn_rows
from keepers.linalg.storage import scale_samples
from keepers.prepare.check import TableCheck, check_facts
from keepers.prepare.facts import SEED, TableFacts
from keepers.prepare.preparer import PreparedBlocks, TablePreparer, draw_table, learn
from keepers.tables.opening import open_table, reads_in_blocks, scan_table
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table

PUTS_FEATURES_ON_ONE_SCALE = ("unit-features", "standardize-features", "min-max-features")
ROWS_DRAWN = 5000
"""Rows of a folder that are taken into memory where not all of them are needed."""
IN_MEMORY = (
    "Use rows of it (--sample 5000), or a single file without --memory, --workers or --scheduler."
)


@dataclass(frozen=True)
class LookedAt:
    """A table as it was read, and what one pass over its rows found."""

    source: Table | FileScan
    """Text, dates and gaps are in it."""
    facts: TableFacts
    check: TableCheck


@dataclass(frozen=True)
class PreparedData(LookedAt):
    """A table as it was read and as a selector takes it, in memory or in blocks."""

    rows: Table
    """Numbers only, in memory: all rows, or those drawn from a table in blocks."""
    blocks: PreparedBlocks | None
    """Numbers only, in blocks; None for a table in memory."""
    preparer: TablePreparer

    def notes(self, method: str = "", scaling: str = "raw") -> list[str]:
        """Findings that matter to a selection by the class of this name, and what was done."""
        depends_on_units = "" if scaling in PUTS_FEATURES_ON_ONE_SCALE else method
        found = self.check.to_say(depends_on_units, log=self.preparer.log)
        return [*found, *self.preparer.notes_]


def wants_blocks(data: str, reading: ReadingOptions, *, asked: bool = False) -> bool:
    """Whether a table is read in blocks: options ask for it, or it is several files."""
    return reading.sample is None and (asked or reads_in_blocks(data))


def look_at(data: str, reading: ReadingOptions, *, in_blocks: bool) -> LookedAt:
    """Read a table and find what its columns are, from every row."""
    source = read_source(data, reading, reading.request(), in_blocks=in_blocks)
    with progress_line(f"looking at {data}", quiet=reading.quiet) as show:
        categories = [name for name, kind in reading.asked_kinds.items() if kind == "category"]
        rows_read = f"looking at {data}: {{:,}} rows".format
        facts = learn(source, lambda n_rows: show(rows_read(n_rows)), categories)
        found = check_facts(facts, reading.asked_kinds)
        return LookedAt(source, facts, found.in_blocks() if in_blocks else found)


def prepare(
    data: str,
    reading: ReadingOptions,
    scaling: str = "raw",
    *,
    in_blocks: bool,
    keep_gaps: bool = False,
) -> PreparedData:
    """Read a table and turn it into numbers; rows of a folder are drawn if not ``in_blocks``.

    Without --missing, gaps raise, unless they are kept for a selector that takes them.
    """
    if in_blocks and scaling != "raw":
        raise ParameterError(f"--scale {scaling} needs the table in memory. {IN_MEMORY}")
    found = look_at(data, reading, in_blocks=in_blocks)
    source = found.source
    missing: Any = reading.missing or ("keep" if keep_gaps else "error")
    preparer = TablePreparer(missing=missing, kinds=reading.asked_kinds, log=reading.log)
    try:
        preparer.fit_facts(found.facts)
    except DataError as error:  # all other findings, and the command that helps
        others = [f"- {finding}" for finding in found.check.findings if finding.about != "gaps"]
        command = ready_command(found.check, data, reading)
        gaps = [finding.option for finding in found.check.findings if finding.about == "gaps"]
        commands = [" ".join([command, *gaps])] if command else []
        raise DataError(str(error), *others, *commands) from error
    if in_blocks:
        blocks = PreparedBlocks(source, preparer, is_fitted_table=True)
        rows = preparer.prepare(found.facts.sample)
    else:
        assert isinstance(source, Table)
        blocks, rows = None, preparer.prepare(source, first_row=0)
    return PreparedData(source, found.facts, found.check, rows, blocks, preparer)


def ready_command(check: TableCheck, data: str, reading: ReadingOptions) -> str:
    """The command with the options that were given and those that act on the findings.

    Empty if no selection is possible.
    """
    if check.obstacle:
        return ""
    given = reading.words()
    return " ".join([shell_command(["keepers", "select", data, *given]), *check.needed(given)])


def read_source(
    data: str, reading: ReadingOptions, request: ReadRequest, *, in_blocks: bool
) -> Table | FileScan:
    """A table as it is stored: in blocks, or in memory, where rows of a folder are drawn."""
    several = reads_in_blocks(data)
    in_files = os.path.exists(data) or glob.has_magic(data) or bool(Path(data).suffix)
    needs_memory = {
        "--transpose": request.transpose and (in_blocks or several),
        "--drop-samples": reading.drop_samples and in_blocks,
        "--drop-zero-rows": reading.drop_zero_rows and in_blocks,
    }
    for option, is_refused in needs_memory.items():
        if is_refused:
            raise ParameterError(f"{option} needs the table in memory. {IN_MEMORY}")
    with progress_line(f"reading {data}", quiet=reading.quiet):
        if in_blocks and in_files:  # not the name of a data set
            return scan_table(data, request)
        drawn = reading.sample or (ROWS_DRAWN if several else None)
        if several:
            scan = scan_table(data, request)
            table = replace(draw_table(scan, drawn or ROWS_DRAWN), name=scan.name)
        else:
            table = open_table(data, request)
            if drawn is not None and drawn < table.n_samples:
                table = table.take(drawn_rows(table.n_samples, drawn, SEED))
    if drawn is not None and table.n_samples == drawn:
        say_notes([f"{drawn:,} rows of {data} are used, drawn at random."], quiet=reading.quiet)
    return leave_out_rows(table, reading)


def scale_table(table: Table, scaling: str) -> Table:
    """The table as a selector takes it: at least two samples, scaled."""
    if table.n_samples < 2:
        raise DataError(
            f"A selection needs at least 2 samples; {table.name} has 1. Check that samples are "
            "rows and features are columns."
        )
    if scaling == "raw":
        return table
    n_gaps = int((table.values != table.values).sum())  # only NaN differs from itself
    if n_gaps:
        raise ParameterError(
            f"--scale {scaling} needs a table without gaps; {table.name} has {n_gaps:,}. Leave out "
            "--scale (the default method does not depend on units), or fill them (--missing model)."
        )
    return replace(table, values=scale_samples(table.values, scaling))


def leave_out_rows(table: Table, reading: ReadingOptions) -> Table:
    """The table without the rows that the options leave out."""
    kept = np.ones(table.n_samples, dtype=bool)
    if reading.drop_samples:
        kept[_find_samples(table, reading.drop_samples)] = False
    if reading.drop_zero_rows:
        kept &= np.asarray((table.values != 0).sum(axis=1)).ravel() > 0
    if kept.all():
        return table
    if kept.sum() < 2:
        raise DataError("Fewer than 2 rows are left. Leave out fewer samples.")
    return table.take(kept)


def _find_samples(table: Table, words: Sequence[str]) -> list[int]:
    places = {str(number + 1): number for number in range(table.n_samples)}
    places |= {str(name): at for at, name in enumerate(() if table.ids is None else table.ids)}
    parts = [part.strip() for word in words for part in word.split(",")]
    absent = [repr(part) for part in parts if part not in places]
    if absent:
        raise DataError(
            f"--drop-samples must name samples, or rows from 1 to {table.n_samples}; these are "
            f"neither: {some_of(absent)}."
        )
    return [places[part] for part in parts]
