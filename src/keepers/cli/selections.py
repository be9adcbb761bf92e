"""`keepers select`, `apply` and `certify`: make a selection, repeat it, prove how good it is."""

import ast
import inspect
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as Cells
from threadpoolctl import threadpool_limits

from keepers._wording import some_of
from keepers.blocks.dask_blocks import DaskBlocks
from keepers.blocks.dask_cluster import dask_client
from keepers.catalogue import METHODS, find_method
from keepers.cli.console import (
    PlainConsole,
    note,
    print_json,
    printable,
    progress_line,
    say,
    say_notes,
    shell_command,
    typed_words,
)
from keepers.cli.options import (
    ApplyOptions,
    CertifyOptions,
    ReadingOptions,
    SelectOptions,
    as_bytes,
    as_number,
    check_outputs,
    one_of,
    read_feature_list,
)
from keepers.cli.prepared import (
    IN_MEMORY,
    PreparedData,
    prepare,
    read_source,
    scale_table,
    wants_blocks,
)
from keepers.exceptions import (
    InactiveRowsWarning,
    NoStructureWarning,
    ParameterError,
    UnitsWarning,
    shorten,
)
from keepers.linalg.scaling import SCALINGS
from keepers.methods.auto import AutoSelector
from keepers.methods.control import read_control
from keepers.methods.reading import fills_gaps
from keepers.methods.reading_blocks import ScatterSelector
from keepers.prepare.check import listed
from keepers.prepare.facts import as_words, have_gaps
from keepers.prepare.preparer import (
    PreparedBlocks,
    PreparedColumn,
    column_of,
    encode_columns,
    is_gap,
)
from keepers.proofs.certify import Certificate
from keepers.proofs.certify import certify as certify_features
from keepers.reports.recipe import Recipe, checksum, moments_checksum
from keepers.reports.selection import IN_WORDS, Selection, describe_fit, r_text
from keepers.reports.words import put_into_words
from keepers.tables.atomic import whole_file
from keepers.tables.scans import FileScan
from keepers.tables.table import ReadRequest, Table
from keepers.tables.writing import check_suffix, csv_text, write_table

ON_A_TERMINAL = 10
LONGEST_NAME = 48
IN_JSON = (
    *("n_samples", "n_rows_used", "n_features", "method", "scaling", "k", "summary", "doubts"),
    *("structure_found", "variance_share", "seconds", "versions"),
)
HAVE_OPTIONS = ("n_features_to_select", "must_keep", "never_keep", "memory_limit")
NO_SETTINGS = (*HAVE_OPTIONS, "callback", "prepare", "verbose")
PARTS_PER_WORKER = 4


def select(data: str, options: SelectOptions) -> None:
    """Select features of a table; write and print what was asked for."""
    outputs = {"--out": options.out, "--report": options.report, "--save": options.save}
    outputs["--scores"] = options.scores
    check_outputs(outputs, [data], force=options.force)
    in_blocks = wants_blocks(data, options)
    if options.out is not None:
        check_suffix(options.out, in_blocks=in_blocks)
    scaling = one_of("--scale", options.scale, SCALINGS)
    as_bytes(options.memory, "--memory")  # raises unless it is a size, for every method
    selector = make_selector(options)
    if in_blocks:
        refuse_in_blocks(selector, certify=options.certify)
    prepared = prepare(data, options, scaling, in_blocks=in_blocks, keep_gaps=fills_gaps(selector))
    notes = prepared.notes(type(selector).__name__, scaling)
    say_notes(notes, quiet=options.quiet)
    keep_and_never(selector, prepared.rows.names, options)
    selection = fit_and_describe(selector, prepared, scaling, options)
    certificate = None if in_blocks else certificate_of(selection, options)
    if options.out is not None:
        names = [str(selection.feature_names[column]) for column in selection.columns]
        request, preparer = options.request(), prepared.preparer
        kept = [column for column in preparer.columns_ if column.name in names]
        source, missing = prepared.source, preparer.missing
        write_columns(options.out, data, source, names, kept, missing, request, options)
    if options.report is not None:
        write_report(options.report, selection, prepared, notes, certificate, options)
    if options.save is not None:
        write_recipe(options.save, selection, prepared, options)
    if options.scores is not None:
        write_scores(options.scores, selection, prepared, options)
    print_selection(
        selection,
        {name.strip("-"): path for name, path in outputs.items()},
        set_aside=prepared.preparer.set_aside_,
        json=options.json,
        quiet=options.quiet,
        certificate=certificate,
    )


def make_selector(options: SelectOptions) -> Any:
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
    k = None if options.k is None else as_number(options.k, "-k")
    if k is None and method in METHODS and method.load() is not AutoSelector:
        raise ParameterError(
            f"-k is needed with --method {method.name}: only auto, the default, chooses how many "
            "features to keep. Give their number, such as -k 50."
        )
    selector: Any = method.load()(k, **settings)
    if "random_state" in selector.get_params() and "random_state" not in settings:
        selector.set_params(random_state=options.seed)
    selector.check_parameters()
    return selector


def keep_and_never(selector: Any, names: Iterable[Any], options: SelectOptions) -> None:
    """Set the features that the selector keeps always and never, given by name."""
    if not (options.keep or options.never):
        return
    if "must_keep" not in selector.get_params():
        able = methods_that(lambda method: "must_keep" in inspect.signature(method).parameters)
        raise ParameterError(
            f"--keep and --never need one of the methods {able}; {type(selector).__name__} takes "
            "neither. Columns can be left out with --drop."
        )
    columns = [str(name) for name in names]
    chosen = {"must_keep": options.keep, "never_keep": options.never}
    weights = read_control(len(columns), columns, **chosen).weights
    selector.set_params(
        must_keep=np.flatnonzero(weights == 0).tolist() or None,
        never_keep=np.flatnonzero(np.isinf(weights)).tolist() or None,
    )


def methods_that(can: Callable[[Any], bool]) -> str:
    """Names of the methods whose class meets a condition."""
    return ", ".join(method.name for method in METHODS if method.selects and can(method.load()))


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
    selector: Any, prepared: PreparedData, scaling: str, options: SelectOptions
) -> Selection:
    """Fit a selector to scaled rows in memory, or to blocks, and describe what it keeps.

    For a table in blocks the description uses the rows drawn from it.
    """
    rows, blocks = scale_table(prepared.rows, scaling), prepared.blocks
    began = time.perf_counter()
    what = f"{type(selector).__name__} on {prepared.source.name}"
    with progress_line(what, quiet=options.quiet) as show, threadpool_limits(options.threads):
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
            _fit_blocks(selector, blocks, options)
    return describe_fit(
        selector,
        rows.values,
        rows.names,
        source=prepared.source.name,
        scaling=scaling,
        n_samples=None if blocks is None else int(selector.n_samples_seen_),
        seconds=time.perf_counter() - began,
        categories=prepared.preparer.categories(),
    )


def _fit_blocks(selector: Any, local: PreparedBlocks, options: SelectOptions) -> None:
    """Fit a selector to a table in blocks, read here or by workers."""
    if options.memory is not None and "memory_limit" in selector.get_params():
        selector.set_params(memory_limit=options.memory)
    if options.workers is None and options.scheduler is None:
        selector.fit_blocks(local)
        return
    with dask_client(options.scheduler, options.workers, show_log=options.debug) as client:
        n_workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        parts = local.parts(PARTS_PER_WORKER * n_workers)
        selector.fit_blocks(DaskBlocks.of_parts(parts, local.name))


def certificate_of(selection: Selection, options: SelectOptions) -> Certificate | None:
    """The certificate of a selection if it is asked for, or of use and not declined."""
    if not (selection.seeks_variance if options.certify is None else options.certify):
        return None
    what = f"certifying {selection.k} of {selection.n_features} features"
    with progress_line(what, quiet=options.quiet), threadpool_limits(options.threads):
        return selection.certificate


def print_selection(
    selection: Selection,
    files: Mapping[str, Path | None],
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
    say_notes(selection.doubts, quiet=quiet)
    if json:
        print_json(as_json(selection, written, set_aside, certificate))
        return
    _print_kept(selection)
    if dropped := selection.count_dropped():
        reasons = ", ".join(f"{n:,} {IN_WORDS[reason]}" for reason, n in dropped.items())
        note(f"Not kept: {reasons}.", quiet=quiet)
    if set_aside:
        note(f"Not used: {listed(set_aside)}.", quiet=quiet)
    for what, path in written.items():
        note(f"{what}: {path}", quiet=quiet)


def as_json(
    selection: Selection,
    written: Mapping[str, str],
    set_aside: Mapping[str, str],
    certificate: Certificate | None = None,
) -> dict[str, Any]:
    """A selection for machines."""
    others = [feature for feature in selection.dropped if feature.reason != "ranked below k"]
    carries, active = selection.notes.carries_structure, selection.notes.active
    return {
        "data": selection.source,
        "params": selection.settings,
        **{name: getattr(selection, name) for name in IN_JSON},
        "n_carrying_structure": None if carries is None else int(carries.sum()),
        "n_active": None if active is None else int(active.sum()),
        "how_sure": selection.notes.how_sure,
        "certificate": None if certificate is None else certificate.as_dict(),
        "features": [
            {"rank": rank, **vars(feature)} for rank, feature in enumerate(selection.kept, 1)
        ],
        "dropped": selection.count_dropped(),
        "dropped_features": [vars(feature) for feature in others],
        "set_aside": dict(set_aside),
        "written": dict(written),
    }


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
    console = PlainConsole()
    console.print(table)
    if selection.k > ON_A_TERMINAL:
        more = f"... and {selection.k - ON_A_TERMINAL:,} more; --scores writes all of them"
        console.print(more, style="dim")


def write_report(
    path: Path,
    selection: Selection,
    prepared: PreparedData,
    notes: Sequence[str],
    certificate: Certificate | None,
    options: SelectOptions,
) -> None:
    """Write the report, with the command that repeats the selection."""
    from keepers.reports.html import SelectionReport
    from keepers.reports.summary import written_values

    rows = prepared.rows
    SelectionReport.of(
        selection,
        sample_names=rows.ids,
        labels=rows.labels,
        command=shell_command(["keepers", *typed_words]),
        notes=notes,
        set_aside=prepared.preparer.set_aside_,
        certificate=certificate,
        written=written_values(prepared.preparer, prepared.source, rows.n_samples),
    ).save(path, force=options.force)


def write_recipe(
    path: Path, selection: Selection, prepared: PreparedData, options: SelectOptions
) -> None:
    """Write what `keepers apply` needs."""
    kept = {feature.name for feature in selection.kept}
    columns = [each.to_dict() for each in prepared.preparer.columns_ if each.name in kept]
    preparation = {
        "id": options.identifier,
        "labels": options.labels,
        "drop": options.drop or [],
        "transpose": options.transpose,
        "make_unique": options.make_unique,
        "drop_samples": options.drop_samples or [],
        "drop_zero_rows": options.drop_zero_rows,
        "preparer": {"missing": prepared.preparer.missing, "columns": columns},
    }
    if prepared.blocks is None:
        digest = checksum(prepared.rows.values, prepared.rows.names)
    else:
        digest = moments_checksum(selection)
    Recipe.of(selection, digest, preparation).save(path, force=options.force)


def write_scores(
    path: Path, selection: Selection, prepared: PreparedData, options: SelectOptions
) -> None:
    """Write every column with its rank, score and the reason why it was kept or not."""
    rows: list[Sequence[str]] = [("feature", "rank", "score", "kept", "reason")]
    for rank, kept in enumerate(selection.kept, 1):
        why = f"kept; {kept.why}" if kept.why else "kept"
        rows.append((kept.name, str(rank), repr(kept.score), "yes", why))
    for rank, other in enumerate(selection.dropped, selection.k + 1):
        rows.append((other.name, str(rank), repr(other.score), "no", other.why))
    for name, why in prepared.preparer.set_aside_.items():
        rows.append((name, "", "", "no", f"not used: {why}"))
    with whole_file(path, force=options.force) as temporary:
        temporary.write_text(csv_text(rows), encoding="utf-8", errors="replace")


def write_columns(
    out: Path,
    data: str,
    source: Table | FileScan,
    names: Sequence[str],
    columns: Sequence[PreparedColumn],
    missing: str,
    request: ReadRequest,
    options: SelectOptions | ApplyOptions,
    look: Callable[[Table], None] | None = None,
) -> None:
    """Write features of a table as they are; with missing="drop-rows", rows without gaps in them.

    ``columns`` describe how the features were read; ``look`` gets all rows, block by block.
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
        change(source)  # once, here: an .h5ad that nothing changes is copied with all it holds
        changes = False
    other_rows = (options.sample, options.drop_samples, options.drop_zero_rows, request.transpose)
    with progress_line(f"writing {out}", quiet=options.quiet):
        write_table(
            out,
            source,
            names,
            identifier_name=request.identifier or "sample",
            label_name=request.labels or "label",
            change=change if changes else None,
            source=None if any(other_rows) else data,
            force=options.force,
        )


def apply(path: Path, data: str, options: ApplyOptions) -> None:
    """Write the kept columns of a recipe from another table, and print what differs there."""
    given = {"--missing": options.missing, "--as": options.kinds, "--log": options.log}
    if named := [option for option, value in given.items() if value]:
        raise ParameterError(
            f"The recipe says how the table is prepared; got {', '.join(named)}. Leave it out, or "
            "make another selection."
        )
    in_blocks = wants_blocks(data, options)
    check_outputs({"--out": options.out}, [data, str(path)], force=options.force)
    check_suffix(options.out, in_blocks=in_blocks)
    recipe = Recipe.load(path)
    stored = recipe.preparation or {}
    source, request = _read_as_before(data, stored, options, in_blocks=in_blocks)
    recipe.refuse_absent(source.columns)
    preparer = stored.get("preparer") or {"missing": "error", "columns": []}
    columns = [PreparedColumn.from_dict(each) for each in preparer["columns"]]
    missing = preparer["missing"]
    found = Differences(columns, missing)
    write_columns(
        *(options.out, data, source, recipe.features, columns, missing, request, options),
        look=found.look,
    )
    notes = found.notes()
    left_out = {"--drop-samples": "drop_samples", "--drop-zero-rows": "drop_zero_rows"}
    for option, name in left_out.items():
        if stored.get(name) and not getattr(options, name):
            notes.append(f"The selection left out rows by {option}; give it again to do so here.")
    say_notes(notes, quiet=options.quiet)
    done = f"Kept {len(recipe.features)} features of {source.name}; wrote {options.out}"
    note(done, quiet=options.quiet)


def _read_as_before(
    data: str, stored: Mapping[str, Any], options: ReadingOptions, *, in_blocks: bool
) -> tuple[Table | FileScan, ReadRequest]:
    """The table with sample names and classes as in the selection, if there; and the request."""
    request = options.request()
    for name in ("transpose", "make_unique"):
        request = replace(request, **{name: getattr(request, name) or stored.get(name, False)})
    # Samples to leave out may have names, which only the roles of the recipe tell.
    all_rows = replace(options, drop_samples=None, drop_zero_rows=False)
    source = read_source(data, all_rows, request, in_blocks=in_blocks)
    roles = request
    ids = source.ids if isinstance(source, Table) else source.identifier
    if ids is None and stored.get("id") in source.columns:
        roles = replace(roles, identifier=stored["id"])
    if source.labels is None and stored.get("labels") in source.columns:
        roles = replace(roles, labels=stored["labels"])
    if roles != request or all_rows != options:
        source = read_source(data, options, roles, in_blocks=in_blocks)
    return source, roles


@dataclass
class Differences:
    """What the selection of a recipe would have read otherwise, counted block by block."""

    columns: Sequence[PreparedColumn]
    missing: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """How often, by what was found and by column."""
    n_rows: int = 0

    def look(self, table: Table) -> None:
        """Count in the rows that follow those before."""
        X = encode_columns(table, self.columns)
        self.n_rows += table.n_samples
        names = [column.name for column in self.columns]
        unread = dict(zip(names, _count(X != X), strict=True))  # only NaN differs from itself
        gaps = dict(unread)
        for name in names:
            gaps[name] = int(is_gap(column_of(table, name)).sum())
            unread[name] -= gaps[name]
        texts = {c.name: c.name in table.others for c in self.columns if c.kind == "number"}
        infinite = dict(zip(names, _count(abs(X) == np.inf), strict=True))
        found = {"gaps": gaps, "unread": unread, "texts": texts, "infinite": infinite}
        for what, counts in found.items():
            some = {name: int(count) for name, count in counts.items() if count}
            self.counts.setdefault(what, Counter()).update(some)

    def notes(self) -> list[str]:
        """What differs from the table of the selection, a sentence each."""
        gaps = self.counts["gaps"]
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
            if found := self.counts[what]:
                notes.append(sentence.format(listed(found)))
        if texts := self.counts["texts"]:
            shown = some_of([repr(name) for name in texts])
            notes.append(f"Columns of numbers that are stored as text in this table: {shown}.")
        return notes


def _count(found: Any) -> list[int]:
    """How often each column of a mask, dense or sparse, is true."""
    return [int(count) for count in np.asarray(found.sum(axis=0)).ravel()]


def certify(data: str, options: CertifyOptions) -> None:
    """Print how close a list of features is to the best of its length."""
    scaling = one_of("--scale", options.scale, SCALINGS)
    word = options.components.strip()
    m = word if word == "auto" else as_number(word, "--components, unless auto,")
    names = read_feature_list(options.features)
    prepared = prepare(data, options, scaling, in_blocks=wants_blocks(data, options))
    say_notes(prepared.notes(), quiet=options.quiet)
    table = prepared.blocks or scale_table(prepared.rows, scaling)
    tight: Any = "auto" if options.tight is None else options.tight
    what = f"certifying {len(names)} of the features of {table.name}"
    with progress_line(what, quiet=options.quiet), threadpool_limits(options.threads):
        certificate = certify_features(table, names, m, tight=tight, random_state=options.seed)
    if options.json:
        print_json({"data": table.name, **certificate.as_dict()})
        return
    say(str(certificate))
    for line in certificate.details():
        note(line, quiet=options.quiet)
