"""What `compare` and `reproduce` share: a study with progress, its page, its main table."""

import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from keepers.cli.console import in_words, note, printable, say, stderr
from keepers.studies.report_writing import write_study
from keepers.studies.runner import Progress as StudyProgress
from keepers.studies.runner import StudyRun, run_study
from keepers.studies.scores import (
    Comparison,
    best_per_data,
    default,
    failures,
    tidy_rows,
    tuned,
)
from keepers.studies.specification import StudySpec

__all__ = ["carry_out"]


def carry_out(
    spec: StudySpec, folder: Path, *, n_jobs: int, retry_failed: bool, quiet: bool
) -> None:
    """Run what is missing, write tables, figures and page, and print the main table."""
    try:
        run = _run_with_progress(spec, folder, n_jobs, retry_failed, quiet)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted. What is done is in {folder}; the same command goes on from there."
        ) from None
    page = write_study(run, folder)
    _print_tables(run)
    failed = failures(tidy_rows(run))
    if failed:
        first = failed[0]
        note(
            f"{len(failed)} settings have no result; the first: {first['method']} on "
            f"{first['data']}, {first['reason']}. The page lists them.",
            quiet=quiet,
        )
    note(f"Tables, figures and the page are in {folder}; open {page}", quiet=quiet)


def _run_with_progress(
    spec: StudySpec, folder: Path, n_jobs: int, retry_failed: bool, quiet: bool
) -> StudyRun:
    silent = quiet or not stderr.is_terminal
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=stderr, disable=silent, transient=True) as bar:
        shown = bar.add_task("reading data", total=None, left="")

        def show(progress: StudyProgress) -> None:
            left = progress.seconds_left
            bar.update(
                shown,
                completed=progress.done,
                total=progress.total,
                description=printable(progress.last, width=44) or "working",
                left="" if left is None else in_words(left),
            )

        return run_study(
            spec, folder, n_jobs=n_jobs, on_progress=show, retry_unsuccessful=retry_failed
        )


def _print_tables(run: StudyRun) -> None:
    """ACC of every method: against k on one data set, averaged over k on several."""
    by_row = {"default settings": default(run)}
    if any(len(values) > 1 for method in run.spec.methods for values in method.grid.values()):
        by_row["tuned with the labels, as in the paper"] = tuned(run)
    for settings, comparison in by_row.items():
        if len(comparison.data) == 1:
            title, cells = _against_k(comparison)
        else:
            title = "mean over k"
            cells = best_per_data(comparison, "acc", "mean")
        _print_table(f"ACC, {title}, {settings}", cells)


def _against_k(comparison: Comparison) -> tuple[str, dict[str, dict[str, float | None]]]:
    (data,) = comparison.data
    ks = comparison.ks[data]
    cells = {
        method: {f"k = {k}": comparison.at(data, method, k, "acc") for k in ks}
        for method in comparison.methods
    }
    return printable(data), cells


def _print_table(title: str, cells: dict[str, dict[str, float | None]]) -> None:
    columns = list(next(iter(cells.values())))
    if not sys.stdout.isatty():
        say(f"# {title}")
        say("method", *columns)
        for method, values in cells.items():
            say(method, *map(_shown, values.values()))
        return
    table = Table(title=Text(title), title_justify="left", box=None, header_style="bold")
    table.add_column("method")
    for name in columns:
        table.add_column(Text(printable(name, width=16)), justify="right")
    for method, values in cells.items():
        table.add_row(Text(method), *map(_shown, values.values()))
    Console().print(table)


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
