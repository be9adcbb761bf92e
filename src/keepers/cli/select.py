"""`keepers select`: from a file to the features worth keeping."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keepers.cli.console import errors_in_one_sentence, shell_command
from keepers.cli.options import (
    METHOD_NAMES,
    CountOption,
    DataArgument,
    DebugOption,
    ForceOption,
    MaxSizeOption,
    QuietOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_bytes,
    as_count,
    as_image_shape,
    check_scaling,
    reads_in_blocks,
    refuse_existing,
)
from keepers.cli.reading import ReadingOptions, takes_reading_options
from keepers.exceptions import ParameterError

if TYPE_CHECKING:
    from keepers.cli.fitted import FittedData


@errors_in_one_sentence
@takes_reading_options
def select(
    data: DataArgument,
    reading: ReadingOptions,
    k: CountOption = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of: {', '.join(METHOD_NAMES)}; or MODULE:CLASS for one of your own.",
        ),
    ] = "auto",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Setting of the method, as in Python; repeatable."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Feature to keep always; may be repeated."),
    ] = None,
    never: Annotated[
        list[str] | None,
        typer.Option("--never", metavar="COLUMN", help="Feature never to keep; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the kept columns; the suffix sets the format."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report (HTML).")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a recipe (JSON) for `keepers apply`."),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all columns with rank, score and reason (CSV)."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Read in blocks, using at most SIZE of memory (4G)."),
    ] = None,
    route: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Read in blocks, by this route: scatter, memory, stream or auto."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Read in blocks, with N local processes (Dask)."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Read in blocks, on a Dask cluster (tcp://...)."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Save progress to FILE so that an interrupted fit can resume."
        ),
    ] = None,
    scale: ScaleOption = "raw",
    image: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="Features are pixels: draw the kept ones (32x32)."),
    ] = None,
    image_columns_first: Annotated[
        bool,
        typer.Option("--image-columns-first", help="Pixels run down the columns, as in MATLAB."),
    ] = False,
    certify: Annotated[
        bool | None,
        typer.Option(
            "--certify/--no-certify",
            help="Say how near the kept features are to those that hold the most variance, with "
            "proof; by default where the method looks for variance (spcafs, fspca, variance).",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    force: ForceOption = False,
    max_size: MaxSizeOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Select the features of a table that are worth keeping; labels are never used.

    Says whether there is structure, how many features are enough and why; -k keeps another number.
    Identifiers, dates and free text are set aside; `keepers check` shows what is in a table.
    A folder, a pattern such as 'part-*.parquet' and tables larger than memory are read in blocks.
    Example: keepers select genes.csv --id sample --out kept.csv --report report.html
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.fit import keep_and_never, make_selector, read_settings
    from keepers.cli.fitted import certificate_of
    from keepers.cli.output import print_selection
    from keepers.cli.prepared import prepare_data, say_notes
    from keepers.data.table_files import check_writable

    refuse_existing([report, save, scores], force)
    refuse_existing([checkpoint], force=True)  # one that exists is resumed
    blocks = (memory, workers, scheduler, checkpoint, route)
    in_blocks = reading.sample is None and reads_in_blocks(data, blocks)
    if out is not None:
        check_writable(out, force=force, in_blocks=in_blocks)
    picture = None if image is None else as_image_shape(image)
    scaling = check_scaling(scale)
    settings = read_settings(method, set_ or [])
    selector = make_selector(method, as_count(k), settings, seed)
    limit = as_bytes(max_size)

    def decide(names: Sequence[str]) -> None:
        keep_and_never(selector, names, keep or [], never or [])

    shared: dict[str, Any] = {"threads": threads, "quiet": quiet}
    fitted: FittedData
    if in_blocks:
        from keepers.cli.fit_blocks import BlockRequest, fit_in_blocks, refuse_in_memory

        request = BlockRequest(*blocks)
        refuse_in_memory(selector, request, scaling, reading, certify=certify)
        fitted = fit_in_blocks(
            data, selector, settings, request, reading, decide, seed=seed, debug=debug, **shared
        )
    else:
        from keepers.cli.fit import fit_prepared

        prepared = prepare_data(data, reading, limit, quiet=quiet)
        say_notes(prepared.notes(type(selector).__name__, scaling), quiet=quiet)
        decide(list(prepared.table.feature_names))
        fitted = fit_prepared(selector, settings, prepared, scaling, seed=seed, **shared)
    _check_picture(picture, fitted.selection.n_features)
    certificate = None if in_blocks else certificate_of(fitted.selection, certify, **shared)
    if out is not None:
        fitted.write_kept(data, out, reading, force=force)
    if report is not None:
        command = shell_command(["keepers", *sys.argv[1:2], *fitted.options, *sys.argv[2:]])
        order: Literal["C", "F"] = "F" if image_columns_first else "C"
        loading = None if in_blocks else reading.in_python(data, scaling)
        fitted.write_report(report, picture, order, command, loading, certificate, force=force)
    if save is not None:
        fitted.write_recipe(save, reading, force=force)
    if scores is not None:
        fitted.write_scores(scores, force=force)
    written = {"out": out, "report": report, "recipe": save, "scores": scores}
    print_selection(
        fitted.selection,
        written,
        set_aside=fitted.preparer.set_aside_,
        json=json,
        quiet=quiet,
        certificate=certificate,
    )


def _check_picture(picture: tuple[int, int] | None, n_features: int) -> None:
    if picture is not None and picture[0] * picture[1] != n_features:
        raise ParameterError(
            f"--image {picture[0]}x{picture[1]} is {picture[0] * picture[1]} pixels; the table has "
            f"{n_features} features. Give the height and width of the images."
        )
