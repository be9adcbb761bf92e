"""How the command prints: results to stdout, everything else to stderr, and four exit codes.

0: done. 1: could not, with one sentence why and the way out. 2: misuse. 130: interrupted. 141: the
reader of the output has left, as in ``keepers ... | head``. A traceback is shown only with
``--debug``.

Names of files, columns and cells come from others. All that is printed therefore passes through
`printable`, which shows control characters as escapes, and none of it is read as markup.
"""

import functools
import json
import math
import os
import shlex
import sys
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, NoReturn, TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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
    """The same text, with every byte of a file name that is not UTF-8 as an escape."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character that never was a byte
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shell_command(words: Iterable[str]) -> str:
    """Words as a line for the shell, safe to print: control characters are shown as escapes."""
    return printable(shlex.join(words))


def say_notes(notes: Iterable[str], *, quiet: bool) -> None:
    for each in notes:
        note(f"keepers: note: {each}", quiet=quiet)


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


def print_json(content: dict[str, Any]) -> None:
    """Print plain ASCII JSON; NaN and infinity become null, bytes that are not Unicode escapes."""
    print(json.dumps(_as_plain(content), indent=1, allow_nan=False))


def _as_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    return as_unicode(value if isinstance(value, str) else repr(type(value)))


@contextmanager
def progress_line(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a line with the time it takes inside the block; then its warnings.

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


def errors_in_one_sentence(command: Command) -> Command:
    """Turn an error inside a command into a sentence and an exit code."""

    @functools.wraps(command)
    def run_command(*args: Any, **settings: Any) -> None:
        try:
            command(*args, **settings)
            flush_results()
        except BrokenPipeError:
            _end_without_reader()
        except SystemExit:
            raise
        except BaseException as error:  # a panic of polars is not an Exception
            if settings.get("debug"):
                for line in traceback.format_exc().splitlines():
                    note(line)
            end_with(error)

    return run_command  # type: ignore[return-value]


def end_with(error: BaseException) -> NoReturn:
    """End the process with a sentence about the error, and its exit code."""
    code, lines = COULD_NOT, [str(error)]
    match error:
        case KeepersError():
            several = len(error.args) > 1 and all(isinstance(line, str) for line in error.args)
            lines = list(error.args) if several else lines
            code = MISUSE if isinstance(error, ParameterError) else COULD_NOT
        case KeyboardInterrupt():
            code, lines = INTERRUPTED, [str(error) or "Interrupted."]
        case MemoryError():
            lines = ["Not enough memory for this table."]
        case OSError():
            lines = [f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")]
        case _:
            lines = [
                f"Unexpected error ({type(error).__name__}: {error}). Run the command again with "
                "--debug and report the traceback."
            ]
    shown = [f"keepers: {lines[0]}", *lines[1:MOST_LINES]]
    if len(lines) > MOST_LINES:
        shown.append(f"... and {len(lines) - MOST_LINES} more lines")
    try:
        for line in shown:
            note(line)
    except OSError:  # nobody reads the error stream either
        _discard(sys.stderr)
    raise SystemExit(code) from None


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
    """End like a tool that the signal SIGPIPE ends, without a message."""
    for stream in (sys.stdout, sys.stderr):
        _discard(stream)
    raise SystemExit(READER_LEFT) from None


def _discard(stream: Any) -> None:
    """Discard what is still to be written: the interpreter would try it once more."""
    with suppress(OSError, ValueError):  # ValueError: a stream without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
