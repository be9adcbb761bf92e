"""Matplotlib with our settings, whatever the user's are, and the same on every run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from keepers.exceptions import MissingDependencyError

__all__ = ["clean_style", "new_figure", "require"]


def require(module: str) -> None:
    """Refuse, with the command that mends it, if a package of the extra is not installed."""
    try:
        import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f'A report needs {module}, which is not installed. Run: pip install "keepers[plot]"'
        ) from error


@contextmanager
def clean_style(settings: Mapping[Any, Any]) -> Iterator[None]:
    """Matplotlib's defaults and these settings, for as many figures as are drawn meanwhile."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings)
        yield


def new_figure(name: str, width: float, height: float) -> Any:
    """A figure of so many points; until the next one, ids in an SVG follow from ``name`` alone."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = f"keepers-{name}"
    return Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
