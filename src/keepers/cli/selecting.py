"""`keepers select`: the fit, and the result on a terminal, as JSON and in files."""

import ast
import inspect
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as Cells

from keepers._wording import some_of
from keepers.blocks.dask import DaskBlocks, dask_client
from keepers.catalogue import METHODS, find_method
from keepers.cli.console import (
    PlainConsole,
    as_unicode,
    note,
    print_json,
    printable,
    progress_line,
    say,
    say_notes,
)
from keepers.cli.options import ReadingOptions, limit_threads
from keepers.cli.prepared import IN_MEMORY, PreparedData
from keepers.exceptions import (
    InactiveRowsWarning,
    NoStructureWarning,
    ParameterError,
    UnitsWarning,
    shorten,
)
from keepers.methods.auto import AutoSelector
from keepers.methods.control import read_control
from keepers.methods.reading_blocks import ScatterSelector
from keepers.prepare.facts import have_gaps
from keepers.prepare.preparer import PreparedBlocks, PreparedColumn, encode_columns
from keepers.proofs.certify import Certificate
from keepers.reports.recipe import Recipe
from keepers.reports.selection import IN_WORDS, Selection, describe_fit, r_text
from keepers.reports.words import put_into_words
from keepers.tables.atomic import whole_file
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table
from keepers.tables.writing import csv_text, write_table

ON_A_TERMINAL = 10
LONGEST_NAME = 48
IN_JSON = (
    *("n_samples", "n_rows_used", "n_features", "method", "scaling", "k", "variance_share"),
    *("seconds", "versions"),
)
HAVE_OPTIONS = ("n_features_to_select", "must_keep", "never_keep", "memory_limit")
NO_SETTINGS = (*HAVE_OPTIONS, "callback", "prepare", "verbose")
PARTS_PER_WORKER = 4


def read_settings(method: str, texts: Sequence[str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE."""
    parameters = inspect.signature(find_method(method).load()).parameters
    known = [name for name in parameters if name not in NO_SETTINGS]
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise ParameterError(
                f"--set takes NAME=VALUE with a setting of {method} "
                f"({', '.join(known) or 'none'}); got {shorten(text)}."
            )
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            settings[name] = value  # a word, as in gamma=scale
    return settings


def make_selector(method: str, k: int | float | None, settings: dict[str, Any], seed: int) -> Any:
    """A selector of that name with these settings, checked before any data are read."""
    found = find_method(method)
    if not found.selects:
        raise ParameterError(
            f"--method {found.name} keeps every feature; it is a baseline of `keepers compare`."
        )
    if k is None and found in METHODS and found.load() is not AutoSelector:
        raise ParameterError(
            f"-k is needed with --method {found.name}: only auto, the default, chooses how many "
            "features to keep. Give their number, such as -k 50."
        )
    selector: Any = found.load()(k, **settings)
    if "random_state" in selector.get_params() and "random_state" not in settings:
        selector.set_params(random_state=seed)
    selector.check_parameters()
    return selector


def keep_and_never(
    selector: Any, names: Iterable[Any], keep: list[str] | None, never: list[str] | None
) -> None:
    """Set the features that the selector keeps always and never, given by name."""
    if not (keep or never):
        return
    if "must_keep" not in selector.get_params():
        able = methods_that(lambda method: "must_keep" in inspect.signature(method).parameters)
        raise ParameterError(
            f"--keep and --never need one of the methods {able}; {type(selector).__name__} takes "
            "neither. Columns can be left out with --drop."
        )
    columns = [str(name) for name in names]
    weights = read_control(len(columns), columns, must_keep=keep, never_keep=never).weights
    selector.set_params(
        must_keep=np.flatnonzero(weights == 0).tolist() or None,
        never_keep=np.flatnonzero(np.isinf(weights)).tolist() or None,
    )


def methods_that(can: Callable[[Any], bool]) -> str:
    """Names of the methods whose class meets a condition."""
    return ", ".join(method.name for method in METHODS if method.selects and can(method.load()))


@dataclass(frozen=True)
class RunSettings:
    """What every computation is given; the last four say how a table in blocks is read."""

    seed: int = 0
    threads: int | None = None
    quiet: bool = False
    memory: str | None = None
    workers: int | None = None
    scheduler: str | None = None
    show_log: bool = False

    @property
    def in_blocks(self) -> bool:
        """Whether an option asks for blocks."""
        return any(each is not None for each in (self.memory, self.workers, self.scheduler))


def refuse_in_blocks(selector: Any, *, certify: bool | None) -> None:
    """Raise for a method, or a certificate, that needs the table in memory."""
    if not hasattr(selector, "fit_blocks"):
        able = methods_that(lambda method: hasattr(method, "fit_blocks"))
        raise ParameterError(
            f"The methods that read a table in blocks are {able}; {type(selector).__name__} "
            f"needs it in memory. {IN_MEMORY}"
        )
    if certify:
        raise ParameterError(
            "--certify needs the table in memory; this one is read in blocks. Write the kept "
            "features (--save recipe.json), then: keepers certify DATA --features recipe.json."
        )


def fit_and_describe(
    selector: Any,
    rows: Table,
    run: RunSettings,
    *,
    scaling: str,
    prepared: PreparedData,
) -> Selection:
    """Fit a selector to scaled rows in memory, or to blocks, and describe what it keeps.

    Where the table is in blocks, ``rows`` are some of them, for the description.
    """
    began, blocks = time.perf_counter(), prepared.blocks
    name = rows.name if blocks is None else blocks.name
    what = f"{type(selector).__name__} on {name}"
    with progress_line(what, quiet=run.quiet) as show, limit_threads(run.threads):
        warnings.simplefilter("ignore", UnitsWarning)  # printed before the fit
        warnings.simplefilter("ignore", InactiveRowsWarning)  # printed after the fit
        if isinstance(selector, AutoSelector):
            warnings.simplefilter("ignore", NoStructureWarning)  # its summary says so
        if blocks is None:
            if isinstance(selector, ScatterSelector):
                selector.keeps_scatter = True
            selector.fit(rows)
        else:
            blocks.watch = lambda n_rows: show(f"{what}: {n_rows:,} rows read")
            _fit_blocks(selector, blocks, run)
    return describe_fit(
        selector,
        rows.values,
        rows.names,
        source=as_unicode(name),
        scaling=scaling,
        n_samples=None if blocks is None else int(selector.n_samples_seen_),
        seconds=time.perf_counter() - began,
        preparer=prepared.preparer,
    )


def _fit_blocks(selector: Any, local: PreparedBlocks, run: RunSettings) -> None:
    """Fit a selector to a table in blocks, read here or by workers."""
    if run.memory is not None and "memory_limit" in selector.get_params():
        selector.set_params(memory_limit=run.memory)
    if run.workers is None and run.scheduler is None:
        selector.fit_blocks(local)
        return
    with dask_client(run.scheduler, run.workers, show_log=run.show_log) as client:
        n_workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        parts = local.parts(PARTS_PER_WORKER * n_workers)
        selector.fit_blocks(DaskBlocks.of_parts(parts, local.name))


def print_selection(
    selection: Selection,
    files: dict[str, Path | None],
    *,
    set_aside: Mapping[str, str],
    json: bool,
    quiet: bool,
    certificate: Certificate | None = None,
) -> None:
    """Print the answer, why, how sure, the kept features, what was not used, and what was written.

    With ``json``, all of it for machines.
    """
    written = {what: str(path) for what, path in files.items() if path is not None}
    if (inactive := selection.inactive) is not None:
        say_notes([f"{inactive} {inactive.way_out('--set gamma=', '-k ')}"], quiet=quiet)
    words = put_into_words(selection, certificate)
    drawn = ""
    if selection.n_rows_used < selection.n_samples:
        drawn = f", {selection.n_rows_used:,} of them drawn at random"
    table = f"{selection.source} ({selection.n_samples:,} samples{drawn})"
    note(f"{words.answer} Found in {selection.seconds:.1f} s from {table}.", quiet=quiet)
    for line in (*words.why, *words.how_sure):
        note(f"  {line}", quiet=quiet)
    say_notes(selection.notes.doubts, quiet=quiet)
    if json:
        print_json(as_json(selection, written, set_aside, certificate))
        return
    _print_kept(selection)
    for line in _not_used(selection, set_aside):
        note(line, quiet=quiet)
    for what, path in written.items():
        note(f"{what}: {path}", quiet=quiet)


def as_json(
    selection: Selection,
    written: dict[str, str],
    set_aside: Mapping[str, str],
    certificate: Certificate | None = None,
) -> dict[str, Any]:
    others = [feature for feature in selection.dropped if feature.reason != "ranked below k"]
    notes = selection.notes
    carries, active = notes.carries_structure, notes.active
    return {
        "data": selection.source,
        "params": selection.settings,
        **{name: getattr(selection, name) for name in IN_JSON},
        "n_carrying_structure": None if carries is None else int(carries.sum()),
        "n_active": None if active is None else int(active.sum()),
        "summary": notes.summary,
        "doubts": notes.doubts,
        "how_sure": notes.how_sure,
        "structure_found": notes.structure_found,
        "certificate": None if certificate is None else certificate.as_dict(),
        "features": [
            {"rank": rank, **vars(feature)} for rank, feature in enumerate(selection.kept, 1)
        ],
        "dropped": selection.count_dropped(),
        "dropped_features": [vars(feature) for feature in others],
        "set_aside": dict(set_aside),
        "written": written,
    }


def _not_used(selection: Selection, set_aside: Mapping[str, str]) -> list[str]:
    """Why features were not kept, and columns not used."""
    lines, dropped = [], selection.count_dropped()
    if dropped:
        reasons = ", ".join(f"{n:,} {IN_WORDS[reason]}" for reason, n in dropped.items())
        lines.append(f"Not kept: {reasons}.")
    if set_aside:
        lines.append(
            f"Not used: {some_of([f'{name!r} ({why})' for name, why in set_aside.items()])}."
        )
    return lines


def _print_kept(selection: Selection) -> None:
    """The best on a terminal, with their reasons; all of them, with tabs, in a pipe."""
    if not sys.stdout.isatty():
        say("rank", "feature", "score", "variance", "neighbour", "correlation")
        for rank, feature in enumerate(selection.kept, 1):
            r = (
                ""
                if math.isnan(feature.correlation)
                else r_text(feature.correlation, feature.signed)
            )
            score, variance = f"{feature.score:.4g}", f"{feature.variance:.4g}"
            say(str(rank), feature.name, score, variance, feature.neighbour or "", r)
        return
    table = Cells("rank", "feature", "score", "why", box=None, pad_edge=False, header_style="bold")
    for rank, feature in enumerate(selection.kept[:ON_A_TERMINAL], 1):
        name, why = printable(feature.name, LONGEST_NAME), printable(feature.why)
        table.add_row(str(rank), name, f"{feature.score:.2f}", why)
    console = PlainConsole()
    console.print(table)
    if selection.k > ON_A_TERMINAL:
        more = f"... and {selection.k - ON_A_TERMINAL:,} more; --scores writes all of them"
        console.print(more, style="dim")


def certificate_of(
    selection: Selection, asked: bool | None, run: RunSettings
) -> Certificate | None:
    """The certificate of a selection if it is asked for, or left open and of use."""
    wanted = selection.selector.seeks_variance if asked is None else asked
    if not wanted:
        return None
    what = f"certifying {selection.k} of {selection.n_features} features"
    with progress_line(what, quiet=run.quiet), limit_threads(run.threads):
        return selection.certificate


@dataclass(frozen=True)
class SelectionFiles:
    """Writes what `keepers select` was asked to write."""

    selection: Selection
    prepared: PreparedData
    reading: ReadingOptions
    notes: Sequence[str]
    """What was found and done before the fit."""
    force: bool

    @property
    def kept_names(self) -> list[str]:
        """The kept features, in the order of the table."""
        names = self.selection.feature_names
        return [str(names[column]) for column in self.selection.columns]

    @property
    def kept_columns(self) -> list[PreparedColumn]:
        """The kept features with how their columns were read."""
        names = set(self.kept_names)
        return [column for column in self.prepared.preparer.columns_ if column.name in names]

    def write_kept(self, out: Path, data: str) -> None:
        """Write the kept columns as they are in the table."""
        source, missing = self.prepared.source, self.prepared.preparer.missing
        names, columns, roles = self.kept_names, self.kept_columns, self.reading.request()
        write_columns(
            *(out, data, source, names, columns, missing, roles, self.reading), force=self.force
        )

    def write_report(self, path: Path, command: str, certificate: Certificate | None) -> None:
        """Write the report; ``command`` repeats the selection."""
        from keepers.reports.html import SelectionReport

        SelectionReport(
            self.selection,
            command=command,
            labels=self.prepared.rows.labels,
            notes=self.notes,
            certificate=certificate,
            table=self.prepared.source,
        ).save(path, force=self.force)

    def write_recipe(self, path: Path) -> None:
        """Write what `keepers apply` needs."""
        request = self.reading.request()
        preparation = {
            "id": request.identifier,
            "labels": request.labels,
            "drop": list(request.drop),
            "transpose": request.transpose,
            "make_unique": request.make_unique,
            "drop_samples": list(self.reading.drop_samples or ()),
            "drop_zero_rows": self.reading.drop_zero_rows,
            "preparer": {
                "missing": self.prepared.preparer.missing,
                "columns": [column.to_dict() for column in self.kept_columns],
            },
        }
        Recipe.of(self.selection, preparation).save(path, force=self.force)

    def write_scores(self, path: Path) -> None:
        """Write every column with its rank, score and the reason why it was kept or not."""
        selection = self.selection
        rows: list[Sequence[str]] = [("feature", "rank", "score", "kept", "reason")]
        for rank, kept in enumerate(selection.kept, 1):
            why = f"kept; {kept.why}" if kept.why else "kept"
            rows.append((kept.name, str(rank), repr(kept.score), "yes", why))
        for rank, other in enumerate(selection.dropped, selection.k + 1):
            rows.append((other.name, str(rank), repr(other.score), "no", other.why))
        for name, why in self.prepared.preparer.set_aside_.items():
            rows.append((name, "", "", "no", f"not used: {why}"))
        with whole_file(path, force=self.force) as temporary:
            temporary.write_text(csv_text(rows), encoding="utf-8", errors="replace")


def write_columns(
    out: Path,
    data: str,
    source: Table | FileScan,
    names: Sequence[str],
    columns: Sequence[PreparedColumn],
    missing: str,
    roles: ReadRequest,
    reading: ReadingOptions,
    *,
    look: Callable[[Table], None] | None = None,
    force: bool,
) -> None:
    """Write features of a table as they are; with missing="drop-rows", rows without gaps in them.

    ``columns`` say how the features were read; ``look`` gets all rows, block by block.
    """
    drops = missing == "drop-rows"

    def change(table: Table) -> Table | None:
        if look is not None:
            look(table)
        if not drops:
            return table
        complete = ~have_gaps(encode_columns(table, columns))
        return table.take(complete) if complete.any() else None

    changes = drops or look is not None
    if changes and not drops and isinstance(source, Table):
        change(source)  # once, here: of an .h5ad that nothing changes all is copied
        changes = False
    other_rows = (reading.sample, reading.drop_samples, reading.drop_zero_rows, roles.transpose)
    with progress_line(f"writing {out}", quiet=reading.quiet):
        write_table(
            out,
            source,
            names,
            identifier_name=roles.identifier or "sample",
            label_name=roles.labels or "label",
            change=change if changes else None,
            source=None if any(other_rows) else data,
            force=force,
        )
