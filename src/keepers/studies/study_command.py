"""A study run from the command line: its progress, its report, its main table."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from keepers.cli.console import PlainConsole, note, printable, say, stderr
from keepers.studies.formatting import points
from keepers.studies.leaderboard import BoardRow, Leaderboard, leaderboards
from keepers.studies.results import StudyResults
from keepers.studies.runner import ReportProgress
from keepers.studies.scores import Comparison, failures
from keepers.studies.specification import StudySpec
from keepers.studies.study_run import run_with_readings, write_report


def run_and_report(
    spec: StudySpec,
    folder: Path,
    *,
    n_jobs: int,
    retry_failed: bool,
    quiet: bool,
    earlier: Path | None = None,
    run_missing: bool = True,
) -> None:
    """Run what is missing, write tables, figures and report, and print the main table."""
    try:
        with _progress(quiet) as show:
            study = run_with_readings(
                spec,
                folder,
                n_jobs=n_jobs,
                on_progress=show,
                retry_unsuccessful=retry_failed,
                earlier=earlier,
                run_missing=run_missing,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted. Finished results are in {folder}; the same command resumes."
        ) from None
    report = write_report(study, folder)
    if spec.page == "leaderboard":
        _print_boards(study)
    else:
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


@contextmanager
def _progress(quiet: bool) -> Iterator[ReportProgress]:
    """A bar with the time left, on terminals."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    silent = quiet or not stderr.is_terminal
    # Fits differ widely, so the speed is averaged over an hour.
    bar = Progress(
        *columns, console=stderr, disable=silent, transient=True, speed_estimate_period=3600
    )
    with nullcontext() if silent else bar:  # before rich 14.3 a disabled one ended with a newline
        shown = bar.add_task("reading data", total=None)

        def show(done: int, total: int, last: str) -> None:
            text = printable(last, width=44) or "working"
            bar.update(shown, completed=done, total=total, description=text)

        yield show


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
        if cells:  # a study may be of grids alone, or of defaults
            _print_table(f"ACC, {title}, {settings}", cells)


def _print_boards(study: StudyResults) -> None:
    """Every method over all data sets: scaled score, sets above random, worst set."""
    for board in leaderboards(study):
        settings = "default settings" if board.tuning == "default" else "tuned with the labels"
        cells = {row.method: _board_cells(board, row) for row in board.rows()}
        if cells:
            _print_table(f"Leaderboard, {settings}", cells)


def _board_cells(board: Leaderboard, row: BoardRow) -> dict[str, str]:
    is_random = row.method == board.random
    worst = "" if row.worst is None or is_random else f"{row.worst[0]} {points(row.worst[1])}"
    above = "" if is_random else f"{row.above_random['acc']} of {len(board.judged())}"
    scaled = "" if row.scaled is None else f"{row.scaled:.2f}"
    return {"scaled": scaled, "above random": above, "worst, points": worst}


def _acc_by_k(comparison: Comparison) -> dict[str, dict[str, float | None]]:
    (data,) = comparison.data
    ks = comparison.ks[data]
    return {
        method: {f"k = {k}": comparison.at(data, method, k, "acc") for k in ks}
        for method in comparison.methods
    }


def _print_table(title: str, cells: Mapping[str, Mapping[str, float | str | None]]) -> None:
    columns = list(next(iter(cells.values())))
    if not sys.stdout.isatty():
        say(f"# {title}")
        say("method", *columns)
        for method, values in cells.items():
            say(method, *map(_as_text, values.values()))
        return
    table = Table(title=Text(printable(title)), title_justify="left", box=None, header_style="bold")
    table.add_column("method")
    for name in columns:
        table.add_column(Text(printable(name, width=16)), justify="right")
    for method, values in cells.items():
        shown = [Text(printable(_as_text(value))) for value in values.values()]
        table.add_row(Text(printable(method)), *shown)
    PlainConsole().print(table)


def _as_text(value: float | str | None) -> str:
    """Numbers with three decimals; nothing for None."""
    if isinstance(value, str):
        return value
    return "" if value is None else f"{value:.3f}"
