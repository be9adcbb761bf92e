"""How the command speaks: results to stdout, everything else to stderr, and four exit codes.

0: done. 1: could not, with one sentence why and the way out. 2: misuse. 130: interrupted. A
traceback is shown only with ``--debug``.
"""

import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from keepers.exceptions import KeepersError, KeepersWarning, ParameterError

__all__ = [
    "COULD_NOT",
    "INTERRUPTED",
    "MISUSE",
    "counting",
    "errors_in_one_sentence",
    "in_words",
    "note",
    "stderr",
    "waiting",
]

COULD_NOT, MISUSE, INTERRUPTED = 1, 2, 130

Command = TypeVar("Command", bound=Callable[..., None])

stderr = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)


def note(text: str, *, quiet: bool = False) -> None:
    """Say something beside the result."""
    if not quiet:
        stderr.print(text)


@contextmanager
def waiting(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show that something goes on, and for how long, then its warnings.

    Without a terminal nothing but the warnings is shown.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    silent = quiet or not stderr.is_terminal
    with (
        warnings.catch_warnings(record=True) as caught,
        Progress(*columns, console=stderr, disable=silent, transient=True) as bar,
    ):
        warnings.simplefilter("always", KeepersWarning)
        bar.add_task(text)
        yield
    for message in {str(w.message) for w in caught if issubclass(w.category, KeepersWarning)}:
        note(f"keepers: note: {message}", quiet=quiet)


@contextmanager
def counting(text: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show how many of all are done, and the time left; hands out what has to be told of it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    silent = quiet or not stderr.is_terminal
    with Progress(*columns, console=stderr, disable=silent, transient=True) as bar:
        shown = bar.add_task(text, total=None, left="")
        began: list[float] = []

        def show(done: int, total: int) -> None:
            # Timed from the first that is done: before it stands what happens only once.
            began.append(time.monotonic())
            left = (began[-1] - began[0]) / max(done - 1, 1) * (total - done)
            bar.update(shown, completed=done, total=total, left=in_words(left) if left else "")

        yield show


def in_words(seconds: float) -> str:
    """Time left, in words that do not pretend to precision."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


def errors_in_one_sentence(command: Command) -> Command:
    """Turn what goes wrong inside a command into a sentence and an exit code."""

    @functools.wraps(command)
    def guarded(*args: Any, **settings: Any) -> None:
        if settings.get("debug"):
            command(*args, **settings)
            return
        try:
            command(*args, **settings)
        except ParameterError as error:
            _end(str(error), MISUSE)
        except KeepersError as error:
            _end(str(error), COULD_NOT)
        except KeyboardInterrupt as error:
            _end(str(error) or "Interrupted.", INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has left, as in `keepers ... | head`; nobody to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(COULD_NOT) from None
        except MemoryError:
            _end("Not enough memory for this table.", COULD_NOT)
        except OSError as error:
            _end(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), COULD_NOT)
        except Exception as error:
            _end(
                f"An error that keepers did not foresee ({type(error).__name__}: {error}). Run it "
                "again with --debug and report what it shows.",
                COULD_NOT,
            )

    return guarded  # type: ignore[return-value]


def _end(sentence: str, code: int) -> None:
    stderr.print(f"keepers: {sentence}")
    raise SystemExit(code) from None
