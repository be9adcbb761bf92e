"""`keepers select`: from a file to the features worth keeping."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keepers.cli.console import errors_in_one_sentence, shell_command, waiting
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
    refuse_existing,
)
from keepers.exceptions import ParameterError

__all__ = ["select"]


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
        str, typer.Option(metavar="NAME", help=f"One of: {', '.join(METHOD_NAMES)}.")
    ] = "spcafs",
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
            metavar="FILE", help="Save progress to FILE; an interrupted fit then resumes."
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

    Without -k, the number of features and the settings are those that `keepers tune` recommends.
    A folder, a pattern such as 'part-*.parquet' and tables larger than memory are read in blocks.
    Example: keepers select genes.csv -k 50 --id sample --out kept.csv --report report.html
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.block_selecting import BlockRequest, select_in_blocks
    from keepers.cli.choosing import settle
    from keepers.cli.keeping import write_columns
    from keepers.cli.selecting import finish, ready_to_select, selected, write_report
    from keepers.cli.settings import keep_and_never, make_selector, read_settings
    from keepers.data import open_table
    from keepers.data.writing import check_writable

    refuse_existing([out, report, save], force)
    refuse_existing([checkpoint], force=True)  # one that exists is resumed
    if out is not None:
        check_writable(out)
    picture = None if image is None else as_image_shape(image)
    scaling = check_scaling(scale)
    settings = read_settings(method, set_ or [])
    selector = make_selector(method, k, settings, seed)
    limit = as_bytes(max_size)
    roles: dict[str, Any] = {
        "labels": labels,
        "identifier": id,
        "drop": drop or (),
        "header": header,
    }
    request = BlockRequest(memory, workers, scheduler, checkpoint)
    if request.concerns(data):
        files = {"--out": out, "--report": report, "--image": image}
        request.refuse(method, k, scaling, files)
        from_blocks = select_in_blocks(
            data,
            selector,
            request,
            roles=roles,
            decide=lambda chosen, names: keep_and_never(chosen, names, keep or [], never or []),
            threads=threads,
            quiet=quiet,
            debug=debug,
        )
        finish(from_blocks, {"recipe": save}, json=json, force=force, quiet=quiet)
        return
    with waiting(f"reading {data}", quiet=quiet):
        table = open_table(data, **roles, max_bytes=limit)
    if picture is not None and picture[0] * picture[1] != table.n_features:
        raise ParameterError(
            f"--image {image} is {picture[0] * picture[1]} pixels; the table has "
            f"{table.n_features} features. Give the height and width of the images."
        )
    keep_and_never(selector, list(table.feature_names), keep or [], never or [])
    X = ready_to_select(table, scaling)
    options = settle(selector, settings, table, X, seed=seed, threads=threads, quiet=quiet)
    selection = selected(table, X, scaling, selector, threads, quiet)
    if out is not None:
        columns = selection.columns
        write_columns(table, columns, out, identifier=id, labels=labels, force=force)
    if report is not None:
        command = shell_command(["keepers", *sys.argv[1:2], *options, *sys.argv[2:]])
        write_report(selection, report, picture, image_columns_first, command, force)
    written = {"out": out, "report": report, "recipe": save}
    finish(selection, written, json=json, force=force, quiet=quiet)
