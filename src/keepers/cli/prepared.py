"""From a file to a table that a selector takes, with notes on what was found and done."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from keepers.cli.console import note, progress_line, shell_command
from keepers.cli.options import reads_in_blocks
from keepers.cli.reading import ReadingOptions
from keepers.data.table import LabelledTable
from keepers.data.table_files import open_blocks, open_table
from keepers.data.wording import some_of
from keepers.exceptions import DataError, ParameterError
from keepers.linalg.reservoir import drawn_rows
from keepers.preparation.facts import TableFacts
from keepers.preparation.prepared_blocks import learn_from_blocks
from keepers.preparation.row_sample import SEED, draw_table
from keepers.preparation.table_check import TableCheck, check_facts
from keepers.preparation.table_preparer import TablePreparer

PUTS_FEATURES_ON_ONE_SCALE = ("unit-features", "standardize-features", "min-max-features")
ROWS_DRAWN = 5000
"""Rows of a folder that are taken into memory where all of them are not needed."""


@dataclass(frozen=True)
class PreparedData:
    """A table in memory, as it was read and as a selector takes it."""

    source: LabelledTable
    """As read: text, dates and gaps are there; the same rows as ``table``."""
    table: LabelledTable
    """Numbers only."""
    preparer: TablePreparer
    check: TableCheck

    def notes(self, method: str = "", scaling: str = "raw") -> list[str]:
        """What there is to say before a selection by the class of this name."""
        minds_units = "" if scaling in PUTS_FEATURES_ON_ONE_SCALE else method
        return [*self.check.to_say(minds_units, log=self.preparer.log), *self.preparer.notes_]


def prepare_data(
    data: str, reading: ReadingOptions, max_bytes: int | None, *, quiet: bool
) -> PreparedData:
    """Read a table into memory and prepare it; rows of a folder are drawn."""
    source = read_source(data, reading, max_bytes, quiet=quiet)
    with progress_line(f"looking at {source.name}", quiet=quiet):
        return prepare_table(source, reading, data)


def check_data(
    data: str, reading: ReadingOptions, max_bytes: int | None, *, quiet: bool
) -> TableCheck:
    """What there is to know of a table; a folder is read in blocks, every row of it."""
    asked: Any = reading.asked_kinds
    if reading.sample is None and reads_in_blocks(data, ()):
        refuse_transposed_blocks(reading.transpose)
        with progress_line(f"reading {data}", quiet=quiet) as show:
            source = open_blocks(data, **reading.roles(), mixed=True)
            learned = learn_from_blocks(source, lambda n_rows: show(f"{n_rows:,} rows"))
        return check_facts(learned.facts, learned.sample, asked)
    table = leave_out_rows(read_source(data, reading, max_bytes, quiet=quiet), reading)
    return check_facts(TableFacts.of(table), table, asked)


def prepare_table(source: LabelledTable, reading: ReadingOptions, data: str) -> PreparedData:
    """Prepare a table that was read from ``data``."""
    source = leave_out_rows(source, reading)
    facts = TableFacts.of(source)
    asked: Any = reading.asked_kinds
    check = check_facts(facts, source, asked)
    preparer = TablePreparer(missing=reading.missing, kinds=asked, log=reading.log)  # type: ignore[arg-type]
    with all_findings(check, data, reading):
        preparer.fit_facts(facts)
    table = preparer.prepare(source, first_row=0)
    if preparer.missing == "drop-rows":
        source = take_rows(source, preparer.find_complete(preparer.encode(source)))
    return PreparedData(source, table, preparer, check)


@contextmanager
def all_findings(check: TableCheck, data: str, reading: ReadingOptions) -> Iterator[None]:
    """If a table cannot be prepared, say why, what else was found, and the command that helps."""
    try:
        yield
    except DataError as error:
        others = [f"- {finding}" for finding in check.findings if finding.about != "gaps"]
        raise DataError(str(error), *others, ready_command(check, data, reading)) from error


def ready_command(check: TableCheck, data: str, reading: ReadingOptions) -> str:
    """The command with the options that were given and those that act on the findings."""
    given = reading.words()
    return " ".join([shell_command(["keepers", "select", data, *given]), *check.needed(given)])


def read_source(
    data: str, reading: ReadingOptions, max_bytes: int | None, *, quiet: bool
) -> LabelledTable:
    """A table as it is stored, in memory; a folder or ``--sample`` as rows drawn from it."""
    in_blocks = reads_in_blocks(data, ())
    if reading.transpose:
        refuse_transposed_blocks(in_blocks)
    drawn = reading.sample or (ROWS_DRAWN if in_blocks else None)
    with progress_line(f"reading {data}", quiet=quiet):
        if in_blocks:
            blocks = open_blocks(data, **reading.roles(), mixed=True)
            table = draw_table(blocks, drawn or ROWS_DRAWN)
        else:
            settings = {**reading.roles(), "transpose": reading.transpose}
            table = open_table(data, **settings, mixed=True, max_bytes=max_bytes)
            if drawn is not None and drawn < table.n_samples:
                table = take_rows(table, drawn_rows(table.n_samples, drawn, SEED))
    if drawn is not None and table.n_samples == drawn:
        note(f"keepers: note: {drawn:,} rows of {data} are used, drawn at random.", quiet=quiet)
    return table


def refuse_transposed_blocks(in_blocks: bool) -> None:
    """Raise if a table that is read in blocks of rows has samples as columns."""
    if in_blocks:
        raise ParameterError(
            "--transpose needs the table in memory: name a single file, without --memory, "
            "--workers, --scheduler, --checkpoint or --route."
        )


def leave_out_rows(table: LabelledTable, reading: ReadingOptions) -> LabelledTable:
    """The table without the rows that the options leave out."""
    kept = np.ones(table.n_samples, dtype=bool)
    if reading.drop_samples:
        kept[_find_samples(table, reading.drop_samples)] = False
    if reading.drop_zero_rows:
        X = table.X
        kept &= np.asarray((X != 0).sum(axis=1)).ravel() > 0
    if kept.all():
        return table
    if kept.sum() < 2:
        raise DataError("Fewer than 2 rows are left. Leave out fewer samples.")
    return take_rows(table, kept)


def _find_samples(table: LabelledTable, words: Sequence[str]) -> list[int]:
    names = table.sample_names
    places = {} if names is None else {str(name): at for at, name in enumerate(names)}
    found, absent = [], []
    for word in words:
        for part in [word] if word in places else [part.strip() for part in word.split(",")]:
            if part in places:
                found.append(places[part])
            elif part.isdigit() and 1 <= int(part) <= table.n_samples:
                found.append(int(part) - 1)
            else:
                absent.append(repr(part))
    if absent:
        raise DataError(
            f"--drop-samples must name samples, or rows from 1 to {table.n_samples}; these are "
            f"neither: {some_of(absent)}."
        )
    return found


def take_rows(table: LabelledTable, rows: Any) -> LabelledTable:
    """Some rows of a table, given by a mask or by numbers."""
    return replace(
        table,
        X=table.X[rows],
        sample_names=None if table.sample_names is None else table.sample_names[rows],
        labels=None if table.labels is None else table.labels[rows],
        others=tuple(each.take(rows) for each in table.others),
    )


def complete_part(preparer: TablePreparer, table: LabelledTable) -> LabelledTable | None:
    """The rows without a gap; None if there is none."""
    complete = preparer.find_complete(preparer.encode(table))
    return take_rows(table, complete) if complete.any() else None


def say_notes(notes: Sequence[str], *, quiet: bool) -> None:
    """Print notes to the error stream."""
    for each in notes:
        note(f"keepers: note: {each}", quiet=quiet)
