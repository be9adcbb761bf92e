"""`keepers tune`: which method, settings and number of features, from the table alone."""

from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence
from keepers.cli.options import (
    CountOption,
    DataArgument,
    DebugOption,
    MaxSizeOption,
    QuietOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_bytes,
    as_count,
    check_scaling,
)
from keepers.cli.reading import ReadingOptions, takes_reading_options


@errors_in_one_sentence
@takes_reading_options
def tune(
    data: DataArgument,
    reading: ReadingOptions,
    k: CountOption = None,
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

    Prints the recommendation, the features, the evidence, and the command that applies it. Of a
    folder 5,000 rows are used, or as many as --sample says.
    Example: keepers tune genes.csv --id sample --labels type
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.cli.output import print_json
    from keepers.cli.prepared import prepare_data, say_notes
    from keepers.cli.recommend import (
        as_json,
        check_resamples,
        command_for,
        print_recommendation,
        recommend,
    )

    check_resamples(resamples)
    scaling = check_scaling(scale)
    asked = as_count(k)
    prepared = prepare_data(data, reading, as_bytes(max_size), quiet=quiet)
    say_notes(prepared.notes(), quiet=quiet)
    table = prepared.table
    count = max(1, round(asked * table.n_features)) if isinstance(asked, float) else asked
    done = recommend(
        table, scaling, count, n_resamples=resamples, seed=seed, threads=threads, quiet=quiet
    )
    options = {
        "--scale": None if scaling == "raw" else scaling,
        "--seed": seed or None,
        "--threads": threads,
        "--max-size": max_size,
    }
    command = command_for(done, data, options, reading.words())
    if json:
        print_json(as_json(done, command))
    else:
        print_recommendation(done, command)
