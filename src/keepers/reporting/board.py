"""Matplotlib with our settings, whatever the user's are, and the same on every run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from keepers.exceptions import MissingDependencyError

__all__ = ["clean_board", "require"]


def require(module: str) -> None:
    """Refuse, with the command that mends it, if a package of the extra is not installed."""
    try:
        import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f'A report needs {module}, which is not installed. Run: pip install "keepers[plot]"'
        ) from error


@contextmanager
def clean_board(
    name: str, width: float, height: float, settings: Mapping[Any, Any]
) -> Iterator[Any]:
    """A new figure of so many points; ids in its SVG follow from ``name`` alone."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        matplotlib.rcParams["svg.hashsalt"] = f"keepers-{name}"
        yield Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
