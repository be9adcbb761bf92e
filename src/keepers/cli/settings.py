"""From words on the command line to a selector."""

import ast
import difflib
import inspect
from collections.abc import Sequence
from typing import Any

from keepers.data.wording import closest, listed
from keepers.exceptions import DataError, ParameterError, shortened
from keepers.methods import all_selectors

__all__ = ["METHODS", "keep_and_never", "make_selector", "read_settings", "selector_class"]

METHODS = {
    {"laplacianscore": "lapscore", "variancescore": "variance", "randomscore": "random"}.get(
        name.lower(), name.lower()
    ): name
    for name in all_selectors()
    if name != "AllFeatures"
}
"""Name on the command line -> selector."""

HAS_AN_OPTION = {
    "n_features_to_select": "-k",
    "must_keep": "--keep",
    "never_keep": "--never",
    "memory_limit": "--memory",
    "checkpoint": "--checkpoint",
}
NOT_FOR_A_COMMAND = ("callback", "verbose")


def selector_class(method: str) -> Any:
    """The class of a method; a name that does not exist is refused with the nearest that does."""
    if method.lower() not in METHODS:
        close = difflib.get_close_matches(method.lower(), METHODS, n=1)
        hint = f" Did you mean {shortened(close[0])}?" if close else ""
        raise ParameterError(
            f"--method must be one of {', '.join(METHODS)}; got {shortened(method)}.{hint}"
        )
    return all_selectors()[METHODS[method.lower()]]


def read_settings(method: str, texts: Sequence[str]) -> dict[str, Any]:
    """Settings given as NAME=VALUE."""
    known = [
        name
        for name in inspect.signature(selector_class(method)).parameters
        if name not in HAS_AN_OPTION and name not in NOT_FOR_A_COMMAND
    ]
    return dict(_setting(text, known, method) for text in texts)


def make_selector(method: str, k: int | None, settings: dict[str, Any], seed: int) -> Any:
    """A selector of that name with these settings, checked before any data are read."""
    made = selector_class(method)(k, **settings)
    if "random_state" in made.get_params() and "random_state" not in settings:
        made.set_params(random_state=seed)
    made.check_parameters()
    return made


def _setting(text: str, known: list[str], method: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if name in HAS_AN_OPTION:
        raise ParameterError(
            f"{name} has an option of its own, {HAS_AN_OPTION[name]}; got {shortened(text)}."
        )
    if not equals or name not in known:
        raise ParameterError(
            f"--set takes NAME=VALUE with a setting of {method} ({', '.join(known) or 'none'}); "
            f"got {shortened(text)}."
        )
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return name, value  # a word, as in gamma=scale


def keep_and_never(
    selector: Any, feature_names: Sequence[str], keep: Sequence[str], never: Sequence[str]
) -> None:
    """Tell the selector which features stay and which go, given by name."""
    if not (keep or never):
        return
    if "must_keep" not in selector.get_params():
        raise ParameterError(
            f"--keep and --never need --method spcafs; {type(selector).__name__} takes neither. "
            "Columns can be left out with --drop."
        )
    both = [repr(name) for name in keep if name in never]
    if both:
        raise ParameterError(f"A feature cannot be in --keep and in --never: {listed(both)}.")
    places = {str(name): place for place, name in enumerate(feature_names)}
    selector.set_params(
        must_keep=_places("--keep", keep, places), never_keep=_places("--never", never, places)
    )


def _places(option: str, names: Sequence[str], places: dict[str, int]) -> list[int] | None:
    absent = [name for name in names if name not in places]
    if absent:
        raise DataError(
            f"{option} must name features of the table; there is no {shortened(absent[0])}."
            f"{closest(absent[0], places)} They are {listed([repr(name) for name in places])}."
        )
    return sorted({places[name] for name in names}) or None
