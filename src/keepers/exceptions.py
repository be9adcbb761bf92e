"""All errors and warnings of keepers.

::

    KeepersError
    ├── ParameterError        (also ValueError)  a setting is not valid
    ├── DataError             (also ValueError)  the table cannot be used as it is
    ├── ClusterError          (also RuntimeError)  a Dask cluster was lost
    └── MissingDependencyError (also ImportError) an extra is not installed
    KeepersWarning            (also UserWarning)
    ├── DataWarning           the table is usable, but part of it was not used
    │   ├── NoStructureWarning  no feature has more structure than chance
    │   └── UnitsWarning      columns have different units, and large numbers decide
    ├── ConvergenceWarning    the answer may not be final
    └── InactiveRowsWarning   more features are kept than have active rows

Every message gives the rule, the value found and the way out; values are quoted with ``shorten``.
"""

import reprlib
import sys
import warnings
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


class KeepersError(Exception):
    """Base class of all errors that keepers raises; each argument is a line of the message."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class ParameterError(KeepersError, ValueError):
    """A setting is not valid."""


class DataError(KeepersError, ValueError):
    """The table cannot be used as it is."""


class ClusterError(KeepersError, RuntimeError):
    """A Dask cluster was lost, or has no workers."""


class MissingDependencyError(KeepersError, ImportError):
    """An optional dependency is not installed."""


class KeepersWarning(UserWarning):
    """Base class of all warnings that keepers issues."""


class DataWarning(KeepersWarning):
    """The table is usable, but part of it was not used."""


class NoStructureWarning(DataWarning):
    """No feature takes more similar values in similar samples than chance explains."""


class UnitsWarning(DataWarning):
    """The columns have different units, and columns with large numbers decide the result."""


class ConvergenceWarning(KeepersWarning):
    """An iteration stopped before it converged."""


class InactiveRowsWarning(KeepersWarning):
    """More features are kept than rows of W are active."""


def shorten(value: object) -> str:
    """The repr of a value, short enough for a message whatever the value is.

    Long texts and collections are cut; arrays and data frames are given as type and shape.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} of shape {shape}>"
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxlevel = 2
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 5
_SHORT.maxstring = _SHORT.maxother = 100


_OTHERS = ("keepers.", "sklearn.", "joblib.")
_warned: WeakKeyDictionary[Any, set[type[KeepersWarning]]] = WeakKeyDictionary()
"""Kinds of warnings that a running search of scikit-learn has shown."""


def warn_caller(message: str, category: type[KeepersWarning]) -> None:
    """Warn with the line from which keepers was called, directly or by scikit-learn.

    A search or a cross-validation of scikit-learn warns once, and once in each of its workers.
    Python would show the warning of every fold, because its numbers differ.
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
            if frame.f_code.co_name == "_fit_and_score":  # with a copy; in a worker, it comes last
                search = type(search)
        level, frame = level + 1, frame.f_back
    if search is not None:
        shown = _warned.setdefault(search, set())
        if category in shown:
            return
        shown.add(category)
    warnings.warn(message, category, stacklevel=level)
