"""A fit that shows how far it is."""

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.progress import Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from keepers.cli.console import in_words, note, printable, spinner, stderr
from keepers.data.table import LabelledTable
from keepers.exceptions import KeepersWarning

__all__ = ["StepsLeft", "fit_with_progress", "showing_steps"]


def fit_with_progress(
    selector: Any, X: Any, names: Any = None, *, threads: int | None, quiet: bool
) -> None:
    """Fit, with a line on the terminal that shows the progress; silent where there is none.

    Messages of the fit call the columns by these names.
    """
    beginning = f"{type(selector).__name__} on {X.shape[0]} x {X.shape[1]}"
    with showing_steps(selector, beginning, threads=threads, quiet=quiet):
        selector.fit(X if names is None else LabelledTable(X, names))


@contextmanager
def showing_steps(
    selector: Any, beginning: str, *, threads: int | None, quiet: bool
) -> Iterator[Callable[[str], None]]:
    """Show the steps of a fit inside the block, then its warnings; hands out what to show else."""
    limits = nullcontext() if threads is None else threadpool_limits(threads)
    columns = (spinner(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    silent = quiet or not stderr.is_terminal
    with (
        warnings.catch_warnings(record=True) as caught,
        limits,
        Progress(*columns, console=stderr, disable=silent, transient=True) as bar,
    ):
        warnings.simplefilter("always", KeepersWarning)
        shown = bar.add_task(printable(beginning))
        if "callback" in selector.get_params():
            steps = StepsLeft(selector.tol)

            def show(progress: Any) -> None:
                left = steps.after(progress.objective)
                text = f"step {progress.n_iter}, {progress.n_active} active features"
                bar.update(shown, description=text + (f", {in_words(left)}" if left else ""))

            selector.set_params(callback=show)
        try:
            yield lambda text: bar.update(shown, description=printable(text))
        finally:
            if "callback" in selector.get_params():
                selector.set_params(callback=None)
    messages = [str(w.message) for w in caught if issubclass(w.category, KeepersWarning)]
    for message in dict.fromkeys(messages):
        note(f"keepers: note: {message}", quiet=quiet)


ENOUGH_STEPS = 8


class StepsLeft:
    """When an iteration will converge, guessed from how fast its steps shrink."""

    def __init__(self, tol: float) -> None:
        self._goal = math.log(tol) if tol > 0 else None
        self._before: float | None = None
        self._recent: deque[tuple[float, float]] = deque(maxlen=ENOUGH_STEPS)

    def after(self, objective: float) -> float | None:
        """Seconds left after a step that reached ``objective``; None while it cannot be told."""
        change = None if self._before is None else abs(self._before - objective)
        self._before = objective
        if self._goal is None or not change or not objective:
            return None
        self._recent.append((time.monotonic(), math.log(change / abs(objective))))
        (began, first), (now, last) = self._recent[0], self._recent[-1]
        if len(self._recent) < ENOUGH_STEPS or last >= first:
            return None
        return max(0.0, (self._goal - last) / (last - first) * (now - began))
