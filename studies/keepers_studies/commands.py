"""The command `keepers-studies`: run a study, show its progress, print its main table.

What needs NumPy or scikit-learn is imported inside the commands: help and completion stay quick.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keepers.cli.console import (
    PlainConsole,
    SafeCommands,
    errors_in_words,
    note,
    printable,
    progress_line,
    say,
    stderr,
)
from keepers.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

    from keepers_studies.scores import StudyResults

_SPEC = (
    "A study: paper (the SPCAFS paper, hours), quick (bundled data, minutes), suite (every method "
    "on 46 data sets: the leaderboard, hours), fseval (a check against another benchmark), or a "
    "TOML file of your own."
)
_OUT = "Where results go: a new or empty folder, or one of an earlier run, to resume it."
_EARLIER = (
    "Results of an earlier run, a folder, its results.sqlite or its results.jsonl.xz: what is in "
    "them is not run again."
)
OutOption = Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help=_OUT)]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", metavar="N", help="Cores to use (all).", min=1)
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="Try failed fits again.")]
EarlierOption = Annotated[Path | None, typer.Option("--earlier", metavar="PATH", help=_EARLIER)]

app = typer.Typer(
    name="keepers-studies",
    cls=SafeCommands,
    help="Studies with keepers: the paper's comparison and claims, and the leaderboard.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
@errors_in_words()
def reproduce(
    spec: Annotated[str, typer.Argument(metavar="[SPEC]", help=_SPEC)] = "paper",
    out: OutOption = None,
    threads: ThreadsOption = None,
    skip_absent: Annotated[
        bool, typer.Option("--skip-absent", help="Skip data sets that are not on this machine.")
    ] = False,
    earlier: EarlierOption = None,
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

    An interrupted study resumes with the same command. Example: keepers-studies reproduce quick
    """
    import joblib

    from keepers_studies import run
    from keepers_studies.specification import as_spec, find_study, without_absent_data

    stderr.quiet = quiet
    path = find_study(spec)
    study, missing = without_absent_data(as_spec(path))
    if missing and not (skip_absent and study.data):
        raise DataError(
            f"Missing data sets: {', '.join(missing)}. studies/keepers_studies/catalogue.toml has "
            "their sources; set KEEPERS_DATA to the folder that holds them, or use --skip-absent."
        )
    if missing:
        note(f"Skipped, because they are missing: {', '.join(missing)}")
    folder = out or Path(f"keepers-{path.stem}")
    try:
        with progress_line("reading data") as show:
            results = run(
                study,
                folder,
                n_jobs=threads or joblib.cpu_count(),
                on_progress=lambda done, total, last: show(f"{done} of {total} {last}"),
                earlier=earlier,
                retry_failed=retry_failed,
                run_missing=not report_only,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted. Finished results are in {folder}; the same command resumes."
        ) from None
    _print_results(results)
    if len(results.failures):
        first = results.failures.iloc[0]
        note(
            f"{results.failures.settings.sum()} settings have no result; the first: "
            f"{first.method} on {first.data}, {first.reason}. The report lists them.",
        )
    report = folder / "index.html"
    note(f"Tables, figures and the report are in {folder}; open {report}")


@app.command()
def leaderboard(
    out: OutOption = None,
    threads: ThreadsOption = None,
    earlier: EarlierOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Every method on the 46 data sets of the suite: the same as `reproduce suite --skip-absent`.

    Example: keepers-studies leaderboard --out board
    """
    reproduce("suite", out, threads, skip_absent=True, earlier=earlier, quiet=quiet, debug=debug)


def _print_results(study: "StudyResults") -> None:
    """The leaderboard; or ACC of every method against k, or its mean over k on several sets."""
    if study.spec.page == "leaderboard":
        from keepers_studies.leaderboard import TITLES, leaderboards

        for board in leaderboards(study):
            rows = board.rows().set_index("method")
            columns = ["scaled", "above_random_acc", "sets_of_kind", "worst_set", "worst_gain"]
            _print_table(f"Leaderboard, {TITLES[board.tuning].lower()}", rows[columns])
        return
    titles = {"default": "default settings", "tuned": "tuned with the labels, as in the paper"}
    for tuning, title in titles.items():
        comparison = study.by_tuning[tuning]
        if not comparison.methods:  # a study may be of grids alone, or of defaults
            continue
        frame, what = comparison.means("acc"), "mean over k"
        if len(comparison.data) == 1:
            (what,) = comparison.data
            frame = comparison.curves("acc").loc[what].rename(columns="k = {}".format)
        _print_table(f"ACC, {what}, {title}", frame)


def _print_table(title: str, frame: "pd.DataFrame") -> None:
    if sys.stdout.isatty():
        text = frame.round(3).to_string(na_rep="")
        PlainConsole().print(f"{title}\n" + "\n".join(map(printable, text.splitlines())))
        return
    cells = frame.map(lambda cell: f"{cell:.3f}" if isinstance(cell, float) else str(cell))
    say(f"# {title}")
    say("method", *map(str, cells.columns))
    for method, row in cells.mask(frame.isna(), "").iterrows():
        say(str(method), *row)


main = typer.main.get_command(app)
"""Entry point of the command."""
