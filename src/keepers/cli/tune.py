"""`keepers tune`: which method, settings and number of features, from the table alone."""

from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence
from keepers.cli.options import (
    DataArgument,
    DebugOption,
    DropOption,
    HeaderOption,
    IdOption,
    LabelsOption,
    MaxSizeOption,
    QuietOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_bytes,
    check_scaling,
    open_data,
    read_roles,
)


@errors_in_one_sentence
def tune(
    data: DataArgument,
    k: Annotated[
        int | None,
        typer.Option("-k", "--features", min=1, help="Number to keep; chosen if not given."),
    ] = None,
    id: IdOption = None,
    labels: LabelsOption = None,
    drop: DropOption = None,
    header: HeaderOption = None,
    scale: ScaleOption = "raw",
    resamples: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of half-samples used to estimate stability (even; 0 disables).",
        ),
    ] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    max_size: MaxSizeOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Recommend a method, its settings and how many features to keep; labels are never used.

    Prints the recommendation, the features, the evidence, and the command that applies it.
    Example: keepers tune genes.csv --id sample --labels type
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.output import print_json
    from keepers.cli.recommend import (
        as_json,
        check_resamples,
        command_for,
        print_recommendation,
        recommend,
    )

    check_resamples(resamples)
    scaling = check_scaling(scale)
    limit = as_bytes(max_size)
    table = open_data(data, read_roles(id, labels, drop, header), limit, quiet=quiet)
    done = recommend(
        table, scaling, k, n_resamples=resamples, seed=seed, threads=threads, quiet=quiet
    )
    options = {
        "--id": id,
        "--labels": labels,
        "--scale": None if scaling == "raw" else scaling,
        "--seed": seed or None,
        "--threads": threads,
        "--max-size": max_size,
    }
    command = command_for(done, data, options, drop or [], header)
    if json:
        print_json(as_json(done, command))
    else:
        print_recommendation(done, command)
