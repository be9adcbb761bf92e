"""From words on the command line to a selector."""

import ast
import difflib
import inspect
from collections.abc import Sequence
from typing import Any

from keepers.exceptions import ParameterError
from keepers.selectors import all_selectors

__all__ = ["METHODS", "make_selector"]

METHODS = {
    {"laplacianscore": "lapscore", "variancescore": "variance", "randomscore": "random"}.get(
        name.lower(), name.lower()
    ): name
    for name in all_selectors()
    if name != "AllFeatures"
}
"""Name on the command line -> selector."""


def make_selector(method: str, k: int, settings: Sequence[str], seed: int) -> Any:
    """A selector of that name, with settings given as NAME=VALUE."""
    if method.lower() not in METHODS:
        close = difflib.get_close_matches(method.lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ParameterError(f"--method must be one of {', '.join(METHODS)}; got {method!r}.{hint}")
    selector_class = all_selectors()[METHODS[method.lower()]]
    known = [
        name
        for name in inspect.signature(selector_class).parameters
        if name not in ("n_features_to_select", "callback", "verbose")
    ]
    chosen = dict(_setting(text, known, method) for text in settings)
    if "random_state" in known:
        chosen.setdefault("random_state", seed)
    return selector_class(k, **chosen)


def _setting(text: str, known: list[str], method: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or name not in known:
        raise ParameterError(
            f"--set takes NAME=VALUE with a setting of {method} ({', '.join(known) or 'none'}); "
            f"got {text!r}."
        )
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a word, as in gamma=scale
