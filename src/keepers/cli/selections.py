"""`keepers select`, `apply` and `certify`: make a selection, repeat it, prove how good it is."""

import ast
import inspect
import math
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.table import Table as Cells
from threadpoolctl import threadpool_limits

from keepers.blocks.dask import DaskBlocks, dask_client
from keepers.catalogue import METHODS, find_method
from keepers.cli import console, prepared
from keepers.cli.console import note, printable, progress_line, say, say_notes
from keepers.cli.prepared import IN_MEMORY, PreparedData
from keepers.exceptions import (
    DataError,
    InactiveRowsWarning,
    NoStructureWarning,
    ParameterError,
    UnitsWarning,
    shorten,
)
from keepers.methods.auto import AutoSelector
from keepers.methods.base import ScatterSelector
from keepers.methods.reading import fills_gaps
from keepers.prepare.check import check_facts, listed
from keepers.prepare.kinds import TableFacts, count_gaps
from keepers.prepare.preparer import PreparedBlocks
from keepers.prepare.scaling import SCALINGS
from keepers.proofs.certify import Certificate
from keepers.proofs.certify import certify as certify_features
from keepers.reports.html import SelectionReport
from keepers.reports.recipe import Recipe
from keepers.reports.selection import (
    IN_WORDS,
    Selection,
    describe_fit,
    put_into_words,
    r_text,
)
from keepers.tables.atomic import whole_file
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table, as_n_bytes
from keepers.tables.writing import check_suffix, csv_text, write_table

ON_A_TERMINAL = 10
LONGEST_NAME = 48
IN_JSON = (
    *("n_samples", "n_rows_used", "n_features", "method", "scaling", "k", "variance_share"),
    *("seconds", "versions"),
)
NOTES_IN_JSON = ("summary", "doubts", "how_sure", "structure_found")
IN_RECIPES = ("labels", "drop", "transpose", "make_unique", "drop_samples")
IN_NOTES = ("empty columns", "infinite values")
NO_SETTINGS = (
    *("n_features_to_select", "must_keep", "never_keep", "memory_limit"),
    *("callback", "prepare"),
)
"""Parameters that --set does not take: options set them, or they need Python."""


def select(data: str, options: console.SelectOptions) -> None:
    """Select features of a table; write the files that options name, and print the result."""
    files = {f"--{name}": getattr(options, name) for name in ("out", "report", "save", "scores")}
    console.check_outputs(files, [data], force=options.force)
    in_blocks = prepared.wants_blocks(data, options)
    if options.out is not None:
        check_suffix(options.out, in_blocks=in_blocks)
    console.one_of("--scale", options.scale, SCALINGS)
    if options.memory is not None:
        as_n_bytes(options.memory, "--memory")  # raises unless it is a size, for every method
    selector = make_selector(options, in_blocks=in_blocks)
    keep = fills_gaps(selector)
    made = prepared.prepare(data, options, options.scale, in_blocks=in_blocks, keep=keep)
    notes = made.notes(type(selector).__name__, options.scale)
    say_notes(notes)
    rows, began = prepared.scale_table(made.rows, options.scale), time.perf_counter()
    with _fitting(selector, made, options):
        if made.blocks is None:
            selector.fit(rows)
        else:
            _fit_blocks(selector, made.blocks, options)
    selection = describe_fit(
        selector,
        rows.values,  # of a table in blocks the rows drawn from it
        rows.names,
        source=made.source.name,
        scaling=options.scale,
        n_samples=int(selector.n_samples_seen_) if in_blocks else None,
        seconds=time.perf_counter() - began,
        preparer=made.preparer,
    )
    certificate = None
    if selection.selector.seeks_variance and not in_blocks:
        what = f"certifying {selection.k} of {selection.n_features} features"
        with progress_line(what), threadpool_limits(options.threads):
            certificate = selection.certificate
    if options.out is not None:
        names = [str(selection.feature_names[column]) for column in selection.columns]
        write_columns(data, made.source, names, options.request(), options)
    aside = made.preparer.set_aside_
    if options.report is not None:
        SelectionReport(
            selection,
            command=console.shell_command(["keepers", *console.typed_words]),
            labels=made.rows.labels,
            notes=notes,
            certificate=certificate,
            table=made.source,
        ).save(options.report, force=options.force)
    if options.save is not None:
        read_as: dict[str, Any] = {name: getattr(options, name) for name in IN_RECIPES}
        read_as["id"], kinds = options.identifier, made.preparer.kinds_
        read_as["numbers"] = [
            each.name for each in selection.kept if kinds[each.name].kind == "number"
        ]
        Recipe.of(selection, read_as).save(options.save, force=options.force)
    if options.scores is not None:
        write_scores(options.scores, selection, aside, force=options.force)
    files["recipe"] = files.pop("--save")
    written = {name.strip("-"): str(path) for name, path in files.items() if path is not None}
    print_selection(selection, written, aside, certificate, json=options.json)


def make_selector(options: console.SelectOptions, *, in_blocks: bool) -> Any:
    """The selector with its settings, checked before any data are read."""
    method = find_method(options.method)
    if not method.selects:
        raise ParameterError(
            f"--method {method.name} keeps every feature; it is a baseline of `keepers compare`."
        )
    parameters = inspect.signature(method.load()).parameters
    known = [name for name in parameters if name not in NO_SETTINGS]
    settings: dict[str, Any] = {}
    for text in options.settings or []:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise ParameterError(
                f"--set takes NAME=VALUE with a setting of {options.method} "
                f"({', '.join(known) or 'none'}); got {shorten(text)}."
            )
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            settings[name] = value  # a word, as in gamma=scale
    k = None if options.k is None else console.as_number(options.k, "-k")
    if k is None and method in METHODS and method.load() is not AutoSelector:
        raise ParameterError(
            f"-k is needed with --method {method.name}: only auto, the default, chooses how many "
            "features to keep. Give their number, such as -k 50."
        )
    selector: Any = method.load()(k, **settings)
    if "random_state" in parameters and "random_state" not in settings:
        selector.set_params(random_state=options.seed)
    if options.keep or options.never:
        if "must_keep" not in parameters:
            raise ParameterError(
                f"--keep and --never need a method such as auto, spcafs or fspca; "
                f"{type(selector).__name__} takes neither. Columns can be left out with --drop."
            )
        selector.set_params(must_keep=options.keep, never_keep=options.never)
    if in_blocks and not hasattr(selector, "fit_blocks"):
        raise ParameterError(
            f"The methods that read a table in blocks are auto, spcafs, fspca; "
            f"{type(selector).__name__} needs it in memory. {IN_MEMORY}"
        )
    selector.check_parameters()
    return selector


@contextmanager
def _fitting(selector: Any, made: PreparedData, options: console.SelectOptions) -> Iterator[None]:
    """Show the progress of a fit, without warnings that are printed before or after it."""
    what = f"{type(selector).__name__} on {made.source.name}"
    with progress_line(what), threadpool_limits(options.threads):
        warnings.simplefilter("ignore", UnitsWarning)
        warnings.simplefilter("ignore", InactiveRowsWarning)
        if isinstance(selector, AutoSelector):
            warnings.simplefilter("ignore", NoStructureWarning)  # part of its summary
        if made.blocks is None and isinstance(selector, ScatterSelector):
            selector.keeps_scatter = True
        yield


def _fit_blocks(selector: Any, local: PreparedBlocks, options: console.SelectOptions) -> None:
    """Fit a selector to a table in blocks, read here or by workers."""
    if options.memory is not None and "memory_limit" in selector.get_params():
        selector.set_params(memory_limit=options.memory)
    if options.scheduler is None:
        selector.fit_blocks(local)
        return
    with dask_client(options.scheduler) as client:
        n_workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        parts = local.parts(4 * n_workers)
        selector.fit_blocks(DaskBlocks.of_parts(parts, local.name))


def print_selection(
    selection: Selection,
    written: Mapping[str, str],
    set_aside: Mapping[str, str],
    certificate: Certificate | None = None,
    *,
    json: bool = False,
) -> None:
    """Print the answer, why, how sure, the kept features, what was not used, and what was written.

    With ``json``, all of it for machines.
    """
    if (inactive := selection.inactive) is not None:
        say_notes([f"{inactive} {inactive.way_out('--set gamma=', '-k ')}"])
    words = put_into_words(selection, certificate)
    drawn = ""
    if selection.n_rows_used < selection.n_samples:
        drawn = f", {selection.n_rows_used:,} of them drawn at random"
    table = f"{selection.source} ({selection.n_samples:,} samples{drawn})"
    note(f"{words.answer} Found in {selection.seconds:.1f} s from {table}.")
    for line in (*words.why, *words.how_sure):
        note(f"  {line}")
    say_notes(selection.notes.doubts)
    dropped = selection.count_dropped()
    if json:
        others = [vars(other) for other in selection.dropped if other.reason != "ranked below k"]
        kept = [{"rank": at, **vars(each)} for at, each in enumerate(selection.kept, 1)]
        console.print_json(
            {
                "data": selection.source,
                "params": selection.settings,
                **{name: getattr(selection, name) for name in IN_JSON},
                **{name: getattr(selection.notes, name) for name in NOTES_IN_JSON},
                "certificate": None if certificate is None else certificate.as_dict(),
                "features": kept,
                "dropped": dropped,
                "dropped_features": others,
                "set_aside": set_aside,
                "written": written,
            }
        )
        return
    _print_kept(selection)
    if dropped:
        reasons = ", ".join(f"{n:,} {IN_WORDS[reason]}" for reason, n in dropped.items())
        note(f"Not kept: {reasons}.")
    if set_aside:
        note(f"Not used: {listed(set_aside)}.")
    for what, path in written.items():
        note(f"{what}: {path}")


def _print_kept(selection: Selection) -> None:
    """The best on a terminal, with their reasons; all of them, with tabs, in a pipe."""
    if not sys.stdout.isatty():
        say("rank", "feature", "score", "variance", "neighbour", "correlation")
        for rank, kept in enumerate(selection.kept, 1):
            r = "" if math.isnan(kept.correlation) else r_text(kept.correlation, kept.signed)
            numbers = f"{kept.score:.4g}", f"{kept.variance:.4g}"
            say(str(rank), kept.name, *numbers, kept.neighbour or "", r)
        return
    table = Cells("rank", "feature", "score", "why", box=None, pad_edge=False, header_style="bold")
    for rank, kept in enumerate(selection.kept[:ON_A_TERMINAL], 1):
        name, why = printable(kept.name, LONGEST_NAME), printable(kept.why)
        table.add_row(str(rank), name, f"{kept.score:.2f}", why)
    terminal = console.PlainConsole()
    terminal.print(table)
    if selection.k > ON_A_TERMINAL:
        more = f"... and {selection.k - ON_A_TERMINAL:,} more; --scores writes all of them"
        terminal.print(more, style="dim")


def write_scores(
    path: Path, selection: Selection, set_aside: Mapping[str, str], *, force: bool
) -> None:
    """Write every column with its rank, score and the reason why it was kept or not."""
    rows: list[Sequence[str]] = [("feature", "rank", "score", "kept", "reason")]
    for rank, kept in enumerate(selection.kept, 1):
        why = f"kept; {kept.why}" if kept.why else "kept"
        rows.append((kept.name, str(rank), repr(kept.score), "yes", why))
    for rank, other in enumerate(selection.dropped, selection.k + 1):
        rows.append((other.name, str(rank), repr(other.score), "no", other.why))
    rows += [(name, "", "", "no", f"not used: {why}") for name, why in set_aside.items()]
    with whole_file(path, force=force) as temporary:
        temporary.write_text(csv_text(rows), encoding="utf-8", errors="replace")


def write_columns(
    data: str,
    source: Table | FileScan,
    names: Sequence[str],
    request: ReadRequest,
    options: console.SelectOptions | console.ApplyOptions,
) -> None:
    assert options.out is not None
    other_rows = (options.sample, options.drop_samples, request.transpose)
    with progress_line(f"writing {options.out}"):
        write_table(
            options.out,
            source,
            names,
            identifier_name=request.identifier or "sample",
            label_name=request.labels or "label",
            source=None if any(other_rows) else data,
            force=options.force,
        )


def apply(path: Path, data: str, options: console.ApplyOptions) -> None:
    """Write the kept columns of a recipe from another table, and print what differs there."""
    given = {"--missing": options.missing, "--as": options.kinds, "--log": options.log}
    if named := [option for option, value in given.items() if value]:
        raise ParameterError(
            f"The recipe sets how the table is prepared; got {', '.join(named)}. Leave it out, or "
            "make another selection."
        )
    in_blocks = prepared.wants_blocks(data, options)
    console.check_outputs({"--out": options.out}, [data, str(path)], force=options.force)
    check_suffix(options.out, in_blocks=in_blocks)
    recipe = Recipe.load(path)
    stored = recipe.preparation or {}
    source, request = _read_as_before(data, stored, options, in_blocks=in_blocks)
    recipe.refuse_absent(source.columns)
    notes = notes_on(source, recipe.features, stored.get("numbers", ()))
    write_columns(data, source, recipe.features, request, options)
    if stored.get("drop_samples") and not options.drop_samples:
        notes.append("The selection left out rows by --drop-samples; give it again to do so here.")
    say_notes(notes)
    note(f"Kept {len(recipe.features)} features of {source.name}; wrote {options.out}")


def _read_as_before(
    data: str, stored: Mapping[str, Any], options: console.ApplyOptions, *, in_blocks: bool
) -> tuple[Table | FileScan, ReadRequest]:
    """The table with sample names and classes as in the selection, if there; and the request."""
    request = options.request()
    for name in ("transpose", "make_unique"):
        request = replace(request, **{name: getattr(request, name) or stored.get(name, False)})
    for ids, labels in product((stored.get("id"), None), (stored.get("labels"), None)):
        roles = replace(
            request, identifier=request.identifier or ids, labels=request.labels or labels
        )
        with suppress(DataError):  # the table may lack these columns
            return prepared.read_source(data, options, roles, in_blocks=in_blocks), roles
    return prepared.read_source(data, options, request, in_blocks=in_blocks), request


def notes_on(source: Table | FileScan, names: Sequence[str], numbers: Collection[str]) -> list[str]:
    """What to know about columns that are written as they are; ``numbers`` were numbers before."""
    facts = TableFacts()
    for table in source.tables(names):
        facts.add(table)
    found = check_facts(facts)
    notes = [each.sentence for each in found.findings if each.about in IN_NOTES]
    kinds = {name: kind.kind for name, kind in found.kinds.items() if name in numbers}
    if changed := {name: kind for name, kind in kinds.items() if name in facts.texts}:
        notes.append(f"Columns of numbers that hold text in this table: {listed(changed)}.")
    if gaps := count_gaps(facts, found.kinds):
        notes.append(f"Missing values, written as they are (how many): {listed(gaps)}.")
    return notes


def certify(data: str, options: console.CertifyOptions) -> None:
    """Print how close a list of features is to the best of its length."""
    console.one_of("--scale", options.scale, SCALINGS)
    word = options.components.strip()
    m = word if word == "auto" else console.as_number(word, "--components, unless auto,")
    names = console.read_feature_list(options.features)
    in_blocks = prepared.wants_blocks(data, options)
    made = prepared.prepare(data, options, options.scale, in_blocks=in_blocks)
    say_notes(made.notes())
    table = made.blocks or prepared.scale_table(made.rows, options.scale)
    what = f"certifying {len(names)} of the features of {table.name}"
    with progress_line(what), threadpool_limits(options.threads):
        certificate = certify_features(table, names, m, random_state=options.seed)
    if options.json:
        console.print_json({"data": table.name, **certificate.as_dict()})
        return
    say(str(certificate))
    for line in certificate.details():
        note(line)
