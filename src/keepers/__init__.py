"""keepers: which features of an unlabelled table are worth keeping."""

from keepers import data as datasets
from keepers.selectors import SPCAFS, TopFeatures, all_selectors

__version__ = "0.1.0"

__all__ = ["SPCAFS", "TopFeatures", "all_selectors", "datasets"]
