"""A run of an iteration, as the arrays from which it can go on."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

__all__ = ["SavedRun"]

SavedRun = Mapping[str, NDArray[Any]]
