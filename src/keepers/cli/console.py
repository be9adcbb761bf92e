"""How the command speaks: results to stdout, everything else to stderr, and four exit codes.

0: done. 1: could not, with one sentence why and the way out. 2: misuse. 130: interrupted. 141: the
reader of the output has left, as in ``keepers ... | head``. A traceback is shown only with
``--debug``.

Names of files, columns and cells come from others. All that is printed therefore passes through
`printable`, which shows control characters as escapes, and none of it is read as markup.
"""

import functools
import os
import shlex
import sys
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NoReturn, Protocol, TypeVar

from rich.console import Console
from rich.progress import (
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from keepers.exceptions import KeepersError, KeepersWarning, ParameterError

COULD_NOT, MISUSE, INTERRUPTED, READER_LEFT = 1, 2, 130, 141
LONGEST_LINE = 2000
MOST_LINES = 20

Command = TypeVar("Command", bound=Callable[..., None])


class PlainConsole(Console):
    """A console that prints text as it is: no markup, no emoji codes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **settings)

    def on_broken_pipe(self) -> None:
        """End as everything else does that is printed."""
        _end_without_reader()


stderr = PlainConsole(stderr=True, soft_wrap=True)


def make_streams_safe() -> None:
    """Make printing safe from a missing stream and from characters outside of its encoding.

    A stream that the shell closed (``>&-``) becomes the null device, which also keeps its number
    from being given to a file that is opened later.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def printable(text: str, width: int | None = None, keep: str = "") -> str:
    """Text that cannot steer a terminal or break a line; shortened to ``width``.

    Characters in ``keep`` stay as they are.
    """
    safe = text
    if not (text.isascii() and text.isprintable()):
        safe = "".join(c if c in keep else _visible(c) for c in text)
    return safe if width is None or len(safe) <= width else safe[: width - 1] + "…"


def _visible(character: str) -> str:
    # Cc: control, Cf: format (such as right-to-left marks), Cs: lone surrogates, Zl/Zp: new lines.
    kind = unicodedata.category(character)
    if kind == "Cs":
        return as_unicode(character)
    if kind in ("Cc", "Cf", "Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def as_unicode(text: str) -> str:
    """The same text, where every byte of a file name that is no UTF-8 is shown as an escape."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character that never was a byte
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shell_command(words: Iterable[str]) -> str:
    """Words as a line for the shell, in printable characters only."""
    return " ".join(map(_quote, words))


def _quote(word: str) -> str:
    if printable(word) == word:
        return shlex.quote(word)
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if chr(byte) not in "\\'"}
    escaped = (plain.get(byte, f"\\x{byte:02x}") for byte in os.fsencode(word))
    return f"$'{''.join(escaped)}'"


def say(*cells: str) -> None:
    """Print a line of the result: its cells, separated by tabs."""
    print(*map(printable, cells), sep="\t")


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line to the error stream."""
    if not quiet:
        stderr.print(printable(cut(text)))


def cut(text: str) -> str:
    """A line of a message, shortened if it is too long to read."""
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]}... ({len(text)} characters)"


class TimeLeft(ProgressColumn):
    """Rich's estimate of the time left, in words."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Empty while it is unknown."""
        return Text(in_words(task.time_remaining) if task.time_remaining else "")


class ShowProgress(Protocol):
    """What `progress_line` yields."""

    def __call__(
        self, text: str | None = None, done: int | None = None, total: int | None = None
    ) -> None:
        """Show another text, or how many of all are done."""


@contextmanager
def progress_line(text: str, *, quiet: bool = False) -> Iterator[ShowProgress]:
    """Show that work is under way, how far it is and the time left; then its warnings.

    Without a terminal nothing but the warnings is shown.
    """
    columns = (
        SpinnerColumn("dots" if stderr.encoding.startswith("utf") else "line"),
        TextColumn("{task.description}{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        TimeLeft(),
    )
    silent = quiet or not stderr.is_terminal
    bar = Progress(*columns, console=stderr, disable=silent, transient=True)
    with (
        warnings.catch_warnings(record=True) as caught,
        nullcontext() if silent else bar,  # before rich 14.3 a disabled one ended with a newline
    ):
        warnings.simplefilter("always", KeepersWarning)
        task = bar.add_task(printable(text), total=None, count="")

        def show(
            text: str | None = None, done: int | None = None, total: int | None = None
        ) -> None:
            if text is not None:
                bar.update(task, description=printable(text))
            if done is not None:
                bar.update(task, completed=done, total=total, count=f": {done} of {total}")

        yield show
    messages = [str(w.message) for w in caught if issubclass(w.category, KeepersWarning)]
    for message in dict.fromkeys(messages):
        note(f"keepers: note: {message}", quiet=quiet)


def in_words(seconds: float) -> str:
    """Time left, in words, rounded."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def errors_in_one_sentence(command: Command) -> Command:
    """Turn what goes wrong inside a command into a sentence and an exit code."""

    @functools.wraps(command)
    def run_command(*args: Any, **settings: Any) -> None:
        try:
            command(*args, **settings)
            flush_results()
        except BrokenPipeError:
            _end_without_reader()
        except (Exception, KeyboardInterrupt) as error:
            if settings.get("debug"):
                for line in traceback.format_exc().splitlines():
                    note(line)
            end_with(error)

    return run_command  # type: ignore[return-value]


def end_with(error: BaseException) -> NoReturn:
    """End the process with what went wrong in a sentence, and its exit code."""
    _end(*_explain(error))


def _explain(error: BaseException) -> tuple[list[str], int]:
    """The lines that say what went wrong, and the exit code."""
    match error:
        case KeepersError():
            several = len(error.args) > 1 and all(isinstance(line, str) for line in error.args)
            lines = list(error.args) if several else [str(error)]
            return lines, MISUSE if isinstance(error, ParameterError) else COULD_NOT
        case KeyboardInterrupt():
            return [str(error) or "Interrupted."], INTERRUPTED
        case MemoryError():
            return ["Not enough memory for this table."], COULD_NOT
        case OSError():
            reason = f"{error.strerror or error}: {error.filename or ''}"
            return [reason.rstrip(": ")], COULD_NOT
    return [
        f"Unexpected error ({type(error).__name__}: {error}). Run the command again with --debug "
        "and report the traceback."
    ], COULD_NOT


def flush_results() -> None:
    """Write out what was printed so far, while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _end_without_reader()
    except OSError as error:
        _discard(sys.stdout)
        end_with(error)


def _end_without_reader() -> NoReturn:
    """End as a tool that the signal SIGPIPE ends: nobody is left to tell."""
    for stream in (sys.stdout, sys.stderr):
        _discard(stream)
    raise SystemExit(READER_LEFT) from None


def _discard(stream: Any) -> None:
    """Discard what is still to be written: the interpreter would try it once more."""
    with suppress(OSError, ValueError):  # ValueError: a stream without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _end(lines: list[str], code: int) -> NoReturn:
    shown = [f"keepers: {lines[0]}", *lines[1:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} more lines")
    try:
        for line in shown:
            note(line)
    except OSError:  # nobody reads the error stream either
        _discard(sys.stderr)
    raise SystemExit(code) from None
