"""Everything keepers raises or warns with.

::

    KeepersError
    ├── ParameterError        (also ValueError)  a setting is outside its rule
    ├── DataError             (also ValueError)  the table cannot be used as it is
    ├── ClusterError          (also RuntimeError)  a Dask cluster was lost
    └── MissingDependencyError (also ImportError) an extra is not installed
    KeepersWarning            (also UserWarning)
    ├── DataWarning           usable, but something in the table was set aside
    └── ConvergenceWarning    the answer may not be final

Every message gives the rule, the value found and the way out.
"""

import sys
import warnings

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataWarning",
    "KeepersError",
    "KeepersWarning",
    "MissingDependencyError",
    "ParameterError",
    "warn_caller",
]


class KeepersError(Exception):
    """Root of all errors raised on purpose by keepers."""


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


class ConvergenceWarning(KeepersWarning):
    """An iteration stopped before it settled."""


def warn_caller(message: str, category: type[KeepersWarning]) -> None:
    """Warn with the line outside of keepers from which it was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("keepers."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
