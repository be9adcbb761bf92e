"""Choices made from X alone: method, settings and number to keep; stability; the path of gamma."""

from keepers.tuning.false_selections import FalseSelections, bound_false_selections
from keepers.tuning.gamma_path import SPCAFSPath, spcafs_path
from keepers.tuning.method_choice import MethodChoice, MethodTrial, select_method
from keepers.tuning.search import SPCAFSCV, SettingsChoice, Trial, select_settings
from keepers.tuning.stability import StabilitySelector
from keepers.tuning.stability_index import Stability, measure_stability
from keepers.tuning.structure import Structure, find_structure

__all__ = [
    "SPCAFSCV",
    "FalseSelections",
    "MethodChoice",
    "MethodTrial",
    "SPCAFSPath",
    "SettingsChoice",
    "Stability",
    "StabilitySelector",
    "Structure",
    "Trial",
    "bound_false_selections",
    "find_structure",
    "measure_stability",
    "select_method",
    "select_settings",
    "spcafs_path",
]
