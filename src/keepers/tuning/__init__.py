"""Choices made from X alone: settings of SPCAFS and how many to keep; stability."""

from keepers.tuning.search import SPCAFSCV, SettingsChoice, Trial, select_settings
from keepers.tuning.stability import (
    FalseSelections,
    Stability,
    StabilitySelector,
    bound_false_selections,
    measure_stability,
)

__all__ = [
    "SPCAFSCV",
    "FalseSelections",
    "SettingsChoice",
    "Stability",
    "StabilitySelector",
    "Trial",
    "bound_false_selections",
    "measure_stability",
    "select_settings",
]
