"""The one door for packages that are not part of the core install."""

from importlib import import_module
from types import ModuleType

from keepers.exceptions import MissingDependencyError

__all__ = ["EXTRAS", "optional"]

EXTRAS = {
    "pyarrow": "io",
    "h5py": "io",
    "dask": "dask",
    "distributed": "dask",
    "matplotlib": "plot",
    "jinja2": "plot",
}
"""Package -> the extra that installs it."""


def optional(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional package, or say what it is needed for and how to install it.

    Parameters
    ----------
    module : str
        Full name, such as "pyarrow.parquet".
    purpose : str
        What needs it, as the subject of a sentence in the plural: "Parquet files".

    Examples
    --------
    >>> from keepers._optional import optional
    >>> optional("matplotlib.figure", "Plots").__name__
    'matplotlib.figure'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{purpose} need {package}, which is not installed. "
            f'Run: pip install "keepers[{EXTRAS[package]}]"'
        ) from error
