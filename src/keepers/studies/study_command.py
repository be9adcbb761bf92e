"""A study run from the command line: its progress, its report, its main table."""

import sys
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from keepers.cli.console import PlainConsole, note, printable, say, stderr
from keepers.studies.results import StudyResults
from keepers.studies.runner import StudyRun, run_study
from keepers.studies.scores import Comparison, failures
from keepers.studies.specification import StudySpec
from keepers.studies.study_report import write_study


def run_and_report(
    spec: StudySpec, folder: Path, *, n_jobs: int, retry_failed: bool, quiet: bool
) -> None:
    """Run what is missing, write tables, figures and report, and print the main table."""
    try:
        run = _run_with_progress(spec, folder, n_jobs, retry_failed, quiet)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted. Finished results are in {folder}; the same command resumes."
        ) from None
    study = StudyResults(run)
    report = write_study(study, folder)
    _print_tables(study)
    failed = failures(study.rows)
    if failed:
        first = failed[0]
        note(
            f"{sum(group.n_settings for group in failed)} settings have no result; the first: "
            f"{first.method} on {first.data}, {first.reason}. The report lists them.",
            quiet=quiet,
        )
    note(f"Tables, figures and the report are in {folder}; open {report}", quiet=quiet)


def _run_with_progress(
    spec: StudySpec, folder: Path, n_jobs: int, retry_failed: bool, quiet: bool
) -> StudyRun:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    silent = quiet or not stderr.is_terminal
    # Fits differ widely, so the speed is averaged over an hour.
    with Progress(
        *columns, console=stderr, disable=silent, transient=True, speed_estimate_period=3600
    ) as bar:
        shown = bar.add_task("reading data", total=None)

        def show(done: int, total: int, last: str) -> None:
            text = printable(last, width=44) or "working"
            bar.update(shown, completed=done, total=total, description=text)

        return run_study(
            spec, folder, n_jobs=n_jobs, on_progress=show, retry_unsuccessful=retry_failed
        )


def _print_tables(study: StudyResults) -> None:
    """ACC of every method: against k on one data set, averaged over k on several."""
    comparisons = {"default settings": study.default}
    methods = study.run.spec.methods
    if any(len(values) > 1 for method in methods for values in method.grid.values()):
        comparisons["tuned with the labels, as in the paper"] = study.tuned
    for settings, comparison in comparisons.items():
        if len(comparison.data) == 1:
            title, cells = comparison.data[0], _acc_by_k(comparison)
        else:
            title, cells = "mean over k", comparison.table("acc", "mean")
        _print_table(f"ACC, {title}, {settings}", cells)


def _acc_by_k(comparison: Comparison) -> dict[str, dict[str, float | None]]:
    (data,) = comparison.data
    ks = comparison.ks[data]
    return {
        method: {f"k = {k}": comparison.at(data, method, k, "acc") for k in ks}
        for method in comparison.methods
    }


def _print_table(title: str, cells: dict[str, dict[str, float | None]]) -> None:
    columns = list(next(iter(cells.values())))
    if not sys.stdout.isatty():
        say(f"# {title}")
        say("method", *columns)
        for method, values in cells.items():
            say(method, *map(_three_digits, values.values()))
        return
    table = Table(title=Text(printable(title)), title_justify="left", box=None, header_style="bold")
    table.add_column("method")
    for name in columns:
        table.add_column(Text(printable(name, width=16)), justify="right")
    for method, values in cells.items():
        table.add_row(Text(printable(method)), *map(_three_digits, values.values()))
    PlainConsole().print(table)


def _three_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
