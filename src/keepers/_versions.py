"""Versions of keepers and of what it computes with."""

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["package_versions"]

_PACKAGES = ("keepers", "numpy", "scipy", "scikit-learn", "joblib")


def package_versions() -> dict[str, str]:
    """Version of Python and of each package that decides a result."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
