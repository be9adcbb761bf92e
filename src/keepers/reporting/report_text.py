"""Numbers, names and settings as text for a report: safe and pleasant to read."""

import re
from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np

from keepers.data import names as bundled_names
from keepers.selection import Selection

LONGEST_SHOWN = 60
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# Overrides and isolates can turn the text around them; marks (200E, 200F) only serve their own.
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NO_BREAK = "\u00a0"


def displayed(text: str, longest: int = LONGEST_SHOWN) -> str:
    """A name as shown: control and direction-changing characters replaced, long ones shortened."""
    if not text.strip():
        return "(unnamed)"
    shown = text[: longest + 1]
    shown = _DIRECTION.sub("\ufffd", _CONTROL.sub("\ufffd", shown))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def count(number: int) -> str:
    """2308 -> 2,308."""
    return f"{number:,}"


def percent(share: float) -> str:
    """0.3121 -> 31.2 %."""
    return f"{100 * share:.1f}{_NO_BREAK}%"


def significant(value: float, digits: int = 4) -> str:
    """A number with a few significant digits."""
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """A time in words, with two significant digits."""
    if seconds < 0.01:
        return f"{1000 * seconds:.1f}{_NO_BREAK}ms"
    if seconds < 60:
        return f"{seconds:.2g}{_NO_BREAK}s" if seconds < 10 else f"{seconds:.0f}{_NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}{_NO_BREAK}min {rest}{_NO_BREAK}s"


def readable(value: Any) -> str:
    """A setting as it is typed in Python; objects by the name of their type, never by address."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (list, tuple)) and len(value) <= 10:
        inside = ", ".join(readable(entry) for entry in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _constructor_call(value)
    return f"<{getattr(value, '__name__', type(value).__name__)}>"


def _constructor_call(selector: Any) -> str:
    """The call that makes a selector, with the settings that are not the defaults."""
    cls = type(selector)
    home = "keepers" if cls.__module__.startswith("keepers.") else cls.__module__
    settings = [
        f"{name}={readable(value)}"
        for name, value, default in settings_of(selector)
        if readable(value) != readable(default)
    ]
    return f"{home}.{cls.__name__}({', '.join(settings)})"


def python_recipe(selection: Selection, extras: Iterable[str]) -> str:
    """Lines of Python that repeat the selection, with the settings that are not the defaults."""
    source, cls = selection.source, type(selection.selector)
    home = "keepers" if cls.__module__.startswith("keepers.") else cls.__module__
    lines = ["import keepers"] if home == "keepers" else ["import keepers", f"import {home}"]
    arguments = list(extras)
    if source in bundled_names():
        lines += ["", f"X, names, labels = keepers.datasets.load({source!r})"]
        arguments = ["feature_names=names", *arguments]
    else:
        origin = f", from {displayed(source)}" if source else ""
        shape = f"{selection.n_samples} samples x {selection.n_features} features"
        lines += ["", f"X = ...  # {shape}{origin}"]
    lines += [
        f"selector = {_constructor_call(selection.selector)}.fit(X)",
        f"selector.top({selection.k}).names",
        f"keepers.report({', '.join(['selector', 'X', *arguments])}).save('report.html')",
    ]
    return "\n".join(lines)


def settings_of(selector: Any) -> list[tuple[str, Any, Any]]:
    """Name, value and default of every parameter, in the order of the constructor."""
    given = selector.get_params(deep=False)
    accepted = signature(type(selector)).parameters
    return [(name, given[name], accepted[name].default) for name in accepted if name in given]
