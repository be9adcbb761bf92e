"""`keepers reproduce`: a written-down study, run or resumed."""

from pathlib import Path
from typing import Annotated

import typer

from keepers.cli.console import errors_in_one_sentence, note
from keepers.cli.options import (
    DebugOption,
    FolderOption,
    QuietOption,
    RetryOption,
    ThreadsOption,
    available_cores,
)
from keepers.exceptions import DataError

__all__ = ["reproduce"]


@errors_in_one_sentence
def reproduce(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="[SPEC]",
            help="A study: paper (the SPCAFS paper, hours), quick (bundled data, minutes), suite "
            "(other data sets), or a TOML file of your own.",
        ),
    ] = "paper",
    out: FolderOption = None,
    threads: ThreadsOption = None,
    skip_absent: Annotated[
        bool, typer.Option("--skip-absent", help="Leave out data sets that are not here.")
    ] = False,
    retry_failed: RetryOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a study, or go on with it, and write its tables, figures and page.

    Stop it at any moment; the same command resumes. Example: keepers reproduce quick
    """
    # Imported here, so that help and completion need not wait for scikit-learn.
    from keepers.studies.bundled_studies import absent_data, find_study, without_data
    from keepers.studies.specification import read_spec
    from keepers.studies.study_command import carry_out

    path = find_study(spec)
    study = read_spec(path)
    missing = absent_data(study)
    if missing and not skip_absent:
        raise DataError(
            f"Not here: {', '.join(missing)}. `keepers datasets` says where they come from; set "
            "KEEPERS_DATA to the folder that holds them, or leave them out with --skip-absent."
        )
    if missing:
        study = without_data(study, missing)
        note(f"Left out, because they are not here: {', '.join(missing)}", quiet=quiet)
    folder = out or Path(f"keepers-{path.stem}")
    n_jobs = threads or available_cores()
    carry_out(study, folder, n_jobs=n_jobs, retry_failed=retry_failed, quiet=quiet)
