"""The commands `keepers compare`, `keepers reproduce` and `keepers datasets`.

What needs NumPy or scikit-learn is imported inside the commands, so that help and completion are
quick.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from keepers.cli.console import PlainConsole, errors_in_one_sentence, note
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
from keepers.exceptions import DataError


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
            "--tune", help="Also search the paper's grid, using the labels, as the paper does."
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

    Every method selects without the classes; k-means clusters on the kept features are then
    compared with them. An interrupted comparison resumes with the same command. Example:
    keepers compare cells.csv --labels type --id cell --ks 50,100
    """
    from keepers.studies.specification import comparison_spec
    from keepers.studies.study_command import run_and_report

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
    run_and_report(spec, folder, n_jobs=n_jobs, retry_failed=retry_failed, quiet=quiet)


@errors_in_one_sentence
def reproduce(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="[SPEC]",
            help="A study: paper (the SPCAFS paper, hours), quick (bundled data, minutes), suite "
            "(every method on 46 data sets: the leaderboard, hours), fseval (a check against "
            "another benchmark), or a TOML file of your own.",
        ),
    ] = "paper",
    out: FolderOption = None,
    threads: ThreadsOption = None,
    skip_absent: Annotated[
        bool, typer.Option("--skip-absent", help="Skip data sets that are not on this machine.")
    ] = False,
    earlier: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Results of an earlier run, a folder, its results.sqlite or its "
            "results.jsonl.xz: what is in them is not run again.",
        ),
    ] = None,
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only", help="Run nothing; write tables and report of what has run so far."
        ),
    ] = False,
    retry_failed: RetryOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Run or resume a study, and write its tables, figures and report.

    An interrupted study resumes with the same command. Example: keepers reproduce quick
    """
    from keepers.studies.specification import absent_data, find_study, read_spec, without_data
    from keepers.studies.study_command import run_and_report

    path = find_study(spec)
    study = read_spec(path)
    missing = absent_data(study)
    if missing and not skip_absent:
        raise DataError(
            f"Missing data sets: {', '.join(missing)}. `keepers datasets` says where they come "
            "from; set KEEPERS_DATA to the folder that holds them, or skip them with "
            "--skip-absent."
        )
    if missing:
        study = without_data(study, missing)
        note(f"Skipped, because they are missing: {', '.join(missing)}", quiet=quiet)
    folder = out or Path(f"keepers-{path.stem}")
    n_jobs = threads or available_cores()
    run_and_report(
        study,
        folder,
        n_jobs=n_jobs,
        retry_failed=retry_failed,
        quiet=quiet,
        earlier=earlier,
        run_missing=not report_only,
    )


@errors_in_one_sentence
def datasets(debug: DebugOption = False) -> None:
    """List the data sets that commands know by name, and which are on this machine.

    Example: KEEPERS_DATA=~/benchmarks keepers datasets
    """
    from keepers.data.catalogue import catalogue, data_folder, load, names, present

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "samples", "features", "classes", "scaling", "here", "source"):
        is_count = heading in ("samples", "features", "classes")
        table.add_column(heading, justify="right" if is_count else "left")
    for name in names():
        X, _, y = load(name)
        shape = (str(X.shape[0]), str(X.shape[1]), str(len(set(y))))
        scaling = "unit-samples" if name == "srbct" else "raw"
        table.add_row(name, *shape, scaling, "bundled", "comes with keepers")
    absent = 0
    for entry in catalogue():
        here = present(entry)
        absent += not here
        shape = (str(entry.n_samples), str(entry.n_features), str(entry.n_classes))
        table.add_row(entry.name, *shape, entry.scaling, "yes" if here else "no", entry.source)
    PlainConsole(soft_wrap=True).print(table)
    if absent:
        note(
            f"{absent} of {len(catalogue())} catalogued sets are not in {data_folder()}. keepers "
            "may not redistribute them: fetch each from its source, store it as NAME.npz with "
            "arrays X and y, and set KEEPERS_DATA to the folder."
        )
