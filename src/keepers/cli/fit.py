"""From the options of `keepers select` to a fitted selection."""

import ast
import inspect
import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from keepers.cli.console import as_unicode, in_words, note, progress_line
from keepers.cli.fitted import FittedData, FittedInMemory
from keepers.cli.options import limit_threads
from keepers.cli.prepared import PreparedData
from keepers.data.scaling import scale_samples
from keepers.data.table import LabelledTable
from keepers.data.wording import closest, some_of
from keepers.exceptions import (
    DataError,
    InactiveRowsWarning,
    NoStructureWarning,
    ParameterError,
    UnitsWarning,
    shorten,
)
from keepers.methods import METHODS, find_method
from keepers.selection import Selection, describe_fit
from keepers.selectors import AutoSelector

if TYPE_CHECKING:
    from keepers.cli.choose import Choice

HAS_AN_OPTION = {
    "n_features_to_select": "-k",
    "must_keep": "--keep",
    "never_keep": "--never",
    "memory_limit": "--memory",
    "route": "--route",
    "checkpoint": "--checkpoint",
}
NOT_FOR_A_COMMAND = ("callback", "verbose")


def read_settings(method: str, texts: Sequence[str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE."""
    parameters = inspect.signature(find_method(method).load()).parameters
    known = [name for name in parameters if name not in (*HAS_AN_OPTION, *NOT_FOR_A_COMMAND)]
    return dict(_read_setting(text, known, method) for text in texts)


def _read_setting(text: str, known: list[str], method: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if name in HAS_AN_OPTION:
        raise ParameterError(
            f"{name} has an option of its own, {HAS_AN_OPTION[name]}; got {shorten(text)}."
        )
    if not equals or name not in known:
        raise ParameterError(
            f"--set takes NAME=VALUE with a setting of {method} ({', '.join(known) or 'none'}); "
            f"got {shorten(text)}."
        )
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return name, value  # a word, as in gamma=scale


def make_selector(method: str, k: int | float | None, settings: dict[str, Any], seed: int) -> Any:
    """A selector of that name with these settings, checked before any data are read."""
    found = find_method(method)
    if not found.selects:
        raise ParameterError(
            f"--method {found.name} keeps every feature; it is a baseline of `keepers compare`."
        )
    selector: Any = found.load()(k, **settings)
    if "random_state" in selector.get_params() and "random_state" not in settings:
        selector.set_params(random_state=seed)
    selector.check_parameters()
    return selector


def keep_and_never(
    selector: Any, feature_names: Sequence[str], keep: Sequence[str], never: Sequence[str]
) -> None:
    """Tell the selector which features to keep always and which never, given by name."""
    if not (keep or never):
        return
    if "must_keep" not in selector.get_params():
        able = methods_that(lambda method: "must_keep" in inspect.signature(method).parameters)
        raise ParameterError(
            f"--keep and --never need one of the methods {able}; {type(selector).__name__} takes "
            "neither. Columns can be left out with --drop."
        )
    both = [repr(name) for name in keep if name in never]
    if both:
        raise ParameterError(f"A feature cannot be in --keep and in --never: {some_of(both)}.")
    places = {str(name): place for place, name in enumerate(feature_names)}
    selector.set_params(
        must_keep=_find_columns("--keep", keep, places),
        never_keep=_find_columns("--never", never, places),
    )


def _find_columns(option: str, names: Sequence[str], places: dict[str, int]) -> list[int] | None:
    absent = [name for name in names if name not in places]
    if absent:
        raise DataError(
            f"{option} must name features of the table; there is no {shorten(absent[0])}."
            f"{closest(absent[0], places)} They are {some_of([repr(name) for name in places])}."
        )
    return sorted({places[name] for name in names}) or None


def methods_that(can: Callable[[Any], bool]) -> str:
    """The names of the methods of keepers whose class is able to do something."""
    return ", ".join(method.name for method in METHODS if method.selects and can(method.load()))


def scale_table(table: LabelledTable, scaling: str) -> LabelledTable:
    """The table as a selector takes it: at least two samples, scaled."""
    if table.n_samples < 2:
        raise DataError(
            f"A selection needs at least 2 samples; {table.name} has 1. Check that samples are "
            "rows and features are columns."
        )
    if scaling == "raw":
        return table
    with np.errstate(all="ignore"):  # missing values are refused by the fit
        return replace(table, X=scale_samples(table.X, scaling))


def fit_and_describe(
    selector: Any,
    table: LabelledTable,
    *,
    scaling: str,
    threads: int | None,
    quiet: bool,
    choice: "Choice | None" = None,
) -> Selection:
    """Fit a selector to a scaled table, and describe what it keeps."""
    beginning = f"{type(selector).__name__} on {table.n_samples} x {table.n_features}"
    began = time.perf_counter()
    with fit_progress(selector, beginning, threads=threads, quiet=quiet):
        selector.fit(table)
    refuse_noise(selector, table.name)
    return describe_fit(
        selector,
        table.X,
        table.feature_names,
        source=as_unicode(table.name),
        scaling=scaling,
        **told_of_choice(choice, time.perf_counter() - began),
    )


def told_of_choice(choice: "Choice | None", seconds: float) -> dict[str, Any]:
    """What `describe_fit` takes of a choice and of a fit that took so long."""
    if choice is None:
        return {"seconds": seconds}
    return {
        "seconds": seconds + choice.seconds,
        "seconds_choosing": choice.seconds,
        "chosen": choice.why,
        "trials": choice.trials,
    }


def fit_prepared(
    selector: Any,
    settings: dict[str, Any],
    prepared: PreparedData,
    scaling: str,
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> FittedData:
    """Fit a selector to a prepared table; what the user left open is chosen first."""
    scaled = scale_table(prepared.table, scaling)
    choice = choose_open(selector, settings, scaled, seed=seed, threads=threads, quiet=quiet)
    selection = fit_and_describe(
        selector, scaled, scaling=scaling, threads=threads, quiet=quiet, choice=choice
    )
    # Settings that were chosen may have put the columns on one scale.
    minds_units = "" if selection.counts_columns_alike else type(selector).__name__
    notes = prepared.notes(minds_units, scaling)
    options = () if choice is None else choice.options
    return FittedInMemory(selection, prepared.preparer, options, notes, prepared)


def choose_open(
    selector: Any,
    settings: dict[str, Any],
    table: LabelledTable,
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> "Choice | None":
    """Set what the user left open; None if that is nothing."""
    if selector.n_features_to_select is not None or isinstance(selector, AutoSelector):
        return None
    from keepers.cli.choose import choose

    choice = choose(selector, settings, table, seed=seed, threads=threads, quiet=quiet)
    note(choice.why, quiet=quiet)
    selector.set_params(**choice.params)
    return choice


def refuse_noise(selector: Any, name: str) -> None:
    """End where nothing was found, and the number to keep was left to the selector."""
    if not isinstance(selector, AutoSelector) or selector.n_features_to_select is not None:
        return
    if not selector.structure_found_:
        found = selector.summary_.replace("No structure found", f"No structure found in {name}", 1)
        raise DataError(f"{found} Say with -k how many to keep nevertheless.")


@contextmanager
def fit_progress(
    selector: Any, beginning: str, *, threads: int | None, quiet: bool
) -> Iterator[Callable[[str], None]]:
    """Show the steps of a fit inside the block, then its warnings; yields a way to show others."""
    with progress_line(beginning, quiet=quiet) as show, limit_threads(threads):
        # Said with the options of the command, after the fit.
        warnings.simplefilter("ignore", InactiveRowsWarning)
        warnings.simplefilter("ignore", UnitsWarning)  # said before the fit
        if isinstance(selector, AutoSelector):
            warnings.simplefilter("ignore", NoStructureWarning)
        has_steps = "callback" in selector.get_params()
        if has_steps:
            steps = StepsLeft(selector.tol)

            def show_step(progress: Any) -> None:
                left = steps.after(progress.objective)
                text = f"step {progress.n_iter}, {progress.n_active} active features"
                show(text + (f", {in_words(left)}" if left else ""))

            selector.set_params(callback=show_step)
        try:
            yield show
        finally:
            if has_steps:
                selector.set_params(callback=None)


ENOUGH_STEPS = 8


class StepsLeft:
    """When an iteration will converge, estimated from how fast its steps shrink.

    The estimates of rich need the number of steps, which nobody knows beforehand.
    """

    def __init__(self, tol: float) -> None:
        self._goal = math.log(tol) if tol > 0 else None
        self._before: float | None = None
        self._recent: deque[tuple[float, float]] = deque(maxlen=ENOUGH_STEPS)

    def after(self, objective: float) -> float | None:
        """Seconds left after a step that reached ``objective``; None while it is unknown."""
        change = None if self._before is None else abs(self._before - objective)
        self._before = objective
        if self._goal is None or not change or not objective:
            return None
        self._recent.append((time.monotonic(), math.log(change / abs(objective))))
        (began, first), (now, last) = self._recent[0], self._recent[-1]
        if len(self._recent) < ENOUGH_STEPS or last >= first:
            return None
        return max(0.0, (self._goal - last) / (last - first) * (now - began))
