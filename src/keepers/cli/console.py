"""How a command prints and ends: results to stdout, everything else to stderr.

Exit codes: 0 success; 1 failure, with one sentence why and the way out; 2 wrong usage; 130
interrupted; 141 the reader of the output has left, as in ``keepers ... | head``. A traceback is
shown only with ``--debug``.

Names of files, columns and cells come from others. Everything that is printed passes through
`printable`, which shows control characters as escapes, and none of it is read as markup.
"""

import json
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from keepers.exceptions import KeepersError, KeepersWarning, ParameterError

FAILURE, MISUSE, INTERRUPTED, READER_LEFT = 1, 2, 130, 141
LONGEST_LINE = 2000
MOST_LINES = 20


class PlainConsole(Console):
    """A console that prints text as it is: no markup, no emoji codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **settings)

    def on_broken_pipe(self) -> None:
        """End the command as any other print would."""
        raise BrokenPipeError


stderr = PlainConsole(stderr=True, soft_wrap=True)
typed_words: list[str] = []
"""The command that is running, as it was typed, without "keepers"."""


class SafeCommands(TyperGroup):
    """Commands whose errors are one sentence and an exit code, and cannot steer the terminal."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **settings: Any) -> Any:
        """Run a command and end the process."""
        typed_words[:] = sys.argv[1:] if args is None else args
        settings["standalone_mode"] = False
        try:
            code = super().main([*typed_words], *more, **settings)
        except typer.Abort:
            code = INTERRUPTED
        except Exception as raised:
            if not hasattr(raised, "format_message"):  # the parser's own errors have it
                end_with(raised)
            problem: Any = raised
            # Line breaks come from the parser, unless an argument has one.
            keep = "" if any("\n" in word for word in typed_words) else "\n"
            problem.message = printable(cut(str(problem.message)), keep=keep)
            problem.show()
            code = problem.exit_code
        sys.exit(code)

    def invoke(self, context: Any) -> None:
        """Run a command; turn its error into a sentence."""
        try:
            super().invoke(context)
            sys.stdout.flush()
        except BaseException as error:  # a panic of polars is not an Exception
            ends = isinstance(error, (SystemExit, typer.Exit, typer.Abort))
            if ends or hasattr(error, "format_message"):
                raise
            if "--debug" in typed_words:
                for line in traceback.format_exc().splitlines():
                    note(line)
            end_with(error)


def end_with(error: BaseException) -> NoReturn:
    """End the process with a sentence about the error, and its exit code."""
    code, lines = FAILURE, [str(error)]
    match error:
        case KeepersError():
            code = MISUSE if isinstance(error, ParameterError) else FAILURE
            lines = [str(line) for line in error.args]
        case KeyboardInterrupt():
            code, lines = INTERRUPTED, [str(error) or "Interrupted."]
        case MemoryError():
            lines = ["Not enough memory for this table."]
        case BrokenPipeError():
            code, lines = READER_LEFT, []
        case OSError():
            lines = [f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")]
        case _:
            lines = [
                f"Unexpected error ({type(error).__name__}: {error}). Run the command again with "
                "--debug and report the traceback."
            ]
    more = [f"... and {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
    with suppress(OSError):  # nobody reads the error stream either
        for at, line in enumerate([*lines[:MOST_LINES], *more]):
            note(line if at else f"keepers: {line}")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the interpreter would try once more, and show a traceback
            with suppress(OSError, ValueError):  # ValueError: a stream without a file, as in tests
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(code) from None


def make_streams_safe() -> None:
    """Make printing safe from a missing stream and from characters outside of its encoding.

    A stream that the shell closed (``>&-``) becomes the null device. Otherwise a file that is
    opened later would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def printable(text: str, width: int | None = None, keep: str = "\u00a0") -> str:
    """Text that cannot steer a terminal or break a line; shortened to ``width``.

    Characters in ``keep`` stay as they are, by default spaces that do not break.
    """
    safe = text
    if not text.isprintable():
        shown = (c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)
        safe = "".join(shown)
    return safe if width is None or len(safe) <= width else safe[: width - 1] + "…"


def shell_command(words: Iterable[str]) -> str:
    """Words as a line for the shell, safe to print: control characters are shown as escapes."""
    return printable(shlex.join(words))


def cut(text: str) -> str:
    """A line of a message, shortened if it is too long to read."""
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]}... ({len(text)} characters)"


def say(*cells: str) -> None:
    """Print a line of the result: its cells, separated by tabs."""
    print(*map(printable, cells), sep="\t")


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line to the error stream."""
    if not quiet:
        stderr.print(printable(cut(text)))


def say_notes(notes: Iterable[str], *, quiet: bool) -> None:
    """Print notes to the error stream, a line each."""
    for each in notes:
        note(f"keepers: note: {each}", quiet=quiet)


def print_json(content: dict[str, Any]) -> None:
    """Print ASCII JSON; NaN and infinity become null, and objects the name of their type."""
    text = json.dumps(content, default=lambda value: repr(type(value)))
    plain = json.loads(text, parse_constant=lambda _: None)
    print(json.dumps(plain, indent=1))


@contextmanager
def progress_line(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a line with the time it takes inside the block, and afterwards its warnings.

    Yields a function that shows another text. Without a terminal only the warnings are shown.
    """
    columns = (
        SpinnerColumn("dots" if stderr.encoding.startswith("utf") else "line"),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    silent = quiet or not stderr.is_terminal
    bar = Progress(*columns, console=stderr, disable=silent, transient=True)
    with (
        warnings.catch_warnings(record=True) as caught,
        nullcontext() if silent else bar,  # before rich 14.3 a disabled one ended with a newline
    ):
        warnings.simplefilter("always", KeepersWarning)
        task = bar.add_task(printable(text), total=None)
        yield lambda text: bar.update(task, description=printable(text))
    messages = [str(w.message) for w in caught if issubclass(w.category, KeepersWarning)]
    say_notes(dict.fromkeys(messages), quiet=quiet)
