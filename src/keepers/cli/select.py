"""`keepers select`: from a file to the features worth keeping."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keepers.cli.console import errors_in_one_sentence, note, shell_command
from keepers.cli.options import (
    METHOD_NAMES,
    DataArgument,
    DebugOption,
    DropOption,
    ForceOption,
    HeaderOption,
    IdOption,
    LabelsOption,
    MaxSizeOption,
    QuietOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_bytes,
    as_image_shape,
    check_scaling,
    open_data,
    read_roles,
    reads_in_blocks,
    refuse_existing,
)
from keepers.exceptions import ParameterError

if TYPE_CHECKING:
    from keepers.data.table import LabelledTable
    from keepers.selection import Selection


@errors_in_one_sentence
def select(
    data: DataArgument,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", "--features", min=1, help="Number of features to keep; chosen if not given."
        ),
    ] = None,
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
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Read in blocks, using at most SIZE of memory (4G)."),
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
    id: IdOption = None,
    labels: LabelsOption = None,
    drop: DropOption = None,
    header: HeaderOption = None,
    scale: ScaleOption = "raw",
    image: Annotated[
        str | None,
        typer.Option(metavar="HxW", help="Features are pixels: draw the kept ones (32x32)."),
    ] = None,
    image_columns_first: Annotated[
        bool,
        typer.Option("--image-columns-first", help="Pixels run down the columns, as in MATLAB."),
    ] = False,
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
    A folder, a pattern such as 'part-*.parquet' and tables larger than memory are read in blocks.
    Example: keepers select genes.csv --id sample --out kept.csv --report report.html
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.fit import keep_and_never, make_selector, read_settings
    from keepers.cli.output import print_selection
    from keepers.data.table_files import check_writable, write_selected

    refuse_existing([report, save], force)
    refuse_existing([checkpoint], force=True)  # one that exists is resumed
    if out is not None:
        check_writable(out, force=force)
    picture = None if image is None else as_image_shape(image)
    scaling = check_scaling(scale)
    settings = read_settings(method, set_ or [])
    selector = make_selector(method, k, settings, seed)
    limit = as_bytes(max_size)
    roles = read_roles(id, labels, drop, header)

    def decide(names: Sequence[str]) -> None:
        keep_and_never(selector, names, keep or [], never or [])

    shared: dict[str, Any] = {"threads": threads, "quiet": quiet}
    table = None
    if reads_in_blocks(data, (memory, workers, scheduler, checkpoint)):
        from keepers.cli.fit_blocks import BlockRequest, fit_in_blocks, refuse_in_memory

        request = BlockRequest(memory, workers, scheduler, checkpoint)
        files = {"--out": out, "--report": report, "--image": image}
        refuse_in_memory(selector, request, scaling, files)
        selection = fit_in_blocks(data, selector, request, roles, decide, debug=debug, **shared)
    else:
        table = open_data(data, roles, limit, quiet=quiet)
        _check_picture(picture, table.n_features)
        decide(list(table.feature_names))
        selection, options = _fit_table(selector, settings, table, scaling, seed=seed, **shared)
        if out is not None:
            names = {"identifier_name": id or "sample", "label_name": labels or "label"}
            write_selected(out, data, table, selection.columns, force=force, **names)
        if report is not None:
            command = shell_command(["keepers", *sys.argv[1:2], *options, *sys.argv[2:]])
            order: Literal["C", "F"] = "F" if image_columns_first else "C"
            _write_report(selection, table, report, picture, order, command, force)
    if save is not None:
        _save_recipe(selection, table, save, force)
    written = {"out": out, "report": report, "recipe": save}
    print_selection(selection, written, json=json, quiet=quiet)


def _check_picture(picture: tuple[int, int] | None, n_features: int) -> None:
    if picture is not None and picture[0] * picture[1] != n_features:
        raise ParameterError(
            f"--image {picture[0]}x{picture[1]} is {picture[0] * picture[1]} pixels; the table has "
            f"{n_features} features. Give the height and width of the images."
        )


def _fit_table(
    selector: Any,
    settings: dict[str, Any],
    table: "LabelledTable",
    scaling: str,
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> tuple["Selection", tuple[str, ...]]:
    """The selection, and as options what the user left open."""
    from keepers.cli.fit import explain_missing, fit_and_describe, scale_table
    from keepers.selectors import AutoSelector

    options: tuple[str, ...] = ()
    seconds_choosing = 0.0
    scaled = scale_table(table, scaling)
    with explain_missing(table):
        if selector.n_features_to_select is None and not isinstance(selector, AutoSelector):
            from keepers.cli.choose import choose

            choice = choose(selector, settings, scaled, seed=seed, threads=threads, quiet=quiet)
            note(choice.why, quiet=quiet)
            selector.set_params(**choice.params)
            options, seconds_choosing = choice.options, choice.seconds
        selection = fit_and_describe(
            selector,
            scaled,
            scaling=scaling,
            threads=threads,
            quiet=quiet,
            seconds_choosing=seconds_choosing,
        )
    return selection, options


def _write_report(
    selection: "Selection",
    table: "LabelledTable",
    path: Path,
    image_shape: tuple[int, int] | None,
    image_order: Literal["C", "F"],
    command: str,
    force: bool,
) -> None:
    """Write the report on the selection; ``command`` repeats it."""
    from keepers.reporting.selection_report import SelectionReport

    SelectionReport.of(
        selection,
        sample_names=table.sample_names,
        labels=table.labels,
        image_shape=image_shape,
        image_order=image_order,
        command=command,
    ).save(path, force=force)


def _save_recipe(
    selection: "Selection", table: "LabelledTable | None", path: Path, force: bool
) -> None:
    """Save the recipe; ``table`` is None if it was read in blocks."""
    from keepers.recipe import Recipe, checksum, moments_checksum

    of_table = (
        moments_checksum(selection) if table is None else checksum(table.X, table.feature_names)
    )
    Recipe.of(selection, of_table).save(path, force=force)
