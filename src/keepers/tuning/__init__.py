"""Choices made from X alone: the path along gamma, stability, settings and the number to keep."""

from keepers.tuning.false_selections import FalseSelections, bound_false_selections
from keepers.tuning.stability import StabilitySelector
from keepers.tuning.stability_index import Stability, measure_stability

__all__ = [
    "FalseSelections",
    "Stability",
    "StabilitySelector",
    "bound_false_selections",
    "measure_stability",
]
