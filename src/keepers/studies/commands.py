"""`keepers compare`: the paper's protocol on one's own labelled table."""

from pathlib import Path
from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence
from keepers.cli.options import (
    METHOD_NAMES,
    DataArgument,
    DebugOption,
    DropOption,
    FolderOption,
    IdOption,
    LabelsOption,
    QuietOption,
    RetryOption,
    ScaleOption,
    SeedOption,
    ThreadsOption,
    as_numbers,
    available_cores,
    check_scaling,
)

__all__ = ["compare"]


@errors_in_one_sentence
def compare(
    data: DataArgument,
    labels: LabelsOption = None,
    id: IdOption = None,
    drop: DropOption = None,
    scale: ScaleOption = "raw",
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help=f"Comma-separated, from: {', '.join(METHOD_NAMES)}, all, and MODULE:CLASS for "
            "methods of your own. The baselines are always added.",
        ),
    ] = "all",
    ks: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Numbers of features.")
    ] = "10,20,50,100",
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of k-means.")] = 20,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune", help="Also search the paper's grid, with the labels, as the paper does."
        ),
    ] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.01, help="Limit for one fit.")
    ] = 600.0,
    out: FolderOption = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    retry_failed: RetryOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare the methods on a table whose classes are known.

    Every method selects without the classes; k-means on what it kept is then held against them.
    Stop it at any moment; the same command resumes. Example:
    keepers compare cells.csv --labels type --id cell --ks 50,100
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.studies.comparison import comparison_spec
    from keepers.studies.study_command import carry_out

    spec = comparison_spec(
        data,
        labels=labels,
        identifier=id,
        drop=drop or [],
        scaling=check_scaling(scale),
        methods=methods,
        ks=as_numbers(ks, "--ks"),
        repeats=repeats,
        seed=seed,
        time_limit=time_limit,
        tune=tune,
    )
    folder = out or Path(f"keepers-compare-{spec.data[0].title}")
    n_jobs = threads or available_cores()
    carry_out(spec, folder, n_jobs=n_jobs, retry_failed=retry_failed, quiet=quiet)
