"""Everything keepers raises or warns with.

::

    KeepersError
    ├── ParameterError        (also ValueError)  a setting is outside its rule
    ├── DataError             (also ValueError)  the table cannot be used as it is
    ├── ClusterError          (also RuntimeError)  a Dask cluster was lost
    └── MissingDependencyError (also ImportError) an extra is not installed
    KeepersWarning            (also UserWarning)
    ├── DataWarning           usable, but something in the table was set aside
    │   ├── NoStructureWarning  no feature has more structure than chance
    │   └── UnitsWarning      columns have different units, and large numbers decide
    ├── ConvergenceWarning    the answer may not be final
    └── InactiveRowsWarning   more features are wanted than the penalty left active

Every message gives the rule, the value found and the way out; values are quoted with ``shorten``.
"""

import sys
import warnings
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "InactiveRowsWarning",
    "KeepersError",
    "KeepersWarning",
    "MissingDependencyError",
    "NoStructureWarning",
    "ParameterError",
    "UnitsWarning",
    "shorten",
    "warn_caller",
]

_LONGEST = 100
_MOST_ITEMS = 5
_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")")}


class KeepersError(Exception):
    """Root of all errors raised on purpose by keepers; each argument is a line of the message."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class ParameterError(KeepersError, ValueError):
    """A setting is outside its rule."""


class DataError(KeepersError, ValueError):
    """The table cannot be used as it is."""


class ClusterError(KeepersError, RuntimeError):
    """A Dask cluster was lost, or has no workers."""


class MissingDependencyError(KeepersError, ImportError):
    """An optional dependency is not installed."""


class KeepersWarning(UserWarning):
    """Root of all warnings issued on purpose by keepers."""


class DataWarning(KeepersWarning):
    """The table is usable, but part of it was set aside."""


class NoStructureWarning(DataWarning):
    """On no feature do neighbouring samples agree by more than chance."""


class UnitsWarning(DataWarning):
    """The columns have different units, and those with large numbers decide the result."""


class ConvergenceWarning(KeepersWarning):
    """An iteration stopped before it converged."""


class InactiveRowsWarning(KeepersWarning):
    """More features are wanted than rows of W are active."""


def shorten(value: object, limit: int = _LONGEST) -> str:
    """The repr of a value, short enough for a message whatever the value is.

    Strings are cut with their length stated, collections after five items, and arrays and data
    frames are given as type and shape.
    """
    try:
        return _shorten(value, limit)
    except Exception:  # a repr of somebody else's that fails must not hide the message
        return f"<{type(value).__name__}>"


def _shorten(value: object, limit: int) -> str:
    if isinstance(value, (str, bytes)):
        text = repr(value[: limit + 1])
        if len(value) <= limit and len(text) <= limit + len("b''"):
            return text
        unit = "bytes" if isinstance(value, bytes) else "characters"
        return f"{text[:limit]}...{text[-1]} ({len(value)} {unit})"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} of shape {shape}>"
    if type(value) in (list, tuple, set, frozenset, dict) and value:
        return _shorten_items(value, limit)
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def _shorten_items(values: Any, limit: int) -> str:
    """The first items in the brackets of their collection; deep nesting ends in its type."""
    if limit < _MOST_ITEMS:
        return f"<{type(values).__name__}>"
    inner = limit // 2
    if isinstance(values, dict):
        pairs = islice(values.items(), _MOST_ITEMS)
        items = [f"{shorten(key, inner)}: {shorten(item, inner)}" for key, item in pairs]
    else:
        items = [shorten(item, inner) for item in islice(values, _MOST_ITEMS)]
    more = len(values) - len(items)
    if more:
        items.append("...")
    opening, closing = _BRACKETS.get(type(values), ("{", "}"))
    comma = "," if type(values) is tuple and len(values) == 1 else ""
    text = f"{opening}{', '.join(items)}{comma}{closing}"
    return f"{text} ({len(values)} items)" if more else text


_OTHERS = ("keepers.", "sklearn.", "joblib.")
_warned: WeakKeyDictionary[Any, set[type[KeepersWarning]]] = WeakKeyDictionary()
"""Kinds of warnings that a running search of scikit-learn has shown."""


def warn_caller(message: str, category: type[KeepersWarning]) -> None:
    """Warn with the line from which keepers was called, directly or by scikit-learn.

    A search or a cross-validation of scikit-learn warns once. Python would show the warning of
    every fold, because its numbers differ.
    """
    level, frame = 2, sys._getframe(1)
    search = None
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(_OTHERS):
            break
        if name.startswith("sklearn.model_selection."):
            found = frame.f_locals
            search = found.get("self", found.get("estimator", search))
        level, frame = level + 1, frame.f_back
    if search is not None:
        shown = _warned.setdefault(search, set())
        if category in shown:
            return
        shown.add(category)
    warnings.warn(message, category, stacklevel=level)
