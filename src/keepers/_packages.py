"""Other packages: importing those outside of the core install, and their versions."""

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from keepers.exceptions import MissingDependencyError

EXTRAS = {
    "polars": "io",
    "h5py": "io",
    "anndata": "h5ad",
    "python_calamine": "excel",
    "xlsxwriter": "excel",
    "dask": "dask",
    "distributed": "dask",
    "jinja2": "plot",
    "pandas": "frames",
}
"""Package -> the extra that installs it."""

_VERSIONED = ("keepers", "numpy", "scipy", "scikit-learn", "joblib")


def optional(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional package; raise with the command that installs it.

    ``purpose`` is the subject of a sentence, in the plural: "Parquet files".
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f"{purpose} need {package}, which is not installed. "
            f'Run: pip install "keepers[{EXTRAS[package]}]"'
        ) from error


def package_versions() -> dict[str, str]:
    """Version of Python and of each package that decides a result."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _VERSIONED}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
