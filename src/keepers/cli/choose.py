"""The number of features and the settings, chosen without labels where the user gave none."""

import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from keepers._interrupts import interrupts_kept_from_children
from keepers.cli.console import progress_line
from keepers.cli.options import available_cores
from keepers.data.table import LabelledTable
from keepers.exceptions import DataError, KeepersWarning, ParameterError
from keepers.selectors import SPCAFS
from keepers.selectors.fitted_table import read_table
from keepers.tuning import (
    MethodChoice,
    SettingsChoice,
    Structure,
    find_structure,
    select_method,
    select_settings,
)

SEARCHED = ("n_components", "p", "scaling", "max_correlation")
WORTH_PROCESSES = 100_000
"""Values in a table from which further processes save more time than they take to start."""


@dataclass(frozen=True)
class Choice:
    """What the user left open, chosen."""

    params: dict[str, Any]
    """For the selector: ``n_features_to_select``, and the settings that were searched."""
    why: str
    """A sentence."""
    options: tuple[str, ...]
    """The same as options of `keepers select`."""
    seconds: float
    trials: tuple[dict[str, Any], ...] = ()
    """The settings that were tried, best first, with their evidence."""


def choose(
    selector: Any,
    given: dict[str, Any],
    table: LabelledTable,
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> Choice:
    """Choose the number of features, and for SPCAFS the settings that are not in ``given``."""
    began = time.perf_counter()
    never = selector.get_params().get("never_keep") or []
    allowed = np.setdiff1d(np.arange(table.n_features), never)
    X = table.X[:, allowed] if len(never) else table.X
    if isinstance(selector, SPCAFS):
        held = _hold(given)
        found = search(X, None, held, seed=seed, threads=threads, quiet=quiet)
        structure, params = found.structure, {**found.best.params, **held}
    else:
        structure, params, found = _structure(X, seed), {}, None
    if not structure.found:
        raise DataError(no_structure(table.name))
    must = selector.get_params().get("must_keep") or []
    k = max(structure.n_features_to_select, len(must))
    why = f"Chosen without labels: {count_features(k)}; {why_so_many(structure, X.shape[1])}"
    if found is not None:
        why += (
            f"; {', '.join(as_settings(_round(params)))} had the strongest evidence of "
            f"{len(found.candidates)} combinations in {found.seconds:.1f} s "
            "(`keepers tune` shows it)"
        )
    return Choice(
        {"n_features_to_select": k, **params},
        f"{why}.",
        as_options(k, {name: value for name, value in params.items() if name not in given}),
        time.perf_counter() - began,
        () if found is None else tuple(found.rows()),
    )


def search(
    X: Any,
    k: int | None,
    held: dict[str, Any] | None = None,
    *,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> SettingsChoice:
    """`select_settings`, with a line that shows the progress."""
    sequences: dict[str, Any] = {name: [value] for name, value in (held or {}).items()}
    with _trying("trying settings", X, threads, quiet=quiet) as how:
        return select_settings(X, k, **sequences, random_state=seed, **how)


def search_methods(
    X: Any, k: int | None, *, seed: int, threads: int | None, quiet: bool
) -> MethodChoice:
    """`select_method`, with a line that shows the progress."""
    with _trying("trying methods", X, threads, quiet=quiet) as how:
        return select_method(X, k, random_state=seed, **how)


@contextmanager
def _trying(text: str, X: Any, threads: int | None, *, quiet: bool) -> Iterator[dict[str, Any]]:
    """A line that shows the progress; yields the processes and the callback of a search."""
    n_jobs = count_processes(X, threads)
    with progress_line(text, quiet=quiet) as show, warnings.catch_warnings():
        # The fit of the winner says again what there is to say about the table.
        warnings.simplefilter("ignore", KeepersWarning)
        _start_workers(n_jobs)
        yield {"n_jobs": n_jobs, "callback": lambda done, total: show(None, done, total)}


def count_processes(X: Any, threads: int | None) -> int:
    """How many processes to share fits among."""
    if threads is not None:
        return threads
    n_values = X.nnz if hasattr(X, "nnz") else X.size
    return available_cores() if n_values >= WORTH_PROCESSES else 1


def _start_workers(n_jobs: int) -> None:
    """Start joblib's processes without Ctrl-C: this process receives it, and ends them.

    Otherwise each of them prints a traceback of its own. They wait for the next to use joblib.
    """
    if n_jobs == 1 or threading.current_thread() is not threading.main_thread():
        return
    # Entering it starts the process that watches over the others, which may unblock the signal.
    with joblib.Parallel(n_jobs=n_jobs, return_as="generator") as parallel:
        with interrupts_kept_from_children():
            answers = parallel(joblib.delayed(abs)(number) for number in range(n_jobs))
        list(answers)


def _hold(given: dict[str, Any]) -> dict[str, Any]:
    if "gamma" in given:
        raise ParameterError(
            "Without -k the settings are chosen, and gamma with them, as a share of the leading "
            f"eigenvalue; got gamma={given['gamma']}. Give -k too, or leave gamma out."
        )
    return {name: given[name] for name in SEARCHED if name in given}


def _structure(X: Any, seed: int) -> Structure:
    """The same answer as `select_settings` gets, without its fits."""
    reader: Any = SPCAFS(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeepersWarning)
        usable = read_table(reader, X)
    return find_structure(usable.X, reader.random_generator())


def why_so_many(structure: Structure, n_features: int) -> str:
    """Where the number of features comes from, as a clause."""
    carrying, knee = structure.n_carrying, structure.knee
    verb = "carries" if carrying == 1 else "carry"
    clause = f"{carrying} of {n_features} features {verb} structure"
    if knee is None:
        return f"{clause}, and the leverages fall evenly"
    if knee <= carrying:
        return f"{clause}, and the leverages bend at {knee}"
    return f"{clause}, fewer than up to the bend of the leverages ({knee})"


def no_structure(name: str) -> str:
    """What to say when nothing was found."""
    return (
        f"No structure found in {name}: no feature is predicted by the others better than chance, "
        "so nothing in the table says which to keep. Say with -k how many to keep nevertheless."
    )


def count_features(k: int) -> str:
    """1 -> "1 feature", 2 -> "2 features"."""
    return "1 feature" if k == 1 else f"{k} features"


def as_settings(params: dict[str, Any]) -> Iterable[str]:
    """NAME=VALUE, with every digit."""
    return (f"{name}={value}" for name, value in params.items())


def as_options(k: int, params: dict[str, Any]) -> tuple[str, ...]:
    """-k and --set, ready for the command line."""
    settings = [part for setting in as_settings(params) for part in ("--set", setting)]
    return ("-k", str(k), *settings)


def _round(params: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"{value:.3g}" if isinstance(value, float) else value
        for name, value in params.items()
    }
