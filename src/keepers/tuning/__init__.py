"""Choices made from X alone: settings of SPCAFS and how many to keep; stability."""

from keepers.tuning.search import SPCAFSCV, SettingsChoice, Trial, select_settings
from keepers.tuning.stability import Stability, StabilitySelector, measure_stability

__all__ = [
    "SPCAFSCV",
    "SettingsChoice",
    "Stability",
    "StabilitySelector",
    "Trial",
    "measure_stability",
    "select_settings",
]
