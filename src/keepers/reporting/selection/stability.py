"""What a stability selection says beyond its ranking, for the report."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from keepers._protocols import FloatArray, IndexArray
from keepers.tuning.false_selections import FalseSelections
from keepers.tuning.stability import StabilitySelector, wilson_intervals
from keepers.tuning.stability_index import Stability

__all__ = ["SelectionStability", "stability_of"]


@dataclass(frozen=True)
class SelectionStability:
    """How far selections from halves of the samples agree."""

    n_halves: int
    base: str
    """The selector that was fitted to each half."""
    intervals: FloatArray
    """95 % intervals of the frequencies, best feature first."""
    by_count: FloatArray
    """The interval of a feature selected in 0, 1, ..., ``n_halves`` halves."""
    n_stable: int
    index: Stability
    bound: FalseSelections


def stability_of(selector: Any, order: IndexArray) -> SelectionStability | None:
    """Frequencies, index and bound of a fitted `StabilitySelector`; None for other selectors."""
    if not isinstance(selector, StabilitySelector):
        return None
    n_halves = len(selector.selections_)
    return SelectionStability(
        n_halves=n_halves,
        base=type(selector.selector_).__name__,
        intervals=selector.frequency_intervals_[order],
        by_count=wilson_intervals(np.arange(n_halves + 1), n_halves),
        n_stable=int(selector.stable_.sum()),
        index=selector.stability_,
        bound=selector.expected_false_selections_,
    )
