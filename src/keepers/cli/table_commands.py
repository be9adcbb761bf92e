"""The commands on a table: check, select, apply, certify.

What needs NumPy or scikit-learn is imported inside the commands, so that help and completion are
quick.
"""

import sys
from pathlib import Path

from keepers.cli import options
from keepers.cli.console import note, print_json, progress_line, say, say_notes, shell_command
from keepers.cli.options import ReadingOptions, limit_threads, on_a_table
from keepers.exceptions import DataError, ParameterError


@on_a_table
def check(
    *, data: options.DataArgument, reading: ReadingOptions, json: options.JsonOption = False
) -> None:
    """Look at a table before a selection: column types, gaps, copies, outliers.

    Every finding comes with the option of `keepers select` that acts on it. The last line is a
    command that runs. It drops no usable row or column. Example: keepers check survey.csv
    """
    from keepers.cli.prepared import look_at, ready_command, wants_blocks

    found = look_at(data, reading, in_blocks=wants_blocks(data, reading)).check
    command = ready_command(found, data, reading)
    if json:
        print_json(
            {
                "data": found.name,
                "n_rows": found.n_rows,
                "n_columns": found.n_columns,
                "kinds": {name: kind.kind for name, kind in found.kinds.items()},
                "findings": [vars(finding) for finding in found.findings],
                "obstacle": found.obstacle or None,
                "command": command or None,
            }
        )
        return
    for line in found.lines():
        say(line)
    if command:
        say(command)


@on_a_table
def select(
    *,
    data: options.DataArgument,
    k: options.CountOption = None,
    method: options.MethodOption = "auto",
    set_: options.SetOption = None,
    keep: options.KeepOption = None,
    never: options.NeverOption = None,
    out: options.OutOption = None,
    report: options.ReportOption = None,
    save: options.SaveOption = None,
    scores: options.ScoresOption = None,
    reading: ReadingOptions,
    scale: options.ScaleOption = "raw",
    memory: options.MemoryOption = None,
    workers: options.WorkersOption = None,
    scheduler: options.SchedulerOption = None,
    certify: options.CertifyOption = None,
    json: options.JsonOption = False,
    force: options.ForceOption = False,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
) -> None:
    """Select the features of a table that are worth keeping; labels are never used.

    IDs, dates and free text are not used. Without structure, all columns are kept. --out changes
    no value: gaps stay gaps.
    Example: keepers select genes.csv --id sample --out kept.csv --report report.html
    """
    from keepers.cli import selecting
    from keepers.cli.prepared import prepare, scale_table, wants_blocks
    from keepers.methods.reading import fills_gaps
    from keepers.tables.writing import check_suffix

    outputs = {"--out": out, "--report": report, "--save": save, "--scores": scores}
    options.check_outputs(outputs, [data], force=force)
    quiet = reading.quiet
    run = selecting.RunSettings(seed, threads, quiet, memory, workers, scheduler, reading.debug)
    in_blocks = wants_blocks(data, reading, asked=run.in_blocks)
    if out is not None:
        check_suffix(out, in_blocks=in_blocks)
    scaling = options.check_scaling(scale)
    options.as_bytes(memory, "--memory")  # raises unless it is a size, for every method
    asked = None if k is None else options.as_number(k, "-k")
    settings = selecting.read_settings(method, set_ or [])
    selector = selecting.make_selector(method, asked, settings, seed)
    if in_blocks:
        selecting.refuse_in_blocks(selector, certify=certify)
    takes_gaps = fills_gaps(selector)
    prepared = prepare(data, reading, scaling, in_blocks=in_blocks, keep_gaps=takes_gaps)
    notes = prepared.notes(type(selector).__name__, scaling)
    say_notes(notes, quiet=quiet)
    selecting.keep_and_never(selector, prepared.rows.names, keep, never)
    rows = scale_table(prepared.rows, scaling)
    selection = selecting.fit_and_describe(selector, rows, run, scaling=scaling, prepared=prepared)
    certificate = None if in_blocks else selecting.certificate_of(selection, certify, run)
    files = selecting.SelectionFiles(selection, prepared, reading, notes, force)
    if out is not None:
        files.write_kept(out, data)
    if report is not None:
        command = shell_command(["keepers", *sys.argv[1:]])
        files.write_report(report, command, certificate)
    if save is not None:
        files.write_recipe(save)
    if scores is not None:
        files.write_scores(scores)
    selecting.print_selection(
        selection,
        {"out": out, "report": report, "recipe": save, "scores": scores},
        set_aside=prepared.preparer.set_aside_,
        json=json,
        quiet=quiet,
        certificate=certificate,
    )


@on_a_table
def apply(
    *,
    recipe: options.RecipeArgument,
    data: options.DataArgument,
    out: options.TargetOption,
    reading: ReadingOptions,
    force: options.ForceOption = False,
) -> None:
    """Keep the features of a recipe in another table with the same column names.

    Values are written as they are, and gaps stay gaps, with the sample names and classes of the
    selection. The table need not have the columns that were dropped. A folder is read in blocks.
    Example: keepers apply recipe.json new-samples.csv --out kept.csv
    """
    from keepers.cli.apply import apply_recipe
    from keepers.cli.prepared import wants_blocks
    from keepers.reports.recipe import Recipe
    from keepers.tables.writing import check_suffix

    given = {"--missing": reading.missing, "--as": reading.kinds, "--log": reading.log}
    named = [option for option, value in given.items() if value]
    if named:
        raise ParameterError(
            f"The recipe says how the table is prepared; got {', '.join(named)}. Leave it out, or "
            "make another selection."
        )
    in_blocks = wants_blocks(data, reading)
    options.check_outputs({"--out": out}, [data, str(recipe)], force=force)
    check_suffix(out, in_blocks=in_blocks)
    kept = Recipe.load(recipe)
    *notes, done = apply_recipe(kept, data, out, reading, in_blocks=in_blocks, force=force)
    say_notes(notes, quiet=reading.quiet)
    note(done, quiet=reading.quiet)


@on_a_table
def certify(
    *,
    data: options.DataArgument,
    features: options.ListOption,
    components: options.ComponentsOption = "auto",
    tight: options.TightOption = None,
    reading: ReadingOptions,
    scale: options.ScaleOption = "raw",
    json: options.JsonOption = False,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
) -> None:
    """Prove how close a list is to the best possible list of the same length.

    The list may come from anywhere: a selection, a colleague, a paper. The answer is a guarantee
    about the variance the list holds, not an estimate. It also shows which features are in every
    best list, and which in none. Example: keepers certify genes.csv --features list.txt
    """
    from keepers.cli.prepared import prepare, scale_table, wants_blocks
    from keepers.proofs.certify import certify as certify_features

    scaling = options.check_scaling(scale)
    word = components.strip()
    n_components = word if word == "auto" else options.as_number(word, "--components, unless auto,")
    names = read_feature_list(features)
    in_blocks = wants_blocks(data, reading)
    prepared = prepare(data, reading, scaling, in_blocks=in_blocks)
    say_notes(prepared.notes(), quiet=reading.quiet)
    table = prepared.blocks or scale_table(prepared.rows, scaling)
    what = f"certifying {len(names)} of the features of {table.name}"
    with progress_line(what, quiet=reading.quiet), limit_threads(threads):
        certificate = certify_features(
            table, names, n_components, tight="auto" if tight is None else tight, random_state=seed
        )
    if json:
        print_json({"data": table.name, **certificate.as_dict()})
        return
    say(str(certificate))
    for line in certificate.details():
        note(line, quiet=reading.quiet)


def read_feature_list(path: str) -> list[str]:
    """The names in a file; "-" is the standard input.

    One name a line; blank lines, and lines that begin with "#", do not count. Of a recipe (.json)
    the kept features.
    """
    if Path(path).suffix.lower() == ".json":
        from keepers.reports.recipe import Recipe

        return list(Recipe.load(Path(path)).features)
    name = "the standard input" if path == "-" else path
    with sys.stdin.buffer if path == "-" else open(path, "rb") as stream:
        raw = stream.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"A list of features is text in UTF-8; {name} is not, at byte {error.start}. Save it "
            "as text with one name a line."
        ) from error
    stripped = (line.strip() for line in text.splitlines())
    features = [line for line in stripped if line and not line.startswith("#")]
    if not features:
        raise DataError(f"A list must name at least one feature; {name} names none.")
    return features
