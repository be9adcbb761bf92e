"""From a file to a table that a selector takes, in memory or in blocks; `keepers check`."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keepers._wording import some_of
from keepers.cli import console
from keepers.cli.console import CheckOptions, ReadingOptions, progress_line, say, say_notes
from keepers.exceptions import DataError, ParameterError
from keepers.prepare.check import TableCheck, check_facts
from keepers.prepare.kinds import TableFacts, draw_table
from keepers.tables.opening import open_table, reads_in_blocks, scan_table
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table

if TYPE_CHECKING:
    from keepers.prepare.preparer import PreparedBlocks, TablePreparer

ROWS_DRAWN = 5000
"""Rows of a folder that are taken into memory where not all of them are needed."""
NEED_MEMORY = ("--transpose", "--drop-samples")
IN_MEMORY = "Use rows of it (--sample 5000), or a single file without --memory or --scheduler."


@dataclass(frozen=True)
class PreparedData:
    """A table as it was read and as a selector takes it."""

    source: Table | FileScan
    """As it was read: with text, dates and gaps."""
    rows: Table
    """Numbers only, in memory: all rows, or those drawn from a table in blocks."""
    blocks: "PreparedBlocks | None"
    """Numbers only, in blocks; None for a table in memory."""
    preparer: "TablePreparer"
    check: TableCheck

    def notes(self, method: str = "", scaling: str = "raw") -> list[str]:
        """Findings that matter to a selection by the class of this name, and what was done."""
        depends_on_units = "" if scaling.endswith("-features") else method
        found = self.check.to_say(depends_on_units, log=self.preparer.log)
        return [*found, *self.preparer.notes_]


def check(data: str, options: CheckOptions) -> None:
    """Print what to know about a table before a selection, and a command that runs."""
    found = look_at(data, options, in_blocks=wants_blocks(data, options))[2]
    own = ("--json", "--debug", "--quiet", "-q")
    words = ["select", *(w for w in console.typed_words[1:] if w not in own)]
    command = ready_command(found, words)
    if not options.json:
        for line in [*found.lines(), *filter(None, [command])]:
            say(line)
        return
    kinds = {name: kind.kind for name, kind in found.kinds.items()}
    shown = {"data": found.name, "n_rows": found.n_rows, "n_columns": found.n_columns}
    shown |= {"kinds": kinds, "findings": [vars(finding) for finding in found.findings]}
    console.print_json({**shown, "obstacle": found.obstacle or None, "command": command or None})


def ready_command(found: TableCheck, words: Sequence[str]) -> str:
    """A command with the options that act on the findings; empty if no selection is possible."""
    if found.obstacle:
        return ""
    given = [word.partition("=")[0] for word in words]
    return " ".join([console.shell_command(["keepers", *words]), *found.needed(given)])


def wants_blocks(data: str, options: ReadingOptions) -> bool:
    """True if a table is read in blocks: options set it, or it is several files."""
    given = [getattr(options, name, None) for name in ("memory", "scheduler")]
    return options.sample is None and (any(given) or reads_in_blocks(data))


def look_at(
    data: str, options: ReadingOptions, *, in_blocks: bool
) -> tuple[Table | FileScan, TableFacts, TableCheck]:
    """Read a table and find from all its rows what its columns are."""
    source = read_source(data, options, options.request(), in_blocks=in_blocks)
    with progress_line(f"looking at {data}"):
        facts = TableFacts.of(source, options.asked_kinds)
        found = check_facts(facts, options.asked_kinds)
    findings = [*found.findings]
    for at, each in enumerate(findings):
        if in_blocks and (option := each.option.partition(" ")[0]) in NEED_MEMORY:
            sentence = f"{each.sentence} {option} needs the table in memory. {IN_MEMORY}"
            findings[at] = replace(each, sentence=sentence, option="")
    return source, facts, replace(found, findings=tuple(findings))


def prepare(
    data: str, options: ReadingOptions, scale: str = "raw", *, in_blocks: bool, keep: bool = False
) -> PreparedData:
    """Read a table and turn it into numbers; rows of a folder are drawn if not ``in_blocks``.

    Without --missing, gaps raise, unless ``keep``.
    """
    from keepers.prepare.preparer import PreparedBlocks, TablePreparer

    if in_blocks and scale != "raw":
        raise ParameterError(f"--scale {scale} needs the table in memory. {IN_MEMORY}")
    source, facts, check = look_at(data, options, in_blocks=in_blocks)
    missing: Any = options.missing or ("keep" if keep else "error")
    preparer = TablePreparer(missing=missing, kinds=options.asked_kinds, log=options.log)
    try:
        preparer.fit_facts(facts)
    except DataError as error:  # all other findings, and the command that helps
        others = [f"- {finding}" for finding in check.findings if finding.about != "gaps"]
        gaps = [finding.option for finding in check.findings if finding.about == "gaps"]
        if command := ready_command(check, console.typed_words):
            others.append(" ".join([command, *gaps]))
        raise DataError(str(error), *others) from error
    if check.obstacle:
        raise DataError(check.obstacle)
    if not isinstance(source, Table):
        blocks = PreparedBlocks(source, preparer)
        return PreparedData(source, preparer.prepare(facts.sample), blocks, preparer, check)
    return PreparedData(source, preparer.prepare(source, first_row=0), None, preparer, check)


def read_source(
    data: str, options: ReadingOptions, request: ReadRequest, *, in_blocks: bool
) -> Table | FileScan:
    """A table as it is stored: in blocks, or in memory, where rows of a folder are drawn."""
    several = reads_in_blocks(data)
    given = (request.transpose and (in_blocks or several), options.drop_samples and in_blocks)
    for option, is_refused in zip(NEED_MEMORY, given, strict=True):
        if is_refused:
            raise ParameterError(f"{option} needs the table in memory. {IN_MEMORY}")
    in_files = os.path.exists(data) or glob.has_magic(data) or bool(Path(data).suffix)
    with progress_line(f"reading {data}"):
        if in_blocks and in_files:  # not the name of a data set
            return scan_table(data, request)
        whole = scan_table(data, request) if several else open_table(data, request)
        drawn = options.sample or (ROWS_DRAWN if several else 0)
        table = draw_table(whole, drawn) if drawn else whole
        assert isinstance(table, Table)
    if table.n_samples == drawn:
        say_notes([f"{drawn:,} rows of {data} are used, drawn at random."])
    return _without_samples(table, options.drop_samples) if options.drop_samples else table


def _without_samples(table: Table, named: Sequence[str]) -> Table:
    places = {str(number + 1): number for number in range(table.n_samples)}
    places |= {str(name): at for at, name in enumerate(() if table.ids is None else table.ids)}
    parts = [part.strip() for word in named for part in word.split(",")]
    if absent := [repr(part) for part in parts if part not in places]:
        raise DataError(
            f"--drop-samples must name samples, or rows from 1 to {table.n_samples}; these are "
            f"neither: {some_of(absent)}."
        )
    return table.take(np.delete(np.arange(table.n_samples), [places[part] for part in parts]))


def scale_table(table: Table, scaling: str) -> Table:
    """The table as a selector takes it: scaled."""
    from keepers.prepare.scaling import scale_samples

    if scaling == "raw":
        return table
    n_gaps = int((table.values != table.values).sum())  # only NaN differs from itself
    if n_gaps:
        raise ParameterError(
            f"--scale {scaling} needs a table without gaps; {table.name} has {n_gaps:,}. Leave out "
            "--scale (the default method does not depend on units), or fill them (--missing model)."
        )
    return replace(table, values=scale_samples(table.values, scaling))
